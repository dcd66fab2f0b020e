"""A tokenizer for llguidance, which constrains generation with grammars and JSON schemas."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ..tokenizer.base import BaseTokenizer
from ..tokenizer.vocab import TokenAttribute, ids_with
from ._shared import end_ids, load, special_ids


class _Wrapped:
    """What llguidance's `TokenizerWrapper` takes.

    It asks for the ids of texts that a grammar forces, so their pieces have to be the text and none may be special.
    Texts therefore continue others, without the space that SPM puts before a text and after a user-defined token.
    """

    def __init__(self, tok: BaseTokenizer, eos_id: int) -> None:
        self.eos_token_id, self.bos_token_id = eos_id, tok.vocab.bos_id
        self.tokens: list[bytes] = tok.vocab.pieces
        user_defined = {*ids_with(tok.vocab, TokenAttribute.USER_DEFINED)}
        markers = {id for id in user_defined if re.fullmatch(b"<.*>", self.tokens[id], re.DOTALL)}
        self.special_token_ids = [*special_ids(tok), *markers]
        rests = _any_of([self.tokens[id][1:] for id in markers])
        others = _any_of([self.tokens[id] for id in user_defined - markers])
        self._cuts = re.compile(b"(?<=<)(?=" + rests + b")|(" + others + b")")
        self._tok = tok

    def __call__(self, text: bytes) -> list[int]:
        parts = filter(None, self._cuts.split(text))
        return [id for part in parts for id in self._tok.encode(part, add_special=False, continues=True)]


def _any_of(texts: list[bytes]) -> bytes:
    """A pattern that prefers the longest text."""
    return b"|".join([re.escape(text) for text in sorted(filter(None, texts), key=len, reverse=True)]) or b"(?!)"


def tokenizer(
    tok: BaseTokenizer, *, eos_token: int | Sequence[int] | None = None, slices: Sequence[str] | None = None
) -> Any:
    """The `llguidance.LLTokenizer` of a tokenizer.

    Special tokens are not text there: a grammar has to name them. As with llguidance's own readers they are control
    tokens, the unknown token, and user-defined tokens written `<...>`, such as `<think>`.

    Args:
        tok: The tokenizer.
        eos_token: The ids that end generation. Default: `vocab.eog_ids`.
        slices: llguidance's setting for faster masks.

    Raises:
        DependencyError: llguidance is not installed.
        GgtokError: No token of the vocabulary ends generation, and `eos_token` is not given.

    Takes a second for 150,000 tokens: keep the result.

    >>> import ggtok
    >>> ggtok.adapters.llguidance.tokenizer(ggtok.Tokenizer.builtin("bpe")).eos_token
    12991
    """
    llguidance = load("llguidance", "llguidance")
    ends = end_ids(tok) if eos_token is None else [eos_token] if isinstance(eos_token, int) else list(eos_token)
    wrapper = llguidance.TokenizerWrapper(_Wrapped(tok, ends[0]))
    return llguidance.LLTokenizer(wrapper, eos_token=ends, slices=slices and list(slices))
