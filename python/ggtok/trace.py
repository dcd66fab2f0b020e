"""What a trace holds: one class per table that a reader of the algorithms would draw.

Written by `python scripts/generate_trace.py` from the Rust crate. DO NOT EDIT.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, TypeAlias

Text: TypeAlias = str | bytes
"""Text of a vocabulary or of an input: `bytes` if it is not UTF-8."""


@dataclass(frozen=True, slots=True)
class CodePoint:
    """A character of the text, or a byte that is not part of one."""

    start: int  # Where it starts.
    end: int  # Where it ends.
    code_point: int  # Its code point; U+FFFD for a byte that is not UTF-8.


@dataclass(frozen=True, slots=True)
class SpecialMatch:
    """A special token written in the text."""

    token: int  # The token.
    text: Text  # Its text.
    attribute: str  # What it is: `control`, `unknown` or `user_defined`.
    start: int  # Where it starts, including the whitespace that it removes.
    end: int  # Where it ends, including the whitespace that it removes.


@dataclass(frozen=True, slots=True)
class Fragment:
    """A special token, or the text between two of them."""

    start: int  # Where it starts in the text.
    end: int  # Where it ends in the text.
    token: int | None  # The special token; none for text.
    steps: Steps | None  # What the algorithm did with the text; none for a special token.
    first_token: int  # The first of its tokens in `Trace.tokens`.
    num_tokens: int  # How many tokens it became.


@dataclass(frozen=True, slots=True)
class Token:
    """A token of the result."""

    id: int  # Its id.
    piece: Text  # The bytes that it decodes to.
    text: Text  # Its text in the vocabulary.
    start: int  # Where it starts in the text.
    end: int  # Where it ends in the text.
    fragment: int | None  # Its index in `Trace.fragments`; none for an added token.


@dataclass(frozen=True, slots=True)
class Origin:
    """A stretch of a rewritten text, and the bytes of the fragment that it stands for: byte for byte if both have the
    same length, otherwise as a whole. An unchanged text has one stretch."""

    start: int  # Where it starts.
    end: int  # Where it ends.
    from_: int  # Where its origin starts in the fragment.
    to: int  # Where its origin ends in the fragment.


@dataclass(frozen=True, slots=True)
class Range:
    """A part of a text."""

    start: int  # Where it starts.
    end: int  # Where it ends.


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason why characters did not become one token."""

    # The kind of reason: `one_token` (they did), `special_not_parsed`, `special_boundary`, `piece_boundary`,
    # `word_boundary`, `normalized`, `not_in_vocabulary`, `merge_missing` (the token exists, but no merges lead to it
    # from these symbols), `merge_lost` (a neighbour was merged first), `score_lost` (other tokens have a higher sum or
    # a lower cost), `longer_match` (a longer token was taken), `unknown_word`, `one_with_space` (with a space before
    # them they are).
    kind: str
    message: str  # The reason in a sentence.
    at: int | None  # The position in the text that it is about, if any.
    token: int | None  # The token that it is about, if any.


@dataclass(frozen=True, slots=True)
class Symbol:
    """A symbol: a part of a text that merges with its neighbours."""

    index: int  # Its index.
    prev: int  # The symbol before it; -1 at the start.
    next: int  # The symbol after it; -1 at the end.
    text: Text  # Its text.
    n: int  # The length of its text in bytes; 0 after it merged into the symbol before it.


@dataclass(frozen=True, slots=True)
class Bigram:
    """Two neighbouring symbols that can merge."""

    left: int  # The index of the left symbol.
    right: int  # The index of the right symbol.
    text: Text  # The text of both.
    size: int  # The length of the text in bytes.
    score: float | None  # SPM: the score of the token with this text. The highest merges first.
    rank: int | None  # BPE: the rank of the merge. The lowest merges first.
    token: int | None  # The token with this text, if there is one.


@dataclass(frozen=True, slots=True)
class Pop:
    """A bigram taken from the queue."""

    bigram: Bigram  # The bigram.
    # Why it did not merge: `left_gone`, `right_gone` (merged into another symbol) or `text_changed` (one of the two has
    # grown). None if it merged.
    stale: str | None
    added: tuple[Bigram, ...]  # The new bigrams added to the queue: with the left neighbour, then the right.


