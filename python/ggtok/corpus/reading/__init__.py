"""Documents of an input, a block of a few megabytes at a time. There is a file per format."""

from __future__ import annotations

from collections.abc import Iterator

from ..blocks import Block
from ..settings import Reading
from ..sources import Input


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
    from . import arrow, lines, parquet, text

    if source.format in ("text", "lines"):
        lines.check_no_columns(source, reading)
    if source.format == "text":
        yield text.read_text(source, first_row, reading)
    elif source.format == "parquet":
        yield from parquet.read_parquet(source, start, end, first_row, reading)
    elif source.format == "arrow":
        yield from arrow.read_arrow(source, start, end, first_row, reading)
    else:
        yield from lines.read_lines(source, start, end, first_row, reading)
