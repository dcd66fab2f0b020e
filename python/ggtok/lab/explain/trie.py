"""The double array of a few words, built insertion by insertion, walked, and packed: its tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..._ggtok import explain_trie as recorded
from ...trace import Cell, DoubleArrayTrace, InsertionStep, Text
from .record import STEPS, read
from .tables import Mark, Row, Section, byte_name, section, walked, yes

OUTCOMES: dict[str, tuple[str, Mark]] = {
    "followed": ("the child exists already: goes on", ""),
    "placed": ("the cell is free: the child is placed", "won"),
    "conflict": ("the cell belongs to another node: children move", "lost"),
}


def explain_trie(words: Iterable[Text], queries: Iterable[Text] = ()) -> tuple[DoubleArrayTrace, str]:
    """The double array of words, with the queries looked up in it, and its JSON.

    Raises:
        GgtokError: A word is empty, or there are too many of them.
    """
    made = recorded(list(words), list(queries))
    trie: DoubleArrayTrace = read(made, STEPS)
    return trie, made


def trie_sections(trie: DoubleArrayTrace) -> list[Section]:
    """All tables, in the order of the steps. Takes O(n) time for n cells of all insertions."""
    return [each for each in (*_built(trie), *_walked(trie), _packed(trie), *_read(trie)) if each.rows]


def _built(trie: DoubleArrayTrace) -> Iterator[Section]:
    names = "byte:word, words:texts"
    about = "One step narrows the search down to the words that begin with a byte."
    rows = [Row((byte_name(each.byte), tuple(trie.words[word] for word in each.words))) for each in trie.by_first_byte]
    yield section("by_first_byte", "Words by their first byte", about, names, rows)
    names = "byte:word, code"
    about = "Each byte gets a number, and so does the end of a word."
    yield section("codes", "Codes", about, names, [Row((byte_name(each.byte), each.code)) for each in trie.codes])
    for insertion in trie.insertions:
        word = trie.words[insertion.word]
        names = "node, byte:word, code, new BASE, cell, CHECK, child, what happens:word"
        about = "The child of a node for a code is the cell BASE + code, if its CHECK names the node or is free."
        rows = [row for step in insertion.steps for row in _step(step)]
        yield section("insertion", f"Insertion of {word!r}", about, names, rows)
        names = "cell, BASE, CHECK, stands for:text"
        about = (
            "BASE says where the children of a node begin, CHECK whose child a cell is; a negative BASE ends a word."
        )
        yield section("cells", f"The array after {word!r}", about, names, [_cell(cell) for cell in insertion.cells])


def _step(step: InsertionStep) -> Iterator[Row]:
    cells = (step.node, byte_name(step.byte), step.code, step.new_base, step.cell, step.check, step.child)
    what, mark = OUTCOMES[step.outcome]
    yield Row((*cells, what), mark)
    if step.relocation is not None:
        moved = step.relocation
        what = f"BASE of node {moved.node} changes from {moved.from_base} to {moved.to_base}: {moved.num_own} children"
        yield Row((*[None] * 7, f"{what} of the one node against {moved.num_others} of the other"))
        for move in moved.moves:
            followed = f", and so do the CHECKs of {len(move.children)} children" if move.children else ""
            yield Row((None, byte_name(move.byte), *[None] * 5, f"cell {move.from_} moves to {move.to}{followed}"))


def _cell(cell: Cell) -> Row:
    return Row((cell.index, cell.base, cell.check, cell.text), "lost" if cell.text is None else "")


def _walked(trie: DoubleArrayTrace) -> Iterator[Section]:
    for lookup in trie.lookups:
        found = "It is not a word" if lookup.value is None else f"It is word {lookup.value}"
        rows = []
        for step in lookup.steps:
            what = "goes on" if step.matched else "ends: CHECK names another node"
            cells = (step.node, byte_name(step.byte), step.code, step.base, step.cell, step.check, what)
            rows.append(Row(cells, "" if step.matched else "lost"))
        names = "node, byte:word, code, BASE, cell, CHECK, what happens:word"
        about = f"{found}: from the root, each byte leads to BASE + code, as long as CHECK names the node."
        yield section("lookup", f"Walk of {lookup.text!r}", about, names, rows)


def _packed(trie: DoubleArrayTrace) -> Section:
    rows = []
    for unit in trie.xcda.units:
        wide, leaf = (None if flag is None else yes(flag) for flag in (unit.is_wide, unit.leaf))
        lcheck = None if unit.lcheck is None or unit.role == "root" else byte_name(unit.lcheck & 0xFF)
        cells = (unit.index, unit.role, unit.text, _bits(unit.unit), unit.base, wide, leaf, lcheck, unit.value)
        rows.append(Row(cells, "won" if unit.role == "value" else ""))
    names = "unit, is:word, stands for:text, bits:word, BASE, wide:word, LEAF:word, LCHECK:word, value"
    about = "Bit 31 marks a value. A node has BASE (bits 10 to 30), a shift of BASE (9), LEAF (8) and LCHECK (0 to 7)."
    return section("xcda_units", "Packed as an XCDA", about, names, rows)


def _read(trie: DoubleArrayTrace) -> Iterator[Section]:
    for lookup in trie.lookups:
        longest = lookup.longest_prefix
        found = "It starts with none of the words"
        if longest is not None:
            found = f"The longest word that it starts with is {trie.words[longest]!r}"
        rows = []
        for step in lookup.xcda:
            what = "goes on" if step.matched else "ends: LCHECK differs"
            lcheck, leaf = byte_name(step.lcheck & 0xFF), yes(step.leaf)
            cells = (byte_name(step.byte), step.node, step.base, lcheck, leaf, step.value, what)
            rows.append(Row(cells, walked(step.value, step.matched)))
        names = "byte:word, unit, BASE, LCHECK:word, LEAF:word, value, what happens:word"
        about = f"{found}: each byte leads to the next node by exclusive or with BASE."
        yield section("xcda", f"Walk of {lookup.text!r} through the XCDA", about, names, rows)


def _bits(unit: int) -> str:
    """32 bits in the fields of a node."""
    bits = f"{unit:032b}"
    return " ".join((bits[0], bits[1:22], bits[22], bits[23], bits[24:]))
