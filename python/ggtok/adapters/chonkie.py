"""A tokenizer for chonkie's chunkers."""

from __future__ import annotations

from collections.abc import Sequence

from ..tokenizer.base import BaseTokenizer
from ._shared import decode_slice, encode_slices, load


class Tokenizer:
    """What chonkie's chunkers take as `tokenizer`: a (virtual) subclass of `chonkie.tokenizer.Tokenizer`.

    BOS and EOS are not added, because a chunker counts pieces of a text.

    Args:
        tok: The tokenizer.

    Raises `DependencyError` if chonkie is not installed.

    >>> import ggtok
    >>> tokenizer = ggtok.adapters.chonkie.Tokenizer(ggtok.Tokenizer.builtin("spm"))
    >>> tokenizer.tokenize("What is LoRA?"), tokenizer.count_tokens("What is LoRA?")
    (['What', ' is', ' L', 'o', 'RA', '?'], 6)
    """

    def __init__(self, tok: BaseTokenizer) -> None:
        load("chonkie.tokenizer", "chonkie").Tokenizer.register(type(self))
        self._tok = tok

    def encode(self, text: str) -> list[int]:
        """The ids of a text."""
        return encode_slices(self._tok, text)

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of ids. The texts of the slices of a text's ids, joined, are the text, unless llama.cpp changes it:
        WordPiece and Unigram normalize texts, and SPM puts a space after a user-defined token.
        """
        return decode_slice(self._tok, tokens)

    def tokenize(self, text: str) -> list[str]:
        """The texts of the tokens. Bytes that are not UTF-8 are U+FFFD."""
        return [self._tok.piece(id).decode("utf-8", "replace") for id in self.encode(text)]

    def count_tokens(self, text: str) -> int:
        """The number of tokens of a text."""
        return self._tok.count(text, add_special=False, continues=True)

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of several texts, on all cores."""
        return self._tok.encode_batch(texts, add_special=False, continues=True).tolist()

    def decode_batch(self, token_sequences: Sequence[Sequence[int]]) -> list[str]:
        """The texts of several lists of ids."""
        return [self.decode(tokens) for tokens in token_sequences]

    def count_tokens_batch(self, texts: Sequence[str]) -> list[int]:
        """The numbers of tokens of several texts, on all cores."""
        return self._tok.count_batch(texts, add_special=False, continues=True)

    def get_vocab(self) -> list[str]:
        """The texts of all tokens in the vocabulary."""
        return [token.text for token in self._tok.vocab]

    def get_token2id(self) -> dict[str, int]:
        """The ids by the texts of the tokens."""
        return {token.text: token.id for token in self._tok.vocab}

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self._tok,)

    def __repr__(self) -> str:
        return f"<ggtok.adapters.chonkie.Tokenizer of {self._tok!r}>"
