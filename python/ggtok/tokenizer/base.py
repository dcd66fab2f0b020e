"""A tokenizer without what is built on it: it opens files, encodes many texts and cuts long ones.

`Tokenizer`, which users have, adds the calls of the parts: chat templates, other formats, traces. The parts take a
`BaseTokenizer`, so that all imports go one way.
"""

from __future__ import annotations

import os
import re
from functools import partial
from typing import AnyStr, Literal, TypeAlias, TypeVar

from .._ggtok import Metadata, count_batch, decode_batch, encode_batch, n_best, sample, split, truncate, vocab_size
from .._ggtok import Tokenizer as Core
from ..errors import ArgumentTypeError, GgtokError, GGUFError
from .arguments import file_name, items_of, one_of
from .batch import Batch
from .check import warn
from .chunks import Chunk, split_all, stripped
from .contents import not_model
from .keys import MODEL
from .metadata import Scalar, Source, name_of, read_metadata, scalars
from .numbers import at_least, num_threads, real, seed_of
from .vocab import Immutable, Vocab

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any, Protocol, Self, SupportsIndex

    from _typeshed import ReadableBuffer

    from .findings import Finding

    class SupportsRead(Protocol):
        def read(self, size: int, /) -> Text: ...

    class ArrowArray(Protocol):
        def __arrow_c_array__(self, requested_schema: object = None, /) -> tuple[object, object]: ...

    class ArrowStream(Protocol):
        def __arrow_c_stream__(self, requested_schema: object = None, /) -> object: ...


Text: TypeAlias = "str | ReadableBuffer"
Texts: TypeAlias = "Iterable[Text] | ArrowArray | ArrowStream"

Boundary = Literal["markdown", "python", "paragraph", "line", "sentence", "word", "character"]
Side = Literal["right", "left", "middle"]

BUILTIN = ("bpe", "spm", "unigram", "wordpiece")

READ_SIZE = 1 << 20
"""How much of a file is counted at once: more gains nothing."""


TokenizerT = TypeVar("TokenizerT", bound="BaseTokenizer")


