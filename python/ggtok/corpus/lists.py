"""Columns of lists, such as those of tokens: as numpy arrays, with 32-bit offsets, and cut into pieces.

Arrays share Arrow's buffers. Lists have offsets of 32 bits in Spark and for most trainers, and of 64 in a batch. So a
chunk has at most `MOST_IDS` ids, which are shared. O(documents), and pieces O(tokens), without a Python object per
document.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

from ..errors import CorpusError
from .blocks import IDS, MASK, num_tokens, picked
from .packages import np, npt, pa

Lengths: TypeAlias = "npt.NDArray[np.int32]"

Numbers: TypeAlias = "npt.NDArray[np.int64]"

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


def rows(column: pa.ChunkedArray) -> Iterator[npt.NDArray[Any]]:
    """The values of each list of a column."""
    for sizes, values in lists(column):
        yield from np.split(values, np.cumsum(sizes)[:-1]) if len(sizes) else ()


def short(arrays: Iterable[pa.LargeListArray], kind: pa.DataType) -> pa.ChunkedArray:
    """The rows of arrays as lists with 32-bit offsets: chunks of at most `MOST_IDS` items in all.

    Raises `CorpusError` if a single row has more.
    """
    chunks = []
    for array in arrays:
        offsets, start = array.offsets.to_numpy(), 0
        while start < len(array):
            end = int(offsets.searchsorted(offsets[start] + MOST_IDS, side="right")) - 1
            if end <= start:
                num_items = offsets[start + 1] - offsets[start]
                raise CorpusError(f"a document has {num_items} tokens, and a list holds at most {MOST_IDS}")
            own = offsets[start : end + 1] - offsets[start]
            items = array.values.slice(offsets[start], own[-1])
            nulls = array.slice(start, end - start).is_null() if array.null_count else None
            chunks.append(pa.ListArray.from_arrays(pa.array(own.astype(np.int32)), items, mask=nulls))
            start = end
    return pa.chunked_array(chunks, pa.list_(kind))


def cut(lengths: Numbers, most: int, overlap: int = 0) -> tuple[Numbers, Numbers, Numbers]:
    """The pieces of documents that lie one after the other: the document of each, its start and its size.

    A document has at least one. Each further one starts `overlap` tokens before the end of the one before.
    """
    step = most - overlap
    counts = np.maximum(-((overlap - lengths) // step), 1)
    documents = np.repeat(np.arange(len(lengths)), counts)
    skipped = (np.arange(len(documents)) - (np.cumsum(counts) - counts)[documents]) * step
    starts = (np.cumsum(lengths) - lengths)[documents] + skipped
    return documents, starts, np.minimum(lengths[documents] - skipped, most)


def gathered(values: npt.NDArray[Any], starts: Numbers, sizes: Numbers) -> npt.NDArray[Any]:
    """The stretches of some values that start there and have these sizes, one after the other."""
    places = np.repeat(starts - (np.cumsum(sizes) - sizes), sizes) + np.arange(sizes.sum())
    return np.asarray(values[places])


def in_pieces(table: pa.Table, most: int, overlap: int) -> pa.Table:
    """The pieces of a table's documents. Their other columns are the same in each piece.

    With an overlap, `MASK` marks what is to be learned: not the tokens that the piece before has too.
    """
    kinds = {name: kind for name, kind in ((IDS, pa.int32()), (MASK, pa.int8())) if name in table.column_names}
    documents, starts, sizes = cut(num_tokens(table[IDS]), most, overlap)
    values = {name: gathered(flat(table[name]), starts, sizes) for name in kinds}
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    if overlap:
        kinds[MASK], mask = pa.int8(), values.setdefault(MASK, np.ones(len(values[IDS]), np.int8))
        later = offsets[:-1][np.diff(documents, prepend=-1) == 0]
        mask[later[:, None] + np.arange(overlap)] = 0
    others = picked(table.select([name for name in table.column_names if name not in kinds]), documents)
    columns = dict(zip(others.column_names, others.columns, strict=True))
    for name, kind in kinds.items():
        columns[name] = short([pa.LargeListArray.from_arrays(offsets, pa.array(values[name], kind))], kind)
    return pa.table(columns)
