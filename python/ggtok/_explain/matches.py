"""What a trace holds of the algorithms that look up tokens: WordPiece, Unigram, RWKV, PLaMo-2, and the test kind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .convert import Text


@dataclass(frozen=True, slots=True)
class WordPiece:
    """WordPiece: words, in which the longest token is taken again and again."""

    kind: ClassVar[str] = "word_piece"
    code_points: tuple[NormalizedCodePoint, ...]
    """What became of each code point of the fragment."""
    words: tuple[Word, ...]
    """The words."""
    max_token_len: int
    """The longest text that is looked up, in bytes."""


@dataclass(frozen=True, slots=True)
class NormalizedCodePoint:
    """WordPiece: a code point on its way into a word."""

    start: int
    """Where it starts in the fragment."""
    end: int
    """Where it ends in the fragment."""
    code_point: int
    """Its number."""
    nfd: int
    """The code point without its accent; the same where accents stay or there is none."""
    lowercase: int
    """That code point in lower case; the same where case stays."""
    classes: tuple[str, ...]
    """The classes of `nfd`: `undefined`, `number`, `letter`, `separator`, `accent_mark`, `punctuation`, `symbol`,
    `control`, `whitespace`, `lowercase`, `uppercase`, `nfd`."""
    role: str
    """What became of it: `space` (ends a word), `dropped`, `word_alone` (is a word by itself) or `word`."""


@dataclass(frozen=True, slots=True)
class Word:
    """WordPiece: a word."""

    text: Text
    """The word with `▁` before it."""
    start: int
    """Where its first character starts in the fragment."""
    end: int
    """Where its last character ends in the fragment."""
    attempts: tuple[Attempt, ...]
    """Every text that was looked up, in order."""
    tokens: tuple[int, ...]
    """Its tokens; the unknown token alone where a part of the word has none."""
    is_unknown: bool
    """Whether the word is unknown."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """WordPiece: a text that was looked up."""

    start: int
    """Where it starts in the word, in bytes."""
    end: int
    """Where it ends in the word, in bytes."""
    text: Text
    """The text."""
    token: int | None
    """The token with this text."""


@dataclass(frozen=True, slots=True)
class Unigram:
    """Unigram: the tokens with the highest sum of scores."""

    kind: ClassVar[str] = "unigram"
    prefixes: tuple[Prefix, ...]
    """How the fragment was normalized, from left to right."""
    normalized: Text
    """The normalized text: all positions below count in it."""
    unknown_score: float
    """The score of an unknown character."""
    positions: tuple[LatticePosition, ...]
    """The places at which a character starts, each with the tokens that start there."""
    best: tuple[Best, ...]
    """The best way to each place, from 0 to the length of the normalized text. llama.cpp's `tokenization_results`."""
    path: tuple[PathStep, ...]
    """The way back, from the end to the start."""


@dataclass(frozen=True, slots=True)
class Prefix:
    """Unigram: a part of the text that was normalized at once."""

    start: int
    """Where it starts in the fragment."""
    end: int
    """Where it ends in the fragment."""
    outcome: str
    """What it was: `user_defined` (a token that stays as it is), `replaced` (found in the character map), `copied`, or
    `invalid` (a byte that is not UTF-8 becomes U+FFFD)."""
    walk: tuple[XcdaStep, ...]
    """The walk through the character map's double array, byte by byte."""
    replacement: Text
    """What it became, before spaces are escaped and merged."""
    appended: Text
    """What was appended to the normalized text for it."""


@dataclass(frozen=True, slots=True)
class XcdaStep:
    """A step through an XCDA, the compact double array of a character map."""

    byte: int
    """The byte that leads from a node to its child."""
    node: int
    """The node: its place in the array."""
    unit: int | None
    """The array's 32 bits there; none beyond its end."""
    base: int
    """BASE: what leads on from the node, by exclusive or."""
    lcheck: int
    """LCHECK: the byte that leads to this node."""
    leaf: bool
    """LEAF: whether a key ends here."""
    value: int | None
    """Where the replacement starts among all replacements, if a key ends here."""
    matched: bool
    """Whether the byte leads here: LCHECK equals it. The walk ends where it does not."""


