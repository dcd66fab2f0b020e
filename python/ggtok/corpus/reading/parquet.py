"""Parquet files, by pyarrow: page by page, so that the memory does not grow with the row groups."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..blocks import BLOCK_SIZE, Block
from ..packages import pa, pq
from ..settings import Reading
from ..sources import Input
from .columns import Batch, blocks, check, damaged

PIECE = BLOCK_SIZE * 3 // 4
"""Bytes that a batch aims at, by the mean length in its row group: nearly always a block, so that no text is copied."""

MOST_ROWS = 4096
"""Rows of a batch."""

BUFFER = 1 << 20
"""Bytes of a column that are read at once. Without it, all of a row group's are."""


def parts(source: Input, cut: int) -> list[tuple[int, int]]:
    """Where a file can be cut: row groups, each with the number of its first row; and its end.

    The parts have about `cut` bytes, as written before compression. Raises `CorpusError`.
    """
    found, row, size = [(0, 1)], 1, 0
    with _open(source) as file:
        metadata = file.metadata
        for number in range(metadata.num_row_groups):
            if size >= cut:
                found.append((number, row))
                size = 0
            group = metadata.row_group(number)
            row += group.num_rows
            size += group.total_byte_size
    return [*found, (metadata.num_row_groups, row)]


def read(source: Input, start: int, end: int | None, first_row: int, reading: Reading) -> Iterator[Block]:
    """Blocks of some row groups. See `read`."""
    with _open(source) as file:
        check(source, file.schema_arrow, reading)
        batches = _batches(file, source, start, end, reading)
        yield from blocks(batches, source, first_row, reading)


def _batches(file: Any, source: Input, start: int, end: int | None, reading: Reading) -> Iterator[Batch]:
    metadata, names = file.metadata, [reading.field, *reading.columns]
    paths = [metadata.schema.column(number).path for number in range(metadata.num_columns)]
    leaves = [number for number, path in enumerate(paths) if path.split(".")[0] in names or path in names]
    groups = range(metadata.num_row_groups if end is None else end)
    total = sum(metadata.row_group(number).total_byte_size for number in range(metadata.num_row_groups)) or 1
    for number in groups[start:]:
        group = metadata.row_group(number)
        if not group.num_rows:
            continue
        size = sum(group.column(leaf).total_uncompressed_size for leaf in leaves)
        num_rows = max(1, min(MOST_ROWS, PIECE * group.num_rows // max(size, 1)))
        share = (source.size or 0) * group.total_byte_size // total
        done = 0
        for rows in file.iter_batches(num_rows, [number], names, use_threads=False):
            before, done = done, done + rows.num_rows
            yield rows, share * done // group.num_rows - share * before // group.num_rows


def _open(source: Input) -> Any:
    """The file. Raises `CorpusError` if it cannot be opened or is not Parquet."""
    try:
        return pq.ParquetFile(source.open(), buffer_size=BUFFER, pre_buffer=False)
    except (pa.ArrowException, OSError) as error:
        raise damaged(source, error) from error
