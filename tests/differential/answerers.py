"""The two sides: llama.cpp and ggtok, each answering the same queries with plain values.

Ids are lists of int, texts are bytes, an absent special id is -1 (llama.cpp's LLAMA_TOKEN_NULL).
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

Overrides = Mapping[str, bool | int | float | str]

FIM_SLOTS = ["fim_pre", "fim_suf", "fim_mid", "fim_pad", "fim_rep", "fim_sep"]
SPECIAL_IDS = ["bos", "eos", "eot", "sep", "nl", "pad", "mask", *FIM_SLOTS]
FLAGS = ["add_bos", "add_eos", "add_sep"]
CACHE_LIMITS = [0, 1 << 14, 1 << 16, 1 << 20, 1 << 26, 1 << 26]
"""In bytes: from no cache, through those that forget all the time, to the default."""
CONTROL_OR_USER_DEFINED = 8 | 16


def shared() -> Path:
    """The folder with vocabularies, corpora and the binding to the reference."""
    default = Path(__file__).resolve().parents[3] / "shared"
    return Path(os.environ.get("GGTOK_SHARED") or default)


class Reference:
    """llama.cpp, through the shared object in the `xllamacpp` wheel."""

    def __init__(self) -> None:
        spec = importlib.util.spec_from_file_location("llama_reference", shared() / "tools" / "llama_reference.py")
        assert spec is not None
        assert spec.loader is not None
        self._binding = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(self._binding)
        self._model: Any = None

    def open(self, path: str, overrides: Overrides) -> int:
        """Opens a vocabulary in place of the last one; returns its number of tokens."""
        if self._model:
            self._model.close()
            self._model = None
        self._model = self._binding.LlamaReference(path, overrides)
        return int(self._model.n_tokens)

    def encode(self, text: bytes, add_special: bool, parse_special: bool) -> list[int]:
        """llama_tokenize."""
        ids: list[int] = self._model.tokenize(text, add_special, parse_special)
        return ids

    def decode(self, ids: list[int], remove_special: bool, unparse_special: bool) -> bytes:
        """llama_detokenize."""
        return bytes(self._model.detokenize(ids, remove_special, unparse_special))

    def token(self, token: int) -> tuple[int, bool, bytes, bytes]:
        """Attributes, end of generation or not, and the piece with and without special tokens rendered."""
        model = self._model
        plain = model.piece(token, special=False)
        return model.attr(token), model.is_eog(token), model.piece(token, special=True), plain

    def specials(self) -> dict[str, int]:
        """The special ids and the flags that add them."""
        names = {name: f"llama_vocab_{name}" for name in SPECIAL_IDS}
        names |= {name: f"llama_vocab_get_{name}" for name in FLAGS}
        return {name: int(self._get(function)) for name, function in names.items()}

    def catalogue(self, limit: int, seed: int) -> tuple[list[bytes], list[bytes]]:
        """Token pieces to write texts with: up to `limit` of all tokens, and of those that are cut out of a text."""
        num_tokens, model = self._model.n_tokens, self._model
        rng = Random(seed)
        ids = range(num_tokens) if num_tokens <= limit else sorted(rng.sample(range(num_tokens), limit))
        cut_out = [token for token in range(num_tokens) if model.attr(token) & CONTROL_OR_USER_DEFINED]
        cut_out = cut_out if len(cut_out) <= limit else rng.sample(cut_out, limit)
        return [model.piece(token) for token in ids], [model.piece(token) for token in cut_out]

    def _get(self, function: str) -> int:
        """Calls one of llama.cpp's getters that take the vocabulary alone."""
        getter = getattr(self._binding._lib, function)
        getter.argtypes = [ctypes.c_void_p]
        getter.restype = ctypes.c_bool if "_add_" in function else ctypes.c_int32
        return int(getter(self._model._vocab))


class Ggtok:
    """ggtok. Where several calls must agree, this class compares them."""

    def open(self, path: str, overrides: Overrides) -> int:
        """Opens a vocabulary in place of the last one; returns its number of tokens."""
        import ggtok  # here, not above: the reference's process must not depend on it

        self._random = Random(f"{path} {overrides}")
        ggtok.set_cache_limit(self._random.choice(CACHE_LIMITS))
        self._tokenizer = ggtok.Tokenizer.from_gguf(path, overrides=dict(overrides) or None)
        self._eog = set(self._tokenizer.vocab.eog_ids)
        return len(self._tokenizer.vocab)

    def encode(self, text: bytes, add_special: bool, parse_special: bool) -> list[int]:
        """`encode`, which must return the same with cold and warm caches, `count`, and sometimes `encode_batch`."""
        flags = {"add_special": add_special, "parse_special": parse_special}
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

    def token(self, token: int) -> tuple[int, bool, bytes, bytes]:
        """Attributes, end of generation or not, and the piece with and without special tokens rendered."""
        tokenizer = self._tokenizer
        plain = tokenizer.piece(token, special=False)
        return int(tokenizer.vocab[token].attributes), token in self._eog, tokenizer.piece(token, special=True), plain

    def specials(self) -> dict[str, int]:
        """The special ids and the flags that add them."""
        vocab = self._tokenizer.vocab
        ids = {name: getattr(vocab, f"{name}_id") for name in SPECIAL_IDS}
        flags = {name: int(getattr(vocab, name)) for name in FLAGS}
        return {name: -1 if token is None else token for name, token in ids.items()} | flags
