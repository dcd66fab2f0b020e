"""Encodes a text again after a change: the ids up to the last certain place before the change are kept.

1. The bytes that two renderings share, each with the same trust, are compared from the start.
2. A *cut* is a place whose two sides are encoded independently. A control token that the template wrote starts one if
   its text overlaps with no other special token, so that nothing next to it can change how it is read. The bytes that a
   model's ids stand for end one.
3. All ids before the last cut in the shared part are kept, and the text from there on is encoded as a continuation.
4. Ids of a model stand for their bytes, and the text on both sides of them is encoded separately.

Complexity: O(n) to compare and copy n bytes and ids, a few nanoseconds each; encoding takes the time of what comes
after the last cut. The control tokens that start a cut are found once for each tokenizer, in up to 30 ms.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from operator import itemgetter
from typing import NamedTuple
from weakref import finalize

from .._ggtok import Rendering, texts
from ..tokenizer.base import BaseTokenizer
from ..tokenizer.vocab import TokenAttribute, attributes
from .sampled import Fixed

_CONTROL = int(TokenAttribute.CONTROL)
_SPECIAL = int(TokenAttribute.CONTROL | TokenAttribute.USER_DEFINED | TokenAttribute.UNKNOWN)

_KNOWN: dict[int, dict[int, bytes]] = {}
"""By the `id` of their tokenizer, as long as it lives."""


class SafeCut(NamedTuple):
    """A place whose two sides are encoded independently."""

    reach: int
    """The bytes that have to be the same: the end of the control token that starts there."""
    start: int
    """In bytes."""
    token: int
    """How many ids come before."""


class Held(NamedTuple):
    """A rendered conversation and its ids. Never changed, so that conversations can share it."""

    rendering: Rendering
    data: bytes
    fixed: tuple[Fixed, ...]
    ids: list[int]
    spans: list[tuple[int, int]]
    cuts: list[SafeCut]
    own: list[tuple[int, int]]
    """The tokens of each of `fixed`."""

    def sampled(self) -> Iterator[tuple[int, tuple[int, int]]]:
        """Messages with tokens that a model produced. If it produced an end-of-generation token and the template writes
        the same one, that is one of them."""
        for place, (start, end) in zip(self.fixed, self.own, strict=True):
            is_ended = place.ending is not None and self.ids[end : end + 1] == [place.ending]
            yield place.message, (start, end + is_ended)


def encode(
    tokenizer: BaseTokenizer,
    rendering: Rendering,
    data: bytes,
    fixed: tuple[Fixed, ...],
    add_special: bool,
    before: Held | None,
) -> Held:
    """The ids of a rendering and its bytes. Raises what `Rendering.ids` does."""
    controls = controls_of(tokenizer)
    cut, done = _last_cut(rendering, fixed, before)
    ids, spans, cuts, own = [], [], [], []
    if before is not None and cut.token:
        ids, spans = before.ids[: cut.token], before.spans[: cut.token]
        cuts, own = before.cuts[: bisect_left(before.cuts, cut)], before.own[:done]
        cuts += [cut] if cut.start == cut.reach else []  # the others start with a token that is encoded again

    at = cut.start
    for number, place in enumerate((*fixed[done:], None)):
        is_first, end = not cut.token and not number, len(data) if place is None else place.start
        encoded = rendering.stretch(tokenizer, (at, end), is_first, place is None, add_special)
        for id, (first, last) in zip(*encoded, strict=True):
            if id in controls and controls[id] == data[first:last]:
                cuts.append(SafeCut(last, first, len(ids)))
            ids.append(id)
        spans += encoded[1]
        if place is not None:
            own.append((len(ids), len(ids) + len(place.ids)))
            ids += place.ids
            spans += [(place.start, place.end)] * len(place.ids)
            at = place.end
            cuts.append(SafeCut(at, at, len(ids)))
    return Held(rendering, data, fixed, ids, spans, cuts, own)


def _last_cut(rendering: Rendering, fixed: tuple[Fixed, ...], before: Held | None) -> tuple[SafeCut, int]:
    """The last cut from which on a text has to be encoded, and how many of `fixed` are before it."""
    if before is None:
        return SafeCut(0, 0, 0), 0
    shared, same = before.rendering.shared(rendering), 0
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
    cut = before.cuts[at - 1] if at else SafeCut(0, 0, 0)
    return (cut, sum(each.end <= cut.start for each in fixed[:same])) if cut.token else (SafeCut(0, 0, 0), 0)


def controls_of(tokenizer: BaseTokenizer) -> dict[int, bytes]:
    """By their ids, the texts of the control tokens that share no characters with a special token next to them."""
    found = _KNOWN.get(id(tokenizer))
    if found is None:
        found = _KNOWN.setdefault(id(tokenizer), _controls(tokenizer))
        finalize(tokenizer, _KNOWN.pop, id(tokenizer), None).atexit = False
    return found


def _controls(tokenizer: BaseTokenizer) -> dict[int, bytes]:
    rows = list(zip(texts(tokenizer), attributes(tokenizer.vocab), strict=True))
    special = [text for text, bits in rows if bits & _SPECIAL]
    joined = b"\0".join(special)
    starts = {text[:size] for text in special for size in range(1, len(text) + 1)}
    ends = {text[-size:] for text in special for size in range(1, len(text) + 1)}

    def is_alone(own: bytes) -> bool:
        sizes = range(1, len(own))
        return joined.count(own) == 1 and not any(own[-n:] in starts or own[:n] in ends for n in sizes)

    unknown = tokenizer.vocab.unk_id
    found = ((id, text) for id, (text, bits) in enumerate(rows) if bits & _CONTROL and text and id != unknown)
    return {id: text for id, text in found if is_alone(text)}
