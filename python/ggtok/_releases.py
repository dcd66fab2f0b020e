"""Which releases of llama.cpp open a vocabulary, and since when they answer as today.

`llama_cpp_releases.json` has what was measured; `scripts/llama_cpp_releases.py` makes it. Between two releases that
were measured one after the other, nothing is known: llama.cpp has several releases a day.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from . import _ggtok
from ._findings import Finding
from ._keys import GGML, PRE, SPECIAL
from ._vocab import Vocab
from .errors import ArgumentTypeError, GgtokError

DATA = Path(__file__).with_name("llama_cpp_releases.json")


@dataclass(frozen=True)
class ReleaseChange:
    """A change of llama.cpp's that gives a vocabulary other ids, bytes or special tokens than before."""

    code: str
    """Its name, which stays the same from version to version."""
    what: str
    """What changed, in a sentence."""
    last_old: str
    """The newest release that was measured and answers as before: `"b9538"`."""
    first_new: str
    """The oldest release that was measured and answers as today: `"b9713"`."""
    pull_requests: tuple[int, ...] = field(repr=False)
    """What made it, by numbers in llama.cpp's repository, as far as they are known."""
    example: str = field(repr=False)
    """A call with the answers before and after, as a clause."""

    def __str__(self) -> str:
        return f"{self.last_old} to {self.first_new}: {self._cited()}, for example {self.example}"

    def _cited(self) -> str:
        """What changed, with its pull requests."""
        numbers = ", ".join(f"#{number}" for number in self.pull_requests)
        return self.what + (f" (llama.cpp {numbers})" if numbers else "")


@dataclass(frozen=True)
class Releases:
    """Which releases of llama.cpp open a vocabulary, and which ones answer as ggtok does, by measurement.

    >>> import ggtok
    >>> releases = ggtok.Tokenizer.builtin("wordpiece").releases
    >>> releases.opens_since, releases.same_since
    ('b6301 or older', 'b9713')
    >>> [(change.code, change.last_old, change.first_new) for change in releases.changes]
    [('wordpiece-marks', 'b9538', 'b9713'), ('special-texts-b7964', 'b7827', 'b7964')]
    """

    opens_since: str
    """The oldest release that was measured and opens it: `"b9294"`, or `"b6301 or older"` if that is the oldest of all
    that were measured."""
    same_since: str
    """The oldest release from which on nothing differs."""
    changes: tuple[ReleaseChange, ...] = ()
    """What has changed for it since `opens_since`, the latest first."""
    measured: tuple[str, ...] = field(default=(), repr=False)
    """The releases that were measured, the oldest first. Nothing is known about newer ones."""

    def __str__(self) -> str:
        answers = f"answers the same since {self.same_since} (measured up to {self.measured[-1]})"
        if self.opens_since == self.same_since:
            return f"opens it and {answers}"
        return f"opens it since {self.opens_since}, {answers}"


class Opening(NamedTuple):
    """Since when llama.cpp opens a vocabulary."""

    last: int
    """The last release that refuses it, 0 if none that was measured does."""
    first: int
    """The first release that opens it."""
    what: str
    """What releases before the first do not accept."""
    key: str
    """Its key in the metadata."""


@cache
def data() -> Any:
    """What was measured."""
    return json.loads(DATA.read_text(encoding="utf-8"))


def of(vocab: Vocab) -> Releases:
    """What is known about a vocabulary."""
    builds = [row["build"] for row in data()["releases"]]
    opens = opened(vocab).first
    rows = [row for row in concerned(vocab) if row["new"] > opens]
    changes = tuple(map(_change, rows))
    same = max([opens, *(row["new"] for row in rows)])
    return Releases(_since(opens, builds), _since(same, builds), changes, tuple(f"b{build}" for build in builds))


def opened(vocab: Vocab) -> Opening:
    """Since when llama.cpp opens a vocabulary: by what a release learnt last."""
    found = [(data()["models"][vocab.model], f"the tokenizer {vocab.model}", GGML + "model")]
    if vocab.kind == "bpe" and vocab.pre is not None:
        found.append((data()["pre"][vocab.pre], f"the pre-tokenizer {vocab.pre}", PRE))
    for repair, name, id in _ggtok.repaired_ids(vocab._core):
        if repair == "default" and name and getattr(vocab, f"{name}_id") is None:
            what = f"the default {name} id {id}, which is outside the vocabulary"
            found.append((data()["default_ids"], what, GGML + SPECIAL[name]))
    (last, first), what, key = max(found, key=lambda row: row[0][1])
    return Opening(last, first, what, key)


def concerned(vocab: Vocab) -> Iterator[Any]:
    """The changes that concern a vocabulary, as the data has them: the latest first."""
    for row in data()["changes"]:
        if meets(vocab, row["concerns"]):
            yield row