@dataclass(frozen=True, slots=True)
class Merging:
    """Symbols that merge until no pair can."""

    symbols: tuple[Symbol, ...]  # The symbols before the first merge.
    queue: tuple[Bigram, ...]  # The queue before the first merge, in the order in which it would be emptied.
    pops: tuple[Pop, ...]  # Every bigram taken from the queue, in order.
    merged: tuple[Symbol, ...]  # The symbols after the last merge.


@dataclass(frozen=True, slots=True)
class Spm:
    """SPM: characters merge, the pair with the highest score first, and the leftmost of equal scores."""

    kind: ClassVar[str] = "spm"
    space_prefix: bool  # Whether a space was added before the fragment.
    escaped: Text  # The fragment with `▁` for each space. All positions here refer to it.
    origins: tuple[Origin, ...]  # The origins of the text in the fragment.
    merging: Merging  # The merges.
    # For each text that could merge, the two symbols that it was last made of, ordered by text. llama.cpp looks up
    # symbols here that are not tokens; it finds none, because every text here is a token.
    rev_merge: tuple[RevMerge, ...]
    symbols: tuple[SymbolTokens, ...]  # How each remaining symbol became tokens.


@dataclass(frozen=True, slots=True)
class RevMerge:
    """SPM: the two symbols that a text was made of."""

    text: Text  # The text of both.
    left: int  # The index of the left symbol.
    right: int  # The index of the right symbol.


@dataclass(frozen=True, slots=True)
class Bpe:
    """BPE: pieces, in which symbols merge, the pair with the lowest rank first, and the leftmost of equal ranks."""

    kind: ClassVar[str] = "bpe"
    family: str  # The family of the pre-tokenizer.
    # How the text was rewritten before it was cut: `replaced` (bytes that are not UTF-8), `escaped` (spaces became
    # `▁`), `lowercased`, `whitespace_dropped`, in this order.
    rewritten: tuple[str, ...]
    text: Text  # The text that was cut. All positions here refer to it.
    origins: tuple[Origin, ...]  # The origins of the text, in the fragment or in the text of `HybridDna`.
    words: tuple[Range, ...]  # What was cut separately: the whole text, or each word if whitespace was dropped.
    passes: tuple[Pass, ...]  # One pass per pattern, over all pieces so far.
    pieces: tuple[Piece, ...]  # The pieces after the last pass.


@dataclass(frozen=True, slots=True)
class Pass:
    """BPE: what one pattern did."""

    pattern: str  # The pattern as written in llama.cpp.
    alternatives: tuple[str, ...]  # Its alternatives, in order.
    # What the pattern was applied to: `code_points`; `collapsed` if it names a category, so that every character beyond
    # ASCII becomes one that stands for its category; `code` if llama.cpp has hand-written code, which takes precedence.
    applied_to: str
    cuts: tuple[Cut, ...]  # The pieces after it.


@dataclass(frozen=True, slots=True)
class Cut:
    """BPE: a piece after a pattern."""

    start: int  # Where it starts.
    end: int  # Where it ends.
    # Which of the alternatives matched; none for text between two matches, and for a piece of llama.cpp's code that the
    # pattern as written does not give.
    alternative: int | None


@dataclass(frozen=True, slots=True)
class Piece:
    """BPE: a piece on its way to tokens."""

    start: int  # Where it starts.
    end: int  # Where it ends.
    text: Text  # Its text.
    # Its text as the vocabulary spells it: one character of GPT-2's alphabet per byte, if the family does so.
    spelled: Text
    # The token that is the whole piece, if the vocabulary takes it without merging (`ignore_merges`, or a run of
    # newlines in Gemma 4).
    whole: int | None
    merging: Merging  # The merges; empty if the piece is a token as a whole.
    symbols: tuple[SymbolTokens, ...]  # How each remaining symbol became tokens.