@dataclass(frozen=True, slots=True)
class LatticePosition:
    """Unigram: the tokens that start at a place."""

    at: int
    """The place."""
    score_sum: float
    """The best sum of scores up to here."""
    candidates: tuple[Candidate, ...]
    """The tokens, shortest first."""
    unknown: Candidate | None
    """The unknown token for one character, where no token is exactly that character."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """Unigram: a token that may continue the best way to a place."""

    token: int
    """The token."""
    text: Text
    """Its text."""
    end: int
    """Where it ends."""
    score: float
    """Its score; 0 for a user-defined token."""
    score_sum: float
    """The sum of scores with it."""
    champion: float | None
    """The best sum at its end before; none if nothing had reached it."""
    wins: bool
    """Whether it became the best."""


@dataclass(frozen=True, slots=True)
class Best:
    """Unigram: the best way to a place."""

    at: int
    """The place."""
    token: int | None
    """The last token on the way; none at a place that no token reaches."""
    from_: int
    """Where that token starts."""
    score_sum: float | None
    """The sum of scores; none at a place that no token reaches."""


@dataclass(frozen=True, slots=True)
class PathStep:
    """Unigram: a step of the way back."""

    from_: int
    """Where the token starts."""
    to: int
    """Where the token ends."""
    token: int
    """The token."""
    joins_next: bool
    """Whether it joins the unknown token after it, and is not written again."""


@dataclass(frozen=True, slots=True)
class Rwkv:
    """RWKV: the longest token, again and again."""

    kind: ClassVar[str] = "rwkv"
    matches: tuple[Match, ...]
    """The matches, in order."""


@dataclass(frozen=True, slots=True)
class Match:
    """RWKV: one walk through the trie of tokens."""

    start: int
    """Where it starts in the fragment."""
    end: int
    """Where the token ends in the fragment."""
    walk: tuple[TrieStep, ...]
    """The walk, byte by byte, as far as a token goes on."""
    token: int
    """The token: the last one met on the walk, or the unknown token."""
    is_unknown: bool
    """Whether no token matched."""


@dataclass(frozen=True, slots=True)
class TrieStep:
    """A step through a trie of tokens."""

    byte: int
    """The byte."""
    token: int | None
    """The token whose text ends here."""
    matched: bool
    """Whether the trie has a node for the byte. The walk ends where it has none."""


@dataclass(frozen=True, slots=True)
class Plamo2:
    """PLaMo-2: the tokens with the lowest sum of costs, found from the end to the start."""

    kind: ClassVar[str] = "plamo2"
    skipped_bom: bool
    """Whether a byte order mark was skipped."""
    text: Text
    """The text: all positions here count in it."""
    positions: tuple[CostPosition, ...]
    """The places at which a character starts, from the last to the first."""
    path: tuple[CostStep, ...]
    """The way from the start to the end."""


@dataclass(frozen=True, slots=True)
class CostPosition:
    """PLaMo-2: what may start at a place."""

    at: int
    """The place."""
    candidates: tuple[CostCandidate, ...]
    """The candidates, longest first."""
    cost: int
    """The lowest cost from here to the end."""


@dataclass(frozen=True, slots=True)
class CostCandidate:
    """PLaMo-2: a token that may start at a place."""

    token: int | None
    """The token; none for an unknown character."""
    text: Text
    """Its text."""
    cost: int
    """Its own cost, in ten-thousandths."""
    total: int
    """The cost from here to the end with it."""
    wins: bool
    """Whether it is the one taken."""


@dataclass(frozen=True, slots=True)
class CostStep:
    """PLaMo-2: a token of the result."""

    start: int
    """Where it starts."""
    end: int
    """Where it ends."""
    token: int | None
    """The token; none for an unknown character."""
    bytes: tuple[int, ...]
    """The byte tokens of an unknown character."""


@dataclass(frozen=True, slots=True)
class Test:
    """The test vocabulary: a hash of every five bytes."""

    kind: ClassVar[str] = "test"
    groups: tuple[HashedGroup, ...]
    """The groups of five bytes."""


@dataclass(frozen=True, slots=True)
class HashedGroup:
    """The test vocabulary: five bytes, or fewer at the end."""

    start: int
    """Where it starts in the fragment."""
    end: int
    """Where it ends in the fragment."""
    hash: int
    """The hash."""
    token: int
    """The hash modulo the number of tokens."""
