"""Parquet and Arrow files: a row for each document or packed sequence.

- `input_ids` is `list<int32>`. By choice there are `attention_mask` and `assistant_mask`, `list<int8>`, the id of the
  document, and columns that are carried over. Packed sequences also have `cu_seqlens`, and no columns of documents.
- Row groups of Parquet and record batches of Arrow have at most `GROUP_BYTES`. Only a document that is larger makes a
  larger one. pyarrow never ends a page of Parquet within a document, and a page has less than 2 GiB: a document of more
  than `MOST_TOKENS` is an error.
- The bytes do not depend on the time or on how the documents come, but they do on the version of pyarrow, which Parquet
  files name.

Parquet's compression, measured on a core for 250 million tokens of Llama 3 (about 1 GB of English, which takes 7 s to
encode), in seconds and bytes for each token: none 1.0 s and 4.0, LZ4 2.7 s and 1.6, Snappy 2.9 s and 1.7, zstd 3.5 s
and 1.2. With BYTE_STREAM_SPLIT, LZ4 takes 2.0 s and 1.7, zstd 2.6 s and 1.3, but fewer programs read it for integers.
DELTA_BINARY_PACKED takes 2.5 s and 2.3. So nothing is compressed unless it is asked for.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

from ...errors import CorpusError
from ..blocks import BOUNDARIES, IDS, MASK, ROW, SOURCE
from ..settings import Format, Writing
from .files import ShardFiles
from .groups import Groups
from .lists import lengths, lists

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    import numpy as np
    import pyarrow as pa  # type: ignore[import-untyped]
    from numpy.typing import NDArray

    from .mapped import Ids, Mask

ATTENTION = "attention_mask"
"""The column that tells tokens from padding: `list<int8>`, 1 for a token and 0 for padding."""

GROUP_BYTES = 16 << 20
"""The most bytes of documents in a row group or record batch. As many are held, and twice as many while it is written.

Larger ones are no smaller on the disk, and the memory for them costs time: a corpus takes a quarter longer with 64 MiB.
"""

MOST_TOKENS = (1 << 29) - (1 << 20)
"""The most tokens of a document in a Parquet file: 2 GiB without a little for the rest of the page."""

LEVELS = 1 << 16
"""How many tokens pyarrow writes before it looks whether a page is full. Its own 1,024 take 10 % more time."""


class TableWriter:
    """What is common to both: which columns there are, and how they are grouped."""

    def __init__(self, files: ShardFiles, writing: Writing) -> None:
        self._file = files.open(f".{writing.format}")
        self._name, self._writing = files.name, writing
        self._groups = Groups(GROUP_BYTES)
        self._schema: pa.Schema | None = None

    def write(self, table: pa.Table) -> None:
        if self._schema is None:
            self._begin(table.schema)
        for group in self._groups.push(self._conformed(table)):
            with self._explained():
                self._write(self._with_attention(group))

    def close(self) -> None:
        import pyarrow as pa

        if self._schema is None:
            self._begin(pa.schema([]))
        with self._explained():
            for group in self._groups.flush():
                self._write(self._with_attention(group))
            self._finish()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turns Arrow's errors into a `CorpusError`: a type of a carried column that the format does not have."""
        import pyarrow as pa

        try:
            yield
        except (pa.ArrowException, OSError) as error:
            raise CorpusError(f"{self._writing.format} cannot hold this: {error}", source=self._name) from error

    def _open(self, schema: pa.Schema) -> None:
        raise NotImplementedError

    def _write(self, group: pa.Table) -> None:
        raise NotImplementedError

    def _finish(self) -> None:
        raise NotImplementedError

    def _begin(self, schema: pa.Schema) -> None:
        """Opens the file, whose carried columns have the types of the first table. Without a table they are nulls."""
        import pyarrow as pa

        writing = self._writing
        flags = pa.list_(pa.int8())
        fields = [pa.field(IDS, pa.list_(pa.int32()))]
        fields += [pa.field(BOUNDARIES, pa.list_(pa.int32()))] if writing.pack is not None else []
        fields += [pa.field(MASK, flags)] if writing.assistant_mask else []
        for name in dict.fromkeys([*([writing.id_column] if writing.id_column else []), *writing.columns]):
            kind = schema.field(name).type if name in schema.names else pa.null()
            fields.append(pa.field(name, kind.value_type if pa.types.is_dictionary(kind) else kind))
        metadata = None
        if writing.pack is not None:
            metadata = {"ggtok": json.dumps({"pack": writing.pack, "pad_id": writing.pad_id})}
        self._schema = pa.schema(fields, metadata)
        if writing.attention_mask:
            fields.insert(1, pa.field(ATTENTION, flags))
        with self._explained():
            self._open(pa.schema(fields, metadata))

    def _conformed(self, table: pa.Table) -> pa.Table:
        """The columns that are written, in their order and with their types."""
        import pyarrow as pa

        assert self._schema is not None
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

    def _with_attention(self, group: pa.Table) -> pa.Table:
        """Adds the mask that tells tokens from padding, if it is asked for."""
        import numpy as np
        import pyarrow as pa

        if not self._writing.attention_mask:
            return group
        (ids,) = group[IDS].chunks
        mask = np.ones(len(ids.values), np.int8)
        if self._writing.pack is not None:
            (bounds,) = group[BOUNDARIES].chunks
            ends = bounds.values.to_numpy()[bounds.offsets.to_numpy()[1:] - 1]
            mask = (np.arange(self._writing.pack) < ends[:, None]).astype(np.int8).ravel()
        return group.add_column(1, ATTENTION, pa.ListArray.from_arrays(ids.offsets, mask))


