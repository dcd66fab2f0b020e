"""The sentences that people read about steps, which the terminal and the page share: `words.json`."""

from __future__ import annotations

import json
import re
from functools import cache
from importlib.resources import files
from typing import Any

PART = re.compile(r"\*\*|\{(\w+)\}")
"""What is not itself in a sentence: the marks around an emphasis, and places for values."""


@cache
def words() -> dict[str, Any]:
    """All sentences, in groups: `ideas`, `stages`, `captions` and `verdict`."""
    found: dict[str, Any] = json.loads((files(__package__) / "words.json").read_text(encoding="utf-8"))
    return found


def said(key: str, **values: object) -> list[tuple[str, bool]]:
    """A sentence in parts, each with whether it is emphasised. `key` is such as `captions.end`.

    Marks in a value have no meaning.

    Raises:
        KeyError: The sentence is missing, or a value for one of its placeholders.
    """
    group, name = key.split(".")
    sentence, at, strong = words()[group][name], 0, False
    found = []
    for match in PART.finditer(sentence):
        found.append((sentence[at : match.start()], strong))
        if match[1]:
            found.append((str(values[match[1]]), strong))
        else:
            strong = not strong
        at = match.end()
    return [(text, is_strong) for text, is_strong in [*found, (sentence[at:], strong)] if text]


def say(key: str, **values: object) -> str:
    """A sentence without emphasis. See `said`."""
    return "".join(text for text, _ in said(key, **values))
