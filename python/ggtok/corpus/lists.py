"""Columns of tokens, `list<int32>`, cut into chunks that 32-bit offsets can address.

Lists have offsets of 32 bits in Spark and for most trainers, and of 64 in a batch. So a chunk of the result has at most
`MOST_IDS` ids, which are shared. O(documents), without a Python object per document.
"""

from __future__ import annotations

from ..errors import CorpusError
from .packages import np, pa

MOST_IDS = 2**31 - 1
"""The most ids that 32-bit offsets can address."""


def short(rows: pa.LargeListArray) -> list[pa.ListArray]:
    """The rows as arrays of lists with 32-bit offsets, each of at most `MOST_IDS` items in all.

    Raises `CorpusError` if a single row has more.
    """
    offsets, pieces, start = rows.offsets.to_numpy(), [], 0
    while start < len(rows):
        end = int(offsets.searchsorted(offsets[start] + MOST_IDS, side="right")) - 1
        if end <= start:
            num_items = offsets[start + 1] - offsets[start]
            raise CorpusError(f"a document has {num_items} tokens, and a list holds at most {MOST_IDS}")
        own = offsets[start : end + 1] - offsets[start]
        items = rows.values.slice(offsets[start], own[-1])
        nulls = rows.slice(start, end - start).is_null() if rows.null_count else None
        pieces.append(pa.ListArray.from_arrays(pa.array(own.astype(np.int32)), items, mask=nulls))
        start = end
    return pieces