class BaseTokenizer(Immutable, Core):
    """Opens, compares and pickles; batches, chunks and files. See `ggtok.Tokenizer`."""

    # Without a `__dict__`, Python finds an object's methods faster: `encode` takes 220 ns for a short text, not 250.
    # Each class that it inherits from, or that inherits from it, needs its own `__slots__` for that.
    __slots__ = ("__weakref__", "_findings", "_metadata", "_source", "vocab")

    _what = "tokenizer"
    _findings: tuple[Finding, ...]
    """What was known about the file when it was opened, beyond its contents."""
    _metadata: Metadata
    _source: str | None
    """The path of the file that it was made from, if there is one: no call replaces that unasked."""
    vocab: Vocab
    """The tokens, special ids and flags."""

    def __new__(cls, *_: object, **__: object) -> Self:
        raise TypeError("use Tokenizer.from_gguf or Tokenizer.builtin")

    @classmethod
    def from_gguf(cls, source: Source, *, overrides: Mapping[str, Scalar] | None = None) -> Self:
        """Opens the tokenizer of a GGUF file. Only the metadata is read; tensors may be missing.

        Args:
            source: A path, the bytes of a file (`bytes` or another buffer), or a readable binary file, which is read
                from its current position.
            overrides: Values that replace those of the file's metadata keys, as llama.cpp's `--override-kv` does. A
                value whose type is not the one that llama.cpp expects is ignored, with a warning to the logger `ggtok`.

        Raises:
            GGUFError: The file is damaged, or a key has the wrong type.
            VocabularyError: The vocabulary is damaged.
            UnsupportedError: ggtok does not know the tokenizer or pre-tokenizer.
            OSError: The file cannot be read.
            TypeError: An argument has the wrong type.

        The first three have the file's path as `path`. Warns (`TokenizerWarning`) about errors that are quick to find,
        such as a byte-pair vocabulary without the name of a pre-tokenizer; `check` looks closer.

        >>> import ggtok, os
        >>> path = os.path.join(os.path.dirname(ggtok.__file__), "vocabularies", "spm.gguf")
        >>> tok = ggtok.Tokenizer.from_gguf(path, overrides={"tokenizer.ggml.add_bos_token": False})
        >>> tok.vocab.add_bos
        False
        """
        self = opened(cls, source, overrides)
        warn(self.vocab, self._metadata)
        return self

    @classmethod
    def builtin(cls, name: str) -> Self:
        """Opens one of the embedded vocabularies: `bpe`, `spm`, `unigram` or `wordpiece`.

        Raises `GgtokError` for another name.

        >>> import ggtok
        >>> ggtok.Tokenizer.builtin("wordpiece").encode("What is LoRA?")
        [2, 4933, 4651, 4762, 4931, 35, 3]
        """
        one_of("name", name, BUILTIN)
        return cls.from_gguf(os.path.join(os.path.dirname(os.path.dirname(__file__)), "vocabularies", f"{name}.gguf"))

    @property
    def metadata(self) -> Mapping[str, Scalar]:
        """The file's metadata with overrides, read-only: every key whose value is not an array.

        Strings need not be UTF-8: a byte that is not is a surrogate (`surrogateescape`).

        >>> import ggtok
        >>> ggtok.Tokenizer.builtin("bpe").metadata["tokenizer.ggml.model"]
        'gpt2'
        """
        return scalars(self._metadata)

    @property
    def fingerprint(self) -> str:
        """A digest of the vocabulary, its settings and merges: 32 hexadecimal digits.

        It is the same on every machine. Two tokenizers are equal if their fingerprints are: those of two quantizations
        of one model, for example. The manifest of a corpus has it as `digest`.

        >>> import ggtok
        >>> ggtok.Tokenizer.builtin("bpe").fingerprint
        'bd097245736723840d0a56ba51afa156'
        """
        return self.vocab._identity.hex()

    @property
    def vocab_size(self) -> int:
        """The number of tokens: `len(vocab)`.

        >>> import ggtok
        >>> ggtok.Tokenizer.builtin("bpe").vocab_size
        13000
        """
        return vocab_size(self)

    def sample(
        self,
        text: Text,
        *,
        alpha: float | None = None,
        dropout: float | None = None,
        seed: int | None = None,
        add_special: bool = True,
        parse_special: bool = False,
        continues: bool = False,
    ) -> list[int]:
        """Encodes a text in one of the many ways to cut it, at random (subword regularization).

        Args:
            text: A text as `encode` takes it.
            alpha: For Unigram: a way is as likely as the exponential of `alpha` times the sum of its tokens' scores
                (Kudo 2018). 0 makes all ways equally likely, 1 takes the vocabulary's own probabilities, and with
                large numbers nearly every sample is that of `encode`.
            dropout: For byte-pair encoding and SPM: how likely each merge is left out (Provilkov et al. 2020), from 0
                for the ids of `encode` to 1 for no merges. A merge that was left out can come back in byte-pair
                encoding, as in huggingface/tokenizers, and not in SPM, as in sentencepiece. A word that is a token is
                merged like any other.
            seed: From 0 to 2**64 - 1. The same seed, text and settings give the same ids on every machine. Default: a
                random one.
            add_special: As in `encode`.
            parse_special: As in `encode`.
            continues: As in `encode`.

        Raises:
            GgtokError: Not exactly one of `alpha` and `dropout` is given, it is out of range, or it is not for this
                kind of vocabulary; or as `encode`.
            TypeError, VocabularyError: As `encode`.

        Takes O(n log n) time for n bytes.

        >>> import ggtok
        >>> tok = ggtok.Tokenizer.builtin("bpe")
        >>> [tok.piece(id) for id in tok.sample("What is LoRA?", dropout=0.3, seed=1)]
        [b'What', b' is', b' L', b'o', b'R', b'A', b'?']
        >>> tok = ggtok.Tokenizer.builtin("unigram")
        >>> [tok.piece(id) for id in tok.sample("unlucky", alpha=0.2, seed=3, add_special=False)]
        [b' ', b'u', b'n', b'l', b'uck', b'y']
        """
        if (alpha is None) == (dropout is None):
            raise GgtokError("sample takes either alpha, for Unigram, or dropout, for byte-pair encoding and SPM")
        alpha = None if alpha is None else real(alpha, "alpha")
        dropout = None if dropout is None else real(dropout, "dropout")
        return sample(self, text, (alpha, dropout, seed_of(seed)), add_special, parse_special, continues)

    def n_best(
        self, text: Text, n: int, *, add_special: bool = True, parse_special: bool = False, continues: bool = False
    ) -> list[tuple[list[int], float]]:
        """The best ways to cut a text into tokens of a Unigram vocabulary.

        Args:
            text: A text as `encode` takes it.
            n: The most ways to return, at least 1.
            add_special: As in `encode`.
            parse_special: As in `encode`.
            continues: As in `encode`.

        Returns:
            Pairs of the ids and the sum of their scores, best first. The first ids are those of `encode`. There are
            fewer if the text cannot be cut in as many ways.

        Raises:
            GgtokError: `n` is less than 1, the vocabulary is of another kind, or the ways have more than 16,777,216
                tokens together; or as `encode`.
            TypeError, VocabularyError: As `encode`.

        Takes O(m n log n) time for m matches of tokens in the text.

        >>> import ggtok
        >>> tok = ggtok.Tokenizer.builtin("unigram")
        >>> for ids, score in tok.n_best("unlucky", 2, add_special=False):
        ...     print([tok.piece(id) for id in ids], round(score, 2))
        [b' un', b'l', b'uck', b'y'] -30.75
        [b' un', b'lu', b'c', b'ky'] -31.81
        """
        return n_best(self, text, at_least(1, n, "n"), add_special, parse_special, continues)

    def encode_batch(
        self,
        texts: Texts,
        *,
        threads: int | None = None,
        max_tokens: int | None = None,
        side: Side = "right",
        add_special: bool = True,
        parse_special: bool = False,
        continues: bool = False,
    ) -> Batch:
        """Encodes several texts on several threads.

        Args:
            texts: An iterable of texts as `encode` takes them, which is read to its end first: a list, a generator, a
                numpy array of strings. Or a column of strings or binary from a library with the Arrow PyCapsule
                interface (pyarrow, polars, pandas, DuckDB, ...), dictionary-encoded or not, whose texts are read in
                place. A null in it has no tokens, not even BOS: its row is empty, and stays null in Arrow.
            threads: The number of threads, at least 1. Default: the number of cores that this process may use.
            max_tokens: The most tokens of a row, BOS, EOS and SEP included if they are added. A longer text is cut as
                `truncate` cuts it, and the row has the ids of what is left: `encode(truncate(text, max_tokens))`. So
                BOS, EOS and SEP stay, and the ids are what a model gets for that shorter text.
            side: Where longer texts are cut, as in `truncate`.
            add_special: As in `encode`.
            parse_special: As in `encode`.
            continues: As in `encode`, for every text.

        Returns:
            The ids of each text, in the order of the texts, in one block of memory.

        Raises:
            TypeError: `texts` is a single text or not iterable, or a column of something other than texts; or a text
                has the wrong type: "text 3: ...".
            GgtokError: `threads` is less than 1, or `max_tokens` and `side` are not as `truncate` takes them; or as
                `encode`, with the number of the first text that fails; or an Arrow column is damaged.

        Exceptions of the iterable pass through.

        >>> import ggtok
        >>> batch = ggtok.Tokenizer.builtin("bpe").encode_batch(["one text", "and another"], threads=2)
        >>> batch.tolist()
        [[6053, 7301], [6019, 7237]]
        >>> ggtok.Tokenizer.builtin("wordpiece").encode_batch(["a text", "What is LoRA?"], max_tokens=4).tolist()
        [[2, 43, 5419, 3], [2, 4933, 4651, 3]]
        """
        size = None if max_tokens is None else at_least(1, max_tokens, "max_tokens")
        special = add_special, parse_special, continues
        return Batch(encode_batch(self, texts, num_threads(threads), size, side, *special, None), self.vocab.pad_id)

    def count_batch(
        self,
        texts: Texts,
        *,
        threads: int | None = None,
        add_special: bool = True,
        parse_special: bool = False,
        continues: bool = False,
    ) -> list[int]:
        """Counts the tokens of several texts on several threads, without keeping the ids.

        Takes the arguments of `encode_batch` and raises what it does.

        Returns:
            The number of tokens of each text, in the order of the texts; 0 for a null in an Arrow column.

        >>> import ggtok
        >>> ggtok.Tokenizer.builtin("bpe").count_batch(["one text", "What is LoRA?"])
        [2, 6]
        """
        return count_batch(self, texts, num_threads(threads), add_special, parse_special, continues)

    def decode_batch(
        self,
        batch: Batch | Iterable[Iterable[SupportsIndex]],
        *,
        threads: int | None = None,
        remove_special: bool = False,
        unparse_special: bool = False,
        clean_spaces: bool = False,
        errors: str = "replace",
    ) -> list[str]:
        """Decodes several rows of token ids to texts, on several threads.

        Args:
            batch: A `Batch`, or an iterable of rows as `decode` takes them: lists, arrays, a two-dimensional array.
            threads: As in `encode_batch`. One thread makes the Python strings.
            remove_special: As in `decode`.
            unparse_special: As in `decode`.
            clean_spaces: As in `decode`.
            errors: As in `decode`.

        Returns:
            One text per row.

        Raises:
            TypeError, TokenIndexError, UnicodeDecodeError, LookupError: As `decode`, with the number of the first row
                that fails.
            GgtokError: `threads` is less than 1.

        Exceptions of the iterables pass through.

        >>> import ggtok
        >>> tok = ggtok.Tokenizer.builtin("bpe")
        >>> tok.decode_batch([[6053, 7301], [6019, 7237]])
        ['one text', 'and another']
        >>> tok.decode_batch(tok.encode_batch(["one text", "and another"])[:1])
        ['one text']
        """
        rows = batch._rows if isinstance(batch, Batch) else batch
        count = num_threads(threads)
        return decode_batch(self, rows, count, remove_special, unparse_special, clean_spaces, errors)

    def split(
        self,
        text: AnyStr,
        max_tokens: int,
        *,
        overlap: int = 0,
        boundaries: Iterable[Boundary | re.Pattern[Any]] = ("paragraph", "line", "sentence", "word"),
        prefix: AnyStr | None = None,
        strip: bool = False,
        add_special: bool = True,
        parse_special: bool = False,
    ) -> list[Chunk[AnyStr]]:
        r"""Cuts a text into chunks that fit a budget of tokens.

        Each chunk is a slice of the text, and has at most `max_tokens` tokens when it is encoded by itself. Together
        they cover the text. A chunk ends at the coarsest boundary that fills at least half of its budget.

        Args:
            text: The text: a `str`, or bytes, whose chunks are bytes and count bytes. An empty one has no chunks.
            max_tokens: The most tokens of a chunk, BOS, EOS and SEP included if `add_special` adds them.
            overlap: How many tokens a chunk may repeat from the end of the one before it, without added ones.
            boundaries: Where to cut: names in any order, and compiled patterns. Patterns are tried first, in the order
                given, and then the names, coarser ones first: "markdown" (before a heading), "python" (before a
                top-level block, and between lines), "paragraph" (after a blank line), "line", "sentence", "word" and
                "character". With a pattern, a chunk ends after a match; `(?=...)` cuts before something. With
                "markdown", no chunk ends inside a fenced block that fits the budget; with "python", none inside
                brackets, a string or a continued line that fits, or between a decorator and its `def` or `class`.
                Sentences, words and characters are those of Unicode's Annex 29: a family of emoji is one character.
                Where nothing else fits, a chunk ends between two characters. Inside one it ends only if that character
                alone is over the budget, and then between two code points.
            prefix: What you put before each chunk, such as "passage: ": it is counted with each of them, and is not in
                their texts. `encode(prefix + chunk.text)` has `chunk.count` tokens.
            strip: Whether chunks lose the white space at their ends. Those that have nothing else are left out, so the
                chunks do not cover the text.
            add_special: As in `encode`; the tokens that it adds are counted.
            parse_special: As in `encode`. No chunk ends inside a special token that is written in the text.

        Raises:
            TypeError: An argument has the wrong type, or a prefix or pattern is not of the type of the text.
            GgtokError: `max_tokens` is 0 or leaves no room for text beside the prefix, `overlap` is not less than that
                room, one code point alone is over the budget, or a boundary has another name.

        Takes O(n) time for n bytes; each is encoded about three times.

        >>> import ggtok
        >>> tok = ggtok.Tokenizer.builtin("bpe")
        >>> [chunk.text for chunk in tok.split("Title\n\nOne sentence. And another, longer one.", 9)]
        ['Title\n\nOne sentence. ', 'And another, longer one.']
        >>> text = "# One\n\nSome text.\n\n# Two\n\nMore of it.\n"
        >>> [chunk.text for chunk in tok.split(text, 12, boundaries=["markdown"])]
        ['# One\n\nSome text.\n\n', '# Two\n\nMore of it.\n']
        """
        sizes = at_least(1, max_tokens, "max_tokens"), at_least(0, overlap, "overlap")
        kinds = list(dict.fromkeys(items_of("boundaries", boundaries, "names and patterns")))
        if prefix is not None and isinstance(prefix, str) != isinstance(text, str):
            raise ArgumentTypeError(f"prefix must be {type(text).__name__} as the text is, not {type(prefix).__name__}")

        def cut(text: AnyStr, overlap: int = 0) -> list[Chunk[AnyStr]]:
            spans = split(self, text, sizes[0], overlap, kinds, prefix or "", add_special, parse_special)
            whole: Any = text if isinstance(text, str) else bytes(text)
            return [Chunk(whole[start:end], start, end, count) for start, end, count in spans]

        def count(text: AnyStr) -> int:
            text = text if prefix is None else prefix + text
            return self.count(text, add_special=add_special, parse_special=parse_special)

        chunks = cut(text, sizes[1])
        return list(stripped(chunks, sizes[0], count, cut)) if strip else chunks

    def split_batch(
        self,
        texts: Iterable[AnyStr],
        max_tokens: int,
        *,
        overlap: int = 0,
        boundaries: Iterable[Boundary | re.Pattern[Any]] = ("paragraph", "line", "sentence", "word"),
        prefix: AnyStr | None = None,
        strip: bool = False,
        threads: int | None = None,
        add_special: bool = True,
        parse_special: bool = False,
    ) -> list[list[Chunk[AnyStr]]]:
        """Cuts several texts into chunks on several threads.

        Args:
            texts: An iterable of texts, which is read to its end first.
            max_tokens: As in `split`, as are all arguments that are not listed here.
            threads: As in `encode_batch`.

        Returns:
            The chunks of each text, in the order of the texts.

        Raises:
            TypeError, GgtokError: As `split`, with the number of the first text that fails: "text 3: ...".

        Exceptions of the iterable pass through.

        >>> import ggtok
        >>> rows = ggtok.Tokenizer.builtin("bpe").split_batch(["One. Two.", "Three."], 3)
        >>> [[chunk.text for chunk in chunks] for chunks in rows]
        [['One. ', 'Two.'], ['Three.']]
        """
        texts, kinds = [*items_of("texts", texts, "texts")], [*items_of("boundaries", boundaries, "names and patterns")]
        settings: Any = {"overlap": overlap, "boundaries": kinds, "prefix": prefix, "strip": strip}
        special: Any = {"add_special": add_special, "parse_special": parse_special}
        split = partial(self.split, max_tokens=max_tokens, **settings, **special)
        return split_all(texts, split, num_threads(threads))

    def truncate(
        self,
        text: AnyStr,
        max_tokens: int,
        *,
        side: Side = "right",
        add_special: bool = True,
        parse_special: bool = False,
    ) -> AnyStr:
        """Returns the longest part of a text that fits a budget of tokens, cut between two code points.

        Args:
            text: The text: a `str` or bytes.
            max_tokens: The most tokens of the result when it is encoded by itself, BOS, EOS and SEP included where
                `add_special` adds them.
            side: Where the text is cut. "right" keeps its start, "left" its end. "middle" keeps a start that takes half
                of the budget, and as much of the end as still fits.
            add_special: As in `encode`; the tokens that it adds are counted.
            parse_special: As in `encode`.

        Raises:
            TypeError: An argument has the wrong type.
            GgtokError: `max_tokens` is 0 or less than the number of added tokens, or `side` has another value.

        >>> import ggtok
        >>> tok = ggtok.Tokenizer.builtin("bpe")
        >>> [tok.truncate("What is LoRA?", 3, side=side) for side in ("right", "left", "middle")]
        ['What is L', 'oRA?', 'What is?']
        """
        size = at_least(1, max_tokens, "max_tokens")
        start, end = truncate(self, text, size, side, add_special, parse_special)
        whole: Any = text if isinstance(text, str) else bytes(text)
        return whole[:start] + whole[end:]  # type: ignore[no-any-return]

    def count_file(
        self, file: str | os.PathLike[str] | SupportsRead, *, add_special: bool = True, parse_special: bool = False
    ) -> int:
        """Counts the tokens of a file of any length in bounded memory.

        Args:
            file: A path, or a readable file, which is read from its current position to its end. A text file is read
                as it decodes its bytes, a binary file or a path as bytes.
            add_special: As in `encode`.
            parse_special: As in `encode`.

        Returns:
            The length of what `encode` would return for the whole content.

        Raises:
            TypeError: `file` has the wrong type.
            OSError: The file cannot be read.
            VocabularyError: As in `encode`.
            GgtokError: A stretch of 2 GiB has no position where the text can be cut, such as the end of a word.

        >>> import ggtok, io
        >>> ggtok.Tokenizer.builtin("bpe").count_file(io.BytesIO(b"What is LoRA?"))
        6
        """
        if not hasattr(file, "read"):
            # Not a number: that would be a file descriptor, which is closed afterwards.
            with open(file_name(file), "rb") as opened:
                return self.count_file(opened, add_special=add_special, parse_special=parse_special)
        encoder = self.encoder(add_special=add_special, parse_special=parse_special)
        count = 0
        while part := file.read(READ_SIZE):
            count += encoder.push_count(part)
        return count + encoder.flush_count()

    def __eq__(self, other: object) -> bool:
        return self.vocab == other.vocab if isinstance(other, BaseTokenizer) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.vocab)

    def __reduce__(self) -> tuple[object, ...]:
        return opened, (type(self), self._metadata.data, self._metadata.overrides, None, self._findings)

    def __repr__(self) -> str:
        name = self.metadata.get("general.name")
        pre = f", pre={self.vocab.pre!r}" if self.vocab.pre is not None else ""
        named = f" {name!r}" if isinstance(name, str) and name else ""
        return f"<ggtok.Tokenizer{named} kind={self.vocab.kind!r}{pre}, {len(self.vocab)} tokens>"


def opened(
    cls: type[TokenizerT],
    source: Source,
    overrides: Mapping[str, Scalar] | None = None,
    made_from: object = None,
    findings: tuple[Finding, ...] = (),
) -> TokenizerT:
    """As `cls.from_gguf`, without warnings.

    `made_from` is the file that the source was made from, if it was, and `findings` what else is known about the file.
    """
    metadata = None
    try:
        metadata = read_metadata(source, overrides)
        self = Core.__new__(cls, metadata)
    except GgtokError as error:
        if metadata is not None and isinstance(error, GGUFError) and error.key == MODEL:
            error = not_model(scalars(metadata), name_of(source)) or error
        error.path = name_of(source)
        raise error from None
    path = name_of(source if made_from is None else made_from)
    path = None if path is None else os.path.abspath(path)
    values = {"_findings": findings, "_metadata": metadata, "_source": path, "vocab": Vocab(self, metadata)}
    for name, value in values.items():
        object.__setattr__(self, name, value)
    return self
