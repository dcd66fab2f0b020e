"""What the comparison of two tokenizers on a text comes to, in sentences that the terminal and the page share: those of
`words.json`."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from importlib.resources import files

from ...tokenizer.cuts import Cuts
from .units import face

MOST_PARTS = 8
"""The parts of a stretch that a sentence quotes."""

LONGEST = 40
"""The characters of a part that is shown."""


def verdict(cuts: Cuts, show: Callable[[bytes], str] = face, cut: str = "·") -> list[tuple[str, bool]]:
    """The sentences about two tokenizers, in parts, each with whether it is emphasised.

    Args:
        cuts: How the two cut the text.
        show: Makes a part of the text visible.
        cut: Stands between two parts.
    """
    if cuts.first is None:
        found = said("same" if cuts.same_ids else "other_ids")
    else:
        a, b = (_quoted(parts, show, cut) for parts in (cuts.first.parts_a, cuts.first.parts_b))
        found = said("differ", character=f"{cuts.first.char:,}", a=a, b=b)
        if cuts.num_stretches > 1:
            found += [(" ", False), *said("places", n=f"{cuts.num_stretches:,}")]
    num_a, num_b = cuts.num_tokens_a, cuts.num_tokens_b
    if num_a == num_b:
        counts = said({0: "count_none", 1: "count_one"}.get(num_a, "count"), n=f"{num_a:,}")
    else:
        counts = said("counts", a=f"{num_a:,}", b=f"{num_b:,}")
    return [*found, (" ", False), *counts]


def _quoted(parts: list[bytes], show: Callable[[bytes], str], cut: str) -> str:
    found = [show(part[: 4 * LONGEST]) for part in parts[:MOST_PARTS]]
    shown = cut.join(f"{part[:LONGEST]}…" if len(part) > LONGEST else part for part in found)
    return f"{shown}…" if len(parts) > MOST_PARTS else shown or words()["nothing"]


@cache
def words() -> dict[str, str]:
    """The sentences by name. What is emphasised stands between two `**`."""
    found: dict[str, str] = json.loads((files(__package__) / "words.json").read_text(encoding="utf-8"))
    return found


def said(name: str, **values: object) -> list[tuple[str, bool]]:
    """A sentence in parts, each with whether it is emphasised. Marks in a value have no meaning.

    Raises:
        KeyError: The sentence is missing, or a value for one of its placeholders.
    """
    parts = enumerate(words()[name].split("**"))
    return [(part.format(**values), place % 2 == 1) for place, part in parts if part]
