"""A trace as a list of sections, in the order of the steps, which all views show."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Literal

from ...trace import Bpe, HybridDna, Plamo2, Rwkv, SpecialMatch, Spm, Test, Token, Unigram, WordPiece
from . import match_sections, merge_sections
from .record import Record
from .tables import Row, Section, section
from .utf8 import to_bytes, to_text

OF_KIND: dict[type, Callable[[Any, bytes], Iterator[Section]]] = {
    Spm: merge_sections.spm,
    Bpe: merge_sections.bpe,
    HybridDna: merge_sections.hybrid_dna,
    WordPiece: match_sections.word_piece,
    Unigram: match_sections.unigram,
    Rwkv: match_sections.rwkv,
    Plamo2: match_sections.plamo2,
    Test: match_sections.test,
}


def sections(trace: Record) -> list[Section]:
    """All tables of a trace that are not empty. Takes O(n) time for n steps."""
    found = [_text(trace), *_special(trace), _fragments(trace)]
    text = to_bytes(trace.text)
    several = sum(fragment.steps is not None for fragment in trace.fragments) > 1
    for place, fragment in enumerate(trace.fragments):
        if fragment.steps is not None:
            within = f" (fragment {place})" if several else ""
            made = OF_KIND[type(fragment.steps)](fragment.steps, text[fragment.start : fragment.end])
            found += [replace(each, title=each.title + within) for each in made]
    found.append(_tokens(trace))
    return [each for each in found if each.rows]


def _text(trace: Record) -> Section:
    text = to_bytes(trace.text)
    rows = []
    for place, code_point in enumerate(trace.code_points):
        written = text[code_point.start : code_point.end]
        cells = (place, code_point.start, to_text(written), f"U+{code_point.code_point:04X}", written.hex(" "))
        rows.append(Row(cells))
    names = "character, byte, text:text, code point:word, bytes:word"
    return section("text", "Text", "The text as characters and as bytes of UTF-8.", names, rows)


def _special(trace: Record) -> Iterator[Section]:
    def rows(matches: tuple[SpecialMatch, ...]) -> list[Row]:
        return [
            Row((each.token, each.text, each.attribute.replace("_", "-"), each.start, each.end)) for each in matches
        ]

    names = "token, text:text, attribute:word, start, end"
    about = "The longest special text is searched first, each in what the longer ones have left."
    yield section("special", "Special tokens", about, names, rows(trace.special))
    about = "These are written in the text, and are text like any other, because parse_special is off."
    yield section("unread", "Special tokens that are not read", about, names, rows(trace.unread))


def _fragments(trace: Record) -> Section:
    text = to_bytes(trace.text)
    rows = []
    for place, each in enumerate(trace.fragments):
        kind = "text" if each.token is None else "special token"
        cells = (place, kind, each.start, each.end - each.start, to_text(text[each.start : each.end]), each.token)
        rows.append(Row((*cells, each.num_tokens)))
    about = "Special tokens are done; the text between them is tokenized, each fragment by itself."
    names = "fragment, kind:word, offset, length, text:text, token, tokens"
    return section("fragments", "Fragments", about, names, rows)


def _tokens(trace: Record) -> Section:
    rows = []
    for place, (token, (start, end)) in enumerate(zip(trace.tokens, trace.offsets, strict=True)):
        cells = (place, token.id, token.piece, token.text, start, end, origin_of(trace, token))
        rows.append(Row(cells, "won"))
    about = "The ids of encode, what each decodes to, and the characters of the text that it comes from."
    names = "place, token, piece:text, in the vocabulary:text, start, end, origin:word"
    return section("tokens", "Result", about, names, rows)


def origin_of(trace: Record, token: Token) -> Literal["added", "special"] | None:
    """Where a token comes from, if not from the algorithm."""
    if token.fragment is None:
        return "added"
    return None if trace.fragments[token.fragment].token is None else "special"
