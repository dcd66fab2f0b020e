"""The units of Unigram and PLaMo-2, which search the best of all ways, and of WordPiece, RWKV and the test kind, which
take the longest token that fits.

Each step takes O(n) time for what it shows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from rich.cells import cell_len

from ...trace import (
    Candidate,
    CostPosition,
    CostStep,
    HashedGroup,
    LatticePosition,
    Match,
    PathStep,
    Plamo2,
    Prefix,
    Rwkv,
    Test,
    Unigram,
    Word,
    WordPiece,
)
from .origins import Origins, Spans
from .tables import Span
from .units import Line, Said, Step, Unit, counted, face, joined, number, text_face
from .utf8 import to_bytes, to_text
from .words import said, say

CONTEXT = 12
"""Bytes of a text that a picture shows before a place, and three times as many after it."""

MOST_NAMED = 6
"""Texts that a sentence lists."""

MOST_TOLD = 2
"""How many of the tokens that start at a position a sentence names: a picture has them all."""

COST = 10_000
"""What PLaMo-2 multiplies the logarithm of a probability by. Readers see costs without it, as Unigram's scores are."""

LONGEST_WAY = 12
"""Tokens of a word, which has no end in a text without spaces."""

SPACE = "▁".encode()


class Arc(NamedTuple):
    """A token over a text."""

    start: int
    end: int
    note: str
    style: str


def arcs(text: bytes, at: int, found: Sequence[Arc]) -> list[Line]:
    """A part of a text around byte `at`, and below it a line for each token, as long as the token."""
    low = max(0, min([at - CONTEXT, *(each.start for each in found)]))
    high = min(len(text), max([at + 3 * CONTEXT, *(each.end for each in found)]))
    while 0 < low < len(text) and text[low] & 0xC0 == 0x80:
        low -= 1
    columns, shown, place = {low: 0}, "", low
    while place < high:
        size = next((n for n in (1, 2, 3, 4) if isinstance(to_text(text[place : place + n]), str)), 1)
        shown += face(text[place : place + size])
        columns |= dict.fromkeys(range(place + 1, place + size), columns[place])
        place += size
        columns[place] = cell_len(shown)
    lines: list[Line] = [[(shown, "")]]
    for arc in found:
        start, end = columns[arc.start], columns[min(arc.end, place)]
        mark = f"╰{'─' * (end - start - 2)}╯" if end - start > 1 else "╵"
        lines.append([(" " * start, ""), (mark, arc.style), (f" {arc.note}", arc.style)])
    return lines


