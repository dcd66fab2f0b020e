"""The GGUF metadata that llama.cpp's converter would make of a `tokenizer.json`.

Source: llama.cpp `conversion/base.py` (`get_vocab_base`, `_set_vocab_gpt2`), `gguf-py/gguf/vocab.py` (`LlamaHfVocab`),
`conversion/bert.py` (`BertModel.set_vocab`, `_xlmroberta_set_vocab`) and `conversion/gemma.py`. O(n) for n bytes.

| model there | model here | as in the converter |
| --- | --- | --- |
| `BPE` over bytes | gpt2 | the pre-tokenizer is known by the digest of a test text |
| `BPE` with byte fallback | gemma4 | for the architectures of Gemma 4, or if it has the tokens that only Gemma 4 has |
| | llama | for architectures such as Llama; all tokens get one score, because the file has none: a warning says so |
| | gpt2 | for other architectures, if the digest is known |
| `BPE` after `Whitespace` | whitespace | |
| `WordPiece` | bert | `##` goes, and what starts a word gets `▁` |
| `Unigram` | t5 | |

`architectures.json` has what else depends on the architecture.

Deviations: (1) an unknown digest is an error for models of the kind gpt2 only, since llama.cpp does not use the name
otherwise. (2) Unigram's settings of spaces are those of the file itself. (3) An added token that the file's library
would spell differently is taken as it is. (4) Without an architecture, a BPE with byte fallback becomes gpt2 if the
digest is known, and llama if not. (5) Without a configuration, all special added tokens are control tokens.
"""

from __future__ import annotations

import base64
import binascii
import glob
import json
import os
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, NoReturn

from ..._ggtok import pretokenizers
from ...errors import ArgumentTypeError, ConversionError, UnsupportedError
from ...tokenizer.files import read
from ...tokenizer.findings import Finding, warn_of
from ...tokenizer.keys import BYTE, CONTROL, GGML, NORMAL, UNKNOWN, USER_DEFINED
from ...tokenizer.metadata import Source, name_of
from . import architectures, special_tokens
from .architectures import Architecture
from .expressed import Spaces, not_expressed
from .gguf import Packed, gguf_bytes
from .json_parts import Json, kinds, listed, mapping, steps
from .library import Library
from .padding import MAX_HOLES, MAX_SIZE, padded
from .pre_by_digest import known, nearest
from .probes import ADVICE
from .vocabulary import SPACE

FORMAT = "tokenizer.json"
ONE_SCORE = -1000.0
MAX_SCORE = 3e38
"""Scores are float32."""


def imported(
    data: bytes, config: Json, meant: Architecture, pre: str | None, vocab_size: int | None
) -> tuple[bytes, Library | None]:
    """The GGUF file of a `tokenizer.json` and the `tokenizer_config.json` beside it.

    With it comes the BPE of the file, if llama.cpp's is to give the same ids.
    """
    file = mapping(parsed(data))
    if pre is not None and pre not in pretokenizers():
        raise UnsupportedError(f"ggtok does not know the pre-tokenizer {pre!r}", pre)
    model, added, library = mapping(file.get("model")), _added(file), None
    ids, kind = _ids(model, added), model.get("type", "BPE" if "merges" in model else None)
    if meant.name is None:
        rows = (row for row in architectures.rows() if "user_defined" in row)
        meant = meant._replace(rules=next((row for row in rows if ids.keys() >= {*row["user_defined"]}), {}))
    named = special_tokens.named(config)
    special = {id for id, token in added.items() if (token.text in named if config else token.is_special)}
    match kind:
        case "BPE":
            library = Library(file, _vocab(model), _merges(model), {token.text: id for id, token in added.items()})
            entries = _bpe(library, config, added, special, pre, meant)
        case "WordPiece":
            entries = _wpm(model, added)
        case "Unigram":
            entries = _ugm(file, model, added, special)
        case None:
            _refuse("this is not a file of huggingface/tokenizers: it has no model with a type")
        case _:
            _refuse(f"llama.cpp has no model for one of type {kind!r}")
    if kind != "BPE" and (lost := not_expressed(kind, file, entries.get(f"{GGML}precompiled_charsmap", b""))):
        message = f"llama.cpp cannot represent a part of the file: {', '.join(sorted(lost))}"
        warn_of(Finding("conversion-differs", "warning", message, ADVICE))
    tokens, name = entries.pop("tokens"), entries[f"{GGML}model"]
    for field, token_type in (("control", CONTROL), ("user_defined", USER_DEFINED)):
        for id in (ids[text] for text in meant.rules.get(field, ()) if text in ids):
            tokens[id] = (*tokens[id][:2], token_type)
    # The converter pads neither of these two.
    if vocab_size is None and meant.vocab_size is not None and name not in ("llama", "gemma4"):
        vocab_size = max(meant.vocab_size, len(tokens) if name == "t5" else 0)
    texts, scores, types = padded(FORMAT, tokens, vocab_size)
    by_text = {token.text: id for id, token in reversed(added.items())} if config else ids
    keys = special_tokens.entries(file, config, by_text, meant, len(texts))
    arrays: dict[str, Any] = {f"{GGML}tokens": Packed.strings(texts), f"{GGML}token_type": types}
    if name in ("llama", "gemma4", "t5"):
        arrays[f"{GGML}scores"] = scores
    return gguf_bytes(entries | arrays | keys), library if f"{GGML}merges" in entries else None


