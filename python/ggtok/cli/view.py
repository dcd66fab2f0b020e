"""The token view: a text cut into its tokens on alternating backgrounds, with the ids listed after it.

The text stays in one piece: its lines end where they ended, and long ones are cut at the window's edge. A space is a
dot. Where there are no colours, a bar stands between tokens. What a terminal would obey, hide or join to its neighbour
is escaped: control characters, bytes that are not UTF-8, formatting characters such as joiners; and a combining mark
that begins a token gets a dotted circle to stand on.
"""

from __future__ import annotations

import shutil
import sys
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple, TypeAlias

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

MIN_WIDTH = 10
"""The narrowest window that is assumed: an id and an escape fit."""

MAX_IDS = 1000
"""How many ids are listed after a text, which may be of any length."""


@dataclass(frozen=True)
class Palette:
    """Styles in rich's words. Backgrounds set their own foreground, so they suit light and dark windows."""

    tokens: tuple[str, str]
    special: tuple[str, str]
    id: str
    mark: str
    """Of what is shown in place of white space and invisible characters."""
    byte: str
    differing: tuple[str, str]
    """Of tokens that another tokenizer cuts differently."""
    bar: bool = False
    """Whether bars stand between tokens."""


MANY = Palette(
    tokens=("color(16) on color(153)", "color(16) on color(223)"),
    special=("bold color(231) on color(90)", "bold color(231) on color(54)"),
    id="dim",
    mark="color(242)",
    byte="bold color(124)",
    differing=("bold underline color(16) on color(210)", "bold underline color(16) on color(224)"),
)
"""For 256 colours and more: blue and sand, which the colour-blind tell apart."""

FEW = Palette(
    tokens=("black on cyan", "black on yellow"),
    special=("bold white on magenta", "bold white on blue"),
    id="",
    mark="",
    byte="underline",
    differing=("bold white on red", "bold white on magenta"),
)
"""For the eight colours that every colour terminal has."""

NONE = Palette(("", ""), ("bold", "bold"), "dim", "dim", "underline", ("bold", "bold"), bar=True)
"""For NO_COLOR, which allows brightness and lines. A dumb terminal shows neither."""


Row: TypeAlias = list[tuple[str, str]]
"""The texts of a line with their styles."""


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
            mark = MARKS[char][not has(encoding, MARKS[char][0])]
            shown.append(Unit(mark, len(mark), "mark"))
        elif (
            unicodedata.category(char)[0] in "CZ"
            or char in CHANGES_WIDTH
            or (char in SKIN_TONES and not stands_alone)
            or not has(encoding, char)
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


def bar(encoding: str) -> str:
    """What stands between tokens."""
    return "│" if has(encoding, "│") else "|"


def assembled(row: Row, label: str = "") -> Text:
    """A line after a label. Neighbours of one style are joined."""
    alike = groupby(row, itemgetter(1))
    return Text.assemble((label, "dim"), *(("".join(text for text, _ in part), style) for style, part in alike))


def has(encoding: str, char: str) -> bool:
    """Whether an encoding has a character."""
    try:
        char.encode(encoding)
    except UnicodeEncodeError:
        return False
    return True


class View:
    """Prints tokens as they come: each line of the window once it is full."""

    def __init__(self, tokenizer: Tokenizer, console: Console) -> None:
        self.tokenizer, self.console = tokenizer, console
        self.width = max(console.width, MIN_WIDTH)
        self.palette = palette(console)
        self.num_tokens = 0
        self._bar = bar(console.encoding) * self.palette.bar
        self._shown: dict[int, tuple[list[Unit], bool]] = {}
        self._ids: list[int] = []
        self._num_ids = 0
        self._row: Row = []
        """What the line has so far."""
        self._filled = 0

    def add(self, ids: Iterable[int]) -> None:
        for id in ids:
            self._add(id)

    def _add(self, id: int) -> None:
        parts, is_special = self._token(id)
        style = (self.palette.special if is_special else self.palette.tokens)[self.num_tokens % 2]
        self.num_tokens += 1
        self._num_ids += 1
        if len(self._ids) < MAX_IDS:
            self._ids.append(id)
        if self._filled and self._bar:
            self._place(Unit(self._bar, 1), self.palette.mark)
        for unit in parts:
            mark = getattr(self.palette, unit.kind) if unit.kind and not is_special else ""
            self._place(unit, f"{style} {mark}".strip())
            if unit.text in MARKS["\n"]:
                self._end_row()

    def _place(self, unit: Unit, style: str) -> None:
        """Puts a unit into the row, or into the next one if it does not fit."""
        if self._filled + unit.width > self.width:
            self._end_row()
        self._row.append((unit.text, style))
        self._filled += unit.width

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
        self.console.print(assembled(self._row), soft_wrap=True)
        self._row, self._filled = [], 0

    def end(self, *, total: bool = False, mark: str = "") -> None:
        """Prints what does not fill a line, the ids, and perhaps the number of tokens, with a mark after it."""
        if self._filled:
            self._end_row()
        for id in self._ids:
            self._word(str(id))
        if more := self._num_ids - len(self._ids):
            for word in f"… and {more:,} more: --ids writes all of them".split():
                self._word(word if has(self.console.encoding, word) else "...")
        if self._filled:
            self._end_row()
        self._ids, self._num_ids = [], 0
        if total:
            self.console.print(f"{self.num_tokens} token{'' if self.num_tokens == 1 else 's'}{mark}", style="dim")

    def _word(self, word: str) -> None:
        """Puts a word of the list of ids into the row, after a space."""
        if self._filled and self._filled + 1 + len(word) > self.width:
            self._end_row()
        word = f" {word}" if self._filled else word
        self._row.append((word, self.palette.id))
        self._filled += len(word)


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
