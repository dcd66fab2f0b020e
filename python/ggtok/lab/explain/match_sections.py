"""The tables of WordPiece, Unigram, RWKV, PLaMo-2, and the test kind. Each takes O(n) time for n steps."""

from __future__ import annotations

from collections.abc import Iterator

from ...trace import Best, Candidate, Plamo2, Prefix, Rwkv, Test, Unigram, WordPiece, XcdaStep
from .origins import Cuts, Origins, shifted
from .tables import Mark, Row, Section, byte_name, section, walked, won, yes
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


def word_piece(steps: WordPiece, text: bytes, start: int) -> Iterator[Section]:
    """The tables of WordPiece for a fragment that starts at byte `start`."""
    rows = []
    for each in steps.code_points:
        written, classes = to_text(text[each.start : each.end]), ", ".join(each.classes)
        forms = (f"U+{each.code_point:04X}", _character(each.nfd), _character(each.lowercase))
        mark: Mark = "lost" if each.role == "dropped" else ""
        rows.append(Row((written, *forms, classes, ROLES[each.role]), (start + each.start, start + each.end), mark))
    yield section(
        "code_points",
        "Characters",
        "Accents and capitals go as the vocabulary says; spaces and punctuation separate words.",
        "character:text, code point:word, without accent:text, lower case:text, classes:word, what happens:word",
        rows,
    )
    rows = []
    for word in steps.words:
        what = "is unknown: a part of it is not a token" if word.is_unknown else "is made of tokens"
        cells = (word.text, " ".join(map(str, word.tokens)), what)
        rows.append(Row(cells, (start + word.start, start + word.end), won(not word.is_unknown)))
    yield section(
        "words",
        "Words",
        "Each word gets ▁ before it, and becomes tokens, or is unknown as a whole.",
        "word:text, tokens:number, what happens:word",
        rows,
    )
    yield section(
        "attempts",
        "Longest match",
        f"From each place in a word the longest text is looked up first (at most {steps.max_token_len} bytes), then"
        " shorter ones, until one is a token.",
        "word:text, start:number, end:number, looked up:text, token:number",
        [
            Row(
                (word.text, attempt.start, attempt.end, attempt.text, attempt.token),
                (start + word.start, start + word.end),
                won(attempt.token is not None),
            )
            for word in steps.words
            for attempt in word.attempts
        ],
    )


def unigram(steps: Unigram, text: bytes, start: int) -> Iterator[Section]:
    """The tables of Unigram for a fragment that starts at byte `start`."""
    original = Cuts(text, shifted(start))
    normalized = Cuts(to_bytes(steps.normalized), Origins(steps.origins, start).span)
    if steps.charsmap is not None:
        yield section(
            "charsmap",
            "The character map",
            "A compact double array (XCDA) from texts to what replaces them.",
            "units:number, BASE of the root:number, bytes of replacements:number",
            [Row((steps.charsmap.num_units, steps.charsmap.root_base, steps.charsmap.replacements_len))],
        )

    def prefix(part: Prefix) -> Row:
        outcome = (OUTCOMES[part.outcome], part.replacement, part.appended)
        mark: Mark = "won" if part.outcome == "replaced" else ""
        return original.row(part.start, part.end, *outcome, mark=mark)

    yield section(
        "prefixes",
        "Normalization",
        "From left to right, the longest text that the character map knows is replaced.",
        "start:number, end:number, text:text, what happens:word, replacement:text, appended:text",
        map(prefix, steps.prefixes),
    )
    yield section(
        "xcda",
        "Walks through the character map (XCDA)",
        "Each byte leads to the next node by exclusive or with BASE; the walk ends if LCHECK is another byte.",
        "start:number, byte:word, node:number, unit:word, BASE:number, LCHECK:word, LEAF:word, value:number,"
        " what happens:word",
        (_xcda_row(part, step, start) for part in steps.prefixes for step in part.walk),
    )
    yield section(
        "normalized",
        "Normalized text",
        "Tokens are looked up in this text.",
        "text:text, bytes:number",
        [Row((steps.normalized, len(normalized.text)), (start, start + len(text)))],
    )

    def candidate(at: int, each: Candidate) -> Row:
        cells = (at, each.end, each.text, each.token, each.score, each.score_sum, each.champion)
        what = "is the best so far" if each.wins else "loses"
        return Row((*cells, what), normalized.spans(at, each.end), won(each.wins))

    candidates = (
        (position.at, each) for position in steps.positions for each in (*position.candidates, position.unknown)
    )
    yield section(
        "lattice",
        "Lattice",
        "From each place every token that starts there continues the best path to it; the highest sum is kept.",
        "from:number, to:number, text:text, token:number, score:number, sum:number, best before:number,"
        " what happens:word",
        (candidate(at, each) for at, each in candidates if each is not None),
    )

    def best_row(best: Best) -> Row:
        token = None if best.token is None else to_text(normalized.text[best.from_ : best.at])
        span = normalized.spans(best.from_, best.at)
        mark: Mark = "lost" if best.score_sum is None else ""
        return Row((best.at, best.token, best.from_, token, best.score_sum), span, mark)

    yield section(
        "best",
        "Best path to each place (tokenization_results)",
        "The last token of the best path, where it starts, and the sum of scores.",
        "place:number, token:number, from:number, text:text, sum:number",
        map(best_row, steps.best),
    )
    rows = []
    for step in steps.path:
        what = "joins the unknown token after it" if step.joins_next else "is a token of the result"
        rows.append(normalized.row(step.from_, step.to, step.token, what, mark=won(not step.joins_next)))
    yield section(
        "path",
        "The way back",
        "From the end, each place names the token before it; consecutive unknown tokens become one.",
        "from:number, to:number, text:text, token:number, what happens:word",
        rows,
    )


