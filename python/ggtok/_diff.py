"""How two tokenizers differ: settings, special tokens, tokens, merges; and the first difference of ids for a text."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import zip_longest
from typing import Any, NamedTuple

from . import _ggtok
from ._base import Text
from ._tokenizer import Tokenizer
from ._vocab import Token, TokenAttribute, attributes
from .errors import GgtokError

NUM_SHOWN = 5
"""Entries of a list that the printed form shows."""


class Moved(NamedTuple):
    """A token that both tokenizers have, with different ids."""

    text: str
    a: int
    b: int


class Changed(NamedTuple):
    """A token that both tokenizers have, with different scores or attributes."""

    text: str
    a: float | TokenAttribute
    b: float | TokenAttribute


class MovedMerge(NamedTuple):
    """A merge rule that both tokenizers have, with different ranks among those that both have."""

    merge: str
    a: int
    b: int


class Difference(NamedTuple):
    """The first place where the ids of a text differ."""

    index: int  # type: ignore[assignment]
    """How many ids are equal before it."""
    a: int | None
    """The first tokenizer's id there; `None` if its ids end before it."""
    b: int | None
    """The second tokenizer's."""
    byte: int
    """Where the earlier of the two tokens starts in the text, in bytes of its UTF-8."""
    char: int
    """The same in characters; each byte that is not UTF-8 is one."""
    piece_a: bytes | None
    """The bytes of the first tokenizer's token."""
    piece_b: bytes | None


