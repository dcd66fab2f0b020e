"""The token view: a text cut into its tokens on four backgrounds in turn, with the ids listed after it.

The text stays in one piece: its lines end where they ended, and long ones are broken between tokens. A space is a dot.
Where there are no colours, a bar stands between tokens. A character that several tokens share is drawn in the first of
them, and each of the others has a sign that points back to it. What a terminal would obey or hide is escaped: control
characters, bytes that are not UTF-8, formatting characters; and a combining mark that begins a token gets a dotted
circle to stand on.
"""

from __future__ import annotations

import os
import shutil
import sys
import unicodedata
from codecs import getincrementaldecoder
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby, takewhile, zip_longest
from operator import itemgetter
from typing import NamedTuple, TypeAlias

from .. import TokenAttribute, Tokenizer
from ..lab.explain.cells import cell_len
from .output import painted, wants_colors

SPECIAL = TokenAttribute.CONTROL | TokenAttribute.USER_DEFINED | TokenAttribute.UNKNOWN

MARKS = {" ": ("·", "_"), "\n": ("↵", "\\n"), "\t": ("→", "\\t"), "\r": ("␍", "\\r")}
"""What is shown for white space, and what is shown if the encoding lacks it."""

SHARED = ("\u2039", "<")
"""What is shown for a token inside a character, likewise."""

JOINER, EMOJI_STYLE = "\u200d", "\ufe0f"
SKIN_TONES = frozenset(map(chr, range(0x1F3FB, 0x1F400)))

MIN_WIDTH = 10
"""The narrowest window that is assumed: an id and an escape fit."""

MAX_IDS = 1000
"""How many ids are listed after a text, which may be of any length."""


@dataclass(frozen=True)
class Palette:
    """Styles as codes of the terminal. Backgrounds set their own foreground, so they suit light and dark windows."""

    tokens: tuple[str, ...]
    special: tuple[str, ...]
    dim: str
    mark: str
    """Of what is shown in place of white space and invisible characters."""
    byte: str
    differing: tuple[str, ...]
    """Of tokens that another tokenizer cuts differently."""
    strong: str = "1"
    good: str = ""
    """Of good news."""
    bar: bool = False
    """Whether bars stand between tokens."""


MANY = Palette(
    tokens=tuple(f"38;5;16;48;5;{color}" for color in (153, 223, 151, 183)),
    special=("1;38;5;231;48;5;90", "1;38;5;231;48;5;54"),
    dim="2",
    mark="38;5;242",
    byte="1;38;5;124",
    differing=("1;4;38;5;16;48;5;210", "1;4;38;5;16;48;5;224"),
    good="32",
)
"""For terminals, all of which know 256 colours; Linux's console shows the nearest of its own. The colour-blind tell
each from the next."""

NONE = Palette(("",), ("1",), "2", "2", "4", ("1",), bar=True)
"""For NO_COLOR, which allows brightness and lines."""

PLAIN = Palette(("",), ("",), "", "", "", ("",), strong="", bar=True)
"""For a pipe or a dumb terminal, which show neither."""


class Screen(NamedTuple):
    """What standard output shows."""

    width: int
    palette: Palette
    encoding: str = "utf-8"


def screen() -> Screen:
    """Standard output, as wide as the window."""
    without = NONE if sys.stdout.isatty() and os.environ.get("TERM") != "dumb" else PLAIN
    palette = MANY if wants_colors() else without
    return Screen(shutil.get_terminal_size().columns, palette, sys.stdout.encoding)


Row: TypeAlias = list[tuple[str, str]]
"""The texts of a line with their styles."""


class Unit(NamedTuple):
    """A part of a piece that is not cut: a character with what combines with it, or an escape."""

    text: str
    width: int
    """The most columns that a terminal gives it: terminals disagree on sequences of emoji."""
    kind: str = ""
    """What marks it: `mark` for an escape or white space, `byte` for a byte that is not a character."""


@lru_cache(1 << 14)
def units(piece: bytes, encoding: str = "utf-8") -> tuple[Unit, ...]:
    """What is shown for a piece, which may be any bytes, on a terminal with this encoding. O(length)."""
    shown: list[Unit] = []
    chars = piece.decode("utf-8", "surrogateescape")
    for char, after in zip_longest(chars, chars[1:], fillvalue=""):
        code, last = ord(char), shown[-1] if shown and not shown[-1].kind else None
        if "\udc80" <= char <= "\udcff":
            shown.append(Unit(f"\\x{code - 0xDC00:02x}", 4, "byte"))
        elif char in MARKS:
            mark = MARKS[char][not has(encoding, MARKS[char][0])]
            shown.append(Unit(mark, len(mark), "mark"))
        elif last and has(encoding, char) and _combines(last.text, char, after):
            shown[-1] = Unit(last.text + char, last.width + cell_len(char) + (char == EMOJI_STYLE))
        elif unicodedata.category(char)[0] in "CZ" or char == EMOJI_STYLE or not has(encoding, char):
            escape = f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
            shown.append(Unit(escape, len(escape), "mark"))
        elif width := cell_len(char):
            shown.append(Unit(char, width))
        else:
            shown.append(Unit("◌" + char, 1))
    return tuple(shown)


