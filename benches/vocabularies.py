"""The same vocabulary in every format that a peer reads, made from one GGUF file.

Source: the GGUF file format (metadata only); Hugging Face's tokenizer.json, tiktoken's rank files and sentencepiece's
`sentencepiece_model.proto`, as their own loaders read them. Standard library only. Time and space: linear in the file,
except the merges of SPM vocabularies (every split of every piece).

What a format cannot express is never approximated: the converter raises `UnsupportedError` with the reason.

- tokenizer.json: BPE with one of the patterns below, SPM as BPE with byte fallback (merges recovered from the scores),
  WordPiece, Unigram.
- tiktoken ranks: byte-level BPE whose ids are ordered by merge rank.
- sentencepiece .model: SPM and Unigram.
"""

from __future__ import annotations

import base64
import json
import mmap
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CONVERTER_VERSION = 1
"""Part of the cache file names: raise it when the output of a converter changes."""

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)
"""Token types as both GGUF and sentencepiece number them."""

SPACE = "\u2581"

_LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
PATTERNS = {"llama-bpe": _LLAMA3, "qwen2": _LLAMA3.replace("{1,3}", "")}
"""Pre-tokenizer name → the pattern as the model's publisher writes it (peers recognise these spellings)."""


class UnsupportedError(Exception):
    """A peer or format cannot represent a vocabulary; the message is the reason shown in the table."""


@dataclass(frozen=True)
class Vocabulary:
    """One GGUF file and the folder that keeps its conversions."""

    path: Path
    cache: Path

    @property
    def name(self) -> str:
        """The file's name without suffix."""
        return self.path.stem

    @property
    def kind(self) -> str:
        """The name of the algorithm: SPM, BPE, WordPiece, Unigram, PLaMo-2, RWKV."""
        return kind_of(self.name)

    def tokenizer_json(self) -> Path:
        """Hugging Face's tokenizer.json."""
        return self._converted("tokenizer.json", tokenizer_json)

    def tiktoken_ranks(self) -> Path:
        """tiktoken's rank file: a base64 token and its rank per line."""
        return self._converted("tiktoken", tiktoken_ranks)

    def sentencepiece_model(self) -> Path:
        """sentencepiece's model file."""
        return self._converted("model", sentencepiece_model)

    @property
    def pattern(self) -> str:
        """The pre-tokenizer's pattern, for formats that do not carry it."""
        return PATTERNS[self.name]

    def _converted(self, suffix: str, convert: Any) -> Path:
        out = self.cache / f"{self.name}.v{CONVERTER_VERSION}.{suffix}"
        if not out.exists():
            self.cache.mkdir(parents=True, exist_ok=True)
            part = out.with_suffix(".part")
            part.write_bytes(convert(read_gguf(self.path)))
            part.replace(out)
        return out


_KINDS = {
    "llama-bpe": "BPE",
    "qwen2": "BPE",
    "llama-spm": "SPM",
    "bert-bge": "WordPiece",
    "nomic-bert-moe": "Unigram",
    "gemma-4": "BPE",
    "deepseek-llm": "BPE",
    "plamo2-small": "PLaMo-2",
    "rwkv-world": "RWKV",
}


def kind_of(name: str) -> str:
    """The algorithm of one of the measured vocabularies."""
    return _KINDS[name]


# --- GGUF ------------------------------------------------------------------------------------------------------------

_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9


