"""Where a rewritten text comes from: for positions in it, the bytes of the text that became them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter
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

    def __init__(self, origins: tuple[Origin, ...], start: int) -> None:
        self.origins, self.start = origins, start

    def span(self, start: int, end: int) -> Span:
        """The bytes of the text that the bytes `start` to `end` of the rewritten text come from."""
        if not self.origins:
            return self.start, self.start
        first = self.origins[max(bisect_right(self.origins, start, key=attrgetter("start")) - 1, 0)]
        last = self.origins[min(bisect_left(self.origins, end, key=attrgetter("end")), len(self.origins) - 1)]
        low = first.from_ + (start - first.start if _is_copied(first) else 0)
        high = last.to + (end - last.end if _is_copied(last) else 0)
        return self.start + low, self.start + max(high, low)


def _is_copied(origin: Origin) -> bool:
    """Whether a stretch was copied byte for byte, which has the same length; any other stands for all of its origin."""
    return origin.end - origin.start == origin.to - origin.from_


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
