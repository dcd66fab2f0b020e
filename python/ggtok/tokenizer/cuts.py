"""Where two tokenizers cut a text differently: one pass over the ends of both's tokens.

A cut is a position in the text where a token ends. Tokens that were added, or that come from the same characters as the
one before, end nowhere new. What a tokenizer drops, such as a space, belongs to the token after it. So two vocabularies
can be compared although nearly all ids differ.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple, TypeAlias, TypeVar

T = TypeVar("T")
Pair: TypeAlias = tuple[T, T]
"""One of each tokenizer."""

Span: TypeAlias = Sequence[int]
"""Where a token's text starts and ends."""


class Stretch(NamedTuple):
    """A part of the text from one place where both tokenizers cut to the next one, if only one cuts inside it.

    The last one ends with the text if one of them drops its end.
    """

    start: int
    """Where it starts, in bytes of the text's UTF-8."""
    end: int
    char: int
    """Where it starts in characters; each byte that is not UTF-8 is one."""
    parts_a: list[bytes]
    """The parts into which the first tokenizer cuts it; without what it drops at the end of the text."""
    parts_b: list[bytes]


class Cuts(NamedTuple):
    """How the cuts of two tokenizers compare for a text. It is true if they differ."""

    first: Stretch | None
    """The first stretch of the text that they cut differently."""
    num_stretches: int
    """How many such stretches there are."""
    same_ids: bool
    """Whether the ids of the text are the same too. Tokens that were added, such as BOS, do not count."""
    num_tokens_a: int
    """How many tokens the first tokenizer makes of the text."""
    num_tokens_b: int

    def __bool__(self) -> bool:
        return self.num_stretches > 0


def cuts_of(spans: Iterable[Span]) -> list[int]:
    """Where the tokens with these spans end, each place once, in order. O(n) for n tokens."""
    found, last = [], 0
    for start, end in spans:
        if end > last and end > start:
            found.append(end)
            last = end
    return found


def stretches(a: Sequence[int], b: Sequence[int], size: int) -> Iterator[tuple[int, int, slice, slice]]:
    """The stretches in which two lists of cuts of a text of `size` bytes differ: the start, the end, and which cuts of
    each list are in it, with the one at its end. O(n) for n cuts."""
    ends_a, ends_b = [*a, size + 1], [*b, size + 1]
    at_a = at_b = start = 0
    while at_a < len(a) or at_b < len(b):
        from_a, from_b = at_a, at_b
        end_a, end_b = ends_a[at_a], ends_b[at_b]
        while end_a != end_b:
            if end_a < end_b:
                at_a += 1
                end_a = ends_a[at_a]
            else:
                at_b += 1
                end_b = ends_b[at_b]
        at_a, at_b = at_a + 1, at_b + 1
        if at_a - from_a > 1 or at_b - from_b > 1:
            yield start, min(end_a, size), slice(from_a, min(at_a, len(a))), slice(from_b, min(at_b, len(b)))
        start = end_a


def compare(text: bytes, ids: Pair[Sequence[int]], spans: Pair[Sequence[Span]], *, is_text: bool) -> Cuts:
    """How the cuts of two tokenizers compare. The spans are in bytes. O(n) for n tokens.

    `is_text` says that the text is a `str`: its lone surrogates are one character each.
    """
    num_stretches, first = 0, None
    cuts = cuts_of(spans[0]), cuts_of(spans[1])
    if cuts[0] != cuts[1]:
        for start, end, *inside in stretches(*cuts, len(text)):
            num_stretches += 1
            if first is None:
                places = [[start, *own[part]] for own, part in zip(cuts, inside, strict=True)]
                parts = [[text[at:to] for at, to in pairwise(own)] for own in places]
                first = Stretch(start, end, character(text, start, is_text=is_text), *parts)
    own_a, own_b = (
        [id for id, (start, end) in zip(side, own, strict=True) if end > start]
        for side, own in zip(ids, spans, strict=True)
    )
    return Cuts(first, num_stretches, own_a == own_b, len(ids[0]), len(ids[1]))


def character(text: bytes, byte: int, *, is_text: bool) -> int:
    """The number of the character that a byte is in. Each byte that is not UTF-8 is one; so is a lone surrogate of a
    `str`."""
    at = byte
    while byte - 3 <= at > 0 and at < len(text) and text[at] & 0xC0 == 0x80:
        at -= 1
    if not is_text and at < byte:  # these bytes may be no character
        first = text[at : at + 4].decode("utf-8", "surrogateescape")[0]
        at = at if at + len(first.encode("utf-8", "surrogateescape")) > byte else byte
    return len(text[:at].decode("utf-8", "surrogatepass" if is_text else "surrogateescape"))
