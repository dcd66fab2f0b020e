"""Packing: every token once, boundaries, best fit against a naive search, and what does not depend on the tables."""

from __future__ import annotations

import tracemalloc
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from ggtok.corpus import packing
from ggtok.corpus.blocks import BOUNDARIES, IDS, MASK
from ggtok.corpus.lists import cut
from ggtok.corpus.packing import Packer, best_fit_decreasing, in_order
from hypothesis import given
from hypothesis import strategies as st

PAD = 99


def documents(lengths: list[int]) -> list[list[int]]:
    """Documents whose tokens say where they are: no two of one test are alike."""
    return [[1000 * (number + 1) + place for place in range(length)] for number, length in enumerate(lengths)]


def table(docs: list[list[int]], *, mask: bool = False) -> pa.Table:
    columns = {IDS: pa.array(docs, pa.list_(pa.int32()))}
    if mask:
        columns[MASK] = pa.array([[int(token % 3 == 0) for token in doc] for doc in docs], pa.list_(pa.int8()))
    return pa.table(columns)


def packed(docs: list[list[int]], length: int, *cuts: int, mask: bool = False) -> tuple[pa.Table, dict[str, int]]:
    tables: list[pa.Table] = []
    packer = Packer(length, PAD, tables.append)
    whole = table(docs, mask=mask)
    for start, end in pairwise([0, *sorted(cuts), len(docs)]):
        packer.push(whole.slice(start, end - start))
    packer.flush()
    return pa.concat_tables(tables), packer.report


def check(docs: list[list[int]], length: int, rows: list[dict[str, list[int]]], report: dict[str, int]) -> None:
    """Every document is there once, whole or in its pieces, and everything else is padding."""
    expected = [doc[start : start + length] for doc in docs for start in range(0, len(doc), length)]
    found = []
    for row in rows:
        bounds = row[BOUNDARIES]
        assert bounds[0] == 0
        assert len(row[IDS]) == length >= bounds[-1]
        assert row[IDS][bounds[-1] :] == [PAD] * (length - bounds[-1])
        pieces = [row[IDS][start:end] for start, end in pairwise(bounds)]
        assert pieces
        assert all(pieces)
        assert [piece[0] for piece in pieces] == sorted(piece[0] for piece in pieces), "documents out of order"
        found += pieces
    assert sorted(found) == sorted(expected)
    assert [row[IDS][0] for row in rows] == sorted(row[IDS][0] for row in rows), "sequences out of order"
    num_tokens = sum(map(len, docs))
    assert report == dict[str, int](
        num_documents=len(docs),
        num_empty=docs.count([]),
        num_cut=sum(len(doc) > length for doc in docs),
        num_sequences=len(rows),
        num_tokens=num_tokens,
        num_padding=len(rows) * length - num_tokens,
    )
    assert sum(row[BOUNDARIES][-1] <= length / 2 for row in rows) <= 1, "two sequences would fit into one"


@given(st.lists(st.integers(0, 40), max_size=40), st.integers(1, 17), st.data())
def test_every_token_once(lengths: list[int], length: int, data: st.DataObject) -> None:
    docs = documents(lengths)
    cuts = data.draw(st.lists(st.integers(0, len(docs)), max_size=4))
    if not any(lengths):
        tables: list[pa.Table] = []
        packer = Packer(length, PAD, tables.append)
        packer.push(table(docs))
        packer.flush()
        assert tables == []
        return
    rows, report = packed(docs, length, *cuts)
    check(docs, length, rows.to_pylist(), report)
    assert rows.equals(packed(docs, length)[0]), "the result depends on how documents are cut into tables"


@pytest.mark.parametrize(
    ("lengths", "num_sequences"),
    [([1] * 1000, 63), ([16] * 100, 100), ([9] * 100, 100), ([8] * 100, 50), ([16000], 1000), ([16001], 1001)],
    ids=["all 1", "all the length", "more than half", "half", "one long", "one longer"],
)
def test_extremes(lengths: list[int], num_sequences: int) -> None:
    docs = [[7] * length for length in lengths]
    rows, report = packed(docs, 16)
    assert (len(rows), report["num_sequences"]) == (num_sequences, num_sequences)
    assert report["num_tokens"] == sum(lengths) == sum(bounds[-1] for bounds in rows[BOUNDARIES].to_pylist())


