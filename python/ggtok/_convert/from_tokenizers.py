"""The GGUF metadata that llama.cpp's converter would make of a `tokenizer.json`.

Source: llama.cpp `conversion/base.py` (`get_vocab_base`, `_set_vocab_gpt2`, `_set_vocab_llama_hf`) and
`conversion/bert.py` (`BertModel.set_vocab`, `_xlmroberta_set_vocab`). O(n) for n bytes.

| model there | kind | as in the converter |
| --- | --- | --- |
| `BPE` over bytes | bpe | the pre-tokenizer is known by the digest of a test text |
| `BPE` with byte fallback | spm | all tokens get one score, because the file has none: a warning says so |
| `WordPiece` | wpm | `##` goes, and what starts a word gets `▁` |
| `Unigram` | ugm | |

Deviations: (1) an unknown digest is an error for byte-level BPE only, since llama.cpp does not use the name otherwise.
(2) Unigram's settings of spaces are those of the file itself. (3) An added token that the file's library would spell
differently is taken as it is.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, NoReturn

from .. import _ggtok
from .._files import read
from .._findings import Finding, warn_of
from .._keys import BYTE, CONTROL, GGML, NORMAL, UNKNOWN, USER_DEFINED
from .._metadata import Source, name_of
from ..errors import ConversionError, UnsupportedError
from . import special_tokens
from .gguf import Packed, gguf_bytes
from .padding import MAX_HOLES, MAX_SIZE, padded
from .pre_by_digest import pre_of
from .special_tokens import _list, _mapping, _steps
from .vocabulary import SPACE

FORMAT = "tokenizer.json"
ONE_SCORE = -1000.0
MAX_SCORE = 3e38
"""Scores are float32."""

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
"""What `ByteLevel` splits by, unless it is told not to."""


def imported(data: bytes, config: Mapping[str, Any], pre: str | None, vocab_size: int | None) -> bytes:
    """The GGUF file of a `tokenizer.json` and the `tokenizer_config.json` beside it."""
    file = _mapping(parsed(data))
    if pre is not None and pre not in _ggtok.pretokenizers():
        raise UnsupportedError(f"ggtok does not know the pre-tokenizer {pre!r}", pre)
    model = _mapping(file.get("model"))
    added = _added(file)
    kind = model.get("type")
    if kind is None and "merges" in model:
        kind = "BPE"
    match kind:
        case "BPE" if model.get("byte_fallback") is True and not _is_byte_level(file):
            entries = _spm(file, model, added)
        case "BPE" if _is_byte_level(file):
            entries = _bpe(file, model, added, pre)
        case "WordPiece":
            entries = _wpm(file, model, added)
        case "Unigram":
            entries = _ugm(file, model, added)
        case "BPE":
            _refuse("this BPE neither is over bytes nor falls back to bytes, which llama.cpp has no model for")
        case _:
            _refuse(f"llama.cpp has no model for one of type {kind!r}")
    tokens = entries.pop("tokens")
    texts, scores, types = padded(FORMAT, tokens, vocab_size)
    raw_ids = {token.text: id for id, token in added.items()} if config else _ids(model, added)
    special = special_tokens.entries(file, config, raw_ids, kind == "WordPiece")
    arrays: dict[str, Any] = {f"{GGML}tokens": Packed.strings(texts), f"{GGML}token_type": types}
    if kind == "Unigram" or (f"{GGML}merges" not in entries and kind == "BPE"):
        arrays[f"{GGML}scores"] = scores
    return gguf_bytes(entries | arrays | special)


def read_config(source: Source, config: Source | Mapping[str, Any] | None) -> Mapping[str, Any]:
    """What is in `tokenizer_config.json`: given, or beside the file, with the chat template that has a file there."""
    if isinstance(config, Mapping):
        return config
    if config is not None:
        return _mapping(parsed(read(config)))
    path = name_of(source)
    if path is None:
        return {}
    beside = os.path.join(os.path.dirname(path), "tokenizer_config.json")
    found = dict(_mapping(parsed(read(beside)))) if os.path.exists(beside) else {}
    template = os.path.join(os.path.dirname(path), "chat_template.jinja")
    if os.path.exists(template):
        found["chat_template"] = read(template).decode("utf-8", "surrogateescape")
    return found


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
    is_control: bool

    def row(self) -> tuple[bytes, float, int]:
        if self.is_control:
            return encoded(self.text), ONE_SCORE, CONTROL
        return encoded(self.text.replace(SPACE, " ")), ONE_SCORE, USER_DEFINED


def encoded(text: str) -> bytes:
    """UTF-8; half a surrogate pair, which JSON can have, as the three bytes of its number."""
    return text.encode("utf-8", "surrogatepass")


def _added(file: Mapping[str, Any]) -> dict[int, Added]:
    found = {}
    for at, item in enumerate(map(_mapping, _list(file.get("added_tokens")))):
        id, text = item.get("id"), item.get("content")
        if type(id) is not int or not 0 <= id < MAX_SIZE or not isinstance(text, str) or not text:
            _refuse(f"added_tokens[{at}] has the id {id!r} and the content {text!r}")
        found[id] = Added(text, item.get("special") is True or _LOOKS_SPECIAL.fullmatch(text) is not None)
    return found


def _vocab(model: Mapping[str, Any]) -> dict[str, int]:
    vocab = model.get("vocab")
    if not isinstance(vocab, dict):
        _refuse("model.vocab must be an object of texts and ids")
    for text, id in vocab.items():
        if type(id) is not int or not 0 <= id < MAX_SIZE:
            _refuse(f"model.vocab has the id {id!r} for {text!r}")
    return vocab


def _ids(model: Mapping[str, Any], added: dict[int, Added]) -> dict[str, int]:
    """All ids by text."""
    vocab = model.get("vocab")
    if isinstance(vocab, list):
        vocab = {row[0]: id for id, row in enumerate(vocab)}
    return {**_mapping(vocab), **{token.text: id for id, token in added.items()}}


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


def _merges(model: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The merge rules. A space inside a side is written as GPT-2's stand-in for it."""
    found = []
    for rank, rule in enumerate(_list(model.get("merges"))):
        sides = rule.split(" ") if isinstance(rule, str) else rule
        if not isinstance(sides, list) or len(sides) != 2 or not all(isinstance(side, str) for side in sides):
            _refuse(f"model.merges[{rank}] is {rule!r}, and not two texts")
        found.append((sides[0].replace(" ", "\u0120"), sides[1].replace(" ", "\u0120")))
    return found


