"""The Rust part of ggtok, as `rust/python/src` defines it."""

from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import Any, Self, SupportsIndex, TypeAlias, TypedDict, final, type_check_only

import numpy as np
from _typeshed import ReadableBuffer
from numpy.typing import NDArray
from typing_extensions import disjoint_base

__all__ = [
    "Buffer",
    "FlatBatch",
    "StringArray",
    "Tokenizer",
    "__version__",
    "attributes",
    "charsmap",
    "count_batch",
    "decode_batch",
    "encode_batch",
    "families",
    "id_of_piece",
    "idle_merges",
    "ids_with_prefix",
    "import_numpy",
    "loader_texts",
    "models",
    "parting",
    "pieces",
    "pretokenizers",
    "scores",
    "special_keys",
    "string_array",
    "texts",
    "unmade_tokens",
]

__version__: str

_Text: TypeAlias = str | ReadableBuffer
_Ids: TypeAlias = Iterable[SupportsIndex]

@disjoint_base
class Tokenizer:
    """A vocabulary and its algorithm: the base class of `ggtok.Tokenizer`, which says how to make one."""

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
        """Encodes a text to a list of token ids.

        Args:
            text: A `str`, or bytes: `bytes`, `bytearray`, `memoryview`, or another buffer with one dimension of
                single bytes, such as a uint8 array. Bytes that are not UTF-8 are read as llama.cpp reads them. A lone
                surrogate in a `str` is read as the three bytes that `surrogatepass` encodes it to.
            add_special: Add BOS, EOS and SEP where the vocabulary says so.
            parse_special: Read control tokens written in the text, such as `<|im_end|>`, as tokens. Keep it off for
                text from users. User-defined tokens are always read.

        Returns:
            The ids, each at least 0 and less than `len(vocab)`; -1 for unknown text where a vocabulary has no unknown
            token.

        Raises:
            TypeError: `text` is of another type.
            VocabularyError: The file has no vocabulary, or a token must be added that it does not have.
            GgtokError: The text is 2 GiB or longer.

        The GIL is released for texts of more than 512 bytes. Ctrl-C stops a long text.

        >>> import ggtok
        >>> tok = ggtok.Tokenizer.builtin("bpe")
        >>> tok.encode("What is LoRA?")
        [9713, 5981, 6266, 78, 9612, 30]
        >>> tok.encode(b"<|im_end|>", parse_special=True)
        [12993]
        """

    def encode_array(self, text: _Text, *, add_special: bool = True, parse_special: bool = False) -> NDArray[np.int32]:
        """Encodes a text to an array of token ids, without a Python int for each.

        Takes the arguments of `encode` and raises what it does, and `DependencyError` where numpy is not installed.

        Returns:
            A numpy array of dtype int32 and shape `(number of tokens,)`.

        >>> import ggtok
        >>> ggtok.Tokenizer.builtin("bpe").encode_array("What is LoRA?")
        array([9713, 5981, 6266,   78, 9612,   30], dtype=int32)
        """

    def count(self, text: _Text, *, add_special: bool = True, parse_special: bool = False) -> int:
        """Counts the tokens of a text: the length of what `encode` returns, without making the ids.

        Takes the arguments of `encode` and raises what it does.

        >>> import ggtok
        >>> ggtok.Tokenizer.builtin("bpe").count("What is LoRA?")
        6
        """

    def decode(
        self, ids: _Ids, *, remove_special: bool = False, unparse_special: bool = False, errors: str = "replace"
    ) -> str:
        """Decodes token ids to text, as llama.cpp's `llama_detokenize` does.

        Args:
            ids: An iterable of integers, or an array of integers with one dimension; int32 is the fastest.
            remove_special: Remove BOS and EOS where `encode` adds them.
            unparse_special: Write control and unknown tokens as their text. They are left out otherwise.
            errors: What to do with bytes that are not UTF-8, as in `bytes.decode`. Tokens may end inside a character.

        Raises:
            TypeError: An id is not an integer.
            TokenIndexError: An id is not in the vocabulary.
            UnicodeDecodeError: The bytes are not UTF-8 and `errors` is "strict".
            LookupError: Python knows no error handler of the name `errors`.

        >>> import ggtok
        >>> tok = ggtok.Tokenizer.builtin("bpe")
        >>> tok.decode([9713, 5981, 6266, 78, 9612, 30])
        'What is LoRA?'
        >>> tok.decode([9713, 12993]), tok.decode([9713, 12993], unparse_special=True)
        ('What', 'What<|im_end|>')
        """

    def decode_bytes(self, ids: _Ids, *, remove_special: bool = False, unparse_special: bool = False) -> bytes:
        r"""Decodes token ids to bytes, which need not be UTF-8.

        Takes the arguments of `decode` except `errors`, and raises `TypeError` and `TokenIndexError` as it does.

        >>> import ggtok
        >>> tok = ggtok.Tokenizer.builtin("bpe")
        >>> tok.decode_bytes(tok.encode("\u00e9"))
        b'\xc3\xa9'
        """

    def piece(self, id: SupportsIndex, *, special: bool = True) -> bytes:
        """The bytes of one token, as llama.cpp's `llama_token_to_piece` returns them.

        Args:
            id: The token.
            special: Return the text of a control or unknown token. Otherwise such a token has no bytes.

        Raises:
            TypeError: `id` is not an integer.
            TokenIndexError: `id` is not in the vocabulary.

        >>> import ggtok
        >>> tok = ggtok.Tokenizer.builtin("bpe")
        >>> tok.piece(5981), tok.piece(12993), tok.piece(12993, special=False)
        (b' is', b'<|im_end|>', b'')
        """

    @property
    def repairs(self) -> list[str]:
        """What was repaired at load, as llama.cpp repairs it, one sentence each.

        >>> import ggtok
        >>> ggtok.Tokenizer.builtin("spm").repairs
        []
        """

    @property
    def heap_bytes(self) -> int:
        """The memory that the tokenizer holds, in bytes, without its scratch spaces and caches.

        >>> import ggtok
        >>> ggtok.Tokenizer.builtin("spm").heap_bytes > 100_000
        True
        """

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
        """The byte offset of the array's end."""

    def __len__(self) -> int: ...
    def __getitem__(self, index: int, /) -> bytes: ...
    def tolist(self) -> list[bytes]:
        """All strings as bytes objects."""

