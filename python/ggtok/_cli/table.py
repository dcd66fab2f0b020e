"""Rows for people: fitted to the window on a terminal, aligned text anywhere else."""

from __future__ import annotations

import sys
from collections.abc import Container, Sequence
from shutil import get_terminal_size

from .._explain.terminal import columns_of, padded
from .output import printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    from rich.text import Text

    Row: TypeAlias = Sequence[str]

GAP = "  "
MAX_FITTED = 1000
"""Rows that are fitted to a window at most; more take too long."""

LEAST_LAST = 16
"""Columns of a window that the last column of a table needs at least, where its cells are longer."""

STYLES = {"error:": "bold red", "warning:": "yellow", "note:": "cyan"}
"""The colour of a finding's severity: the terminal's own, so that it fits light and dark backgrounds."""


def print_pairs(pairs: Sequence[tuple[str, str]]) -> None:
    """Names and values. A name that repeats is shown once, and a pair without a value is left out."""
    pairs = [(printable(name), printable(value)) for name, value in pairs if value]
    names = [name if number == 0 or pairs[number - 1][0] != name else "" for number, (name, _) in enumerate(pairs)]
    rows = [(name, value) for name, (_, value) in zip(names, pairs, strict=True)]
    width = max(map(columns_of, names), default=0)
    if not sys.stdout.isatty():
        for name, value in rows:
            print(f"{padded(name, width, right=False)}{GAP}{value}".rstrip())
    elif width <= get_terminal_size().columns // 2:
        _print_fitted(None, rows, ())
    else:
        _print_under(rows)


def print_table(head: Row, rows: Sequence[Row], right: Container[int] = ()) -> None:
    """A table with a head. Columns whose numbers are in `right` are aligned to the right.

    Where the window is too narrow, each row becomes pairs of names and values.
    """
    rows = [[printable(cell) for cell in row] for row in rows]
    widths = [max(map(columns_of, column)) for column in zip(head, *rows, strict=True)]
    if sys.stdout.isatty() and len(rows) <= MAX_FITTED:
        least = sum(widths[:-1]) + len(GAP) * len(widths[1:]) + min(widths[-1], LEAST_LAST)
        if least <= get_terminal_size().columns:
            return _print_fitted(head, rows, right)
        for number, row in enumerate(rows):
            if number:
                print()
            print_pairs(list(zip(head, row, strict=True)))
        return None
    for row in (head, *rows):
        cells = (
            padded(cell, width, right=at in right) for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        print(GAP.join(cells).rstrip())
    return None


def quoted(piece: bytes) -> str:
    """A piece in quotes, with invisible characters escaped; `b'...'` where it is not UTF-8."""
    try:
        return repr(piece.decode("utf-8"))
    except UnicodeDecodeError:
        return repr(piece)


def _print_fitted(head: Row | None, rows: Sequence[Row], right: Container[int]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, show_header=head is not None, header_style="bold", padding=(0, 2, 0, 0))
    width = len(rows[0]) if rows else 0
    for at in range(width):
        is_last = at == width - 1
        table.add_column(
            Text(head[at]) if head else "",
            justify="right" if at in right else "left",
            no_wrap=not is_last,
            overflow="fold",
            style="bold" if head is None and at == 0 else "",
        )
    for row in rows:
        table.add_row(*map(_styled, row))
    Console(highlight=False).print(table)


def _print_under(pairs: Sequence[tuple[str, str]]) -> None:
    """Each value under its name, for names that take too much of the window."""
    from rich.console import Console
    from rich.padding import Padding
    from rich.text import Text

    console = Console(highlight=False)
    for name, value in pairs:
        if name:
            console.print(Text(name, "bold"), overflow="fold")
        console.print(Padding(_styled(value), (0, 0, 0, 2)))


def _styled(cell: str) -> Text:
    from rich.text import Text

    text = Text(cell)
    first = cell.partition(" ")[0]
    if first in STYLES:
        text.stylize(STYLES[first], 0, len(first))
    return text
