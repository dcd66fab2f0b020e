"""A vocabulary as plain Python data, and the smallest GGUF writer that can carry one.

Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md, version 3, little endian. The defaults and the
attributes derived from names are those of llama.cpp's `llama_vocab::impl::load` (llama-vocab.cpp), where these tests
need them: texts that llama.cpp takes for special ones are up to the caller, except those that the phi-3, jina and
modern-bert rules name.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property
from typing import Any

UNKNOWN, UNUSED, NORMAL, CONTROL, USER_DEFINED, BYTE, LSTRIP, RSTRIP = 1, 2, 4, 8, 16, 32, 128, 256


class TokenType(IntEnum):
    """Values of `tokenizer.ggml.token_type`."""

    UNDEFINED, NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(7)


ATTRIBUTE = {
    TokenType.UNDEFINED: 0,
    TokenType.NORMAL: NORMAL,
    TokenType.UNKNOWN: UNKNOWN,
    TokenType.CONTROL: CONTROL,
    TokenType.USER_DEFINED: USER_DEFINED,
    TokenType.UNUSED: UNUSED,
    TokenType.BYTE: BYTE,
}
KIND = {
    "llama": "spm",
    "gpt2": "bpe",
    "hybriddna": "bpe",
    "whitespace": "bpe",
    "gemma4": "bpe",
    "bert": "wordpiece",
    "t5": "unigram",
    "rwkv": "rwkv",
    "plamo2": "plamo2",
}


@dataclass(repr=False)
class Vocab:
    """One vocabulary. Ids for which llama.cpp has a default must be set where the default is not wanted."""

    model: str
    texts: list[bytes]
    types: list[int]
    scores: list[float] = field(default_factory=list)
    merges: list[bytes] = field(default_factory=list)
    pre: str = ""
    name: str = "oracle"
    architecture: str = "llama"
    bos: int | None = None
    eos: int | None = None
    unk: int | None = None
    sep: int | None = None
    pad: int | None = None
    add_bos: bool = False
    add_eos: bool = False
    add_space_prefix: bool = False
    remove_extra_whitespaces: bool = False
    escape_whitespaces: bool = True
    clean_spaces: bool = False
    lowercase: bool = True
    strip_accents: bool = True
    charsmap: bytes = b""
    attributes: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.scores = [as_float32(score) for score in self.scores] or [0.0] * len(self.texts)
        self.attributes = self.attributes or self._attributes()

    def __repr__(self) -> str:
        """What hypothesis shows: without byte tokens, and every token with its id."""
        tokens = zip(range(len(self.texts)), self.texts, self.types, self.scores, strict=True)
        shown = [token for token in tokens if token[2] != TokenType.BYTE]
        others = {name: value for name, value in vars(self).items() if name not in ("texts", "types", "scores")}
        return f"Vocab(tokens={shown}, {others})"

    @property
    def kind(self) -> str:
        return KIND[self.model]

    @cached_property
    def special(self) -> list[int]:
        """The ids of the tokens that may be cut out of a text, longest text first."""
        bits = CONTROL | USER_DEFINED | UNKNOWN
        found = [id for id, attribute in enumerate(self.attributes) if attribute & bits]
        return sorted(found, key=lambda id: -len(self.texts[id]))

    def _attributes(self) -> list[int]:
        attributes = [ATTRIBUTE.get(TokenType(type), 0) for type in self.types]
        by_text = {text: id for id, text in enumerate(self.texts)}

        def strip(text: bytes, bit: int, on: bool = True) -> None:
            if text in by_text:
                id = by_text[text]
                attributes[id] = attributes[id] | bit if on else attributes[id] & ~bit

        if any(part in self.pre for part in ("jina-v2-de", "jina-v2-es", "jina-v2-code")) or any(
            part in self.architecture for part in ("nomic-bert-moe", "jina-bert-v3")
        ):
            strip(b"<mask>", LSTRIP)
        elif any(part in self.name.lower() for part in ("phi-3", "phi3")):
            for id, attribute in enumerate(attributes):
                if attribute & (CONTROL | USER_DEFINED | UNKNOWN):
                    attributes[id] |= RSTRIP
            strip(b"</s>", RSTRIP)
            for text in (b"<unk>", b"<s>", b"<|endoftext|>"):
                strip(text, RSTRIP, on=False)
        elif "modern-bert" in self.name.lower():
            strip(b"[MASK]", LSTRIP)
        return attributes

    def metadata(self) -> dict[str, Any]:
        """The GGUF metadata for all this."""
        values: dict[str, Any] = {
            "general.architecture": self.architecture,
            "general.name": self.name,
            "tokenizer.ggml.model": self.model,
            "tokenizer.ggml.tokens": self.texts,
            "tokenizer.ggml.scores": [float(score) for score in self.scores],
            "tokenizer.ggml.token_type": [int(type) for type in self.types],
            "tokenizer.ggml.add_bos_token": self.add_bos,
            "tokenizer.ggml.add_eos_token": self.add_eos,
            "tokenizer.ggml.add_space_prefix": self.add_space_prefix,
            "tokenizer.ggml.remove_extra_whitespaces": self.remove_extra_whitespaces,
            "tokenizer.ggml.normalizer.lowercase": self.lowercase,
            "tokenizer.ggml.normalizer.strip_accents": self.strip_accents,
        }
        if self.kind == "bpe":
            values["tokenizer.ggml.merges"] = self.merges
            values["tokenizer.ggml.pre"] = self.pre
        if self.charsmap:
            values["tokenizer.ggml.precompiled_charsmap"] = self.charsmap
        for key, id in {
            "bos": self.bos,
            "eos": self.eos,
            "unknown": self.unk,
            "seperator": self.sep,
            "padding": self.pad,
        }.items():
            if id is not None:
                values[f"tokenizer.ggml.{key}_token_id"] = id
        return values

    def gguf(self) -> bytes:
        return write(self.metadata())


def as_float32(value: float) -> float:
    return float(struct.unpack("<f", struct.pack("<f", value))[0])


def _string(text: str | bytes) -> bytes:
    raw = text.encode() if isinstance(text, str) else text
    return struct.pack("<Q", len(raw)) + raw


def _value(value: Any) -> bytes:
    """Type and value: bool, int as u32, float as f32, str, bytes as u8 array, lists of float, int and bytes."""
    if isinstance(value, bool):
        return struct.pack("<IB", 7, value)
    if isinstance(value, int):
        return struct.pack("<II", 4, value)
    if isinstance(value, float):
        return struct.pack("<If", 6, value)
    if isinstance(value, str):
        return struct.pack("<I", 8) + _string(value)
    if isinstance(value, bytes):
        return struct.pack("<IIQ", 9, 0, len(value)) + value
    if value and isinstance(value[0], float):
        return struct.pack(f"<IIQ{len(value)}f", 9, 6, len(value), *value)
    if value and isinstance(value[0], int):
        return struct.pack(f"<IIQ{len(value)}i", 9, 5, len(value), *value)
    return struct.pack("<IIQ", 9, 8, len(value)) + b"".join(map(_string, value))


def write(metadata: dict[str, Any]) -> bytes:
    """A GGUF file that holds `metadata` and nothing else."""
    pairs = b"".join(_string(key) + _value(value) for key, value in metadata.items())
    data = b"GGUF" + struct.pack("<IQQ", 3, 0, len(metadata)) + pairs
    return data + bytes(-len(data) % 32)
