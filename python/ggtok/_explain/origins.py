"""Where a rewritten text comes from: for places in it, the bytes of the text that became them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator

from .convert import Text, to_bytes

ESCAPED_SPACE = "▁"


class Origins:
    """Places in a rewritten text, and the spans of the text that they come from. O(log n) for each look-up."""

    def __init__(self, parts: Iterable[tuple[int, int, int]]) -> None:
        """`parts` tile the rewritten text: how long each is in it, and where it starts and ends in the text."""
        self._starts: list[int] = []
        self._spans: list[tuple[int, int]] = []
        at = 0
        for size, start, end in parts:
            if size:
                self._starts.append(at)
                self._spans.append((start, end))
            at += size

    def span(self, start: int, end: int) -> tuple[int, int]:
        """The bytes of the text that the bytes `start` to `end` of the rewritten text come from."""
        if not self._spans:
            return (0, 0)
        first = max(bisect_right(self._starts, start) - 1, 0)
        last = max(bisect_left(self._starts, end) - 1, first)
        return self._spans[first][0], self._spans[last][1]


def same(text: bytes, start: int) -> Origins:
    """Of a text that is not rewritten. It starts at byte `start`."""
    return Origins((1, start + at, start + at + 1) for at in range(len(text)))


def rewritten(text: bytes, start: int, after: Text, *, prefix: bool = False) -> Origins:
    """Of a text that was rewritten character by character: spaces escaped or dropped, others replaced.

    Args:
        text: The text before. It starts at byte `start`.
        after: The rewritten text.
        prefix: Whether `after` begins with a `▁` that comes from nowhere.

    Takes O(n) time.
    """
    return Origins(_aligned(_characters(text), _characters(to_bytes(after)), start, prefix))


def _aligned(text: str, after: str, start: int, prefix: bool) -> Iterator[tuple[int, int, int]]:
    waiting = iter(after)
    if prefix:
        yield _size(next(waiting)), start, start
    ahead = next(waiting, None)
    for character in text:
        end = start + _size(character)
        # A space that is not there was dropped; any other character that is not there became the next one.
        if ahead is not None and not (character.isspace() and ahead not in (character, ESCAPED_SPACE)):
            yield _size(ahead), start, end
            ahead = next(waiting, None)
        start = end
    if ahead is not None:
        yield _size(ahead) + sum(map(_size, waiting)), start, start


def _characters(text: bytes) -> str:
    """Characters, and lone surrogates for bytes that are not part of one."""
    return text.decode("utf-8", "surrogateescape")


def _size(character: str) -> int:
    return len(character.encode("utf-8", "surrogateescape"))
