"""Text in the columns of a terminal: how wide it is, and how it is made to fit."""

from __future__ import annotations

import unicodedata

CODES = {"title": "1", "header": "4", "won": "32", "lost": "2", "current": "7"}
"""The terminal's code of a style. They are its own colours, so that they fit light and dark backgrounds."""


def is_combining(character: str) -> bool:
    """Whether a character takes no column of its own."""
    return unicodedata.category(character) in ("Mn", "Me", "Cf")


def columns_of(text: str) -> int:
    """How many columns of a terminal a text takes."""
    if text.isascii():
        return len(text)
    return sum(0 if is_combining(each) else 2 if unicodedata.east_asian_width(each) in "WF" else 1 for each in text)


def fitted(text: str, width: int) -> str:
    """A text that takes at most `width` columns: shortened in the middle where it is longer."""
    if columns_of(text) <= width:
        return text
    room = max(width - 1, 0)
    first = _start(text, (room + 1) // 2)
    last = _start(text[::-1], room - columns_of(first))[::-1]
    while last and is_combining(last[0]):
        last = last[1:]
    return first + "…"[:width] + last


def _start(text: str, width: int) -> str:
    used = 0
    for place, character in enumerate(text):
        used += columns_of(character)
        if used > width:
            return text[:place]
    return text


def padded(text: str, width: int, *, right: bool) -> str:
    """A text with spaces, before it where `right`, to fill `width` columns."""
    space = " " * (width - columns_of(text))
    return space + text if right else text + space


def wrapped(text: str, width: int) -> list[str]:
    """The lines of a sentence; a word that is too long is cut."""
    lines = [""]
    for word in text.split(" "):
        if lines[-1] and columns_of(lines[-1]) + 1 + columns_of(word) > width:
            lines.append("")
        lines[-1] += " " * bool(lines[-1]) + word
        while columns_of(lines[-1]) > width:
            start = _start(lines[-1], width) or lines[-1][0]
            lines[-1:] = [start, lines[-1][len(start) :]]
    return lines


def styled(line: str, style: str, colors: bool) -> str:
    """A line in a style, if there are colours."""
    return f"\x1b[{CODES[style]}m{line}\x1b[0m" if colors and style in CODES else line
