"""The two sides: llama.cpp and ggtok, each answering the same queries with plain values.

Ids are lists of int, texts are bytes, an absent special id is -1 (llama.cpp's LLAMA_TOKEN_NULL).
"""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import c_bool, c_int32, c_void_p, create_string_buffer
from functools import cached_property
from random import Random
from typing import Any

from .binding import LlamaCpp, Overrides

FIM_SLOTS = ("fim_pre", "fim_suf", "fim_mid", "fim_pad", "fim_rep", "fim_sep")
SPECIAL_IDS = ("bos", "eos", "eot", "sep", "nl", "pad", "mask", *FIM_SLOTS)
FLAGS = ("add_bos", "add_eos", "add_sep")
CONTROL_OR_USER_DEFINED = 8 | 16

TokenAnswer = tuple[int, bool, bytes, bytes]
"""Attributes, end of generation or not, and the piece with and without special tokens rendered."""


class Reference:
    """llama.cpp, through a shared library, which is loaded by the first query."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._model: int | None = None

    def library(self) -> dict[str, str | None]:
        """What the library says of itself: the versions `release` and `ggml`."""
        return self._library.versions()

    def open(self, path: str, overrides: Overrides) -> int:
        """Opens a vocabulary in place of the last one; returns its number of tokens."""
        if self._model is not None:
            self._library.calls["llama_model_free"](self._model)
            self._model = None
        self._model = self._library.open(path, overrides)
        self._vocab: int = self._library.calls["llama_model_get_vocab"](self._model)
        self._num_tokens = int(self._call("llama_vocab_n_tokens"))
        return self._num_tokens

    def encode(self, text: bytes, add_special: bool, parse_special: bool) -> list[int]:
        """llama_tokenize."""
        size = len(text) + 16
        while True:
            ids = (c_int32 * size)()
            found = self._call("llama_tokenize", text, len(text), ids, size, add_special, parse_special)
            if found >= 0:
                return ids[:found]
            size = -found

    def decode(self, ids: list[int], remove_special: bool, unparse_special: bool) -> bytes:
        """llama_detokenize."""
        tokens = (c_int32 * len(ids))(*ids)
        flags = (remove_special, unparse_special)
        return self._text("llama_detokenize", (tokens, len(ids)), flags, 16 * len(ids) + 64)

    def token(self, token: int) -> TokenAnswer:
        """One token."""
        attributes, is_eog = self._call("llama_vocab_get_attr", token), self._call("llama_vocab_is_eog", token)
        return attributes, is_eog, self._piece(token, special=True), self._piece(token, special=False)

    def tokens(self, start: int, end: int) -> list[TokenAnswer]:
        """A range of tokens."""
        return [self.token(token) for token in range(start, end)]

    def specials(self, names: Sequence[str]) -> dict[str, int | None]:
        """Special ids, and the flags that add them; `None` for those without a getter."""
        found: dict[str, int | None] = {}
        for name in names:
            getter, result = (f"get_{name}", c_bool) if name in FLAGS else (name, c_int32)
            function = self._library.optional(f"llama_vocab_{getter}", result, [c_void_p])
            found[name] = None if function is None else int(function(self._vocab))
        return found

    def catalogue(self, limit: int, seed: int) -> tuple[list[bytes], list[bytes]]:
        """Token pieces to write texts with: up to `limit` of all tokens, and of those that are cut out of a text."""
        rng, ids = Random(seed), range(self._num_tokens)
        some = ids if len(ids) <= limit else sorted(rng.sample(ids, limit))
        cut_out = [token for token in ids if self._call("llama_vocab_get_attr", token) & CONTROL_OR_USER_DEFINED]
        cut_out = cut_out if len(cut_out) <= limit else rng.sample(cut_out, limit)
        pieces, special = ([self._piece(token, special=True) for token in each] for each in (some, cut_out))
        return pieces, special

    def _piece(self, token: int, special: bool) -> bytes:
        return self._text("llama_token_to_piece", (token,), (0, special), 64)

    def _text(self, name: str, before: tuple[Any, ...], after: tuple[Any, ...], size: int) -> bytes:
        """What a call writes, which is made again with more room if it needs that."""
        while True:
            text = create_string_buffer(size)
            found = self._call(name, *before, text, size, *after)
            if found >= 0:
                return text.raw[:found]
            size = -found + 8

    def _call(self, name: str, *arguments: Any) -> Any:
        """Calls a function about the vocabulary."""
        return self._library.calls[name](self._vocab, *arguments)

    @cached_property
    def _library(self) -> LlamaCpp:
        return LlamaCpp(self._path)


class Ours:
    """ggtok."""

    def open(self, path: str, overrides: Overrides) -> int:
        """Opens a vocabulary in place of the last one; returns its number of tokens."""
        # Here, not above: the reference's process must not depend on it.
        from ...tokenizer.base import BaseTokenizer

        self._tokenizer = BaseTokenizer.from_gguf(path, overrides=dict(overrides) or None)
        self._eog = set(self._tokenizer.vocab.eog_ids)
        return len(self._tokenizer.vocab)

    def kind(self) -> str:
        """The kind of the vocabulary."""
        return self._tokenizer.vocab.kind

    def encode(self, text: bytes, add_special: bool, parse_special: bool) -> list[int]:
        """`encode`."""
        return self._tokenizer.encode(text, add_special=add_special, parse_special=parse_special)

    def decode(self, ids: list[int], remove_special: bool, unparse_special: bool) -> bytes:
        """`decode_bytes` with `clean_spaces`."""
        flags = {"remove_special": remove_special, "unparse_special": unparse_special}
        return self._tokenizer.decode_bytes(ids, clean_spaces=True, **flags)

    def token(self, token: int) -> TokenAnswer:
        """One token."""
        tokenizer = self._tokenizer
        plain = tokenizer.piece(token, special=False)
        return int(tokenizer.vocab[token].attributes), token in self._eog, tokenizer.piece(token, special=True), plain

    def tokens(self, start: int, end: int) -> list[TokenAnswer]:
        """A range of tokens."""
        return [self.token(token) for token in range(start, end)]

    def specials(self, names: Sequence[str]) -> dict[str, int | None]:
        """Special ids, and the flags that add them."""
        vocab = self._tokenizer.vocab
        values = {name: getattr(vocab, name if name in FLAGS else f"{name}_id") for name in names}
        return {name: -1 if value is None else int(value) for name, value in values.items()}
