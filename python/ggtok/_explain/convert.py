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

    Raises ValueError if the object's keys are not the class's fields, in their order.
    """
    result: T = _of_object(cls)(value)  # type: ignore[arg-type]
    return result


@cache
def _converter(hint: Any) -> Callable[[Any], Any] | None:
    """What turns the JSON of a type hint into its value; `None` if it is its value."""
    if hint is float:
        return lambda value: float("nan") if value is None else float(value)
    if hint == Text:
        return lambda value: base64.b64decode(value["base64"]) if isinstance(value, dict) else value
    if get_origin(hint) is tuple:
        of_item = _converter(get_args(hint)[0])
        return tuple if of_item is None else lambda value: tuple([of_item(item) for item in value])
    if isinstance(hint, UnionType):
        options = [option for option in get_args(hint) if option is not NoneType]
        if NoneType in get_args(hint):
            some = _converter(reduce(or_, options))
            return some and (lambda value: None if value is None else some(value))
        by_kind = {option.kind: _of_object(option) for option in options}
        return lambda value: by_kind[value["kind"]]({key: each for key, each in value.items() if key != "kind"})
    return _of_object(hint) if hasattr(hint, "__dataclass_fields__") else None


@cache
def _of_object(cls: Any) -> Callable[[Any], Any]:
    names = [field.name for field in fields(cls) if field.init]
    keys = [name.rstrip("_") for name in names]
    converters: list[tuple[int, Callable[[Any], Any]]] | None = None

    def from_object(value: dict[str, Any]) -> Any:
        nonlocal converters
        if converters is None:  # not before, because a class may hold itself
            hints = get_type_hints(cls)
            found = ((place, _converter(hints[name])) for place, name in enumerate(names))
            converters = [(place, of_field) for place, of_field in found if of_field is not None]
        if [*value] != keys:
            raise ValueError(f"{cls.__name__} has other fields: {[*value]}, not {keys}")
        values = [*value.values()]
        for place, of_field in converters:
            values[place] = of_field(values[place])
        return cls(*values)

    return from_object
