"""Which differences a known change of llama.cpp explains: those in calls that it is about, if the library lacks it.

A change may be missing in a library that is older than the first release known to have it, or may be. It is about texts
with some signs, about some tokens, or about nearly every call. That call can also differ for another reason, which a
newer library shows.
"""

from __future__ import annotations

import re
from dataclasses import replace

from ...tokenizer.base import BaseTokenizer
from ...tokenizer.vocab import Vocab
from ..releases import OPENS, data, history, parse
from .library import Library
from .report import Difference
from .serve import Query


class Known:
    """The changes that may explain what one library answers about one vocabulary."""

    def __init__(self, library: Library, tokenizer: BaseTokenizer) -> None:
        self._vocab = tokenizer.vocab
        lacking = (change for change in history(tokenizer)[1] if oldest(library) < parse(change.first_new))
        self.changes = {change.code: change for change in lacking}

    def explain(self, difference: Difference) -> tuple[str, ...]:
        """The codes of the changes that explain a difference, none if nothing does."""
        query, theirs, ours = difference.query, difference.reference[0], difference.ours[0]
        if ours != "ok" or theirs != ("error" if query[0] == "open" else "ok"):
            return ()
        return tuple(code for code in self.changes if is_about(code, query, self._vocab))


def is_about(code: str, query: Query, vocab: Vocab) -> bool:
    """Whether a change is about something in a call."""
    kind, first, *_ = query
    if kind == "open" or code == OPENS:
        return kind == "open" and code == OPENS
    (row,) = (row for row in data()["changes"] if row["code"] == code)
    if "signs" in row:
        return kind == "encode" and re.search(row["signs"].encode(), first) is not None
    texts = [text for name in ("found", "marked") for text in row["concerns"].get(name, ())]
    if not texts or kind == "specials":
        return True
    if kind == "encode":
        return any(text.encode() in first for text in texts)
    return not {vocab.id(text) for text in texts}.isdisjoint(first if kind == "decode" else [first])


def oldest(library: Library) -> int:
    """The first build that a library can be."""
    return parse(library.release) if library.release else parse(library.after) + 1 if library.after else 0


def bounded(library: Library) -> Library:
    """A library of an unknown release with those between which its version of ggml lies."""
    if library.release is not None or not (version := _version(library.ggml)):
        return library
    rows = [(f"b{row['build']}", _version(row["ggml"])) for row in data()["releases"]]
    older = [build for build, other in rows if other < version]
    newer = [build for build, other in rows if other > version]
    return replace(library, after=older[-1] if older else None, before=newer[0] if newer else None)


def _version(text: str | None) -> list[int]:
    return [*map(int, re.findall(r"[0-9]{1,6}", text or ""))][:3]
