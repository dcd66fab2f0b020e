"""Two tokenizers on one text: the text twice, one below the other, so that a character is below itself.

Spaces and what is invisible are shown as in the token view. In colours, tokens have backgrounds in turn, and others
where the cuts differ. Without colours there is a bar after each token, and brackets around what is cut differently.
Takes O(n) time for n tokens before what is shown.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ..lab.explain.cells import cell_len
from ..lab.explain.terminal import fitted, padded
from ..lab.explain.verdict import verdict
from ..tokenizer.cuts import Cuts, Pair, Span, cuts_of, stretches
from .output import painted, printable
from .table import print_line, short_names
from .view import MARKS, MIN_WIDTH, Row, Screen, assembled, bar, both, units

MOST_LINES = 3
"""Lines of each side that are shown, unless all are requested."""

NAME = 16
"""The most columns of a name before a line; in narrow windows it is a quarter of them."""


class Segment(NamedTuple):
    """The text between two neighbouring cuts, of either side."""

    start: int
    """In bytes of the text."""
    end: int
    tokens: Pair[int]
    """Which token of each side it is in."""
    differs: bool
    """Whether it is in a stretch that the sides cut differently."""
    opens: bool
    """Whether a differing stretch starts with it."""
    closes: bool
    cuts: Pair[bool]
    """Which sides cut after it."""


def segments(start: int, sides: Pair[list[int]], size: int) -> Iterator[Segment]:
    """The segments of a text of `size` bytes, from a place where both sides cut, or 0."""
    at = [bisect_right(side, start) for side in sides]
    found = (each for each in stretches(*sides, size) if each[1] > start)
    stretch = next(found, None)
    while start < size:
        ends = [side[place] if place < len(side) else size for side, place in zip(sides, at, strict=True)]
        end = min(ends)
        if stretch is not None and stretch[1] <= start:
            stretch = next(found, None)
        first, last = stretch[:2] if stretch is not None else (size, size)
        cuts = ends[0] == end, ends[1] == end
        yield Segment(start, end, (at[0], at[1]), first <= start, first == start, first <= start and last == end, cuts)
        at = [place + is_cut for place, is_cut in zip(at, cuts, strict=True)]
        start = end


class Lines:
    """Makes the lines of both sides."""

    def __init__(self, text: bytes, sides: Pair[list[int]], width: int, screen: Screen) -> None:
        self.text, self.sides, self.width = text, sides, width
        self.palette, self.encoding = screen.palette, screen.encoding
        self._rows: Pair[Row] = ([], [])
        self._filled = 0

    def made(self, start: int) -> Iterator[tuple[Pair[Row], int]]:
        """Lines from a position where both sides cut, each with where the text continues, in bytes."""
        for segment in segments(start, self.sides, len(self.text)):
            shown = units(self.text[segment.start : segment.end], self.encoding)
            room = sum(unit.width for unit in shown)
            if self._filled and self._filled + room + 2 * self.palette.bar > self.width:
                yield self._taken(), segment.start
            if self.palette.bar and segment.opens:
                self._add(("[", "["), (self.palette.strong,) * 2, 1)
            styles = self._style(segment, 0), self._style(segment, 1)
            for unit in shown:
                if self._filled + unit.width + self.palette.bar > self.width:
                    yield self._taken(), segment.start
                mark = getattr(self.palette, unit.kind) if unit.kind else ""
                first, second = (both(style, mark) for style in styles)
                self._add((unit.text, unit.text), (first, second), unit.width)
            if self.palette.bar and segment.closes:
                self._add(("]", "]"), (self.palette.strong,) * 2, 1)
            elif self.palette.bar and segment.end < len(self.text):
                first, second = (bar(self.encoding) if segment.cuts[side] else " " for side in (0, 1))
                self._add((first, second), (self.palette.mark, self.palette.mark), 1)
            if shown and shown[-1].text in MARKS["\n"]:
                yield self._taken(), segment.end
        if self._filled:
            yield self._taken(), len(self.text)

    def _style(self, segment: Segment, side: int) -> str:
        if not self.sides[side] or segment.start >= self.sides[side][-1]:
            return self.palette.dim  # no token stands for the end of the text
        if segment.differs:
            styles = self.palette.differing
            return styles[segment.tokens[side] % len(styles)]
        return self.palette.tokens[segment.tokens[0] % len(self.palette.tokens)]  # the same colours on both sides

    def _add(self, texts: Pair[str], styles: Pair[str], width: int) -> None:
        for row, text, style in zip(self._rows, texts, styles, strict=True):
            row.append((text, style))
        self._filled += width

    def _taken(self) -> Pair[Row]:
        rows, self._rows, self._filled = self._rows, ([], []), 0
        return rows


def print_verdict(screen: Screen, cuts: Cuts) -> None:
    """Prints what the comparison on a text comes to, with the signs of the text below it."""

    def show(part: bytes) -> str:
        return "".join(unit.text for unit in units(part, screen.encoding))

    parts = verdict(cuts, show, bar(screen.encoding))
    line = "".join(f"`{printable(part)}`" if is_quoted else part for part, is_quoted in parts)
    print_line(line, both(screen.palette.strong, "" if cuts else screen.palette.good))


def print_pair(
    screen: Screen, names: Sequence[str], text: bytes, spans: Pair[Iterable[Span]], cuts: Cuts, most: int | None
) -> None:
    """Prints the text with the cuts of both sides: all of it, or at most `most` lines of each side, from about a line
    before the first stretch that is cut differently. Nothing if all tokens are the same. `names` are paths."""
    if not text or (not cuts and cuts.same_ids):
        return
    print()
    width = max(screen.width, MIN_WIDTH)
    room = min(NAME, width // 4)
    first, second = (fitted(printable(name), room) for name in short_names(names))
    labels = (first, second) if first != second else ("a", "b")
    room = max(map(cell_len, labels))
    width -= room + 1
    sides = cuts_of(spans[0]), cuts_of(spans[1])
    start = 0
    if most is not None and cuts.first is not None and cuts.first.start > 2 * width:
        place = bisect_right(sides[0], cuts.first.start - width)
        start = sides[0][place - 1] if place else 0  # before that stretch, cuts are common
    if start:
        _print_dim(screen, f"… {_characters(text[:start])} before")
    shown = start
    for number, (rows, at) in enumerate(Lines(text, sides, width, screen).made(start)):
        if number == most:
            break
        if number:
            print()
        for label, row in zip(labels, rows, strict=True):
            print(painted(f"{padded(label, room)} ", screen.palette.dim) + assembled(row))
        shown = at
    if shown < len(text):
        _print_dim(screen, f"… {_characters(text[shown:])} more: --all shows them")


def _print_dim(screen: Screen, line: str) -> None:
    print(painted(fitted(line, screen.width), screen.palette.dim))


def _characters(text: bytes) -> str:
    count = len(text.decode("utf-8", "surrogateescape"))
    return f"{count:,} character{'s' * (count != 1)}"
