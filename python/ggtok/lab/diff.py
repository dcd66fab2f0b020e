"""How two tokenizers differ: settings, special tokens, tokens, merges; and for a text, its cuts and its ids."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, dataclass, fields
from itertools import zip_longest
from typing import Any, NamedTuple

from .._ggtok import charsmap, eog_ids, merges, scores, special_ids, texts
from ..errors import ArgumentTypeError, GgtokError
from ..tokenizer.base import BaseTokenizer, Text
from ..tokenizer.cuts import Cuts, Pair, character, compare
from ..tokenizer.vocab import Token, TokenAttribute, attributes
from .explain.utf8 import to_text

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


@dataclass(frozen=True)
class Difference:
    """The first place where the ids of a text differ."""

    index: int
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


@dataclass(init=False, slots=True, eq=False, repr=False)
class Diff:
    """How two tokenizers differ, as `ggtok.diff` returns it. It is true if they differ in anything.

    `print` shows a summary, `to_dict` returns everything for JSON.
    """

    _sides: Pair[BaseTokenizer]
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
    """Whether the lists of merges differ in any way, even by a rule that occurs twice."""
    charsmap: bool
    """Whether the character maps (Unigram) differ."""
    num_shared: int
    """How many tokens both have."""
    cuts: Cuts | None
    """Where the tokens of the text end, compared; `None` if no text was given. Ids of two vocabularies nearly always
    differ, so this says more about a text than `first_difference`."""
    first_difference: Difference | None
    """Where the ids of the text first differ; `None` if they are equal or no text was given."""

    def __bool__(self) -> bool:
        return bool(self._differing())

    def _differing(self) -> list[str]:
        return [name for name in self._names() if name != "num_shared" and getattr(self, name)]

    def _names(self) -> list[str]:
        return [each.name for each in fields(self) if each.name != "_sides"]

    def to_dict(self) -> dict[str, Any]:
        """Everything as dicts, lists, strings and numbers. Bytes become text, with U+FFFD for what is not UTF-8."""
        return {name: plain(getattr(self, name)) for name in sorted(self._names())}

    def __str__(self) -> str:
        return "\n".join([*self._verdicts(), *lists(self, NUM_SHOWN)])

    def _verdicts(self) -> list[str]:
        """What the comparison comes to: a sentence about the text, if there is one, and one about the vocabularies."""
        found = []
        if self and self.cuts is not None:
            from .explain.verdict import verdict

            found.append("".join(f"`{text}`" if is_strong else text for text, is_strong in verdict(self.cuts)))
        return [*found, of_vocabularies(self)]

    def _repr_html_(self) -> str:
        from ..tokenizer.notebook import printed

        return printed(str(self))

    def __repr__(self) -> str:
        names = self._differing()
        return f"<ggtok.Diff in {', '.join(names)}>" if names else "<ggtok.Diff in nothing>"


def diff(
    a: BaseTokenizer,
    b: BaseTokenizer,
    text: Text | None = None,
    *,
    add_special: bool = True,
    parse_special: bool = False,
) -> Diff:
    r"""Compares two tokenizers; with a text, also where they cut it and where their ids for it begin to differ.

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
    Cuts first differ at character 7: `.↵↵` and `.·↵↵`. 3 and 4 tokens.
    Both vocabularies have the same tokens; other settings.
    pre: qwen2 -> gpt-2
    clean_spaces: no -> yes
    the ids first differ at index 2, character 7 (byte 7): 6165 b'.\n\n' -> 13 b'.'
    """
    for tokenizer in (a, b):
        if not isinstance(tokenizer, BaseTokenizer):
            raise ArgumentTypeError(f"diff compares two tokenizers, not {type(tokenizer).__name__}")
    found = Diff()
    found._sides = a, b
    found.settings, found.special = _differing(_settings(a), _settings(b)), _differing(_special(a), _special(b))
    _tokens(found, a, b)
    _merges(found, a, b)
    found.charsmap = charsmap(a) != charsmap(b)
    found.cuts = found.first_difference = None
    if text is not None:
        ids, spans = _encoded(a, b, text, add_special, parse_special)
        data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else bytes(memoryview(text))
        found.cuts = compare(data, ids, spans, is_text=isinstance(text, str))
        found.first_difference = _first_difference((a, b), data, ids, spans, isinstance(text, str))
    return found


def _settings(side: BaseTokenizer) -> dict[str, object]:
    vocab = side.vocab
    return {"kind": vocab.kind, "model": vocab.model, "pre": vocab.pre, "size": len(vocab), **vocab.settings}


def _special(side: BaseTokenizer) -> dict[str, object]:
    return {f"{name}_id": id for name, id in special_ids(side).items()} | {"eog_ids": eog_ids(side)}


def _differing(a: dict[str, object], b: dict[str, object]) -> dict[str, tuple[object, object]]:
    return {name: (value, b[name]) for name, value in a.items() if value != b[name]}


def _tokens(found: Diff, a: BaseTokenizer, b: BaseTokenizer) -> None:
    ids = [{text: id for id, text in enumerate(texts(side))} for side in (a, b)]
    found.removed = [a.vocab[id] for text, id in ids[0].items() if text not in ids[1]]
    found.added = [b.vocab[id] for text, id in ids[1].items() if text not in ids[0]]
    both = [(text, id, ids[1][text]) for text, id in ids[0].items() if text in ids[1]]
    found.num_shared = len(both)
    found.moved = [Moved(_text(text), first, second) for text, first, second in both if first != second]

    bits = (memoryview(scores(side)).cast("I").tolist() for side in (a, b))  # as bits: a NaN equals itself
    found.scores, found.attributes = (
        [
            Changed(_text(text), getattr(a.vocab[first], name), getattr(b.vocab[second], name))
            for text, first, second in both
            if of_a[first] != of_b[second]
        ]
        for name, (of_a, of_b) in (("score", bits), ("attributes", (attributes(side.vocab) for side in (a, b))))
    )


def _merges(found: Diff, a: BaseTokenizer, b: BaseTokenizer) -> None:
    rules = [merges(side) for side in (a, b)]
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


def _encoded(
    a: BaseTokenizer, b: BaseTokenizer, text: Text, add_special: bool, parse_special: bool
) -> tuple[Pair[list[int]], Pair[list[tuple[int, int]]]]:
    """The ids and the spans, in bytes, of both."""
    encodings = []
    for name, side in (("first", a), ("second", b)):
        try:
            encoding = side.encode_with_offsets(text, unit="byte", add_special=add_special, parse_special=parse_special)
        except GgtokError as error:
            error.args = (f"the {name} tokenizer: {error}",)
            raise
        encodings.append(encoding.tolist())
    (ids_a, spans_a), (ids_b, spans_b) = encodings
    return (ids_a, ids_b), (spans_a, spans_b)


def _first_difference(
    sides: Pair[BaseTokenizer],
    data: bytes,
    all_ids: Pair[list[int]],
    all_spans: Pair[list[tuple[int, int]]],
    is_text: bool,
) -> Difference | None:
    pairs = zip_longest(*all_ids)
    index = next((index for index, (id, other) in enumerate(pairs) if id != other), None)
    if index is None:
        return None
    byte = min(spans[index][0] for spans in all_spans if index < len(spans))
    char = character(data, byte, is_text=is_text)
    ids = [ids[index] if index < len(ids) else None for ids in all_ids]
    pieces = [None if id is None or id < 0 else side.piece(id) for side, id in zip(sides, ids, strict=True)]
    return Difference(index, ids[0], ids[1], byte, char, pieces[0], pieces[1])


def _text(text: bytes) -> str:
    return text.decode("utf-8", "surrogateescape")


def of_vocabularies(found: Diff) -> str:
    """In what the vocabularies differ, in a sentence."""
    if not found:
        return "No difference between the tokenizers."
    parts: dict[str, object] = {
        **{"ids": found.moved, "scores": found.scores, "attributes": found.attributes, "merges": found.merges_differ},
        **{"character maps": found.charsmap, "special tokens": found.special},
        "settings": found.settings.keys() - {"kind", "size"},
    }
    others = [name for name, is_other in parts.items() if is_other]
    if found.added or found.removed:
        only = f"{len(found.removed):,} only in the first, {len(found.added):,} only in the second"
        tokens = f"{found.num_shared:,} tokens are in both vocabularies, {only}"
    else:
        tokens = "Both vocabularies have the same tokens"
    if "kind" in found.settings:
        tokens = "Two kinds of tokenizer, {} and {}. ".format(*found.settings["kind"]) + tokens
    return f"{tokens}{'; other ' * bool(others)}{', '.join(others)}."


def settings(found: Diff) -> list[tuple[str, str, str]]:
    """The settings and special tokens that differ: name, value of the first, value of the second."""
    a, b = found._sides
    rows = [(name, _value(first), _value(second)) for name, (first, second) in found.settings.items()]
    return rows + [(name, _token(first, a), _token(second, b)) for name, (first, second) in found.special.items()]


def counts(found: Diff) -> list[tuple[str, str, str]]:
    """How many tokens and merges differ, in rows as those of `settings`."""
    rows = [
        ("tokens only here", len(found.removed), len(found.added)),
        ("tokens moved", len(found.moved), len(found.moved)),
        ("merges only here", len(found.merges_removed), len(found.merges_added)),
        ("merges moved", len(found.merges_moved), len(found.merges_moved)),
        ("other scores", len(found.scores), len(found.scores)),
        ("other attributes", len(found.attributes), len(found.attributes)),
    ]
    return [(name, f"{a:,}", f"{b:,}") for name, a, b in rows if a or b]


def _value(value: object) -> str:
    if isinstance(value, int):
        return ("no", "yes")[value] if isinstance(value, bool) else f"{value:,}"
    return "none" if value is None else str(value)


def _token(id: Any, side: BaseTokenizer) -> str:
    if isinstance(id, int):
        return f"{id} {quoted(side.piece(id))}"
    return "none" if id is None else ", ".join(map(str, id)) or "none"


def lists(found: Diff, most: int | None = None) -> list[str]:
    """All differences, one on a line, with at most `most` entries of each list."""

    def text(token: str) -> str:
        """A token's text, as the characters that it stands for."""
        for side in found._sides:
            if (id := side.vocab.id(token)) is not None:
                return quoted(side.piece(id))
        return repr(token)

    def shown(entry: Any) -> str:
        if isinstance(entry, str):
            return " + ".join(map(text, entry.split(" ", 1)))
        if isinstance(entry, Token):
            return f"{entry.id} {text(entry.text)}"
        name, a, b = entry
        name = shown(name) if isinstance(entry, MovedMerge) else text(name)
        return f"{name} {getattr(a, 'name', None) or a} -> {getattr(b, 'name', None) or b}"

    lines = [f"{name}: {a} -> {b}" for name, a, b in settings(found)]
    for name, entries in (
        *(("tokens removed", found.removed), ("tokens added", found.added), ("tokens moved", found.moved)),
        *(("scores", found.scores), ("attributes", found.attributes), ("merges removed", found.merges_removed)),
        *(("merges added", found.merges_added), ("merges moved", found.merges_moved)),
    ):
        if entries:
            lines += [f"{name}: {len(entries):,}", *(f"    {shown(entry)}" for entry in entries[:most])]
            if most is not None and len(entries) > most:
                lines.append(f"    and {len(entries) - most:,} more")
    if found.merges_differ and not (found.merges_removed or found.merges_added or found.merges_moved):
        lines.append("merges: a rule occurs more than once")
    if found.charsmap:
        lines.append("the character maps differ")
    if found.first_difference:
        index, a, b, byte, char, piece_a, piece_b = astuple(found.first_difference)
        sides = [f"{id} {piece!r}" if id is not None else "the end" for id, piece in ((a, piece_a), (b, piece_b))]
        lines.append(f"the ids first differ at index {index}, character {char} (byte {byte}): {' -> '.join(sides)}")
    return lines


def quoted(piece: bytes) -> str:
    """A piece in quotes, with invisible characters escaped; `b'...'` if it is not UTF-8."""
    return repr(to_text(piece))


def plain(value: Any) -> Any:
    """A value for JSON. Bytes become text, with U+FFFD for what is not UTF-8."""
    if isinstance(value, TokenAttribute):
        return int(value)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, Difference):
        value = vars(value)
    elif hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value
