"""Ids that libraries cut into slices: the texts of the slices, joined, are the text.

llama.cpp itself changes some texts: it normalizes them, or puts a space after a user-defined token (SPM).
"""

from __future__ import annotations

from collections.abc import Iterable

from ..tokenizer.base import BaseTokenizer


def encode_slices(tok: BaseTokenizer, text: str) -> list[int]:
    """The ids of a text, without added tokens and without the space that SPM puts before a text."""
    return tok.encode(text, add_special=False, continues=True)


def decode_slice(tok: BaseTokenizer, ids: Iterable[int]) -> str:
    """The text of a slice, with the space that it may start with. Characters that are cut are U+FFFD."""
    return b"".join([tok.piece(id, special=False) for id in ids]).decode("utf-8", "replace")