def read_gguf(path: Path) -> dict[str, Any]:
    """All metadata of a little-endian GGUF file, keys without the `tokenizer.ggml.` prefix; strings stay bytes."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        magic, _version, _tensors, count = struct.unpack_from("<4sIQQ", data)
        if magic != b"GGUF":
            raise ValueError(f"{path} is not a GGUF file")
        at, fields = 24, {}
        for _ in range(count):
            key, at = _value(data, at, _STRING)
            (kind,) = struct.unpack_from("<I", data, at)
            fields[key.decode().removeprefix("tokenizer.ggml.")], at = _value(data, at + 4, kind)
        return fields


def _value(data: mmap.mmap, at: int, kind: int) -> tuple[Any, int]:
    if kind == _STRING:
        (size,) = struct.unpack_from("<Q", data, at)
        return data[at + 8 : at + 8 + size], at + 8 + size
    if kind != _ARRAY:
        code = f"<{_SCALARS[kind]}"
        return struct.unpack_from(code, data, at)[0], at + struct.calcsize(code)
    kind, count = struct.unpack_from("<IQ", data, at)
    at += 12
    if kind in _SCALARS:
        code = f"<{count}{_SCALARS[kind]}"
        return struct.unpack_from(code, data, at), at + struct.calcsize(code)
    values = []
    for _ in range(count):
        value, at = _value(data, at, kind)
        values.append(value)
    return values, at


# --- tokenizer.json --------------------------------------------------------------------------------------------------


def tokenizer_json(gguf: dict[str, Any]) -> bytes:
    """Hugging Face's tokenizer.json.

    # Errors
    `UnsupportedError` for kinds that the format has no model for.
    """
    tokens = [token.decode() for token in gguf["tokens"]]
    types = gguf["token_type"]
    model = gguf["model"].decode()
    builders = {"gpt2": _bpe_json, "llama": _spm_json, "bert": _wpm_json, "t5": _ugm_json}
    if model not in builders:
        raise UnsupportedError(f"tokenizer.json has no model like {model!r}")
    parts = builders[model](gguf, tokens)
    if model == "bert":
        tokens = [_wordpiece(token) for token in tokens]
    added = [
        {"id": i, "content": tokens[i], "single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
        | {"special": True}
        for i, kind in enumerate(types)
        if kind in (CONTROL, UNKNOWN)
    ]
    document = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "post_processor": None}
    return json.dumps(document | parts, ensure_ascii=False).encode()


def _bpe_json(gguf: dict[str, Any], tokens: list[str]) -> dict[str, Any]:
    pre = gguf["pre"].decode()
    if pre not in PATTERNS:
        raise UnsupportedError(f"no pattern for the pre-tokenizer {pre!r}")
    split = {"type": "Split", "pattern": {"Regex": PATTERNS[pre]}, "behavior": "Isolated", "invert": False}
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    vocab = {t: i for i, t in enumerate(tokens) if gguf["token_type"][i] == NORMAL}
    merges = [merge.decode() for merge in gguf["merges"]]
    model = _bpe_model(vocab, merges) | {"ignore_merges": pre == "llama-bpe"}
    return {
        "normalizer": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [split, byte_level]},
        "model": model,
        "decoder": byte_level | {"use_regex": True},
    }


def _bpe_model(vocab: dict[str, int], merges: list[str]) -> dict[str, Any]:
    return {
        "type": "BPE",
        "dropout": None,
        "unk_token": None,
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": False,
        "byte_fallback": False,
        "ignore_merges": False,
        "vocab": vocab,
        "merges": merges,
    }


def _spm_json(gguf: dict[str, Any], tokens: list[str]) -> dict[str, Any]:
    """SPM as BPE: every split of a piece into two pieces is a merge, ordered by the score of its result."""
    vocab = {token: i for i, token in enumerate(tokens)}
    scores = gguf["scores"]
    merges: list[tuple[float, str]] = []
    for piece, i in vocab.items():
        if gguf["token_type"][i] != NORMAL:
            continue
        splits = ((piece[:at], piece[at:]) for at in range(1, len(piece)))
        pairs = [(vocab[left], vocab[right]) for left, right in splits if left in vocab and right in vocab]
        merges += [(-scores[i], f"{tokens[left]} {tokens[right]}") for left, right in sorted(pairs)]
    merges.sort(key=lambda merge: merge[0])
    unknown = tokens[gguf["unknown_token_id"]]
    model = _bpe_model(vocab, [merge for _, merge in merges])
    return {
        "normalizer": {
            "type": "Sequence",
            "normalizers": [
                {"type": "Prepend", "prepend": SPACE},
                {"type": "Replace", "pattern": {"String": " "}, "content": SPACE},
            ],
        },
        "pre_tokenizer": None,
        "model": model | {"unk_token": unknown, "fuse_unk": True, "byte_fallback": True},
        "decoder": {
            "type": "Sequence",
            "decoders": [
                {"type": "Replace", "pattern": {"String": SPACE}, "content": " "},
                {"type": "ByteFallback"},
                {"type": "Fuse"},
                {"type": "Strip", "content": " ", "start": 1, "stop": 0},
            ],
        },
    }


def _wordpiece(token: str) -> str:
    """GGUF marks the tokens that start a word, WordPiece those that continue one."""
    if token.startswith(SPACE):
        return token[1:]
    return token if token.startswith("[") and token.endswith("]") else f"##{token}"


def _wpm_json(gguf: dict[str, Any], tokens: list[str]) -> dict[str, Any]:
    return {
        "normalizer": {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": True,
            "strip_accents": None,
            "lowercase": True,
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "model": {
            "type": "WordPiece",
            "unk_token": tokens[gguf["unknown_token_id"]],
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": {_wordpiece(token): i for i, token in enumerate(tokens)},
        },
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
    }


def _ugm_json(gguf: dict[str, Any], tokens: list[str]) -> dict[str, Any]:
    charsmap = base64.b64encode(bytes(gguf["precompiled_charsmap"])).decode()
    metaspace = {"type": "Metaspace", "replacement": SPACE, "prepend_scheme": "always", "split": True}
    return {
        "normalizer": {"type": "Precompiled", "precompiled_charsmap": charsmap},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, metaspace]},
        "model": {
            "type": "Unigram",
            "unk_id": gguf["unknown_token_id"],
            "byte_fallback": False,
            "vocab": list(zip(tokens, gguf["scores"], strict=True)),
        },
        "decoder": metaspace,
    }


# --- tiktoken --------------------------------------------------------------------------------------------------------


def tiktoken_ranks(gguf: dict[str, Any]) -> bytes:
    """tiktoken's rank file of a byte-level BPE vocabulary.

    # Errors
    `UnsupportedError` for other kinds: a rank file holds nothing but byte-level BPE.
    """
    if gguf["model"] != b"gpt2":
        raise UnsupportedError("a rank file holds byte-level BPE only")
    alphabet = byte_alphabet()
    lines = (
        b"%s %d\n" % (base64.b64encode(bytes(alphabet[char] for char in token.decode())), i)
        for i, token in enumerate(gguf["tokens"])
        if gguf["token_type"][i] == NORMAL
    )
    return b"".join(lines)


def byte_alphabet() -> dict[str, int]:
    """GPT-2's printable stand-ins: character → byte."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + n): byte for n, byte in enumerate(others)}


