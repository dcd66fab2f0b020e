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


def copied(value: Any, depth: int = 0) -> Any:
    """A copy out of what JSON consists of; dataclasses and pydantic models become their fields."""
    if isinstance(value, str) or depth > MAX_NESTING:
        return value
    if isinstance(value, Mapping):
        return {key: copied(item, depth + 1) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [copied(item, depth + 1) for item in value]
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: copied(getattr(value, each.name), depth + 1) for each in fields(value)}
    dump = getattr(value, "model_dump", None)
    return dump() if callable(dump) and not isinstance(value, type) else value
