"""What libraries that constrain generation ask about a vocabulary: which tokens are special, and which end a text."""

from __future__ import annotations

from ..errors import GgtokError
from ..tokenizer.base import BaseTokenizer
from ..tokenizer.vocab import TokenAttribute, attributes


def special_ids(tok: BaseTokenizer) -> list[int]:
    """Control tokens and the unknown token."""
    special = int(TokenAttribute.CONTROL | TokenAttribute.UNKNOWN)
    return [id for id, bits in enumerate(attributes(tok.vocab)) if bits & special]


def end_ids(tok: BaseTokenizer) -> list[int]:
    """The tokens that end generation, EOS first. Raises `GgtokError` if there is none."""
    vocab = tok.vocab
    ends = sorted(vocab.eog_ids, key=lambda id: (id != vocab.eos_id, id))
    if not ends:
        raise GgtokError("the vocabulary has no token that ends generation: pass its id")
    return ends
