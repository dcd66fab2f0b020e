"""The units of SPM and of byte-pair encoding: how a text is cut, and for each piece or word how its symbols merge.

A step inside is a merge, which is found again from the first one: O(n) time for a piece with n merges.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

from rich.cells import cell_len

from ...trace import Bigram, Bpe, HybridDna, Piece, Pop, Spm, Symbol, SymbolTokens
from .origins import Origins, Spans
from .tables import Span
from .units import Line, Said, Step, Unit, counted, face, joined, number, text_face
from .utf8 import to_bytes
from .words import said

LONGEST_WORD = 40
"""Symbols after which a word of SPM ends, even without a space."""

MOST_STATES = 60
"""Symbols of a piece up to which a line shows how they merge; of a longer one it shows the last state alone."""

MOST_TOLD = 12
"""How many of the symbols that are left a sentence names."""


class Word(NamedTuple):
    """What merges by itself: a piece of BPE, or a word of SPM, over whose ends no merge goes."""

    data: bytes
    symbols: Sequence[Symbol]
    pops: Sequence[Pop]
    queue: Sequence[Bigram]
    left: Sequence[SymbolTokens]
    sizes: Sequence[int]
    """The bytes of each symbol."""
    span: Span
    of_bytes: bool
    """Whether symbols are bytes at first, and some of them only parts of characters."""
    is_spelled: bool
    """Whether a character of a symbol stands for a byte."""


class Merged(NamedTuple):
    """The symbols of a word after some merges."""

    nodes: list[tuple[int, int]]
    """The first byte of each symbol, and the byte after its last."""
    current: int
    """The symbol that the last merge made."""
    waiting: list[Bigram]
    """The pairs that can merge."""


def spm(steps: Spm, text: bytes, start: int, first: int) -> Iterator[Unit]:
    """The units of SPM for a fragment that starts at byte `start`; its first token has the place `first`."""
    spans = Origins(steps.origins, start).span
    escaped = to_bytes(steps.escaped)

    def spaces() -> Step:
        caption = said("captions.spaces" if b" " in text else "captions.spaces_none")
        if steps.space_prefix:
            caption = joined(caption, said("captions.spaces_prefix"))
        return Step(caption, [[(face(text), "")], [(face(escaped), "won")]], (start, start + len(text)))

    yield Unit(stage="normalize", tokens=range(first, first), whole=spaces)
    at = 0
    for word in _words(steps):
        sizes = [symbol.n for symbol in word.symbols]
        end = at + sum(sizes)
        num_tokens = sum(map(num_tokens_of, word.left))
        made = word._replace(data=escaped[at:end], sizes=sizes, span=spans(at, end))
        yield merging(made, range(first, first + num_tokens))
        at, first = end, first + num_tokens


def _words(steps: Spm) -> list[Word]:
    """The merges of a fragment word by word. No merge goes over the end of a symbol that is left."""
    words: list[tuple[list[Symbol], list[Pop], list[Bigram], list[SymbolTokens]]] = []
    of_symbol: list[int] = []
    left = -1
    for symbol, final in zip(steps.merging.symbols, steps.merging.merged, strict=True):
        if final.n:
            left += 1
            if not words or len(words[-1][0]) >= LONGEST_WORD or to_bytes(final.text).startswith("▁".encode()):
                words.append(([], [], [], []))
            words[-1][3].append(steps.symbols[left])
        words[-1][0].append(symbol)
        of_symbol.append(len(words) - 1)
    for bigram in steps.merging.queue:
        if of_symbol[bigram.left] == of_symbol[bigram.right]:
            words[of_symbol[bigram.left]][2].append(bigram)
    for pop in steps.merging.pops:
        if of_symbol[pop.bigram.left] == of_symbol[pop.bigram.right]:
            words[of_symbol[pop.bigram.left]][1].append(pop)
    return [Word(b"", symbols, pops, queue, rest, (), (0, 0), False, False) for symbols, pops, queue, rest in words]


def bpe(steps: Bpe, text: bytes, start: int, first: int) -> Iterator[Unit]:
    """The units of byte-pair encoding, as `spm`."""
    return _bpe(steps, Origins(steps.origins, start).span, (start, start + len(text)), text, first)


def _bpe(steps: Bpe, spans: Spans, span: Span, before: bytes, first: int) -> Iterator[Unit]:
    whole = to_bytes(steps.text)
    if steps.rewritten:

        def rewritten() -> Step:
            caption = joined(*(said(f"captions.{name}") for name in steps.rewritten))
            return Step(caption, [[(face(before), "")], [(face(whole), "won")]], span)

        yield Unit(stage="normalize", tokens=range(first, first), whole=rewritten)
    passes = [[(cut.start, cut.end) for cut in made.cuts] for made in steps.passes]
    for place, cuts in enumerate(passes or [[(0, len(whole))] if whole else []], 1):

        def split(place: int = place, cuts: list[Span] = cuts) -> Step:
            if not passes:
                caption = said("captions.split_none")
            elif place == len(passes):
                caption = counted("split", len(cuts))
            else:
                caption = counted("split_part", len(cuts), at=place, count=len(passes))
            return Step(caption, [strip(whole, cuts)], span)

        yield Unit(stage="split", tokens=range(first, first), whole=split)
    for piece in steps.pieces:
        num_tokens = 1 if piece.whole is not None else sum(map(num_tokens_of, piece.symbols))
        tokens = range(first, first + num_tokens)
        first += num_tokens
        own = spans(piece.start, piece.end)
        yield _taken_whole(piece, tokens, own) if piece.whole is not None else merging(_word(piece, own), tokens)


def strip(text: bytes, cuts: Sequence[Span]) -> Line:
    """A text with its parts in turn in two styles, and a bar between them."""
    line: Line = []
    for start, end in cuts:
        line += [("│", "lost")] * bool(line) + [(face(text[start:end]), "")]
    return line


def _taken_whole(piece: Piece, tokens: range, span: Span) -> Unit:
    shown = text_face(piece.text)

    def whole() -> Step:
        return Step(said("captions.whole", text=shown, token=piece.whole), [[(shown, "won")]], span)

    return Unit(stage="merge", tokens=tokens, whole=whole, line=lambda width: shown)


def _word(piece: Piece, span: Span) -> Word:
    is_spelled, merges = piece.spelled != piece.text, piece.merging
    sizes = [len(symbol.text) if is_spelled else symbol.n for symbol in merges.symbols]
    data = to_bytes(piece.text)
    of_bytes = not data.isascii() and all(size == 1 for size in sizes)
    return Word(data, merges.symbols, merges.pops, merges.queue, piece.symbols, sizes, span, of_bytes, is_spelled)


def hybrid_dna(steps: HybridDna, text: bytes, start: int, first: int) -> Iterator[Unit]:
    """The units of hybrid DNA, as `spm`."""
    spans = Origins(steps.origins, start).span
    whole = to_bytes(steps.text)
    for stretch in steps.stretches:
        span = spans(stretch.start, stretch.end)
        if stretch.bpe is not None:
            inner = Origins(stretch.bpe.origins, 0).span

            def composed(low: int, high: int, inner: Spans = inner) -> Span:
                return spans(*inner(low, high))

            for unit in _bpe(stretch.bpe, composed, span, whole[stretch.start : stretch.end], first):
                yield unit
                first = max(first, unit.tokens.stop)
            continue
        if stretch.tag is not None:
            rows = [("tag", face(whole[stretch.start : stretch.end]), stretch.tag)]
        else:
            kmers = stretch.kmers
            rows = [("dna" if each.is_known else "dna_unknown", text_face(each.text), each.token) for each in kmers]
        yield _letters(rows, range(first, first + len(rows)), span)
        first += len(rows)


def _letters(rows: Sequence[tuple[str, str, int]], tokens: range, span: Span) -> Unit:
    """A tag, or letters of DNA."""

    def inside(step: int) -> Step:
        key, text, token = rows[step]
        line: Line = []
        for place, (_, each, _) in enumerate(rows):
            line += [(" ", "")] * bool(line) + [(each, "current" if place == step else "")]
        return Step(said(f"captions.{key}", text=text, token=token), [line], span)

    letters = " ".join(text for _, text, _ in rows)
    length = len(rows) if len(rows) > 1 else 0
    return Unit(
        stage="dna",
        tokens=tokens,
        whole=lambda: inside(0)._replace(picture=[[(letters, "")]]),
        length=length,
        inside=inside,
        line=lambda width: letters,
    )


def num_tokens_of(symbol: SymbolTokens) -> int:
    """How many tokens a symbol that is left becomes."""
    return 1 if symbol.token is not None else sum(byte.token is not None for byte in symbol.bytes)


def merging(word: Word, tokens: range) -> Unit:
    """The unit of a word or piece."""
    merges = [pop for pop in word.pops if pop.stale is None]

    def whole() -> Step:
        last = after(word, merges, len(merges))
        return Step(_summary(word, merges, last), picture(word, merges, len(merges)), word.span)

    def inside(step: int) -> Step:
        state = after(word, merges, step)
        caption = _caption(word, merges, step, state)
        if step == len(merges):
            more: Said = [("…", False)] if len(word.left) > MOST_TOLD else []
            caption = joined(caption, said("captions.end"), *_outcomes(word, state, is_rare=False)[:MOST_TOLD], more)
        return Step(caption, picture(word, merges, step), word.span)

    return Unit(
        stage="merge",
        tokens=tokens,
        whole=whole,
        length=len(merges) + 1 if merges else 0,
        inside=inside,
        line=lambda width: _line(word, merges, width),
    )


def after(word: Word, merges: Sequence[Pop], count: int) -> Merged:
    """The symbols of a word after `count` merges. O(n) time for n symbols and pairs."""
    starts = list(accumulate(word.sizes, initial=0))
    offset = word.symbols[0].index if word.symbols else 0
    ends = starts[1:]
    alive = [True] * len(word.symbols)
    following = [*range(1, len(word.symbols) + 1)]
    pending, current = list(word.queue), -1
    for pop in merges[:count]:
        left, right = pop.bigram.left - offset, pop.bigram.right - offset
        alive[right], ends[left], following[left] = False, ends[right], following[right]
        current = left
        pending += pop.added

    def waits(bigram: Bigram) -> bool:
        left, right = bigram.left - offset, bigram.right - offset
        if not (alive[left] and right < len(alive) and alive[right] and following[left] == right):
            return False
        return ends[right] - starts[left] == _size(word, bigram)

    places = [place for place in range(len(alive)) if alive[place]]
    waiting = sorted({each.left: each for each in pending if waits(each)}.values(), key=_order)
    nodes = [(starts[place], ends[place]) for place in places]
    return Merged(nodes, places.index(current) if current >= 0 else -1, waiting)


def _size(word: Word, bigram: Bigram) -> int:
    """The bytes of a pair in the word's data."""
    return len(bigram.text) if word.is_spelled else bigram.size


