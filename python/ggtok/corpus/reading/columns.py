"""Columns of tables: what Parquet and Arrow files have in common.

Only the wanted columns are read, a few rows at a time (`Batch`). A text that is not UTF-8 in a column of strings is a
bad row; a column of bytes may hold anything, because llama.cpp tokenizes bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, TypeAlias

from ...errors import CorpusError
from ..blocks import BLOCK_SIZE, ROW, BadRow, Block, picked
from ..grouping import grouped, text_sizes
from ..names import check_column
from ..packages import np, pa, pc
from ..settings import Reading
from ..sources import Input
from ..table import broken, holds_documents, is_text, plain

Batch: TypeAlias = "tuple[pa.RecordBatch, int]"
"""A few rows of a file, and their share of its bytes."""


def check(source: Input, schema: pa.Schema, reading: Reading) -> None:
    """Raises `CorpusError` if a column is missing, or if the column of texts has the wrong type."""
    for name in (reading.field, *reading.columns):
        try:
            kind = _column(schema.empty_table(), name).type
        except (KeyError, pa.ArrowException):
            check_column(name, schema.names, source.name)
            raise
        if name in (reading.field, *reading.others) and not holds_documents(kind, reading.is_chat):
            expected = "lists of messages or their JSON text" if reading.is_chat else "texts"
            raise CorpusError(f"column {name!r} has the type {kind}, not {expected}", source=source.name)


def top(name: str, names: list[str]) -> str:
    """The column that a name is in: of a path through structs such as `doc.text`, the first."""
    return name if name in names else name.partition(".")[0]


def _column(rows: Any, name: str) -> Any:
    """A column of a table or batch, or a field of the structs in it."""
    column = rows.column(top(name, rows.schema.names))
    return column if name in rows.schema.names else pc.struct_field(column, name.split(".")[1:])


def blocks(batches: Iterator[Batch], source: Input, first_row: int, reading: Reading) -> Iterator[Block]:
    """The blocks of batches: a document that is longer than `BLOCK_SIZE` is alone. A bad row is with those before it.

    Raises `CorpusError` if reading a batch fails, or if a column is damaged.
    """
    row = first_row
    try:
        for rows, num_bytes in batches:
            table, bad = _documents(rows, source, row, reading)
            row += rows.num_rows
            parts = grouped(table, BLOCK_SIZE, lambda part: text_sizes(part[reading.field])) or [table]
            firsts = [0, *(part.column(ROW)[0].as_py() for part in parts[1:]), row]
            for number, (part, (first, after)) in enumerate(zip(parts, pairwise(firsts), strict=True)):
                near = [each for each in bad if first <= each.row < after]
                yield Block(part, near, 0 if number else num_bytes)
    except (pa.ArrowException, OSError) as error:
        raise damaged(source, error, row) from error


def damaged(source: Input, error: Exception, row: int | None = None) -> CorpusError:
    """The error for a file that its format's reader does not take."""
    # A damaged length asks for absurdly much memory.
    hint = ", or memory ran out" if isinstance(error, MemoryError) else ""
    return CorpusError(f"it is not valid {source.format.capitalize()}{hint}: {error}", source=source.name, row=row)


def _documents(batch: pa.RecordBatch, source: Input, row: int, reading: Reading) -> tuple[pa.Table, list[BadRow]]:
    """The documents of a batch, and the rows that are not."""
    num_rows = batch.num_rows
    texts = plain(_column(batch, reading.field))
    is_document = np.ones(num_rows, bool)
    bad: list[BadRow] = []
    if texts.null_count:
        is_null = texts.is_null().to_numpy(zero_copy_only=False)
        if reading.nulls == "empty":
            empty: Any = ("[]" if reading.is_chat else "") if is_text(texts.type) else []
            texts = pc.if_else(texts.is_valid(), texts, pa.scalar(empty, texts.type))
        else:
            is_document &= ~is_null
        if reading.nulls == "error":
            reason = f"column {reading.field!r} is null"
            bad += [BadRow(source.name, row + int(at), reason) for at in np.flatnonzero(is_null)]
    for at, reason, data in broken(texts):
        is_document[at] = False
        bad.append(BadRow(source.name, row + at, f"column {reading.field!r}: {reason}", data[: BadRow.MOST_DATA]))
    kept = {name: _column(batch, name) for name in reading.columns}
    for name, column in kept.items():
        try:
            column.validate(full=True)
        except pa.ArrowInvalid as error:
            raise CorpusError(f"column {name!r} is damaged: {error}", source=source.name, row=row) from error
    rows = pa.array(np.arange(row, row + num_rows, dtype=np.int64))
    table = pa.Table.from_arrays([texts, *kept.values(), rows], [reading.field, *kept, ROW])
    if not is_document.all():
        table = picked(table, is_document)
    return table, sorted(bad, key=lambda each: each.row)
