"""A difference in words, and the token that replays it."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from typing import Any

from .child import Answer, Query
from .vocabularies import Target

SHOWN = 48
"""The most ids or bytes of an answer that are printed; the first difference is always printed."""


@dataclass(frozen=True)
class Difference:
    """One query on which the two sides disagree."""

    target: Target
    query: Query
    reference: Answer
    ours: Answer
    origin: str

    def lines(self) -> list[str]:
        """The finding, line by line."""
        lines = [f"DIFFERENCE in {self.query[0]} ({self.origin})", f"  vocabulary  {self.target.name}"]
        if self.target.overrides:
            lines.append(f"  overrides   {json.dumps(self.target.overrides)}")
        lines.append(f"  call        {call(self.query)}")
        lines += [f"  base64      {base64.b64encode(a).decode()}" for a in self.query[1:2] if isinstance(a, bytes)]
        lines += [f"  llama.cpp   {_shown(self.reference)}", f"  ggtok       {_shown(self.ours)}"]
        at = _first_difference(self.reference, self.ours)
        lines += [] if at is None else [f"  differ at   {at}"]
        return [*lines, f"  replay      python -m tests.differential --replay {replay_token(self.target, self.query)}"]


def call(query: Query) -> str:
    """The query as Python code."""
    kind, *arguments = query
    names = {"encode": ["", "add_special=", "parse_special="], "decode": ["", "remove_special=", "unparse_special="]}
    named = zip(names.get(kind, [""] * len(arguments)), arguments, strict=True)
    return f"{kind}({', '.join(f'{name}{argument!r}' for name, argument in named)})"


def replay_token(target: Target, query: Query) -> str:
    """Vocabulary, overrides and query in one word for the command line."""
    plain = [{"b64": base64.b64encode(a).decode()} if isinstance(a, bytes) else a for a in query]
    packed = json.dumps([target.name, target.overrides, plain], separators=(",", ":"))
    return base64.urlsafe_b64encode(packed.encode()).decode()


def read_replay_token(token: str) -> tuple[Target, Query]:
    """Unpacks what `replay_token` packed."""
    name, overrides, plain = json.loads(base64.urlsafe_b64decode(token))
    query = tuple(base64.b64decode(a["b64"]) if isinstance(a, dict) else a for a in plain)
    return Target(name, overrides), query


def _shown(answer: Answer) -> str:
    kind, *rest = answer
    if kind != "ok":
        return f"{kind}: {rest[-1]}" if kind == "died" else f"{rest[0][0]}: {rest[1]}"
    value: Any = rest[0]
    if isinstance(value, (list, bytes)) and len(value) > SHOWN:
        return f"{value[:SHOWN]!r}... ({len(value)} in all)"
    return repr(value)


def _first_difference(reference: Answer, ours: Answer) -> int | str | None:
    if reference[0] != "ok" or ours[0] != "ok":
        return None
    left, right = reference[1], ours[1]
    if isinstance(left, dict) and isinstance(right, dict):
        return ", ".join(f"{key} {left[key]} / {right[key]}" for key in left if left[key] != right[key])
    if not isinstance(left, (list, tuple, bytes)):
        return None
    return next((at for at, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), min(len(left), len(right)))
