"""Which differences a change of llama.cpp explains: `_releases` has the changes, and what each is about stands here.

1. A change may be missing in a library if that may be older than the first release that has it. `builds` are the
   builds that it can be: one if its release is known, otherwise those between which its version of ggml lies.
2. A change explains a difference that is gone once what the change is about is taken out of the call: signs out of a
   text, tokens out of a list of ids, names out of a list of special tokens. Both sides are asked again, so it is not
   enough that a text contains what a change is about.
3. If no change alone explains it, the smallest set of changes that does so together is taken. Otherwise nobody knows
   the difference.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

from .._releases import ReleaseChange, concerned, data, of, opened, parse
from .._vocab import TokenAttribute, Vocab
from .library import Library
from .report import Difference
from .serve import Query

OPENS = "opens"
"""The code of a file's first release: earlier ones refuse it."""

Without = Callable[[Query, Vocab], Query | None]
"""A call without what a change is about: the same call if it is not in it, `None` if nothing is left."""
StillDiffer = Callable[[list[Query]], list[bool]]
"""Asks both sides again; says for each call whether they still differ."""

OVERLONG = re.compile(rb"[\xc0\xc1][\x80-\xbf]|\xe0[\x80-\x9f][\x80-\xbf]|\xf0[\x80-\x8f][\x80-\xbf]{2}")
"""A character in more bytes than it needs, which llama.cpp reads all the same."""


def _repeated(once: Without) -> Without:
    """Takes out until there is no more: the bytes on both sides of what was taken out may be such a thing together."""

    def without(query: Query, vocab: Vocab) -> Query | None:
        before, left = None, once(query, vocab)
        while left is not None and left != before:
            before, left = left, once(left, vocab)
        return left

    return without


def _text(taken_out: Callable[[str], str]) -> Without:
    @_repeated
    def without(query: Query, _: Vocab) -> Query:
        kind, *arguments = query
        if kind != "encode":
            return query
        text = OVERLONG.sub(_shortened, arguments[0]).decode("utf-8", "surrogateescape")
        return (kind, taken_out(text).encode("utf-8", "surrogateescape"), *arguments[1:])

    return without


def _tokens(*texts: str) -> Without:
    """A change of what the tokens with these texts are."""

    @_repeated
    def without(query: Query, vocab: Vocab) -> Query | None:
        kind, first, *flags = query
        ids = {id: text for text in texts if (id := vocab.id(text)) is not None}
        if kind == "encode":
            for text in ids.values():
                first = first.replace(text.encode(), b"")
            return (kind, first, *flags)
        if kind == "decode":
            return (kind, [id for id in first if id not in ids], *flags)
        if kind == "token":
            return None if first in ids else query
        return (kind, [slot for slot in first if getattr(vocab, f"{slot}_id", None) not in ids])

    return without


def _added_bos(query: Query, _: Vocab) -> Query:
    """A change of whether BOS is added, and so whether `remove_special` removes it."""
    kind, first, *flags = query
    if kind in ("encode", "decode"):
        return (kind, first, False, flags[1])
    return (kind, [slot for slot in first if slot != "add_bos"]) if kind == "specials" else query


def _added(query: Query, _: Vocab) -> Query:
    """A change of what `add_special` adds."""
    return (*query[:2], False, *query[3:]) if query[0] == "encode" else query


def _bytes(query: Query, vocab: Vocab) -> Query | None:
    """A change of which texts become byte tokens, and of what those decode to."""
    kind, first, *flags = query
    if kind == "encode":
        has_token = _text(lambda text: "".join(sign for sign in text if sign == " " or vocab.id(sign) is not None))
        return has_token(query, vocab)
    if kind == "decode":
        return (kind, [id for id in first if not _is_byte(id, vocab)], *flags)
    return None if kind == "token" and _is_byte(first, vocab) else query


def _is_byte(id: int, vocab: Vocab) -> bool:
    return 0 <= id < len(vocab) and TokenAttribute.BYTE in vocab[id].attributes


def _all(*parts: Without) -> Without:
    """A change about several things."""

    def without(query: Query, vocab: Vocab) -> Query | None:
        left: Query | None = query
        for part in parts:
            left = None if left is None else part(left, vocab)
        return left

    return without


def _shortened(overlong: re.Match[bytes]) -> bytes:
    code = overlong[0][0] & 0x0F
    for byte in overlong[0][1:]:
        code = code << 6 | byte & 0x3F
    return chr(code).encode("utf-8", "surrogatepass")


def _without_marks(text: str) -> str:
    """The text with decomposed letters, Hangul too, but without marks and what this Python's Unicode does not know."""
    signs = unicodedata.normalize("NFD", text)
    return "".join(sign for sign in signs if not unicodedata.category(sign).startswith(("M", "Cn")))


WITHOUT: dict[str, Without] = {
    "collapsed-tilde": _text(lambda text: text.replace("~", "")),
    "plamo2-added": _added,
    "wordpiece-marks": _text(_without_marks),
    "wordpiece-lowercase": _text(str.lower),
    "gemma4": _all(_added_bos, _bytes, _tokens("</s>")),
}
"""What changes of `llama_cpp_releases.json` are about, by their codes. Those of tokens name the tokens themselves."""