def _order(bigram: Bigram) -> tuple[float, int]:
    return (-bigram.score if bigram.score is not None else bigram.rank or 0), bigram.left


def _caption(word: Word, merges: Sequence[Pop], step: int, state: Merged) -> Said:
    """What just happened, and why."""
    if step == 0:
        kind = "start_bytes" if word.of_bytes else "start_characters"
        told = said(f"captions.{kind}", text=face(word.data), n=len(word.symbols))
        return joined(told, counted("waiting", len(state.waiting)))
    bigram = merges[step - 1].bigram
    before = after(word, merges, step - 1)
    by = "rank" if bigram.score is None else "score"
    start, end = state.nodes[state.current]
    middle = next(node[1] for node in before.nodes if node[0] == start)
    values = {
        "left": face(word.data[start:middle]),
        "right": face(word.data[middle:end]),
        "merged": face(word.data[start:end]),
        "waiting": f"{len(before.waiting):,}",
        by: number(bigram.score if by == "score" else bigram.rank),
    }
    one = "_one" if len(before.waiting) == 1 else ""
    caption = said(f"captions.merge_{by}{one}", **values)
    others = [each for each in before.waiting if each.left != bigram.left]
    if others:
        value = number(others[0].score if by == "score" else others[0].rank)
        key = "next_same" if others[0].text == bigram.text else f"next_{by}"
        caption = joined(caption, said(f"captions.{key}", text=_pair_face(word, others[0]), **{by: value}))
    return caption


