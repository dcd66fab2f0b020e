"""Rows for people: fitted to the window on a terminal, aligned text of any width anywhere else."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Container, Iterable, Sequence
from pathlib import Path
from shutil import get_terminal_size

from ..lab.explain.cells import cell_len
from ..lab.explain.terminal import padded, styled, wrapped
from .output import drawn, painted, printable, wants_colors

GAP = "  "
LEAST_LAST = 16
"""Columns of a window that the last column of a table needs at least, if its cells are longer."""

LABEL = re.compile(r" +(?:\S.*?  +)?|\S.*?  +")
"""What is before a text: spaces, or a label with two spaces or more after it."""

SIGNS = {"✓": "32", "!": "33", "✗": "1;31"}
"""The styles of lines that begin with a sign."""

SEVERITIES = ("error:", "warning:", "note:")


def short_names(paths: Sequence[str]) -> list[str]:
    """The stem of each file's name, or as much of the end of its path as no other has."""
    parts = [Path(path).parts for path in paths]
    forms = [
        [Path(path).stem, *("/".join(own[-n:]) for n in range(1, len(own))), path]
        for path, own in zip(paths, parts, strict=True)
    ]
    times = Counter(form for own in forms for form in set(own))
    return [next((form for form in own if times[form] == 1), own[-1]) for own in forms]


def print_pairs(pairs: Sequence[tuple[str, str]]) -> None:
    """Names and values. A name that repeats is shown once, and a pair without a value is left out."""
    rows = [(printable(name), printable(value)) for name, value in pairs if value]
    names = [name if at == 0 or rows[at - 1][0] != name else "" for at, (name, _) in enumerate(rows)]
    width, window = max(map(cell_len, names), default=0), _window()
    for name, (_, value) in zip(names, rows, strict=True):
        if width <= window // 2:
            _print_beside(padded(name, width) + GAP, value, window, "title")
            continue
        if name:
            _print_beside("", name, window, text_style="title")
        _print_beside(GAP, value, window)


def print_listed(name: str, lines: Iterable[str]) -> None:
    """A name, and its lines below it."""
    _print_beside("", printable(name), _window(), text_style="title")
    for line in lines:
        _print_beside(GAP, printable(line), _window())


def print_line(line: str, style: str = "") -> None:
    """A line in a style, whose further lines in a narrow window begin further right."""
    text = line.lstrip(" ")
    first, *others = wrapped(text, _window() - len(line) + len(text) - len(GAP))
    indent = line.removesuffix(text)
    for row in (indent + first, *(indent + GAP + other for other in others)):
        print(painted(row, style))


def print_report(lines: Iterable[str], whole: str) -> None:
    """Lines of a label and a text, with two spaces or more between them. That with the label `whole` is not wrapped: it
    is to be copied."""
    for line in map(printable, lines):
        match = LABEL.match(line)
        label = match[0] if match else ""
        window = sys.maxsize if label.strip() == whole else _window()
        _print_beside(label, line.removeprefix(label), window, "title")


def print_table(head: Sequence[str], rows: Sequence[Sequence[str]], right: Container[int] = ()) -> None:
    """A table with a head. Columns whose numbers are in `right` are aligned to the right.

    If the window is too narrow, the head gets several lines, and if it still is, each row becomes pairs of names and
    values.
    """
    rows = [[printable(cell) for cell in row] for row in rows]
    window = _window()
    for heads in ([head], _folded(head)):
        widths = [max(map(cell_len, column)) for column in zip(*heads, *rows, strict=True)]
        if sum(widths[:-1]) + len(GAP) * len(widths[1:]) + min(widths[-1], LEAST_LAST) <= window:
            break
    else:
        for number, row in enumerate(rows):
            if number:
                print()
            print_pairs(list(zip(head, row, strict=True)))
        return
    for number, row in enumerate([*heads, *rows]):
        *cells, last = (padded(cell, widths[at], right=at in right) for at, cell in enumerate(row))
        style = "title" if number < len(heads) else ""
        _print_beside("".join(cell + GAP for cell in cells), last.rstrip(), window, style, style)


def _folded(head: Sequence[str]) -> list[tuple[str, ...]]:
    """A head in lines: its names are broken at spaces and after slashes, and stand at the bottom."""
    columns = [name.replace("/", "/ ").split() or [""] for name in head]
    most = max(map(len, columns))
    return [*zip(*([""] * (most - len(words)) + words for words in columns), strict=True)]


def _window() -> int:
    return get_terminal_size().columns if sys.stdout.isatty() else sys.maxsize


def _print_beside(start: str, text: str, window: int, style: str = "", text_style: str = "") -> None:
    """A text after `start`, its further lines below it."""
    colors, indent = wants_colors(), cell_len(start)
    first, *others = wrapped(text, window - indent)
    word = first.partition(" ")[0]
    if word in SEVERITIES:
        first = styled(word, word, colors) + first.removeprefix(word)
    if word in SIGNS and not start:
        return print("\n".join(painted(drawn(line), SIGNS[word] * colors) for line in (first, *others)))
    print((styled(start, style, colors) + styled(first, text_style, colors)).rstrip())
    for line in others:
        print(" " * indent + styled(line, text_style, colors))
