"""The tokens of several texts: two flat arrays that look like a sequence of arrays."""

from __future__ import annotations

from itertools import pairwise

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, TypeAlias

    import numpy as np
    from numpy.typing import NDArray

    Ids: TypeAlias = NDArray[np.int32]


class Batch:
    """What `Tokenizer.encode_batch` gives: `batch[i]` is a view of the ids of text `i`; nothing is copied."""

    __slots__ = ("ids", "offsets")

    def __init__(self, ids: Ids, offsets: NDArray[np.int64]) -> None:
        self.ids = ids
        """The ids of all texts end to end, int32, shape (total,)."""
        self.offsets = offsets
        """Text `i` has `ids[offsets[i]:offsets[i + 1]]`; int64, shape (texts + 1,)."""

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: int) -> Ids:
        """The ids of one text. Raises `IndexError` beyond the last."""
        count = len(self)
        if not -count <= index < count:
            raise IndexError(f"text {index} of a batch of {count}")
        begin = index % count
        return self.ids[self.offsets[begin] : self.offsets[begin + 1]]

    def __iter__(self) -> Iterator[Ids]:
        return (self.ids[begin:end] for begin, end in zip(self.offsets[:-1], self.offsets[1:], strict=True))

    def tolist(self) -> list[list[int]]:
        """The ids of each text as lists of Python integers."""
        ids: list[int] = self.ids.tolist()
        offsets: list[int] = self.offsets.tolist()
        return [ids[begin:end] for begin, end in pairwise(offsets)]

    def __eq__(self, other: Any) -> bool:
        if not isinstance(other, Batch):
            return NotImplemented
        return self.tolist() == other.tolist()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<ggtok.Batch of {len(self)} texts, {len(self.ids)} tokens>"