def read_config(source: Source, config: Source | Json | None, rules: Json) -> Json:
    """What is in `tokenizer_config.json`: given, or beside the file, with the chat templates that have files there."""
    if isinstance(config, Mapping):
        if not all(isinstance(key, str) for key in config):
            raise ArgumentTypeError("the keys of config must be str")
        return config
    if config is not None:
        return mapping(parsed(read(config)))
    found = dict(beside(source, "tokenizer_config.json"))
    if not found:
        return found
    folder = os.path.dirname(name_of(source) or "")
    paths = [os.path.join(folder, "chat_template.jinja")]
    paths += sorted(glob.glob(os.path.join(glob.escape(folder), "additional_chat_templates", "*.jinja")))
    template: object = beside(source, "chat_template.json").get("chat_template")
    if os.path.exists(paths[0]):
        texts = [read(path).decode("utf-8", "surrogateescape") for path in paths]
        if rules.get("template_file"):
            return found | {"chat_template": texts[0]}
        names = ["default", *(os.path.basename(path).removesuffix(".jinja") for path in paths[1:])]
        named = [{"name": name, "template": text} for name, text in zip(names, texts, strict=True)]
        template = named if len(named) > 1 else texts[0]
    return {"chat_template": template} | found


def beside(source: Source, name: str) -> Json:
    """What is in a JSON file beside the source, if there is one."""
    path = os.path.join(os.path.dirname(name_of(source) or ""), name)
    return mapping(parsed(read(path))) if name_of(source) is not None and os.path.exists(path) else {}


