"""Two traces side by side, and the first step where they differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import zip_longest
from typing import NamedTuple

from .sections import sections
from .tables import Cell, Row, Section
from .terminal import columns_of, fitted, styled, wrapped
from .text import GAP, MAX_SECTIONS, Table, shortened
from .trace import Trace

LEAST_WIDTH = 50
"""Columns that a trace needs to stand beside another. In less they stand one below the other."""

PARTING = "--- here they part ---"


OF_THE_FILE = ("pattern", "charsmap", "xcda", "rev_merge")
"""Sections that may differ though the steps are the same: how pieces were found, and not which."""


class Parting(NamedTuple):
    """The first step where two traces differ."""

    pair: int
    """The place of the section among the pairs."""
    row: int
    """The row of it that only one has, or that differs."""


class Pair(NamedTuple):
    """A section of two traces: of each that has it."""

    a: Section | None
    b: Section | None


def pairs(a: Trace, b: Trace) -> list[Pair]:
    """The sections of both, the same ones together. O(n) for n sections."""
    first, second = _named(a), _named(b)
    places = {name: place for place, name in enumerate(second)}
    found, at, others = [], 0, list(second.values())
    for name, section in first.items():
        place = places.get(name, -1)
        if place < at:
            found.append(Pair(section, None))
        else:
            found += [*(Pair(None, other) for other in others[at:place]), Pair(section, others[place])]
            at = place + 1
    return [*found, *(Pair(None, other) for other in others[at:])]


def _named(trace: Trace) -> dict[tuple[str, str, int], Section]:
    """Sections by key and title, and by how often there was the same before."""
    seen: Counter[tuple[str, str]] = Counter()
    found = {}
    for section in sections(trace):
        name = (section.key, section.title)
        found[(*name, seen[name])] = section
        seen[name] += 1
    return found


def parting(found: list[Pair]) -> Parting | None:
    """Where two traces part first, or `None` where all steps are the same.

    Ids, scores and ranks may differ, since each vocabulary has its own: steps are the same if they are about the same
    texts with the same outcome.
    """
    for place, (a, b) in enumerate(found):
        if (a or b).key in OF_THE_FILE:  # type: ignore[union-attr]
            continue
        steps = zip_longest(_steps(a), _steps(b))
        row = next((row for row, (first, second) in enumerate(steps) if first != second), None)
        if row is not None:
            return Parting(place, row)
    return None


def _steps(section: Section | None) -> Iterator[list[Cell]]:
    if section is not None:
        for row in section.rows:
            cells = zip(row.cells, section.columns, strict=True)
            yield [cell for cell, column in cells if column.kind != "number"]


def render(a: Trace, b: Trace, names: tuple[str, str], *, width: int, max_rows: int, colors: bool) -> str:
    """Both traces as text: beside each other where there is room. `names` say which is which."""
    found = pairs(a, b)
    parts_at = parting(found)
    room = (width - len(GAP)) // 2
    written = [*wrapped(summary(a, b, names, found, parts_at), width)]
    for place, pair in _shown(found, parts_at):
        if pair is None:
            written += ["", fitted(f"... {place} more tables ...", width)]
            continue
        row = parts_at.row if parts_at is not None and parts_at.pair == place else None
        space = room if room >= LEAST_WIDTH else width
        left, right = (_lines(*each, space, max_rows, row) for each in zip(names, pair, strict=True))
        written.append("")
        if space < width:
            for one, other in zip_longest(left, right, fillvalue=("", "")):
                padding = " " * (room - columns_of(one[0]))
                written.append(
                    (styled(one[0], one[1], colors) + padding + GAP + styled(other[0], other[1], colors)).rstrip()
                )
        else:
            written += [styled(line, style, colors) for line, style in (*left, ("", ""), *right)]
    return "\n".join(written)


def summary(a: Trace, b: Trace, names: tuple[str, str], found: list[Pair], parts_at: Parting | None) -> str:
    """What the comparison comes to, in a sentence or two."""
    ids = "the ids are the same" if a.ids == b.ids else "the ids differ"
    counts = f"{names[0]} gives {len(a.tokens)} tokens, {names[1]} {len(b.tokens)}; {ids}."
    if parts_at is None:
        return f"{counts} No step parts."
    section = found[parts_at.pair].a or found[parts_at.pair].b
    assert section is not None
    return f"{counts} They part first in the table “{section.title}”, row {parts_at.row + 1}."


def _shown(found: list[Pair], parts_at: Parting | None) -> Iterator[tuple[int, Pair | None]]:
    """Pairs with their places: the first ones, the last ones, and those where the traces part. Else how many more."""
    keep = {*range(MAX_SECTIONS // 3), *range(len(found) - MAX_SECTIONS // 3, len(found))}
    if parts_at is not None:
        keep |= set(range(parts_at.pair - MAX_SECTIONS // 6, parts_at.pair + MAX_SECTIONS // 6))
    left_out = 0
    for place, pair in enumerate(found):
        if place not in keep:
            left_out += 1
            continue
        if left_out:
            yield left_out, None
            left_out = 0
        yield place, pair


def _lines(name: str, section: Section | None, width: int, max_rows: int, row: int | None) -> list[tuple[str, str]]:
    """The lines of a section with their styles. `row` is where the traces part; the rows around it are shown."""
    if section is None:
        return [(line, "lost") for line in wrapped(f"{name}: no such table", width)]
    rows = _window(section.rows, max_rows, row)
    table = Table(section, width, [each for each in rows if isinstance(each, Row)])
    lines = [(line, "title") for line in wrapped(f"{name}: {section.title}", width)]
    lines += [(line, "") for line in wrapped(section.about, width)]
    lines += [(line, "header") for line in table.names()]
    at = 0
    for each in rows:
        if isinstance(each, int):
            lines.append((fitted(f"... {each} more rows ...", width), ""))
            at += each
            continue
        parts = at == row
        lines += [(fitted(PARTING, width), "current")] * parts
        lines += [(line, "current" if parts else each.mark) for line in table.row(each)]
        at += 1
    return lines + [(fitted(PARTING, width), "current")] * (row == at)


def _window(rows: tuple[Row, ...], max_rows: int, around: int | None) -> list[Row | int]:
    """At most `max_rows` rows, and numbers for those that are left out."""
    if around is None:
        return shortened(rows, max_rows)
    first = max(around - max_rows // 2, 0)
    last = min(first + max_rows, len(rows))
    return [*[first] * (first > 0), *rows[first:last], *[len(rows) - last] * (last < len(rows))]
