"""Columns of lists, such as those of tokens: as numpy arrays, which share Arrow's buffers, and with 32-bit offsets.

Lists have offsets of 32 bits in Spark and for most trainers, and of 64 in a batch. So a chunk of the result has at most
`MOST_IDS` ids, which are shared. O(documents), without a Python object per document.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any, TypeAlias

from ..errors import CorpusError
from .blocks import BOUNDARIES
from .packages import np, npt, pa

Lengths: TypeAlias = "npt.NDArray[np.int32]"

MOST_IDS = 2**31 - 1
"""The most ids that 32-bit offsets can address."""


def lists(column: pa.ChunkedArray) -> Iterator[tuple[Lengths, npt.NDArray[Any]]]:
    """For each chunk of a column of lists, the length of each list, and all their values.

    Raises `CorpusError` if a list is null.
    """
    for chunk in column.chunks:
        if chunk.null_count:
            raise CorpusError(f"a document has no list of {chunk.type.value_type}, but null")
        offsets = chunk.offsets.to_numpy()
        yield np.diff(offsets), chunk.values.to_numpy()[offsets[0] : offsets[-1]]


def flat(column: pa.ChunkedArray) -> npt.NDArray[Any]:
    """The values of all lists of a column, a copy. Raises `CorpusError` if a list is null."""
    return np.concatenate([np.empty(0, np.int8), *(values for _, values in lists(column))])


def documents(table: pa.Table, column: str) -> Iterator[npt.NDArray[Any]]:
    """The values of each list of a column. Of packed sequences, which are one chunk, those of each document."""
    for sizes, values in lists(table[column]):
        rows = _split(values, sizes)
        if BOUNDARIES not in table.column_names:
            yield from rows
            continue
        bounds = [bounds for counts, ends in lists(table[BOUNDARIES]) for bounds in _split(ends, counts)]
        for row, cuts in zip(rows, bounds, strict=True):
            yield from (row[start:end] for start, end in pairwise(cuts))


def _split(values: npt.NDArray[Any], sizes: Lengths) -> list[npt.NDArray[Any]]:
    """The values of each list."""
    return np.split(values, np.cumsum(sizes)[:-1]) if len(sizes) else []


def short(arrays: Iterable[pa.LargeListArray], kind: pa.DataType) -> pa.ChunkedArray:
    """The rows of arrays as lists with 32-bit offsets: chunks of at most `MOST_IDS` items in all.

    Raises `CorpusError` if a single row has more.
    """
    chunks = []
    for rows in arrays:
        offsets, start = rows.offsets.to_numpy(), 0
        while start < len(rows):
            end = int(offsets.searchsorted(offsets[start] + MOST_IDS, side="right")) - 1
            if end <= start:
                num_items = offsets[start + 1] - offsets[start]
                raise CorpusError(f"a document has {num_items} tokens, and a list holds at most {MOST_IDS}")
            own = offsets[start : end + 1] - offsets[start]
            items = rows.values.slice(offsets[start], own[-1])
            nulls = rows.slice(start, end - start).is_null() if rows.null_count else None
            chunks.append(pa.ListArray.from_arrays(pa.array(own.astype(np.int32)), items, mask=nulls))
            start = end
    return pa.chunked_array(chunks, pa.list_(kind))
