"""Special tokens, flags and the chat template of a `tokenizer.json`, as llama.cpp's converter finds them.

Source: llama.cpp `gguf-py/gguf/vocab.py`, `SpecialVocab`. Deviations: (1) if no `tokenizer_config.json` says it,
BOS, EOS, SEP and UNK are those of the template and the model, which leaves less to llama.cpp's defaults.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ...tokenizer.keys import CHAT_TEMPLATE, FLAGS, GGML, SPECIAL
from .architectures import Architecture
from .json_parts import Json, listed, mapping, steps

NAMES = ("bos", "eos", "unk", "sep", "pad", "cls", "mask")


def around(file: Json, ids: Mapping[str, int]) -> tuple[list[int], list[int]]:
    """The ids that the post-processor of the file adds before and after a text."""
    before: list[int] = []
    after: list[int] = []
    for step in steps(file, "post_processor"):
        if step.get("type") == "TemplateProcessing":
            special = mapping(step.get("special_tokens"))
            side = before
            for item in listed(step.get("single")):
                if "Sequence" in mapping(item):
                    side = after
                    continue
                name = str(mapping(mapping(item).get("SpecialToken")).get("id"))
                side += [id for id in listed(mapping(special.get(name)).get("ids")) if isinstance(id, int)]
        elif step.get("type") in ("RobertaProcessing", "BertProcessing"):
            for side, text in ((before, _first(step.get("cls"))), (after, _first(step.get("sep")))):
                side += [ids[text]] if text is not None and text in ids else []
    return before, after


def entries(file: Json, config: Json, ids: Mapping[str, int], meant: Architecture, size: int) -> dict[str, Any]:
    """Keys of special tokens, flags and chat templates.

    Args:
        file: The `tokenizer.json`.
        config: The `tokenizer_config.json`.
        ids: The ids by text: of added tokens, and of all tokens without a configuration.
        meant: The architecture.
        size: The number of tokens.
    """
    texts = {name: _text(config.get(f"{name}_token")) for name in NAMES}
    texts["bos"] = texts["bos"] or texts["cls"]
    texts["eos"] = texts["eos"] or texts["sep"]
    add: dict[str, bool] = {}
    for step in steps(file, "post_processor"):
        if step.get("type") == "ByteLevel":
            add = {"bos": False, "eos": False} | add
        elif step.get("type") == "RobertaProcessing":
            add |= {"bos": True, "eos": True, "sep": True}
            texts["cls"] = texts["cls"] or _first(step.get("cls"))
            texts["sep"] = texts["sep"] or _first(step.get("sep"))
        elif step.get("type") == "TemplateProcessing":
            _read_template(step, texts, add, bool(config))
    for name in ("bos", "eos", "sep"):
        given = config.get(f"add_{name}_token")
        if isinstance(given, bool):
            add.setdefault(name, given)
    if not config:
        model = mapping(file.get("model"))
        texts["unk"] = texts["unk"] or _text(model.get("unk_token"))
        if model.get("type") == "WordPiece":
            texts["sep"] = texts["sep"] or texts["eos"]
    found = {name: ids[text] for name, text in texts.items() if text is not None and text in ids}
    rules = meant.rules
    for each in (meant.config, mapping(meant.config.get("text_config"))):
        given_ids = {name: each.get(f"{name}_token_id") for name in NAMES}
        found = {name: id for name, id in given_ids.items() if type(id) is int and 0 <= id < size} | found
    defaults, fixed = (
        {name: id for name, token in rules.get(field, {}).items() if (id := ids.get(token, token)) in range(size)}
        for field in ("default", "special")
    )
    keys = SPECIAL | {"cls": "cls_token_id"}
    result: dict[str, Any] = {GGML + keys[name]: id for name, id in (defaults | found | fixed).items()}
    added = {f"add_{name}": is_added for name, is_added in add.items()}
    flags = rules.get("default_flags", {}) | added | rules.get("flags", {})
    result |= {GGML + FLAGS[name]: flag for name, flag in flags.items()}
    for step in steps(file, "normalizer"):
        result |= _normalizer_flags(step)
    return result | _templates(config.get("chat_template"))


def _templates(template: object) -> dict[str, Any]:
    """Keys of one template, or of several with names."""
    if isinstance(template, str):
        return {CHAT_TEMPLATE: template}
    result: dict[str, Any] = {}
    for item in map(mapping, listed(template)):
        name, source = re.sub("[^A-Za-z0-9]", "_", str(item.get("name", ""))), item.get("template")
        if name and isinstance(source, str):
            result[CHAT_TEMPLATE + ("" if name == "default" else f".{name}")] = source
    names = [key.removeprefix(f"{CHAT_TEMPLATE}.") for key in result if key != CHAT_TEMPLATE]
    return result | ({f"{CHAT_TEMPLATE}s": names} if names else {})


def named(config: Json) -> set[str]:
    """The special tokens that a configuration names, which other libraries leave out of what they decode."""
    found = {_text(value) for key, value in config.items() if key.endswith("_token")}
    for key in ("additional_special_tokens", "extra_special_tokens"):
        more = config.get(key)
        found |= {_text(token) for token in (more.values() if isinstance(more, dict) else listed(more))}
    return {text for text in found if text}


def _read_template(step: Json, texts: dict[str, str | None], add: dict[str, bool], is_told: bool) -> None:
    """Whether BOS, EOS and SEP are added, by the ends of a template, and by what is inside one for two texts."""
    single = [mapping(item) for item in listed(step.get("single"))]
    ends = (single[0], single[-1]) if len(single) > 1 else ({}, {})
    first, last = (_text(mapping(item.get("SpecialToken")).get("id")) for item in ends)
    if first:
        if not is_told:
            texts["bos"] = first
        elif first not in (texts["bos"], texts["cls"]):
            texts["bos"], texts["cls"] = texts["bos"] or first, texts["cls"] or first
        add["bos"] = first in (texts["bos"], texts["cls"])
    if last:
        if is_told and last != texts["eos"]:
            texts.setdefault("eom" if "eot" in texts else "eot", texts["eos"])
        texts["eos"] = last
        add["eos"] = True
    pair = [mapping(item) for item in listed(step.get("pair"))]
    names = [_text(mapping(item.get("SpecialToken")).get("id")) for item in pair]
    start = 1 if first and names[:1] == [first] else 0
    stop = len(pair) - (1 if last and names[-1:] == [last] else 0)
    sides = [mapping(item.get("Sequence")).get("id") for item in pair[start:stop]]
    middle = names[start:stop][1:-1]
    if middle and (sides[0], sides[-1]) == ("A", "B"):
        known = (texts["sep"], texts["eos"])
        add["sep"] = (middle[0] in known and not last) or (len(middle) == 2 and middle[1] in known)
        if add["sep"] and is_told:
            texts["sep"] = texts["sep"] or texts["eos"]


def _normalizer_flags(step: Json) -> dict[str, Any]:
    named: dict[str, dict[str, Any]] = {"Lowercase": {"lowercase": True}, "StripAccents": {"strip_accents": True}}
    named["BertNormalizer"] = {name: step.get(name) for name in ("lowercase", "strip_accents")}
    flags = named.get(str(step.get("type")), {})
    return {f"{GGML}normalizer.{name}": value for name, value in flags.items() if isinstance(value, bool)}


def _first(pair: object) -> str | None:
    items = listed(pair)
    return _text(items[0]) if items else None


def _text(token: object) -> str | None:
    """A token as a text, or as an object with its content."""
    content = token.get("content") if isinstance(token, dict) else token
    return content if isinstance(content, str) and content else None
