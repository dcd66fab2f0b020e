"""A file per output format: its class (`FlatWriter` in `flat`) writes the files of a shard, and reads them.

`Format` in `settings` lists the formats by the names of their files.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, get_args

from ..blocks import IDS
from ..packages import npt, pa
from ..settings import Format, Writing
from .shard_files import ShardFiles


class ShardWriter:
    """Writes the files of one shard, `PREFIX` with a suffix each.

    The bytes do not depend on how the documents are cut into tables. All methods raise `CorpusError` if a file cannot
    be written or read.
    """

    suffixes: ClassVar[tuple[str, ...]]
    """The suffixes of its files."""
    is_table: ClassVar[bool] = False
    """Whether documents are rows: these carry columns, are packed, have a mask of padding and can be compressed."""
    has_index: ClassVar[bool] = False
    """Whether documents are listed by their ids, which `id_field` names. Its tables have the columns `ROW` and `SOURCE`
    too."""
    has_empty: ClassVar[bool] = True
    """Whether documents without tokens are written."""
    has_masks: ClassVar[bool] = True
    """Whether masks are written."""

    def __init__(self, files: ShardFiles, writing: Writing) -> None:
        raise NotImplementedError

    def write(self, table: pa.Table) -> None:
        """Adds documents: a column `input_ids`, `assistant_mask` if there is one, and the columns that are carried.

        Packed sequences have `input_ids`, `cu_seqlens`, and `assistant_mask` if there is one. Raises `CorpusError` if a
        column has a type that the format cannot hold.
        """
        raise NotImplementedError

    def close(self) -> None:
        """Writes what is left. `ShardFiles.commit` does the rest."""

    @classmethod
    def read(cls, prefix: Path, column: str = IDS) -> Iterator[npt.NDArray[Any]]:
        """The tokens of each document of a shard in order, or those of each document in a packed sequence; with `MASK`
        their masks.

        Raises `CorpusError` if a file is damaged or the files do not fit together.
        """
        raise NotImplementedError


def writer_of(format: Format) -> type[ShardWriter]:
    """The class of a format."""
    found: type[ShardWriter] = getattr(import_module(f".{format}", __name__), f"{format.title()}Writer")
    return found


def formats_with(trait: str) -> str:
    """The formats whose class has a trait, as part of a sentence."""
    names = [name for name in get_args(Format) if getattr(writer_of(name), trait)]
    return f"format{'s' * (len(names) > 1)} {' and '.join(names)}"
