"""Cuts a failing case down to its smallest: delta debugging (Zeller and Hildebrandt, "Simplifying and Isolating
Failure-Inducing Input", 2002, the `ddmin` of its section 3), at most a quadratic number of questions in the number of
items, logarithmic where a single item is to blame.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

Item = TypeVar("Item")


def ddmin(items: list[Item], fails: Callable[[list[Item]], bool]) -> list[Item]:
    """A subsequence that still fails, and passes if any single item is removed."""
    num_parts = 2
    while len(items) >= 2:
        size = -(-len(items) // num_parts)
        for start in range(0, len(items), size):
            rest = items[:start] + items[start + size :]
            if fails(rest):
                items, num_parts = rest, max(num_parts - 1, 2)
                break
        else:
            if size == 1:
                break
            num_parts = min(2 * num_parts, len(items))
    return [] if len(items) == 1 and fails([]) else items


def shrink_text(text: bytes, fails: Callable[[bytes], bool]) -> bytes:
    """The smallest failing text: first by characters, then by bytes, then with plainer characters."""

    def fails_joined(items: list[bytes]) -> bool:
        return fails(b"".join(items))

    characters = ddmin(_split(text), fails_joined)
    singles = ddmin([bytes([byte]) for byte in b"".join(characters)], fails_joined)
    return _simplify(b"".join(singles), fails)


def _simplify(text: bytes, fails: Callable[[bytes], bool]) -> bytes:
    """Replaces each character with the first plain one that keeps the text failing."""
    characters = _split(text)
    for at, character in enumerate(characters):
        for plain in (b"a", b" ", b"1", b"A", b"."):
            if character == plain or fails(b"".join([*characters[:at], plain, *characters[at + 1 :]])):
                characters[at] = plain
                break
    return b"".join(characters)


def _split(text: bytes) -> list[bytes]:
    """Splits into characters; a byte that belongs to none is a separate item."""
    decoded = text.decode("utf-8", "surrogateescape")
    return [character.encode("utf-8", "surrogateescape") for character in decoded]
