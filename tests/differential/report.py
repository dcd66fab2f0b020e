"""A difference with the vocabulary that it is about, and the token that replays both."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator

from ggtok.lab.verify.report import Difference, pack, unpack
from ggtok.lab.verify.serve import Query

from .vocabularies import Target


def lines(target: Target, difference: Difference) -> Iterator[str]:
    """The finding, line by line."""
    yield f"DIFFERENCE in {difference.query[0]}"
    yield f"  vocabulary {target.name}"
    if target.overrides:
        yield f"  overrides  {json.dumps(target.overrides)}"
    yield from (f"  {line}" for line in difference.lines())
    text = difference.query[1:2]
    yield from (f"  base64     {base64.b64encode(part).decode()}" for part in text if isinstance(part, bytes))
    yield f"  replay     python -m tests.differential --replay {replay_token(target, difference.query)}"


def replay_token(target: Target, query: Query) -> str:
    """Vocabulary, overrides and query in one word for the command line."""
    return pack([target.name, json.dumps(target.overrides), list(query)])


def read_replay_token(token: str) -> tuple[Target, Query]:
    """Unpacks what `replay_token` packed."""
    name, overrides, query = unpack(token)
    return Target(name, json.loads(overrides)), tuple(query)
