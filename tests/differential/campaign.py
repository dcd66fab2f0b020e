"""A run: each round takes one vocabulary, writes texts for it, asks both sides and compares the answers.

Everything random in round `n` depends only on the seed and on `n`.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from random import Random

from .answerers import shared
from .child import Answer, Child, Query
from .generators import TextGenerator
from .report import Difference
from .shrink import ddmin, shrink_text
from .vocabularies import Target

FLAGS = [(False, False), (False, True), (True, False), (True, True)]
LONG_TEXT_CHANCE = 0.1
CATALOGUE_SIZE = 20_000
FINDINGS_PER_ROUND = 3
"""Further differing texts of a round are counted, but neither shrunk nor printed."""
MAX_TOLD = 40
"""The run ends after this many printed findings: they have few causes."""


@dataclass
class Tally:
    """The counts of a run."""

    comparisons: Counter[str] = field(default_factory=Counter)
    differences: Counter[str] = field(default_factory=Counter)
    deaths: Counter[str] = field(default_factory=Counter)
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
        *,
        num_texts: int,
        shrink_seconds: float,
        verbose: bool,
    ) -> None:
        self.reference, self.ours = sides
        self.directory, self.tell, self.verbose = directory, tell, verbose
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
        findings: list[Difference] = []

        def compare(queries: list[Query]) -> list[Answer]:
            answers = self.ask_both(queries)
            for query, theirs, mine in zip(queries, *answers, strict=True):
                if not self.agree(target, query, theirs, mine):
                    findings.append(Difference(target, query, theirs, mine, origin))
            return answers[0]

        (opened,) = compare([self.opening(target)])
        if opened[0] == "ok" and not findings:
            self.compare_all(compare, rng, num_tokens=opened[1])
        elif not findings:
            self.tally.refusals[target.name] += 1
        self.tally.differences[target.name] += len(findings)
        self.tell_findings(findings)

    def compare_all(self, compare: Callable[[list[Query]], list[Answer]], rng: Random, num_tokens: int) -> None:
        """Special ids, texts, ids and tokens. A text or a pair of flags that kills llama.cpp is not tried twice."""
        compare([("specials",)])
        compare([("decode", [], False, False)])
        trial = compare([("encode", b"a", *flags) for flags in FLAGS])
        living = [flags for flags, answer in zip(FLAGS, trial, strict=True) if answer[0] == "ok"]
        if not living:  # a vocabulary of kind "none" encodes nothing
            return
        (catalogue,) = self.reference.ask([("catalogue", CATALOGUE_SIZE, rng.randrange(1 << 30))])
        generator = TextGenerator(rng, shared() / "corpora", *catalogue[1])
        texts = [generator.text() for _ in range(self.num_texts)] + [b""]
        if rng.random() < LONG_TEXT_CHANCE:
            texts.append(generator.long_text())
        answers = compare([("encode", text, *living[0]) for text in texts])
        texts = [text for text, answer in zip(texts, answers, strict=True) if answer[0] == "ok"]
        compare([("encode", text, *flags) for text in texts for flags in living[1:]])
        ids = [answer[1][:400] for answer in rng.sample(answers, 8) if answer[0] == "ok"]
        ids += [[rng.randrange(num_tokens) for _ in range(rng.randint(0, 24))] for _ in range(24)]
        compare([("decode", some, *flags) for some in ids for flags in FLAGS])
        compare([("token", rng.randrange(num_tokens)) for _ in range(256)])

    def tell_findings(self, findings: list[Difference]) -> None:
        """Shrinks and prints the first findings: each text or list of ids under one pair of flags, each result once."""
        by_text = {repr(finding.query[:2]): finding for finding in reversed(findings)}
        told = set()
        for finding in list(reversed(by_text.values()))[:FINDINGS_PER_ROUND]:
            smallest = self.shrunk(finding)
            if repr(smallest.query) not in told:
                self.tell("\n".join(smallest.lines()))
                self.tally.told += 1
            told.add(repr(smallest.query))

    def replay(self, target: Target, query: Query) -> Difference | None:
        """Repeats one query."""
        opening = self.opening(target)
        (reference,), (ours,) = self.ask_both([opening])
        if query[0] != "open" and reference[0] == ours[0] == "ok":
            (reference,), (ours,) = self.ask_both([query])
        else:
            query = opening
        same = self.agree(target, query, reference, ours)
        return None if same else Difference(target, query, reference, ours, "replayed")

    def opening(self, target: Target) -> Query:
        """Returns the query that opens the target."""
        return ("open", str(target.path(self.directory)), target.all_overrides())

    def ask_both(self, queries: list[Query]) -> tuple[list[Answer], list[Answer]]:
        """Returns both sides' answers; both work at the same time."""
        self.reference.send(queries)
        self.ours.send(queries)
        return self.reference.receive(queries), self.ours.receive(queries)

    def agree(self, target: Target, query: Query, reference: Answer, ours: Answer) -> bool:
        """Counts the comparison. Where llama.cpp died, ggtok may answer or refuse, but must live."""
        self.tally.comparisons[target.name] += 1
        if reference[0] == "died":
            self.tally.deaths[f"{query[0]} {reference[1]}: ours {_manner(ours)}"] += 1
        return agrees(reference, ours)

    def shrunk(self, difference: Difference) -> Difference:
        """Returns the same difference on the smallest text or ids."""
        kind, *arguments = difference.query
        latest = difference
        end = time.monotonic() + self.shrink_seconds

        def differs(smaller: bytes | list[int]) -> bool:
            nonlocal latest
            if time.monotonic() >= end:
                raise TimeoutError
            query = (kind, smaller, *arguments[1:])
            (reference,), (ours,) = self.ask_both([query])
            if agrees(reference, ours) or (reference[0] == "died") != (difference.reference[0] == "died"):
                return False
            latest = Difference(difference.target, query, reference, ours, difference.origin)
            return True

        with suppress(TimeoutError):
            if kind == "encode":
                shrink_text(arguments[0], differs)
            elif kind == "decode":
                ddmin(arguments[0], differs)
        return latest


def agrees(reference: Answer, ours: Answer) -> bool:
    """Same value, or both refuse; after a death of llama.cpp any answer or a typed refusal."""
    if reference[0] == "ok":
        return ours == reference
    refused = ours[0] == "error" and bool({"GgtokError", "ValueError"} & set(ours[1]))
    return refused or (reference[0] == "died" and ours[0] == "ok")


def _manner(ours: Answer) -> str:
    return {"ok": "answered", "error": "refused", "died": "DIED"}[ours[0]]
