"""Texts as a whole or by their lines, and JSON Lines: blocks of whole lines, which Rust turns into columns.

A line ends with `\\n` or `\\r\\n`; the last one may lack its end. A byte order mark at the start of a file does not
belong to the text. In JSON Lines blank lines are skipped, but counted; in a text each is an empty document. So is an
empty file that is one document.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ..._ggtok import json_lines, text_lines
from ...errors import CorpusError
from ..blocks import BLOCK_SIZE, ROW, BadRow, Block
from ..names import nearest
from ..packages import pa
from ..settings import Reading
from ..sources import Input
from ..table import broken
from .streams import Stream

MOST_LINE = 1 << 30
"""Bytes of a line. A longer one is a bad row, of which only this many are held."""

MARK = b"\xef\xbb\xbf"
"""The byte order mark of UTF-8."""


def read(source: Input, start: int, end: int | None, first_row: int, reading: Reading) -> Iterator[Block]:
    """Blocks of the lines between two places in a file, which are starts of lines. See `read`."""
    if source.format != "jsonl" and reading.columns:
        raise CorpusError(f"a text has no columns to keep, such as {reading.columns[0]!r}", source=source.name)
    if source.format != "jsonl" and reading.is_chat:
        raise CorpusError("a text has no messages: chats are read from JSON Lines and tables", source=source.name)
    if source.format == "text":
        yield _whole(source, first_row, reading)
        return
    row, position = first_row, 0
    with Stream(source, start if start or end else None) as stream:
        for lines in _whole_lines(stream, None if end is None else end - start, start == 0):
            num_bytes, position = stream.position - position, stream.position
            if lines.length > MOST_LINE:
                reason = f"the line has {lines.length:,} bytes, more than {MOST_LINE:,}"
                bad = [BadRow(source.name, row, reason, lines.start[: BadRow.MOST_DATA])]
                num_lines, table = 1, parse(Lines(b""), row, source, reading)[1]
            else:
                num_lines, table, bad = parse(lines, row, source, reading)
            yield Block(table, bad, num_bytes)
            row += num_lines


@dataclass(frozen=True, slots=True)
class Lines:
    """Whole lines: `start`, which is the start of the first one, and `block` up to `end`. So no block is copied."""

    block: bytes
    end: int = 0
    start: bytes = b""
    length: int = 0
    """All bytes. More than `MOST_LINE` are one line, of which not all are here."""


def parse(lines: Lines, row: int, source: Input, reading: Reading) -> tuple[int, Any, list[BadRow]]:
    """The number of lines, the table of those that are documents, and the others."""
    given = (lines.start, lines.block, lines.end), row
    if source.format == "lines":
        found = text_lines(*given)
    else:
        found = json_lines(*given, reading.field, reading.is_chat, reading.columns, reading.nulls)
    num_lines, rows, columns, bad_lines = found
    arrays = []
    for offsets, validity, values in columns:
        buffers = [None if validity is None else pa.py_buffer(validity), pa.py_buffer(offsets), pa.py_buffer(values)]
        arrays.append(pa.Array.from_buffers(pa.large_utf8(), len(rows), buffers))
    arrays.append(pa.Array.from_buffers(pa.int64(), len(rows), [None, pa.py_buffer(rows)]))
    bad, data = [], lines.start + lines.block if bad_lines else b""
    for number, first, last, reason, names in bad_lines:
        excerpt = data[first : min(last, first + BadRow.MOST_DATA)]
        bad.append(BadRow(source.name, number, reason + nearest(reading.field, tuple(names or ())), excerpt))
    return num_lines, pa.Table.from_arrays(arrays, [reading.field, *reading.columns, ROW]), bad


def _whole_lines(stream: Stream, size: int | None, skip_mark: bool) -> Iterator[Lines]:
    """The lines of the next `size` bytes, about `BLOCK_SIZE` at a time. A line that is longer than that is alone.

    O(bytes): every byte is searched once for the end of its line, and only lines on which a block ends are copied.
    """
    held: list[bytes] = []  # the start of a line
    num_held = 0
    left = size
    while block := stream.read(BLOCK_SIZE if left is None else min(BLOCK_SIZE, left)):
        if left is not None:
            left -= len(block)
        if skip_mark:
            block, skip_mark = block.removeprefix(MARK), False
        while end := 1 + (block.find if num_held >= BLOCK_SIZE else block.rfind)(b"\n"):
            yield Lines(block, end, b"".join(held), num_held + end)
            held, num_held, block = [], 0, block[end:]
        held.append(block)
        num_held += len(block)
        if num_held > MOST_LINE:
            del held[2:]  # enough of it to show is left
    if num_held:
        yield Lines(b"", 0, b"".join(held), num_held)


def _whole(source: Input, row: int, reading: Reading) -> Block:
    """The document that a file is, or a bad row if it is not UTF-8 or has more than `MOST_LINE` bytes."""
    with Stream(source) as stream:
        data = stream.read(MOST_LINE + 1)
        num_bytes = stream.position
    data = data.removeprefix(MARK)
    texts = pa.array([data], pa.large_binary()).view(pa.large_utf8())
    is_long = len(data) > MOST_LINE
    reasons = [f"the text has more than {MOST_LINE:,} bytes"] if is_long else [why for _, why, _ in broken(texts)]
    bad = [BadRow(source.name, row, reason, data[: BadRow.MOST_DATA]) for reason in reasons]
    table = pa.Table.from_arrays([texts, pa.array([row])], [reading.field, ROW])
    return Block(table.slice(0, 1 - len(bad)), bad, num_bytes)
