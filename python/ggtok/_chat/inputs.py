"""What a caller passes to a template: checked, copied into plain containers, every string with its origin.

Complexity: O(n) for n characters and elements.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from typing import Any, NamedTuple

from .text import Origin, Text

MAX_NESTING = 100
"""Containers inside containers: far more than any message needs, far below Python's recursion limit."""

ROLES = frozenset(("system", "developer", "user", "assistant", "tool", "function"))
"""Names of roles that count as the template's text, in addition to those in the template itself."""

REASONING = ("reasoning_content", "thinking", "reasoning")
"""Names of a message's reasoning. The first is the one that templates read."""

SPECIAL = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")
"""Variables whose text is the template's, even if the caller passes one."""


class Given(NamedTuple):
    """A conversation and everything else that a template is given."""

    messages: Any
    tools: Any
    documents: Any
    variables: Mapping[str, Any]
    special: Mapping[str, str]
    """Texts of special tokens by the name of their variable."""
    now: datetime
    undefined: tuple[str, ...] = ()
    """Which of `tools` and `documents` the template does not see where they are `None`."""


class Inputs(NamedTuple):
    """The variables of a template."""

    variables: dict[str, Any]
    size: int
    """Units of all values: one each, and one for each 64 characters of a string."""
    turns: dict[int, int]
    """The number of each message by the id of its mapping."""
    roles: list[str]
    """The role of each message, or an empty string."""
    leaves: dict[tuple[object, ...], int]
    """The number of each string of a message by its place, such as `(2, "content")`."""


class Reader:
    """Copies values. `traced` makes each string a `Text`, and `constants` are the strings that the template contains.

    Strings are numbered from `first_leaf` on.
    """

    def __init__(self, traced: bool, constants: frozenset[str], first_leaf: int = 0) -> None:
        self.traced, self.names = traced, ROLES | constants
        self.size = 0
        self.leaves: dict[tuple[object, ...], int] = {}
        self._first_leaf = first_leaf
        self._message: int | None = None

    def message(self, row: Any, index: int) -> tuple[dict[str, Any], str]:
        """A copy of the message with this number, and its role or an empty string."""
        self._message = index
        message = self.copy(row, ("messages", index))
        self._message = None
        role = message.get("role")
        return message, str(role) if isinstance(role, str) else ""

    def variables(self, given: Given) -> dict[str, Any]:
        """All variables except the messages."""
        result: dict[str, Any] = {name: _trusted(text, self.traced) for name, text in given.special.items()}
        for name, value in given.variables.items():
            named = name in SPECIAL and isinstance(value, str)
            result[name] = _trusted(value, self.traced) if named else self.copy(value, (name,))
        for name, rows in (("tools", given.tools), ("documents", given.documents)):
            if rows is not None or name not in given.undefined:
                result[name] = None if rows is None else self.copy(rows_of(rows, name), (name,))
        return result

    def copy(self, value: Any, place: tuple[object, ...]) -> Any:
        """A copy out of `None`, `bool`, `int`, `float`, `str`, lists, tuples and mappings."""
        if len(place) > MAX_NESTING:
            raise ValueError(f"{_name(place[:3])} is nested more than {MAX_NESTING} deep")
        self.size += 1
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, str):
            return self.string(str.__str__(value), place)
        if isinstance(value, (int, float)):
            return int(value) if isinstance(value, int) else float(value)
        if isinstance(value, Mapping):
            return {self.key(key, place): self.copy(item, (*place, key)) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            items = [self.copy(item, (*place, index)) for index, item in enumerate(value)]
            return tuple(items) if isinstance(value, tuple) else items
        mapping = _as_mapping(value)
        if mapping is not None:
            return self.copy(mapping, place)
        kinds = "str, numbers, bool, None, lists and mappings"
        raise TypeError(f"{_name(place)} must consist of {kinds}, not {type(value).__name__}")

    def key(self, key: object, place: tuple[object, ...]) -> object:
        if isinstance(key, str):
            self.size += 1
            return self.string(str.__str__(key), (*place, key, "key"))
        if key is None or isinstance(key, (bool, int, float)):
            return key
        raise TypeError(f"a key of {_name(place)} must be str, not {type(key).__name__}")

    def string(self, text: str, place: tuple[object, ...]) -> str:
        self.size += len(text) // 64
        if not self.traced:
            return text
        # Only the role of a message, not one inside a tool call.
        named = len(place) == 3 and place[0] == "messages" and place[2] == "role" and text in self.names
        place = place[1:] if place[0] == "messages" else place
        leaf = self.leaves.setdefault(place, self._first_leaf + len(self.leaves))
        return Text.of(text, Origin(named, self._message, None if named else leaf))


def read(given: Given, traced: bool, constants: frozenset[str]) -> Inputs:
    """The variables of a template. `constants` are the strings that the template contains.

    Raises:
        TypeError: A value is of a type that templates cannot use; the message names its place.
        ValueError: There is no message, or values are nested too deeply.
    """
    reader = Reader(traced, constants)
    chat, turns, roles = [], {}, []
    for index, row in enumerate(messages_of(given.messages)):
        message, role = reader.message(row, index)
        chat.append(message)
        turns[id(message)] = index
        roles.append(role)
    variables = {**reader.variables(given), "messages": chat}
    return Inputs(variables, reader.size, turns, roles, reader.leaves)


def messages_of(messages: Any) -> list[dict[str, Any]]:
    """Messages as mappings. Raises `TypeError` for one of another type, and `ValueError` if there are none."""
    rows = rows_of(messages, "messages")
    if not rows:
        raise ValueError("there are no messages")
    return [message_of(row, index) for index, row in enumerate(rows)]


def _trusted(text: str, traced: bool) -> str:
    return Text.of(text, Origin(True)) if traced else text


def rows_of(values: Any, name: str) -> list[Any]:
    if isinstance(values, (str, bytes, Mapping)) or not isinstance(values, Iterable):
        raise TypeError(f"{name} must be a list of mappings, not {type(values).__name__}")
    rows = [value for value in values]  # noqa: C416 (list() would believe a wrong length hint)
    for index, row in enumerate(rows if name == "documents" else ()):
        if not isinstance(row, Mapping):
            raise TypeError(f"documents[{index}] must be a mapping, not {type(row).__name__}")
    return rows


def message_of(row: Any, index: int) -> dict[str, Any]:
    """A message without keys whose value is `None`, and its reasoning under the name that templates read.

    Source: transformers' `apply_chat_template` and `_alias_reasoning_fields`.
    """
    mapping = row if isinstance(row, Mapping) else _as_mapping(row)
    if mapping is None:
        raise TypeError(f"messages[{index}] must be a mapping, not {type(row).__name__}")
    message = {key: value for key, value in mapping.items() if value is not None}
    reasoning = next((message[name] for name in REASONING if name in message), None)
    if reasoning is not None:
        message = {"thinking": reasoning, **message, "reasoning_content": reasoning}
    return message


def _as_mapping(value: Any) -> dict[str, Any] | None:
    """The fields of a dataclass or of a pydantic model."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    dump = getattr(value, "model_dump", None)
    return dump() if callable(dump) and not isinstance(value, type) else None


def _name(place: tuple[object, ...]) -> str:
    """A place as it is written in Python: `messages[2]['content']`."""
    return str(place[0]) + "".join(f"[{part!r}]" for part in place[1:])
