"""The tables of WordPiece, Unigram, RWKV, PLaMo-2, and the test kind. Each takes O(n) time for n steps."""

from __future__ import annotations

from collections.abc import Iterator

from ..trace import Origin, Plamo2, Rwkv, Test, Unigram, WordPiece
from .convert import to_bytes, to_text
from .origins import Origins
from .tables import Row, Section, section

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
    "invalid": "is not UTF-8: becomes U+FFFD",
}


def word_piece(steps: WordPiece, text: bytes, start: int) -> Iterator[Section]:
    """The tables of WordPiece for a fragment that starts at byte `start`."""
    yield section(
        "code_points",
        "Characters",
        "Accents and capitals go as the vocabulary says; spaces and punctuation part words.",
        "character:text, code point:word, without accent:text, lower case:text, classes:word, what happens:word",
        [
            Row(
                (
                    to_text(text[code_point.start : code_point.end]),
                    f"U+{code_point.code_point:04X}",
                    _character(code_point.nfd),
                    _character(code_point.lowercase),
                    ", ".join(code_point.classes),
                    ROLES[code_point.role],
                ),
                (start + code_point.start, start + code_point.end),
                "lost" if code_point.role == "dropped" else "",
            )
            for code_point in steps.code_points
        ],
    )
    yield section(
        "words",
        "Words",
        "Each word gets ▁ before it, and becomes tokens, or is unknown as a whole.",
        "word:text, tokens:number, what happens:word",
        [
            Row(
                (
                    word.text,
                    " ".join(map(str, word.tokens)),
                    "is unknown: a part of it is no token" if word.is_unknown else "is made of tokens",
                ),
                (start + word.start, start + word.end),
                "lost" if word.is_unknown else "won",
            )
            for word in steps.words
        ],
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
                "lost" if attempt.token is None else "won",
            )
            for word in steps.words
            for attempt in word.attempts
        ],
    )


def unigram(steps: Unigram, text: bytes, start: int) -> Iterator[Section]:
    """The tables of Unigram for a fragment that starts at byte `start`."""
    normalized = to_bytes(steps.normalized)
    spans = Origins(_appended(steps), start).span
    if steps.charsmap is not None:
        yield section(
            "charsmap",
            "The character map",
            "A compact double array (XCDA) from texts to what replaces them.",
            "units:number, BASE of the root:number, bytes of replacements:number",
            [Row((steps.charsmap.num_units, steps.charsmap.root_base, steps.charsmap.replacements_len))],
        )
    yield section(
        "prefixes",
        "Normalization",
        "From left to right, the longest text that the character map knows is replaced.",
        "start:number, end:number, text:text, what happens:word, replacement:text, appended:text",
        [
            Row(
                (
                    part.start,
                    part.end,
                    to_text(text[part.start : part.end]),
                    OUTCOMES[part.outcome],
                    part.replacement,
                    part.appended,
                ),
                (start + part.start, start + part.end),
                "won" if part.outcome == "replaced" else "",
            )
            for part in steps.prefixes
        ],
    )
    yield section(
        "xcda",
        "Walks through the character map (XCDA)",
        "Each byte leads by exclusive or with BASE to the next node; the walk ends where LCHECK is another byte.",
        "start:number, byte:word, node:number, unit:word, BASE:number, LCHECK:word, LEAF:word, value:number,"
        " what happens:word",
        [
            Row(
                (
                    part.start,
                    _byte(step.byte),
                    step.node,
                    None if step.unit is None else f"0x{step.unit:08x}",
                    step.base,
                    _byte(step.lcheck),
                    "yes" if step.leaf else "no",
                    step.value,
                    "goes on" if step.matched else "ends: LCHECK differs" if step.unit is not None else "ends: no node",
                ),
                (start + part.start, start + part.end),
                "won" if step.value is not None else "" if step.matched else "lost",
            )
            for part in steps.prefixes
            for step in part.walk
        ],
    )
    yield section(
        "normalized",
        "Normalized text",
        "Tokens are looked for in this text.",
        "text:text, bytes:number",
        [Row((steps.normalized, len(normalized)), (start, start + len(text)))],
    )
    yield section(
        "lattice",
        "Lattice",
        "From each place every token that starts there continues the best way to it; the highest sum is kept.",
        "from:number, to:number, text:text, token:number, score:number, sum:number, best before:number,"
        " what happens:word",
        [
            Row(
                (
                    position.at,
                    candidate.end,
                    candidate.text,
                    candidate.token,
                    candidate.score,
                    candidate.score_sum,
                    candidate.champion,
                    "is the best so far" if candidate.wins else "loses",
                ),
                spans(position.at, candidate.end),
                "won" if candidate.wins else "lost",
            )
            for position in steps.positions
            for candidate in (*position.candidates, position.unknown)
            if candidate is not None
        ],
    )
    yield section(
        "best",
        "Best way to each place (tokenization_results)",
        "The last token of the best way, where it starts, and the sum of scores.",
        "place:number, token:number, from:number, text:text, sum:number",
        [
            Row(
                (
                    best.at,
                    best.token,
                    best.from_,
                    None if best.token is None else to_text(normalized[best.from_ : best.at]),
                    best.score_sum,
                ),
                spans(best.from_, best.at),
                "lost" if best.score_sum is None else "",
            )
            for best in steps.best
        ],
    )
    yield section(
        "path",
        "The way back",
        "From the end, each place names the token before it; unknown tokens in a row become one.",
        "from:number, to:number, text:text, token:number, what happens:word",
        [
            Row(
                (
                    step.from_,
                    step.to,
                    to_text(normalized[step.from_ : step.to]),
                    step.token,
                    "joins the unknown token after it" if step.joins_next else "is a token of the result",
                ),
                spans(step.from_, step.to),
                "lost" if step.joins_next else "won",
            )
            for step in steps.path
        ],
    )