def parsed(data: bytes) -> object:
    """JSON, with an error of ours."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ConversionError(FORMAT, f"this is not JSON: {error}") from None


def _refuse(reason: str) -> NoReturn:
    raise ConversionError(FORMAT, reason)


_LOOKS_SPECIAL = re.compile(r"<pad>|<mask>|<2mass>|\[@BOS@\]|<\|.*\|>|<\uff5c.*\uff5c>|<unused.*>", re.DOTALL)


class Added(NamedTuple):
    text: str
    is_special: bool
    """By the file."""
    is_control: bool
    """By the file, or by its text."""

    def row(self) -> tuple[bytes, float, int]:
        if self.is_control:
            return encoded(self.text), ONE_SCORE, CONTROL
        return encoded(self.text.replace(SPACE, " ")), ONE_SCORE, USER_DEFINED


def encoded(text: str) -> bytes:
    """UTF-8; half a surrogate pair, which JSON can have, as the three bytes of its number."""
    return text.encode("utf-8", "surrogatepass")


def _added(file: Json) -> dict[int, Added]:
    found = {}
    for at, item in enumerate(map(mapping, listed(file.get("added_tokens")))):
        id, text = item.get("id"), item.get("content")
        if type(id) is not int or not 0 <= id < MAX_SIZE or not isinstance(text, str) or not text:
            _refuse(f"added_tokens[{at}] has the id {id!r} and the content {text!r}")
        is_special = item.get("special") is True
        found[id] = Added(text, is_special, is_special or _LOOKS_SPECIAL.fullmatch(text) is not None)
    return found


def _vocab(model: Json) -> dict[str, int]:
    vocab = model.get("vocab")
    if not isinstance(vocab, dict):
        _refuse("model.vocab must be an object of texts and ids")
    for text, id in vocab.items():
        if type(id) is not int or not 0 <= id < MAX_SIZE:
            _refuse(f"model.vocab has the id {id!r} for {text!r}")
    return vocab


def _ids(model: Json, added: dict[int, Added]) -> dict[str, int]:
    """All ids by text."""
    vocab = model.get("vocab")
    if isinstance(vocab, list):
        vocab = {str(row[0]): id for id, row in enumerate(vocab) if isinstance(row, list) and row}
    return {**mapping(vocab), **{token.text: id for id, token in added.items()}}


def _rows(vocab: dict[str, int], added: dict[int, Added]) -> list[tuple[bytes, float, int] | None]:
    """Text, score and type by id; `None` if no token has the id."""
    rows: list[tuple[bytes, float, int] | None] = [None] * _size(vocab.values(), added)
    for text, id in vocab.items():
        if rows[id] is not None:
            _refuse(f"two tokens have the id {id}: one of them is {text!r}")
        rows[id] = encoded(text), ONE_SCORE, NORMAL
    for id, token in added.items():
        rows[id] = token.row()
    return rows


def _size(ids: Iterable[int], added: dict[int, Added]) -> int:
    """One more than the highest id."""
    every = {*ids, *added}
    size = 1 + max(every, default=-1)
    if size > len(every) + MAX_HOLES:
        _refuse(f"the highest id is {size - 1}, and there are {len(every)} tokens")
    return size


def _merges(model: Json) -> list[tuple[str, str]]:
    """The merge rules. A space inside a side is written as GPT-2's stand-in for it."""
    found = []
    for rank, rule in enumerate(listed(model.get("merges"))):
        sides = rule.split(" ") if isinstance(rule, str) else rule
        if not isinstance(sides, list) or len(sides) != 2 or not all(isinstance(side, str) for side in sides):
            _refuse(f"model.merges[{rank}] is {rule!r}, and not two texts")
        found.append((sides[0].replace(" ", "\u0120"), sides[1].replace(" ", "\u0120")))
    return found