# --- sentencepiece ---------------------------------------------------------------------------------------------------


def sentencepiece_model(gguf: dict[str, Any]) -> bytes:
    """A serialised sentencepiece `ModelProto`, pieces in the order of the GGUF file's ids.

    # Errors
    `UnsupportedError` for kinds other than SPM and Unigram.
    """
    model = gguf["model"].decode()
    if model not in ("llama", "t5"):
        raise UnsupportedError("sentencepiece has its own BPE and Unigram only")
    unigram = model == "t5"
    rows = zip(gguf["tokens"], gguf["scores"], gguf["token_type"], strict=True)
    pieces = b"".join(
        _field(
            1, _field(1, text) + _float_field(2, score) + _field(3, UNUSED if kind == UNKNOWN and i != unk else kind)
        )
        for unk in [gguf["unknown_token_id"]]
        for i, (text, score, kind) in enumerate(rows)
    )
    ids = [(40, "unknown_token_id"), (41, "bos_token_id"), (42, "eos_token_id"), (43, "padding_token_id")]
    trainer = _field(3, 1 if unigram else 2) + _field(35, int(not unigram))
    trainer += b"".join(_field(number, gguf.get(key, -1)) for number, key in ids)
    trainer += b"".join(
        _field(number, gguf["tokens"][gguf[key]])
        for number, key in zip((45, 46, 47, 48), ("unknown", "bos", "eos", "padding"), strict=True)
        for key in [f"{key}_token_id"]
        if key in gguf
    )
    normalizer = _field(1, b"identity" if not unigram else b"nmt_nfkc")
    normalizer += _field(2, bytes(gguf.get("precompiled_charsmap", ())))
    normalizer += _field(3, int(gguf.get("add_space_prefix", True)))
    normalizer += _field(4, int(gguf.get("remove_extra_whitespaces", False)))
    return pieces + _field(2, trainer) + _field(3, normalizer)


def _field(number: int, value: int | bytes) -> bytes:
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value & 0xFFFF_FFFF_FFFF_FFFF)
    return _varint(number << 3 | 2) + _varint(len(value)) + value


def _float_field(number: int, value: float) -> bytes:
    return _varint(number << 3 | 5) + struct.pack("<f", value)


def _varint(value: int) -> bytes:
    return bytes(_varint_bytes(value))


def _varint_bytes(value: int) -> Iterator[int]:
    while value > 0x7F:
        yield value & 0x7F | 0x80
        value >>= 7
    yield value
