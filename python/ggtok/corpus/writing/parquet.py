"""Parquet files: a row for each document or packed sequence, in row groups.

pyarrow never ends a page within a document, and a page has less than 2 GiB: a document of more than `MOST_TOKENS` is an
error. The files name the version of pyarrow.

Compression, measured on a core for 250 million tokens of Llama 3 (about 1 GB of English, which takes 7 s to encode), in
seconds and bytes for each token: none 1.0 s and 4.0, LZ4 2.7 s and 1.6, Snappy 2.9 s and 1.7, zstd 3.5 s and 1.2. With
BYTE_STREAM_SPLIT, LZ4 takes 2.0 s and 1.7, zstd 2.6 s and 1.3, but fewer programs read it for integers.
DELTA_BINARY_PACKED takes 2.5 s and 2.3. So nothing is compressed unless it is asked for.
"""

from __future__ import annotations

from typing import Any

from ...errors import CorpusError
from ..blocks import IDS, MASK, num_tokens
from ..packages import pa, pq
from .tables import ATTENTION, TableWriter

MOST_TOKENS = (1 << 29) - (1 << 20)
"""The most tokens of a document: 2 GiB without a little for the rest of the page."""

LEVELS = 1 << 16
"""How many tokens pyarrow writes before it looks whether a page is full. Its own 1,024 take 10 % more time."""


class ParquetWriter(TableWriter):
    """Holds the documents of a row group."""

    suffixes = (".parquet",)
    piece_bytes = 1 << 20  # its levels, a number of 16 bits for each token and list, stay in the processor's cache

    def write(self, table: pa.Table) -> None:
        sizes = num_tokens(table[IDS])
        if len(sizes) and sizes.max() > MOST_TOKENS:
            row = int(sizes.argmax())
            problem = f"this document has {sizes[row]:,} tokens, and Parquet takes at most {MOST_TOKENS:,} in a row"
            raise CorpusError(problem)
        super().write(table)

    def open(self, schema: pa.Schema) -> Any:
        """As in `TableWriter`."""
        plain = [field.name for field in schema if not pa.types.is_nested(field.type)]
        masks = [f"{name}.list.element" for name in (ATTENTION, MASK) if name in schema.names]
        return pq.ParquetWriter(
            self._file,
            schema,
            compression=self._writing.compression or "none",
            compression_level=1 if self._writing.compression == "zstd" else None,
            use_dictionary=plain + masks,  # Parquet has no 8-bit integers, and a mask would take 4 bytes for each token
            write_statistics=plain,
            write_batch_size=LEVELS,
        )
