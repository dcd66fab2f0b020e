"""What the adapters share: libraries imported on first use, texts and kinds of tokens, and ids cut into slices."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from importlib import import_module
from typing import Any

from ..errors import DependencyError, GgtokError
from ..tokenizer.base import BaseTokenizer
from ..tokenizer.vocab import TokenAttribute, ids_with

_SPACE = "\u2581"
_ADDED = TokenAttribute.CONTROL | TokenAttribute.UNKNOWN | TokenAttribute.USER_DEFINED


def load(module: str, package: str) -> Any:
    """A module of another library, which is in the package of this name.

    Raises `DependencyError` if it is not installed. An error of the library itself passes through.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != module.partition(".")[0]:
            raise  # it is installed, and misses something itself
        needs = f"this adapter needs {package}, which is not installed: pip install {package}"
        raise DependencyError(needs) from error


class Names:
    """The texts of a vocabulary. llama.cpp marks the starts of WordPiece's words, `##` marks their continuations."""

    def __init__(self, tok: BaseTokenizer) -> None:
        self._vocab = tok.vocab
        self.added = {*ids_with(tok.vocab, _ADDED)}
        """The ids that are not part of the model: control, user-defined and unknown tokens."""

    @cached_property
    def texts(self) -> list[str]:
        """The text of each token."""
        texts = [token.text for token in self._vocab]
        if self._vocab.kind != "wordpiece" or _SPACE in texts:
            return texts
        return [
            text if id in self.added else text[1:] if text.startswith(_SPACE) else f"##{text}"
            for id, text in enumerate(texts)
        ]

    @cached_property
    def ids(self) -> dict[str, int]:
        """The lowest id of each text, in the order of the ids."""
        ids: dict[str, int] = {}
        for id, text in enumerate(self.texts):
            ids.setdefault(text, id)
        return ids


def special_ids(tok: BaseTokenizer) -> list[int]:
    """Control tokens and the unknown token."""
    return ids_with(tok.vocab, TokenAttribute.CONTROL | TokenAttribute.UNKNOWN)


def end_ids(tok: BaseTokenizer) -> list[int]:
    """The tokens that end generation, EOS first. Raises `GgtokError` if there is none."""
    vocab = tok.vocab
    ends = sorted(vocab.eog_ids, key=lambda id: (id != vocab.eos_id, id))
    if not ends:
        raise GgtokError("the vocabulary has no token that ends generation: pass its id")
    return ends


def encode_slices(tok: BaseTokenizer, text: str) -> list[int]:
    """The ids of a text that a library cuts into slices: without added tokens, and without SPM's space before a text.

    The texts of the slices, joined, are the text, unless llama.cpp changes it: it normalizes some, and puts a space
    after a user-defined token (SPM).
    """
    return tok.encode(text, add_special=False, continues=True)


def decode_slice(tok: BaseTokenizer, ids: Iterable[int]) -> str:
    """The text of a slice, with the space that it may start with. Characters that are cut are U+FFFD."""
    return b"".join([tok.piece(id, special=False) for id in ids]).decode("utf-8", "replace")
