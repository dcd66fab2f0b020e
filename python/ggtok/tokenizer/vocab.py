"""A tokenizer's vocabulary as a sequence of tokens."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import IntFlag
from functools import cached_property
from itertools import count
from types import MappingProxyType
from typing import ClassVar, NamedTuple, overload

from .._ggtok import (
    Metadata,
    Tokenizer,
    canonical_bytes,
    core_of,
    eog_ids,
    id_of_piece,
    id_of_text,
    ids_with_prefix,
    kind,
    list_size,
    merges,
    pieces,
    settings,
    special_ids,
    texts,
    token,
    vocab_size,
)
from .._ggtok import attributes as attributes_of
from .._ggtok import scores as scores_of
from ..errors import ArgumentTypeError, GgtokError, TokenIndexError
from .metadata import read_metadata

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from typing import Any, Literal, Self


KINDS_OF_LLAMA_CPP: Mapping[str, Literal["unigram", "wordpiece"]] = {"ugm": "unigram", "wpm": "wordpiece"}
"""Kinds that llama.cpp has other names for."""


_OF_SPM = ("add_bos", "add_eos", "add_space_prefix", "clean_spaces")
FLAGS_READ = {
    "spm": _OF_SPM,
    "bpe": ("add_bos", "add_eos", "clean_spaces", "ignore_merges", "escape_whitespaces"),
    "wordpiece": ("clean_spaces", "lowercase", "strip_accents"),
    "unigram": (*_OF_SPM, "remove_extra_whitespaces", "escape_whitespaces"),
    "plamo2": ("add_bos", "add_eos"),
}
"""The flags that make a difference, by kind. WordPiece adds BOS and SEP whatever the file says."""


class TokenAttribute(IntFlag):
    """A token's attributes: llama.cpp's `llama_token_attr`, bit for bit.

    >>> import ggtok
    >>> ggtok.TokenAttribute.CONTROL in ggtok.Tokenizer.builtin("bpe").vocab[12993].attributes
    True
    """

    UNKNOWN = 1
    UNUSED = 2
    NORMAL = 4
    CONTROL = 8
    USER_DEFINED = 16
    BYTE = 32
    NORMALIZED = 64
    LSTRIP = 128
    RSTRIP = 256
    SINGLE_WORD = 512


class Token(NamedTuple):
    """One entry of a vocabulary.

    >>> import ggtok
    >>> ggtok.Tokenizer.builtin("spm").vocab[1]
    Token(id=1, text='<s>', score=0.0, attributes=<TokenAttribute.CONTROL: 8>)
    """

    id: int
    """Its position in the vocabulary."""
    text: str
    """As in the file. A byte that is not UTF-8 is a surrogate (`surrogateescape`)."""
    score: float
    """A log probability (Unigram) or merge priority (SPM); 0 if the file has no scores."""
    attributes: TokenAttribute
    """Bits: control token, user-defined, byte, ..."""


class Immutable:
    """An object whose attributes are set once, past its own `__setattr__`, and that is its own copy."""

    __slots__ = ()

    _what: ClassVar[str]
    """What it is, for an error."""

    def __setattr__(self, name: str, value: object = None) -> None:
        raise AttributeError(f"a {self._what} is immutable")

    __delattr__ = __setattr__

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self


class Vocab(Immutable, Sequence[Token]):
    """The tokens by id, with special ids and flags, as llama.cpp has them after loading. Immutable.

    `vocab[id]` is a `Token`; a slice is a list of them. A special id is `None` if the vocabulary has no such token.

    >>> import ggtok
    >>> vocab = ggtok.Tokenizer.builtin("bpe").vocab
    >>> len(vocab), vocab.kind, vocab.pre, vocab.eos_id, vocab.mask_id
    (13000, 'bpe', 'qwen2', 12991, None)
    >>> vocab[5981].text, vocab.id("\u0120is"), "nonesuch" in vocab
    ('\u0120is', 5981, False)
    """

    _what = "vocabulary"
    _core: Tokenizer
    """The tokenizer, as an object that does not refer to this one: a circle would only be freed by the collector."""
    _metadata: Metadata

    kind: Literal["spm", "bpe", "wordpiece", "unigram", "rwkv", "plamo2", "test", "none"]
    """The algorithm."""
    model: str
    """The algorithm's name in the file, `tokenizer.ggml.model`."""
    pre: str | None
    """The pre-tokenizer of a byte-pair vocabulary."""
    settings: Mapping[str, bool]
    """All flags of encoding and decoding, by llama.cpp's names."""
    add_bos: bool
    """Whether `encode` adds BOS before a text."""
    add_eos: bool
    """Whether `encode` adds EOS after a text."""
    add_sep: bool
    """As the file has it. llama.cpp does not use it: WordPiece always adds SEP, the others never do."""
    clean_spaces: bool
    """Whether `llama_detokenize`, or `decode` with `clean_spaces=True`, removes spaces before English punctuation."""
    eog_ids: frozenset[int]
    """The tokens that end generation."""
    bos_id: int | None
    eos_id: int | None
    eot_id: int | None
    eom_id: int | None
    unk_id: int | None
    sep_id: int | None
    nl_id: int | None
    pad_id: int | None
    mask_id: int | None
    fim_pre_id: int | None
    fim_suf_id: int | None
    fim_mid_id: int | None
    fim_pad_id: int | None
    fim_rep_id: int | None
    fim_sep_id: int | None

    def __init__(self, tokenizer: Tokenizer, metadata: Metadata) -> None:
        core, values = core_of(tokenizer), self.__dict__
        flags = settings(core)
        values |= {"_core": core, "_metadata": metadata, "eog_ids": frozenset(eog_ids(core))}
        values |= zip(("kind", "model", "pre"), kind(core), strict=True)
        values |= {f"{name}_id": id for name, id in special_ids(core).items()}
        values |= {name: flags[name] for name in ("add_bos", "add_eos", "add_sep", "clean_spaces")}
        values["settings"] = MappingProxyType(flags)

    def __reduce__(self) -> tuple[object, ...]:
        return _unpickled, (self._metadata.data, self._metadata.overrides)

    @cached_property
    def _identity(self) -> bytes:
        """A digest of everything that the tokenizer is made of: vocabulary, settings and merges."""
        import struct
        from hashlib import blake2b

        digest = blake2b(canonical_bytes(self._core), digest_size=16)
        rules = merges(self._core)
        digest.update(struct.pack(f"<{len(rules)}Q", *map(len, rules)))
        digest.update(b"".join(rules))
        return digest.digest()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Vocab):
            return NotImplemented
        return self is other or self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self._identity)

    def __len__(self) -> int:
        return vocab_size(self._core)

    @overload
    def __getitem__(self, index: int) -> Token: ...
    @overload
    def __getitem__(self, index: slice) -> list[Token]: ...
    def __getitem__(self, index: int | slice) -> Token | list[Token]:
        """The token of an id, or the tokens of a slice. A negative id does not count from the end.

        Raises `TokenIndexError`, an `IndexError`, for an id that is not in the vocabulary.
        """
        if isinstance(index, slice):
            ids = range(*index.indices(len(self)))
            if len(ids) > 1 << 20:
                list_size(self._core)  # an error if the file has no texts for them
            return [self[id] for id in ids]
        text, score, bits = token(self._core, index)
        return Token(int(index), text.decode("utf-8", "surrogateescape"), score, TokenAttribute(bits))

    def __iter__(self) -> Iterator[Token]:
        bits = attributes(self)
        attribute = {some: TokenAttribute(some) for some in {*bits}}.__getitem__
        decoded = (text.decode("utf-8", "surrogateescape") for text in texts(self._core))
        return map(Token, count(), decoded, scores(self), map(attribute, bits))

    def __contains__(self, item: object) -> bool:
        if isinstance(item, (str, bytes)):
            return self.id(item) is not None
        if isinstance(item, Token):
            return isinstance(item.id, int) and 0 <= item.id < len(self) and self[item.id] == item
        return False

    def id(self, text: str | bytes) -> int | None:
        """The id of the token with this text, or `None` if there is none. Takes `bytes`, or `str` as in `Token.text`.

        >>> import ggtok
        >>> vocab = ggtok.Tokenizer.builtin("bpe").vocab
        >>> vocab.id("<|im_end|>"), vocab.id(b"<|im_end|>"), vocab.id("nonesuch")
        (12993, 12993, None)
        """
        if isinstance(text, str):
            try:
                text = text.encode("utf-8", "surrogateescape")
            except UnicodeEncodeError:  # the text of no token has other surrogates
                return None
        if not isinstance(text, bytes):
            raise ArgumentTypeError(f"the text of a token must be str or bytes, not {type(text).__name__}")
        return id_of_text(self._core, text)

    @property
    def pieces(self) -> list[bytes]:
        r"""The bytes of every token, by id: what `Tokenizer.piece(id)` returns. A new list each time.

        >>> import ggtok
        >>> pieces = ggtok.Tokenizer.builtin("bpe").vocab.pieces
        >>> len(pieces), pieces[5981], pieces[12993]
        (13000, b' is', b'<|im_end|>')
        """
        return pieces(self._core)

    @property
    def merges(self) -> list[tuple[str, str]]:
        """The merge rules of a byte-pair vocabulary, lowest rank first: two token texts each, as in `Token.text`.

        Empty for other kinds, which have none. A rule without a space in the file, which never applies, has an empty
        right side. A new list each time, in O(number of rules).

        >>> import ggtok
        >>> ggtok.Tokenizer.builtin("bpe").vocab.merges[6000]
        ('ar', 'g')
        """
        rules = [rule.decode("utf-8", "surrogateescape") for rule in merges(self._core)]
        return [(rule[:at], rule[at + 1 :]) if (at := rule.find(" ", 1)) > 0 else (rule, "") for rule in rules]

    def id_of_piece(self, piece: str | bytes) -> int | None:
        r"""The id of the token whose piece is exactly these bytes, or `None` if there is none.

        `id` looks a token up by its text in the file, this by the bytes that it stands for in a text. If several tokens
        have this piece, it is the lowest id. A `str` means its UTF-8.

        The first call sorts the vocabulary, in about 0.1 s at most; later ones take a microsecond.

        >>> import ggtok
        >>> vocab = ggtok.Tokenizer.builtin("bpe").vocab
        >>> vocab.id_of_piece(b" is"), vocab.id_of_piece("<|im_end|>"), vocab.id_of_piece(b"nonesuch")
        (5981, 12993, None)
        """
        return id_of_piece(self._core, _bytes(piece, "a piece"))

    def search(
        self,
        query: str | bytes | re.Pattern[str] | re.Pattern[bytes],
        *,
        match: Literal["contains", "prefix"] = "contains",
    ) -> list[int]:
        r"""The ids of the tokens whose pieces match a query, in ascending order.

        Args:
            query: A text or bytes that the piece must contain; or a compiled pattern that must be found in it. A
                pattern of `str` searches the piece as text, with U+FFFD for what is not UTF-8.
            match: "prefix" for pieces that start with the query: fast enough for a constrained decoder, since it
                searches a sorted list. Not for patterns, which have `^`.

        Raises:
            TypeError: `query` has the wrong type.
            GgtokError: `match` is something else, or "prefix" with a pattern.

        >>> import ggtok, re
        >>> vocab = ggtok.Tokenizer.builtin("bpe").vocab
        >>> pieces = vocab.pieces
        >>> [pieces[id] for id in vocab.search("token")]
        [b' token', b'(token']
        >>> [pieces[id] for id in vocab.search(" tow", match="prefix")]
        [b' toward', b' town']
        >>> [pieces[id] for id in vocab.search(re.compile("^<.*_(end|start)"))]
        [b'<|im_start|>', b'<|im_end|>']
        """
        if match not in ("contains", "prefix"):
            raise GgtokError(f'match must be "contains" or "prefix", not {match!r}')
        if isinstance(query, (str, bytes)):
            part = _bytes(query, "a query")
            if match == "prefix":
                return sorted(ids_with_prefix(self._core, part))
            return [id for id, piece in enumerate(self.pieces) if part in piece]
        pattern: Any = query
        if not hasattr(pattern, "search") or not hasattr(pattern, "pattern"):
            raise ArgumentTypeError(f"a query must be str, bytes or a compiled pattern, not {type(query).__name__}")
        if match == "prefix":
            raise GgtokError("match='prefix' is not for patterns: let the pattern begin with ^")
        if isinstance(pattern.pattern, bytes):
            return [id for id, piece in enumerate(self.pieces) if pattern.search(piece)]
        return [id for id, piece in enumerate(self.pieces) if pattern.search(piece.decode("utf-8", "replace"))]

    def index(self, value: object, start: int = 0, stop: int | None = None) -> int:
        """The id of a token or of its text.

        Raises `TokenIndexError` if no token from `start` to `stop` is `value`.

        >>> import ggtok
        >>> vocab = ggtok.Tokenizer.builtin("bpe").vocab
        >>> vocab.index("<|im_end|>"), vocab.index(vocab[5981])
        (12993, 5981)
        """
        id = value.id if isinstance(value, Token) and value in self else None
        if isinstance(value, (str, bytes)):
            id = self.id(value)
        if id is None or id not in range(*slice(start, stop).indices(len(self))):
            raise TokenIndexError(f"{value!r} is not in the vocabulary")
        return id

    def __repr__(self) -> str:
        return f"<ggtok.Vocab of {len(self)} {self.kind} tokens>"