class Diff:
    """How two tokenizers differ, as `ggtok.diff` returns it. It is true if they differ in anything.

    `print` shows a summary, `to_dict` returns everything for JSON.
    """

    __slots__ = (
        *("added", "attributes", "charsmap", "merges_added", "merges_moved", "merges_removed", "moved"),
        *("first_difference", "merges_differ", "removed", "scores", "settings", "special"),
    )

    settings: Mapping[str, tuple[object, object]]
    """Kind, model, pre-tokenizer, number of tokens (`size`), and flags: the values that differ."""
    special: Mapping[str, tuple[object, object]]
    """Ids of special tokens that differ (`bos_id`, ...), and `eog_ids`."""
    added: list[Token]
    """Tokens that only the second tokenizer has."""
    removed: list[Token]
    """Tokens that only the first tokenizer has."""
    moved: list[Moved]
    scores: list[Changed]
    attributes: list[Changed]
    merges_added: list[str]
    """Merge rules, as in the file, that only the second tokenizer has."""
    merges_removed: list[str]
    merges_moved: list[MovedMerge]
    merges_differ: bool
    """Whether the lists of merges differ at all: also by a rule that is there twice."""
    charsmap: bool
    """Whether the character maps (Unigram) differ."""
    first_difference: Difference | None
    """Where the ids of the text first differ; `None` if they are equal or no text was given."""

    def __bool__(self) -> bool:
        return any(getattr(self, name) for name in self.__slots__)

    def to_dict(self) -> dict[str, Any]:
        """Everything as dicts, lists, strings and numbers. Bytes become text, with U+FFFD for what is not UTF-8."""
        return {name: _plain(getattr(self, name)) for name in sorted(self.__slots__)}

    def __str__(self) -> str:
        if not self:
            return "no difference"
        lines = [f"{name}: {a!r} -> {b!r}" for name, (a, b) in (*self.settings.items(), *self.special.items())]
        for name, tokens in (("removed", self.removed), ("added", self.added)):
            lines += _summary(f"tokens {name}", [f"{token.id} {token.text!r}" for token in tokens])
        lines += _summary("tokens moved", [f"{text!r} {a} -> {b}" for text, a, b in self.moved])
        lines += _summary("scores", [f"{text!r} {a} -> {b}" for text, a, b in self.scores])
        lines += _summary("attributes", [f"{text!r} {_flags(a)} -> {_flags(b)}" for text, a, b in self.attributes])
        lines += _summary("merges removed", [repr(merge) for merge in self.merges_removed])
        lines += _summary("merges added", [repr(merge) for merge in self.merges_added])
        lines += _summary("merges moved", [f"{merge!r} {a} -> {b}" for merge, a, b in self.merges_moved])
        if self.merges_differ and not (self.merges_removed or self.merges_added or self.merges_moved):
            lines.append("merges: a rule is there more than once")
        if self.charsmap:
            lines.append("the character maps differ")
        if self.first_difference:
            index, a, b, byte, char, piece_a, piece_b = self.first_difference
            sides = [f"{id} {piece!r}" if id is not None else "the end" for id, piece in ((a, piece_a), (b, piece_b))]
            lines.append(f"the ids first differ at index {index}, character {char} (byte {byte}): {' -> '.join(sides)}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        from ._notebook import outline

        return outline(str(self))

    def __repr__(self) -> str:
        names = [name for name in self.__slots__ if getattr(self, name)]
        return f"<ggtok.Diff in {', '.join(names)}>" if names else "<ggtok.Diff in nothing>"


def diff(
    a: Tokenizer, b: Tokenizer, text: Text | None = None, *, add_special: bool = True, parse_special: bool = False
) -> Diff:
    r"""Compares two tokenizers; with a text, also finds where their ids for it begin to differ.

    Tokens are the same if their texts are. Without a text, the result is false exactly if `a == b`.

    Args:
        a: A tokenizer.
        b: Another one.
        text: A text as `Tokenizer.encode` takes it.
        add_special: As in `encode`, for the text.
        parse_special: As in `encode`, for the text.

    Raises:
        TypeError: An argument has the wrong type.
        VocabularyError, GgtokError: As `encode`: one of the tokenizers cannot encode the text; it is named.

    Takes up to a second for large vocabularies.

    >>> import ggtok, os
    >>> path = os.path.join(os.path.dirname(ggtok.__file__), "vocabularies", "bpe.gguf")
    >>> tok = ggtok.Tokenizer.from_gguf(path)
    >>> other = ggtok.Tokenizer.from_gguf(path, overrides={"tokenizer.ggml.pre": "gpt-2"})
    >>> print(ggtok.diff(tok, other, "The end.\n\n"))
    pre: 'qwen2' -> 'gpt-2'
    clean_spaces: False -> True
    the ids first differ at index 2, character 7 (byte 7): 6165 b'.\n\n' -> 13 b'.'
    """
    for tokenizer in (a, b):
        if not isinstance(tokenizer, Tokenizer):
            raise TypeError(f"diff compares two tokenizers, not {type(tokenizer).__name__}")
    found = Diff()
    found.settings, found.special = _settings(a, b), _special(a, b)
    _tokens(found, a, b)
    _merges(found, a, b)
    found.charsmap = _ggtok.charsmap(a) != _ggtok.charsmap(b)
    found.first_difference = None if text is None else _first_difference(a, b, text, add_special, parse_special)
    return found


def _settings(a: Tokenizer, b: Tokenizer) -> dict[str, tuple[object, object]]:
    sides = [
        {name: getattr(side.vocab, name) for name in ("kind", "model", "pre")}
        | {"size": len(side.vocab)}
        | dict(side.vocab.settings)
        for side in (a, b)
    ]
    return {name: (value, sides[1][name]) for name, value in sides[0].items() if value != sides[1][name]}


def _special(a: Tokenizer, b: Tokenizer) -> dict[str, tuple[object, object]]:
    sides = [
        {f"{name}_id": id for name, id in _ggtok.special_ids(t).items()} | {"eog_ids": _ggtok.eog_ids(t)}
        for t in (a, b)
    ]
    return {name: (value, sides[1][name]) for name, value in sides[0].items() if value != sides[1][name]}


def _tokens(found: Diff, a: Tokenizer, b: Tokenizer) -> None:
    ids = [{text: id for id, text in enumerate(_ggtok.texts(side))} for side in (a, b)]
    found.removed = [a.vocab[id] for text, id in ids[0].items() if text not in ids[1]]
    found.added = [b.vocab[id] for text, id in ids[1].items() if text not in ids[0]]
    both = [(text, id, ids[1][text]) for text, id in ids[0].items() if text in ids[1]]
    found.moved = [Moved(_text(text), first, second) for text, first, second in both if first != second]

    scores = (memoryview(_ggtok.scores(side)).cast("I").tolist() for side in (a, b))  # as bits: a NaN equals itself
    found.scores, found.attributes = (
        [
            Changed(_text(text), getattr(a.vocab[first], name), getattr(b.vocab[second], name))
            for text, first, second in both
            if of_a[first] != of_b[second]
        ]
        for name, (of_a, of_b) in (("score", scores), ("attributes", (attributes(side.vocab) for side in (a, b))))
    )


def _merges(found: Diff, a: Tokenizer, b: Tokenizer) -> None:
    rules = [_ggtok.merges(side) for side in (a, b)]
    found.merges_differ = rules[0] != rules[1]
    found.merges_added, found.merges_removed, found.merges_moved = [], [], []
    if rules[0] == rules[1]:
        return
    ranks = [{rule: rank for rank, rule in reversed([*enumerate(side)])} for side in rules]
    found.merges_removed = [_text(rule) for rule in dict.fromkeys(rules[0]) if rule not in ranks[1]]
    found.merges_added = [_text(rule) for rule in dict.fromkeys(rules[1]) if rule not in ranks[0]]
    # One more or fewer rule moves all rules after it; only another order among the common ones is worth reporting.
    common = [[rule for rule in dict.fromkeys(side) if rule in ranks[0] and rule in ranks[1]] for side in rules]
    places = {rule: place for place, rule in enumerate(common[1])}
    found.merges_moved = [
        MovedMerge(_text(rule), ranks[0][rule], ranks[1][rule])
        for place, rule in enumerate(common[0])
        if places[rule] != place
    ]


def _first_difference(
    a: Tokenizer, b: Tokenizer, text: Text, add_special: bool, parse_special: bool
) -> Difference | None:
    encodings = []
    for name, side in (("first", a), ("second", b)):
        try:
            encoding = side.encode_with_offsets(text, unit="byte", add_special=add_special, parse_special=parse_special)
        except GgtokError as error:
            error.args = (f"the {name} tokenizer: {error}",)
            raise
        encodings.append(encoding.tolist())
    pairs = zip_longest(*(ids for ids, _ in encodings))
    index = next((index for index, (id, other) in enumerate(pairs) if id != other), None)
    if index is None:
        return None
    tokens = [(ids[index], spans[index]) if index < len(ids) else None for ids, spans in encodings]
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else bytes(memoryview(text))
    byte = min(token[1][0] for token in tokens if token is not None)
    at = byte
    while isinstance(text, str) and at < len(data) and data[at] & 0xC0 == 0x80:
        at -= 1  # a token can start inside a character
    char = len(data[:at].decode("utf-8", "surrogatepass" if isinstance(text, str) else "surrogateescape"))
    ids = [None if token is None else token[0] for token in tokens]
    pieces = [None if id is None or id < 0 else side.piece(id) for side, id in zip((a, b), ids, strict=True)]
    return Difference(index, ids[0], ids[1], byte, char, pieces[0], pieces[1])


def _text(text: bytes) -> str:
    return text.decode("utf-8", "surrogateescape")


def _flags(value: float | TokenAttribute) -> str:
    return getattr(value, "name", None) or str(int(value))


def _summary(name: str, entries: list[str]) -> list[str]:
    if not entries:
        return []
    more = [f"    and {len(entries) - NUM_SHOWN} more"] if len(entries) > NUM_SHOWN else []
    return [f"{name}: {len(entries)}", *(f"    {entry}" for entry in entries[:NUM_SHOWN]), *more]


def _plain(value: Any) -> Any:
    if isinstance(value, TokenAttribute):
        return int(value)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if hasattr(value, "_asdict"):
        return {name: _plain(item) for name, item in value._asdict().items()}
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value
