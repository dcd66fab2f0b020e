"""A vocabulary and a tokenizer for outlines, which constrains generation with regular expressions and JSON schemas."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

from ..tokenizer.base import BaseTokenizer
from ._shared import end_ids, load, special_ids


def vocabulary(tok: BaseTokenizer) -> Any:
    """The `outlines_core.Vocabulary` of a tokenizer: the bytes of each token, so that characters may be cut.

    Each token is its text there, also a control token. Those that end generation are left out, so EOS ends an answer.

    Raises:
        DependencyError: outlines-core is not installed.
        GgtokError: No token of the vocabulary ends generation.

    >>> import ggtok
    >>> ggtok.adapters.outlines.vocabulary(ggtok.Tokenizer.builtin("bpe")).get(b" is")
    [5981]
    """
    ends, ids = end_ids(tok), dict[bytes, list[int]]()
    for id, piece in enumerate(tok.vocab.pieces):
        if piece and id not in ends:
            ids.setdefault(piece, []).append(id)
    return load("outlines_core", "outlines-core").Vocabulary(ends[0], ids)


def tokenizer(tok: BaseTokenizer) -> OutlinesTokenizer:
    """What outlines expects as the `tokenizer` of a model.

    Raises `GgtokError` if no token of the vocabulary ends generation.

    >>> import ggtok
    >>> ggtok.adapters.outlines.tokenizer(ggtok.Tokenizer.builtin("bpe")).eos_token
    '<|endoftext|>'
    """
    return OutlinesTokenizer(tok)


class OutlinesTokenizer:
    """A tokenizer with the protocol of `outlines.models.tokenizer.Tokenizer`."""

    def __init__(self, tok: BaseTokenizer) -> None:
        self._tok = tok
        self.eos_token_id: int = end_ids(tok)[0]
        self.eos_token: str = tok.vocab[self.eos_token_id].text
        pad_id = tok.vocab.pad_id
        self.pad_token_id: int = self.eos_token_id if pad_id is None else pad_id
        self.special_tokens: set[str] = {tok.vocab[id].text for id in special_ids(tok)}

    @cached_property
    def vocabulary(self) -> dict[str, int]:
        """The ids by the texts of the tokens. Of the tokens that end generation, it has only EOS."""
        left_out = {*end_ids(self._tok)} - {self.eos_token_id}
        return {token.text: token.id for token in self._tok.vocab if token.id not in left_out}

    def get_vocab(self) -> dict[str, int]:
        """The same as `vocabulary`."""
        return self.vocabulary

    def encode(self, prompt: str | Sequence[str]) -> tuple[Any, Any]:
        """The ids of one or several prompts and their attention mask, two arrays of int64. Control tokens are read."""
        batch = self._tok.encode_batch([prompt] if isinstance(prompt, str) else prompt, parse_special=True)
        ids, mask = batch.pad(value=self.pad_token_id)
        return ids.astype("int64"), mask.astype("int64")

    def decode(self, token_ids: Iterable[Any]) -> list[str]:
        """The texts of rows of ids, or of one row, without control tokens."""
        rows = list(token_ids)
        return self._tok.decode_batch(rows if rows and hasattr(rows[0], "__len__") else [rows])

    def convert_token_to_string(self, token: str) -> str:
        """The text that a token stands for. Bytes that are not UTF-8 are U+FFFD."""
        id = self._tok.vocab.id(token)
        return token if id is None else self._tok.piece(id).decode("utf-8", "replace")

    def __eq__(self, other: object) -> bool:
        return self._tok == other._tok if isinstance(other, OutlinesTokenizer) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._tok)
