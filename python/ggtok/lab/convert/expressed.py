"""The parts of a `tokenizer.json` that llama.cpp's WordPiece and Unigram cannot express, so that ids differ.

Source: huggingface/tokenizers `tokenizers/src`; llama.cpp `src/llama-vocab.cpp`, which has one normalizer for each of
the two models, and cuts words at spaces. For a BPE, ids are compared instead (`probes.py`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from ..._ggtok import apply_charsmap
from .json_parts import Json, kinds, listed, mapping, steps
from .tokenizers_json import STRIP_SPACES, before_bert
from .vocabulary import SPACE

WORDPIECE = {"BertNormalizer", "BertPreTokenizer", "Lowercase", "Metaspace", "NFD", "Replace", "StripAccents"}
UNIGRAM = {"Metaspace", "Precompiled", "Replace", "Strip", "WhitespaceSplit"}
"""The components that llama.cpp's models are meant for."""
LONG_WORD = 100
"""WordPiece's longest word by default, in characters. llama.cpp knows none."""


def not_expressed(kind: str, file: Json, charsmap: bytes) -> set[str]:
    """The names of components that llama.cpp lacks, and what the others do that it cannot.

    Args:
        kind: The type of the model, `WordPiece` or `Unigram`.
        file: The `tokenizer.json`.
        charsmap: The character map of its normalizer.
    """
    cases = _wordpiece(file) if kind == "WordPiece" else _unigram(file, charsmap)
    known = WORDPIECE if kind == "WordPiece" else UNIGRAM
    components = kinds(steps(file, "normalizer") + steps(file, "pre_tokenizer"))
    unknown = {str(component) for component in components if component} - known
    details = {part for part, is_lost in cases.items() if is_lost}
    return unknown | (details - {"its normalizers", "its pre-tokenizers"}) if unknown else details


def _wordpiece(file: Json) -> dict[str, Any]:
    ours = [*before_bert(strips_accents=True)]
    normalizers = [step for step in steps(file, "normalizer") if step not in ours]
    bert = normalizers[0] if normalizers else {}
    longest = mapping(file.get("model")).get("max_input_chars_per_word")
    return {
        "its normalizers": kinds(normalizers) != ["BertNormalizer"],
        "its pre-tokenizers": kinds(steps(file, "pre_tokenizer")) != ["BertPreTokenizer"],
        "that control characters stay": not bert.get("clean_text", True),
        "that a Chinese character is part of a word": not bert.get("handle_chinese_chars", True),
        "that long words are unknown": type(longest) is int and longest < LONG_WORD,
    }


@dataclass(frozen=True)
class Spaces:
    """What a Unigram does with spaces."""

    are_merged: bool
    """Several become one."""
    split_words: bool
    """A text is split at all white space first."""
    scheme: object
    """Where one is put before a part of the text: `always`, `first` or `never`."""

    @classmethod
    def of(cls, file: Json) -> Spaces:
        pre_tokenizers = steps(file, "pre_tokenizer")
        metaspace = next((step for step in pre_tokenizers if step.get("type") == "Metaspace"), {})
        split = "WhitespaceSplit" in kinds(pre_tokenizers)
        merged = split or any(map(_merges_spaces, steps(file, "normalizer")))
        is_prefixed = metaspace.get("add_prefix_space", True)
        return cls(merged, split, metaspace.get("prepend_scheme", "always") if is_prefixed else "never")


def _unigram(file: Json, charsmap: bytes) -> dict[str, Any]:
    model, normalizers, pre_tokenizers = file["model"], steps(file, "normalizer"), steps(file, "pre_tokenizer")
    spaces = Spaces.of(file)
    merged, split, scheme = spaces.are_merged, spaces.split_words, spaces.scheme
    stripped = {side for side in ("left", "right") for step in normalizers if step.get(f"strip_{side}")}
    replaced = [step for step in normalizers if step.get("type") == "Replace" and step != STRIP_SPACES]
    over_space = re.compile(f"[^{SPACE}]{SPACE}" if merged else f".{SPACE}")
    cuts = split or any(step.get("split", True) for step in pre_tokenizers if step.get("type") == "Metaspace")
    return {
        "byte_fallback": model.get("byte_fallback"),
        "its normalizers": "Precompiled" in kinds(normalizers[1:]),
        "its pre-tokenizers": kinds(pre_tokenizers) not in (["Metaspace"], ["WhitespaceSplit", "Metaspace"]),
        "what is replaced": not all(_merges_spaces(step, split) for step in replaced),
        "what is stripped": stripped and (not merged or ("left" in stripped and scheme == "first")),
        "which white space there is": (split or stripped) and apply_charsmap(charsmap, "\n") != " ",
        "that a space at the end stays": merged and not (split or "right" in stripped or STRIP_SPACES in normalizers),
        "that no space comes before a word": merged and (scheme == "never" or (split and scheme == "first")),
        "that a text with a space first gets no other": not merged and scheme != "never",
        "that no token goes over a space": cuts and any(over_space.search(row[0]) for row in listed(model["vocab"])),
    }


def _merges_spaces(step: Json, split: bool = False) -> bool:
    """Whether a step replaces several spaces by one; by a stand-in only if nothing is split at spaces afterwards."""
    return mapping(step.get("pattern")).get("Regex") == " {2,}" and step.get("content") in (" ", "" if split else SPACE)
