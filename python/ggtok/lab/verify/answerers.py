"""The two sides: llama.cpp and ggtok, each answering the same queries with plain values.

Ids are lists of int, texts are bytes, an absent special id is -1 (llama.cpp's LLAMA_TOKEN_NULL).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from random import Random
from typing import Any

from .binding import LlamaCpp, Overrides, Vocabulary

FIM_SLOTS = ("fim_pre", "fim_suf", "fim_mid", "fim_pad", "fim_rep", "fim_sep")
SPECIAL_IDS = ("bos", "eos", "eot", "sep", "nl", "pad", "mask", *FIM_SLOTS)
FLAGS = ("add_bos", "add_eos", "add_sep")
CACHE_LIMITS = (0, 1 << 14, 1 << 16, 1 << 20, 1 << 26, 1 << 26)
"""In bytes: from no cache, through those that forget all the time, to the default."""
CONTROL_OR_USER_DEFINED = 8 | 16

TokenAnswer = tuple[int, bool, bytes, bytes]
"""Attributes, end of generation or not, and the piece with and without special tokens rendered."""


class Reference:
    """llama.cpp, through a shared library, which is loaded by the first query."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._vocabulary: Any = None

    def library(self) -> dict[str, str | None]:
        """What the library says of itself: the versions `release` and `ggml`."""
        return {"release": self._library.release, "ggml": self._library.ggml}

    def open(self, path: str, overrides: Overrides) -> int:
        """Opens a vocabulary in place of the last one; returns its number of tokens."""
        if self._vocabulary is not None:
            self._vocabulary.close()
            self._vocabulary = None
        self._vocabulary = self._library.open(path, overrides)
        return int(self._vocabulary.num_tokens)

    def encode(self, text: bytes, add_special: bool, parse_special: bool) -> list[int]:
        """llama_tokenize."""
        ids: list[int] = self._vocabulary.tokenize(text, add_special, parse_special)
        return ids

    def decode(self, ids: list[int], remove_special: bool, unparse_special: bool) -> bytes:
        """llama_detokenize."""
        return bytes(self._vocabulary.detokenize(ids, remove_special, unparse_special))

    def token(self, token: int) -> TokenAnswer:
        """One token."""
        vocabulary: Vocabulary = self._vocabulary
        piece, plain = (vocabulary.piece(token, special=special) for special in (True, False))
        return vocabulary.attributes(token), vocabulary.is_eog(token), piece, plain

    def tokens(self, start: int, end: int) -> list[TokenAnswer]:
        """A range of tokens."""
        return [self.token(token) for token in range(start, end)]

    def getters(self) -> list[str]:
        """The special ids and flags that this release knows."""
        return [name for name in (*SPECIAL_IDS, *FLAGS) if self._special(name) is not None]

    def specials(self, names: Sequence[str]) -> dict[str, int | None]:
        """Special ids, and the flags that add them."""
        return {name: self._special(name) for name in names}

    def catalogue(self, limit: int, seed: int) -> tuple[list[bytes], list[bytes]]:
        """Token pieces to write texts with: up to `limit` of all tokens, and of those that are cut out of a text."""
        vocabulary: Vocabulary = self._vocabulary
        rng, num_tokens = Random(seed), vocabulary.num_tokens
        ids = range(num_tokens) if num_tokens <= limit else sorted(rng.sample(range(num_tokens), limit))
        cut_out = [token for token in range(num_tokens) if vocabulary.attributes(token) & CONTROL_OR_USER_DEFINED]
        cut_out = cut_out if len(cut_out) <= limit else rng.sample(cut_out, limit)
        pieces, special = ([vocabulary.piece(token, special=True) for token in some] for some in (ids, cut_out))
        return pieces, special

    def _special(self, name: str) -> int | None:
        value: int | None = self._vocabulary.special(f"llama_vocab_{'get_' if name in FLAGS else ''}{name}")
        return value

    @cached_property
    def _library(self) -> LlamaCpp:
        return LlamaCpp(self._path)


class Ours:
    """ggtok. Where several calls must agree, this class compares them."""

    def open(self, path: str, overrides: Overrides) -> int:
        """Opens a vocabulary in place of the last one; returns its number of tokens."""
        # Here, not above: the reference's process must not depend on it.
        from ..._ggtok import set_cache_limit
        from ...tokenizer.base import BaseTokenizer

        self._random = Random(f"{path} {overrides}")
        set_cache_limit(self._random.choice(CACHE_LIMITS))
        self._tokenizer = BaseTokenizer.from_gguf(path, overrides=dict(overrides) or None)
        self._eog = set(self._tokenizer.vocab.eog_ids)
        return len(self._tokenizer.vocab)

    def kind(self) -> str:
        """The kind of the vocabulary."""
        return self._tokenizer.vocab.kind

    def encode(self, text: bytes, add_special: bool, parse_special: bool) -> list[int]:
        """`encode`, which must return the same with cold and warm caches, `count`, and sometimes `encode_batch`."""
        flags: dict[str, Any] = {"add_special": add_special, "parse_special": parse_special}
        ids = self._tokenizer.encode(text, **flags)
        again, count = self._tokenizer.encode(text, **flags), self._tokenizer.count(text, **flags)
        if again != ids:
            raise AssertionError(f"the second call returns {again}, the first returned {ids}")
        if count != len(ids):
            raise AssertionError(f"count returns {count}, encode returns {len(ids)} ids")
        if self._random.random() < 0.1:
            batch = self._tokenizer.encode_batch([text, text[::-1], text], threads=2, **flags).tolist()
            if batch != [ids, self._tokenizer.encode(text[::-1], **flags), ids]:
                raise AssertionError(f"encode_batch returns {batch[0]} and {batch[2]}, encode returns {ids}")
        return ids

    def decode(self, ids: list[int], remove_special: bool, unparse_special: bool) -> bytes:
        """`decode_bytes` with `clean_spaces`; without, it must return the joined pieces."""
        flags = {"remove_special": remove_special, "unparse_special": unparse_special}
        cleaned = self._tokenizer.decode_bytes(ids, clean_spaces=True, **flags)
        if not remove_special:
            joined, decoded = self._joined(ids, unparse_special), self._tokenizer.decode_bytes(ids, **flags)
            if joined != decoded:
                raise AssertionError(f"decode_bytes returns {decoded!r}, the pieces are {joined!r}")
        return cleaned

    def _joined(self, ids: list[int], special: bool) -> bytes:
        """The pieces, without the space that encoding puts in front of the text."""
        tokenizer = self._tokenizer
        pieces = [tokenizer.piece(id, special=special) for id in ids]
        if ids[:1] == [tokenizer.vocab.bos_id] and not pieces[0]:
            del pieces[0]
        if pieces and tokenizer.vocab.settings["add_space_prefix"]:
            pieces[0] = pieces[0].removeprefix(b" ")
        return b"".join(pieces)

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
