"""A vocabulary for xgrammar, which constrains generation with grammars and JSON schemas."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..tokenizer.base import BaseTokenizer
from ._shared import end_ids, load


def tokenizer_info(tok: BaseTokenizer, *, stop_token_ids: int | Sequence[int] | None = None) -> Any:
    """The `xgrammar.TokenizerInfo` of a tokenizer. Each token is its text there, also a control token.

    So a string of a JSON schema may hold control tokens, except those that end generation.

    Args:
        tok: The tokenizer.
        stop_token_ids: The ids that end generation. Default: `vocab.eog_ids`.

    Raises:
        DependencyError: xgrammar is not installed.
        GgtokError: No token of the vocabulary ends generation, and `stop_token_ids` is not given.
    """
    xgrammar = load("xgrammar", "xgrammar")
    stops = end_ids(tok) if stop_token_ids is None else stop_token_ids
    return xgrammar.TokenizerInfo(
        tok.vocab.pieces,
        xgrammar.VocabType.RAW,
        vocab_size=tok.vocab_size,
        stop_token_ids=[stops] if isinstance(stops, int) else list(stops),
    )
