"""Cuts documents into pieces of a bounded length, which may overlap.

Complexity: O(tokens), without a Python object per document.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from .blocks import IDS, MASK
from .lists import short
from .packages import np, npt, pa
from .writing.lists import lists

Numbers: TypeAlias = "npt.NDArray[np.int64]"


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
    found = {name: list(lists(table[name])) for name in (IDS, MASK) if name in table.column_names}
    values = {name: np.concatenate([flat for _, flat in chunks]) for name, chunks in found.items() if chunks}
    if not values:
        return table
    lengths = np.concatenate([lengths for lengths, _ in found[IDS]]).astype(np.int64)
    documents, starts, sizes = cut(lengths, most, overlap)
    values = {name: gathered(flat, starts, sizes) for name, flat in values.items()}
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    if overlap:
        mask = values.setdefault(MASK, np.ones(len(values[IDS]), np.int8))
        later = offsets[:-1][np.diff(documents, prepend=-1) == 0]
        mask[later[:, None] + np.arange(overlap)] = 0
    columns = {name: table[name].take(documents) for name in table.column_names if name not in found}
    cut_rows = {name: short(pa.LargeListArray.from_arrays(offsets, flat)) for name, flat in values.items()}
    return pa.table(columns | {name: pa.chunked_array(chunks) for name, chunks in cut_rows.items()})