@dataclass(frozen=True, slots=True)
class SymbolTokens:
    """A symbol after the last merge, and its tokens."""

    text: Text  # Its text.
    token: int | None  # The token with this text.
    # If there is none: each byte of the text with its token. BPE drops a byte without a token; SPM writes the unknown
    # token for it, if the vocabulary has one.
    bytes: tuple[ByteToken, ...]


@dataclass(frozen=True, slots=True)
class ByteToken:
    """A byte and the token that stands for it."""

    text: Text  # The byte as the vocabulary spells it.
    token: int | None  # The token; none if the vocabulary has none.


@dataclass(frozen=True, slots=True)
class HybridDna:
    """Hybrid DNA: stretches of text and of DNA."""

    kind: ClassVar[str] = "hybrid_dna"
    text: Text  # The text that is searched for tags. All positions here refer to it.
    origins: tuple[Origin, ...]  # The origins of the text in the fragment.
    stretches: tuple[Stretch, ...]  # The stretches, in order.


@dataclass(frozen=True, slots=True)
class Stretch:
    """Hybrid DNA: text, a tag, or DNA."""

    start: int  # Where it starts.
    end: int  # Where it ends.
    tag: int | None  # The tag, if it is one.
    kmers: tuple[Kmer, ...]  # The k-mers, if it is DNA.
    bpe: Bpe | None  # The steps of byte-pair encoding, if it is text.


@dataclass(frozen=True, slots=True)
class Kmer:
    """Hybrid DNA: six letters."""

    start: int  # Where it starts.
    end: int  # Where it ends.
    text: Text  # The letters as capitals, padded with A.
    token: int  # The token: `<oov>` if the k-mer is not one.
    is_known: bool  # Whether the k-mer is a token.


@dataclass(frozen=True, slots=True)
class WordPiece:
    """WordPiece: words, each split into the longest matching tokens."""

    kind: ClassVar[str] = "word_piece"
    code_points: tuple[NormalizedCodePoint, ...]  # What happened to each code point of the fragment.
    words: tuple[Word, ...]  # The words.
    max_token_len: int  # The longest text that was looked up, in bytes.


@dataclass(frozen=True, slots=True)
class NormalizedCodePoint:
    """WordPiece: a code point on its way into a word."""

    start: int  # Where it starts in the fragment.
    end: int  # Where it ends in the fragment.
    code_point: int  # Its number.
    nfd: int  # The code point without its accent; the same if accents are kept or there is none.
    lowercase: int  # That code point in lower case; the same if case is kept.
    # The classes of `nfd`: `undefined`, `number`, `letter`, `separator`, `accent_mark`, `punctuation`, `symbol`,
    # `control`, `whitespace`, `lowercase`, `uppercase`, `nfd`.
    classes: tuple[str, ...]
    role: str  # What happened to it: `space` (ends a word), `dropped`, `word_alone` (is a word by itself) or `word`.


@dataclass(frozen=True, slots=True)
class Word:
    """WordPiece: a word."""

    text: Text  # The word with `▁` in front, except if its letters continue the text before the fragment.
    start: int  # Where its first character starts in the fragment.
    end: int  # Where its last character ends in the fragment.
    attempts: tuple[Attempt, ...]  # Every text that was looked up, in order.
    tokens: tuple[int, ...]  # Its tokens; the unknown token alone if a part of the word has none.
    is_unknown: bool  # Whether the word is unknown.


@dataclass(frozen=True, slots=True)
class Attempt:
    """WordPiece: a text that was looked up."""

    start: int  # Where it starts in the word, in bytes.
    end: int  # Where it ends in the word, in bytes.
    text: Text  # The text.
    token: int | None  # The token with this text.


@dataclass(frozen=True, slots=True)
class Unigram:
    """Unigram: the tokens with the highest sum of scores."""

    kind: ClassVar[str] = "unigram"
    charsmap: XcdaHeader | None  # The character map; none if the vocabulary has none.
    prefixes: tuple[Prefix, ...]  # How the fragment was normalized, from left to right.
    normalized: Text  # The normalized text. All positions below refer to it.
    origins: tuple[Origin, ...]  # The origins of the normalized text in the fragment.
    unknown_score: float  # The score of an unknown character.
    # The positions at which a character starts, each with the tokens that start there.
    positions: tuple[LatticePosition, ...]
    # The best way to each position, from 0 to the length of the normalized text. llama.cpp's `tokenization_results`.
    best: tuple[Best, ...]
    path: tuple[PathStep, ...]  # The way back, from the end to the start.


