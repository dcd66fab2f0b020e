"""Names in error messages: the ones that were probably meant."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

MOST = 3
"""Names that are shown."""


def nearest(name: str, known: Iterable[str]) -> str:
    """A part of a sentence with the known names that are most like `name`, or a few of all. Empty if there are none."""
    return _nearest(name, tuple(known))


@lru_cache(1)  # many rows of a file lack the same field
def _nearest(name: str, known: tuple[str, ...]) -> str:
    from difflib import get_close_matches

    if near := get_close_matches(name, known, MOST):
        return f": the nearest {'is' if len(near) == 1 else 'are'} {listed(near)}"
    if not known:
        return ""
    more = f" and {len(known) - MOST:,} more" if len(known) > MOST else ""
    return f": there {'is' if len(known) == 1 else 'are'} {listed(known[:MOST])}{more}"


def listed(names: Iterable[str]) -> str:
    """Names in quotes, with commas."""
    return ", ".join(map(repr, names))
