"""The stages of a trace, each with its units, as the walk and the short view show them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ...trace import Bpe, HybridDna, Plamo2, Rwkv, Spm, Test, Unigram, WordPiece
from . import choose_units, merge_units
from .record import Record
from .units import Unit, special_units, tokens_unit
from .utf8 import to_bytes
from .words import words

OF_KIND: dict[type, Callable[[Any, bytes, int, int], Iterator[Unit]]] = {
    Spm: merge_units.spm,
    Bpe: merge_units.bpe,
    HybridDna: merge_units.hybrid_dna,
    WordPiece: choose_units.word_piece,
    Unigram: choose_units.unigram,
    Rwkv: choose_units.rwkv,
    Plamo2: choose_units.plamo2,
    Test: choose_units.test,
}


def units(trace: Record) -> list[Unit]:
    """All units of a trace, in the order in which they are walked. O(n) time for n steps."""
    text = to_bytes(trace.text)
    found = [*special_units(trace)]
    for each in trace.fragments:
        if each.steps is not None:
            part = text[each.start : each.end]
            found += OF_KIND[type(each.steps)](each.steps, part, each.start, each.first_token)
    return [*found, tokens_unit(trace)]


def idea(trace: Record) -> str:
    """What the algorithm does, in a sentence."""
    steps = next((each.steps for each in trace.fragments if each.steps is not None), None)
    kind = trace.algorithm if steps is None else steps.kind.replace("word_piece", "wordpiece")
    if isinstance(steps, Bpe) and "escaped" in steps.rewritten:
        kind = "bpe_characters"
    ideas: dict[str, str] = words()["ideas"]
    return ideas[kind]


def title_of(stage: str) -> str:
    """The name of a stage."""
    titles: dict[str, str] = words()["stages"]
    return titles[stage]
