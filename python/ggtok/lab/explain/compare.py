"""Two traces: how they cut the text, their steps side by side, and the first step where they differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import NamedTuple, TypeAlias

from ...tokenizer.cuts import Cuts, Pair
from ...tokenizer.cuts import compare as compare_cuts
from .cells import cell_len
from .explain import Trace
from .sections import sections
from .tables import Cell, Row, Section
from .terminal import fitted, styled, wrapped
from .terminal_tables import GAP, MAX_SECTIONS, Line, lines, shortened
from .utf8 import to_bytes

LEAST_WIDTH = 50
"""Columns that each of two traces needs side by side. In less, one is below the other."""

Sections: TypeAlias = Pair[Section | None]
"""A section of two traces: of each that has it."""

DIFFERENCE = "--- here they differ ---"

OF_THE_FILE = ("pattern", "charsmap", "xcda", "rev_merge")
"""Sections that may differ although the steps are the same: they show how pieces are found, not which."""


class FirstDifference(NamedTuple):
    """The first step where two traces differ."""

    pair: int
    """The place of the section among the pairs."""
    row: int
    """The row of it that only one has, or that differs."""
    section: Section
    """The section, of the first trace if it has it."""


def spans(a: Trace, b: Trace) -> Pair[list[tuple[int, int]]]:
    """The spans of both's tokens, in bytes of the text."""
    first, second = ([(token.start, token.end) for token in side.tokens] for side in (a, b))
    return first, second


def cuts(a: Trace, b: Trace) -> Cuts:
    """How the two cut the text."""
    return compare_cuts(to_bytes(a.text), (a.ids, b.ids), spans(a, b), is_text=isinstance(a.text, str))


def pairs(a: Trace, b: Trace) -> list[Sections]:
    """The sections of both, equal ones paired. O(n) for n sections."""
    first, second = _named(a), _named(b)
    places = {name: place for place, name in enumerate(second)}
    found = list[Sections]()
    at, others = 0, list(second.values())
    for name, section in first.items():
        place = places.get(name, -1)
        if place < at:
            found.append((section, None))
        else:
            found += [*((None, other) for other in others[at:place]), (section, others[place])]
            at = place + 1
    return [*found, *((None, other) for other in others[at:])]


def _named(trace: Trace) -> dict[tuple[str, str, int], Section]:
    """Sections by key, title, and how many of the same came before."""
    seen: Counter[tuple[str, str]] = Counter()
    found = {}
    for section in sections(trace):
        name = (section.key, section.title)
        found[(*name, seen[name])] = section
        seen[name] += 1
    return found


def first_difference(found: list[Sections]) -> FirstDifference | None:
    """Where two traces first differ, or `None` if all steps are the same.

    Ids, scores and ranks may differ, since each vocabulary has its own: steps are the same if they are about the same
    texts with the same outcome.
    """
    for place, (a, b) in enumerate(found):
        section = a or b
        if section is None or section.key in OF_THE_FILE:
            continue
        steps = zip_longest(_steps(a), _steps(b))
        row = next((row for row, (first, second) in enumerate(steps) if first != second), None)
        if row is not None:
            return FirstDifference(place, row, section)
    return None


def _steps(section: Section | None) -> Iterator[list[Cell]]:
    if section is not None:
        for row in section.rows:
            cells = zip(row.cells, section.columns, strict=True)
            yield [cell for cell, column in cells if column.kind != "number"]


def render(a: Trace, b: Trace, names: tuple[str, str], *, width: int, max_rows: int, colors: bool) -> str:
    """Both traces as text, side by side if there is room. `names` say which is which."""
    found = pairs(a, b)
    difference = first_difference(found)
    room = (width - len(GAP)) // 2
    written = [*wrapped(summary(difference), width)]
    for place, pair in _shown(found, difference):
        if pair is None:
            written += ["", fitted(f"... {place} more tables ...", width)]
            continue
        row = difference.row if difference is not None and difference.pair == place else None
        space = room if room >= LEAST_WIDTH else width
        left, right = (_lines(*each, space, max_rows, row) for each in zip(names, pair, strict=True))
        written.append("")
        if space < width:
            for (one, style), (other, other_style) in zip_longest(left, right, fillvalue=("", "")):
                gap = " " * (room - cell_len(one)) + GAP
                written.append((styled(one, style, colors) + gap + styled(other, other_style, colors)).rstrip())
        else:
            written += [styled(line, style, colors) for line, style in [*left, ("", ""), *right]]
    return "\n".join(written)


def summary(difference: FirstDifference | None) -> str:
    """Where the steps first differ, in a sentence."""
    if difference is None:
        return "All steps are the same."
    return f"The steps first differ in the table “{difference.section.title}”, row {difference.row + 1}."


def _shown(found: list[Sections], difference: FirstDifference | None) -> Iterator[tuple[int, Sections | None]]:
    """Pairs with their places: the first, the last, and those around the difference. Else how many are left out."""
    keep = {*range(MAX_SECTIONS // 3), *range(len(found) - MAX_SECTIONS // 3, len(found))}
    if difference is not None:
        keep |= set(range(difference.pair - MAX_SECTIONS // 6, difference.pair + MAX_SECTIONS // 6))
    left_out = 0
    for place, pair in enumerate(found):
        if place not in keep:
            left_out += 1
            continue
        if left_out:
            yield left_out, None
            left_out = 0
        yield place, pair


def _lines(name: str, section: Section | None, width: int, max_rows: int, row: int | None) -> list[Line]:
    """The lines of a section. `row` is where the traces first differ; the rows around it are shown."""
    if section is None:
        return [(line, "lost") for line in wrapped(f"{name}: no such table", width)]
    return list(lines(section, f"{name}: {section.title}", width, _rows(section.rows, max_rows, row)))


def _rows(rows: Sequence[Row], max_rows: int, around: int | None) -> list[Row | int | str]:
    """At most `max_rows` rows, numbers for those that are left out, and a line before the row `around`."""
    if around is None:
        return [*shortened(rows, max_rows)]
    first = max(around - max_rows // 2, 0)
    last = min(first + max_rows, len(rows))
    current = [row._replace(mark="current") for row in rows[around : around + 1]]
    shown: list[Row | int | str] = [*rows[first:around], DIFFERENCE, *current, *rows[around + 1 : last]]
    return [*[first] * (first > 0), *shown, *[len(rows) - last] * (last < len(rows))]
