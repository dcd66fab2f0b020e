"""Cuts documents into pieces of a bounded length, which may overlap.

Complexity: O(tokens), without a Python object per document.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from .blocks import IDS, MASK, num_tokens, picked
from .lists import flat, short
from .packages import np, npt, pa

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
        rows = pa.LargeListArray.from_arrays(offsets, pa.array(values[name], kind))
        columns[name] = short([rows], kind)
    return pa.table(columns)
