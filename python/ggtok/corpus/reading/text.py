"""A document per file: all of its text, without a byte order mark at its start. An empty file is an empty document."""

from __future__ import annotations

from array import array
from collections.abc import Iterator

from ..blocks import ROW, BadRow, Block
from ..packages import pa
from ..settings import Reading
from ..sources import Input
from ..table import not_utf8
from .lines import MARK, MOST_LINE, check_no_columns
from .streams import Stream


def read(source: Input, start: int, end: int | None, first_row: int, reading: Reading) -> Iterator[Block]:
    """The document, or a bad row if it is not UTF-8 or has more than `MOST_LINE` bytes. See `read`."""
    check_no_columns(source, reading)
    with Stream(source) as stream:
        data = stream.read(MOST_LINE + 1)
        num_bytes = stream.position
    data = data.removeprefix(MARK)
    offsets = array("q", [0, len(data)])
    texts = pa.Array.from_buffers(pa.large_binary(), 1, [None, pa.py_buffer(offsets), pa.py_buffer(data)])
    reason = None
    if len(data) > MOST_LINE:
        reason = f"the text has more than {MOST_LINE:,} bytes"
    else:
        try:
            texts = texts.cast(pa.large_utf8())
        except pa.ArrowInvalid:
            reason = not_utf8(data)
    bad = [] if reason is None else [BadRow(source.name, first_row, reason, data[: BadRow.MOST_DATA])]
    if bad:
        texts = pa.array([], pa.large_utf8())
    rows = pa.array([first_row] * len(texts), pa.int64())
    yield Block(pa.Table.from_arrays([texts, rows], [reading.field, ROW]), bad, num_bytes)
