"""The story of a trace, as `rust/explain` tells it: its units, in the order in which a reader walks through them.

A unit is one step until it is opened; then each of its inner steps is one. `pictures` draws them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ..._ggtok import face as shown
from ...trace import Text
from .record import Record
from .utf8 import to_bytes

MARK = "\x01"
"""Before and after what a caption emphasises."""


@dataclass(frozen=True, slots=True)
class Unit:
    """A part of a stage."""

    id: int
    """The number by which the story tells it."""
    stage: str
    tokens: range
    """The places of the tokens that are known once it is done."""
    length: int
    """How many steps are inside; none if it does not open."""


class Story:
    """The units of a trace, which are told when they are asked for. O(n) time for n steps."""

    def __init__(self, trace: Record) -> None:
        found = json.loads(trace._raw.story(set()))
        self._raw = trace._raw
        self.idea: str = found["idea"]
        self.stages: dict[str, str] = dict(found["stages"])
        """Their names."""
        self.units = [
            Unit(each["id"], each["stage"], range(*each["tokens"]), each["length"]) for each in found["units"]
        ]

    def told(self, units: Iterable[Unit]) -> dict[int, dict[str, Any]]:
        """What is shown of units, by their numbers: `Told` of `rust/explain/src/story.rs` has the fields."""
        found = json.loads(printable(self._raw.story({unit.id for unit in units})))
        return {each["id"]: each for each in found["units"] if "drawing" in each}


def printable(text: str) -> str:
    """A text of the story with signs for what this terminal cannot print."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else f"⟨{ord(each):04X}⟩" for each in text)


def face(data: bytes) -> str:
    """Bytes as a reader knows them: characters, and in hexadecimal what is a part of one."""
    return printable(shown(data))


def text_face(text: Text) -> str:
    """The same for a text of a trace."""
    return face(to_bytes(text))
