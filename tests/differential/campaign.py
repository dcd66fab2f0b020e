"""A run: each round takes one vocabulary, writes texts for it, asks both sides and compares the answers.

Everything random in round `n` depends only on the seed and on `n`.
"""

from __future__ import annotations

import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from random import Random

from ggtok import GgtokError, Tokenizer, TokenizerWarning
from ggtok.lab.releases import builds
from ggtok.lab.verify.aborts import Abort
from ggtok.lab.verify.child import Child
from ggtok.lab.verify.comparing import Comparing
from ggtok.lab.verify.known import Known, oldest
from ggtok.lab.verify.library import Library
from ggtok.lab.verify.report import Difference
from ggtok.lab.verify.serve import Query

from .paths import corpora
from .report import lines
from .vocabularies import Target

NUM_TOKENS = 256
"""Tokens of a vocabulary that a round compares."""
NATURAL = 8
"""Made-up texts for each slice of natural text."""
FINDINGS_PER_ROUND = 3
"""Further differing texts of a round are counted, but neither shrunk nor printed."""
MAX_TOLD = 40
"""The run ends after this many printed findings: they have few causes."""


@dataclass
class Tally:
    """The counts of a run."""

    comparisons: Counter[str] = field(default_factory=Counter)
    differences: Counter[str] = field(default_factory=Counter)
    """Those that no known change of llama.cpp explains."""
    known: Counter[str] = field(default_factory=Counter)
    """The others, by the code of the change."""
    aborts: Counter[Abort] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    rounds: int = 0
    told: int = 0


class Campaign:
    """Both children, the directory for generated vocabularies, and the counts."""

    def __init__(
        self,
        sides: tuple[Child, Child],
        directory: Path,
        tell: Callable[[str], None],
        library: Library,
        *,
        num_texts: int,
        shrink_seconds: float,
        verbose: bool,
    ) -> None:
        self.sides = sides
        self.directory, self.tell, self.verbose = directory, tell, verbose
        self.library = library
        self.is_newest = oldest(library) >= builds()[-1]
        self.num_texts, self.shrink_seconds = num_texts, shrink_seconds
        self.tally = Tally()

    def run(self, targets: Iterable[Target], seed: int, seconds: float, rounds: int | None = None) -> Tally:
        """Runs rounds until they or the time are up, or enough is found; finishes the last one."""
        end = time.monotonic() + seconds
        for target in islice(targets, rounds):
            if time.monotonic() >= end or self.tally.told >= MAX_TOLD:
                break
            start, origin = time.monotonic(), f"seed {seed}, round {self.tally.rounds}"
            self.round(target, Random(f"{seed}/round/{self.tally.rounds}"), origin)
            if self.verbose:
                self.tell(f"{origin}: {target.name} {target.overrides or ''} {time.monotonic() - start:.1f} s")
            self.tally.rounds += 1
        return self.tally

    def round(self, target: Target, rng: Random, origin: str) -> None:
        """Opens one vocabulary on both sides and compares everything about it."""
        comparing = self.comparing(target, origin)
        comparing.open(str(target.path(self.directory)), target.all_overrides())
        if comparing.num_tokens is not None:
            comparing.compare_specials()
            comparing.compare_made_up(rng, self.num_texts)
            comparing.compare_ids(comparing.compare_texts([*slices(rng, self.num_texts // NATURAL)]))
            num_tokens = comparing.num_answered()
            comparing.compare([("token", rng.randrange(num_tokens)) for _ in range(NUM_TOKENS if num_tokens else 0)])
        elif not comparing.num_differences:
            self.tally.refusals[target.name] += 1
        self.tally.comparisons[target.name] += comparing.calls.total()
        self.tally.differences[target.name] += comparing.num_differences - comparing.num_known
        self.tally.known += comparing.by_change
        self.tally.aborts += comparing.aborts
        comparing.examples.clear()
        for difference in comparing.smallest(FINDINGS_PER_ROUND):
            self.tell_of(target, difference)

    def tell_of(self, target: Target, difference: Difference) -> None:
        """Prints a finding."""
        self.tell("\n".join(lines(target, difference)))
        self.tally.told += 1

    def replay(self, target: Target, query: Query) -> Difference | None:
        """Repeats one query."""
        comparing = self.comparing(target, "replayed")
        comparing.open(str(target.path(self.directory)), target.all_overrides())
        if query[0] != "open" and comparing.num_tokens is not None:
            comparing.forget()
            comparing.compare([query])
        return next(iter(comparing.differences), None)

    def comparing(self, target: Target, origin: str) -> Comparing:
        """A comparison of one vocabulary, not opened yet."""
        comparing = Comparing(*self.sides, shrink_seconds=self.shrink_seconds)
        comparing.origin = origin
        if not self.is_newest:
            with suppress(GgtokError), warnings.catch_warnings(action="ignore", category=TokenizerWarning):
                opened = Tokenizer.from_gguf(target.path(self.directory), overrides=target.all_overrides())
                comparing.known = Known(self.library, opened)
        return comparing


def slices(rng: Random, num: int) -> Iterator[bytes]:
    """Natural text, cut at any byte."""
    for text in rng.choices(corpora() or [b"What is natural?"], k=num):
        at = rng.randrange(len(text))
        yield text[at : at + int(2 ** rng.uniform(2, 10))]
