"""A difference in words, and as one word that repeats its call."""

from __future__ import annotations

import ast
import base64
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ...errors import GgtokError
from .aborts import last_words
from .serve import Answer, Query

SHOWN = 48
"""The most ids or bytes of an answer that are printed; the place of the first difference is always printed."""


@dataclass(frozen=True)
class Difference:
    """One call that ggtok and llama.cpp answer differently, or that ends llama.cpp for a reason that is not known."""

    query: Query
    """The call's name and its arguments."""
    reference: Answer
    """llama.cpp's answer: `("ok", value)`, `("error", names, message)` or `("died", how, message)`."""
    ours: Answer
    """ggtok's."""
    origin: str
    """Where the text comes from."""
    changes: tuple[str, ...] = ()
    """The codes of the changes of llama.cpp that explain it, together; none if it is unexplained."""

    @property
    def call(self) -> str:
        """The call as Python code."""
        return call(self.query)

    @property
    def token(self) -> str:
        """The call as one word, which `ggtok verify --repeat` takes."""
        return pack(list(self.query))

    def lines(self) -> Iterator[str]:
        """The difference, line by line."""
        yield f"call       {_short(self.call)}"
        yield f"from       {self.origin}"
        if self.changes:
            yield f"known as   {' and '.join(self.changes)}"
        yield f"llama.cpp  {_shown(self.reference)}"
        yield f"ggtok      {_shown(self.ours)}"
        if (at := first_difference(self.reference, self.ours)) is not None:
            yield f"differ at  {at}"

    def to_dict(self) -> dict[str, object]:
        """For JSON."""
        names = {"call": self.call, "from": self.origin, "changes": [*self.changes]}
        answers = {"llama.cpp": _shown(self.reference), "ggtok": _shown(self.ours)}
        return {**names, **answers, "at": first_difference(self.reference, self.ours), "token": self.token}


def call(query: Query) -> str:
    """The query as Python code."""
    kind, *arguments = query
    names = {"encode": ["", "add_special=", "parse_special="], "decode": ["", "remove_special=", "unparse_special="]}
    named = zip(names.get(kind, [""] * len(arguments)), arguments, strict=True)
    return f"{kind}({', '.join(f'{name}{argument!r}' for name, argument in named)})"


def pack(values: list[Any]) -> str:
    """A call in one word for the command line."""
    return base64.urlsafe_b64encode(repr(values).encode()).decode()


def unpack(word: str) -> list[Any]:
    """What `pack` packed. Raises `GgtokError` if it did not."""
    try:
        values = ast.literal_eval(base64.b64decode(word, altchars=b"-_", validate=True).decode())
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        values = None
    if not isinstance(values, list) or not values:
        raise GgtokError(f"{word[:40]!r} is not the call of a difference")
    return values


def _short(text: str) -> str:
    return text if len(text) <= 1000 else f"{text[:900]}... ({len(text)} characters) ...{text[-60:]}"


def _shown(answer: Answer) -> str:
    kind, *rest = answer
    if kind == "died":
        how, message = rest
        return f"ended by {how}: {last_words(message)}" if message else f"ended by {how}"
    if kind == "error":
        return f"{rest[0][0]}: {rest[1]}"
    value: Any = rest[0]
    if isinstance(value, (list, bytes)) and len(value) > SHOWN:
        return f"{value[:SHOWN]!r}... ({len(value)} in all)"
    return repr(value)


def first_difference(reference: Answer, ours: Answer) -> int | str | None:
    """The index at which two lists or byte strings first differ, or the keys at which two mappings do."""
    if reference[0] != "ok" or ours[0] != "ok":
        return None
    left, right = reference[1], ours[1]
    if isinstance(left, dict) and isinstance(right, dict):
        return ", ".join(f"{key} {left[key]} / {right.get(key)}" for key in left if left[key] != right.get(key))
    if not isinstance(left, (list, tuple, bytes)):
        return None
    return next((at for at, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), min(len(left), len(right)))
