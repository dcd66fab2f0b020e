"""The Rust part of ggtok, as `rust/python/src` defines it."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from types import GenericAlias, ModuleType
from typing import (
    Any,
    AnyStr,
    Generic,
    Literal,
    Self,
    SupportsIndex,
    TypeAlias,
    TypedDict,
    final,
    overload,
    type_check_only,
)

import numpy as np
from _typeshed import ReadableBuffer
from numpy.typing import NDArray
from typing_extensions import disjoint_base

__all__ = [
    "CHATML",
    "Array",
    "Buffer",
    "ChatTemplate",
    "Encoding",
    "FlatBatch",
    "Metadata",
    "RawTrace",
    "Rendering",
    "StreamDecoder",
    "StreamEncoder",
    "Tokenizer",
    "Trainer",
    "__version__",
    "_encoding",
    "align",
    "apply_charsmap",
    "attributes",
    "cache_limit",
    "canonical_bytes",
    "charsmap",
    "compile_charsmap",
    "core_of",
    "count_batch",
    "decode_batch",
    "encode_batch",
    "eog_ids",
    "explain",
    "explain_trie",
    "face",
    "families",
    "flag_keys",
    "id_of_piece",
    "id_of_text",
    "ids_with_prefix",
    "import_numpy",
    "json_items",
    "json_lines",
    "kind",
    "list_size",
    "loader_texts",
    "merges",
    "models",
    "n_best",
    "needed_for",
    "pieces",
    "pretokenizers",
    "regex_matches",
    "repaired_ids",
    "sample",
    "scores",
    "set_cache_limit",
    "settings",
    "special_ids",
    "special_keys",
    "split",
    "text_lines",
    "texts",
    "token",
    "truncate",
    "unreachable_tokens",
    "unused_merges",
    "used_tokens",
    "vocab_size",
    "word_counts",
]

__version__: str
CHATML: str

_Text: TypeAlias = str | ReadableBuffer
_Ids: TypeAlias = Iterable[SupportsIndex]
_Parts: TypeAlias = Iterable[tuple[_Text, bool]]
_Masked: TypeAlias = tuple[list[tuple[int, int] | None], list[bool], list[tuple[int, int, int, int]]]

@disjoint_base
class Tokenizer:
    """A vocabulary and its algorithm: the base class of `ggtok.Tokenizer`, which says how to make one."""

    def __new__(cls, metadata: Metadata) -> Self: ...
    def encode(
        self, text: _Text, *, add_special: bool = True, parse_special: bool = False, continues: bool = False
    ) -> list[int]:
        """Encodes a text to a list of token ids.

        Args:
            text: A `str`, or bytes: `bytes`, `bytearray`, `memoryview`, or another buffer with one dimension of
                single bytes, such as a uint8 array. Bytes that are not UTF-8 are read as llama.cpp reads them. A lone
                surrogate in a `str` is read as the three bytes that `surrogatepass` encodes it to.
            add_special: Add BOS, EOS and SEP if the vocabulary says so.
            parse_special: Read control tokens written in the text, such as `<|im_end|>`, as tokens. Keep it off for
                text from users. User-defined tokens are always read.
            continues: The text continues an earlier one: no BOS is added, and nothing is put before its first
                characters. SPM and Unigram put no space there, WordPiece reads letters at the start as the rest of a
                word, and PLaMo-2 keeps a byte order mark. EOS and SEP follow `add_special` as always.

        Returns:
            The ids, each at least 0 and less than `len(vocab)`; -1 for unknown text if the vocabulary has no unknown
            token.

        Raises:
            TypeError: `text` has the wrong type.
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

        Takes the arguments of `encode` and raises what it does, and `DependencyError` if numpy is not installed.

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
        unit: Literal["char", "byte", "utf16"] = "char",
        add_special: bool = True,
        parse_special: bool = False,
        continues: bool = False,
    ) -> Encoding:
        r"""Encodes a text to token ids, each with the span of the text that it comes from.

        Takes the arguments of `encode` and raises what it does.

        Args:
            text: As in `encode`.
            unit: What spans count: `"char"` (as `text[start:end]` of a `str` does), `"byte"` (bytes of UTF-8, or of a
                text that is bytes) or `"utf16"` (UTF-16 code units, as editors and JavaScript count). Unless bytes are
                counted, a text of bytes counts as the `str` that it decodes to.
            add_special: As in `encode`.
            parse_special: As in `encode`.
            continues: As in `encode`.

        Returns:
            The ids that `encode` returns, and for each its half-open span in the original text: text that was
            lowercased, stripped of accents, replaced or escaped is traced back. Starts never decrease, nor do ends, and
            all are inside the text. BOS, EOS and SEP have an empty span at their position, and so does a space put
            before the text. Tokens that are bytes of one character each have the span of their byte, or that of the
            whole character if bytes are not counted. Whitespace that becomes one space is in the span of that space.
            What the vocabulary drops (whitespace between words of WordPiece, or beside a special token) is in no span.

        Raises:
            GgtokError: `unit` is something else; or it is not `"byte"` and `text` is bytes that are not UTF-8, which
                have no characters. It is a `ValueError`.

        Most spans follow from the lengths of tokens, so this takes little longer than `encode_array`. O(length) space.

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

    def encode_pair(
        self,
        context: _Text,
        continuation: _Text,
        *,
        add_special: bool = True,
        parse_special: bool = False,
        continues: bool = False,
    ) -> tuple[list[int], list[int]]:
        """Encodes a text in two halves: what a model is given, and what is scored or predicted after it.

        Args:
            context: The first half, a text as `encode` takes it.
            continuation: The second half.
            add_special: As in `encode`. BOS belongs to the context, EOS and SEP to the continuation.
            parse_special: As in `encode`.
            continues: As in `encode`: the context continues an earlier text.

        Returns:
            Two lists of ids. Joined, they are the ids of the whole text, `encode(context + continuation)`. A token that
            reaches over the border belongs to the continuation, and so does a token for a space that is put before
            it.

        Raises:
            TypeError, VocabularyError, GgtokError: As `encode`, for the whole text.

        >>> import ggtok
        >>> tok = ggtok.Tokenizer.builtin("bpe")
        >>> tok.encode_pair("What is", " LoRA?")
        ([9713, 5981], [6266, 78, 9612, 30])
        >>> tok.encode_pair("What is ", "LoRA?")
        ([9713, 5981], [6266, 78, 9612, 30])
        """

    def encode_parts(self, parts: _Parts, *, add_special: bool = True, continues: bool = False) -> list[int]:
        """Encodes a text in parts, each of which says whether control tokens written in it are read.

        Args:
            parts: An iterable of pairs `(text, parse_special)`: a text as `encode` takes it, and a bool. It is read to
                its end first.
            add_special: As in `encode`.
            continues: As in `encode`.

        Returns:
            The ids of all parts joined. A control token is read only if all of it is in parts that allow it; adjacent
            parts that allow it count as one. User-defined tokens are read everywhere, and words continue across the
            borders of parts. So the ids equal those of `encode` with `parse_special` for the whole text, unless the
            text of a control token is in another part or reaches into one.

        Raises:
            TypeError: A part is not a pair, or its items have the wrong types: "part 3: ...".
            VocabularyError: The vocabulary itself reads a control token in a part that does not allow it. RWKV, PLaMo-2
                and some of SPM and Unigram find such tokens in any text.
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
        unit: Literal["char", "byte", "utf16"] = "char",
        add_special: bool = True,
        continues: bool = False,
    ) -> Encoding:
        """Encodes a text in parts to token ids with spans, which count from the start of the first part.

        Takes the arguments of `encode_parts` and raises what it does. `unit`, the result and its errors are as in
        `encode_with_offsets` for all parts joined; the error for bytes that are not UTF-8 names the part.

        >>> import ggtok
        >>> tok = ggtok.Tokenizer.builtin("bpe")
        >>> tok.encode_parts_with_offsets([("hi", False), ("<|im_end|>", True)]).tolist()
        ([6876, 12993], [(0, 2), (2, 12)])
        """

    def decode(
        self,
        ids: _Ids,
        *,
        remove_special: bool = False,
        unparse_special: bool = False,
        clean_spaces: bool = False,
        errors: str = "replace",
    ) -> str:
        """Decodes token ids to text: their pieces, joined, without the space that `encode` puts in front of some texts.

        Code and prose come back unchanged. `docs/how/detokenizing.md` lists the vocabularies that change texts when
        they are encoded.

        Args:
            ids: An iterable of integers, or an array of integers with one dimension; int32 is the fastest.
            remove_special: Remove BOS and EOS if `encode` adds them.
            unparse_special: Write control and unknown tokens as their text. They are left out otherwise.
            clean_spaces: Return exactly what llama.cpp's `llama_detokenize` does. It removes the spaces before `.`,
                `,`, `!`, `?` and English contractions if the vocabulary asks for it (`vocab.clean_spaces`), and keeps
                the space that `encode` puts after BOS.
            errors: What to do with bytes that are not UTF-8, as in `bytes.decode`. Tokens may end inside a character.

        Raises:
            TypeError: An id is not an integer.
            TokenIndexError: An id is not in the vocabulary.
            UnicodeDecodeError: The bytes are not UTF-8 and `errors` is "strict".
            LookupError: Python has no error handler of the name `errors`.

        >>> import ggtok
        >>> tok = ggtok.Tokenizer.builtin("bpe")
        >>> tok.decode([9713, 5981, 6266, 78, 9612, 30])
        'What is LoRA?'
        >>> tok.decode([9713, 12993]), tok.decode([9713, 12993], unparse_special=True)
        ('What', 'What<|im_end|>')
        """

    def decode_bytes(
        self,
        ids: _Ids,
        *,
        remove_special: bool = False,
        unparse_special: bool = False,
        clean_spaces: bool = False,
    ) -> bytes:
        r"""Decodes token ids to bytes, which need not be UTF-8.

        Takes the arguments of `decode` except `errors`, and raises `TypeError` and `TokenIndexError` as it does.

        >>> import ggtok
        >>> tok = ggtok.Tokenizer.builtin("bpe")
        >>> tok.decode_bytes(tok.encode("\u00e9"))
        b'\xc3\xa9'
        """

    def encoder(self, *, add_special: bool = True, parse_special: bool = False) -> StreamEncoder:
        """An encoder for a text that arrives in parts, or is too long for memory.

        All ids that it returns, joined, are what `encode` returns for the whole text, however it is cut.

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
        clean_spaces: bool = False,
        text: Literal[True] = True,
    ) -> StreamDecoder[str]: ...
    @overload
    def decoder(
        self,
        *,
        stop: str | bytes | Iterable[str | bytes] = (),
        remove_special: bool = False,
        unparse_special: bool = False,
        clean_spaces: bool = False,
        text: Literal[False],
    ) -> StreamDecoder[bytes]:
        """A decoder for ids that arrive one by one, as a model generates them.

        Everything that it returns, joined, is what `decode` returns for all ids, however they are divided.

        Args:
            stop: A string that ends the text, or an iterable of such strings: `str`, or also bytes if `text` is false.
                The text ends before the first of them.
            remove_special: As in `decode`.
            unparse_special: As in `decode`.
            clean_spaces: As in `decode`. Spaces that may still be removed are held back.
            text: Return `str`, with U+FFFD for bytes that are not UTF-8. Otherwise return bytes, as `decode_bytes`
                does.

        Raises:
            TypeError: A stop string has the wrong type.
            GgtokError: A stop string is empty.

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
        """The memory that the tokenizer holds, in bytes: its tables and the file's metadata, without its caches.

        >>> import ggtok
        >>> ggtok.Tokenizer.builtin("spm").heap_bytes > 100_000
        True
        """

    @property
    def cache_bytes(self) -> int:
        """The memory that the caches of all threads together take, in bytes, except those in use by a running call.

        >>> import ggtok
        >>> tok = ggtok.Tokenizer.builtin("spm")
        >>> tok.count("What is LoRA?"), tok.cache_bytes > 0
        (6, True)
        """

    def clear_cache(self) -> None:
        """Frees the caches and buffers of all threads. Calls that are running free theirs when they end.

        The next calls fill them again. `set_cache_limit` bounds them instead.

        >>> import ggtok
        >>> tok = ggtok.Tokenizer.builtin("spm")
        >>> tok.clear_cache()
        >>> tok.cache_bytes
        0
        """

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

        Raises `DependencyError` if numpy is not installed; `tolist` works without it.

        >>> import ggtok
        >>> ggtok.Tokenizer.builtin("bpe").encode_with_offsets("What is LoRA?").ids
        array([9713, 5981, 6266,   78, 9612,   30], dtype=int32)
        """

    @property
    def offsets(self) -> NDArray[np.int64]:
        """Where each token comes from: a read-only numpy array of dtype int64 and shape `(number of tokens, 2)`.

        Row `i` is the half-open span `text[start:end]` of token `i` in the original text, in the unit that was asked
        for. Starts never decrease, and neither do ends. An added token has an empty span.

        Raises `DependencyError` if numpy is not installed; `tolist` works without it.

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

    def tokens_of(self, start: SupportsIndex, end: SupportsIndex) -> tuple[int, int]:
        """The tokens that touch a range of the text: `(first, end)`, the first one and the one after the last.

        A token touches the range if their spans have something in common. So all byte tokens of a character are among
        those of the character, a token without text (BOS, EOS, a space that was added) touches only a range around its
        place, and a range of text that the vocabulary drops touches none. If there are none, `end` is `first`, and
        `first` tokens end at or before `start`. An empty range touches the token that it is inside of.

        Args:
            start: Where the range starts, in the unit of the offsets.
            end: Where it ends. It may be after the end of the text.

        Raises:
            TypeError: `start` or `end` is not an integer.
            GgtokError: One of them is negative or has more than 63 bits, or `start` is after `end`.

        O(log n) for n tokens.

        >>> import ggtok
        >>> encoding = ggtok.Tokenizer.builtin("bpe").encode_with_offsets("What is LoRA?")
        >>> encoding.tolist()[1]
        [(0, 4), (4, 7), (7, 9), (9, 10), (10, 12), (12, 13)]
        >>> encoding.tokens_of(8, 12), encoding.tokens_of(4, 4)
        ((2, 5), (1, 1))
        """

    def word_ids(self) -> list[int | None]:
        """For each token the number of its word, from 0; `None` for BOS, EOS and SEP that were added.

        A word is a piece of the pre-tokenizer for BPE and a word between spaces and punctuation for WordPiece. SPM and
        Unigram cut no words: there, each space starts one, and a token with several belongs to the first. RWKV and
        PLaMo-2 have nothing like it, so all text between two special tokens is one word. A special token that is
        written in the text is a word by itself. Words without tokens have no number.

        Encodes the text again, which the encoding keeps for that; a pickled one keeps the numbers.

        >>> import ggtok
        >>> ggtok.Tokenizer.builtin("bpe").encode_with_offsets("What is LoRA?").word_ids()
        [0, 1, 2, 2, 2, 3]
        >>> ggtok.Tokenizer.builtin("wordpiece").encode_with_offsets("What is LoRA?").word_ids()
        [None, 0, 1, 2, 2, 3, None]
        """

    def __len__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __reduce__(self) -> tuple[object, tuple[bytes, bytes, bytes]]: ...

