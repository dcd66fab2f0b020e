"""Damage to values of JSON: each value in turn is replaced by others, or missing."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

DAMAGE: tuple[Any, ...] = (
    *(None, True, -1, 3, 1 << 40, 1 << 70, 10**4000, 1e400, 1.5, "", "x", "../x", "/dev/zero", "\ud800"),
    *([], [[]], {}, {"x": 1}),
)
GONE = object()


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of all values in JSON."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in items:
        yield from places(each, (*path, key))


def damaged(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    """A value with another one at a place, or without it."""
    if not path:
        return None if new is GONE else new
    value = copy.deepcopy(value)
    *outer, last = path
    inner = value
    for key in outer:
        inner = inner[key]
    if new is GONE:
        del inner[last]
    else:
        inner[last] = new
    return value


def cases(document: Any) -> list[tuple[tuple[Any, ...], Any]]:
    """Places in a document, each with what to put there."""
    return [(path, new) for path in places(document) for new in (*DAMAGE, GONE) if path or new is not GONE]
