"""The tables of SPM and of byte-pair encoding with its variants. Each takes O(n) time for n steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import accumulate

from ...trace import Bigram, Bpe, HybridDna, Merging, Piece, Spm, Symbol, SymbolTokens, Text
from .origins import Cuts, Origins, Spans
from .tables import Cell, Row, Section, Span, section, won
from .utf8 import to_bytes

WINDOW = 3
"""How many symbols on each side of a merge are shown."""

SKIPPED = {
    "left_gone": "skip: left is gone",
    "right_gone": "skip: right is gone",
    "text_changed": "skip: text has grown",
}
"""What happens to a stale bigram when it is taken from the queue."""

REWRITTEN = {
    "replaced": "bytes that are not UTF-8 became U+FFFD",
    "escaped": "spaces became ▁",
    "lowercased": "letters became lower case",
    "whitespace_dropped": "whitespace was dropped",
}
APPLIED_TO = {
    "code_points": "at its characters",
    "collapsed": "as text in which each character beyond ASCII stands for its category",
    "code": "in llama.cpp's code, before the pattern applies",
}
"""How a pattern is applied to each piece."""


def spm(steps: Spm, text: bytes, start: int) -> Iterator[Section]:
    """The tables of SPM for a fragment that starts at byte `start`."""
    spans = Origins(steps.origins, start).span
    prefix = " and one is put before the text" if steps.space_prefix else ""
    span = (start, start + len(text))
    names = "text:text, bytes"
    about = f"Each space becomes ▁{prefix}."
    yield section("escaped", "Escaped text", about, names, [Row((steps.escaped, len(to_bytes(steps.escaped))), span)])
    yield from _merging(steps.merging, spans, 0, "score", by_bytes=True, named="")
    names = "text:text, left, right"
    about = "For each text that could merge, the two symbols that it was last made of."
    rows = [Row((entry.text, entry.left, entry.right)) for entry in steps.rev_merge]
    yield section("rev_merge", "Where merged texts come from (rev_merge)", about, names, rows)
    yield _symbol_tokens(steps.symbols, spans, 0, by_bytes=True, named="")


def bpe(steps: Bpe, text: bytes, start: int) -> Iterator[Section]:
    """The tables of byte-pair encoding for a fragment that starts at byte `start`."""
    return _bpe(steps, Origins(steps.origins, start).span, (start, start + len(text)))


def _bpe(steps: Bpe, spans: Spans, span: Span) -> Iterator[Section]:
    if steps.rewritten:
        what = ", then ".join(REWRITTEN[name] for name in steps.rewritten)
        about = f"Before the text is cut, {what}."
        yield section("rewritten", "Rewritten text", about, "text:text", [Row((steps.text,), span)])
    whole = Cuts(to_bytes(steps.text), spans)
    if len(steps.words) > 1:
        names = "start, end, text:text"
        about = "Each stretch between whitespace is cut by itself."
        yield section("words", "Words", about, names, [whole.row(word.start, word.end) for word in steps.words])
    for number, made in enumerate(steps.passes, 1):
        rows = []
        for cut in made.cuts:
            if cut.alternative is None:
                rows.append(whole.row(cut.start, cut.end, None, "not matched"))
            else:
                which = _printable(made.alternatives[cut.alternative])
                rows.append(whole.row(cut.start, cut.end, cut.alternative + 1, which, mark="won"))
        names = "start, end, piece:text, alternative, which is:word"
        about = f"Each piece so far is cut {APPLIED_TO[made.applied_to]}. The family {steps.family} has the pattern "
        about += _printable(made.pattern)
        yield section("pattern", f"Pattern {number} of {len(steps.passes)}", about, names, rows)
    rows = []
    for number, piece in enumerate(steps.pieces):
        what = "its symbols merge" if piece.whole is None else "is a token as a whole"
        cells = (number, piece.start, piece.end, piece.text, piece.spelled, piece.whole, what)
        rows.append(Row(cells, spans(piece.start, piece.end), "" if piece.whole is None else "won"))
    names = "piece, start, end, text:text, spelled:text, token, what happens:word"
    about = "No token goes beyond its piece; each is spelled as the vocabulary spells it."
    yield section("pieces", "Pieces", about, names, rows)
    for piece in steps.pieces:
        if piece.whole is None:
            yield from _piece(piece, spans)


def _piece(piece: Piece, spans: Spans) -> Iterator[Section]:
    by_bytes = piece.spelled == piece.text  # otherwise a character of the spelling is a byte of the text
    named = f" of {piece.text!r}"
    if len(piece.symbols) != 1 or piece.merging.pops:
        yield from _merging(piece.merging, spans, piece.start, "rank", by_bytes=by_bytes, named=named)
    yield _symbol_tokens(piece.symbols, spans, piece.start, by_bytes=by_bytes, named=named)


def _symbol_tokens(
    symbols: tuple[SymbolTokens, ...], spans: Spans, start: int, *, by_bytes: bool, named: str
) -> Section:
    rows = []
    for symbol in symbols:
        end = start + _length(symbol.text, by_bytes)
        span = spans(start, end)
        what = "is not a token: becomes its bytes" if symbol.token is None else "is a token"
        rows.append(Row((symbol.text, symbol.token, what), span, won(symbol.token is not None)))
        for byte in symbol.bytes:
            what = "has no token: dropped" if byte.token is None else "stands for a byte"
            rows.append(Row((byte.text, byte.token, what), span, won(byte.token is not None)))
        start = end
    names = "symbol:text, token, what happens:word"
    about = "Each symbol that is left becomes its token, or else a token for each of its bytes."
    return section("tokens_of_symbols", f"From symbols to tokens{named}", about, names, rows)


def hybrid_dna(steps: HybridDna, text: bytes, start: int) -> Iterator[Section]:
    """The tables of hybrid DNA for a fragment that starts at byte `start`."""
    spans = Origins(steps.origins, start).span
    whole = Cuts(to_bytes(steps.text), spans)
    rows = []
    for stretch in steps.stretches:
        what = "a tag" if stretch.tag is not None else "DNA: six letters are a token" if stretch.kmers else "text"
        rows.append(whole.row(stretch.start, stretch.end, stretch.tag, what))
    names = "start, end, text:text, tag, which is:word"
    about = "What is between <dna> and </dna> is cut into groups of six letters; the rest is text."
    yield section("stretches", "Text and DNA", about, names, rows)
    for stretch in steps.stretches:
        if stretch.kmers:
            rows = []
            for kmer in stretch.kmers:
                what = "is a token" if kmer.is_known else "is not in the vocabulary"
                cells = (kmer.start, kmer.end, kmer.text, kmer.token, what)
                rows.append(Row(cells, spans(kmer.start, kmer.end), won(kmer.is_known)))
            names = "start, end, letters:text, token, what happens:word"
            about = "Letters become capitals, six at a time; the last are padded with A."
            yield section("kmers", "K-mers", about, names, rows)
        if stretch.bpe is not None:
            inner = Origins(stretch.bpe.origins, 0).span
            composed = partial(_composed, spans, inner)
            yield from _bpe(stretch.bpe, composed, spans(stretch.start, stretch.end))


def _composed(outer: Spans, inner: Spans, start: int, end: int) -> Span:
    return outer(*inner(start, end))


def _merging(merging: Merging, spans: Spans, start: int, by: str, *, by_bytes: bool, named: str) -> Iterator[Section]:
    """The symbols, the queue, and what is taken from the queue. `by` says what the queue is ordered by."""
    places = list(accumulate((_length(symbol.text, by_bytes) for symbol in merging.symbols), initial=start))

    def at(index: int, text: Text) -> Span:
        return spans(places[index], places[index] + _length(text, by_bytes))

    def queued(each: Bigram) -> Row:
        return Row((_key(each), each.size, each.text, each.left, each.right, each.token), at(each.left, each.text))

    order = "the highest score" if by == "score" else "the lowest rank"
    links = "index, prev, next, text:text, n"
    about = "Merging begins with these, each linked to the one before it and the one after it."
    rows = [Row(_links(symbol), at(symbol.index, symbol.text)) for symbol in merging.symbols]
    yield section("symbols", f"Symbols{named}", about, links, rows)
    names = f"{by}, size, text:text, left, right, token"
    about = f"Neighbours that can merge wait in a queue: {order} comes first, the leftmost of equal ones."
    yield section("queue", f"Queue{named}", about, names, map(queued, merging.queue))
    names = f"{by}, text:text, left, right, token, what happens:word, symbols now:texts"
    about = "The first in the queue merges if both its symbols are unchanged; what can merge now joins the queue."
    yield section("merges", f"Merges{named}", about, names, _pops(merging, at))
    about = "No two neighbours can merge any more; a symbol that was merged into another has no length."
    rows = [Row(_links(symbol), None, won(symbol.n > 0)) for symbol in merging.merged]
    yield section("merged", f"Symbols after merging{named}", about, links, rows)


def _links(symbol: Symbol) -> tuple[Cell, ...]:
    return symbol.index, symbol.prev, symbol.next, symbol.text, symbol.n


def _pops(merging: Merging, at: Callable[[int, Text], Span]) -> Iterator[Row]:
    texts = [symbol.text for symbol in merging.symbols]
    prev, next = [symbol.prev for symbol in merging.symbols], [symbol.next for symbol in merging.symbols]
    for pop in merging.pops:
        bigram, span = pop.bigram, at(pop.bigram.left, pop.bigram.text)
        cells = (_key(bigram), bigram.text, bigram.left, bigram.right, bigram.token)
        if pop.stale is not None:
            yield Row((*cells, SKIPPED[pop.stale], None), span, "lost")
            continue
        texts[bigram.left] = bigram.text
        next[bigram.left] = next[bigram.right]
        if next[bigram.left] >= 0:
            prev[next[bigram.left]] = bigram.left
        yield Row((*cells, "merge", _around(bigram.left, texts, prev, next)), span, "won")
        for new in pop.added:
            cells = (_key(new), new.text, new.left, new.right, new.token)
            yield Row((*cells, "add", None), at(new.left, new.text))


def _around(index: int, texts: list[Text], prev: list[int], next: list[int]) -> tuple[Text, ...]:
    """The symbols around a merged one; an empty text stands for more of them."""
    before: list[Text] = []
    after: list[Text] = []
    for links, found in ((prev, before), (next, after)):
        at = links[index]
        while at >= 0 and len(found) < WINDOW:
            found.append(texts[at])
            at = links[at]
        if at >= 0:
            found.append("")
    return (*reversed(before), texts[index], *after)


def _length(text: Text, by_bytes: bool) -> int:
    return len(to_bytes(text)) if by_bytes else len(text)


def _key(bigram: Bigram) -> int | float | None:
    return bigram.rank if bigram.score is None else bigram.score


def _printable(pattern: str) -> str:
    """A pattern with escapes for the characters that do not print."""
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in pattern)