def _bpe(
    library: Library, config: Json, added: dict[int, Added], special: set[int], pre: str | None, meant: Architecture
) -> dict[str, Any]:
    """What a BPE becomes, by its architecture and its pre-tokenizer."""
    file, model, components = library.file, library.model, kinds(library.splits)
    is_byte_level = "ByteLevel" in [*components, *kinds(library.normalizers)]
    for affix in ("continuing_subword_prefix", "end_of_word_suffix"):
        if model.get(affix):
            _refuse(f"llama.cpp knows nothing like the {affix} {model[affix]!r}")
    falls_back, name = model.get("byte_fallback") is True and not is_byte_level, "gpt2"
    if falls_back:
        name = meant.rules.get("byte_fallback", name)
    elif components == ["Whitespace"]:
        name = pre = "whitespace"
    elif not is_byte_level:
        _refuse("this BPE neither is over bytes nor falls back to bytes, which llama.cpp has no model for")
    if name == "gpt2" and pre is None:
        pre, reason = known(library, special_tokens.around(file, _ids(model, added)))
        if pre is None and falls_back and meant.name is None:
            name = "llama"
        elif pre is None:
            patterns = (str(mapping(step.get("pattern")).get("Regex", "")) for step in library.splits)
            near = ", ".join(nearest("".join(patterns)))
            _refuse(
                f"llama.cpp's converter does not know this pre-tokenizer ({reason}); give its name as pre, for example "
                f"{near}"
            )
    # There is a tokenizer model called whitespace, but no architecture: llama.cpp would refuse the file.
    architecture = "gpt2" if name == "whitespace" else name
    entries: dict[str, Any] = {"general.architecture": architecture, f"{GGML}model": name}
    if name == "llama":
        message = "llama.cpp's converter gives all tokens of such a file one score, so they merge from left to right"
        advice = "convert the tokenizer.model of sentencepiece instead: from_sentencepiece reads it"
        warn_of(Finding("conversion-differs", "warning", message, advice))
        if isinstance(config.get("add_prefix_space"), bool):
            entries[f"{GGML}add_space_prefix"] = config["add_prefix_space"]
    else:
        entries[f"{GGML}merges"] = Packed.strings(encoded(" ".join(sides)) for sides in library.merges)
    if name != "gemma4":
        entries[f"{GGML}pre"] = "default" if name == "llama" else pre
    rows = _rows(library.vocab, added)
    if name in ("llama", "gemma4"):  # as `LlamaHfVocab` has them
        for id, token in added.items():
            kind = CONTROL if id in special else NORMAL if id < len(library.vocab) else USER_DEFINED
            rows[id] = encoded(token.text), ONE_SCORE, kind
        for id, row in enumerate(rows):
            if row and re.fullmatch(rb"<0x[0-9A-Fa-f]{2}>", row[0]):
                rows[id] = row[0], ONE_SCORE, BYTE
    return entries | {"tokens": rows}


def _wpm(model: Json, added: dict[int, Added]) -> dict[str, Any]:
    if model.get("continuing_subword_prefix", "##") != "##":
        _refuse(f"llama.cpp knows the prefix '##' only, not {model['continuing_subword_prefix']!r}")
    rows = _rows(_vocab(model), added)
    for id, row in enumerate(rows):
        if row and row[2] != CONTROL:
            text = row[0].removeprefix(b"##") if row[0].startswith(b"##") else SPACE.encode() + row[0]
            rows[id] = text, row[1], row[2]
    return {"general.architecture": "bert", f"{GGML}model": "bert", f"{GGML}pre": "default", "tokens": rows}


def _ugm(file: Json, model: Json, added: dict[int, Added], special: set[int]) -> dict[str, Any]:
    rows: list[tuple[bytes, float, int] | None] = []
    unknown = model.get("unk_id")
    for id, row in enumerate(listed(model.get("vocab"))):
        if not isinstance(row, list) or len(row) != 2 or not isinstance(row[0], str):
            _refuse(f"model.vocab[{id}] is {row!r}, and not a text and a score")
        if type(row[1]) not in (int, float) or not abs(row[1]) < MAX_SCORE:
            _refuse(f"model.vocab[{id}] has the score {row[1]!r}")
        kind = UNKNOWN if id == unknown else NORMAL
        if kind == NORMAL and id in added:
            kind = CONTROL if id in special else USER_DEFINED
        rows.append((encoded(row[0]), float(row[1]), kind))
    rows += [None] * (_size(range(len(rows)), added) - len(rows))
    for id, token in added.items():
        rows[id] = rows[id] or token.row()
    entries: dict[str, Any] = {"general.architecture": "t5", f"{GGML}model": "t5", f"{GGML}pre": "default"}
    spaces = Spaces.of(file)
    entries[f"{GGML}add_space_prefix"] = spaces.scheme != "never"
    entries[f"{GGML}remove_extra_whitespaces"] = spaces.are_merged
    if type(unknown) is int and 0 <= unknown < len(rows):
        entries[f"{GGML}unknown_token_id"] = unknown
    for step in steps(file, "normalizer"):
        if step.get("type") == "Precompiled":
            try:
                charsmap = base64.b64decode(step.get("precompiled_charsmap") or "", validate=True)
            except (binascii.Error, TypeError, ValueError):
                _refuse("normalizer.precompiled_charsmap is not base64")
            if charsmap:
                entries[f"{GGML}precompiled_charsmap"] = charsmap
    return entries | {"tokens": rows}