@final
class Buffer:
    """Numbers in memory that other libraries read without copying them: a row of them, or rows of one length.

    It has the buffer protocol (`memoryview(buffer)`, `numpy.asarray(buffer)`) and DLPack
    (`torch.from_dlpack(buffer)`, `jax.numpy.from_dlpack(buffer)`). The memory cannot be written to. Made by
    `Batch.buffers`.

    >>> import ggtok
    >>> ids, offsets = ggtok.Tokenizer.builtin("bpe").encode_batch(["one text", "and another"]).buffers()
    >>> ids.dtype, ids.shape, ids.tolist(), memoryview(offsets)[-1]
    ('int32', (4,), [6053, 7301, 6019, 7237], 4)
    """

    @property
    def dtype(self) -> str:
        """The type of an item: "int32", "int64" or "bool"."""

    @property
    def shape(self) -> tuple[int, ...]:
        """How many items there are in each dimension."""

    def __len__(self) -> int: ...
    def __getitem__(self, index: Any, /) -> Any: ...
    def __iter__(self) -> Iterator[int]: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...
    def tolist(self) -> list[Any]:
        """The items as Python objects: a list, or a list of lists."""

    def __dlpack__(
        self,
        *,
        stream: object = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """The memory as a DLPack capsule; called by `from_dlpack` of other libraries.

        Args:
            stream: None, as for all memory of the CPU.
            max_version: The newest DLPack that the caller reads. Before 1.0 memory could not be marked as read-only, so
                such a caller is given a copy.
            dl_device: Where the memory is wanted: None or `(1, 0)`, the CPU.
            copy: Whether to copy: always, never, or (None) where it is needed.

        Raises:
            BufferError: The memory cannot be given like that.
        """

    def __dlpack_device__(self) -> tuple[int, int]:
        """The device of the memory: `(1, 0)`, the CPU."""

@final
class FlatBatch:
    """The rows of a batch: what `ggtok.Batch` is made of."""

    def __new__(cls, ids: bytes, offsets: bytes, nulls: bytes | None) -> Self: ...
    def __len__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    @property
    def null_count(self) -> int:
        """The number of null rows."""

    def ids(self) -> Buffer:
        """All ids, end to end."""

    def offsets(self) -> Buffer:
        """One offset more than rows."""

    def select(self, start: int, len: int, step: int) -> FlatBatch:
        """`len` rows from `start` on, `step` apart; with a step of 1 they share the ids."""

    def tolist(self) -> list[list[int]]:
        """The ids of each row as a list."""

    def pad(self, length: int | None, left: bool, value: int, multiple_of: int, to_numpy: bool) -> tuple[Any, Any]:
        """The rows filled up to one length, and which of the ids were there before: numpy arrays or buffers."""

    @staticmethod
    def arrow_schema() -> object:
        """The Arrow type of batches, as a capsule."""

    def arrow_array(self, requested_schema: object) -> tuple[object, object]:
        """The batch for Arrow: capsules with type and array."""

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
    """Finds the `count` strings of a GGUF array whose first length is at `data[offset]`.

    Raises `EOFError(index, offset, needed, left)` if `data` ends too early: string `index` needs `needed` bytes at
    `offset`, and `left` are there. Raises `OverflowError(index, offset, length)` if a string is longer than llama.cpp
    allows, or `data` is larger than 4 GiB (then with `index` and `offset` 0).
    """

def pretokenizers() -> dict[str, _PreTokenizer]:
    """`tokenizer.ggml.pre` by name: its family and flags."""

def families() -> dict[str, _Family]:
    """Pattern families by name: their patterns and whether they spell bytes."""

def special_keys() -> dict[str, str]:
    """The keys that give the ids of special tokens, without `tokenizer.ggml.` at their start, by name."""

def loader_texts() -> dict[str, list[str]]:
    """The texts that the loader finds special tokens by, per slot."""

def models() -> dict[str, str]:
    """`tokenizer.ggml.model` by name: the kind of vocabulary."""

def import_numpy() -> ModuleType:
    """numpy, imported so that Ctrl-C does not break it. Raises `DependencyError` where it cannot be imported."""

def encode_batch(
    tokenizer: Tokenizer, texts: object, threads: int, add_special: bool, parse_special: bool
) -> FlatBatch:
    """The ids of several texts."""

def count_batch(tokenizer: Tokenizer, texts: object, threads: int, add_special: bool, parse_special: bool) -> list[int]:
    """How many tokens each of several texts has."""

def decode_batch(
    tokenizer: Tokenizer, batch: object, remove_special: bool, unparse_special: bool, errors: str
) -> list[str]:
    """The texts of several rows of ids."""

def pieces(tokenizer: Tokenizer) -> list[bytes]:
    """The piece of every token, special tokens included."""

def texts(tokenizer: Tokenizer) -> list[bytes]:
    """The text of every token, as in the file."""

def scores(tokenizer: Tokenizer) -> bytes:
    """The score of every token: float32, in the machine's byte order."""

def attributes(tokenizer: Tokenizer) -> bytes:
    """The attributes of every token: uint16, in the machine's byte order."""

def charsmap(tokenizer: Tokenizer) -> bytes:
    """The precompiled character map."""

def id_of_piece(tokenizer: Tokenizer, piece: bytes) -> int | None:
    """The lowest id with this piece."""

def ids_with_prefix(tokenizer: Tokenizer, prefix: bytes) -> list[int]:
    """The ids of all tokens whose pieces start with these bytes, in the order of the pieces."""

def unmade_tokens(tokenizer: Tokenizer, merges: StringArray | None) -> list[int]:
    """The normal tokens that no merge makes."""

def idle_merges(tokenizer: Tokenizer, merges: StringArray) -> list[int]:
    """The ranks of the merges whose result is no token."""

def parting(
    first: Tokenizer, second: Tokenizer, argument: object, add_special: bool, parse_special: bool
) -> tuple[int, tuple[int, int, int] | None, tuple[int, int, int] | None] | None:
    """The first place where the ids of a text part."""