def _xcda_row(part: Prefix, step: XcdaStep, start: int) -> Row:
    unit = None if step.unit is None else f"0x{step.unit:08x}"
    what = "goes on" if step.matched else "ends: no node" if unit is None else "ends: LCHECK differs"
    lcheck, leaf = byte_name(step.lcheck), yes(step.leaf)
    cells = (part.start, byte_name(step.byte), step.node, unit, step.base, lcheck, leaf, step.value, what)
    return Row(cells, (start + part.start, start + part.end), walked(step.value, step.matched))


def rwkv(steps: Rwkv, text: bytes, start: int) -> Iterator[Section]:
    """The tables of RWKV for a fragment that starts at byte `start`."""
    cuts = Cuts(text, shifted(start))
    rows, walks = [], []
    for match in steps.matches:
        for end, step in enumerate(match.walk, match.start + 1):
            what = "goes on" if step.matched else "ends: no token continues like this"
            cells = (match.start, byte_name(step.byte), to_text(text[match.start : end]), step.token, what)
            walks.append(Row(cells, cuts.spans(match.start, end), walked(step.token, step.matched)))
        what = "no token starts here: unknown" if match.is_unknown else "is the longest token"
        rows.append(cuts.row(match.start, match.end, match.token, what, mark=won(not match.is_unknown)))
    yield section(
        "walks",
        "Walks through the trie",
        "Byte by byte for as long as some token continues; the last token that was met is taken.",
        "start:number, byte:word, so far:text, token:number, what happens:word",
        walks,
    )
    yield section(
        "matches",
        "Longest matches",
        "The longest token at each place becomes a token of the result.",
        "start:number, end:number, text:text, token:number, what happens:word",
        rows,
    )


def plamo2(steps: Plamo2, text: bytes, start: int) -> Iterator[Section]:
    """The tables of PLaMo-2 for a fragment that starts at byte `start`."""
    cuts = Cuts(to_bytes(steps.text), Origins(steps.origins, start).span)
    bom = " A byte order mark at its start is skipped." if steps.skipped_bom else ""
    yield section(
        "rewritten",
        "Text",
        f"Tokens are looked up in this text.{bom}",
        "text:text, bytes:number",
        [Row((steps.text, len(cuts.text)), (start, start + len(text)))],
    )
    rows = []
    for position in steps.positions:
        for each in position.candidates:
            what = "is taken" if each.wins else "costs more"
            cells = (position.at, position.state, each.text, each.token, each.cost, each.total, what)
            span = cuts.spans(position.at, position.at + len(to_bytes(each.text)))
            rows.append(Row(cells, span, won(each.wins)))
    yield section(
        "costs",
        "Costs, from the end to the start",
        "At each place, the token is taken from which the path to the end costs least.",
        "at:number, state:text, text:text, token:number, cost:number, total:number, what happens:word",
        rows,
    )
    rows = []
    for step in steps.path:
        spelled = " ".join(map(str, step.bytes)) or None
        rows.append(cuts.row(step.start, step.end, step.token, spelled, mark=won(step.token is not None)))
    yield section(
        "path",
        "The path to the end",
        "From the start, the token taken at each place; an unknown character becomes its bytes.",
        "start:number, end:number, text:text, token:number, bytes:number",
        rows,
    )


def test(steps: Test, text: bytes, start: int) -> Iterator[Section]:
    """The tables of the test kind for a fragment that starts at byte `start`."""
    cuts = Cuts(text, shifted(start))
    yield section(
        "groups",
        "Groups of five bytes",
        "The hash of each group, modulo the number of tokens, is a token.",
        "start:number, end:number, bytes:text, hash:number, token:number",
        [cuts.row(group.start, group.end, group.hash, group.token) for group in steps.groups],
    )


def _character(code_point: int) -> str:
    return "\ufffd" if 0xD800 <= code_point <= 0xDFFF else chr(code_point)
