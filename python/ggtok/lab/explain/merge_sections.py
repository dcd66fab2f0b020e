"""The tables of SPM and of byte-pair encoding with its variants. Each takes O(n) time for n steps."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator

from ...trace import Bigram, Bpe, HybridDna, Merging, Piece, Spm, Symbol, SymbolTokens
from .tables import Cell, Row, Section, part, section, won
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


def spm(steps: Spm, _: bytes) -> Iterator[Section]:
    """The tables of SPM for a fragment."""
    prefix = " and one is put before the text" if steps.space_prefix else ""
    names = "text:text, bytes"
    about = f"Each space becomes ▁{prefix}."
    yield section("escaped", "Escaped text", about, names, [Row((steps.escaped, len(to_bytes(steps.escaped))))])
    yield from _merging(steps.merging, "score", named="")
    names = "text:text, left, right"
    about = "For each text that could merge, the two symbols that it was last made of."
    rows = [Row((entry.text, entry.left, entry.right)) for entry in steps.rev_merge]
    yield section("rev_merge", "Where merged texts come from (rev_merge)", about, names, rows)
    yield _symbol_tokens(steps.symbols, named="")


def bpe(steps: Bpe, _: bytes) -> Iterator[Section]:
    """The tables of byte-pair encoding for a fragment."""
    if steps.rewritten:
        what = ", then ".join(REWRITTEN[name] for name in steps.rewritten)
        about = f"Before the text is cut, {what}."
        yield section("rewritten", "Rewritten text", about, "text:text", [Row((steps.text,))])
    text = to_bytes(steps.text)
    if len(steps.words) > 1:
        names = "start, end, text:text"
        about = "Each stretch between whitespace is cut by itself."
        yield section("words", "Words", about, names, [part(text, word.start, word.end) for word in steps.words])
    for number, made in enumerate(steps.passes, 1):
        rows = []
        for cut in made.cuts:
            if cut.alternative is None:
                rows.append(part(text, cut.start, cut.end, None, "not matched"))
            else:
                which = _printable(made.alternatives[cut.alternative])
                rows.append(part(text, cut.start, cut.end, cut.alternative + 1, which, mark="won"))
        names = "start, end, piece:text, alternative, which is:word"
        about = f"Each piece so far is cut {APPLIED_TO[made.applied_to]}. The family {steps.family} has the pattern "
        about += _printable(made.pattern)
        yield section("pattern", f"Pattern {number} of {len(steps.passes)}", about, names, rows)
    rows = []
    for number, piece in enumerate(steps.pieces):
        what = "its symbols merge" if piece.whole is None else "is a token as a whole"
        cells = (number, piece.start, piece.end, piece.text, piece.spelled, piece.whole, what)
        rows.append(Row(cells, "" if piece.whole is None else "won"))
    names = "piece, start, end, text:text, spelled:text, token, what happens:word"
    about = "No token goes beyond its piece; each is spelled as the vocabulary spells it."
    yield section("pieces", "Pieces", about, names, rows)
    for piece in steps.pieces:
        if piece.whole is None:
            yield from _piece(piece)


def _piece(piece: Piece) -> Iterator[Section]:
    named = f" of {piece.text!r}"
    if len(piece.symbols) != 1 or piece.merging.pops:
        yield from _merging(piece.merging, "rank", named)
    yield _symbol_tokens(piece.symbols, named)


def _symbol_tokens(symbols: tuple[SymbolTokens, ...], named: str) -> Section:
    rows = []
    for symbol in symbols:
        what = "is not a token: becomes its bytes" if symbol.token is None else "is a token"
        rows.append(Row((symbol.text, symbol.token, what), won(symbol.token is not None)))
        for byte in symbol.bytes:
            what = "has no token: dropped" if byte.token is None else "stands for a byte"
            rows.append(Row((byte.text, byte.token, what), won(byte.token is not None)))
    names = "symbol:text, token, what happens:word"
    about = "Each symbol that is left becomes its token, or else a token for each of its bytes."
    return section("tokens_of_symbols", f"From symbols to tokens{named}", about, names, rows)


def hybrid_dna(steps: HybridDna, _: bytes) -> Iterator[Section]:
    """The tables of hybrid DNA for a fragment."""
    text, rows = to_bytes(steps.text), []
    for stretch in steps.stretches:
        what = "a tag" if stretch.tag is not None else "DNA: six letters are a token" if stretch.kmers else "text"
        rows.append(part(text, stretch.start, stretch.end, stretch.tag, what))
    names = "start, end, text:text, tag, which is:word"
    about = "What is between <dna> and </dna> is cut into groups of six letters; the rest is text."
    yield section("stretches", "Text and DNA", about, names, rows)
    for stretch in steps.stretches:
        if stretch.kmers:
            rows = []
            for kmer in stretch.kmers:
                what = "is a token" if kmer.is_known else "is not in the vocabulary"
                rows.append(Row((kmer.start, kmer.end, kmer.text, kmer.token, what), won(kmer.is_known)))
            names = "start, end, letters:text, token, what happens:word"
            about = "Letters become capitals, six at a time; the last are padded with A."
            yield section("kmers", "K-mers", about, names, rows)
        if stretch.bpe is not None:
            yield from bpe(stretch.bpe, text)


def _merging(merging: Merging, by: str, named: str) -> Iterator[Section]:
    """The symbols, the queue, and what is taken from the queue. `by` says what the queue is ordered by."""
    order = "the highest score" if by == "score" else "the lowest rank"
    links = "index, prev, next, text:text, n"
    about = "Merging begins with these, each linked to the one before it and the one after it."
    rows = [Row(_links(symbol)) for symbol in merging.symbols]
    yield section("symbols", f"Symbols{named}", about, links, rows)
    names = f"{by}, size, text:text, left, right, token"
    about = f"Neighbours that can merge wait in a queue: {order} comes first, the leftmost of equal ones."
    queue = merging.queue
    rows = [Row((_key(each), each.size, each.text, each.left, each.right, each.token)) for each in queue]
    yield section("queue", f"Queue{named}", about, names, rows)
    names = f"{by}, text:text, left, right, token, what happens:word, symbols now:texts"
    about = "The first in the queue merges if both its symbols are unchanged; what can merge now joins the queue."
    yield section("merges", f"Merges{named}", about, names, _pops(merging))
    about = "No two neighbours can merge any more; a symbol that was merged into another has no length."
    rows = [Row(_links(symbol), won(symbol.n > 0)) for symbol in merging.merged]
    yield section("merged", f"Symbols after merging{named}", about, links, rows)


def _links(symbol: Symbol) -> tuple[Cell, ...]:
    return symbol.index, symbol.prev, symbol.next, symbol.text, symbol.n


def _pops(merging: Merging) -> Iterator[Row]:
    texts = [symbol.text for symbol in merging.symbols]
    left = [*range(len(texts))]
    for pop in merging.pops:
        bigram = pop.bigram
        cells = (_key(bigram), bigram.text, bigram.left, bigram.right, bigram.token)
        if pop.stale is not None:
            yield Row((*cells, SKIPPED[pop.stale], None), "lost")
            continue
        texts[bigram.left] = bigram.text
        at = bisect_left(left, bigram.left)
        del left[at + 1]
        # An empty text stands for more symbols.
        first, last = max(at - WINDOW, 0), at + WINDOW + 1
        around = (*[""] * (first > 0), *(texts[index] for index in left[first:last]), *[""] * (last < len(left)))
        yield Row((*cells, "merge", around), "won")
        for new in pop.added:
            cells = (_key(new), new.text, new.left, new.right, new.token)
            yield Row((*cells, "add", None))


def _key(bigram: Bigram) -> int | float | None:
    return bigram.rank if bigram.score is None else bigram.score


def _printable(pattern: str) -> str:
    """A pattern with escapes for the characters that do not print."""
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in pattern)