def _named(texts: Sequence[str]) -> str:
    more = len(texts) - MOST_NAMED
    return ", ".join(texts[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


# Unigram


def unigram(steps: Unigram, text: bytes, start: int, first: int) -> Iterator[Unit]:
    """The units of Unigram for a fragment that starts at byte `start`; its first token has the place `first`."""
    spans = Origins(steps.origins, start).span
    normalized = to_bytes(steps.normalized)
    if steps.prefixes:
        yield _normalizing(steps.prefixes, text, normalized, start, first)
    yield from _trying(steps, normalized, spans, first)
    yield from _walking_back(steps, normalized, spans, first)


def _normalizing(prefixes: Sequence[Prefix], text: bytes, after: bytes, start: int, first: int) -> Unit:
    def outcome(part: Prefix) -> tuple[str, str, str]:
        before, appended = face(text[part.start : part.end]), text_face(part.appended)
        kind = part.outcome
        if not part.appended and kind != "user_defined":
            kind = "space" if part.replacement == " " else "dropped"
        return kind, before, appended

    changed = [part for part in prefixes if outcome(part)[0] in ("replaced", "invalid", "dropped")]

    def whole() -> Step:
        first = changed[0] if changed else None
        values = {} if first is None else {"before": outcome(first)[1], "after": outcome(first)[2] or "nothing"}
        caption = [] if not changed and text != after else counted("normalized", len(changed), **values)
        caption = joined(caption, said("captions.spaces") if b" " in text else [])
        if after.startswith(SPACE) and to_bytes(prefixes[0].replacement)[:1] != b" ":
            caption = joined(caption, said("captions.spaces_prefix"))
        return Step(caption, [[(face(text), "")], [(face(after), "won")]], (start, start + len(text)))

    def inside(step: int) -> Step:
        kind, before, appended = outcome(prefixes[step])
        done = [text_face(part.appended) for part in prefixes[:step]]
        line = [("".join(done)[-4 * CONTEXT :], ""), (appended, "current")]
        span = (start + prefixes[step].start, start + prefixes[step].end)
        return Step(said(f"captions.rewrite_{kind}", text=before, after=appended), [line], span)

    return Unit(stage="normalize", tokens=range(first, first), whole=whole, length=len(prefixes), inside=inside)


def _trying(steps: Unigram, text: bytes, spans: Spans, first: int) -> Iterator[Unit]:
    best = {each.at: each for each in steps.best}
    for place, position in enumerate(steps.positions):
        found = [*position.candidates, *([position.unknown] if position.unknown else [])]

        def whole(place: int = place, position: LatticePosition = position, found: list[Candidate] = found) -> Step:
            at = position.at
            shown = [Arc(at, each.end, _note(each), "won" if each.wins else "lost") for each in found]
            last = best.get(at)
            told = said("captions.try_start") if place == 0 else []
            if position.score_sum is None:
                return Step(joined(told, said("captions.try_unreached")), arcs(text, at, []), spans(at, at + 1))
            total = number(position.score_sum)
            here = say("captions.beginning")
            if last is not None and last.from_ < at:
                here = say("captions.best_here", text=face(text[last.from_ : at]), total=total)
            told = joined(told, counted("try", len(position.candidates), before=here))
            for each in sorted(found, key=lambda each: not each.wins)[: MOST_TOLD if place else 0]:
                told = joined(told, _tried(each, is_unknown=each is position.unknown))
            return Step(told, arcs(text, at, shown), spans(at, max((each.end for each in found), default=at + 1)))

        yield Unit(stage="try", tokens=range(first, first), whole=whole)


def _note(each: Candidate) -> str:
    return f"{text_face(each.text)} {number(each.score_sum)}" + ("" if each.wins else " rejected")


def _tried(each: Candidate, *, is_unknown: bool) -> Said:
    key = "try_new" if each.champion is None else "try_wins" if each.wins else "try_loses"
    key = "try_unknown" if is_unknown else key
    score, total, champion = number(each.score), number(each.score_sum), number(each.champion)
    return said(f"captions.{key}", text=text_face(each.text), score=score, total=total, champion=champion)


def _walking_back(steps: Unigram, text: bytes, spans: Spans, first: int) -> Iterator[Unit]:
    """One unit for each word of the best way, from the end."""
    num_tokens = sum(not step.joins_next for step in steps.path)
    stop = first + num_tokens
    words: list[list[PathStep]] = [[]]
    for at, step in enumerate(steps.path):
        joins = at + 1 < len(steps.path) and steps.path[at + 1].joins_next
        words[-1].append(step)
        if text[step.from_ : step.to].startswith(SPACE) or (len(words[-1]) >= LONGEST_WAY and not joins):
            words.append([])
    words = [word for word in words if word]
    sums = {each.at: each.score_sum for each in steps.best}
    runners = _runners_up(steps, words)
    for at, word in enumerate(words):
        count = sum(not step.joins_next for step in word)
        tokens, stop = range(stop - count, stop), stop - count

        def whole(at: int = at, word: list[PathStep] = word) -> Step:
            told = said("captions.back_start") if at == 0 else []
            return Step(joined(told, _way(word, text, sums, runners)), _back(word, len(word), text, sums), _span(word))

        def inside(step: int, word: list[PathStep] = word) -> Step:
            each = word[step]
            values = {"from": number(sums.get(each.from_)), "to": number(sums.get(each.to)), "token": each.token}
            key = "back_joins" if each.joins_next else "back"
            told = said(f"captions.{key}", text=face(text[each.from_ : each.to]), **values)
            return Step(told, _back(word, step + 1, text, sums), spans(each.from_, each.to))

        def _span(word: list[PathStep]) -> Span:
            return spans(word[-1].from_, word[0].to)

        def line(width: int, word: list[PathStep] = word) -> str:
            parts = " ".join(face(text[each.from_ : each.to]) for each in reversed(word))
            score = (sums.get(word[0].to) or 0) - (sums.get(word[-1].from_) or 0)
            other = runners.get((word[-1].from_, word[0].to))
            shown = f"{parts}   {number(round(score, 2))}"
            more = f"{shown}; next best {' '.join(other[0])} {number(other[1])}" if other else shown
            return more if cell_len(more) <= width else shown

        length = len(word) if len(word) > 1 else 0
        yield Unit(stage="back", tokens=tokens, whole=whole, length=length, inside=inside, line=line)


def _back(word: Sequence[PathStep], upto: int, text: bytes, sums: dict[int, float | None]) -> list[Line]:
    shown = [
        Arc(each.from_, each.to, f"{face(text[each.from_ : each.to])} {number(sums.get(each.to))}", style)
        for each, style in zip(word[:upto], ["won"] * (upto - 1) + ["current"], strict=True)
    ]
    return arcs(text, word[upto - 1].from_, shown[::-1])


def _way(
    word: Sequence[PathStep], text: bytes, sums: dict[int, float | None], runners: dict[Span, tuple[list[str], float]]
) -> Said:
    result = " · ".join(face(text[each.from_ : each.to]) for each in reversed(word))
    told = said("captions.way", result=result, total=number(sums.get(word[0].to)))
    other = runners.get((word[-1].from_, word[0].to))
    if other is None:
        return told
    total = number((sums.get(word[-1].from_) or 0) + other[1])
    return joined(told, said("captions.way_next", text=" · ".join(other[0]), total=total))


def _runners_up(steps: Unigram, words: Sequence[Sequence[PathStep]]) -> dict[Span, tuple[list[str], float]]:
    """For each word of the path, the best other way from its start to its end whose last token differs: its parts and
    the sum of their scores. O(n) for n candidates."""
    text = to_bytes(steps.normalized)
    ways = {each.at: each for each in steps.best}
    ends = {word[0].to: word for word in words}
    best: dict[int, tuple[float, int]] = {}
    for position in steps.positions:
        for each in (*position.candidates, *filter(None, [position.unknown])):
            word = ends.get(each.end)
            if word is None or each.score_sum is None or position.at < word[-1].from_:
                continue
            if word[0].from_ != position.at and (each.end not in best or each.score_sum > best[each.end][0]):
                best[each.end] = each.score_sum, position.at
    found = {}
    for end, (total, at) in best.items():
        start = ends[end][-1].from_
        parts, place = [face(text[at:end])], at
        while place > start:
            way = ways[place]
            parts.append(face(text[way.from_ : place]))
            place = way.from_
        base = ways[start].score_sum if start else 0.0
        if place == start and base is not None:
            found[start, end] = parts[::-1], total - base
    return found


# PLaMo-2


def _cost(cost: int) -> str:
    """A cost as readers see it, rounded as the page rounds it."""
    return number((cost + COST // 200) // (COST // 100) / 100)


def plamo2(steps: Plamo2, text: bytes, start: int, first: int) -> Iterator[Unit]:
    """The units of PLaMo-2, as `unigram`; its places come from right to left."""
    spans = Origins(steps.origins, start).span
    data = to_bytes(steps.text)
    for place, position in enumerate(steps.positions):

        def whole(place: int = place, position: CostPosition = position) -> Step:
            found, at = position.candidates, position.at
            told = said("captions.cost_start") if place == 0 else []
            told = joined(told, counted("cost", sum(each.token is not None for each in found)))
            shown = []
            for nth, each in enumerate(sorted(found, key=lambda each: not each.wins)):
                name = text_face(each.text)
                values = {"cost": _cost(each.cost), "total": _cost(each.total)}
                style = "won" if each.wins else "lost"
                shown.append(Arc(at, at + len(to_bytes(each.text)), f"{name} {values['total']}", style))
                if each.token is None:
                    kind = "bytes_win" if each.wins else "unknown"
                else:
                    kind = "wins" if each.wins else "loses"
                if nth < MOST_TOLD:
                    told = joined(told, said(f"captions.cost_{kind}", text=name, **values))
            end = max((each.end for each in shown), default=at + 1)
            return Step(told, arcs(data, at, shown), spans(at, end))

        yield Unit(stage="try", tokens=range(first, first), whole=whole)
    for step in steps.path:
        tokens = range(first, first + (1 if step.token is not None else len(step.bytes)))
        first = tokens.stop

        def taken(step: CostStep = step) -> Step:
            low, high = step.start, step.end
            name, token = face(data[low:high]), step.token
            if token is None:
                told = said("captions.cost_bytes", text=name, tokens=", ".join(map(str, step.bytes)))
            else:
                told = said("captions.cost_path", text=name, token=token)
            return Step(told, arcs(data, low, [Arc(low, high, name, "current")]), spans(low, high))

        def line(width: int, step: CostStep = step) -> str:
            return face(data[step.start : step.end])

        yield Unit(stage="back", tokens=tokens, whole=taken, line=line)


# WordPiece, RWKV, test


def word_piece(steps: WordPiece, text: bytes, start: int, first: int) -> Iterator[Unit]:
    """The units of WordPiece: one for each word."""
    changed = [each for each in steps.code_points if each.lowercase != each.code_point]

    def words() -> Step:
        told = counted("words", len(steps.words))
        if changed:
            before, after = (chr(changed[0].code_point), chr(changed[0].lowercase))
            told = joined(told, said("captions.letters_changed", before=before, after=after))
        line: Line = []
        for word in steps.words:
            line += [("│", "lost")] * bool(line) + [(text_face(word.text), "")]
        return Step(told, [line], (start, start + len(text)))

    yield Unit(stage="split", tokens=range(first, first), whole=words)
    for word in steps.words:
        yield _matching(word, range(first, first + len(word.tokens)), (start + word.start, start + word.end))
        first += len(word.tokens)


def _matching(word: Word, tokens: range, span: Span) -> Unit:
    data, name = to_bytes(word.text), text_face(word.text)
    # Bytes that are not whole characters are looked up too, and are never found.
    known = [each for each in word.attempts if each.token is not None or isinstance(each.text, str)]
    tries = [list(group) for _, group in groupby(known, key=lambda attempt: attempt.start)]
    taken = [group[-1] for group in tries if group[-1].token is not None]
    result = " · ".join(text_face(each.text) for each in taken)

    def whole() -> Step:
        if word.is_unknown:
            told = said("captions.unknown_word", text=name, token=word.tokens[0])
        elif len(taken) == 1:
            told = said("captions.piece_whole", text=name, token=word.tokens[0])
        else:
            told = said("captions.pieces", text=name, result=result)
        return Step(told, _taken(len(tries)), span)

    def inside(step: int) -> Step:
        *longer, last = tries[step]
        if last.token is None:
            before = " · ".join(text_face(each.text) for each in taken[:step]) or say("captions.beginning")
            values = {"before": before, "text": text_face(last.text), "token": word.tokens[0]}
            return Step(said("captions.nothing_fits", **values), _taken(step + 1), span)
        listed = _named([text_face(each.text) for each in longer])
        key = "found_after" if longer else "found"
        told = counted(key, len(longer), text=text_face(last.text), token=last.token, longer=listed)
        return Step(told, _taken(step + 1), span)

    def _taken(upto: int) -> list[Line]:
        shown = [
            Arc(group[-1].start, group[-1].end, text_face(group[-1].text), "lost" if group[-1].token is None else "won")
            for group in tries[:upto]
        ]
        if shown:
            shown[-1] = shown[-1]._replace(style="current")
        return arcs(data, tries[min(upto, len(tries)) - 1][0].start if tries else 0, shown)

    def line(width: int) -> str:
        return f"{name} → unknown" if word.is_unknown else f"{name} → {result}" if len(taken) > 1 else name

    length = len(tries) if len(tries) > 1 else 0
    return Unit(stage="match", tokens=tokens, whole=whole, length=length, inside=inside, line=line)


def rwkv(steps: Rwkv, text: bytes, start: int, first: int) -> Iterator[Unit]:
    """The units of RWKV: one for each token."""
    for place, match in enumerate(steps.matches, first):
        span = (start + match.start, start + match.end)

        def whole(match: Match = match, span: Span = span) -> Step:
            name = face(text[match.start : match.end])
            ends = [end for end, step in enumerate(match.walk, match.start + 1) if step.token is not None]
            shorter = [face(text[match.start : end]) for end in ends if end < match.end]
            if match.is_unknown:
                told = said("captions.longest_none", text=name, token=match.token)
            elif shorter:
                values = {"n": len(shorter) + 1, "shorter": _named(shorter[::-1])}
                told = said("captions.longest_of", text=name, token=match.token, **values)
            else:
                told = said("captions.longest", text=name, token=match.token)
            shown = [Arc(match.start, end, face(text[match.start : end]), "lost") for end in ends if end < match.end]
            return Step(
                told, arcs(text, match.start, [Arc(match.start, match.end, name, "current"), *shown[::-1]]), span
            )

        def line(width: int, match: Match = match) -> str:
            return face(text[match.start : match.end])

        yield Unit(stage="match", tokens=range(place, place + 1), whole=whole, line=line)


def test(steps: Test, text: bytes, start: int, first: int) -> Iterator[Unit]:
    """The units of the test kind: one for each group of bytes."""
    for place, group in enumerate(steps.groups, first):

        def whole(group: HashedGroup = group) -> Step:
            name = face(text[group.start : group.end])
            told = said("captions.hash", text=name, hash=f"{group.hash:,}", token=group.token)
            shown = [Arc(group.start, group.end, name, "current")]
            return Step(told, arcs(text, group.start, shown), (start + group.start, start + group.end))

        def line(width: int, group: HashedGroup = group) -> str:
            return face(text[group.start : group.end])

        yield Unit(stage="match", tokens=range(place, place + 1), whole=whole, line=line)
