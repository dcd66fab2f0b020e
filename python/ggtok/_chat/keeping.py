"""Encodes a text again after a change: the ids up to the last certain place before the change are kept.

1. The characters that two renderings share, each with the same trust, are compared from the start.
2. A *cut* is a place whose two sides are encoded independently. A control token that the template wrote starts one if
   its text overlaps with no other special token, so that nothing next to it can change how it is read. The characters
   that a model's ids stand for end one.
3. All ids before the last cut in the shared part are kept, and the text from there on is encoded as a continuation.
4. Ids of a model stand for their characters, and the text on both sides of them is encoded separately.

Complexity: O(n) to compare and copy n characters and ids, a few nanoseconds each; encoding takes the time of what comes
after the last cut.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple
from weakref import finalize

from .. import _ggtok
from .._base import BaseTokenizer
from .._vocab import TokenAttribute, Vocab, attributes
from .encoding import Encoded, stretch, twice
from .rendering import Source
from .sampled import Fixed
from .text import Run, Text, plain

_CONTROL = int(TokenAttribute.CONTROL)
_SPECIAL = int(TokenAttribute.CONTROL | TokenAttribute.USER_DEFINED | TokenAttribute.UNKNOWN)


class Cut(NamedTuple):
    """A place whose two sides are encoded independently."""

    reach: int
    """The characters that have to be the same: the end of the control token that starts there."""
    start: int
    """In characters."""
    token: int
    """How many ids come before."""


class Held(NamedTuple):
    """A rendered conversation and its ids. Never changed, so that conversations can share it."""

    text: Text
    fixed: tuple[Fixed, ...]
    ids: list[int]
    spans: list[tuple[int, int]]
    cuts: list[Cut]
    own: list[tuple[int, int]]
    """The tokens of each of `fixed`."""

    def sampled(self) -> Iterator[tuple[int, int]]:
        """The tokens that a model produced, end-of-generation tokens included if the template writes the same ones."""
        for place, (start, end) in zip(self.fixed, self.own, strict=True):
            yield start, end + (place.ending is not None and self.ids[end : end + 1] == [place.ending])


class Controls:
    """Which control tokens of a vocabulary start a cut. Shared by its conversations (`controls_of`)."""

    def __init__(self, vocab: Vocab) -> None:
        rows = list(zip(_ggtok.texts(vocab._core), attributes(vocab), strict=True))
        self._special = [text for text, bits in rows if bits & _SPECIAL]
        self._control = {id: text for id, (text, bits) in enumerate(rows) if bits & _CONTROL and id != vocab.unk_id}
        self._texts: dict[int, str | None] = {}

    def text(self, id: int) -> str | None:
        """The text of a control token that overlaps with no special token; `None` for other tokens."""
        own = self._control.get(id)
        if own is None:
            return None
        if id not in self._texts:
            is_alone = own and self._is_alone(own)
            self._texts[id] = own.decode("utf-8", "surrogateescape") if is_alone else None
        return self._texts[id]

    def _is_alone(self, own: bytes) -> bool:
        if sum(own in text for text in self._special) != 1:
            return False
        starts, ends = {own[:size] for size in range(1, len(own))}, {own[size:] for size in range(1, len(own))}
        for text in self._special:
            if text[:1] in own[1:] or text[-1:] in own[:-1]:
                sizes = range(1, min(len(text), len(own) - 1) + 1)
                if any(text[:size] in ends or text[-size:] in starts for size in sizes):
                    return False
        return True


_CONTROLS: dict[int, Controls] = {}
"""By the `id` of their tokenizer, as long as it lives. Looking through a large vocabulary takes 30 ms."""


def controls_of(tokenizer: BaseTokenizer) -> Controls:
    found = _CONTROLS.get(id(tokenizer))
    if found is None:
        found = _CONTROLS.setdefault(id(tokenizer), Controls(tokenizer.vocab))
        finalize(tokenizer, _CONTROLS.pop, id(tokenizer), None).atexit = False
    return found


def encode(
    tokenizer: BaseTokenizer,
    controls: Controls,
    text: Text,
    fixed: tuple[Fixed, ...],
    source: Source,
    add_special: bool,
    before: Held | None,
) -> Held:
    """The ids of a text. Raises what `encoding.encode` does."""
    cut, done = _last_cut(text, fixed, before)
    ids, spans, cuts, own = [], [], [], []
    if before is not None and cut.token:
        ids, spans = before.ids[: cut.token], before.spans[: cut.token]
        cuts, own = before.cuts[: bisect_left(before.cuts, cut)], before.own[:done]
        cuts += [cut] if cut.start == cut.reach else []  # the others start with a token that is encoded again

    at, value = cut.start, plain(text)
    for number, place in enumerate((*fixed[done:], None)):
        is_first, end = not cut.token and not number, len(text) if place is None else place.start
        encoded = _between(tokenizer, text.cut(at, end), source, add_special, at, is_first, place is None)
        for id, (first, last) in zip(*encoded, strict=True):
            spans.append((at + first, at + last))
            control = controls.text(id)
            if control is not None and control == value[at + first : at + last]:
                cuts.append(Cut(at + last, at + first, len(ids)))
            ids.append(id)
        if place is not None:
            own.append((len(ids), len(ids) + len(place.ids)))
            ids += place.ids
            spans += [(place.start, place.end)] * len(place.ids)
            at = place.end
            cuts.append(Cut(at, at, len(ids)))
    return Held(text, fixed, ids, spans, cuts, own)


def _last_cut(text: Text, fixed: tuple[Fixed, ...], before: Held | None) -> tuple[Cut, int]:
    """The last cut from which on a text has to be encoded, and how many of `fixed` are before it."""
    if before is None:
        return Cut(0, 0, 0), 0
    shared, same = _shared(before.text, text), 0
    for old, new in zip(before.fixed, fixed, strict=False):
        if old != new or new.end > shared:
            break
        same += 1
    for each in (*before.fixed[same : same + 1], *fixed[same : same + 1]):
        shared = min(shared, each.start)
    most = before.own[same][0] if same < len(before.own) else len(before.ids)
    at = bisect_right(before.cuts, shared, key=itemgetter(0))
    while at and before.cuts[at - 1].token > most:
        at -= 1
    cut = before.cuts[at - 1] if at else Cut(0, 0, 0)
    return (cut, sum(each.end <= cut.start for each in fixed[:same])) if cut.token else (Cut(0, 0, 0), 0)


def _between(
    tokenizer: BaseTokenizer, text: Text, source: Source, add_special: bool, at: int, is_first: bool, is_last: bool
) -> Encoded:
    """The ids between two places that are encoded independently. Nothing is added at them."""
    is_added = add_special and (is_first or is_last)
    ids, spans = stretch(tokenizer, text, source, is_added, at, continues=not is_first)
    first, last = twice(tokenizer, text, ids, add_special)
    first, last = first if is_first else 0, last if is_last else 0
    while not is_last and len(ids) - last > first and spans[len(ids) - last - 1] == (len(text), len(text)):
        if ids[len(ids) - last - 1] not in (tokenizer.vocab.eos_id, tokenizer.vocab.sep_id):
            break
        last += 1
    return Encoded(ids[first : len(ids) - last], spans[first : len(ids) - last])


def _shared(old: Text, new: Text) -> int:
    """How many characters at the start of two texts are the same and have the same trust."""
    size = common(plain(old), plain(new))
    runs = common(old.runs, new.runs)
    at = sum(length for length, _ in old.runs[:runs])
    trusted = zip(_trusted(at, old.runs[runs:]), _trusted(at, new.runs[runs:]), strict=False)
    for (end, trust), (other_end, other_trust) in trusted:
        if trust != other_trust:
            return min(size, at)
        at = min(end, other_end)
        if end != other_end:
            break
    return min(size, at)


def common(one: Sequence[Any], other: Sequence[Any]) -> int:
    """How many items at the start of two sequences are equal, by comparing slices."""
    low, high = 0, min(len(one), len(other))
    if one[:high] == other[:high]:
        return high
    while high - low > 1:
        middle = (low + high) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle
    return low


def _trusted(at: int, runs: tuple[Run, ...]) -> Iterator[tuple[int, bool | None]]:
    """Where each stretch of one trust ends."""
    for trust, group in groupby(runs, lambda run: run[1].trusted):
        at += sum(length for length, _ in group)
        yield at, trust
