"""JSON as instances of dataclasses, by the type hints of their fields."""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import fields
from functools import cache, reduce
from operator import or_
from types import NoneType, UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from ..trace import Text

T = TypeVar("T")


def to_bytes(text: Text) -> bytes:
    """The bytes of a text."""
    return text if isinstance(text, bytes) else text.encode("utf-8")


def to_text(text: bytes) -> Text:
    """Bytes as they are in a trace."""
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError:
        return text


def convert(cls: type[T], value: object) -> T:
    """A JSON object as a dataclass. Arrays become tuples, `{"base64": ...}` bytes, a union the class of its `kind`.

    A field whose name is a keyword has an underscore after it in Python. `null` in place of a number stands for
    one that JSON cannot hold.

    Raises ValueError if the object's keys are not the class's fields.
    """
    result: T = _converter(cls)(value)  # type: ignore[arg-type]
    return result


@cache
def _converter(hint: Any) -> Callable[[Any], Any]:
    """What turns the JSON of a type hint into its value."""
    if hint is float:
        return lambda value: float("nan") if value is None else float(value)
    if hint == Text:
        return lambda value: base64.b64decode(value["base64"]) if isinstance(value, dict) else value
    if get_origin(hint) is tuple:
        of_item = _converter(get_args(hint)[0])
        return lambda value: tuple([of_item(item) for item in value])
    if isinstance(hint, UnionType):
        options = [option for option in get_args(hint) if option is not NoneType]
        if NoneType in get_args(hint):
            some = _converter(reduce(or_, options))
            return lambda value: None if value is None else some(value)
        by_kind = {option.kind: _converter(option) for option in options}
        return lambda value: by_kind[value["kind"]]({key: each for key, each in value.items() if key != "kind"})
    return _of_object(hint) if hasattr(hint, "__dataclass_fields__") else lambda value: value


def _of_object(cls: Any) -> Callable[[Any], Any]:
    converters: list[tuple[str, Callable[[Any], Any]]] = []

    def from_object(value: dict[str, Any]) -> Any:
        if not converters:  # not before, because a class may hold itself
            hints = get_type_hints(cls)
            converters.extend((field.name, _converter(hints[field.name])) for field in fields(cls) if field.init)
            keys.update(name.rstrip("_") for name, _ in converters)
        if value.keys() != keys:
            raise ValueError(f"{cls.__name__} has other fields: {sorted(value.keys() ^ keys)}")
        return cls(*[of_field(value[name.rstrip("_")]) for name, of_field in converters])

    keys: set[str] = set()
    return from_object
