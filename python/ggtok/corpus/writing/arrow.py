"""Arrow's IPC file format: a row for each document or packed sequence, in record batches."""

from __future__ import annotations

from typing import Any

from ..packages import pa
from .tables import TableWriter


class ArrowWriter(TableWriter):
    """Holds the documents of a record batch."""

    suffixes = (".arrow",)

    def open(self, schema: pa.Schema) -> Any:
        """As in `TableWriter`."""
        name = self._writing.compression
        options = pa.ipc.IpcWriteOptions(compression=None if name == "none" else name, use_threads=False)
        return pa.ipc.new_file(self._file, schema, options=options)
