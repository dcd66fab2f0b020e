"""A file per output format: the writer, which takes tables of documents, and the reader that `verify` uses."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from ..settings import Format, Writing
from .files import ShardFiles as ShardFiles
from .files import Written as Written

TYPE_CHECKING = False
if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]

    from .mapped import Ids, Mask


class Writer(Protocol):
    """Writes the files of one shard. The bytes do not depend on how the documents are cut into tables."""

    def write(self, table: pa.Table) -> None:
        """Adds documents.

        Their columns are `input_ids`, `ggtok:row`, `ggtok:source`, and those that the settings ask for. Packed
        sequences have `input_ids`, `cu_seqlens`, and `assistant_mask` if there is one.

        Raises `CorpusError` if a file cannot be written or a column has the wrong type.
        """

    def close(self) -> None:
        """Writes what is left. `ShardFiles.commit` does the rest.

        Raises `CorpusError` if a file cannot be written.
        """


def open_writer(files: ShardFiles, writing: Writing) -> Writer:
    """A writer of one shard.

    Raises `CorpusError` if its files cannot be created.
    """
    if writing.format == "megatron":
        from .megatron import MegatronWriter

        return MegatronWriter(files, writing)
    if writing.format == "datatrove":
        from .datatrove import DatatroveWriter

        return DatatroveWriter(files, writing)
    if writing.format == "flat":
        from .flat import FlatWriter

        return FlatWriter(files, writing)
    if writing.format == "parquet":
        from .tables import ParquetWriter

        return ParquetWriter(files, writing)
    from .tables import ArrowWriter

    return ArrowWriter(files, writing)


def read(format: Format, prefix: Path) -> Iterator[Ids]:
    """The tokens of each document of a shard, whose files are `PREFIX` with a suffix, in order.

    Documents without tokens are arrays of length 0, except in `flat`, which leaves them out. Packed sequences yield the
    pieces of documents that they consist of.

    Raises `CorpusError` if the files cannot be read, are damaged, or do not fit together.
    """
    if format == "megatron":
        from . import megatron

        return megatron.read(prefix)
    if format == "datatrove":
        from . import datatrove

        return datatrove.read(prefix)
    if format == "flat":
        from . import flat

        return flat.read(prefix)
    from . import tables

    return tables.read(prefix, format)


def read_masks(format: Format, prefix: Path) -> Iterator[Mask] | None:
    """The mask of the assistant's tokens of each document, in the order of `read`. `None` if the shard has no masks.

    Raises `CorpusError` as `read` does.
    """
    if format == "megatron":
        return None
    if format == "datatrove":
        from . import datatrove

        return datatrove.read_masks(prefix)
    if format == "flat":
        from . import flat

        return flat.read_masks(prefix)
    from . import tables

    return tables.read_masks(prefix, format)