def _is_byte_level(file: Mapping[str, Any]) -> bool:
    steps = [*_steps(file.get("pre_tokenizer"), "pretokenizers"), *_steps(file.get("normalizer"), "normalizers")]
    return any(step.get("type") == "ByteLevel" for step in steps)


def _patterns(file: Mapping[str, Any]) -> str:
    """The patterns of the file, one after the other."""
    found = ""
    for step in _steps(file.get("pre_tokenizer"), "pretokenizers"):
        if step.get("type") == "Split":
            pattern = _mapping(step.get("pattern"))
            found += str(pattern.get("Regex", pattern.get("String", "")))
        elif step.get("type") == "Digits":
            found += r"\p{N}" if step.get("individual_digits") else r"\p{N}+"
        elif step.get("type") == "ByteLevel" and step.get("use_regex", True):
            found += GPT2
    return found


def _bpe(file: Mapping[str, Any], model: Mapping[str, Any], added: dict[int, Added], pre: str | None) -> dict[str, Any]:
    rows, merges = _rows(_vocab(model), added), _merges(model)
    if pre is None:
        tokens = {id: (row[0].decode("utf-8", "surrogatepass"), row[2]) for id, row in enumerate(rows) if row}
        around = special_tokens.around(file, _ids(model, added))
        pre = pre_of(FORMAT, tokens, merges, around, _patterns(file))
    return {
        "general.architecture": "gpt2",
        f"{GGML}model": "gpt2",
        f"{GGML}pre": pre,
        f"{GGML}merges": Packed.strings(encoded(f"{left} {right}") for left, right in merges),
        "tokens": rows,
    }


