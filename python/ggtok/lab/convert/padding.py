"""Tokens up to the size that a model declares, as llama.cpp's converters add them.

Source: llama.cpp `conversion/base.py`, `_create_vocab_sentencepiece` and `get_vocab_base`.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import index as as_int

from ...errors import ConversionError
from ...tokenizer.keys import UNUSED

UNUSED_SCORE = -10000.0
MAX_SIZE = 1 << 22
"""Far more tokens than any model has."""
MAX_HOLES = 1 << 17
"""Far more ids without a token than any file has: a few bytes that name a large id must not take much memory."""


def padded(
    format: str, tokens: Sequence[tuple[bytes, float, int] | None], vocab_size: int | None
) -> tuple[list[bytes], list[float], list[int]]:
    """Texts, scores and types. What is `None` or missing becomes an unused token `[PAD<id>]`.

    Raises `ConversionError` if there are more tokens than `vocab_size`, or far too many.
    """
    size = len(tokens) if vocab_size is None else as_int(vocab_size)
    if not len(tokens) <= size <= MAX_SIZE:
        raise ConversionError(format, f"vocab_size is {size}, and there are {len(tokens)} tokens")
    rows = list(tokens) + [None] * (size - len(tokens))
    filled = [row or (b"[PAD%d]" % id, UNUSED_SCORE, UNUSED) for id, row in enumerate(rows)]
    return [row[0] for row in filled], [row[1] for row in filled], [row[2] for row in filled]
