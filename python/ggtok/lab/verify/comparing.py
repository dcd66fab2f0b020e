"""Asks llama.cpp and ggtok the same about one vocabulary, counts the answers, and keeps the differences.

A text or a pair of flags that kills llama.cpp is not tried again with other flags. If llama.cpp dies, ggtok may answer
or refuse, but must live; and the death must be one that the listed deviations explain.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from random import Random

from .aborts import Abort, abort
from .answerers import FLAGS, SPECIAL_IDS, TokenAnswer
from .binding import Overrides
from .child import Child
from .known import Known
from .report import Difference
from .serve import Answer, Query
from .shrink import ddmin, shrink_text
from .text_generator import TextGenerator

FLAG_PAIRS = ((False, False), (False, True), (True, False), (True, True))
LONG_TEXT_CHANCE = 0.1
CATALOGUE_SIZE = 20_000
NUM_TOKENS = 4096
"""Tokens that are compared at once."""
MOST_KEPT = 1000
"""Unexplained differences that are kept; more are only counted."""


class Comparing:
    """Both processes with one vocabulary open, and the results."""

    def __init__(self, reference: Child, ours: Child, *, shrink_seconds: float) -> None:
        self.reference, self.ours = reference, ours
        self.shrink_seconds = shrink_seconds
        self.origin = ""
        """Where the texts come from that are compared now."""
        self.calls: Counter[str] = Counter()
        """Comparisons by kind of call."""
        self.aborts: Counter[Abort] = Counter()
        self.differences: list[Difference] = []
        """The first unexplained ones."""
        self.num_differences = 0
        """All of them, known or not."""
        self.known: Known | None = None
        """The changes of llama.cpp that may explain differences."""
        self.by_change: Counter[str] = Counter()
        """Differences that are explained, by the code of the change; some count for several."""
        self.num_known = 0
        self.examples: dict[tuple[str, ...], Difference] = {}
        """The first difference of each set of changes."""
        self.num_tokens: int | None = None
        """Of the vocabulary, once it is open."""
        self.kind: str | None = None
        self._flags: list[tuple[bool, bool]] = []
        self._catalogue: tuple[list[bytes], list[bytes]] | None = None

    def open(self, path: str, overrides: Overrides) -> None:
        """Opens the vocabulary on both sides. `num_tokens` stays `None` if one of them refuses."""
        (opened,) = self.compare([("open", path, dict(overrides))])
        if opened[0] != "ok" or self.num_differences:
            return
        (kind,) = self.ours.ask([("kind",)])
        self.kind = kind[1] if kind[0] == "ok" else None
        trial = self.compare([("encode", b"a", *flags) for flags in FLAG_PAIRS])
        self._flags = [flags for flags, answer in zip(FLAG_PAIRS, trial, strict=True) if answer[0] == "ok"]
        self.num_tokens = int(opened[1])

    def compare(self, queries: list[Query]) -> list[Answer]:
        """Asks both sides, keeps the differences, and returns llama.cpp's answers."""
        answers = self._ask(queries)
        differences = list[Difference]()
        for query, theirs, mine in zip(queries, *answers, strict=True):
            self.calls[query[0]] += 1
            if theirs[0] == "died":
                self.aborts[self._abort(query, theirs)] += 1
            if self._differs(query, theirs, mine):
                differences.append(Difference(query, theirs, mine, self.origin))
        for difference in self._explained(differences):
            self.num_differences += 1
            self.num_known += bool(difference.changes)
            self.by_change.update(difference.changes)
            if difference.changes:
                self.examples.setdefault(difference.changes, difference)
            elif len(self.differences) < MOST_KEPT:
                self.differences.append(difference)
        return answers[0]

    def forget(self) -> None:
        """Forgets all that was compared, except what is open."""
        self.calls.clear()
        self.aborts.clear()
        self.differences.clear()
        self.by_change.clear()
        self.examples.clear()
        self.num_differences = self.num_known = 0

    def compare_specials(self) -> None:
        """Compares the special ids and flags that this release of llama.cpp knows, and the empty list of ids."""
        ((_, known),) = self.reference.ask([("specials", (*SPECIAL_IDS, *FLAGS))])
        names = [name for name, value in known.items() if value is not None]
        self.compare([("specials", names), ("decode", [], False, False)])

    def compare_tokens(self) -> None:
        """Attributes and pieces of every token."""
        num_tokens = self.num_answered()
        for start in range(0, num_tokens, NUM_TOKENS):
            end = min(start + NUM_TOKENS, num_tokens)
            theirs, mine = ([*answer] for (answer,) in self._ask([("tokens", start, end)]))
            if theirs[0] == mine[0] == "ok":
                both: zip[tuple[TokenAnswer, TokenAnswer]] = zip(theirs[1], mine[1], strict=True)
                suspects = [start + at for at, (a, b) in enumerate(both) if a != b]
                self.calls["token"] += end - start - len(suspects)
            else:
                suspects = [*range(start, end)]
            self.compare([("token", token) for token in suspects])

    def compare_texts(self, texts: Sequence[bytes]) -> list[list[int]]:
        """Encodes texts with all flags; returns llama.cpp's ids with the first flags that work."""
        if not self._flags:  # a vocabulary of kind "none" encodes nothing
            return []
        answers = self.compare([("encode", text, *self._flags[0]) for text in texts])
        living = [text for text, answer in zip(texts, answers, strict=True) if answer[0] == "ok"]
        self.compare([("encode", text, *flags) for text in living for flags in self._flags[1:]])
        return [answer[1] for answer in answers if answer[0] == "ok"]

    def compare_ids(self, lists: Sequence[list[int]]) -> None:
        """Decodes lists of ids with all flags."""
        self.compare([("decode", ids, *flags) for ids in lists for flags in FLAG_PAIRS])

    def compare_made_up(self, rng: Random, num_texts: int) -> int:
        """Texts that tokenizers disagree on, ids of them and any ids; returns how many texts. Everything random depends
        on `rng`."""
        if not (num_tokens := self.num_answered()):
            return 0
        if self._catalogue is None:
            # The same for all rounds of a vocabulary: going through all tokens takes a while.
            (catalogue,) = self.reference.ask([("catalogue", CATALOGUE_SIZE, rng.randrange(1 << 30))])
            self._catalogue = catalogue[1]
        generator = TextGenerator(rng, *self._catalogue)
        texts = [generator.text() for _ in range(num_texts)] + [b""]
        if rng.random() < LONG_TEXT_CHANCE:
            texts.append(generator.long_text())
        encoded = self.compare_texts(texts)
        lists = [ids[:400] for ids in rng.sample(encoded, min(8, len(encoded)))]
        lists += [[rng.randrange(num_tokens) for _ in range(rng.randint(0, 24))] for _ in range(24)]
        self.compare_ids(lists)
        return len(texts)

    def shrunk(self, difference: Difference) -> Difference:
        """Returns the same difference on the smallest text or ids, with the same changes that explain it."""
        kind, *arguments = difference.query
        latest = difference
        end = time.monotonic() + self.shrink_seconds

        def differs(smaller: bytes | list[int]) -> bool:
            nonlocal latest
            if time.monotonic() >= end:
                raise TimeoutError
            query = (kind, smaller, *arguments[1:])
            (theirs,), (mine,) = self._ask([query])
            if theirs[0] != difference.reference[0] or not self._differs(query, theirs, mine):
                return False
            (found,) = self._explained([Difference(query, theirs, mine, difference.origin)])
            if found.changes != difference.changes:
                return False
            latest = found
            return True

        with suppress(TimeoutError):
            if kind == "encode":
                shrink_text(arguments[0], differs)
            elif kind == "decode":
                ddmin(arguments[0], differs)
        return latest

    def smallest(self, most: int) -> Iterator[Difference]:
        """The first differences, shrunk: each text or list of ids with one pair of flags, each result once; of the
        known ones, an example of each set of changes."""
        by_text = {repr(difference.query[:2]): difference for difference in reversed(self.differences)}
        told = set()
        for difference in [*list(reversed(by_text.values()))[:most], *self.examples.values()]:
            smallest = self.shrunk(difference)
            if repr(smallest.query) not in told:
                yield smallest
            told.add(repr(smallest.query))

    def _explained(self, differences: list[Difference]) -> list[Difference]:
        """The differences with the changes that explain them."""
        known = self.known
        return [replace(each, changes=known.explain(each)) for each in differences] if known else differences

    def _abort(self, query: Query, answer: Answer) -> Abort:
        _, how, message = answer
        return abort(query, how, message, self.kind)

    def num_answered(self) -> int:
        """The number of tokens that llama.cpp says something about: none in a vocabulary of kind "none"."""
        return self.num_tokens if self.num_tokens is not None and self._flags else 0

    def _ask(self, queries: list[Query]) -> tuple[list[Answer], list[Answer]]:
        """Returns both sides' answers; both work at the same time."""
        self.reference.send(queries)
        self.ours.send(queries)
        return self.reference.receive(queries), self.ours.receive(queries)

    def _differs(self, query: Query, theirs: Answer, mine: Answer) -> bool:
        """Whether the answers differ, or llama.cpp died for a reason that is not known."""
        if theirs[0] == "died" and self._abort(query, theirs).deviation is None:
            return True
        return not agrees(theirs, mine)


def agrees(reference: Answer, ours: Answer) -> bool:
    """Same value, or both refuse; after a death of llama.cpp any answer or a typed refusal."""
    if reference[0] == "ok":
        return ours == reference
    refused = ours[0] == "error" and bool({"GgtokError", "ValueError"} & set(ours[1]))
    return refused or (reference[0] == "died" and ours[0] == "ok")