def _pair_face(word: Word, bigram: Bigram) -> str:
    start = sum(word.sizes[: bigram.left - word.symbols[0].index])
    return face(word.data[start : start + _size(word, bigram)])


def _outcomes(word: Word, last: Merged, *, is_rare: bool) -> list[Said]:
    """What became of the symbols that are left; with `is_rare`, of those that are not simply a token."""
    shown = (face(word.data[start:end]) for start, end in last.nodes)
    left = zip(word.left, shown, strict=True)
    return [_outcome(symbol, text) for symbol, text in left if not is_rare or symbol.token is None]


def _outcome(symbol: SymbolTokens, text: str) -> Said:
    if symbol.token is not None:
        return said("captions.token", text=text, token=symbol.token)
    tokens = [f"{text_face(byte.text)} ({byte.token})" for byte in symbol.bytes if byte.token is not None]
    if not tokens:
        return said("captions.dropped", text=text)
    return said("captions.bytes", text=text, tokens=", ".join(tokens))


def _summary(word: Word, merges: Sequence[Pop], last: Merged) -> Said:
    rest = _outcomes(word, last, is_rare=True)
    text = face(word.data)
    if len(word.symbols) == 1:
        token, unit = word.left[0].token, "byte" if word.of_bytes else "character"
        return joined(*rest) if token is None else said("captions.single", text=text, unit=unit, token=token)
    result = " · ".join(face(word.data[start:end]) for start, end in last.nodes)
    if len(last.nodes) == 1 and word.left[0].token is not None:
        parts = " ".join(face(word.data[start:end]) for start, end in after(word, merges, 0).nodes)
        values = {"parts": parts if len(parts) <= 60 else text, "token": word.left[0].token}
        return counted("word_whole", len(merges), result=result, merges=len(merges), **values)
    return joined(counted("word", len(merges), text=text, result=result, merges=len(merges)), *rest)