def meets(vocab: Vocab, concerns: Mapping[str, Any]) -> bool:
    """Whether a vocabulary meets all conditions of a change."""
    return all(_meets(vocab, name, wanted) for name, wanted in concerns.items())


def _meets(vocab: Vocab, name: str, wanted: Any) -> bool:
    """Whether a vocabulary meets one condition: a list has alternatives, and a mapping has flags with their values."""
    match name:
        case "kind" | "model" | "pre":
            return getattr(vocab, name) in wanted
        case "settings":
            return all(vocab.settings[flag] == value for flag, value in wanted.items())
        case "adds":
            return any(vocab.settings[f"add_{token}"] for token in wanted)
        case "found":
            return not _found(vocab).isdisjoint(map(vocab.id, wanted))
        case "marked":
            return not _repaired(vocab, "marked").isdisjoint(map(vocab.id, wanted))
    raise AssertionError(name)


def _found(vocab: Vocab) -> Set[int]:
    """The tokens that have a role, or end generation, by their text and not because the file says so."""
    ends = vocab.eog_ids.difference((vocab.eos_id, vocab.eot_id, vocab.eom_id))
    return ends | _repaired(vocab, "role", "marked", "not end")


def _repaired(vocab: Vocab, *repairs: str) -> Set[int]:
    """The tokens that had one of these repairs at load."""
    return {id for repair, _, id in _ggtok.repaired_ids(vocab._core) if repair in repairs}


def parse(release: str | int) -> int:
    """The build number of a release of llama.cpp.

    Raises:
        GgtokError: It is not `b` and a number, or a number.
        TypeError: It is neither a string nor an integer.
    """
    if not isinstance(release, str | int) or isinstance(release, bool):
        raise ArgumentTypeError(f"llama_cpp must be a release such as 'b9538', not {type(release).__name__}")
    match = re.fullmatch(r"b?([1-9][0-9]{0,8})", str(release), re.ASCII)
    if match is None:
        raise GgtokError(f"{str(release)[:40]!r} is not a release of llama.cpp: expected a build number such as b9538")
    return int(match[1])


def findings(vocab: Vocab, release: str | int) -> Iterator[Finding]:
    """What a release of llama.cpp does differently with a vocabulary. Raises as `parse`."""
    build = parse(release)
    oldest, newest = (data()["releases"][at]["build"] for at in (0, -1))
    if not oldest <= build <= newest:
        side, end = ("newer than the newest", newest) if build > newest else ("older than the oldest", oldest)
        message = f"llama.cpp b{build} is {side} release that was measured, b{end}"
        advice = "compare with that release itself: ggtok.verify with library=PATH"
        yield Finding("llama-cpp-unmeasured", "note", message, advice)
    last, first, what, key = opened(vocab)
    if build <= last:
        message = f"llama.cpp b{build} does not open this file, because it does not accept {what}"
        yield Finding("llama-cpp-too-old", "error", message, f"use b{first} or newer", key)
        return
    if build < first and last:
        message = f"llama.cpp b{build} may not open this file: b{last} does not accept {what}, and b{first} does"
        yield Finding("llama-cpp-too-old", "warning", message, f"use b{first} or newer", key)
    for change in of(vocab).changes:
        if build >= parse(change.first_new):
            continue
        if build <= parse(change.last_old):
            message = f"llama.cpp b{build} answers differently, because it is older than this change: {change.what}"
        else:
            between = f"between {change.last_old} and {change.first_new}"
            message = f"llama.cpp b{build} may answer differently, because this change came {between}: {change.what}"
        again = ", and recompute stored ids and embeddings" if change.example.startswith("encode(") else ""
        advice = f"use {change.first_new} or newer{again}; for example, {change.example}"
        yield Finding("llama-cpp-differs", "warning", message, advice)


def _since(build: int, builds: list[int]) -> str:
    return f"b{build} or older" if build <= builds[0] else f"b{build}"


def _change(row: Any) -> ReleaseChange:
    releases = (f"b{row['old']}", f"b{row['new']}")
    return ReleaseChange(row["code"], row["what"], *releases, tuple(row["pull_requests"]), _example(row["example"]))


def _example(example: Any) -> str:
    """A call with both answers: with ids, and with pieces if there are other ones."""
    vocabulary, before, after = (example[name] for name in ("vocabulary", "before", "after"))
    if "token" in example:
        return f"the token {example['token']} of {vocabulary} was {before}, and is now {after}"
    call = "".join(ascii(sign)[1:-1] if unicodedata.combining(sign) else sign for sign in example["call"])
    settings = "".join(f" and {setting}" for setting in example["settings"])
    return f"{call} with {vocabulary}{settings} gave {before}, and now gives {after}"
