"""Values of JSON as the types that dataclasses declare. What a damaged file has instead is an error that names it."""

from __future__ import annotations

from dataclasses import is_dataclass
from functools import cache
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

_hints = cache(get_type_hints)


def typed(value: Any, kind: Any, place: str) -> Any:
    """A value of JSON as a dataclass, list, tuple, dict, union, literal or plain type.

    Raises `ValueError`, with the place of what is wrong, if it is something else.
    """
    origin, parts = get_origin(kind), get_args(kind)
    if kind is Any or (origin is Literal and value in parts):
        return value
    if type(value) is kind and not (kind is int and not 0 <= value < 1 << 63):
        return value
    if isinstance(value, dict) and isinstance(kind, type) and is_dataclass(kind):
        hints = _hints(kind)
        if unknown := value.keys() - hints:
            raise ValueError(f"{place} has an unknown key {min(unknown)!r}")
        found = {name: typed(each, hints[name], f"{place}.{name}") for name, each in value.items()}
        try:
            return kind(**found)
        except TypeError as error:  # a key is missing
            raise ValueError(f"{place}: {error}") from None
    if isinstance(value, dict) and origin is dict:
        keys = {key: int(key) if parts[0] is int and key.isdecimal() and len(key) < 20 else key for key in value}
        return {typed(keys[key], parts[0], place): typed(value[key], parts[1], f"{place}.{key}") for key in value}
    if isinstance(value, list) and origin in (list, tuple):
        kinds = [parts[0]] * len(value) if origin is list or ... in parts else parts
        if len(kinds) == len(value):
            pairs = enumerate(zip(value, kinds, strict=True))
            return origin(typed(each, part, f"{place}[{at}]") for at, (each, part) in pairs)
    if origin in (Union, UnionType):
        for part in parts:
            try:
                return typed(value, part, place)
            except ValueError:
                pass
    raise ValueError(f"{place} is {value!r:.40}, not {getattr(kind, '__name__', kind)}")
