"""A trace as text for a terminal: tables that fit its width."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from operator import index as as_int
from typing import SupportsIndex, TypeAlias, TypeVar

from ...errors import GgtokError
from ...trace import Text
from .cells import cell_len
from .record import Record
from .sections import sections
from .tables import Cell, Column, Row, Section
from .terminal import fitted, padded, styled, wrapped

T = TypeVar("T")

Line: TypeAlias = tuple[str, str]
"""A line and its style."""

LEAST_WIDTH = 20
"""Columns in which tables can still be read."""

MAX_SECTIONS = 60
"""The most tables that are printed; more are left out in the middle."""

MIN_CELL = 8
"""Columns that a cell of text keeps at least when a table is made narrower."""

MIN_WORDS = 16
"""The same for a cell of words, which continue on the next line."""

GAP = "  "
INDENT = "    "
"""Before the further lines of a row that does not fit in one."""


def checked(width: SupportsIndex | None, max_rows: SupportsIndex) -> tuple[int, int]:
    """The columns and rows that a caller of `Trace.to_text` asks for."""
    columns, rows = shutil.get_terminal_size().columns if width is None else as_int(width), as_int(max_rows)
    if columns < LEAST_WIDTH:
        raise GgtokError(f"width must be at least {LEAST_WIDTH}, not {columns}")
    if rows < 2:
        raise GgtokError(f"max_rows must be at least 2, not {rows}")
    return columns, rows


def render(trace: Record, tables: Iterable[str] | None, *, width: int, max_rows: int, colors: bool) -> str:
    """The tables of a trace: all of them, or those with these names."""
    found = sections(trace)
    if tables is not None:
        wanted, keys = set(tables), {section.key: None for section in found}
        if unknown := wanted - keys.keys():
            raise GgtokError(f"this trace has no table {min(unknown)!r}, but {', '.join(keys)}")
        found = [section for section in found if section.key in wanted]
    parts = [styled(headline(trace, width), "title", colors)] if tables is None else []
    for section in shortened(found, MAX_SECTIONS):
        if isinstance(section, int):
            parts.append(fitted(f"... {section} more tables ...", width))
        else:
            parts.append(printed(section, width, max_rows, colors))
    return "\n\n".join(parts)


def headline(trace: Record, width: int) -> str:
    """The result in a line: the text and the number of its tokens."""
    became = f" becomes {len(trace.tokens)} token{'s' * (len(trace.tokens) != 1)} ({trace.algorithm})"
    return fitted(fitted(shown(trace.text), max(width - len(became), MIN_CELL)) + became, width)


def shortened(items: Sequence[T], most: int) -> list[T | int]:
    """At most `most` of the items; a number stands for those that are left out in the middle."""
    if len(items) <= most:
        return list(items)
    first = (most + 1) // 2
    return [*items[:first], len(items) - most, *items[len(items) - most + first :]]


def printed(section: Section, width: int, max_rows: int, colors: bool) -> str:
    """A section in at most `width` columns, with at most `max_rows` of its rows."""
    found = lines(section, section.title, width, shortened(section.rows, max_rows))
    return "\n".join(styled(*line, colors) for line in found)


def lines(section: Section, title: str, width: int, rows: Sequence[Row | int | str]) -> Iterator[Line]:
    """The lines of a section with these rows; a number stands for rows left out, a text is a line by itself."""
    table = Table(section, width, [row for row in rows if isinstance(row, Row)])
    yield from table.head(title)
    for row in rows:
        if isinstance(row, Row):
            yield from table.row(row)
        elif isinstance(row, int):
            yield fitted(f"... {row} more rows ...", width), ""
        else:
            yield fitted(row, width), "current"


class Table:
    """A section, laid out for a width. Columns that do not fit side by side continue on further lines.

    rich has tables too, but they cut texts at their ends, do not continue on further lines, and take three times as
    long. Only the measure of text is rich's.
    """

    def __init__(self, section: Section, width: int, rows: Iterable[Row]) -> None:
        """Lays the table out so that `rows` fit."""
        self.section, self.width = section, width
        self._names = [column.name for column in section.columns]
        texts = zip(self._names, *(cells(section, row) for row in rows), strict=True)
        natural = [min(max(map(cell_len, column)), width) for column in texts]
        at_least = {"text": MIN_CELL, "texts": MIN_CELL, "word": MIN_WORDS, "number": width}
        least = [
            min(size, max(at_least[column.kind], len(column.name)))
            for size, column in zip(natural, section.columns, strict=True)
        ]
        # The widest columns become narrower, down to the same width, until all fit.
        self.widths, most = natural, width
        while sum(self.widths) + len(GAP) * (len(natural) - 1) > width and most > 0:
            most -= 1
            self.widths = [max(low, min(size, most)) for low, size in zip(least, natural, strict=True)]
        self.groups = self._packed(width)
        for group in self.groups:
            room = width - sum(self.widths[place] for place in group) - len(GAP) * len(group) - len(INDENT)
            for place in reversed(group):
                grown = min(max(room, 0), natural[place] - self.widths[place])
                self.widths[place] += grown
                room -= grown

    def _packed(self, width: int) -> list[range]:
        """Which columns stand side by side."""
        groups, first, used = [], 0, -len(GAP)
        for place, size in enumerate(self.widths):
            if place > first and used + len(GAP) + size > width:
                groups.append(range(first, place))
                first, used = place, len(INDENT) - len(GAP)
            used += size + len(GAP)
        return [*groups, range(first, len(self.widths))]

    def head(self, title: str) -> Iterator[Line]:
        """The lines above the rows."""
        yield from ((line, "title") for line in wrapped(title, self.width))
        yield from ((line, "") for line in wrapped(self.section.about, self.width))
        yield from self._lines(self._names, "header")

    def row(self, row: Row) -> Iterator[Line]:
        return self._lines(cells(self.section, row), row.mark)

    def _lines(self, texts: list[str], style: str) -> Iterator[Line]:
        """The lines of a row. Those without text are left out."""
        for group in self.groups:
            for parts in zip_longest(*(self._fitted(texts[place], place) for place in group), fillvalue=""):
                line = GAP.join(map(self._padded, parts, group)).rstrip()
                if line:
                    yield line if group.start == 0 else fitted(INDENT + line, self.width), style

    def _fitted(self, text: str, place: int) -> list[str]:
        """A cell's lines: words continue on the next one, and a text is cut."""
        width = self.widths[place]
        return wrapped(text, width) if self.section.columns[place].kind == "word" else [fitted(text, width)]

    def _padded(self, text: str, place: int) -> str:
        return padded(text, self.widths[place], right=self.section.columns[place].kind == "number")


# Cells


def cells(section: Section, row: Row) -> list[str]:
    """The values of a row as they are shown."""
    return [_cell(*each) for each in zip(row.cells, section.columns, strict=True)]


def _cell(value: Cell, column: Column) -> str:
    """A value as it is shown."""
    if value is None:
        return ""
    if isinstance(value, tuple):
        return " | ".join(bare(text) if text else "..." for text in value)
    if isinstance(value, float):
        return f"{value + 0.0:.9g}"  # not -0
    if isinstance(value, int):
        return str(value)
    return shown(value) if column.kind == "text" else str(value)


def shown(text: Text) -> str:
    """A text in quotes with invisible characters escaped, or `b'...'` if it is not UTF-8."""
    if isinstance(text, str) and _starts_with_mark(text):
        return repr("◌" + text)  # the mark would otherwise join the quote
    return repr(text)


def bare(text: Text) -> str:
    """A text among others: without quotes if it is plain."""
    plain = isinstance(text, str) and text.isprintable() and " " not in text and not _starts_with_mark(text)
    return str(text) if plain else shown(text)


def _starts_with_mark(text: str) -> bool:
    """Whether a text begins with a character that is drawn over the one before it."""
    return text != "" and text[0].isprintable() and cell_len(text[0]) == 0