def _line(word: Word, merges: Sequence[Pop], width: int) -> str:
    """How the symbols merge, as states with arrows: as many of the last ones as fit after the first."""
    count = len(merges)
    if len(word.symbols) > MOST_STATES:
        return " · ".join(face(word.data[start:end]) for start, end in after(word, merges, count).nodes)
    states = [
        " ".join(face(word.data[start:end]) for start, end in after(word, merges, step).nodes)
        for step in range(count + 1)
    ]
    shown = [states[-1]]
    for place in range(count - 1, -1, -1):
        head = [] if place == 0 else [states[0], "…"] if place > 1 else [states[0]]
        if cell_len(" → ".join([*head, states[place], *shown])) > width:
            head = [states[0], "…"] if len(shown) < count else [states[0]]
            fits = cell_len(" → ".join([*head, *shown])) <= width
            return " → ".join([*head, *shown] if fits else shown)
        shown.insert(0, states[place])
    return " → ".join(shown)


def picture(word: Word, merges: Sequence[Pop], step: int) -> list[Line]:
    """The states so far, one below the other, each symbol in the middle of what it was made of."""
    leaves = after(word, merges, 0).nodes
    faces = [face(word.data[start:end]) for start, end in leaves]
    columns = list(accumulate((cell_len(each) + 1 for each in faces), initial=0))
    at_byte = {start: columns[place] for place, (start, _) in enumerate(leaves)} | {len(word.data): columns[-1]}
    lines = []
    for count in range(max(0, step - 12), step + 1) if len(word.symbols) <= MOST_STATES else (step,):
        state = after(word, merges, count)
        line: Line = []
        for place, (start, end) in enumerate(state.nodes):
            room, shown = at_byte[end] - at_byte[start] - 1, face(word.data[start:end])
            space = max(room - cell_len(shown), 0)
            style = "current" if place == state.current and count == step else "won" if place == state.current else ""
            line += [(" " * (space // 2), ""), (shown, style), (" " * (space - space // 2 + 1), "")]
        lines.append(line)
    return lines
