"""Adds up what is counted: numbers, and tuples and dicts of them. Of texts that explain a number, the first is kept."""

from __future__ import annotations

from typing import Any


def add(sums: Any, more: Any) -> Any:
    """The sum of two values of the same form. A dict gets what is added to it."""
    if isinstance(sums, dict):
        for key, value in more.items():
            sums[key] = add(sums[key], value) if key in sums else value
        return sums
    if isinstance(sums, tuple):
        return tuple(map(add, sums, more))
    return sums if isinstance(sums, str) else sums + more
