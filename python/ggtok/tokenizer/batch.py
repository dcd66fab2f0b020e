"""The tokens of several texts: flat ids and offsets that look like a sequence of arrays."""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise
from operator import index as as_int

from .._ggtok import Buffer, FlatBatch, import_numpy
from ..errors import ArgumentTypeError, DependencyError, GgtokError
from .numbers import at_least

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, Literal, SupportsIndex, TypeAlias, overload

    import numpy as np
    from numpy.typing import NDArray

    Ids: TypeAlias = NDArray[np.int32]
    Mask: TypeAlias = NDArray[np.bool_]


NUM_SHOWN = 12
"""Texts, and ids of each, that a notebook shows."""


class Batch:
    """The tokens of several texts, as `Tokenizer.encode_batch` returns them. Immutable.

    A sequence with one array of ids per text. All of them are views of one block of memory: nothing is copied.

    Rows (`batch[1]`), and what `pad` returns, are numpy arrays. Without numpy, they are `memoryview` objects with the
    same items and shape, which have `len`, indices, slices, `tolist` and `==` too. The memory is read-only: change a
    copy of it.

    Other libraries share the memory: Arrow (`pyarrow.array(batch)`, `polars.Series(batch)`) sees a list per text, and
    `buffers` gives the flat ids and offsets, for the buffer protocol and DLPack.

    A null in an Arrow column of texts has no tokens. Its row is empty, and stays null in Arrow.

    >>> import ggtok
    >>> batch = ggtok.Tokenizer.builtin("bpe").encode_batch(["one text", "and another", "a third"])
    >>> len(batch), batch[1]
    (3, array([6019, 7237], dtype=int32))
    >>> batch.ids
    array([ 6053,  7301,  6019,  7237,    64, 10300], dtype=int32)
    >>> batch.offsets
    array([0, 2, 4, 6])
    """

    def __init__(self, rows: FlatBatch, pad_id: int | None = None) -> None:
        self._rows, self._pad_id = rows, pad_id
        self._offsets = memoryview(rows.offsets())

    @property
    def ids(self) -> Ids:
        """The ids of all texts, end to end: a numpy array, int32, shape `(number of tokens,)`.

        Raises `DependencyError` if numpy is not installed; `buffers` needs no numpy.
        """
        ids: Ids = import_numpy().asarray(self._rows.ids())
        return ids

    @property
    def offsets(self) -> NDArray[np.int64]:
        """Text `i` has the ids `ids[offsets[i]:offsets[i + 1]]`: int64, shape `(number of texts + 1,)`.

        Raises `DependencyError` if numpy is not installed.
        """
        offsets: NDArray[np.int64] = import_numpy().asarray(self._rows.offsets())
        return offsets

    @property
    def null_count(self) -> int:
        """The number of texts that were null in an Arrow column.

        >>> import ggtok
        >>> ggtok.Tokenizer.builtin("bpe").encode_batch(["", "a"]).null_count
        0
        """
        return self._rows.null_count

    def __len__(self) -> int:
        return len(self._rows)

    if TYPE_CHECKING:

        @overload
        def __getitem__(self, index: SupportsIndex) -> Ids: ...
        @overload
        def __getitem__(self, index: slice) -> Batch: ...

    def __getitem__(self, index: SupportsIndex | slice) -> Ids | Batch:
        """The ids of one text, or the batch of a slice of the texts.

        A slice with a step of 1 shares the ids; one with another step copies them.

        Raises `IndexError` for a text that is not in the batch, and `TypeError` for an index of another type.

        >>> import ggtok
        >>> batch = ggtok.Tokenizer.builtin("bpe").encode_batch(["one text", "and another", "a third"])
        >>> batch[-1].tolist(), batch[:2].tolist(), batch[::-1].tolist()
        ([64, 10300], [[6053, 7301], [6019, 7237]], [[64, 10300], [6019, 7237], [6053, 7301]])
        """
        if isinstance(index, slice):
            texts = range(*index.indices(len(self)))
            start = texts.start if texts else 0
            return Batch(self._rows.select(start, len(texts), texts.step), self._pad_id)
        try:
            text = as_int(index)
        except TypeError:
            found = type(index).__name__
            raise ArgumentTypeError(f"the index of a batch must be an integer or a slice, not {found}") from None
        num_texts = len(self)
        if not -num_texts <= text < num_texts:
            raise IndexError(f"text {text} of a batch of {num_texts}")
        text %= num_texts
        ids: Ids = self._all_ids[self._offsets[text] : self._offsets[text + 1]]
        return ids

    def __iter__(self) -> Iterator[Ids]:
        ids = self._all_ids
        return (ids[start:end] for start, end in pairwise(self._offsets))

    @cached_property
    def _all_ids(self) -> Any:
        """The ids of all texts, in the form that rows have."""
        numpy, ids = _numpy(), self._rows.ids()
        return memoryview(ids) if numpy is None else numpy.asarray(ids)

    def tolist(self) -> list[list[int]]:
        """The ids of each text as a list of Python ints.

        >>> import ggtok
        >>> ggtok.Tokenizer.builtin("bpe").encode_batch(["one text", "and another"]).tolist()
        [[6053, 7301], [6019, 7237]]
        """
        return self._rows.tolist()

    def buffers(self) -> tuple[Buffer, Buffer]:
        """The flat ids (int32) and offsets (int64) as memory that other libraries read without a copy.

        A `Buffer` has the buffer protocol (`memoryview`, `numpy.asarray`) and, through numpy, DLPack
        (`torch.from_dlpack`).

        >>> import ggtok
        >>> ids, offsets = ggtok.Tokenizer.builtin("bpe").encode_batch(["one text", "and another"]).buffers()
        >>> memoryview(ids).tolist(), memoryview(offsets).tolist()
        ([6053, 7301, 6019, 7237], [0, 2, 4])
        """
        return self._rows.ids(), self._rows.offsets()

    def pad(
        self,
        length: SupportsIndex | None = None,
        *,
        side: Literal["left", "right"] = "right",
        value: SupportsIndex | None = None,
        multiple_of: SupportsIndex | None = None,
    ) -> tuple[Ids, Mask]:
        """Fills up all rows to one length, and marks which of the ids come from the texts.

        Args:
            length: The length of every row. Default: the longest one's.
            side: Where to fill: "right", after the ids, or "left", before them, as for generation.
            value: The id to fill with. Default: the vocabulary's padding token, `vocab.pad_id`.
            multiple_of: Round the length up to a multiple of this.

        Returns:
            The ids, int32, and the mask, bool: true for ids that come from a text. Both have the shape
            `(number of texts, length)`. As numpy arrays they can be written to.

        Raises:
            GgtokError: A text has more tokens than `length` (its number is named); the vocabulary has no padding token
                and no `value` is given; an argument is negative or, `multiple_of`, 0; `side` is something else; the
                result does not fit into memory, or has more than 2**24 ids a row without need.
            TypeError: An argument has the wrong type.

        O(number of texts * length).

        >>> import ggtok
        >>> batch = ggtok.Tokenizer.builtin("bpe").encode_batch(["one text", "What is LoRA?"])
        >>> ids, mask = batch.pad(side="left")
        >>> ids
        array([[12991, 12991, 12991, 12991,  6053,  7301],
               [ 9713,  5981,  6266,    78,  9612,    30]], dtype=int32)
        >>> mask.sum(axis=1)
        array([2, 6])
        """
        if side not in ("left", "right"):
            raise GgtokError(f'side must be "left" or "right", not {side!r}')
        fill = self._pad_id if value is None else as_int(value)
        if fill is None:
            raise GgtokError("the vocabulary has no padding token: pass the id to fill with as value=")
        if not -(2**31) <= fill < 2**31:
            raise GgtokError(f"value must fit into 32 bits, not {fill}")
        wanted = None if length is None else at_least(0, length, "length")
        multiple = 1 if multiple_of is None else at_least(1, multiple_of, "multiple_of")
        has_numpy = _numpy() is not None
        padded: Any = self._rows.pad(wanted, side == "left", fill, multiple, has_numpy)
        if not has_numpy:
            padded = map(memoryview, padded)
        ids, mask = padded
        return ids, mask

    @property
    def attention_mask(self) -> Mask:
        """The mask that `pad()` returns: bool, shape `(number of texts, most tokens of a text)`.

        >>> import ggtok
        >>> ggtok.Tokenizer.builtin("bpe").encode_batch(["one text", "a"]).attention_mask.tolist()
        [[True, True], [True, False]]
        """
        return self.pad(value=0)[1]

    def to_arrow(self) -> Any:
        """A `pyarrow.LargeListArray` with a list of int32 per text, `large_list<int32>`. It shares the memory.

        Raises `DependencyError` if pyarrow is not installed. Other libraries with the Arrow PyCapsule interface take
        the batch itself.

        >>> import ggtok
        >>> ggtok.Tokenizer.builtin("bpe").encode_batch(["one text", "a"]).to_arrow().to_pylist()
        [[6053, 7301], [64]]
        """
        try:
            import pyarrow
        except ModuleNotFoundError as error:
            raise DependencyError("to_arrow needs pyarrow, which is not installed: pip install pyarrow") from error
        return pyarrow.array(self)

    def __arrow_c_schema__(self) -> object:
        """The type that `__arrow_c_array__` returns: `large_list<int32>`."""
        return self._rows.arrow_schema()

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        """The batch by the Arrow PyCapsule interface: a list of int32 per text, null for a null.

        The type is `large_list<int32>`, or `list<int32>` if that is requested and 32-bit offsets suffice.
        """
        return self._rows.arrow_array(requested_schema)

    def __eq__(self, other: Any) -> bool:
        if not isinstance(other, Batch):
            return NotImplemented
        return self._rows == other._rows

    def __reduce__(self) -> tuple[object, ...]:
        return Batch, (self._rows, self._pad_id)

    def to_dict(self) -> dict[str, list[list[int]]]:
        """The ids of each text as a dict, for JSON: `{"ids": [[...], ...]}`. A null is an empty list.

        >>> import ggtok
        >>> ggtok.Tokenizer.builtin("bpe").encode_batch(["one text", "and another"]).to_dict()
        {'ids': [[6053, 7301], [6019, 7237]]}
        """
        return {"ids": self.tolist()}

    def _repr_html_(self) -> str:
        """For notebooks: the first texts with their first ids."""
        from .notebook import table

        rows = []
        for number, ids in enumerate(self[:NUM_SHOWN]):
            some = ids[:NUM_SHOWN].tolist()
            rows.append((str(number), f"{len(ids):,}", " ".join(map(str, some)) + " …" * (len(ids) > len(some))))
        if len(self) > NUM_SHOWN:
            rows.append((f"and {len(self) - NUM_SHOWN:,} more", "", ""))
        return table(("text", "tokens", "ids"), rows, texts=3)

    def __repr__(self) -> str:
        nulls = f", {self.null_count} of them null" if self.null_count else ""
        return f"<ggtok.Batch of {len(self)} texts{nulls}, {self._offsets[-1]} tokens>"


def _numpy() -> Any:
    """numpy; `None` if it is not installed."""
    try:
        return import_numpy()
    except DependencyError as error:
        if isinstance(error.__cause__, ModuleNotFoundError):
            return None
        raise  # it is installed but broken
