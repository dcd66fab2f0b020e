"""Regroups documents by size: the same documents make the same groups, however they are cut into tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..packages import np, npt, pa, pc


class Groups:
    """Fills each group with as many documents as fit into `most_bytes`. A larger document is a group by itself."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._held: list[pa.Table] = []
        self._held_bytes = 0

    def push(self, table: pa.Table) -> Iterator[pa.Table]:
        """Adds documents, and yields the groups that they complete."""
        ends = np.cumsum(row_sizes(table))
        start, done = 0, 0
        while start < len(table):
            stop = int(np.searchsorted(ends, done + self._most_bytes - self._held_bytes, "right"))
            if stop == start and not self._held:
                stop += 1
                self._held_bytes = self._most_bytes
            if stop > start:
                self._held.append(table.slice(start, stop - start))
                self._held_bytes += int(ends[stop - 1]) - done
                start, done = stop, int(ends[stop - 1])
            if start < len(table) or self._held_bytes > self._most_bytes:
                yield from self.flush()

    def flush(self) -> Iterator[pa.Table]:
        """Yields the last group, if it has documents."""
        if self._held:
            held, self._held, self._held_bytes = self._held, [], 0
            yield pa.concat_tables(held)


def in_one_chunk(table: pa.Table) -> pa.Table:
    """A table with one chunk for each column, always a copy: what surrounds a slice of a buffer is left out."""
    columns = [pa.concat_arrays([*column.chunks, pa.array([], column.type)]) for column in table.columns]
    return pa.Table.from_arrays(columns, schema=table.schema)


def row_sizes(table: pa.Table) -> npt.NDArray[np.int64]:
    """About how many bytes each row takes."""
    sizes = np.zeros(len(table), np.int64)
    for column in table.columns:
        start = 0
        for chunk in column.chunks:
            sizes[start : start + len(chunk)] += value_sizes(chunk)
            start += len(chunk)
    return sizes


def value_sizes(array: pa.Array) -> npt.NDArray[Any]:
    """About how many bytes each value of an array takes."""
    types, kind = pa.types, array.type
    if types.is_list(kind) or types.is_large_list(kind) or types.is_map(kind):
        offsets = array.offsets.to_numpy().astype(np.int64)
        inside = array.values.slice(offsets[0], offsets[-1] - offsets[0])
        offsets -= offsets[0]
        if width := _width(inside.type):
            return np.asarray(np.diff(offsets)) * width + 4
        total = np.zeros(len(inside) + 1, np.int64)
        np.cumsum(value_sizes(inside), out=total[1:])
        return np.asarray(np.diff(total[offsets])) + 4
    if types.is_struct(kind):
        return sum(map(value_sizes, array.flatten()), np.zeros(len(array), np.int64))
    if types.is_string(kind) or types.is_binary(kind) or types.is_large_string(kind) or types.is_large_binary(kind):
        return np.asarray(pc.fill_null(pc.binary_length(array), 0), np.int64) + 4
    return np.full(len(array), _width(kind) or 16, np.int64)


def _width(kind: pa.DataType) -> int:
    """The bytes of a value, or 0 if they differ from value to value."""
    if pa.types.is_fixed_size_list(kind):
        return int(kind.list_size) * _width(kind.value_type)
    try:
        return max(1, int(kind.bit_width) // 8)
    except ValueError:
        return 0
