"""Text in the columns of a terminal, as rich measures them: cut, padded and wrapped to fit."""

from __future__ import annotations

from .cells import cell_len, chop_cells

CODES = {
    **{"title": "1", "header": "4", "won": "32", "lost": "2", "current": "7"},
    **{"even": "38;5;16;48;5;153", "odd": "38;5;16;48;5;223", "special": "1;38;5;231;48;5;90"},
    **{"error:": "1;31", "warning:": "33", "note:": "36"},
}
"""The terminal's code of each style. They are its own colours, so they fit light and dark backgrounds."""


def fitted(text: str, width: int) -> str:
    """A text that takes at most `width` columns: shortened in the middle if it is longer."""
    if cell_len(text) <= width:
        return text
    if width <= 0:
        return ""
    before, after = width // 2, (width - 1) // 2
    first, last = text[:before], text[len(text) - after :]
    while cell_len(first) > before:
        first = first[:-1]
    while last and (cell_len(last) > after or not cell_len(last[0])):
        last = last[1:]
    return f"{first}…{last}"


def padded(text: str, width: int, *, right: bool = False) -> str:
    """A text filled up with spaces to `width` columns, on its left if `right`."""
    space = " " * (width - cell_len(text))
    return space + text if right else text + space


def wrapped(text: str, width: int) -> list[str]:
    """The lines of a sentence; a word that is too long is cut. Less than a column counts as one."""
    width = max(width, 1)
    if cell_len(text) <= width:
        return [text]
    lines: list[str] = []
    for word in text.split(" "):
        joined = " ".join([*lines[-1:], word])
        if cell_len(joined) <= width:
            lines[-1:] = [joined]
        else:
            lines += chop_cells(word, width)
    return lines


def styled(line: str, style: str, colors: bool) -> str:
    """A line in a style, if there are colours."""
    return f"\x1b[{CODES[style]}m{line}\x1b[0m" if colors and style in CODES else line
