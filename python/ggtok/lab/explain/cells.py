"""How many columns of a terminal text takes: a character takes one, two if it is wide, none if it is a mark."""

from __future__ import annotations

from functools import lru_cache
from unicodedata import category, east_asian_width

MARKS = ("Mn", "Me", "Cc", "Cf")
"""Categories of characters that take no column: they combine with the one before, or are not drawn."""


@lru_cache(4096)
def char_len(char: str) -> int:
    """The columns of a character."""
    if category(char) in MARKS or "\u1160" <= char <= "\u11ff":  # the rest of a Hangul syllable
        return 0
    return 2 if east_asian_width(char) in "WF" else 1


def cell_len(text: str) -> int:
    """The columns of a text."""
    return len(text) if text.isascii() and text.isprintable() else sum(map(char_len, text))


def chop_cells(text: str, width: int) -> list[str]:
    """The text in lines of at most `width` columns; a wider character has a line to itself."""
    lines, room = [""], width
    for char in text:
        room -= char_len(char)
        if room < 0 and lines[-1]:
            lines.append("")
            room = width - char_len(char)
        lines[-1] += char
    return lines
