"""The tables of WordPiece, Unigram, RWKV, PLaMo-2, and the test kind. Each takes O(n) time for n steps."""

from __future__ import annotations

from collections.abc import Iterator

from ...trace import Best, Candidate, Plamo2, Prefix, Rwkv, Test, Unigram, WordPiece, XcdaStep
from .tables import Mark, Row, Section, byte_name, part, section, walked, won, yes
from .utf8 import to_bytes, to_text

ROLES = {
    "space": "ends a word",
    "dropped": "is dropped",
    "word_alone": "is a word by itself",
    "word": "belongs to a word",
}
OUTCOMES = {
    "user_defined": "a user-defined token stays as it is",
    "replaced": "found in the character map",
    "copied": "not in the character map: stays as it is",
    "invalid": "not UTF-8: becomes U+FFFD",
}


def word_piece(steps: WordPiece, text: bytes) -> Iterator[Section]:
    """The tables of WordPiece for a fragment with this text."""
    rows = []
    for each in steps.code_points:
        written, classes = to_text(text[each.start : each.end]), ", ".join(each.classes)
        forms = (f"U+{each.code_point:04X}", _character(each.nfd), _character(each.lowercase))
        mark: Mark = "lost" if each.role == "dropped" else ""
        rows.append(Row((written, *forms, classes, ROLES[each.role]), mark))
    names = "character:text, code point:word, without accent:text, lower case:text, classes:word, what happens:word"
    about = "Accents and capitals go as the vocabulary says; spaces and punctuation separate words."
    yield section("code_points", "Characters", about, names, rows)
    rows = []
    for word in steps.words:
        what = "is unknown: a part of it is not a token" if word.is_unknown else "is made of tokens"
        rows.append(Row((word.text, " ".join(map(str, word.tokens)), what), won(not word.is_unknown)))
    names = "word:text, tokens, what happens:word"
    about = "Each word gets ▁ before it, and becomes tokens, or is unknown as a whole."
    yield section("words", "Words", about, names, rows)
    names = "word:text, start, end, looked up:text, token"
    about = (
        f"From each place in a word the longest text is looked up first (at most {steps.max_token_len} bytes), then"
        " shorter ones, until one is a token."
    )
    rows = []
    for word in steps.words:
        for attempt in word.attempts:
            looked_up = (word.text, attempt.start, attempt.end, attempt.text, attempt.token)
            rows.append(Row(looked_up, won(attempt.token is not None)))
    yield section("attempts", "Longest match", about, names, rows)


def unigram(steps: Unigram, text: bytes) -> Iterator[Section]:
    """The tables of Unigram for a fragment with this text."""
    normalized = to_bytes(steps.normalized)
    if steps.charsmap is not None:
        names = "units, BASE of the root, bytes of replacements"
        about = "A compact double array (XCDA) from texts to what replaces them."
        rows = [Row((steps.charsmap.num_units, steps.charsmap.root_base, steps.charsmap.replacements_len))]
        yield section("charsmap", "The character map", about, names, rows)

    def prefix(each: Prefix) -> Row:
        outcome = (OUTCOMES[each.outcome], each.replacement, each.appended)
        return part(text, each.start, each.end, *outcome, mark="won" if each.outcome == "replaced" else "")

    names = "start, end, text:text, what happens:word, replacement:text, appended:text"
    about = "From left to right, the longest text that the character map knows is replaced."
    yield section("prefixes", "Normalization", about, names, map(prefix, steps.prefixes))
    names = "start, byte:word, node, unit:word, BASE, LCHECK:word, LEAF:word, value, what happens:word"
    about = "Each byte leads to the next node by exclusive or with BASE; the walk ends if LCHECK is another byte."
    rows = [_xcda_row(each, step) for each in steps.prefixes for step in each.walk]
    yield section("xcda", "Walks through the character map (XCDA)", about, names, rows)
    names = "text:text, bytes"
    about = "Tokens are looked up in this text."
    yield section("normalized", "Normalized text", about, names, [Row((steps.normalized, len(normalized)))])

    def candidate(at: int, each: Candidate) -> Row:
        cells = (at, each.end, each.text, each.token, each.score, each.score_sum, each.champion)
        what = "is the best so far" if each.wins else "loses"
        return Row((*cells, what), won(each.wins))

    found = ((place.at, each) for place in steps.positions for each in (*place.candidates, place.unknown))
    names = "from, to, text:text, token, score, sum, best before, what happens:word"
    about = "From each place every token that starts there continues the best path to it; the highest sum is kept."
    rows = [candidate(at, each) for at, each in found if each is not None]
    yield section("lattice", "Lattice", about, names, rows)

    def best_row(best: Best) -> Row:
        token = None if best.token is None else to_text(normalized[best.from_ : best.at])
        cells = (best.at, best.token, best.from_, token, best.score_sum)
        return Row(cells, "lost" if best.score_sum is None else "")

    names = "place, token, from, text:text, sum"
    about = "The last token of the best path, where it starts, and the sum of scores."
    yield section("best", "Best path to each place (tokenization_results)", about, names, map(best_row, steps.best))
    rows = []
    for step in steps.path:
        what = "joins the unknown token after it" if step.joins_next else "is a token of the result"
        rows.append(part(normalized, step.from_, step.to, step.token, what, mark=won(not step.joins_next)))
    names = "from, to, text:text, token, what happens:word"
    about = "From the end, each place names the token before it; consecutive unknown tokens become one."
    yield section("path", "The way back", about, names, rows)


