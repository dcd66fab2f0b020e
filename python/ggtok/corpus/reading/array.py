"""A JSON array of objects, `[{...}, {...}]`: each is a row. They become lines, which are read as JSON Lines.

Only strings and brackets are looked at to find where an object ends. What is held is a block, or the longest object.
O(bytes): what an incomplete object has so far is searched again, but then as much again is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...errors import CorpusError
from ..blocks import BLOCK_SIZE, Block
from ..settings import Reading
from ..sources import Input
from .lines import MARK, MOST_LINE, parse
from .streams import Stream

TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[][{}"]', re.DOTALL)
"""A string, a bracket, or the start of a string that does not end."""

SPACES = bytes.maketrans(b"\r\n", b"  ")


def read(source: Input, start: int, end: int | None, first_row: int, reading: Reading) -> Iterator[Block]:
    """Blocks of the objects. See `read`."""
    row, position, size = 1, 0, 0
    lines: list[bytes] = []
    with Stream(source) as stream:
        for line in _objects(stream, source):
            lines.append(line)
            size += len(line)
            if size >= BLOCK_SIZE:
                before, position = position, stream.position
                yield Block(*parse(b"\n".join(lines), row, source, reading)[1:], position - before)
                row, lines, size = row + len(lines), [], 0
        yield Block(*parse(b"\n".join(lines), row, source, reading)[1:], stream.position - position)


def _objects(stream: Stream, source: Input) -> Iterator[bytes]:
    """Each object in a line. Raises `CorpusError` where the file is not an array of objects, or ends early."""
    data, row = stream.read(BLOCK_SIZE + len(MARK)).removeprefix(MARK), 1
    while data:
        done = depth = start = 0
        for token in TOKEN.finditer(data):
            bracket = token[0]
            if bracket == b'"':
                break
            if depth == 0 and bracket in (b"{", b"]"):
                start = token.start()
                before = data[done:start].strip()
                if before != (b"[" if row == 1 else b"," if bracket == b"{" else b""):
                    advice = "if it has an object per line, choose input_format 'jsonl'"
                    raise CorpusError(f"it is not an array of objects: {advice}", source=source.name, row=row)
                if bracket == b"]":
                    if (data[token.end() :] + stream.read(BLOCK_SIZE)).strip():
                        raise CorpusError("something follows the array", source=source.name)
                    return
            depth += (bracket == b"{") + (bracket == b"[" and depth > 0) - (bracket in (b"}", b"]"))
            if bracket == b"}" and depth == 0:
                done, row = token.end(), row + 1
                yield data[start:done].translate(SPACES)
        if len(data) - done > MOST_LINE:
            raise CorpusError(f"the object has more than {MOST_LINE:,} bytes", source=source.name, row=row)
        more = stream.read(max(BLOCK_SIZE, len(data) - done))
        if not more:
            raise CorpusError("the array ends early", source=source.name, row=row)
        data = data[done:] + more
    raise CorpusError("the file is empty: it has no array", source=source.name)
