"""Documents of an input, a block of a few megabytes at a time. There is a file per format, which `KINDS` names."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from typing import Any

from ...errors import CorpusError
from ..blocks import ROW, Block
from ..packages import pa, pc
from ..settings import InputFormat, Reading
from ..sources import KINDS, Input
from ..table import is_string


def read(source: Input, start: int, end: int | None, first_row: int, reading: Reading) -> Iterator[Block]:
    """The documents of a part of an input, in order.

    Args:
        source: The input.
        start: Where the part starts: 0, or the place of a cut that `fingerprint` found.
        end: Where it ends, also a cut; `None` for the end of the input.
        first_row: The number of the row at `start`, counted from 1.
        reading: What is read of each row.

    Yields:
        Blocks with the texts as strings (or as bytes, from a binary column) under `reading.field`, `reading.columns`
        and `ROW`. A block may have no rows. Messages are the JSON text of a list, or Arrow's list of structs.

    Raises:
        CorpusError: The input cannot be read or is damaged (after the documents before that), a column is missing or of
            another type, or something is wanted that texts do not have.
    """
    names = dict.fromkeys((*reading.columns, *reading.others))
    wanted = replace(reading, columns=tuple(name for name in names if name != reading.field))
    blocks: Iterator[Block] = module_of(source).read(source, start, end, first_row, wanted)
    if reading.is_chat or not reading.others:
        return blocks
    return (replace(block, table=_joined(block.table, reading)) for block in blocks)


def _joined(table: pa.Table, reading: Reading) -> pa.Table:
    """The texts of each row as one, with a blank line between them. Those that are null are left out."""
    texts = [table.column(name) for name in (reading.field, *reading.others)]
    kind = pa.large_utf8() if all(is_string(each.type) for each in texts) else pa.large_binary()
    parts = [*(each.cast(pa.large_binary()) for each in texts), pa.scalar(b"\n\n", pa.large_binary())]
    text = pc.binary_join_element_wise(*parts, null_handling="skip").cast(kind)
    names = [name for name in (*reading.columns, ROW) if name != reading.field]
    return table.select(names).add_column(0, reading.field, text)


def documents(path: str, field: str | None, format: InputFormat, compression: str | None) -> Iterator[pa.ChunkedArray]:
    """The texts of a file, as a corpus is read. The field is `text` if none is given.

    Raises `CorpusError` for a bad row.
    """
    source = Input(path, path, format, compression, os.path.getsize(path))
    reading = Reading(field or "text", nulls="skip")
    for block in read(source, 0, None, 1, reading):
        for bad in block.bad:
            raise CorpusError(bad.reason, source=bad.source, row=bad.row)
        yield block.table.column(reading.field)


def module_of(source: Input) -> Any:
    """The module that reads inputs of this format."""
    return import_module(f".{KINDS[source.format].module}", __name__)
