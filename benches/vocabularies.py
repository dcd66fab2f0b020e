"""The same vocabulary in every format that a peer reads, made from one GGUF file by ggtok's converters.

The driver converts, because it has ggtok; the workers only open files. What a format cannot express is never
approximated: `UnsupportedError` gives the reason. ggtok's tokenizer.json spells out where llama.cpp differs from the
models' publishers. Peers are measured without that, as their users run them: with the published patterns, which they
recognise, BERT's normalizer, and for Unigram words between white space.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ggtok import Tokenizer

CONVERTER_VERSION = 2
"""Part of the cache file names: raise it when the output of a converter changes."""

SPACE = "\u2581"

_LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
PATTERNS = {"llama-bpe": _LLAMA3, "qwen2": _LLAMA3.replace("{1,3}", "")}
"""Pre-tokenizer name → the pattern as the model's publisher writes it (peers recognise these spellings)."""

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
        return self._converted("tokenizer.json")

    def tiktoken_ranks(self) -> Path:
        """tiktoken's rank file: a base64 token and its rank per line."""
        return self._converted("tiktoken")

    def sentencepiece_model(self) -> Path:
        """sentencepiece's model file."""
        return self._converted("model")

    @property
    def pattern(self) -> str:
        """The pre-tokenizer's pattern, for formats that do not carry it."""
        return PATTERNS[self.name]

    def special(self) -> list[str]:
        """The texts of unknown, control and user-defined tokens."""
        return list(json.loads(self._converted("special.json").read_text()))

    def convert(self) -> None:
        """Writes the missing files, or the reason why one cannot be written."""
        from ggtok import ConversionError, Tokenizer  # only here: the workers of other peers do without

        missing = {suffix: place for suffix in CONVERTERS if not (place := self._place(suffix)).exists()}
        tokenizer = Tokenizer.from_gguf(self.path)
        self.cache.mkdir(parents=True, exist_ok=True)
        for suffix, place in missing.items():
            part = place.with_suffix(".part")
            try:
                part.write_bytes(CONVERTERS[suffix](tokenizer))
                part.replace(place)
            except (ConversionError, UnsupportedError) as reason:
                place.with_name(f"{place.name}.reason").write_text(str(reason))

    def _converted(self, suffix: str) -> Path:
        place = self._place(suffix)
        if not place.exists():
            raise UnsupportedError(place.with_name(f"{place.name}.reason").read_text())
        return place

    def _place(self, suffix: str) -> Path:
        return self.cache / f"{self.name}.v{CONVERTER_VERSION}.{suffix}"


def tokenizer_json(tokenizer: Tokenizer) -> bytes:
    """tokenizer.json as the publishers of such models write it; nothing is added around a text."""
    vocab, file = tokenizer.vocab, json.loads(_written(tokenizer.to_tokenizers_json))
    model = file["model"]
    # llama.cpp makes a control token of Qwen 2's `</s>`, which is a word of code.
    made = {left + right for left, right in vocab.merges}
    metaspace = {"type": "Metaspace", "replacement": SPACE, "prepend_scheme": "always", "split": True}
    if vocab.kind == "bpe":
        if vocab.pre not in PATTERNS:
            raise UnsupportedError(f"no pattern for the pre-tokenizer {vocab.pre!r}")
        file["pre_tokenizer"]["pretokenizers"][0]["pattern"] = {"Regex": PATTERNS[vocab.pre]}
        model["vocab"] = {t.text: t.id for t in vocab if t.attributes == vocab[0].attributes or t.text in made}
    elif vocab.kind == "wordpiece":
        bert = {"clean_text": True, "handle_chinese_chars": True, "strip_accents": None, "lowercase": True}
        file["normalizer"] = {"type": "BertNormalizer"} | bert
        model["max_input_chars_per_word"] = 100
    elif vocab.kind == "unigram":
        file["normalizer"] = file["normalizer"]["normalizers"][0]
        file["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, metaspace]}
        file["decoder"] = metaspace
    if "merges" in model:
        model["merges"] = [" ".join(merge) for merge in model["merges"]]
    plain = {"lstrip": False, "rstrip": False}
    file["added_tokens"] = [
        token | plain for token in file["added_tokens"] if token["special"] and token["content"] not in made
    ]
    return json.dumps(file | {"post_processor": None}, ensure_ascii=False).encode()


def special_json(tokenizer: Tokenizer) -> bytes:
    """The texts of unknown, control and user-defined tokens."""
    names = {"UNKNOWN", "CONTROL", "USER_DEFINED"}
    return json.dumps([t.text for t in tokenizer.vocab if any(a.name in names for a in t.attributes)]).encode()


def _written(write: Callable[[Any], object]) -> bytes:
    file = io.BytesIO()
    write(file)
    return file.getvalue()


CONVERTERS: dict[str, Callable[[Any], bytes]] = {
    "tokenizer.json": tokenizer_json,
    "tiktoken": lambda tokenizer: _written(tokenizer.to_tiktoken),
    "model": lambda tokenizer: _written(tokenizer.to_sentencepiece),
    "special.json": special_json,
}
