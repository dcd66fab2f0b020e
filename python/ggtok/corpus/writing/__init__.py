"""A file per output format: its class (`FlatWriter` in `flat`) writes the files of a shard.

`Format` in `settings` lists the formats by the names of their files.
"""

from __future__ import annotations

from importlib import import_module
from typing import ClassVar, get_args

from ..packages import pa
from ..settings import Format, Writing
from .shard_files import ShardFiles


class ShardWriter:
    """Writes the files of one shard, `PREFIX` with a suffix each.

    The bytes do not depend on how the documents are cut into tables. All methods raise `CorpusError` if a file cannot
    be written.
    """

    suffixes: ClassVar[tuple[str, ...]]
    """The suffixes of its files."""
    at_end: ClassVar[tuple[str, ...]] = ()
    """Those of files that are written when it closes. What is in the others only grows."""
    is_table: ClassVar[bool] = False
    """Whether documents are rows: these carry columns, are packed, have a mask of padding and can be compressed."""
    has_index: ClassVar[bool] = False
    """Whether documents are listed by their ids, which `id_field` names. Its tables have the columns `ROW` and `SOURCE`
    too."""
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


def writer_of(format: Format) -> type[ShardWriter]:
    """The class of a format."""
    found: type[ShardWriter] = getattr(import_module(f".{format}", __name__), f"{format.title()}Writer")
    return found


def formats_with(trait: str) -> str:
    """The formats whose class has a trait, as part of a sentence."""
    names = [name for name in get_args(Format) if getattr(writer_of(name), trait)]
    return f"format{'s' * (len(names) > 1)} {' and '.join(names)}"
