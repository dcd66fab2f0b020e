"""Parquet and Arrow files: a row for each document or packed sequence.

- `input_ids` is `list<int32>`. By choice there are `attention_mask` and `assistant_mask`, `list<int8>`, and columns
  that are carried over. Packed sequences also have `cu_seqlens`, and no columns of documents.
- Row groups of Parquet and record batches of Arrow have at most `GROUP_BYTES`. Only a document that is larger makes a
  larger one.
- The bytes do not depend on the time or on how the documents come, but they do on the version of pyarrow.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ...errors import CorpusError
from ..blocks import BOUNDARIES, IDS, MASK
from ..grouping import Groups, grouped, row_sizes
from ..packages import np, pa
from ..pairs import separated
from ..settings import Writing
from ..trainers import TRAINERS, is_token, renamed
from . import ShardWriter
from .shard_files import ShardFiles

ATTENTION = "attention_mask"
"""The column that distinguishes tokens from padding: `list<int8>`, 1 for a token and 0 for padding."""

GROUP_BYTES = 16 << 20
"""The most bytes of documents in a row group or record batch. As many are held, and twice as many while it is written.

Larger ones are no smaller on the disk, and the memory for them costs time: a corpus takes a quarter longer with 64 MiB.
"""


class TableWriter(ShardWriter):
    """What is common to both: which columns there are, and how they are grouped."""

    is_table = True
    piece_bytes = GROUP_BYTES
    """The most bytes of documents in a chunk that pyarrow gets."""

    def __init__(self, files: ShardFiles, writing: Writing) -> None:
        self._file = files.open(self.suffixes[0])
        self._name, self._writing = files.name, writing
        self._schema: Any = None
        self._groups = Groups(GROUP_BYTES, row_sizes, self._write, fits=True)

    def write(self, table: pa.Table) -> None:
        with self._explained():
            self._groups.push(self._conformed(table))

    def close(self) -> None:
        with self._explained():
            if self._schema is None:
                self._begin(pa.schema([]))
            self._groups.flush()
            self._writer.close()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turns Arrow's errors into a `CorpusError`: a type of a carried column that the format does not have."""
        try:
            yield
        except (pa.ArrowException, OSError) as error:
            raise CorpusError(f"{self._writing.format} cannot hold this: {error}", source=self._name) from error

    def _write(self, group: pa.Table) -> None:
        pieces = grouped(group, self.piece_bytes, row_sizes)
        tables = [self._finished(_in_one_chunk(piece)) for piece in pieces]
        self._writer.write_table(pa.concat_tables(tables), len(group))

    def open(self, schema: pa.Schema) -> Any:
        """pyarrow's writer for the file."""
        raise NotImplementedError

    def _begin(self, schema: pa.Schema) -> None:
        """Opens the file, whose carried columns have the types of the first table. Without a table they are nulls."""
        writing = self._writing
        numbers, flags = pa.list_(pa.int32()), pa.list_(pa.int8())
        fields = [pa.field(IDS, numbers)]
        fields += [pa.field(BOUNDARIES, numbers)] if writing.pack is not None else []
        fields += [pa.field(MASK, flags)] if writing.assistant_mask else []
        for name in writing.columns:
            kind = schema.field(name).type if name in schema.names else pa.null()
            fields.append(pa.field(name, kind.value_type if pa.types.is_dictionary(kind) else kind))
        metadata = None
        if writing.pack is not None:
            metadata = {"ggtok": json.dumps({"pack": writing.pack, "pad_id": writing.pad_id})}
        self._schema = pa.schema(fields, metadata)
        written = self._finished(self._schema.empty_table()).schema
        if twice := next((name for name in writing.columns if written.names.count(name) > 1), None):
            raise CorpusError(f"a column {twice!r} is written for the tokens, so it cannot be kept too")
        self._writer = self.open(written)

    def _conformed(self, table: pa.Table) -> pa.Table:
        """The columns that are written, in their order and with their types."""
        if self._schema is None:
            self._begin(table.schema)
        columns = []
        for field in self._schema:
            column = table[field.name]
            if column.type != field.type:
                try:
                    column = column.cast(field.type)
                except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
                    problem = f"column {field.name!r} is {column.type} here, and {field.type} in documents before"
                    raise CorpusError(problem) from error
            columns.append(column)
        return pa.Table.from_arrays(columns, schema=self._schema)

    def _finished(self, group: pa.Table) -> pa.Table:
        """The columns of the file: with the mask of padding, and by a trainer's names, if requested."""
        length, trainer = self._writing.pack, self._writing.trainer
        if self._writing.is_pair:
            return separated(group)
        if self._writing.attention_mask:
            mask = pa.ListArray.from_arrays(group[IDS].chunk(0).offsets, is_token(group, length).astype(np.int8))
            group = group.add_column(1, ATTENTION, mask)
        return group if trainer is None else renamed(group, TRAINERS[trainer], length)


def _in_one_chunk(table: pa.Table) -> pa.Table:
    """A table with one chunk for each column, always a copy: what surrounds a slice of a buffer is left out."""
    columns = [pa.concat_arrays([*column.chunks, pa.array([], column.type)]) for column in table.columns]
    return pa.Table.from_arrays(columns, schema=table.schema)
