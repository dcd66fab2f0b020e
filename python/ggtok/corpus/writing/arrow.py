"""Arrow's IPC file format: a row for each document or packed sequence, in record batches."""

from __future__ import annotations

from typing import Any

from ...errors import CorpusError
from ..packages import pa
from ..settings import Writing
from .shard_files import ShardFiles
from .tables import TableWriter


class ArrowWriter(TableWriter):
    """Holds the documents of a record batch."""

    suffixes = (".arrow",)

    def __init__(self, files: ShardFiles, writing: Writing) -> None:
        if writing.compression == "snappy":
            raise CorpusError("Arrow files can be compressed with zstd and lz4, not with snappy", source=files.name)
        super().__init__(files, writing)

    def open(self, schema: pa.Schema) -> Any:
        """As in `TableWriter`."""
        name = self._writing.compression
        options = pa.ipc.IpcWriteOptions(compression=None if name == "none" else name, use_threads=False)
        return pa.ipc.new_file(self._file, schema, options=options)
