"""What a trace holds of the algorithms that merge symbols: SPM, and byte-pair encoding with its variants."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .convert import Text


@dataclass(frozen=True, slots=True)
class Symbol:
    """A symbol: a part of a text that merges with its neighbours."""

    index: int
    """Its index."""
    prev: int
    """The symbol before it; -1 at the start."""
    next: int
    """The symbol after it; -1 at the end."""
    text: Text
    """Its text."""
    n: int
    """The length of its text in bytes; 0 once it was merged into the symbol before it."""


@dataclass(frozen=True, slots=True)
class Bigram:
    """Two neighbouring symbols that can merge."""

    left: int
    """The index of the left symbol."""
    right: int
    """The index of the right symbol."""
    text: Text
    """The text of both."""
    size: int
    """The length of the text in bytes."""
    score: float | None
    """SPM: the score of the token with this text. The highest merges first."""
    rank: int | None
    """BPE: the rank of the merge. The lowest merges first."""
    token: int | None
    """The token with this text, if there is one."""


@dataclass(frozen=True, slots=True)
class Pop:
    """A bigram that was taken from the queue."""

    bigram: Bigram
    """The bigram."""
    stale: str | None
    """Why it did not merge: `left_gone`, `right_gone` (merged into another symbol) or `text_changed` (one of the two
    has grown). None if it merged."""
    added: tuple[Bigram, ...]
    """What the merge made possible, and thus what was added to the queue: with the left neighbour, then the right."""


@dataclass(frozen=True, slots=True)
class Merging:
    """Symbols that merge until no pair is left that can."""

    symbols: tuple[Symbol, ...]
    """The symbols before the first merge."""
    queue: tuple[Bigram, ...]
    """The queue before the first merge, in the order in which it would be emptied."""
    pops: tuple[Pop, ...]
    """Every bigram that was taken from the queue, in order."""
    merged: tuple[Symbol, ...]
    """The symbols after the last merge."""


@dataclass(frozen=True, slots=True)
class Spm:
    """SPM: characters merge, the pair of the highest score first, the leftmost first of equal scores."""

    kind: ClassVar[str] = "spm"
    space_prefix: bool
    """Whether a space was put before the fragment."""
    escaped: Text
    """The fragment with `▁` for each space: the text that all positions here count in."""
    merging: Merging
    """The merges."""
    rev_merge: tuple[RevMerge, ...]
    """For each text that could merge, the two symbols that it was last made of."""
    resegmented: tuple[Resegment, ...]
    """How each symbol that is left became tokens."""


@dataclass(frozen=True, slots=True)
class RevMerge:
    """SPM: the two symbols that a text was made of."""

    text: Text
    """The text of both."""
    left: int
    """The index of the left symbol."""
    right: int
    """The index of the right symbol."""


@dataclass(frozen=True, slots=True)
class Resegment:
    """SPM: a symbol on its way to tokens."""

    text: Text
    """Its text."""
    token: int | None
    """The token with this text."""
    parts: tuple[Resegment, ...]
    """If there is none: the two symbols that it was made of, each again on its way to tokens."""
    bytes: tuple[int, ...]
    """If it was not made of two: the byte tokens, or the unknown token, that stand for its bytes."""


@dataclass(frozen=True, slots=True)
class Bpe:
    """BPE: pieces, in which symbols merge, the pair of the lowest rank first, the leftmost first of equal ranks."""

    kind: ClassVar[str] = "bpe"
    family: str
    """The family of the pre-tokenizer."""
    rewritten: tuple[str, ...]
    """What was done to the text before it was cut: `replaced` (bytes that are not UTF-8), `escaped` (spaces became
    `▁`), `lowercased`, `whitespace_dropped`, in this order."""
    text: Text
    """The text that was cut: all positions here count in it."""
    passes: tuple[Pass, ...]
    """One pass over all pieces so far per pattern."""
    pieces: tuple[Piece, ...]
    """The pieces after the last pass."""


@dataclass(frozen=True, slots=True)
class Pass:
    """BPE: what one pattern did."""

    pattern: str
    """The pattern as written in llama.cpp."""
    alternatives: tuple[str, ...]
    """Its alternatives, in order."""
    applied_to: str
    """What the pattern was applied to: `code_points`, or `collapsed` where it names a category and every character
    beyond ASCII becomes one that stands for its category; `code` where llama.cpp has code of its own that goes before
    the pattern and gives other pieces here."""
    cuts: tuple[Cut, ...]
    """The pieces that it leaves."""


@dataclass(frozen=True, slots=True)
class Cut:
    """BPE: a piece that a pattern leaves."""

    start: int
    """Where it starts."""
    end: int
    """Where it ends."""
    alternative: int | None
    """Which of the alternatives matched; none for text between two matches."""


@dataclass(frozen=True, slots=True)
class Piece:
    """BPE: a piece on its way to tokens."""

    start: int
    """Where it starts."""
    end: int
    """Where it ends."""
    text: Text
    """Its text."""
    spelled: Text
    """Its text as the vocabulary spells it: one character of GPT-2's alphabet per byte where the family does so."""
    whole: int | None
    """The token that is the whole piece, where the vocabulary takes it without merging (`ignore_merges`, or a run of
    newlines in Gemma 4)."""
    merging: Merging
    """The merges; empty where the piece is a token as a whole."""
    symbols: tuple[SymbolTokens, ...]
    """How each symbol that is left became tokens."""


@dataclass(frozen=True, slots=True)
class SymbolTokens:
    """BPE: a symbol and its tokens."""

    text: Text
    """Its text."""
    token: int | None
    """The token with this text."""
    bytes: tuple[ByteToken, ...]
    """If there is none: each byte, or each character of its spelling, with its token. One without a token is
    dropped."""


@dataclass(frozen=True, slots=True)
class ByteToken:
    """A byte and the token that stands for it."""

    text: Text
    """The byte as the vocabulary spells it."""
    token: int | None
    """The token; none where the vocabulary has none."""


@dataclass(frozen=True, slots=True)
class HybridDna:
    """Hybrid DNA: stretches of text and of DNA."""

    kind: ClassVar[str] = "hybrid_dna"
    text: Text
    """The text in which tags are looked for: all positions here count in it."""
    stretches: tuple[Stretch, ...]
    """The stretches, in order."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """Hybrid DNA: text, a tag, or DNA."""

    start: int
    """Where it starts."""
    end: int
    """Where it ends."""
    tag: int | None
    """The tag, if it is one."""
    kmers: tuple[Kmer, ...]
    """The k-mers, if it is DNA."""
    bpe: Bpe | None
    """The steps of byte-pair encoding, if it is text."""


@dataclass(frozen=True, slots=True)
class Kmer:
    """Hybrid DNA: six letters."""

    start: int
    """Where it starts."""
    end: int
    """Where it ends."""
    text: Text
    """The letters as capitals, padded with A."""
    token: int
    """The token: `<oov>` where the k-mer is none."""
    is_known: bool
    """Whether the k-mer is a token."""
