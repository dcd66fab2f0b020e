"""The Rust part of ggtok, as `rust/python/src` defines it."""

from collections.abc import Iterable
from typing import ClassVar, Literal, SupportsIndex, TypeAlias, TypedDict, final, type_check_only

import numpy as np
from _typeshed import ReadableBuffer
from numpy.typing import NDArray
from typing_extensions import Self, disjoint_base

__all__ = [
    "Encoding",
    "StringArray",
    "Tokenizer",
    "_encoding",
    "families",
    "loader_texts",
    "models",
    "pretokenizers",
    "special_keys",
    "string_array",
]

_Text: TypeAlias = str | ReadableBuffer
_Ids: TypeAlias = Iterable[SupportsIndex]
_Parts: TypeAlias = Iterable[tuple[_Text, bool]]

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
    def encode(
        self, text: _Text, *, add_special: bool = True, parse_special: bool = False, continues: bool = False
    ) -> list[int]:
        """Encodes a text to a list of token ids.

        Args:
            text: A `str`, or bytes: `bytes`, `bytearray`, `memoryview`, or another buffer with one dimension of
                single bytes, such as a uint8 array. Bytes that are not UTF-8 are read as llama.cpp reads them. A lone
                surrogate in a `str` is read as the three bytes that `surrogatepass` encodes it to.
            add_special: Add BOS, EOS and SEP where the vocabulary says so.
            parse_special: Read control tokens written in the text, such as `<|im_end|>`, as tokens. Keep it off for
                text from users. User-defined tokens are always read.
            continues: The text continues an earlier one: no BOS is added, and nothing is put before its first
                characters. SPM and Unigram put no space there, WordPiece reads letters at the start as the rest of a
                word, and PLaMo-2 keeps a byte order mark. EOS and SEP follow `add_special` as always.

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
        >>> spm = ggtok.Tokenizer.builtin("spm")
        >>> spm.encode("form", add_special=False), spm.encode("form", continues=True)
        ([945], [780])
        """

    def encode_array(
        self, text: _Text, *, add_special: bool = True, parse_special: bool = False, continues: bool = False
    ) -> NDArray[np.int32]:
        """Encodes a text to an array of token ids, without a Python int for each.

        Takes the arguments of `encode` and raises what it does, and `DependencyError` where numpy is not installed.

        Returns:
            A numpy array of dtype int32 and shape `(number of tokens,)`.

        >>> import ggtok
        >>> ggtok.Tokenizer.builtin("bpe").encode_array("What is LoRA?")
        array([9713, 5981, 6266,   78, 9612,   30], dtype=int32)
        """

    def count(
        self, text: _Text, *, add_special: bool = True, parse_special: bool = False, continues: bool = False
    ) -> int:
        """Counts the tokens of a text: the length of what `encode` returns, without making the ids.

        Takes the arguments of `encode` and raises what it does.

        >>> import ggtok
        >>> ggtok.Tokenizer.builtin("bpe").count("What is LoRA?")
        6
        """

    def encode_with_offsets(
        self,
        text: _Text,
        *,
        unit: Literal["char", "byte"] = "char",
        add_special: bool = True,
        parse_special: bool = False,
        continues: bool = False,
    ) -> Encoding:
        r"""Encodes a text to token ids, each with the span of the text that it comes from.

        Takes the arguments of `encode` and raises what it does.

        Args:
            text: As in `encode`.
            unit: What spans count: `"char"` (as `text[start:end]` of a `str` does) or `"byte"` (bytes of UTF-8, or of
                a text that is bytes). With `"char"`, bytes count as the `str` that they decode to.
            add_special: As in `encode`.
            parse_special: As in `encode`.
            continues: As in `encode`.

        Returns:
            The ids that `encode` returns, and for each its half-open span in the original text: what was lowercased,
            stripped of accents, replaced or escaped is traced back. Starts never decrease, nor do ends, and all are
            inside the text. BOS, EOS and SEP have an empty span at their place, and so has a space that was put before
            the text. Tokens that are bytes of one character each have the span of their byte, or that of the whole
            character with `"char"`. Whitespace that becomes one space is in the span of that space. What the
            vocabulary drops (whitespace between words of WordPiece, or beside a special token) is in no span.

        Raises:
            GgtokError: `unit` is another; or it is `"char"` and `text` is bytes that are not UTF-8, which have no
                characters. It is a `ValueError`.

        The lengths of tokens tell most spans, so this takes little more time than `encode_array`. O(length) space.

        >>> import ggtok
        >>> tok = ggtok.Tokenizer.builtin("wordpiece")
        >>> text = "Caf\u00e9 \u00c9COLE"
        >>> ids, spans = tok.encode_with_offsets(text).tolist()
        >>> [(tok.piece(id), text[start:end]) for id, (start, end) in zip(ids, spans)] == [
        ...     (b"[CLS]", ""), (b" ca", "Ca"), (b"fe", "f\u00e9"), (b" ec", "\u00c9C"), (b"ole", "OLE"), (b"[SEP]", "")
        ... ]
        True
        >>> tok.encode_with_offsets(text, unit="byte", add_special=False).tolist()[1]
        [(0, 2), (2, 5), (6, 9), (9, 12)]
        """

    def encode_parts(self, parts: _Parts, *, add_special: bool = True, continues: bool = False) -> list[int]:
        """Encodes a text in parts, of which each says whether control tokens that are written in it are tokens.

        Args:
            parts: An iterable of pairs `(text, parse_special)`: a text as `encode` takes it, and a bool. It is read to
                its end first.
            add_special: As in `encode`.
            continues: As in `encode`.

        Returns:
            The ids of all parts put together. A control token is only read where all of it is in parts that allow it:
            parts that follow each other and allow it count as one. User-defined tokens are read everywhere, and
            words go on across the borders of parts. So the ids equal those of `encode` with `parse_special` for the
            whole text, wherever the other parts, and their borders, have no text of a control token.

        Raises:
            TypeError: A part is not a pair, or its items are of other types: "part 3: ...".
            VocabularyError, GgtokError: As `encode`, for all parts together.

        Exceptions of the iterable pass through.

        >>> import ggtok
        >>> tok = ggtok.Tokenizer.builtin("bpe")
        >>> tok.encode_parts([("hi", False), ("<|im_end|>", True)])
        [6876, 12993]
        >>> tok.encode_parts([("hi<|im_end|>", False), ("<|im_end|>", True)])
        [6876, 27, 91, 5953, 62, 6094, 91, 29, 12993]
        """

    def count_parts(self, parts: _Parts, *, add_special: bool = True, continues: bool = False) -> int:
        """Counts the tokens of a text in parts: the length of what `encode_parts` returns.

        Takes the arguments of `encode_parts` and raises what it does.

        >>> import ggtok
        >>> ggtok.Tokenizer.builtin("bpe").count_parts([("hi", False), ("<|im_end|>", True)])
        2
        """

    def encode_parts_with_offsets(
        self,
        parts: _Parts,
        *,
        unit: Literal["char", "byte"] = "char",
        add_special: bool = True,
        continues: bool = False,
    ) -> Encoding:
        """Encodes a text in parts to token ids with spans, which count from the start of the first part.

        Takes the arguments of `encode_parts` and raises what it does. `unit`, the result and its errors are as in
        `encode_with_offsets` for all parts put together; the error of bytes that are not UTF-8 names the part.

        >>> import ggtok
        >>> tok = ggtok.Tokenizer.builtin("bpe")
        >>> tok.encode_parts_with_offsets([("hi", False), ("<|im_end|>", True)]).tolist()
        ([6876, 12993], [(0, 2), (2, 12)])
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

    def _encode_batch(
        self, texts: Iterable[_Text], threads: int, add_special: bool, parse_special: bool, continues: bool
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
class Encoding:
    """The tokens of a text, each with the span of the text that it comes from.

    Made by `Tokenizer.encode_with_offsets` and `Tokenizer.encode_parts_with_offsets`. Immutable; two are equal if
    their ids and offsets are. It can be pickled.

    >>> import ggtok
    >>> encoding = ggtok.Tokenizer.builtin("bpe").encode_with_offsets("What is LoRA?")
    >>> encoding
    <ggtok.Encoding of 6 tokens: 9713 (0, 4), 5981 (4, 7), 6266 (7, 9), ...>
    >>> len(encoding)
    6
    """

    @property
    def ids(self) -> NDArray[np.int32]:
        """The ids: a read-only numpy array of dtype int32 and shape `(number of tokens,)`.

        Raises `DependencyError` where numpy is not installed; `tolist` does without.

        >>> import ggtok
        >>> ggtok.Tokenizer.builtin("bpe").encode_with_offsets("What is LoRA?").ids
        array([9713, 5981, 6266,   78, 9612,   30], dtype=int32)
        """

    @property
    def offsets(self) -> NDArray[np.int64]:
        """Where each token comes from: a read-only numpy array of dtype int64 and shape `(number of tokens, 2)`.

        Row `i` is the half-open span `text[start:end]` of token `i` in the original text, in the unit that was asked
        for. Starts never decrease, and neither do ends. An added token has an empty span.

        Raises `DependencyError` where numpy is not installed; `tolist` does without.

        >>> import ggtok
        >>> ggtok.Tokenizer.builtin("bpe").encode_with_offsets("What is LoRA?").offsets.tolist()
        [[0, 4], [4, 7], [7, 9], [9, 10], [10, 12], [12, 13]]
        """

    def tolist(self) -> tuple[list[int], list[tuple[int, int]]]:
        """The ids and the offsets as lists, without numpy.

        >>> import ggtok
        >>> ggtok.Tokenizer.builtin("bpe").encode_with_offsets("What is").tolist()
        ([9713, 5981], [(0, 4), (4, 7)])
        """

    def __len__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]
    def __reduce__(self) -> tuple[object, tuple[bytes, bytes]]: ...

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

def _encoding(ids: bytes, offsets: bytes) -> Encoding: ...
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
