"""What `Tokenizer.split` returns."""

from __future__ import annotations

from typing import NamedTuple


class Chunk(NamedTuple):
    """A slice of a text that fits a budget of tokens.

    >>> import ggtok
    >>> ggtok.Tokenizer.builtin("bpe").split("One sentence. And another.", 5)
    [Chunk(text='One sentence. ', start=0, end=14, count=5), Chunk(text='And another.', start=14, end=26, count=3)]
    """

    text: str
    """The slice: `text[start:end]` of the text that was split."""
    start: int
    """Where it starts, in characters."""
    end: int
    """Where it ends, in characters."""
    count: int  # type: ignore[assignment]
    """How many tokens it has when it is encoded by itself, those that are added included."""