@final
class StreamDecoder(Generic[AnyStr]):
    """Turns ids into text as they arrive. Made by `Tokenizer.decoder`.

    `StreamDecoder[str]` returns text, `StreamDecoder[bytes]` (`text=False`) returns bytes. Only what may still change
    is held back: an incomplete character, the start of a stop string, an EOS that may have to be removed, and with
    `clean_spaces` also spaces that may. Nothing is decoded twice.

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
            GgtokError: `flush` was called before.

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

        After that, no more ids can be pushed. A second call returns nothing.

        >>> import ggtok
        >>> tok = ggtok.Tokenizer.builtin("bpe")
        >>> decoder = tok.decoder(stop="is not")
        >>> [decoder.push(id) for id in tok.encode("What is LoRA?")[:2]], decoder.flush()
        (['What', ' '], 'is')
        """

    def prime(self, prompt_ids: _Ids) -> None:
        """Takes the ids of a prompt, so that what is pushed afterwards is decoded as its continuation.

        Nothing of the prompt itself comes out, stop strings do not begin in it, and the first space after it stays. A
        prompt may end inside a character. The bytes that complete it are not UTF-8 by themselves, so they become
        U+FFFD; a decoder with `text=False` returns them unchanged.

        Args:
            prompt_ids: What `decode` takes. Prompts of several calls follow one another.

        Raises:
            TypeError: An id is not an integer.
            TokenIndexError: An id is not in the vocabulary. None of the ids was taken.
            GgtokError: Ids have been pushed before, or `flush` was called.

        >>> import ggtok
        >>> tok = ggtok.Tokenizer.builtin("spm")
        >>> prompt, answer = tok.encode("What is"), tok.encode("LoRA?", add_special=False)
        >>> decoder = tok.decoder()
        >>> decoder.prime(prompt)
        >>> decoder.push(answer), tok.decoder().push(answer)
        (' LoRA?', 'LoRA?')
        """

    def copy(self) -> Self:
        """An independent decoder that continues from here, for another beam. It takes less than a microsecond.

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

        If several match, the one that begins first in the text wins, and among those the shortest. It is set once no
        stop string that begins earlier can still be completed, at the latest by `flush`.

        >>> import ggtok
        >>> tok = ggtok.Tokenizer.builtin("bpe")
        >>> decoder = tok.decoder(stop=["RA?", "is L"])
        >>> decoder.push(tok.encode("What is LoRA?")), decoder.stopped
        ('What ', 'is L')
        """