@dataclass(frozen=True, slots=True)
class Prefix:
    """Unigram: a part of the text that was normalized in one step."""

    start: int  # Where it starts in the fragment.
    end: int  # Where it ends in the fragment.
    # What it was: `user_defined` (a token that is kept), `replaced` (found in the character map), `copied`, or
    # `invalid` (a byte that is not UTF-8 becomes U+FFFD).
    outcome: str
    walk: tuple[XcdaStep, ...]  # The walk through the character map's double array, byte by byte.
    replacement: Text  # What it became, before spaces are escaped and merged.
    appended: Text  # What it added to the normalized text.


@dataclass(frozen=True, slots=True)
class XcdaHeader:
    """An XCDA, the compact double array of a character map, as a whole."""

    num_units: int  # The number of 32-bit units.
    root_base: int  # BASE of the root, unit 0: every walk starts from it.
    replacements_len: int  # The length of all replacements, each zero-terminated.


@dataclass(frozen=True, slots=True)
class XcdaStep:
    """A step through an XCDA, the compact double array of a character map."""

    byte: int  # The byte that leads from a node to its child.
    node: int  # The node's position in the array: BASE of the previous node XOR the byte.
    unit: int | None  # The array's 32 bits there; none beyond its end.
    base: int  # BASE: a child is at this position XOR its byte; 0 in a unit that is a value and not a node.
    lcheck: int  # LCHECK: the byte that leads to this node; bit 31 is set in a unit that is a value and not a node.
    leaf: bool  # LEAF: whether a key ends here.
    value: int | None  # Where the replacement starts among all replacements, if a key ends here.
    matched: bool  # Whether the byte leads here: LCHECK equals it. If not, the walk ends.


@dataclass(frozen=True, slots=True)
class LatticePosition:
    """Unigram: the tokens that start at a position."""

    at: int  # The position.
    score_sum: float | None  # The best sum of scores up to here; none if no token reaches the position.
    candidates: tuple[Candidate, ...]  # The tokens, shortest first.
    unknown: Candidate | None  # The unknown token for one character, if no token is exactly that character.


@dataclass(frozen=True, slots=True)
class Candidate:
    """Unigram: a token that may continue the best way to a position."""

    token: int  # The token.
    text: Text  # Its text.
    end: int  # Where it ends.
    score: float  # Its score; 0 for a user-defined token.
    score_sum: float | None  # The sum of scores with it; none at a position that no token reaches.
    champion: float | None  # The best sum at its end before; none if nothing had reached it.
    wins: bool  # Whether it became the best.


@dataclass(frozen=True, slots=True)
class Best:
    """Unigram: the best way to a position."""

    at: int  # The position.
    token: int | None  # The last token on the way; none at a position that no token reaches.
    from_: int  # Where that token starts.
    score_sum: float | None  # The sum of scores; none at a position that no token reaches.


@dataclass(frozen=True, slots=True)
class PathStep:
    """Unigram: a step of the way back."""

    from_: int  # Where the token starts.
    to: int  # Where the token ends.
    token: int  # The token.
    joins_next: bool  # Whether it joins the unknown token after it, and is not written again.


@dataclass(frozen=True, slots=True)
class Rwkv:
    """RWKV: the longest token at each position."""

    kind: ClassVar[str] = "rwkv"
    matches: tuple[Match, ...]  # The matches, in order.


@dataclass(frozen=True, slots=True)
class Match:
    """RWKV: one walk through the trie of tokens."""

    start: int  # Where it starts in the fragment.
    end: int  # Where the token ends in the fragment.
    walk: tuple[TrieStep, ...]  # The walk, byte by byte, as long as a token continues.
    token: int  # The token: the last one met on the walk, or the unknown token.
    is_unknown: bool  # Whether no token matched.


