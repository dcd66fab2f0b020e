"""What a caller passes as lists and dicts. Complexity: O(elements)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

MAX_NESTING = 100
"""Containers inside containers. Deeper ones are refused when they are rendered."""


def listed(value: Any) -> Any:
    """Anything that can be iterated over, such as a generator, as a list. The rest stays."""
    if isinstance(value, (list, str, bytes, Mapping)) or not isinstance(value, Iterable):
        return value
    return [item for item in value]  # noqa: C416 (list() would believe a wrong length hint)


def copied(value: Any) -> Any:
    """A copy out of what JSON consists of; dataclasses and pydantic models become their fields.

    Without recursion: the caller may have left little of Python's stack.
    """
    whole = [value]
    places: list[tuple[Any, Any, int]] = [(whole, 0, 0)]
    while places:
        place, key, depth = places.pop()
        value = place[key] = _opened(place[key])
        if depth < MAX_NESTING and isinstance(value, (dict, list)):
            places += [(value, key, depth + 1) for key in (value if isinstance(value, dict) else range(len(value)))]
    return whole[0]


def _opened(value: Any) -> Any:
    """A shallow copy of a container. Anything else is returned unchanged."""
    if isinstance(value, Mapping):
        return dict(value.items())
    if isinstance(value, (list, tuple)):
        return [*value]
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: getattr(value, each.name) for each in fields(value)}
    dump = getattr(value, "model_dump", None)
    return dump() if callable(dump) and not isinstance(value, type) else value