@final
class StreamEncoder:
    """Turns text into ids as it arrives. Made by `Tokenizer.encoder`.

    All ids that it returns, joined, are those of the whole text, however it is cut. Text whose ids may still change
    waits: the end of a word or line, or what may become a special token. It is examined again only after it has doubled
    and grown by at least 64 bytes. So memory is bounded by the longest undecided stretch, such as a word, and time is
    linear however small the parts are. The text may have any length.

    An encoder is for one thread at a time: a call during another one raises `RuntimeError`. It cannot be used after an
    interrupted call.
    """

    def push(self, text: _Text) -> list[int]:
        """Takes more of the text and returns the ids that are certain.

        Args:
            text: A `str` or bytes, as `encode` takes them. Bytes may be cut inside a character.

        Raises:
            TypeError: `text` has the wrong type.
            GgtokError: `flush` was called before.
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

        After that, no more text can be pushed. A second call returns nothing.

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
        """How many bytes wait for more text.

        >>> import ggtok
        >>> encoder = ggtok.Tokenizer.builtin("bpe").encoder()
        >>> encoder.push("What is Lo"), encoder.num_waiting
        ([9713, 5981], 3)
        """

@final
class Metadata:
    """The keys and values of a GGUF file, with overrides."""

    @staticmethod
    def read(
        data: bytes, total: int | None, overrides: dict[str, str | int | float | bool], flawed: bool = False
    ) -> Metadata | int:
        """Reads the metadata at the start of a file.

        Args:
            data: The file's first bytes.
            total: The length of the file; `None` if it is not known yet.
            overrides: Values that replace those of the file: `str`, `int`, `float` or `bool`.
            flawed: Whether a key may be empty or occur several times; its last value then wins.

        Returns:
            The metadata, or the least number of bytes of the file that are needed.

        Raises:
            GGUFError: The bytes are not valid GGUF.
        """

    @property
    def data(self) -> bytes:
        """The file from its first byte to the end of the last value: a source of equal metadata."""

    @property
    def overrides(self) -> dict[str, str | int | float | bool]:
        """The overrides as they were given."""

    @property
    def size(self) -> int:
        """Bytes from the start of the file to the end of the last value."""

    @property
    def big_endian(self) -> bool:
        """Whether numbers have their highest byte first."""

    @property
    def version(self) -> int:
        """The version of the format: 2 or 3."""

    @property
    def tensor_count(self) -> int:
        """The number of tensors after the metadata."""

    def entries(self) -> dict[str, tuple[int, str | int | float | bool | Array]]:
        """All keys in the order of the file, each with the type of its value, numbered as in the file, and the value as
        `get` returns it. A surrogate stands for each byte of a string that is not UTF-8.
        """

    def get(self, key: str) -> str | int | float | bool | Array | None:
        """The value that the file has for a key: a number, a `str`, a `bool` or an `Array`. `None` if it has none."""

    def raw(self, key: str) -> bytes:
        """A key and its value, byte for byte as in the file. Raises `GgtokError` if the key is missing."""

    def __contains__(self, key: object, /) -> bool: ...

@final
class Array:
    """An array of a GGUF file, which stays where it is."""

    @property
    def kind(self) -> int:
        """The type of the elements, numbered as in the file."""

    def __len__(self) -> int: ...
    def strings(self) -> list[bytes] | None:
        """The elements of an array of strings, as bytes; `None` for another array."""

    def raw(self) -> bytes:
        """The elements as in the file, in its byte order."""

    def tobytes(self) -> bytes:
        """The elements of an array of numbers in little-endian byte order."""

@final
class Buffer:
    """Numbers in memory that other libraries read without copying them: a row of them, or rows of one length.

    It has the buffer protocol (`memoryview(buffer)`, `numpy.asarray(buffer)`) and, if numpy is installed, DLPack
    (`torch.from_dlpack(buffer)`, `jax.numpy.from_dlpack(buffer)`). The memory cannot be written to. Made by
    `Batch.buffers`.

    >>> import ggtok
    >>> ids, offsets = ggtok.Tokenizer.builtin("bpe").encode_batch(["one text", "and another"]).buffers()
    >>> ids.dtype, ids.shape, ids.tolist(), memoryview(offsets)[-1]
    ('int32', (4,), [6053, 7301, 6019, 7237], 4)
    """

    @property
    def dtype(self) -> str:
        """The type of an item: "int32", "int64", "uint8" or "bool"."""

    @property
    def shape(self) -> tuple[int, ...]:
        """How many items there are in each dimension."""

    def __len__(self) -> int: ...
    def __getitem__(self, index: Any, /) -> Any: ...
    def __iter__(self) -> Iterator[int]: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...
    def tolist(self) -> list[Any]:
        """The items as Python objects: a list, or a list of lists."""

    def __dlpack__(self, **options: Any) -> Any:
        """The memory as a DLPack capsule, made by numpy; called by `from_dlpack` of other libraries.

        Takes the arguments of `numpy.ndarray.__dlpack__` and raises what it does, and `DependencyError` if numpy is not
        installed. Before version 1.0, DLPack could not mark memory as read-only, so a caller that passes no newer
        `max_version` gets a copy.
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
        """Where each row starts in the ids, and where the last one ends."""

    def select(self, start: int, len: int, step: int) -> FlatBatch:
        """`len` rows from `start` on, `step` apart. With a step of 1 they share the ids."""

    def tolist(self) -> list[list[int]]:
        """The ids of each row as a list."""

    def pad(self, length: int | None, left: bool, value: int, multiple_of: int, to_numpy: bool) -> tuple[Any, Any]:
        """The rows padded to one length, and a mask of the ids that are not padding: numpy arrays or buffers."""

    @staticmethod
    def arrow_schema() -> object:
        """The Arrow type of batches, as a capsule."""

    def arrow_array(self, requested_schema: object) -> tuple[object, object]:
        """The batch for Arrow: capsules with its type and array."""

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

