"""Which releases of llama.cpp open a file, and since when they answer as today.

`llama_cpp_releases.json` has what was measured; `scripts/add_release.py` adds a release. Nothing is known about a
release between two that were measured one after the other, nor about a name that none of them opens.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from .._ggtok import Array, repaired_ids
from ..errors import ArgumentTypeError, GgtokError
from ..tokenizer.base import BaseTokenizer
from ..tokenizer.check import check as check_tokenizer
from ..tokenizer.findings import Finding
from ..tokenizer.keys import GGML, Type
from ..tokenizer.seam import metadata_of, path_of
from .convert.tensors import Tensors
from .refusals import architecture_of, refused, tensors_of

OPENS = "opens"
"""The code of the change by which llama.cpp opens a file."""


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
    """The pull requests that made it, by number in llama.cpp's repository, if known."""
    example: str = field(repr=False)
    """A call with the answers before and after, as a clause."""

    def __str__(self) -> str:
        numbers = ", ".join(f"#{number}" for number in self.pull_requests)
        return f"since {self.first_new}, and not in {self.last_old}, {self.what}{f' ({numbers})' if numbers else ''}"


@dataclass(frozen=True)
class Releases:
    """Which releases of llama.cpp open a file, and which ones answer as ggtok does, by measurement.

    >>> import ggtok
    >>> releases = ggtok.Tokenizer.builtin("wordpiece").releases
    >>> releases.opens_since, releases.same_since
    ('b6301 or older', 'b9713')
    >>> [(change.code, change.last_old, change.first_new) for change in releases.changes]
    [('wordpiece-marks', 'b9538', 'b9713'), ('special-texts-b7964', 'b7827', 'b7964')]
    """

    opens_since: str | None
    """The oldest release that was measured and opens it: `"b9294"`, or `"b6301 or older"` if that is the oldest of all
    that were measured. `None` if something about the file is in `unclaimed`."""
    same_since: str | None
    """The oldest release from which on nothing differs. `None` as above."""
    changes: tuple[ReleaseChange, ...] = ()
    """What has changed for it, the latest first. The last one is that it opens, if a release that was measured refuses
    it: `code` is `"opens"`."""
    measured: tuple[str, ...] = field(default=(), repr=False)
    """The releases that were measured, the oldest first. Nothing is known about newer ones."""
    unclaimed: tuple[str, ...] = ()
    """Why nothing is claimed: facts of the file that llama.cpp refuses, or reads differently."""

    def __str__(self) -> str:
        if self.unclaimed:
            return f"nothing is claimed: {'; '.join(self.unclaimed)}"
        answers = f"answers the same since {self.same_since} (measured up to {self.measured[-1]})"
        if self.opens_since == self.same_since:
            return f"opens it and {answers}"
        return f"opens it since {self.opens_since}, {answers}"


@cache
def data() -> Any:
    """What was measured."""
    return json.loads(Path(__file__).with_name("llama_cpp_releases.json").read_text(encoding="utf-8"))


@cache
def builds() -> list[int]:
    """The releases that were measured, the oldest first."""
    return [row["build"] for row in data()["releases"]]


def of(tokenizer: BaseTokenizer) -> Releases:
    """What is known about a file."""
    reasons, changes = history(tokenizer)
    measured = tuple(f"b{build}" for build in builds())
    if reasons:
        return Releases(None, None, (), measured, tuple(reasons))
    since = [change.first_new for change in changes]
    oldest = f"{measured[0]} or older"
    opens = since[-1] if changes and changes[-1].code == OPENS else oldest
    return Releases(opens, since[0] if since else oldest, tuple(changes), measured)