def _spm(file: Mapping[str, Any], model: Mapping[str, Any], added: dict[int, Added]) -> dict[str, Any]:
    rows = _rows(_vocab(model), added)
    for id, row in enumerate(rows):
        if row and re.fullmatch(rb"<0x[0-9A-Fa-f]{2}>", row[0]):
            rows[id] = row[0], ONE_SCORE, BYTE
    message = "llama.cpp's converter gives all tokens of such a file one score, so they merge from left to right"
    advice = "convert the tokenizer.model of sentencepiece instead: from_sentencepiece reads it"
    warn_of(Finding("conversion-differs", "warning", message, advice))
    return {"general.architecture": "llama", f"{GGML}model": "llama", f"{GGML}pre": "default", "tokens": rows}


def _wpm(file: Mapping[str, Any], model: Mapping[str, Any], added: dict[int, Added]) -> dict[str, Any]:
    if model.get("continuing_subword_prefix", "##") != "##":
        _refuse(f"llama.cpp knows the prefix '##' only, not {model['continuing_subword_prefix']!r}")
    rows = _rows(_vocab(model), added)
    for id, row in enumerate(rows):
        if row and row[2] != CONTROL:
            text = row[0].removeprefix(b"##") if row[0].startswith(b"##") else SPACE.encode() + row[0]
            rows[id] = text, row[1], row[2]
    return {"general.architecture": "bert", f"{GGML}model": "bert", f"{GGML}pre": "default", "tokens": rows}


def _ugm(file: Mapping[str, Any], model: Mapping[str, Any], added: dict[int, Added]) -> dict[str, Any]:
    rows: list[tuple[bytes, float, int] | None] = []
    unknown = model.get("unk_id")
    for id, row in enumerate(_list(model.get("vocab"))):
        if not isinstance(row, list) or len(row) != 2 or not isinstance(row[0], str):
            _refuse(f"model.vocab[{id}] is {row!r}, and not a text and a score")
        if type(row[1]) not in (int, float) or not abs(row[1]) < MAX_SCORE:
            _refuse(f"model.vocab[{id}] has the score {row[1]!r}")
        kind = UNKNOWN if id == unknown else NORMAL
        if kind == NORMAL and id in added:
            kind = CONTROL if added[id].is_control else USER_DEFINED
        rows.append((encoded(row[0]), float(row[1]), kind))
    rows += [None] * (_size(range(len(rows)), added) - len(rows))
    for id, token in added.items():
        rows[id] = rows[id] or token.row()
    entries: dict[str, Any] = {"general.architecture": "t5", f"{GGML}model": "t5", f"{GGML}pre": "default"}
    pre_steps = _steps(file.get("pre_tokenizer"), "pretokenizers")
    spaces = next((step for step in pre_steps if step.get("type") == "Metaspace"), {})
    is_prefixed = spaces.get("prepend_scheme", "always") != "never" and spaces.get("add_prefix_space", True)
    steps = _steps(file.get("normalizer"), "normalizers")
    merges_spaces = any(_mapping(step.get("pattern")).get("Regex") == " {2,}" for step in steps)
    entries |= {f"{GGML}add_space_prefix": bool(is_prefixed), f"{GGML}remove_extra_whitespaces": merges_spaces}
    if type(unknown) is int and 0 <= unknown < len(rows):
        entries[f"{GGML}unknown_token_id"] = unknown
    for step in steps:
        if step.get("type") == "Precompiled":
            try:
                charsmap = base64.b64decode(step.get("precompiled_charsmap") or "", validate=True)
            except (binascii.Error, TypeError, ValueError):
                _refuse("normalizer.precompiled_charsmap is not base64")
            if charsmap:
                entries[f"{GGML}precompiled_charsmap"] = charsmap
    return entries | {"tokens": rows}