def _encoding(ids: bytes, offsets: bytes, words: bytes) -> Encoding: ...
def cache_limit() -> int:
    """The most memory that the caches of a tokenizer take, in bytes: 256 MiB unless `set_cache_limit` changed it.

    >>> import ggtok
    >>> ggtok.cache_limit()
    268435456
    """

def set_cache_limit(num_bytes: int) -> None:
    """Sets the most memory that the caches of each tokenizer take, for all threads together, in bytes.

    Words and their ids are cached, so a repeated word costs one look-up. There are as many caches as calls have run at
    the same time. They share the limit evenly, and none gets more than a quarter of it. The limit applies at once to
    all tokenizers, open ones and later ones; a larger cache is emptied, and its memory freed, even if its thread never
    calls again. A running call empties its cache when it ends. Memory is also freed by `Tokenizer.clear_cache`, and
    when the tokenizer is dropped. The ids are the same with any limit; less than 64 KiB means no cache, which is slow.

    Raises:
        GgtokError: `num_bytes` is negative, or does not fit into 64 bits.

    >>> import ggtok
    >>> ggtok.set_cache_limit(16 << 20)
    >>> ggtok.cache_limit()
    16777216
    >>> ggtok.set_cache_limit(256 << 20)
    """

def pretokenizers() -> dict[str, _PreTokenizer]:
    """`tokenizer.ggml.pre` by name: its family and flags."""

