"""JSON schemas of Python functions, from type hints and a Google-style docstring, as tools of a template.

Source: transformers' `get_json_schema`. Deviations: (1) the only types are `None`, `bool`, `int`, `float`, `str`,
`Any`, lists, tuples, mappings, `Literal`, enums and unions of these. Complexity: O(docstring).
"""

from __future__ import annotations

import inspect
import json
import re
import types
from collections.abc import Callable
from enum import Enum
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from ..errors import GgtokError

_TYPES: dict[Any, str] = {
    **{int: "integer", float: "number", str: "string", bool: "boolean", type(None): "null"},
    **{list: "array", tuple: "array", dict: "object"},
}
_SECTION = r"[\n\s]*(?:\n\s*(?:Args|Returns|Raises):|\Z)"


def schemas(tools: Any) -> Any:
    """Tools with the schema of each function in its place. What is neither a function nor a schema is left alone.

    Raises `GgtokError` for a function without docstring, type hints, or a description of each argument.
    """
    if not isinstance(tools, (list, tuple)):
        return tools
    return [schema(tool) if inspect.isfunction(tool) or inspect.ismethod(tool) else tool for tool in tools]


def schema(function: Callable[..., Any]) -> dict[str, Any]:
    name = getattr(function, "__name__", "operation")
    doc = inspect.getdoc(function)
    if not doc:
        raise GgtokError(f"the tool {name} has no docstring")
    about, arguments, returned = _docstring(doc.strip())
    hints = get_type_hints(function)

    properties, required = {}, []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name in ("self", "cls") and parameter.annotation is parameter.empty:
            continue
        if parameter.name not in hints:
            raise GgtokError(f"the argument {parameter.name} of the tool {name} has no type hint")
        if parameter.name not in arguments:
            raise GgtokError(f"the docstring of the tool {name} does not describe the argument {parameter.name}")
        text = arguments[parameter.name]
        row = _of_hint(hints[parameter.name], f"the argument {parameter.name} of the tool {name}")
        choices = re.search(r"\(choices:\s*(.*?)\)\s*$", text, re.IGNORECASE)
        if choices:
            listed = json.loads(choices[1])
            row["enum"] = [choice.strip() if isinstance(choice, str) else choice for choice in listed]
            text = text[: choices.start()].strip()
        properties[parameter.name] = {**row, "description": text}
        if parameter.default is parameter.empty:
            required.append(parameter.name)

    parameters: dict[str, Any] = {"type": "object", "properties": properties}
    if required:
        parameters["required"] = required
    result: dict[str, Any] = {"name": name, "description": about, "parameters": parameters}
    if "return" in hints:
        row = _of_hint(hints["return"], f"the result of the tool {name}")
        result["return"] = {**row, "description": returned} if returned is not None else row
    return {"type": "function", "function": result}


def _docstring(doc: str) -> tuple[str, dict[str, str], str | None]:
    """The description, the arguments' descriptions, and the result's."""
    about = re.match(rf"(.*?){_SECTION}", doc, re.DOTALL)
    block = re.search(rf"\n\s*Args:\n(.*?){_SECTION}", doc, re.DOTALL)
    returned = re.search(r"\n\s*Returns:\n\s*(.*?)[\n\s]*(?:Raises:|\Z)", doc, re.DOTALL)
    arguments: dict[str, str] = {}
    lines = [line for line in (block[1] if block else "").split("\n") if line.strip()]
    margin = min((len(line) - len(line.lstrip()) for line in lines), default=0)
    name = ""
    for line in lines:
        start = re.match(r"(\w+):\s*(.*)", line[margin:])
        if start:
            name = start[1]
            arguments[name] = start[2].strip()
        elif name:
            arguments[name] = f"{arguments[name]} {line.strip()}".strip()
    return about[1].strip() if about else doc, arguments, returned[1].strip() if returned else None


def _of_hint(hint: Any, where: str) -> dict[str, Any]:
    origin, args = get_origin(hint), get_args(hint)
    if hint is Any:
        return {}
    if isinstance(hint, type) and issubclass(hint, Enum):
        return _choices([member.value for member in hint], where)
    if origin is None and hint in _TYPES:
        return {"type": _TYPES[hint]}
    if origin in (Union, types.UnionType):
        return _union([_of_hint(arg, where) for arg in args if arg is not type(None)], type(None) in args)
    if origin is Literal:
        return _choices(list(args), where)
    if origin is list:
        return {"type": "array", "items": _of_hint(args[0], where)}
    if origin is tuple and len(args) > 1 and ... not in args:
        return {"type": "array", "prefixItems": [_of_hint(arg, where) for arg in args]}
    if origin is dict:
        return {"type": "object", "additionalProperties": _of_hint(args[1], where)}
    raise GgtokError(f"{where} has a type that JSON does not have: {hint!r}; pass the schema itself")


def _choices(values: list[Any], where: str) -> dict[str, Any]:
    kinds = {type(value): _TYPES.get(type(value)) for value in values}
    if not values or any(kind in (None, "array", "object") for kind in kinds.values()):
        raise GgtokError(f"{where} has choices that JSON does not have")
    names = list(kinds.values())
    return {"type": names[0] if len(names) == 1 else names, "enum": values}


def _union(rows: list[dict[str, Any]], nullable: bool) -> dict[str, Any]:
    result: dict[str, Any] = {"anyOf": rows}
    if len(rows) == 1:
        result = rows[0]
    elif all(row.keys() == {"type"} and isinstance(row["type"], str) for row in rows):
        names = sorted({row["type"] for row in rows})
        result = {"type": names[0] if len(names) == 1 else names}
    return {**result, "nullable": True} if nullable else result
