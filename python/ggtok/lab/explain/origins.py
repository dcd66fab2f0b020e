"""Where a rewritten text comes from: for positions in it, the bytes of the text that became them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

from ...trace import Origin
from .tables import Cell, Mark, Row, Span
from .utf8 import to_text

Spans: TypeAlias = Callable[[int, int], Span]
"""From places in a rewritten text to the bytes of the text that they come from."""


class Origins:
    """Places in a rewritten text, and the bytes of the text that they come from. O(log n) for each look-up.

    `start` is where the fragment starts; the origins count from there.
    """

    def __init__(self, origins: Iterable[Origin], start: int) -> None:
        self.start = start
        found = tuple(origins)
        self._starts = [origin.start for origin in found]
        self._ends = [origin.end for origin in found]
        # A stretch of the same length was copied, byte for byte; any other stands for all of its origin.
        self._copied = [origin.end - origin.start == origin.to - origin.from_ for origin in found]
        self._from = [origin.from_ for origin in found]
        self._to = [origin.to for origin in found]

    def span(self, start: int, end: int) -> Span:
        """The bytes of the text that the bytes `start` to `end` of the rewritten text come from."""
        if not self._starts:
            return self.start, self.start
        first = max(bisect_right(self._starts, start) - 1, 0)
        last = min(bisect_left(self._ends, end), len(self._ends) - 1)
        low = self._from[first] + start - self._starts[first] if self._copied[first] else self._from[first]
        high = self._to[last] + end - self._ends[last] if self._copied[last] else self._to[last]
        return self.start + low, self.start + max(high, low)


def shifted(start: int) -> Spans:
    """The spans of a fragment that was not rewritten and starts at byte `start`."""
    return lambda low, high: (start + low, start + high)


@dataclass(frozen=True)
class Cuts:
    """A text, perhaps rewritten, that is cut into parts."""

    text: bytes
    spans: Spans

    def row(self, start: int, end: int, *others: Cell, mark: Mark = "") -> Row:
        """A row about a part: its start, its end, its text, and other cells."""
        return Row((start, end, to_text(self.text[start:end]), *others), self.spans(start, end), mark)