def families() -> dict[str, _Family]:
    """Pattern families by name: their patterns and whether they spell bytes."""

def apply_charsmap(charsmap: bytes, text: str) -> str:
    """A text as a character map changes it; an empty map changes nothing.

    Raises:
        VocabularyError: The map is damaged.
    """

def compile_charsmap(*, name: str | None = None, tsv: str | None = None) -> bytes:
    """The character map of rules that have a name, or of rules given line by line."""

def special_keys() -> dict[str, str]:
    """The keys that give the ids of special tokens, without `tokenizer.ggml.` at their start, by name."""

def flag_keys() -> dict[str, str]:
    """The keys that set flags, without `tokenizer.ggml.` at their start, by the name of the flag."""

def loader_texts() -> dict[str, list[str]]:
    """The texts by which the loader finds special tokens, by slot."""

def models() -> dict[str, str]:
    """`tokenizer.ggml.model` by name: the kind of vocabulary."""

def import_numpy() -> ModuleType:
    """numpy, imported so that Ctrl-C does not break it. Raises `DependencyError` if it cannot be imported."""

def encode_batch(
    tokenizer: Tokenizer,
    texts: object,
    threads: int,
    max_tokens: int | None,
    side: str,
    add_special: bool,
    parse_special: bool,
    continues: bool,
    last: int | None,
) -> FlatBatch:
    """The ids of several texts, each truncated to `max_tokens`, and after each that is not null the id `last`."""

