"""Which pre-tokenizer a BPE file was made with, by the ids of a test text.

Source: llama.cpp `conversion/base.py`, `get_vocab_base_pre`: a pre-tokenizer is known by the SHA-256 of `str(ids)` of
one text, with the special tokens that the file adds. `digests.json` has the text and the table. The ids are those that
the file's own library gives with the file's own patterns (`library.py`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

from ..._ggtok import families, pretokenizers
from .library import Library


def table() -> tuple[str, dict[str, str]]:
    """The test text, and the names by digest."""
    content = json.loads(Path(__file__).with_name("digests.json").read_text(encoding="utf-8"))
    return content["text"], content["names"]


def digest(ids: Sequence[int]) -> str:
    """The digest of the ids of the test text."""
    return hashlib.sha256(str(list(ids)).encode()).hexdigest()


def known(library: Library, around: tuple[list[int], list[int]]) -> tuple[str | None, str]:
    """The name that llama.cpp's converter finds, if it does, and what it looks for, or why it cannot.

    `around` are the ids that the file adds before and after a text.
    """
    text, names = table()
    try:
        found = digest([*around[0], *library.ids(text), *around[1]])
    except ValueError as error:
        return None, f"ggtok does not have {error}"
    return names.get(found), f"the digest of its ids is {found}"


def nearest(patterns: str) -> list[str]:
    """One name each of the families whose patterns are the most like these; those with the most names come first."""
    from difflib import SequenceMatcher

    rows = families()
    likeness = {
        name: SequenceMatcher(None, "".join(row["patterns"]), patterns, autojunk=False).ratio()
        for name, row in rows.items()
    }
    names: dict[str, list[str]] = {}
    for name, row in pretokenizers().items():
        names.setdefault(row["family"], []).append(name)
    order = sorted(likeness, key=lambda family: (-likeness[family], -len(names[family])))
    return [names[family][0] for family in order[:3]]