def _appended(steps: Unigram) -> Iterator[Origin]:
    # What was not appended for a part of the text is the space before it.
    sizes = [len(to_bytes(part.appended)) for part in steps.prefixes]
    at = len(to_bytes(steps.normalized)) - sum(sizes)
    if at:
        yield Origin(0, at, 0, 0)
    for part, size in zip(steps.prefixes, sizes, strict=True):
        if size:
            yield Origin(at, at + size, part.start, part.end)
        at += size


def rwkv(steps: Rwkv, text: bytes, start: int) -> Iterator[Section]:
    """The tables of RWKV for a fragment that starts at byte `start`."""
    yield section(
        "walks",
        "Walks through the trie",
        "Byte by byte as far as a token goes on; the last token that was met is taken.",
        "start:number, byte:word, so far:text, token:number, what happens:word",
        [
            Row(
                (
                    match.start,
                    _byte(step.byte),
                    to_text(text[match.start : match.start + place]),
                    step.token,
                    "goes on" if step.matched else "ends: no token goes on like this",
                ),
                (start + match.start, start + match.start + place),
                "won" if step.token is not None else "" if step.matched else "lost",
            )
            for match in steps.matches
            for place, step in enumerate(match.walk, 1)
        ],
    )
    yield section(
        "matches",
        "Longest matches",
        "The longest token at each place becomes a token of the result.",
        "start:number, end:number, text:text, token:number, what happens:word",
        [
            Row(
                (
                    match.start,
                    match.end,
                    to_text(text[match.start : match.end]),
                    match.token,
                    "no token starts here: unknown" if match.is_unknown else "is the longest token",
                ),
                (start + match.start, start + match.end),
                "lost" if match.is_unknown else "won",
            )
            for match in steps.matches
        ],
    )


def plamo2(steps: Plamo2, text: bytes, start: int) -> Iterator[Section]:
    """The tables of PLaMo-2 for a fragment that starts at byte `start`."""
    whole = to_bytes(steps.text)
    spans = Origins(steps.origins, start).span
    bom = " A byte order mark at its start is skipped." if steps.skipped_bom else ""
    yield section(
        "rewritten",
        "Text",
        f"Tokens are looked for in this text.{bom}",
        "text:text, bytes:number",
        [Row((steps.text, len(whole)), (start, start + len(text)))],
    )
    yield section(
        "costs",
        "Costs, from the end to the start",
        "At each place the token is taken with which the way to the end costs least.",
        "at:number, state:text, text:text, token:number, cost:number, total:number, what happens:word",
        [
            Row(
                (
                    position.at,
                    position.state,
                    candidate.text,
                    candidate.token,
                    candidate.cost,
                    candidate.total,
                    "is taken" if candidate.wins else "costs more",
                ),
                spans(position.at, position.at + len(to_bytes(candidate.text))),
                "won" if candidate.wins else "lost",
            )
            for position in steps.positions
            for candidate in position.candidates
        ],
    )
    yield section(
        "path",
        "The way to the end",
        "From the start, the token taken at each place; an unknown character becomes its bytes.",
        "start:number, end:number, text:text, token:number, bytes:number",
        [
            Row(
                (
                    step.start,
                    step.end,
                    to_text(whole[step.start : step.end]),
                    step.token,
                    " ".join(map(str, step.bytes)) or None,
                ),
                spans(step.start, step.end),
                "lost" if step.token is None else "won",
            )
            for step in steps.path
        ],
    )


def test(steps: Test, text: bytes, start: int) -> Iterator[Section]:
    """The tables of the test kind for a fragment that starts at byte `start`."""
    yield section(
        "groups",
        "Groups of five bytes",
        "The hash of each group, modulo the number of tokens, is a token.",
        "start:number, end:number, bytes:text, hash:number, token:number",
        [
            Row(
                (group.start, group.end, to_text(text[group.start : group.end]), group.hash, group.token),
                (start + group.start, start + group.end),
            )
            for group in steps.groups
        ],
    )


def _character(code_point: int) -> str:
    return "\ufffd" if 0xD800 <= code_point <= 0xDFFF else chr(code_point)


def _byte(byte: int) -> str:
    """A byte as a reader knows it."""
    return f"{byte:02x} {chr(byte)}" if 0x20 < byte < 0x7F else f"{byte:02x}"