@dataclass(frozen=True, slots=True)
class TrieStep:
    """A step through a trie of tokens."""

    byte: int  # The byte.
    token: int | None  # The token whose text ends here.
    matched: bool  # Whether the trie has a node for the byte. If not, the walk ends.


@dataclass(frozen=True, slots=True)
class Plamo2:
    """PLaMo-2: the tokens with the lowest sum of costs, found from the end to the start."""

    kind: ClassVar[str] = "plamo2"
    skipped_bom: bool  # Whether a byte order mark was skipped.
    # The text with U+FFFD for each byte that is not UTF-8, including the byte order mark. All positions here refer to
    # it.
    text: Text
    origins: tuple[Origin, ...]  # The origins of the text in the fragment.
    positions: tuple[CostPosition, ...]  # The positions at which a character starts, from the last to the first.
    path: tuple[CostStep, ...]  # The way from the start to the end.


@dataclass(frozen=True, slots=True)
class CostPosition:
    """PLaMo-2: the tokens that may start at a position."""

    at: int  # The position.
    # The state of llama.cpp's automaton: the longest text from here that is a suffix of a token, or a shorter one if
    # the previous state hid that.
    state: Text
    # The tokens that are prefixes of `state`, longest first, and finally the unknown character. A token that costs as
    # much as an unknown character hides those after it.
    candidates: tuple[CostCandidate, ...]
    cost: int  # The lowest cost from here to the end.


@dataclass(frozen=True, slots=True)
class CostCandidate:
    """PLaMo-2: a token that may start at a position."""

    token: int | None  # The token; none for an unknown character.
    text: Text  # Its text.
    cost: int  # Its own cost, in ten-thousandths.
    total: int  # The cost from here to the end with it.
    wins: bool  # Whether it was taken.


@dataclass(frozen=True, slots=True)
class CostStep:
    """PLaMo-2: a token of the result."""

    start: int  # Where it starts.
    end: int  # Where it ends.
    token: int | None  # The token; none for an unknown character.
    bytes: tuple[int, ...]  # The byte tokens of an unknown character.


@dataclass(frozen=True, slots=True)
class Test:
    """The test vocabulary: a hash of every five bytes."""

    kind: ClassVar[str] = "test"
    groups: tuple[HashedGroup, ...]  # The groups of five bytes.


@dataclass(frozen=True, slots=True)
class HashedGroup:
    """The test vocabulary: five bytes, or fewer at the end."""

    start: int  # Where it starts in the fragment.
    end: int  # Where it ends in the fragment.
    hash: int  # The hash.
    token: int  # The hash modulo the number of tokens.


@dataclass(frozen=True, slots=True)
class DoubleArrayTrace:
    """How a double array of a few words is built, walked and packed.  A cell, node or unit is named by its position in
    its array. The value of a word is its position in `words`."""

    schema: int  # The version of this schema. It increases if a field is removed or changes its meaning.
    words: tuple[Text, ...]  # The words, in the order in which they are inserted.
    by_first_byte: tuple[FirstByte, ...]  # The words by their first byte: what is left after the first step of a walk.
    codes: tuple[Code, ...]  # The numbers of the bytes in the words, and of the end mark.
    insertions: tuple[Insertion, ...]  # One per word.
    cells: tuple[Cell, ...]  # The array after the last insertion.
    xcda: PackedXcda  # The packed form.
    lookups: tuple[Lookup, ...]  # One per query.


@dataclass(frozen=True, slots=True)
class FirstByte:
    """The words that start with a byte."""

    byte: int  # The byte.
    words: tuple[int, ...]  # The words.


