"""A tokenizer's vocabulary as a sequence of tokens."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import IntFlag
from types import MappingProxyType
from typing import NamedTuple, overload

from ._ggtok import Tokenizer
from .errors import TokenIndexError


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
    """A log probability (Unigram) or merge priority (SPM); 0 where the file has no scores."""
    attributes: TokenAttribute
    """Bits: control token, user-defined, byte, ..."""


class Vocab(Sequence[Token]):
    """The tokens by id, with special ids and flags, as llama.cpp has them after loading. Immutable.

    `vocab[id]` is a `Token`; a slice is a list of them. A special id is `None` where the vocabulary has no such token.

    >>> import ggtok
    >>> vocab = ggtok.Tokenizer.builtin("bpe").vocab
    >>> len(vocab), vocab.kind, vocab.pre, vocab.eos_id, vocab.mask_id
    (13000, 'bpe', 'qwen2', 12991, None)
    >>> vocab[5981].text, vocab.id("\u0120is"), "nonesuch" in vocab
    ('\u0120is', 5981, False)
    """

    _core: Tokenizer
    __slots__ = (
        *("_core", "add_bos", "add_eos", "add_sep", "eog_ids", "kind", "model", "pre", "settings"),
        *("bos_id", "eom_id", "eos_id", "eot_id", "mask_id", "nl_id", "pad_id", "sep_id", "unk_id"),
        *("fim_mid_id", "fim_pad_id", "fim_pre_id", "fim_rep_id", "fim_sep_id", "fim_suf_id"),
    )

    kind: str
    """The algorithm: `spm`, `bpe`, `wpm`, `ugm`, `rwkv`, `plamo2`, `test` or `none`."""
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

    def __init__(self, core: Tokenizer) -> None:
        kind, model, pre = core._kind()
        settings = core._settings()
        values = {"_core": core, "kind": kind, "model": model, "pre": pre, "eog_ids": frozenset(core._eog())}
        values |= {f"{name}_id": id for name, id in core._special().items()}
        values |= {name: settings[name] for name in ("add_bos", "add_eos", "add_sep")}
        for name, value in (values | {"settings": MappingProxyType(settings)}).items():
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("a vocabulary is immutable")

    __delattr__ = __setattr__  # type: ignore[assignment]

    def __len__(self) -> int:
        return self._core._size()

    @overload
    def __getitem__(self, index: int) -> Token: ...
    @overload
    def __getitem__(self, index: slice) -> list[Token]: ...
    def __getitem__(self, index: int | slice) -> Token | list[Token]:
        """The token of an id, or the tokens of a slice. A negative id does not count from the end.

        Raises `TokenIndexError`, an `IndexError`, for an id that is not in the vocabulary.
        """
        if isinstance(index, slice):
            return [self[id] for id in range(*index.indices(len(self)))]
        text, score, bits = self._core._token(index)
        return Token(int(index), text.decode("utf-8", "surrogateescape"), score, TokenAttribute(bits))

    def __iter__(self) -> Iterator[Token]:
        return (self[id] for id in range(len(self)))

    def __contains__(self, item: object) -> bool:
        if isinstance(item, (str, bytes)):
            return self.id(item) is not None
        if isinstance(item, Token):
            return isinstance(item.id, int) and 0 <= item.id < len(self) and self[item.id] == item
        return False

    def id(self, text: str | bytes) -> int | None:
        """The id of a token text, or `None` where no token has it. Takes `bytes`, and `str` as in `Token.text`.

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
            raise TypeError(f"the text of a token must be str or bytes, not {type(text).__name__}")
        return self._core._token_id(text)

    def index(self, value: object, start: int = 0, stop: int | None = None) -> int:
        """The id of a token or of its text.

        Raises `TokenIndexError` where no token from `start` to `stop` is `value`.

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
