"""A text as a strip of its tokens: contiguous, in turn in two colours, or with a bar between two tokens."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from .cells import cell_len
from .record import Record
from .terminal import styled
from .units import face
from .utf8 import to_bytes

BAR = "│"
SIGN = re.compile(r"⟨[0-9A-F]+⟩|.", re.DOTALL)
"""What is not cut at the end of a line: a character, or what is shown for one that does not print."""


class Part(NamedTuple):
    """A part of the strip."""

    text: str
    style: str
    """`even` and `odd` for tokens, `special` for those that were read or added, and `lost` for what is not cut."""
    end: int
    """Where it ends in the text, in bytes."""


def strip(trace: Record, known: Collection[int] | None = None) -> list[Part]:
    """The parts of a strip. `known` has the places of those that are shown; other text is not cut. O(n) time."""
    text, parts, at, waiting = to_bytes(trace.text), [], 0, 0
    for place, token in enumerate(trace.tokens):
        start, end = max(token.start, at), max(token.end, at)
        if known is None or place in known:
            if start > waiting:
                parts.append(Part(face(text[waiting:start]), "lost", start))
            is_special = token.fragment is None or trace.fragments[token.fragment].token is not None
            # A token inside a character, or one that was added, has no text: its piece stands for it.
            own = text[start:end] if end > start else to_bytes(token.piece or token.text)
            parts.append(Part(face(own), "special" if is_special else ("even", "odd")[place % 2], end))
            waiting = end
        at = end
    if waiting < len(text):
        parts.append(Part(face(text[waiting:]), "lost", len(text)))
    return parts


def lines(parts: Sequence[Part], width: int, colors: bool) -> Iterator[tuple[str, int]]:
    """The parts in lines of at most `width` columns, each with where its last part ends. Without colours there is a bar
    between two parts."""
    line, room, end = "", width, 0
    for place, part in enumerate(parts):
        cell = ""
        signs = SIGN.findall(part.text)
        if signs and cell_len(signs[0]) == 0:
            signs[0] = f"◌{signs[0]}"  # a mark would otherwise be drawn over what is before it
        for each in signs if colors or not place else [BAR, *signs]:
            if cell_len(each) > room:
                yield line + styled(cell, part.style, colors), end
                line, cell, room = "", "", width
            cell += each
            room -= cell_len(each)
            end = part.end
        line += styled(cell, part.style, colors)
    if line:
        yield line, end