def _unpickled(data: bytes, overrides: dict[str, Any]) -> Vocab:
    metadata = read_metadata(data, overrides)
    return Vocab(Tokenizer(metadata), metadata)


def special_texts(vocab: Vocab) -> dict[str, str]:
    """The texts of special tokens by the names that chat templates and transformers use: `bos_token`, ..."""
    ids = {name: getattr(vocab, f"{name}_id") for name in ("bos", "eos", "unk", "sep", "pad", "mask")}
    return {f"{name}_token": vocab[id].text for name, id in ids.items() if id is not None}


def scores(vocab: Vocab) -> list[float]:
    """The score of every token."""
    return [*memoryview(scores_of(vocab._core)).cast("f")]


def attributes(vocab: Vocab) -> list[int]:
    """The attributes of every token, as plain numbers: those of an enumeration take ten times as long."""
    return attributes_of(vocab._core)


def ids_with(vocab: Vocab, any_of: TokenAttribute) -> list[int]:
    """The tokens with one of some attributes."""
    wanted = int(any_of)
    return [id for id, bits in enumerate(attributes(vocab)) if bits & wanted]


def _bytes(text: object, what: str) -> bytes:
    if isinstance(text, str):
        return text.encode("utf-8", "surrogatepass")
    if not isinstance(text, bytes):
        raise ArgumentTypeError(f"{what} must be str or bytes, not {type(text).__name__}")
    return text
