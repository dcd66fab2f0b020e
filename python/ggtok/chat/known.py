"""The control tokens at which a growing chat can be cut, found once for each tokenizer: it takes up to 30 ms.

Complexity: O(characters of all special tokens), on first use.
"""

from __future__ import annotations

from weakref import finalize

from .._ggtok import texts
from ..tokenizer.base import BaseTokenizer
from ..tokenizer.vocab import TokenAttribute, attributes

_CONTROL = int(TokenAttribute.CONTROL)
_SPECIAL = int(TokenAttribute.CONTROL | TokenAttribute.USER_DEFINED | TokenAttribute.UNKNOWN)

_KNOWN: dict[int, dict[int, bytes]] = {}
"""By the `id` of their tokenizer, as long as it lives."""


def controls(tokenizer: BaseTokenizer) -> dict[int, bytes]:
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
