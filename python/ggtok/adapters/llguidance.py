"""A tokenizer for llguidance, which constrains generation with grammars and JSON schemas."""

from __future__ import annotations

from ._generation import end_ids, special_ids
from ._packages import load

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from .._tokenizer import Tokenizer


class _Wrapped:
    """What llguidance's `TokenizerWrapper` takes. Texts continue others, so SPM puts no space before them."""

    def __init__(self, tok: Tokenizer, eos_id: int) -> None:
        self.eos_token_id, self.bos_token_id = eos_id, tok.vocab.bos_id
        self.tokens: list[bytes] = tok.vocab.pieces
        self.special_token_ids = special_ids(tok)
        self._tok = tok

    def __call__(self, text: bytes | str) -> list[int]:
        return self._tok.encode(text, add_special=False, continues=True)


def tokenizer(
    tok: Tokenizer,
    *,
    eos_token: int | Sequence[int] | None = None,
    slices: Sequence[str] | None = None,
) -> Any:
    """The `llguidance.LLTokenizer` of a tokenizer.

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