def count_batch(
    tokenizer: Tokenizer, texts: object, threads: int, add_special: bool, parse_special: bool, continues: bool
) -> list[int]:
    """How many tokens each of several texts has."""

def decode_batch(
    tokenizer: Tokenizer,
    batch: object,
    threads: int,
    remove_special: bool,
    unparse_special: bool,
    clean_spaces: bool,
    errors: str,
) -> list[str]:
    """The texts of several rows of ids."""

def split(
    tokenizer: Tokenizer,
    text: _Text,
    max_tokens: int,
    overlap: int,
    boundaries: list[Any],
    prefix: _Text,
    add_special: bool,
    parse_special: bool,
) -> list[tuple[int, int, int]]:
    """The chunks of a text: the start and end of each, in characters of a `str` or in bytes, and its number of tokens.

    `boundaries` are names, and compiled patterns in the order in which they are tried.
    """

def truncate(
    tokenizer: Tokenizer, text: _Text, max_tokens: int, side: str, add_special: bool, parse_special: bool
) -> tuple[int, int]:
    """The start and end, in characters of a `str` or in bytes, of what has to be removed from a text so that
    `max_tokens` tokens are left.
    """

def sample(
    tokenizer: Tokenizer,
    text: _Text,
    setting: tuple[float | None, float | None, int | None],
    add_special: bool,
    parse_special: bool,
    continues: bool,
) -> list[int]:
    """As `Tokenizer.sample`. `setting` is `alpha`, `dropout` and `seed`."""

def n_best(
    tokenizer: Tokenizer, text: _Text, n: int, add_special: bool, parse_special: bool, continues: bool
) -> list[tuple[list[int], float]]:
    """As `Tokenizer.n_best`."""

def used_tokens(tokenizer: Tokenizer, texts: list[_Text], threads: int, parse_special: bool) -> list[int]:
    """The tokens of texts, and those that unknown words of WordPiece match before the position where none does."""

def needed_for(tokenizer: Tokenizer, used: list[int]) -> tuple[list[int], list[int]]:
    """The tokens and the ranks of the merge rules that a vocabulary needs for texts with these tokens, in ascending
    order. Not for PLaMo-2."""

def align(
    ids_a: _Ids, tok_a: Tokenizer, ids_b: _Ids, tok_b: Tokenizer
) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Pairs the tokens that two tokenizers have for the same characters of a text.

    Args:
        ids_a: Token ids as `decode` takes them.
        tok_a: Their tokenizer.
        ids_b: The ids of the same text by another tokenizer.
        tok_b: That tokenizer.

    Returns:
        Pairs of ranges of tokens, `((start, end), (start, end))`, in order: the tokens `ids_a[start:end]` of the first
        range stand for the same characters as `ids_b[start:end]` of the second, and each pair is as short as it can be.
        A range begins and ends with a token that has text, so BOS and EOS are in none. Whitespace that only one of the
        texts has is in the range of the token that it is in. An unknown token stands for at least one character of the
        other text, and for all up to the next that both have. If one of the vocabularies is WordPiece, case and accents
        are compared as it changes them.

    Raises:
        TokenIndexError: An id is out of range; "row 0" is that of the first list, "row 1" of the second.
        GgtokError: The ids stand for different texts. The message names the tokens where they part.
        TypeError: An argument has the wrong type.

    Takes O(n) time for n bytes of text.

    >>> import ggtok
    >>> a, b = ggtok.Tokenizer.builtin("bpe"), ggtok.Tokenizer.builtin("wordpiece")
    >>> text = "What is LoRA?"
    >>> [a.piece(id) for id in a.encode(text)], [b.piece(id) for id in b.encode(text)]
    ([b'What', b' is', b' L', b'o', b'RA', b'?'], [b'[CLS]', b' what', b' is', b' lo', b'ra', b' ?', b'[SEP]'])
    >>> ggtok.align(a.encode(text), a, b.encode(text), b)
    [((0, 1), (1, 2)), ((1, 2), (2, 3)), ((2, 4), (3, 4)), ((4, 5), (4, 5)), ((5, 6), (5, 6))]
    """

def core_of(tokenizer: Tokenizer) -> Tokenizer:
    """The same tokenizer as another object, which does not keep the first one alive. Nothing is copied."""

def vocab_size(tokenizer: Tokenizer) -> int:
    """The number of tokens."""

def list_size(tokenizer: Tokenizer) -> int:
    """The number of tokens, for a list of them all; a `VocabularyError` if they are too many for a list and without
    texts.
    """

def kind(tokenizer: Tokenizer) -> tuple[str, str, str | None]:
    """The names of the kind, the model and the pre-tokenizer."""

def special_ids(tokenizer: Tokenizer) -> dict[str, int | None]:
    """The ids of the special tokens by role."""

def eog_ids(tokenizer: Tokenizer) -> list[int]:
    """The ids that end generation."""

def repaired_ids(tokenizer: Tokenizer) -> list[tuple[str, str | None, int]]:
    """The repairs that concern special tokens: for each which one it is, the special token's name, and an id.

    `"default"`: no token has the default id for this name. `"role"`: the token with this name was found by its text.
    The others have no name. `"marked"`: the token was marked as control or user-defined. `"not end"`: it was taken
    out of those that end generation.
    """

def settings(tokenizer: Tokenizer) -> dict[str, bool]:
    """The flags by name."""

def canonical_bytes(tokenizer: Tokenizer) -> bytes:
    """Everything that distinguishes the vocabulary from others, except the merges."""

def token(tokenizer: Tokenizer, id: SupportsIndex) -> tuple[bytes, float, int]:
    """The text, the score and the attribute bits of a token."""

def id_of_text(tokenizer: Tokenizer, text: bytes) -> int | None:
    """The id of the token with this text."""

def pieces(tokenizer: Tokenizer) -> list[bytes]:
    """The piece of every token, special tokens included."""

def texts(tokenizer: Tokenizer) -> list[bytes]:
    """The text of every token, as in the file."""

def scores(tokenizer: Tokenizer) -> bytes:
    """The score of every token: float32, in the machine's byte order."""

