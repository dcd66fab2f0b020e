"""Regroups documents by size: the same documents make the same groups, however they are cut into tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from .packages import np, npt, pa, pc

Write: TypeAlias = "Callable[[pa.Table], None]"

Sizes: TypeAlias = "Callable[[pa.Table], npt.NDArray[np.int64]]"
"""The size of each document of a table."""


class Groups:
    """Holds documents until they fill a group, which goes to `write`.

    The document that fills it is its last. With `fits`, a group has as many as fit into it instead, and a larger
    document is a group by itself.
    """

    def __init__(self, size: int, sizes: Sizes, write: Write, *, fits: bool = False) -> None:
        self._size, self._sizes, self._write, self._fits = size, sizes, write, fits
        self._held: list[pa.Table] = []
        self._room = size

    def push(self, table: pa.Table) -> None:
        """Adds documents, and writes the groups that they complete."""
        ends, start = np.concatenate([[0], np.cumsum(self._sizes(table))]), 0
        while start < len(table):
            limit = int(ends[start]) + self._room
            if self._fits:
                stop = max(int(np.searchsorted(ends, limit, "right")) - 1, start + (not self._held))
            else:
                stop = min(int(np.searchsorted(ends, limit)), len(table))
            if stop > start:
                self._held.append(table.slice(start, stop - start))
            self._room, start = limit - int(ends[stop]), stop
            if start < len(table) or self._room < 0 or (self._room == 0 and not self._fits):
                self.flush()

    def flush(self) -> None:
        """Writes what is held, if anything is."""
        if self._held:
            held, self._held, self._room = self._held, [], self._size
            self.finish(pa.concat_tables(held))

    def finish(self, group: pa.Table) -> None:
        """Writes a group."""
        self._write(group)


def grouped(table: pa.Table, size: int, sizes: Sizes) -> list[pa.Table]:
    """The documents of a table in groups of as many as fit."""
    found: list[pa.Table] = []
    groups = Groups(size, sizes, found.append, fits=True)
    groups.push(table)
    groups.flush()
    return found


def row_sizes(table: pa.Table) -> npt.NDArray[np.int64]:
    """About how many bytes each row takes."""
    return sum(map(column_sizes, table.columns), np.zeros(len(table), np.int64))


def text_sizes(column: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    """The bytes of each text of a column, or of all texts in each list of messages; 0 for a null."""
    return column_sizes(column, of_texts=True)


def column_sizes(column: pa.ChunkedArray, of_texts: bool = False) -> npt.NDArray[np.int64]:
    """About how many bytes each value of a column takes, or those of the texts in it alone."""
    return np.concatenate([np.zeros(0, np.int64), *(value_sizes(chunk, of_texts) for chunk in column.chunks)])


def value_sizes(array: pa.Array, of_texts: bool) -> npt.NDArray[np.int64]:
    """The same for the values of an array."""
    types, kind, own = pa.types, array.type, 0 if of_texts else 4
    if of_texts and types.is_dictionary(kind):
        return value_sizes(array.dictionary_decode(), of_texts)
    if types.is_struct(kind):
        return sum((value_sizes(part, of_texts) for part in array.flatten()), np.zeros(len(array), np.int64))
    if types.is_list(kind) or types.is_large_list(kind) or types.is_map(kind):
        offsets = array.offsets.to_numpy().astype(np.int64)
        inside = array.values.slice(offsets[0], offsets[-1] - offsets[0])
        if width := 0 if of_texts else _width(inside.type):
            return np.asarray(np.diff(offsets) * width + own)
        total = np.concatenate([[0], np.cumsum(value_sizes(inside, of_texts))])
        return np.asarray(np.diff(total[offsets - offsets[0]]) + own)
    if types.is_string(kind) or types.is_binary(kind) or types.is_large_string(kind) or types.is_large_binary(kind):
        return np.asarray(pc.fill_null(pc.binary_length(array), 0), np.int64) + own
    return np.full(len(array), 0 if of_texts else _width(kind) or 16, np.int64)


def _width(kind: pa.DataType) -> int:
    """The bytes of a value, or 0 if they differ from value to value."""
    if pa.types.is_fixed_size_list(kind):
        return int(kind.list_size) * _width(kind.value_type)
    try:
        return max(1, int(kind.bit_width) // 8)
    except ValueError:
        return 0
