"""A tokenizer for llama-cpp-python."""

from __future__ import annotations

from collections.abc import Sequence

from ..tokenizer.base import BaseTokenizer
from ._shared import load


class Tokenizer:
    """What `llama_cpp.Llama` takes as `tokenizer`: a (virtual) subclass of `llama_cpp.BaseLlamaTokenizer`.

    It gives what llama-cpp-python's own `LlamaTokenizer` gives, faster, and without a model.

    Args:
        tok: The tokenizer.

    Raises `DependencyError` if llama-cpp-python is not installed.
    """

    def __init__(self, tok: BaseTokenizer) -> None:
        load("llama_cpp.llama_tokenizer", "llama-cpp-python").BaseLlamaTokenizer.register(type(self))
        self._tok = tok

    def tokenize(self, text: bytes, add_bos: bool = True, special: bool = True) -> list[int]:
        """The ids of a text.

        Args:
            text: The text.
            add_bos: Whether to add BOS and EOS if the vocabulary asks for them.
            special: Whether control tokens that are written in the text are read.
        """
        return self._tok.encode(text, add_special=add_bos, parse_special=special)

    def detokenize(
        self, tokens: Sequence[int], prev_tokens: Sequence[int] | None = None, special: bool = False
    ) -> bytes:
        """The bytes of ids: their pieces, joined, without the space after a BOS that comes first.

        Args:
            tokens: The ids.
            prev_tokens: The ids before them, which make no difference.
            special: Whether to write control tokens.
        """
        pieces = b"".join([self._tok.piece(id, special=special) for id in tokens])
        starts = len(tokens) > 0 and tokens[0] == self._tok.vocab.bos_id
        return pieces.removeprefix(b" ") if starts else pieces

    def encode(self, text: str, add_bos: bool = True, special: bool = True) -> list[int]:
        """As `tokenize`, for a `str`."""
        return self.tokenize(text.encode("utf-8", "ignore"), add_bos, special)

    def decode(self, tokens: Sequence[int]) -> str:
        """As `detokenize`, for a `str`, without bytes that are not UTF-8."""
        return self.detokenize(tokens).decode("utf-8", "ignore")
