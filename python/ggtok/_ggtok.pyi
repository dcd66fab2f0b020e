"""The Rust part of ggtok, as `rust/python/src` defines it."""

from collections.abc import Iterable
from typing import SupportsIndex, TypeAlias, TypedDict, final, type_check_only

import numpy as np
from _typeshed import ReadableBuffer
from numpy.typing import NDArray
from typing_extensions import Self, disjoint_base

__all__ = ["StringArray", "Tokenizer", "families", "loader_texts", "models", "pretokenizers", "special_keys", "string_array"]

_Text: TypeAlias = str | ReadableBuffer
_Ids: TypeAlias = Iterable[SupportsIndex]

@disjoint_base
class Tokenizer:
    """A vocabulary and its algorithm."""

    def __new__(
        cls,
        model: bytes,
        *,
        pre: bytes | None,
        tokens: StringArray | None,
        scores: bytes | None,
        int_scores: bool,
        token_types: bytes | None,
        merges: StringArray | None,
        charsmap: bytes | None,
        vocab_size: int | None,
        special: dict[str, int],
        flags: dict[str, bool],
        name: bytes,
        architecture: bytes,
    ) -> Self: ...
    def encode(self, text: _Text, *, add_special: bool = True, parse_special: bool = False) -> list[int]:
        """The token ids of a text, as a list."""

    def encode_array(self, text: _Text, *, add_special: bool = True, parse_special: bool = False) -> NDArray[np.int32]:
        """The token ids of a text, as an int32 array."""

    def count(self, text: _Text, *, add_special: bool = True, parse_special: bool = False) -> int:
        """How many tokens a text has."""

    def decode(
        self, ids: _Ids, *, remove_special: bool = False, unparse_special: bool = False, errors: str = "replace"
    ) -> str:
        """The text of token ids. Bytes that are not UTF-8 are handled as `errors` says, as in `bytes.decode`."""

    def decode_bytes(self, ids: _Ids, *, remove_special: bool = False, unparse_special: bool = False) -> bytes:
        """The text of token ids, as bytes."""

    def piece(self, id: SupportsIndex, *, special: bool = True) -> bytes:
        """The bytes of one token; none for control and unknown tokens unless `special`."""

    @property
    def repairs(self) -> list[str]:
        """What was put right while loading, one sentence each."""

    @property
    def heap_bytes(self) -> int:
        """Memory that the tokenizer holds, in bytes, without scratch spaces."""

    def _encode_batch(
        self, texts: Iterable[_Text], threads: int, add_special: bool, parse_special: bool
    ) -> tuple[NDArray[np.int32], NDArray[np.int64]]: ...
    def _size(self) -> int: ...
    def _token(self, id: SupportsIndex) -> tuple[bytes, float, int]: ...
    def _token_id(self, text: bytes) -> int | None: ...
    def _kind(self) -> tuple[str, str, str | None]: ...
    def _special(self) -> dict[str, int | None]: ...
    def _settings(self) -> dict[str, bool]: ...
    def _eog(self) -> list[int]: ...
    def _canonical_bytes(self) -> bytes: ...

@final
class StringArray:
    """The strings of one GGUF array, as positions in the bytes of the file."""

    @property
    def end(self) -> int:
        """Byte offset behind the array."""

    def __len__(self) -> int: ...
    def __getitem__(self, index: int, /) -> bytes: ...
    def tolist(self) -> list[bytes]:
        """All strings as bytes objects."""

@type_check_only
class _PreTokenizer(TypedDict):
    family: str
    clean_spaces: bool
    ignore_merges: bool
    add_bos: bool
    add_sep: bool
    escape_whitespaces: bool
    lowercase: bool
    has_bos: bool

@type_check_only
class _Family(TypedDict):
    patterns: list[str]
    byte_encode: bool

def string_array(data: bytes | bytearray, offset: int, count: int, big_endian: bool) -> StringArray:
    """Finds the `count` strings of the GGUF array whose first length is at `data[offset]`.

    Raises `EOFError(index, offset, needed, left)` if `data` ends too early: string `index` needs `needed` bytes at
    `offset`, and `left` are there. Raises `OverflowError(index, offset, length)` if a string is longer than llama.cpp
    allows, or `data` is larger than 4 GiB.
    """

def pretokenizers() -> dict[str, _PreTokenizer]:
    """`tokenizer.ggml.pre` by name: its family and flags."""

def families() -> dict[str, _Family]:
    """Pattern families by name: their patterns and whether they spell bytes."""

def special_keys() -> dict[str, str]:
    """x"""

def loader_texts() -> dict[str, list[str]]:
    """The texts that the loader knows special tokens by, per slot."""

def models() -> dict[str, str]:
    """`tokenizer.ggml.model` by name: the kind of vocabulary."""