def attributes(tokenizer: Tokenizer) -> list[int]:
    """The attributes of every token."""

def charsmap(tokenizer: Tokenizer) -> bytes:
    """The precompiled character map."""

def id_of_piece(tokenizer: Tokenizer, piece: bytes) -> int | None:
    """The lowest id with this piece."""

def ids_with_prefix(tokenizer: Tokenizer, prefix: bytes) -> list[int]:
    """The ids of all tokens whose pieces start with these bytes, in the order of the pieces."""

def merges(tokenizer: Tokenizer) -> list[bytes]:
    """The merges of a byte-pair vocabulary as in its file: two texts with a space between. Empty for other kinds."""

def unreachable_tokens(tokenizer: Tokenizer) -> list[int]:
    """The normal tokens of more than one character that no merge makes."""

def unused_merges(tokenizer: Tokenizer) -> list[int]:
    """The ranks of the merges whose result is not a token."""

def json_items(
    tokenizer: Tokenizer, encoding: Encoding, column: Literal["ids", "pieces", "offsets"], start: int, end: int
) -> bytes:
    """Some items of a column of an encoding, as JSON in ASCII, without brackets around them.

    A piece that is not UTF-8 is an object with the key `base64`.
    """

def json_lines(
    lines: tuple[bytes, bytes, int], first_row: int, field: str, is_raw: bool, columns: Sequence[str], nulls: str
) -> tuple[int, Buffer, list[tuple[Buffer, Buffer | None, Buffer]], list[tuple[int, int, int, str, list[str]]]]:
    """Fields of the objects in JSON Lines, as the buffers of Arrow columns.

    Args:
        lines: Whole lines: what the first one starts with, a block with the rest of it and more lines, and where the
            last one ends in the block. It may lack its line end. Blank ones are skipped.
        first_row: The number of the first line.
        field: The first column: a string of each object, never null. Of any field that an object lacks, dots lead into
            objects: `doc.text`.
        is_raw: Whether that field may be a list too, whose JSON text is the value.
        columns: Further fields. Strings become their text and other values their JSON text; null if missing.
        nulls: What to do with an object whose `field` is null: "error", "skip" or "empty".

    Returns:
        How many lines there are, the numbers of those that became rows, and for each column its offsets (int64), its
        validity (bits; `None` if all are valid) and its data. Last, the lines that are bad: the number, where it starts
        and ends (in start and block together), the reason, and if that is a missing field, the fields that are there.

    Raises:
        GgtokError: `nulls` is something else.
    """

def text_lines(
    lines: tuple[bytes, bytes, int], first_row: int
) -> tuple[int, Buffer, list[tuple[Buffer, Buffer | None, Buffer]], list[tuple[int, int, int, str, list[str]]]]:
    """Each line of a text without its line end, as `json_lines` returns a column. Lines that are not UTF-8 are bad."""

def word_counts(text: str) -> dict[str, int]:
    """How often each word of a text occurs."""

@final
class RawTrace:
    """Every step from a text to its tokens."""

    def json(self) -> str:
        """The trace as JSON."""

    def story(self, told: set[int]) -> str:
        """The steps as a reader walks through them, as JSON, with those units told that have these ids."""

    def page(self) -> str:
        """All that a page shows of the trace, as JSON."""

    def why(self, start: int, end: int) -> str:
        """Why the bytes from `start` to `end` did not become one token, as JSON."""

def explain(
    tokenizer: Tokenizer,
    argument: object,
    add_special: bool,
    parse_special: bool,
    continues: bool,
) -> RawTrace:
    """Encodes a text in the textbook way and keeps every step."""

def explain_trie(words: Iterable[str | ReadableBuffer], queries: Iterable[str | ReadableBuffer]) -> str:
    """Builds the double array of a few words, and looks the queries up in it: all steps as JSON."""

def face(data: bytes) -> str:
    """Bytes as people know them: characters, signs for spaces and controls, and parts of characters in hexadecimal."""

def regex_matches(regex: str, text: str) -> list[tuple[int, int]] | None:
    """The byte ranges of a regex's matches in a short text, or `None` if it is not valid or takes too long."""

