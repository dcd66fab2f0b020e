"""The Rust part of ggtok, as `rust/python/src` defines it."""

from collections.abc import Iterable
from types import GenericAlias
from typing import AnyStr, Generic, Literal, SupportsIndex, TypeAlias, TypedDict, final, overload, type_check_only

import numpy as np
from _typeshed import ReadableBuffer
from numpy.typing import NDArray
from typing_extensions import Self, disjoint_base

__all__ = [
    "StreamDecoder",
    "StreamEncoder",
    "StringArray",
    "Tokenizer",
    "families",
    "loader_texts",
    "models",
    "pretokenizers",
    "special_keys",
    "string_array",
]

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

    def encoder(self, *, add_special: bool = True, parse_special: bool = False) -> StreamEncoder:
        """An encoder for a text that arrives in parts, or is too long for memory.

        All ids that it returns, put together, are what `encode` returns for the whole text, however it is cut.

        Args:
            add_special: As in `encode`. BOS comes with the first ids, EOS with the last.
            parse_special: As in `encode`.

        Raises:
            VocabularyError: As in `encode`.

        >>> import ggtok
        >>> encoder = ggtok.Tokenizer.builtin("bpe").encoder()
        >>> encoder.push("What is Lo"), encoder.push("RA?"), encoder.flush()
        ([9713, 5981], [], [6266, 78, 9612, 30])
        """

    @overload
    def decoder(
        self,
        *,
        stop: str | Iterable[str] = (),
        remove_special: bool = False,
        unparse_special: bool = False,
        text: Literal[True] = True,
    ) -> StreamDecoder[str]: ...
    @overload
    def decoder(
        self,
        *,
        stop: str | bytes | Iterable[str | bytes] = (),
        remove_special: bool = False,
        unparse_special: bool = False,
        text: Literal[False],
    ) -> StreamDecoder[bytes]:
        """A decoder for ids that arrive one by one, as a model makes them.

        All that it returns, put together, is what `decode` returns for all ids, however they are cut.

        Args:
            stop: A string that ends the text, or an iterable of such strings: `str`, or also bytes if `text` is false.
                The text ends before the first of them.
            remove_special: As in `decode`.
            unparse_special: As in `decode`.
            text: Return `str`, with U+FFFD for bytes that are not UTF-8. Otherwise return bytes, as `decode_bytes`
                does.

        Raises:
            TypeError: A stop string is of another type.
            ValueError: A stop string is empty.

        >>> import ggtok
        >>> tok = ggtok.Tokenizer.builtin("bpe")
        >>> decoder = tok.decoder(stop=["?", " Hmm"])
        >>> [decoder.push(id) for id in tok.encode("What is LoRA? And")]
        ['What', ' is', ' L', 'o', 'RA', '', '']
        >>> decoder.flush(), decoder.stopped
        ('', '?')
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
class StreamDecoder(Generic[AnyStr]):
    """Turns ids into text as they arrive. Made by `Tokenizer.decoder`.

    `StreamDecoder[str]` returns text, `StreamDecoder[bytes]` (`text=False`) returns bytes. Only what may still change
    is held back: an incomplete character, the start of a stop string, an EOS that may have to be removed, and spaces
    where the vocabulary cleans them up (WordPiece and a few others). Nothing is decoded twice.

    A decoder is for one thread at a time: a call during another one raises `RuntimeError`.
    """

    def push(self, ids: SupportsIndex | _Ids) -> AnyStr:
        """Takes one id or several and returns what is certain of their text.

        Args:
            ids: An integer, or what `decode` takes: an iterable of integers, or an array of integers.

        Returns:
            Complete characters, or bytes if the decoder has `text=False`; often nothing yet. After a stop string always
            nothing.

        Raises:
            TypeError: An id is not an integer.
            TokenIndexError: An id is not in the vocabulary. None of the ids was taken.
            ValueError: `flush` was called before.

        >>> import ggtok
        >>> tok = ggtok.Tokenizer.builtin("bpe")
        >>> decoder = tok.decoder()
        >>> [decoder.push(id) for id in tok.encode("😀!")]
        ['', '', '😀', '!']
        >>> decoder.push([5981, 6266])
        ' is L'
        """

    def flush(self) -> AnyStr:
        """Ends the text and returns what was held back. An incomplete character becomes one U+FFFD.

        Then no more ids can be pushed. A second call returns nothing.

        >>> import ggtok
        >>> tok = ggtok.Tokenizer.builtin("bpe")
        >>> decoder = tok.decoder(stop="is not")
        >>> [decoder.push(id) for id in tok.encode("What is LoRA?")[:2]], decoder.flush()
        (['What', ' '], 'is')
        """

    def prime(self, prompt_ids: _Ids) -> None:
        """Takes the ids of a prompt: what is pushed afterwards comes out as after that prompt.

        Nothing of the prompt itself comes out, stop strings do not begin in it, and the first space after it stays. A
        prompt may end inside a character. The bytes that complete it are not UTF-8 by themselves, so they become
        U+FFFD; a decoder with `text=False` returns them as they are.

        Args:
            prompt_ids: What `decode` takes. Prompts of several calls follow one another.

        Raises:
            TypeError: An id is not an integer.
            TokenIndexError: An id is not in the vocabulary. None of the ids was taken.
            ValueError: Ids have been pushed before, or `flush` was called.

        >>> import ggtok
        >>> tok = ggtok.Tokenizer.builtin("spm")
        >>> prompt, answer = tok.encode("What is"), tok.encode("LoRA?", add_special=False)
        >>> decoder = tok.decoder()
        >>> decoder.prime(prompt)
        >>> decoder.push(answer), tok.decoder().push(answer)
        (' LoRA?', 'LoRA?')
        """

    def copy(self) -> Self:
        """A decoder that goes on from here by itself, for another beam. It takes less than a microsecond.

        >>> import ggtok
        >>> tok = ggtok.Tokenizer.builtin("bpe")
        >>> first = tok.decoder()
        >>> start = first.push(9713)
        >>> second = first.copy()
        >>> start, first.push(5981), second.push(6266)
        ('What', ' is', ' L')
        """

    def __copy__(self) -> Self: ...
    @classmethod
    def __class_getitem__(cls, item: object) -> GenericAlias: ...
    @property
    def stopped(self) -> str | bytes | None:
        """The stop string that has ended the text, as it was given, or `None`.

        Of several it is the one that begins first in the text, and of those the shortest. It is set once no other that
        begins before it can be completed, at the latest by `flush`.

        >>> import ggtok
        >>> tok = ggtok.Tokenizer.builtin("bpe")
        >>> decoder = tok.decoder(stop=["RA?", "is L"])
        >>> decoder.push(tok.encode("What is LoRA?")), decoder.stopped
        ('What ', 'is L')
        """

@final
class StreamEncoder:
    """Turns text into ids as it arrives. Made by `Tokenizer.encoder`.

    All ids that it returns, put together, are those of the whole text, however it is cut. What may still change waits:
    the end of a word or line, what may become a special token, and up to as much again, but at least 64 bytes, before
    it is looked at once more. So memory is bounded by the longest stretch without a certain place, such as a word, and
    time is linear however small the parts are. The text may be of any length.

    An encoder is for one thread at a time: a call during another one raises `RuntimeError`. After a call that was
    interrupted it cannot be used any more.
    """

    def push(self, text: _Text) -> list[int]:
        """Takes more of the text and returns the ids that are certain.

        Args:
            text: A `str` or bytes, as `encode` takes them. Bytes may be cut inside a character.

        Raises:
            TypeError: `text` is of another type.
            ValueError: `flush` was called before.
            GgtokError: 2 GiB in a row are undecided.

        >>> import ggtok
        >>> tok = ggtok.Tokenizer.builtin("bpe")
        >>> encoder = tok.encoder()
        >>> ids = [encoder.push("What is Lo"), encoder.push("RA?"), encoder.flush()]
        >>> ids
        [[9713, 5981], [], [6266, 78, 9612, 30]]
        >>> sum(ids, []) == tok.encode("What is LoRA?")
        True
        """

    def flush(self) -> list[int]:
        """Ends the text and returns the ids of what was waiting.

        Then no more text can be pushed. A second call returns nothing.

        >>> import ggtok
        >>> encoder = ggtok.Tokenizer.builtin("spm").encoder()
        >>> encoder.flush()
        [1]
        """

    def push_count(self, text: _Text) -> int:
        """The length of what `push` would return, without making the ids.

        >>> import ggtok
        >>> encoder = ggtok.Tokenizer.builtin("bpe").encoder()
        >>> encoder.push_count("What is Lo") + encoder.push_count("RA?") + encoder.flush_count()
        6
        """

    def flush_count(self) -> int:
        """The length of what `flush` would return, without making the ids.

        >>> import ggtok
        >>> ggtok.Tokenizer.builtin("spm").encoder().flush_count()
        1
        """

    @property
    def num_waiting(self) -> int:
        """The bytes that wait for what follows.

        >>> import ggtok
        >>> encoder = ggtok.Tokenizer.builtin("bpe").encoder()
        >>> encoder.push("What is Lo"), encoder.num_waiting
        ([9713, 5981], 3)
        """

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