def _combines(before: str, char: str, after: str) -> bool:
    """Whether a character is drawn together with the one before it."""
    is_emoji = unicodedata.category(before[0]) == "So"
    if is_emoji and (char in SKIN_TONES or (char == JOINER and after and unicodedata.category(after) == "So")):
        return True
    return before[-1] == JOINER or unicodedata.category(char) in ("Mn", "Me")


def bar(encoding: str) -> str:
    """What stands between tokens."""
    return "│" if has(encoding, "│") else "|"


def assembled(row: Row) -> str:
    """A line. Neighbours of one style are joined."""
    return "".join(painted("".join(text for text, _ in part), style) for style, part in groupby(row, itemgetter(1)))


def both(style: str, mark: str) -> str:
    """Two styles as one, of which the second one wins."""
    return ";".join(filter(None, (style, mark)))


def has(encoding: str, char: str) -> bool:
    """Whether an encoding has a character."""
    try:
        char.encode(encoding)
    except UnicodeEncodeError:
        return False
    return True


class View:
    """Prints tokens as they come: each line of the window once it is full."""

    def __init__(self, tokenizer: Tokenizer, screen: Screen) -> None:
        self.tokenizer, self.palette, self.encoding = tokenizer, screen.palette, screen.encoding
        self.width = max(screen.width, MIN_WIDTH)
        self.num_tokens = 0
        self._bar = bar(screen.encoding) * self.palette.bar
        self._tokens: dict[int, tuple[bytes, TokenAttribute]] = {}
        self._decoder = getincrementaldecoder("utf-8")("replace")
        self._held: list[tuple[bytes, TokenAttribute]] = []
        """Tokens that are not shown yet: the last one ends inside a character."""
        self._ids: list[int] = []
        self._num_ids = 0
        self._row: Row = []
        """What the line has so far."""
        self._filled = 0

    def add(self, ids: Iterable[int]) -> None:
        for id in ids:
            if id not in self._tokens:
                self._tokens[id] = self.tokenizer.piece(id), self.tokenizer.vocab[id].attributes
            self._held.append(self._tokens[id])
            self._num_ids += 1
            if len(self._ids) < MAX_IDS:
                self._ids.append(id)
            self._decoder.decode(self._tokens[id][0])
            if not self._decoder.getstate()[0]:
                self._show()

    def _show(self) -> None:
        """Shows the tokens that are held, each with the characters that begin in it."""
        chars = b"".join(piece for piece, _ in self._held).decode("utf-8", "surrogateescape")
        at = start = end = 0
        for piece, attributes in self._held:
            shown = [Unit(SHARED[not has(self.encoding, SHARED[0])], 1, "mark")] if piece and start > end else []
            first, end = at, end + len(piece)
            while start < end:
                start += len(chars[at].encode("utf-8", "surrogateescape"))
                at += 1
            shown += units(chars[first:at].encode("utf-8", "surrogateescape"), self.encoding)
            self._place(shown, attributes)
        self._held = []

    def _place(self, shown: list[Unit], attributes: TokenAttribute) -> None:
        """Puts a token into the row, or into the next one if it does not fit."""
        is_special = bool(attributes & SPECIAL)
        styles = self.palette.special if is_special else self.palette.tokens
        style = styles[self.num_tokens % len(styles)]
        self.num_tokens += 1
        if self._filled:
            if self._bar and self._filled < self.width:
                self._put(Unit(self._bar, 1), self.palette.mark)
            if self._filled + sum(unit.width for unit in takewhile(_is_inside, shown)) > self.width:
                self._end_row()
        for unit in shown:
            if self._filled + unit.width > self.width:
                self._end_row()
            kind = unit.kind or "byte" * (TokenAttribute.BYTE in attributes)
            self._put(unit, both(style, getattr(self.palette, kind) if kind and not is_special else ""))
            if not _is_inside(unit):
                self._end_row()

    def _put(self, unit: Unit, style: str) -> None:
        self._row.append((unit.text, style))
        self._filled += unit.width

    def _end_row(self) -> None:
        print(assembled(self._row))
        self._row, self._filled = [], 0

    def end(self, *, total: bool = False, mark: str = "") -> None:
        """Prints what does not fill a line, the ids, and perhaps the number of tokens, with a mark after it."""
        self._decoder.reset()
        self._show()
        if self._filled:
            self._end_row()
        for id in self._ids:
            self._word(str(id))
        if more := self._num_ids - len(self._ids):
            for word in f"… and {more:,} more: --ids writes all of them".split():
                self._word(word if has(self.encoding, word) else "...")
        if self._filled:
            self._end_row()
        self._ids, self._num_ids = [], 0
        if total:
            print(painted(f"{self.num_tokens} token{'' if self.num_tokens == 1 else 's'}{mark}", self.palette.dim))

    def _word(self, word: str) -> None:
        """Puts a word of the list of ids into the row, after a space."""
        if self._filled and self._filled + 1 + len(word) > self.width:
            self._end_row()
        word = f" {word}" if self._filled else word
        self._put(Unit(word, len(word)), self.palette.dim)


def _is_inside(unit: Unit) -> bool:
    """Whether the line continues after a unit."""
    return unit.text not in MARKS["\n"]
