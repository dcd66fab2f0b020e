"""Columns of lists as numpy arrays: the buffers of Arrow, without copies."""

from __future__ import annotations

from collections.abc import Iterator

from ...errors import CorpusError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    import numpy as np
    import pyarrow as pa  # type: ignore[import-untyped]
    from numpy.typing import NDArray

    Lengths = NDArray[np.int32]


def lists(column: pa.ChunkedArray) -> Iterator[tuple[Lengths, NDArray[Any]]]:
    """For each chunk of a column of lists, the length of each list, and all their values.

    Raises `CorpusError` if a list is null.
    """
    import numpy as np

    for chunk in column.chunks:
        if chunk.null_count:
            raise CorpusError(f"a document has no list of {chunk.type.value_type}, but null")
        offsets = chunk.offsets.to_numpy()
        yield np.diff(offsets), chunk.values.to_numpy()[offsets[0] : offsets[-1]]


def lengths(column: pa.ChunkedArray) -> Lengths:
    """The length of each list of a column."""
    import numpy as np

    return np.concatenate([np.empty(0, np.int32), *(lengths for lengths, _ in lists(column))])


def narrow(ids: NDArray[Any], dtype: str, vocab_size: int) -> memoryview:
    """The bytes of tokens in a file whose tokens are of the type `dtype`.

    Raises `CorpusError` if there is a token that the vocabulary does not have, which might not fit.
    """
    if len(ids) and not (ids.min() >= 0 and ids.max() < vocab_size):
        wrong = ids[(ids < 0) | (ids >= vocab_size)][0]
        raise CorpusError(f"token {wrong} is outside the vocabulary of {vocab_size} tokens")
    return ids.astype(dtype, copy=False).data.cast("B") if len(ids) else memoryview(b"")