class ParquetWriter(TableWriter):
    """Holds the documents of a row group."""

    def write(self, table: pa.Table) -> None:
        sizes = lengths(table[IDS])
        if len(sizes) and sizes.max() > MOST_TOKENS:
            row = int(sizes.argmax())
            problem = f"this document has {sizes[row]:,} tokens, and Parquet takes at most {MOST_TOKENS:,} in a row"
            known = ROW in table.column_names and SOURCE in table.column_names
            place = {"source": table[SOURCE][row].as_py(), "row": table[ROW][row].as_py()} if known else {}
            raise CorpusError(problem, **place)
        super().write(table)

    def _open(self, schema: pa.Schema) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq  # type: ignore[import-untyped]

        plain = [field.name for field in schema if not pa.types.is_nested(field.type)]
        masks = [f"{name}.list.element" for name in (ATTENTION, MASK) if name in schema.names]
        self._writer = pq.ParquetWriter(
            self._file,
            schema,
            compression=self._writing.compression or "none",
            compression_level=1 if self._writing.compression == "zstd" else None,
            use_dictionary=plain + masks,  # Parquet has no 8-bit integers, and a mask would take 4 bytes for each token
            write_statistics=plain,
            write_batch_size=LEVELS,
        )

    def _write(self, group: pa.Table) -> None:
        self._writer.write_table(group, len(group))

    def _finish(self) -> None:
        self._writer.close()


class ArrowWriter(TableWriter):
    """The IPC file format. Holds the documents of a record batch."""

    def __init__(self, files: ShardFiles, writing: Writing) -> None:
        if writing.compression == "snappy":
            raise CorpusError("Arrow files can be compressed with zstd and lz4, not with snappy", source=files.name)
        super().__init__(files, writing)

    def _open(self, schema: pa.Schema) -> None:
        import pyarrow.ipc as ipc  # type: ignore[import-untyped]

        name = self._writing.compression
        options = ipc.IpcWriteOptions(compression=None if name == "none" else name, use_threads=False)
        self._writer = ipc.new_file(self._file, schema, options=options)

    def _write(self, group: pa.Table) -> None:
        self._writer.write_table(group)

    def _finish(self) -> None:
        self._writer.close()


def read(prefix: Path, format: Format) -> Iterator[Ids]:
    """The tokens of each document or, if they are packed, of each piece.

    Raises `CorpusError` if the file cannot be read.
    """
    return _rows(prefix, format, IDS)


def read_masks(prefix: Path, format: Format) -> Iterator[Mask] | None:
    """The mask of the assistant's tokens for what `read` yields, or `None` if there is none.

    Raises `CorpusError` if the file cannot be read.
    """
    with _file(prefix, format) as file:
        names = (file.schema_arrow if format == "parquet" else file.schema).names
    return _rows(prefix, format, MASK) if MASK in names else None


def _rows(prefix: Path, format: Format, name: str) -> Iterator[NDArray[Any]]:
    """The values of each list of a column, a row group or a record batch in memory at a time."""
    import numpy as np

    with _file(prefix, format) as file:
        if format == "parquet":
            columns = [name, *([BOUNDARIES] if BOUNDARIES in file.schema_arrow.names else [])]
            groups = (file.read_row_group(number, columns) for number in range(file.num_row_groups))
        else:
            groups = (_table(file.get_batch(number)) for number in range(file.num_record_batches))
        for group in groups:
            group = group.combine_chunks()
            for sizes, values in lists(group[name]):
                starts = np.cumsum(sizes) - sizes
                if BOUNDARIES not in group.column_names:
                    yield from np.split(values, starts[1:]) if len(starts) else []
                    continue
                bounds = [bounds for counts, flat in lists(group[BOUNDARIES]) for bounds in _split(flat, counts)]
                for start, cuts in zip(starts, bounds, strict=True):
                    for first, after in pairwise(cuts):
                        yield values[start + first : start + after]


def _split(values: NDArray[Any], sizes: NDArray[np.int32]) -> list[NDArray[Any]]:
    import numpy as np

    return np.split(values, np.cumsum(sizes)[:-1]) if len(sizes) else []


def _table(batch: pa.RecordBatch) -> pa.Table:
    import pyarrow as pa

    return pa.Table.from_batches([batch])


@contextmanager
def _file(prefix: Path, format: Format) -> Iterator[Any]:
    """An open Parquet or Arrow file. Arrow's errors while it is open are about its contents."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = prefix.with_name(f"{prefix.name}.{format}")
    try:
        with pa.memory_map(str(path)) as source:
            yield pq.ParquetFile(source) if format == "parquet" else pa.ipc.open_file(source)
    except (pa.ArrowException, OSError) as error:
        raise CorpusError(f"this cannot be read: {error}", source=path.name) from error