@final
class Trainer:
    """Counts the words of a corpus and trains a vocabulary on them, for `ggtok.train`. The kind `extend` trains tokens
    to add to one.

    `settings` are those of the kind, `memory` is how many bytes counted words may take and the paths of two files to be
    made for the rest, and `progress` is called with the phase, how much is done, and of how much.
    """

    def __new__(
        cls,
        kind: str,
        settings: dict[str, Any],
        memory: tuple[int, list[str]] | None,
        progress: Callable[[str, int, int], object] | None,
    ) -> Self: ...
    def push(self, texts: object, first: int, counts: list[int]) -> None:
        """Counts the words of a list of texts or of an Arrow column without its nulls, each text as often as its count
        says, or once if it has none. `first` is the number of the first text, for errors."""

    def push_file(self, block: bytes, count: int, is_last: bool, path: str, start: int) -> int:
        """Counts the words of a block of a file `count` times, and returns how many of its bytes it took. The rest
        belongs before the next block. `path`, and `start`, where the block starts in the file, are for errors."""

    def finish_counting(self) -> list[str]:
        """Ends the counting. Returns a sentence for each counter that ran out of memory, about what was left out."""

    def finish(self) -> tuple[list[bytes], list[int], list[float], list[bytes]]:
        """Trains, and returns tokens, types, scores and merges. Called once, after the counting."""

@final
class ChatTemplate:
    """A compiled chat template, in llama.cpp's template language, with llama-server's rules for messages.

    What a template can do is worked out when it first renders. Safe to share between threads.

    >>> import ggtok._ggtok
    >>> template = ggtok._ggtok.ChatTemplate("{% for m in messages %}[{{ m.content }}]{% endfor %}", "mine")
    >>> template.render({"messages": [{"role": "user", "content": "Hi"}]}).text
    '[Hi]'
    """

    def __new__(cls, source: _Text, name: str) -> Self: ...
    @property
    def name(self) -> str:
        """What errors call the template."""

    @property
    def variables(self) -> list[str]:
        """The names of the variables that it reads and does not set itself."""

    @property
    def unknown(self) -> list[tuple[int, int, str]]:
        """Filters and tests that llama.cpp does not have: line, column, problem. They fail where they are reached."""

    @property
    def literals(self) -> list[tuple[bytes, bool]]:
        """Its text outside of blocks and its string constants, in order, and whether each is a constant."""

    def render(
        self,
        body: object,
        *,
        bos: str = "",
        eos: str = "",
        media_marker: str | None = None,
        closes: bool | None = None,
        now: tuple[int, int, str] = ...,
    ) -> Rendering:
        """Renders a request.

        Args:
            body: The body of a request to `/v1/chat/completions`, out of what JSON consists of, dataclasses and
                pydantic models.
            bos: The text of the BOS token.
            eos: The text of the EOS token.
            media_marker: What stands for an image, a sound or a film. Without it they are refused.
            closes: Whether a last assistant's message is closed rather than continued. Default: it is if
                `add_generation_prompt` is false. What the request itself continues is never closed.
            now: Seconds since 1970, how many seconds the zone is ahead of UTC, and its abbreviation.

        Raises:
            ChatTemplateError: The template fails, refuses the messages, or exceeds a limit.
            ChatRequestError: llama-server would refuse the request.
        """

@final
class Rendering:
    """What a template wrote for a request, and who wrote each byte of it. Made by `ChatTemplate.render`."""

    @property
    def text(self) -> str:
        """The text. Bytes that are not UTF-8 become U+FFFD, and three bytes that encode a surrogate that surrogate."""

    @property
    def data(self) -> bytes:
        """The bytes of the text."""

    @property
    def warnings(self) -> list[tuple[str, str | None, int | None, str]]:
        """What the model does not see: the kind of a warning, the name and the message concerned, and what it says."""

    def ids(self, tokenizer: Tokenizer, *, add_special: bool = True, refuse_user_defined: bool = False) -> list[int]:
        """The ids. Control tokens are read only in what the template wrote.

        Raises:
            VocabularyError: The vocabulary reads a control token in every text and the caller's strings have one, or
                with `refuse_user_defined` a user-defined token that works like one.
        """

    def encode(
        self,
        tokenizer: Tokenizer,
        *,
        add_special: bool = True,
        refuse_user_defined: bool = False,
        mask: str = "turn",
    ) -> tuple[list[int], _Masked]:
        """The ids and what `masked` returns for them. Raises what `ids` and `masked` do."""

    def masked(self, tokenizer: Tokenizer, spans: list[tuple[int, int]], mask: str) -> _Masked:
        """For tokens with these spans in bytes: the tokens of each message, the mask, and for each marker of an image,
        a sound or a film its message, part, first token and the one after the last.

        Raises:
            ChatTemplateError: It cannot be known what the assistant would write.
        """

    def stretch(
        self,
        tokenizer: Tokenizer,
        place: tuple[int, int],
        begins: bool,
        ends: bool,
        add_special: bool,
    ) -> tuple[list[int], list[tuple[int, int]]]:
        """The ids of a part of the text that is encoded independently, and their spans in bytes of the whole.

        Raises what `ids` does.

        Args:
            tokenizer: The tokenizer.
            place: From which byte to which.
            begins: Whether the text begins here, perhaps with a BOS.
            ends: Whether the text ends here, perhaps with an EOS.
            add_special: Whether to add those that the vocabulary asks for.
        """

    def places(self) -> list[tuple[int, int, tuple[int, int] | None] | None]:
        """Where each message is: its first byte and the one after its last, and the same for its content."""

    def shared(self, other: Rendering) -> int:
        """How many bytes at the start are the same, and of the template or of a caller in both."""

    def is_template(self, at: int) -> bool:
        """Whether the template wrote this byte."""
