"""The token view: the pieces of a text on alternating backgrounds, each with its id below.

A piece and its id share a cell. Cells fill the lines, and a line ends after a token with a newline. Between two cells
there is always a space without a mark, and a space of the text is a dot, so boundaries are visible without colours.
What a terminal would obey, hide or join to its neighbour is escaped: control characters, bytes that are not UTF-8,
formatting characters such as joiners, and a combining mark that begins a token gets a dotted circle to stand on.
"""

from __future__ import annotations

import shutil
import sys
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from .. import TokenAttribute, Tokenizer
from .output import wants_colors

SPECIAL = TokenAttribute.CONTROL | TokenAttribute.USER_DEFINED | TokenAttribute.UNKNOWN

MARKS = {" ": ("·", "_"), "\n": ("↵", "\\n"), "\t": ("→", "\\t"), "\r": ("␍", "\\r")}
"""What is shown for white space, and what is shown if the encoding lacks it."""

CHANGES_WIDTH = frozenset(map(chr, range(0xFE00, 0xFE10)))
"""Variation selectors: terminals disagree on how wide they make the character before them."""

SKIN_TONES = frozenset(map(chr, range(0x1F3FB, 0x1F400)))
"""Terminals disagree on whether they join the emoji before them."""

MIN_WIDTH = 8
"""The narrowest window that is assumed: an id fits."""


@dataclass(frozen=True)
class Palette:
    """Styles in rich's words. Backgrounds set their own foreground, so they suit light and dark windows."""

    tokens: tuple[str, str]
    special: str
    id: str
    mark: str
    """Of what is shown in place of white space and invisible characters."""
    byte: str


MANY = Palette(
    tokens=("color(16) on color(153)", "color(16) on color(223)"),
    special="bold color(231) on color(90)",
    id="dim",
    mark="color(242)",
    byte="bold color(124)",
)
"""For 256 colours and more: blue and sand, which the colour-blind tell apart."""

FEW = Palette(("black on cyan", "black on yellow"), "bold white on magenta", "", "", "underline")
"""For the eight colours that every colour terminal has."""

NONE = Palette(("", ""), "bold", "dim", "dim", "underline")
"""For NO_COLOR, which allows brightness and lines. A dumb terminal shows neither."""


class Unit(NamedTuple):
    """A part of a piece that is not cut: a character with its combining marks, or an escape."""

    text: str
    width: int
    kind: str = ""
    """What marks it: `mark` for an escape or white space, `byte` for a byte that is not a character."""


def units(piece: bytes, encoding: str = "utf-8") -> list[Unit]:
    """What is shown for a piece, which may be any bytes, on a terminal with this encoding. O(length)."""
    shown: list[Unit] = []
    for char in piece.decode("utf-8", "surrogateescape"):
        code, width = ord(char), cell_len(char)
        stands_alone = not shown or bool(shown[-1].kind)
        if "\udc80" <= char <= "\udcff":
            shown.append(Unit(f"\\x{code - 0xDC00:02x}", 4, "byte"))
        elif char in MARKS:
            mark = MARKS[char][not _has(encoding, MARKS[char][0])]
            shown.append(Unit(mark, len(mark), "mark"))
        elif (
            unicodedata.category(char)[0] in "CZ"
            or char in CHANGES_WIDTH
            or (char in SKIN_TONES and not stands_alone)
            or not _has(encoding, char)
        ):
            escape = f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
            shown.append(Unit(escape, len(escape), "mark"))
        elif width:
            shown.append(Unit(char, width))
        elif stands_alone:
            shown.append(Unit("◌" + char, 1))
        else:
            shown[-1] = Unit(shown[-1].text + char, shown[-1].width)
    return shown


def _has(encoding: str, char: str) -> bool:
    try:
        char.encode(encoding)
    except UnicodeEncodeError:
        return False
    return True


class View:
    """Prints tokens as they come: each line of cells once it is full."""

    def __init__(self, tokenizer: Tokenizer, console: Console) -> None:
        self.tokenizer, self.console = tokenizer, console
        self.width = max(console.width, MIN_WIDTH)
        self.palette = palette(console)
        self.num_tokens = 0
        self._shown: dict[int, tuple[list[Unit], bool]] = {}
        self._clear()

    def _clear(self) -> None:
        self._pieces, self._ids, self._filled = Text(), Text(), 0
        self._gaps = 0, 0
        """The spaces between the last cell and the next one, in the line of pieces and in that of ids."""

    def add(self, ids: Iterable[int]) -> None:
        for id in ids:
            self._add(id)

    def _add(self, id: int) -> None:
        parts, is_special = self._token(id)
        style = self.palette.special if is_special else self.palette.tokens[self.num_tokens % 2]
        self.num_tokens += 1
        label = str(id)
        for cell in _cut(parts, self.width):
            room = sum(unit.width for unit in cell)
            width = max(room, len(label))
            if self._filled and self._filled + 1 + width > self.width:
                self._end_row()
            if self._filled:
                self._pieces.append(" " * self._gaps[0])
                self._ids.append(" " * self._gaps[1])
                self._filled += 1
            for kind, alike in groupby(cell, lambda unit: unit.kind):
                mark = getattr(self.palette, kind) if kind and not is_special else ""
                self._pieces.append("".join(unit.text for unit in alike), f"{style} {mark}".strip())
            self._ids.append(label, self.palette.id)
            self._gaps = width - room + 1, width - len(label) + 1
            self._filled += width
            label = ""
        if any(unit.text in MARKS["\n"] for unit in parts):
            self._end_row()

    def _token(self, id: int) -> tuple[list[Unit], bool]:
        """What is shown for a token, and whether it is a special one."""
        if id not in self._shown:
            piece = self.tokenizer.piece(id)
            attributes = self.tokenizer.vocab[id].attributes
            shown = units(piece, self.console.encoding)
            if TokenAttribute.BYTE in attributes:
                shown = [unit._replace(kind=unit.kind or "byte") for unit in shown]
            self._shown[id] = shown, bool(attributes & SPECIAL)
        return self._shown[id]

    def _end_row(self) -> None:
        for line in (self._pieces, self._ids):
            self.console.print(line, soft_wrap=True)
        self._clear()

    def end(self, *, total: bool = False, mark: str = "") -> None:
        """Prints what does not fill a line, and perhaps the number of tokens, with a mark after it."""
        if self._filled:
            self._end_row()
        if total:
            self.console.print(f"{self.num_tokens} token{'' if self.num_tokens == 1 else 's'}{mark}", style="dim")


def _cut(parts: list[Unit], width: int) -> Iterator[list[Unit]]:
    """The units of a token in as many cells as it takes, one if it fits on a line."""
    cell: list[Unit] = []
    filled = 0
    for unit in parts:
        if filled + unit.width > width:
            yield cell
            cell, filled = [], 0
        cell.append(unit)
        filled += unit.width
    yield cell


def console() -> Console:
    """Standard output as rich writes to it: coloured if `wants_colors`, as wide as the window."""
    return Console(
        file=sys.stdout,
        width=shutil.get_terminal_size().columns,
        force_terminal=wants_colors() or None,
        no_color=not wants_colors(),
        highlight=False,
        markup=False,
        emoji=False,
    )


def palette(console: Console) -> Palette:
    """The styles that a console can show."""
    if console.no_color or console.color_system is None:
        return NONE
    return FEW if console.color_system == "standard" else MANY
