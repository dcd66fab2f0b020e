"""What conversations need to know of a tokenizer, computed once for each: going through a large vocabulary takes 30 ms.

Complexity: O(characters of all special tokens), on first use.
"""

from __future__ import annotations

from functools import cached_property
from weakref import finalize, ref

from .._ggtok import texts
from ..tokenizer.base import BaseTokenizer
from ..tokenizer.vocab import TokenAttribute, attributes, special_texts

_CONTROL = int(TokenAttribute.CONTROL)
_SPECIAL = int(TokenAttribute.CONTROL | TokenAttribute.USER_DEFINED | TokenAttribute.UNKNOWN)


class Known:
    """What is known of one tokenizer."""

    def __init__(self, tokenizer: BaseTokenizer) -> None:
        self._tokenizer = ref(tokenizer)
        self.metadata = tokenizer.metadata
        self.special = special_texts(tokenizer.vocab)
        """Texts of special tokens by the name of a template's variable, such as `bos_token`."""

    @cached_property
    def controls(self) -> dict[int, bytes]:
        """By their ids, the texts of the control tokens that share no characters with a special token next to them."""
        tokenizer = self._tokenizer()
        assert tokenizer is not None
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


_KNOWN: dict[int, Known] = {}
"""By the `id` of their tokenizer, as long as it lives."""


def of(tokenizer: BaseTokenizer) -> Known:
    """What is known of a tokenizer."""
    found = _KNOWN.get(id(tokenizer))
    if found is None:
        found = _KNOWN.setdefault(id(tokenizer), Known(tokenizer))
        finalize(tokenizer, _KNOWN.pop, id(tokenizer), None).atexit = False
    return found