def about(row: Any) -> Without | None:
    """What a change is about, `None` if that is not known."""
    texts = [*row["concerns"].get("found", ()), *row["concerns"].get("marked", ())]
    return WITHOUT.get(row["code"]) or (_tokens(*texts) if texts else None)


@dataclass(frozen=True)
class KnownChange:
    """A change of llama.cpp that explains differences of a comparison."""

    change: ReleaseChange
    """What changed, and between which releases."""
    count: int
    """How many answers it explains, alone or with other changes."""
    certain: bool
    """Whether this library is known to be older than the change. Otherwise its release is not known, or lies between
    the two of the change."""

    def __str__(self) -> str:
        change = self.change
        where = f"between {change.last_old} and {change.first_new}" if self.certain else ""
        where = where or f"which some release before {change.first_new} lacks"
        return f"{self.count:,} by {change.code}, {where}: {change._cited()}"

    def to_dict(self) -> dict[str, object]:
        """For JSON."""
        change = self.change
        about = {name: getattr(change, name) for name in ("code", "what", "last_old", "first_new", "pull_requests")}
        return {**about, "count": self.count, "certain": self.certain}


class Known:
    """The changes that may explain what one library answers about one vocabulary."""

    def __init__(self, library: Library, vocab: Vocab) -> None:
        self._vocab = vocab
        first, last = builds(library)
        changes = [*_opening(vocab), *of(vocab).changes]
        self._changes = {change.code: change for change in changes if first < parse(change.first_new)}
        known = {row["code"]: about(row) for row in concerned(vocab)}
        self._without = {code: without for code, without in known.items() if without and code in self._changes}
        self._certain = {code for code, change in self._changes.items() if last <= parse(change.last_old)}

    def explain(self, differences: Sequence[Difference], still_differ: StillDiffer) -> list[tuple[str, ...]]:
        """For each difference the codes of the changes that explain it, none if nothing does."""
        found: list[tuple[str, ...]] = [()] * len(differences)
        for number in range(1, len(self._changes) + 1):
            asked: list[tuple[int, tuple[str, ...], Query]] = []
            for at, difference in enumerate(differences):
                for codes in combinations(self._about(difference), number) if not found[at] else ():
                    if (query := self._left(difference.query, codes)) is None:
                        found[at] = codes
                    elif not found[at]:
                        asked.append((at, codes, query))
            for (at, codes, _), differs in zip(asked, still_differ([query for *_, query in asked]), strict=True):
                found[at] = found[at] or (() if differs else codes)
        return found

    def listed(self, counts: Mapping[str, int]) -> list[KnownChange]:
        """The changes that explained something, with how much."""
        codes = [code for code in self._changes if counts.get(code)]
        return [KnownChange(self._changes[code], counts[code], code in self._certain) for code in codes]

    def _about(self, difference: Difference) -> list[str]:
        """The changes that are about something in the call."""
        query, answered = difference.query, difference.reference[0] == difference.ours[0] == "ok"
        if query[0] == "open":
            refused = difference.reference[0] == "error" and difference.ours[0] == "ok"
            return [OPENS] if refused and OPENS in self._changes else []
        return [code for code, without in self._without.items() if answered and without(query, self._vocab) != query]

    def _left(self, query: Query, codes: Collection[str]) -> Query | None:
        """The call without what these changes are about: nothing, if it is to open the file."""
        parts = (self._without[code] for code in codes if code != OPENS)
        return None if OPENS in codes else _all(*parts)(query, self._vocab)


def _opening(vocab: Vocab) -> Iterator[ReleaseChange]:
    """That earlier releases refuse a file, as a change."""
    last, first, what, _ = opened(vocab)
    if last:
        yield ReleaseChange(OPENS, f"it accepts {what}", f"b{last}", f"b{first}", (), "opening it")


def builds(library: Library) -> tuple[int, int]:
    """The first and the last build that a library can be."""
    if library.release is not None:
        return (build := parse(library.release)), build
    first = parse(library.after) + 1 if library.after else 0
    last = parse(library.before) - 1 if library.before else 1 << 31
    return first, last


def bounded(library: Library) -> Library:
    """A library of an unknown release with those between which its version of ggml lies."""
    if library.release is not None or (version := _version(library.ggml)) is None:
        return library
    rows = [(row["build"], _version(row["ggml"])) for row in data()["releases"]]
    older = [build for build, other in rows if other is not None and other < version]
    newer = [build for build, other in rows if other is not None and other > version]
    after, before = (f"b{build}" if build else None for build in (max(older, default=0), min(newer, default=0)))
    return replace(library, after=after, before=before)


def _version(text: str | None) -> tuple[int, ...] | None:
    match = re.fullmatch(r"(\d{1,6}(?:\.\d{1,6}){2})(?:-dirty)?", text or "", re.ASCII)
    return tuple(map(int, match[1].split("."))) if match else None
