"""The tokens of several texts: two flat arrays that look like a sequence of arrays."""

from __future__ import annotations

from itertools import pairwise
from operator import index as as_int

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, SupportsIndex, TypeAlias, overload

    import numpy as np
    from numpy.typing import NDArray

    Ids: TypeAlias = NDArray[np.int32]


class Batch:
    """The tokens of several texts, as `Tokenizer.encode_batch` returns them.

    A sequence with one array of ids per text. All arrays are views of `ids`: nothing is copied.

    >>> import ggtok
    >>> batch = ggtok.Tokenizer.builtin("bpe").encode_batch(["one text", "and another", "a third"])
    >>> len(batch), batch[1]
    (3, array([6019, 7237], dtype=int32))
    >>> batch.ids
    array([ 6053,  7301,  6019,  7237,    64, 10300], dtype=int32)
    >>> batch.offsets
    array([0, 2, 4, 6])
    """

    __slots__ = ("ids", "offsets")

    ids: Ids
    """The ids of all texts, end to end: int32, shape `(number of tokens,)`."""
    offsets: NDArray[np.int64]
    """Text `i` has the ids `ids[offsets[i]:offsets[i + 1]]`: int64, shape `(number of texts + 1,)`."""

    def __init__(self, ids: Ids, offsets: NDArray[np.int64]) -> None:
        self.ids = ids
        self.offsets = offsets

    def __len__(self) -> int:
        return len(self.offsets) - 1

    if TYPE_CHECKING:

        @overload
        def __getitem__(self, index: SupportsIndex) -> Ids: ...
        @overload
        def __getitem__(self, index: slice) -> Batch: ...

    def __getitem__(self, index: SupportsIndex | slice) -> Ids | Batch:
        """The ids of one text, or the batch of a slice of the texts.

        A slice with a step of 1 is a view, as of a list of texts; one with another step copies its ids.

        Raises `IndexError` for a text that is not in the batch, and `TypeError` for an index of another type.

        >>> import ggtok
        >>> batch = ggtok.Tokenizer.builtin("bpe").encode_batch(["one text", "and another", "a third"])
        >>> batch[-1].tolist(), batch[:2].tolist(), batch[::-1].tolist()
        ([64, 10300], [[6053, 7301], [6019, 7237]], [[64, 10300], [6019, 7237], [6053, 7301]])
        """
        if isinstance(index, slice):
            return self._slice(*index.indices(len(self)))
        try:
            text = as_int(index)
        except TypeError:
            found = type(index).__name__
            raise TypeError(f"the index of a batch must be an integer or a slice, not {found}") from None
        num_texts = len(self)
        if not -num_texts <= text < num_texts:
            raise IndexError(f"text {text} of a batch of {num_texts}")
        text %= num_texts
        return self.ids[self.offsets[text] : self.offsets[text + 1]]

    def _slice(self, start: int, stop: int, step: int) -> Batch:
        import numpy as np

        if step == 1:
            offsets = self.offsets[start : max(start, stop) + 1]
            return Batch(self.ids[offsets[0] : offsets[-1]], offsets - offsets[0])
        texts = np.arange(start, stop, step)
        offsets = np.zeros(len(texts) + 1, np.int64)
        np.cumsum((self.offsets[1:] - self.offsets[:-1])[texts], out=offsets[1:])
        return Batch(np.concatenate([self.ids[:0], *(self[text] for text in texts)]), offsets)

    def __iter__(self) -> Iterator[Ids]:
        return (self.ids[start:end] for start, end in zip(self.offsets[:-1], self.offsets[1:], strict=True))

    def tolist(self) -> list[list[int]]:
        """The ids of each text as a list of Python ints.

        >>> import ggtok
        >>> ggtok.Tokenizer.builtin("bpe").encode_batch(["one text", "and another"]).tolist()
        [[6053, 7301], [6019, 7237]]
        """
        ids: list[int] = self.ids.tolist()
        offsets: list[int] = self.offsets.tolist()
        return [ids[start:end] for start, end in pairwise(offsets)]

    def __eq__(self, other: Any) -> bool:
        if not isinstance(other, Batch):
            return NotImplemented
        return self.tolist() == other.tolist()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<ggtok.Batch of {len(self)} texts, {len(self.ids)} tokens>"