def test_example() -> None:
    """A row per sequence, a letter per document, and `.` for padding."""
    rows, report = packed(documents([3, 0, 9, 5, 2, 4]), 8)
    letters = "abcdef"
    drawn = [
        "".join("." if token == PAD else letters[token // 1000 - 1] for token in row) for row in rows[IDS].to_pylist()
    ]
    assert drawn == ["aaaddddd", "cccccccc", "ceeffff."]
    assert rows[BOUNDARIES].to_pylist() == [[0, 3, 8], [0, 8], [0, 1, 3, 7]]
    assert report == dict(zip(packing.COUNTED, (6, 1, 1, 3, 23, 1), strict=True))


def test_mask_goes_with_its_tokens() -> None:
    docs = documents([5, 30, 0, 7, 1])
    for row in packed(docs, 8, 2, mask=True)[0].to_pylist():
        assert row[MASK] == [int(token != PAD and token % 3 == 0) for token in row[IDS]]


def test_mask_with_other_chunks() -> None:
    docs = documents([5, 6, 7])
    ids, mask = (table(docs, mask=True)[name] for name in (IDS, MASK))
    cut_ids = pa.chunked_array([ids.chunk(0)[:2], ids.chunk(0)[2:]])
    cut_mask = pa.chunked_array([mask.chunk(0)[:1], mask.chunk(0)[1:]])
    chunked = pa.table({IDS: cut_ids, MASK: cut_mask})
    tables: list[pa.Table] = []
    packer = Packer(8, PAD, tables.append)
    packer.push(chunked)
    packer.flush()
    for row in pa.concat_tables(tables).to_pylist():
        assert row[MASK] == [int(token != PAD and token % 3 == 0) for token in row[IDS]]


def test_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """A window is complete with the document that fills it, and tables are cut within a window."""
    monkeypatch.setattr(packing, "window", lambda length: 32)
    monkeypatch.setattr(packing, "TABLE_TOKENS", 16)
    docs = documents([20, 20, 3, 3, 40, 1])
    tables: list[pa.Table] = []
    packer = Packer(8, PAD, tables.append)
    packer.push(table(docs))
    assert packer.report["num_documents"] == 5
    assert [len(part) for part in tables] == [2, 2, 1, 2, 2, 2]
    packer.flush()
    rows = pa.concat_tables(tables).to_pylist()
    assert packer.report["num_padding"] == 8 * len(rows) - 87
    whole, _ = packed(docs, 8, 1, 2, 3, 4)
    assert whole.to_pylist() == rows
    packer = Packer(8, PAD, tables.append)
    packer.push(table(documents([16, 16, 5])))  # the second one fills the window to its last token
    assert packer.report["num_documents"] == 2


@given(st.lists(st.integers(1, 30), max_size=60), st.integers(30, 45))
def test_best_fit_as_a_naive_search_finds_it(sizes: list[int], capacity: int) -> None:
    spaces: list[int] = []
    for size in sorted(sizes, reverse=True):
        fits = [space for space in spaces if space >= size]
        space = min(fits, default=capacity)
        if fits:
            spaces.remove(space)
        spaces.append(space - size)
    sequences = best_fit_decreasing(np.array(sizes, np.int64), capacity)
    filled = np.bincount(sequences, sizes).tolist()
    assert sorted(capacity - fill for fill in filled) == sorted(spaces)
    ordered = in_order(sequences)
    assert len(set(zip(sequences.tolist(), ordered.tolist(), strict=True))) == len(set(sequences.tolist()))


@given(st.lists(st.integers(0, 30), max_size=20), st.integers(1, 9), st.integers(0, 4))
def test_cut(lengths: list[int], length: int, overlap: int) -> None:
    overlap = min(overlap, length // 2)
    documents, starts, sizes = cut(np.array(lengths, np.int64), length, overlap)
    expected = []
    for number, (start, size) in enumerate(zip(np.cumsum([0, *lengths]), lengths, strict=False)):
        places = range(0, max(size - overlap, 1), length - overlap)
        expected += [(number, start + place, min(length, size - place)) for place in places]
    assert list(zip(documents, starts, sizes, strict=True)) == expected


def test_memory_is_bounded() -> None:
    """Ten times the documents take no more memory: what is held is a window."""
    length = 4 << 10
    ids = pa.ListArray.from_arrays(np.arange(0, 2 << 20, 1 << 10, dtype=np.int32), np.zeros(2 << 20, np.int32))
    part = pa.table({IDS: ids})
    peaks = []
    for times in (4, 16):
        packer = Packer(length, PAD, lambda table: None)
        tracemalloc.start()
        for _ in range(times):
            packer.push(part)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.2 * peaks[0] < 200 << 20