@dataclass(frozen=True, slots=True)
class Code:
    """The number that a byte has in a double array."""

    byte: int | None  # The byte; none for the end mark.
    code: int  # Its number, from 1.


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a double array."""

    index: int  # Its position; the root is cell 1.
    # BASE, from which the cells of its children are counted; -1 - v at the end of the word with the value v; 0 for
    # none.
    base: int
    check: int  # CHECK: its parent; 0 for the root and for free cells.
    text: Text | None  # The bytes on the way to it; none for a free cell.


@dataclass(frozen=True, slots=True)
class Insertion:
    """The insertion of a word."""

    word: int  # The word.
    steps: tuple[InsertionStep, ...]  # One step per byte, and one for the end mark.
    cells: tuple[Cell, ...]  # The array after it.


@dataclass(frozen=True, slots=True)
class InsertionStep:
    """A step of an insertion: from a node to its child for one byte."""

    node: int  # The node.
    byte: int | None  # The byte; none for the end mark.
    code: int  # Its number.
    new_base: int | None  # BASE of the node, if this is its first child and sets it.
    cell: int  # BASE of the node and the number.
    check: int  # CHECK of that cell before.
    # `followed` (CHECK names the node: the child exists), `placed` (the cell was free) or `conflict` (it belongs to
    # another node).
    outcome: str
    relocation: Relocation | None  # What moved because of a conflict.
    child: int  # The cell of the child afterwards.


@dataclass(frozen=True, slots=True)
class Relocation:
    """Children of a node that move, so that two nodes no longer want the same cell."""

    num_own: int  # How many children the node of the step has, with the new one.
    num_others: int  # How many children the owner of the cell's parent has. The node with fewer children moves them.
    node: int  # The node whose children move.
    from_base: int  # Its BASE before.
    to_base: int  # Its BASE afterwards: the lowest with a free cell for each child.
    moves: tuple[Move, ...]  # The children.


@dataclass(frozen=True, slots=True)
class Move:
    """A node that moves."""

    byte: int | None  # The byte that leads to it; none for the end mark.
    from_: int  # Its cell before.
    to: int  # Its cell after.
    base: int  # Its BASE, which moves with it.
    children: tuple[int, ...]  # Its own children: their CHECK names the new cell.


@dataclass(frozen=True, slots=True)
class PackedXcda:
    """Words as an XCDA: children are found by exclusive or, and a node is one unit of 32 bits."""

    num_units: int  # The length of the array: whole blocks of 256 units, so that no walk leaves it.
    units: tuple[PackedUnit, ...]  # The units in use; the others are 0.


@dataclass(frozen=True, slots=True)
class PackedUnit:
    """A unit of an XCDA, and what its bits say."""

    index: int  # Its position; the root is unit 0.
    text: Text  # The bytes on the way to it.
    role: str  # What it is: `root`, `node` or `value`.
    unit: int  # All 32 bits.
    # Bits 10 to 30, BASE: the position of the children is the node's position XOR this. Shifted left by eight bits if
    # `is_wide`. None in a value.
    base: int | None
    is_wide: bool | None  # Bit 9: whether BASE is shifted. None in a value.
    leaf: bool | None  # Bit 8, LEAF: whether a word ends at the node. None in a value.
    lcheck: int | None  # Bits 0 to 7 and 31, LCHECK: the byte that leads to the node. None in a value.
    value: int | None  # Bits 0 to 30 of a value, which bit 31 marks. None in a node.


@dataclass(frozen=True, slots=True)
class Lookup:
    """A text that is looked up."""

    text: Text  # The text.
    steps: tuple[LookupStep, ...]  # The walk through BASE and CHECK.
    value: int | None  # The value of the word; none if the text is not a word. The last step says why.
    xcda: tuple[XcdaStep, ...]  # The walk through the XCDA.
    longest_prefix: int | None  # The longest word that the text starts with, as found by the walk through the XCDA.


@dataclass(frozen=True, slots=True)
class LookupStep:
    """A step of a look-up."""

    node: int  # The node.
    byte: int | None  # The byte; none for the end mark.
    code: int | None  # Its number; none if no word has the byte.
    base: int  # BASE of the node.
    cell: int | None  # BASE and the number.
    check: int | None  # CHECK of that cell; none beyond the end of the array.
    matched: bool  # Whether CHECK names the node. If not, the walk ends.


Steps: TypeAlias = Spm | Bpe | HybridDna | WordPiece | Unigram | Rwkv | Plamo2 | Test
"""What an algorithm did with a fragment."""