def _xcda_row(prefix: Prefix, step: XcdaStep) -> Row:
    unit = None if step.unit is None else f"0x{step.unit:08x}"
    what = "goes on" if step.matched else "ends: no node" if unit is None else "ends: LCHECK differs"
    lcheck, leaf = byte_name(step.lcheck), yes(step.leaf)
    cells = (prefix.start, byte_name(step.byte), step.node, unit, step.base, lcheck, leaf, step.value, what)
    return Row(cells, walked(step.value, step.matched))


def rwkv(steps: Rwkv, text: bytes) -> Iterator[Section]:
    """The tables of RWKV for a fragment with this text."""
    rows, walks = [], []
    for match in steps.matches:
        for end, step in enumerate(match.walk, match.start + 1):
            what = "goes on" if step.matched else "ends: no token continues like this"
            cells = (match.start, byte_name(step.byte), to_text(text[match.start : end]), step.token, what)
            walks.append(Row(cells, walked(step.token, step.matched)))
        what = "no token starts here: unknown" if match.is_unknown else "is the longest token"
        rows.append(part(text, match.start, match.end, match.token, what, mark=won(not match.is_unknown)))
    names = "start, byte:word, so far:text, token, what happens:word"
    about = "Byte by byte for as long as some token continues; the last token that was met is taken."
    yield section("walks", "Walks through the trie", about, names, walks)
    names = "start, end, text:text, token, what happens:word"
    about = "The longest token at each place becomes a token of the result."
    yield section("matches", "Longest matches", about, names, rows)


def plamo2(steps: Plamo2, _: bytes) -> Iterator[Section]:
    """The tables of PLaMo-2 for a fragment."""
    rewritten = to_bytes(steps.text)
    bom = " A byte order mark at its start is skipped." if steps.skipped_bom else ""
    names = "text:text, bytes"
    about = f"Tokens are looked up in this text.{bom}"
    yield section("rewritten", "Text", about, names, [Row((steps.text, len(rewritten)))])
    rows = []
    for position in steps.positions:
        for each in position.candidates:
            what = "is taken" if each.wins else "costs more"
            cells = (position.at, position.state, each.text, each.token, each.cost, each.total, what)
            rows.append(Row(cells, won(each.wins)))
    names = "at, state:text, text:text, token, cost, total, what happens:word"
    about = "At each place, the token is taken from which the path to the end costs least."
    yield section("costs", "Costs, from the end to the start", about, names, rows)
    rows = []
    for step in steps.path:
        spelled = " ".join(map(str, step.bytes)) or None
        rows.append(part(rewritten, step.start, step.end, step.token, spelled, mark=won(step.token is not None)))
    names = "start, end, text:text, token, bytes"
    about = "From the start, the token taken at each place; an unknown character becomes its bytes."
    yield section("path", "The path to the end", about, names, rows)


def test(steps: Test, text: bytes) -> Iterator[Section]:
    """The tables of the test kind for a fragment with this text."""
    names = "start, end, bytes:text, hash, token"
    about = "The hash of each group, modulo the number of tokens, is a token."
    rows = [part(text, group.start, group.end, group.hash, group.token) for group in steps.groups]
    yield section("groups", "Groups of five bytes", about, names, rows)


def _character(code_point: int) -> str:
    return "\ufffd" if 0xD800 <= code_point <= 0xDFFF else chr(code_point)