def history(tokenizer: BaseTokenizer) -> tuple[list[str], list[ReleaseChange]]:
    """Why nothing is claimed about a file, and what has changed for it, the latest first."""
    vocab, metadata = tokenizer.vocab, metadata_of(tokenizer)
    tensors = tensors_of(metadata, path_of(tokenizer))
    names = [("tokenizer", vocab.model), ("architecture", architecture_of(metadata))]
    names += [("pre-tokenizer", vocab.pre)] if vocab.kind == "bpe" and vocab.pre is not None else []
    names += [("tensor type", str(kind)) for *_, kind, _ in tensors.rows] if isinstance(tensors, Tensors) else []
    opening = [(_first(noun, name), f"the {noun} {name}") for noun, name in dict.fromkeys(names) if name]
    for repair, slot, id in repaired_ids(tokenizer):
        if repair == "default" and slot and getattr(vocab, f"{slot}_id") is None:
            opening.append((data()["default_ids"], f"the default {slot} id {id}, which is outside the vocabulary"))
    first, what = max(opening, key=lambda row: row[0])
    blocks = {int(kind): block for row in data()["tensor type"].values() for kind, block in row.items()}
    reasons = [*refused(metadata, tensors, blocks)]
    reasons += [f"no release up to b{builds()[-1]} accepts {what}"] if first not in builds() else []
    rows = [row for row in data()["changes"] if row["build"] > first and meets(tokenizer, row["concerns"])]
    rows += [{"code": OPENS, "build": first, "what": f"it accepts {what}"}] if first in builds()[1:] else []
    return reasons, [*map(_change, rows)]


def _first(noun: str, name: str) -> int:
    """The first release that has a name; one after the newest if none has."""
    return next((int(build) for build, row in data()[noun].items() if name in row), builds()[-1] + 1)


def _change(row: Any) -> ReleaseChange:
    last = max(build for build in builds() if build < row["build"])
    pull_requests, example = tuple(row.get("pull_requests", ())), row.get("example", "")
    return ReleaseChange(row["code"], row["what"], f"b{last}", f"b{row['build']}", pull_requests, example)


def meets(tokenizer: BaseTokenizer, concerns: Mapping[str, Any]) -> bool:
    """Whether a file meets all conditions of a change. Each has alternatives."""
    return all(_meets(tokenizer, name, wanted) for name, wanted in concerns.items())


def _meets(tokenizer: BaseTokenizer, name: str, wanted: Any) -> bool:
    vocab = tokenizer.vocab
    match name:
        case "kind" | "pre":
            return getattr(vocab, name) in wanted
        case "settings":
            return any(vocab.settings[flag] is value for flag, value in wanted)
        case "scores":
            array = metadata_of(tokenizer).get(GGML + "scores")
            return isinstance(array, Array) and Type(array.kind).name in wanted
    # Tokens that end generation, have a role or are control tokens by their text, and not because the file says so.
    repairs = {"found": ("role", "marked", "not end"), "marked": ("marked",)}[name]
    ends = vocab.eog_ids - {vocab.eos_id, vocab.eot_id, vocab.eom_id} if name == "found" else set()
    ids = ends | {id for repair, _, id in repaired_ids(tokenizer) if repair in repairs}
    return not ids.isdisjoint(map(vocab.id, wanted))


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


def check(tokenizer: BaseTokenizer, release: str | int | None = None) -> list[Finding]:
    """What `Tokenizer.check` does."""
    return check_tokenizer(tokenizer.vocab, metadata_of(tokenizer), findings(tokenizer, release))


def findings(tokenizer: BaseTokenizer, release: str | int | None) -> Iterator[Finding]:
    """Why llama.cpp refuses a file, and what a release does differently with it, if one is given. Raises as `parse`."""
    build = None if release is None else parse(release)
    reasons, changes = history(tokenizer)
    oldest, newest = builds()[0], builds()[-1]
    for reason in reasons:
        message = f"llama.cpp refuses this file, or reads it differently: {reason}"
        is_meant = build is not None and build <= newest
        yield Finding("file-refused", "error" if is_meant else "warning", message, "get or convert the model again")
    if build is None or reasons:
        return
    if not oldest <= build <= newest:
        message = f"llama.cpp b{build} was not measured, only releases from b{oldest} to b{newest} were"
        advice = "compare with that release itself: ggtok.verify with library=PATH"
        yield Finding("llama-cpp-unmeasured", "note", message, advice)
    for change in reversed([each for each in changes if build < parse(each.first_new)]):
        is_certain = build <= parse(change.last_old)
        advice = f"use {change.first_new} or newer"
        if change.code == OPENS:
            message = f"llama.cpp b{build} {'does' if is_certain else 'may'} not open this file: {change}"
            yield Finding("llama-cpp-too-old", "error" if is_certain else "warning", message, advice)
            if is_certain:
                return
        else:
            message = f"llama.cpp b{build} {'answers' if is_certain else 'may answer'} differently: {change}"
            again = ", and recompute stored ids and embeddings" if change.example.startswith("encode(") else ""
            yield Finding("llama-cpp-differs", "warning", message, f"{advice}{again}; for example, {change.example}")
