"""The oracles themselves against recorded answers of llama.cpp: a sample, because they are slow."""

from __future__ import annotations

import itertools
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
from conftest import shared_files
from oracles import conformance, decode, gguf_vocab, special
from oracles.gguf_vocab import Vocab

LONGEST_TEXT = 200
SAMPLE = 40


@lru_cache(maxsize=1)
def values(path: Path) -> dict[str, Any]:
    return gguf_vocab.read(path)


def disagreements(vocab: Vocab, cases: list[dict[str, Any]]) -> list[str]:
    wrong = []
    for case in cases:
        if case["kind"] == "decode":
            expected: object = case["out"]
            flags = (case["remove_special"], case["unparse_special"])
            found: object = decode.decode(vocab, case["ids"], *flags, clean_spaces=True)
        else:
            expected = case["ids"]
            found = special.encode(vocab, case["text"], case["add_special"], case["parse_special"])
        if found != expected:
            wrong.append(f"{case}: found {found!r}")
    return wrong


def sample(path: Path, step: int) -> list[dict[str, Any]]:
    short = (case for case in conformance.records(path) if len(case.get("text", b"")) <= LONGEST_TEXT)
    return list(itertools.islice(short, step, None, step))


@pytest.mark.parametrize("path", shared_files("conformance/*.jsonl.gz") + shared_files("conformance/pre/*.jsonl.gz"))
def test_sample(path: Path, shared: Path) -> None:
    header = next(conformance.records(path))
    vocab = conformance.vocab(header, values(shared / "vocabs" / header["file"]))
    assert disagreements(vocab, sample(path, SAMPLE)) == []
