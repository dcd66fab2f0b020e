"""The texts to tokenize: documents from the shared corpora, short texts, single runs, and endless distinct text."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

CORPORA = ("en", "code", "multi", "cjk")
BIG = tuple(f"big-{name}" for name in CORPORA)
"""Texts too large for any cache, in a separate folder."""
STARTS = (10**4, *(10**n for n in range(6, 10)))
"""Bytes of text for the curve from the start of a process."""
DOCUMENT_BYTES = 4096

WARM_UP = "Hello world"
SHORT = {
    "hello": "Hello world",
    "225 characters": (
        "The tokenizer reads a vocabulary once and then turns text into numbers, quickly and always in the same way. "
        "A short paragraph like this one is what a chat client sends with every message, so each call should cost "
        "little more."
    ),
}

_RUNS = {
    "letter": "a",
    "spaces": " ",
    "digits": "7",
    "newlines": "\n",
    "emoji": "\U0001f600",
    "Han": "\u6f22",
    "combining marks": "\u0301",
    "special": "<|eot_id|>",
    "<": "<",
}
RUNS = tuple(_RUNS)
RUN_BYTES = 1_000_000


def documents(folder: Path, corpus: str, limit_bytes: int) -> list[str]:
    """The corpus in documents of at most 4 KiB, cut at character boundaries; each str is new (nothing cached in it)."""
    with (folder / f"{corpus}.txt").open("rb") as file:
        data = file.read(limit_bytes)
    out, at = [], 0
    while at < len(data):
        end = at + DOCUMENT_BYTES
        while end < len(data) and data[end] & 0xC0 == 0x80:
            end -= 1
        out.append(data[at:end].decode(errors="ignore"))
        at = end
    return out


def run(name: str) -> str:
    """One megabyte of one repeated character or text."""
    unit = _RUNS[name]
    return unit * (RUN_BYTES // len(unit.encode()))


def distinct(total_bytes: int) -> Iterator[str]:
    """Documents of random letters and spaces, about seven letters to the word, none twice; seeded."""
    source = random.Random(20)
    table = bytes(b"etaoinshrdlucmfwypvbgkjqxz      "[n % 32] for n in range(256))
    for _ in range(total_bytes // DOCUMENT_BYTES):
        yield source.randbytes(DOCUMENT_BYTES).translate(table).decode()
