"""Special tokens, flags and the chat template of a `tokenizer.json`, as llama.cpp's converter finds them.

Source: llama.cpp `gguf-py/gguf/vocab.py`, `SpecialVocab`. Deviations: (1) if no `tokenizer_config.json` says it,
BOS, EOS, SEP and UNK are those of the template and the model, which leaves less to llama.cpp's defaults.
(2) `add_sep_token`, which llama.cpp never uses, is not written. (3) Ids in `config.json` are not read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._keys import CHAT_TEMPLATE, GGML, SPECIAL

NAMES = ("bos", "eos", "unk", "sep", "pad", "cls", "mask", "eot", "eom")


def around(file: Mapping[str, Any], ids: Mapping[str, int]) -> tuple[list[int], list[int]]:
    """The ids that the post-processor of the file adds before and after a text."""
    before: list[int] = []
    after: list[int] = []
    for step in _steps(file.get("post_processor"), "processors"):
        if step.get("type") == "TemplateProcessing":
            special = _mapping(step.get("special_tokens"))
            side = before
            for item in _list(step.get("single")):
                if "Sequence" in _mapping(item):
                    side = after
                    continue
                name = str(_mapping(_mapping(item).get("SpecialToken")).get("id"))
                side += [id for id in _list(_mapping(special.get(name)).get("ids")) if isinstance(id, int)]
        elif step.get("type") in ("RobertaProcessing", "BertProcessing"):
            for side, text in ((before, _first(step.get("cls"))), (after, _first(step.get("sep")))):
                side += [ids[text]] if text is not None and text in ids else []
    return before, after


def entries(
    file: Mapping[str, Any], config: Mapping[str, Any], ids: Mapping[str, int], is_wordpiece: bool
) -> dict[str, Any]:
    """Keys of special tokens, flags and the chat template.

    `ids` are the ids by text: of added tokens, and of all tokens if there is no configuration.
    """
    texts = {name: _text(config.get(f"{name}_token")) for name in NAMES}
    texts["bos"] = texts["bos"] or texts["cls"]
    texts["eos"] = texts["eos"] or texts["sep"]
    add: dict[str, bool] = {}
    for step in _steps(file.get("post_processor"), "processors"):
        if step.get("type") == "ByteLevel":
            add = {"bos": False, "eos": False} | add
        elif step.get("type") == "RobertaProcessing":
            add |= {"bos": True, "eos": True}
            texts["cls"] = texts["cls"] or _first(step.get("cls"))
            texts["sep"] = texts["sep"] or _first(step.get("sep"))
        elif step.get("type") == "TemplateProcessing":
            _read_template(step, texts, add, bool(config))
    for name in ("bos", "eos"):
        given = config.get(f"add_{name}_token")
        if isinstance(given, bool):
            add.setdefault(name, given)
    if not config:
        model = _mapping(file.get("model"))
        texts["unk"] = texts["unk"] or _text(model.get("unk_token"))
        if is_wordpiece:
            texts["sep"] = texts["sep"] or texts["eos"]
    keys = SPECIAL | {"cls": "cls_token_id"}
    result: dict[str, Any] = {
        GGML + keys[name]: ids[text] for name, text in texts.items() if text is not None and text in ids
    }
    result |= {f"{GGML}add_{name}_token": is_added for name, is_added in add.items()}
    for step in _steps(file.get("normalizer"), "normalizers"):
        result |= _normalizer_flags(step)
    template = config.get("chat_template")
    if isinstance(template, str):
        result[CHAT_TEMPLATE] = template
    elif isinstance(template, list):
        for item in map(_mapping, template):
            key, source = item.get("name"), item.get("template")
            if isinstance(key, str) and isinstance(source, str):
                result[CHAT_TEMPLATE + ("" if key == "default" else f".{key}")] = source
    return result


def _read_template(step: Mapping[str, Any], texts: dict[str, str | None], add: dict[str, bool], is_told: bool) -> None:
    """Whether BOS and EOS are added, by the first and the last item of a template."""
    single = [_mapping(item) for item in _list(step.get("single"))]
    if len(single) < 2:
        return
    first = _text(_mapping(single[0].get("SpecialToken")).get("id"))
    last = _text(_mapping(single[-1].get("SpecialToken")).get("id"))
    if first:
        if not is_told or not texts["bos"]:
            texts["bos"] = first
        if is_told and first not in (texts["bos"], texts["cls"]):
            texts["cls"] = texts["cls"] or first
        add["bos"] = first in (texts["bos"], texts["cls"])
    if last:
        if is_told and texts["eos"] and last != texts["eos"]:
            texts["eot" if texts["eot"] is None else "eom"] = texts["eos"]
        texts["eos"] = last
        add["eos"] = True


def _normalizer_flags(step: Mapping[str, Any]) -> dict[str, Any]:
    named: dict[str, dict[str, Any]] = {"Lowercase": {"lowercase": True}, "StripAccents": {"strip_accents": True}}
    named["BertNormalizer"] = {name: step.get(name) for name in ("lowercase", "strip_accents")}
    flags = named.get(str(step.get("type")), {})
    return {f"{GGML}normalizer.{name}": value for name, value in flags.items() if isinstance(value, bool)}


def _steps(component: object, inner: str) -> list[Mapping[str, Any]]:
    """A component, or those of a sequence."""
    whole = _mapping(component)
    return [_mapping(step) for step in _list(whole[inner])] if inner in whole else [whole]


def _first(pair: object) -> str | None:
    items = _list(pair)
    return _text(items[0]) if items else None


def _text(token: object) -> str | None:
    """A token as a text, or as an object with its content."""
    content = token.get("content") if isinstance(token, dict) else token
    return content if isinstance(content, str) and content else None


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
