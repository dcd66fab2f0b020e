"""Columns of lists as numpy arrays: the buffers of Arrow, without copies."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

from ...errors import CorpusError
from ..packages import np, npt, pa

Lengths: TypeAlias = "npt.NDArray[np.int32]"


def lists(column: pa.ChunkedArray) -> Iterator[tuple[Lengths, npt.NDArray[Any]]]:
    """For each chunk of a column of lists, the length of each list, and all their values.

    Raises `CorpusError` if a list is null.
    """
    for chunk in column.chunks:
        if chunk.null_count:
            raise CorpusError(f"a document has no list of {chunk.type.value_type}, but null")
        offsets = chunk.offsets.to_numpy()
        yield np.diff(offsets), chunk.values.to_numpy()[offsets[0] : offsets[-1]]


def narrow(ids: npt.NDArray[Any], dtype: str, vocab_size: int) -> memoryview:
    """The bytes of tokens in a file whose tokens are of the type `dtype`.

    Raises `CorpusError` if there is a token that the vocabulary does not have, which might not fit.
    """
    if len(ids) and ids.view(np.uint32).max() >= vocab_size:  # of this type, negative ones are large
        wrong = ids[(ids < 0) | (ids >= vocab_size)][0]
        raise CorpusError(f"token {wrong} is outside the vocabulary of {vocab_size} tokens")
    return ids.astype(dtype, copy=False).data.cast("B") if len(ids) else memoryview(b"")
