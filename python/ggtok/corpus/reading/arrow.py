"""Arrow files (which Feather's are), and streams, which `datasets` writes, a record batch at a time.

A batch is in memory as a whole. Files are not mapped: one that is truncated while it is read would end the process.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..blocks import BLOCK_SIZE, Block
from ..packages import pa
from ..settings import Reading
from ..sources import Input
from .columns import Batch, blocks, check, damaged, top

FILE = b"ARROW1"
"""How files of the random access format begin. Anything else is a stream."""


def parts(source: Input, cut: int) -> list[tuple[int, int]]:
    """Where a file can be cut, each with the number of its first row.

    A file is cut at the number of a batch, a stream at its first byte: a stream with dictionaries not at all, because
    they may stand anywhere before a batch. The parts have about `cut` bytes, by the rows. Raises `CorpusError`.
    """
    found, row, start = [(0, 1)], 1, 0
    with _opened(source) as (opened, is_file):
        schema = _reader(opened, is_file, None).schema
        has_dictionary = any(_has_dictionary(field.type) for field in schema)
        reader = _reader(opened, is_file, _cheapest(schema))
        if is_file:
            ends = [row := row + reader.get_batch(number).num_rows for number in range(reader.num_record_batches)]
            rows_of_cut = max(1, cut * (row - 1) // max(1, opened.size()))
            for number, end in enumerate(ends[:-1], 1):
                if end - found[-1][1] >= rows_of_cut:
                    found.append((number, end))
            return [*found, (reader.num_record_batches, row)]
        position = opened.tell()
        for batch in reader:
            if position - start >= cut and row > found[-1][1] and not has_dictionary:
                found.append((position, row))
                start = position
            row += batch.num_rows
            position = opened.tell()
    return [*found, (position, row)]


def read(source: Input, start: int, end: int | None, first_row: int, reading: Reading) -> Iterator[Block]:
    """Blocks of some batches. See `read`."""
    with _opened(source) as (opened, is_file):
        schema = _reader(opened, is_file, None).schema
        check(source, schema, reading)
        names = dict.fromkeys(top(name, schema.names) for name in (reading.field, *reading.columns))
        reader = _reader(opened, is_file, [*map(schema.get_field_index, names)])
        batches = (_of_file if is_file else _of_stream)(reader, opened, start, end)
        yield from blocks(batches, source, first_row, reading)


def _of_file(reader: Any, opened: Any, start: int, end: int | None) -> Iterator[Batch]:
    num_batches, size = reader.num_record_batches, opened.size()
    for number in range(start, num_batches if end is None else end):
        share = size * (number + 1) // num_batches - size * number // num_batches
        yield from _slices(reader.get_batch(number), share)


def _of_stream(reader: Any, opened: Any, start: int, end: int | None) -> Iterator[Batch]:
    position = start
    if start:
        opened.seek(start)
    for rows in reader:
        before, position = position, opened.tell()
        yield from _slices(rows, position - before)
        if end is not None and position >= end:
            return


def _slices(batch: pa.RecordBatch, num_bytes: int) -> Iterator[Batch]:
    """A batch in slices of about `BLOCK_SIZE`, because some writers make one of a whole file.

    One with dictionaries is not cut: each slice would have the whole dictionary to check.
    """
    num_rows, step = batch.num_rows, batch.num_rows
    if not any(_has_dictionary(field.type) for field in batch.schema):
        step = max(1, BLOCK_SIZE * num_rows // max(1, batch.nbytes))
    for start in range(0, num_rows, max(1, step)):
        end = min(num_rows, start + step)
        yield batch.slice(start, end - start), num_bytes * end // num_rows - num_bytes * start // num_rows


def _reader(opened: Any, is_file: bool, columns: list[int] | None) -> Any:
    """What reads some columns of a file or stream from its start."""
    options = pa.ipc.IpcReadOptions(included_fields=columns, use_threads=False)
    opened.seek(0)
    return (pa.ipc.open_file if is_file else pa.ipc.open_stream)(opened, options=options)


def _cheapest(schema: pa.Schema) -> list[int] | None:
    """A column to count rows with: of numbers, if there is one."""
    in_order = sorted(range(len(schema)), key=lambda number: not pa.types.is_primitive(schema.field(number).type))
    return in_order[:1] or None


def _has_dictionary(kind: pa.DataType) -> bool:
    """Whether a type has a dictionary, anywhere in it."""
    inner = any(_has_dictionary(kind.field(number).type) for number in range(kind.num_fields))
    return inner or bool(pa.types.is_dictionary(kind))


@contextmanager
def _opened(source: Input) -> Iterator[tuple[Any, bool]]:
    """The bytes, and whether they are a file or a stream. What pyarrow raises about them becomes a `CorpusError`."""
    try:
        with source.open() as opened:
            yield opened, opened.read(len(FILE)) == FILE
    except (pa.ArrowException, OSError) as error:
        raise damaged(source, error) from error
