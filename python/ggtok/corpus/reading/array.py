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
from .lines import MARK, MOST_LINE, Lines, parse
from .streams import Stream

TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[][{}"]', re.DOTALL)
"""A string, a bracket, or the start of a string that does not end."""

SPACES = bytes.maketrans(b"\r\n", b"  ")


def read(source: Input, start: int, end: int | None, first_row: int, reading: Reading) -> Iterator[Block]:
    """Blocks of the objects. See `read`."""
    row, position = 1, 0
    with Stream(source) as stream:
        for lines in _objects(stream, source):
            before, position = position, stream.position
            block = b"\n".join(lines)
            yield Block(*parse(Lines(block, len(block)), row, source, reading)[1:], position - before)
            row += len(lines)


def _objects(stream: Stream, source: Input) -> Iterator[list[bytes]]:
    """The objects of each read, each in a line. Raises `CorpusError` where the file is not an array, or ends early."""
    data, row = b"", 1
    while more := stream.read(max(BLOCK_SIZE, len(data))):
        data = (data + more).removeprefix(MARK)
        found: list[bytes] = []
        done = depth = start = 0
        for token in TOKEN.finditer(data):
            bracket = token[0]
            if bracket == b'"':
                break
            if depth == 0 and bracket in (b"{", b"]"):
                start = token.start()
                wanted = b"[" if row == 1 else b"," if bracket == b"{" else b""
                if data[done:start].strip() != wanted:
                    problem = "it is not an array of objects (JSON Lines are input_format 'jsonl')"
                    raise CorpusError(problem, source=source.name, row=row)
            is_open = bracket == b"{" or (bracket == b"[" and depth > 0)  # the array itself is not counted
            depth += is_open - (bracket in (b"}", b"]"))
            if depth == 0 and bracket == b"}":
                done, row = token.end(), row + 1
                found.append(data[start:done].translate(SPACES))
            elif depth < 0:
                if (data[token.end() :] + stream.read(BLOCK_SIZE)).strip():
                    raise CorpusError("something follows the array", source=source.name)
                yield found
                return
        yield found
        data = data[done:]
        if len(data) > MOST_LINE:
            raise CorpusError(f"the object has more than {MOST_LINE:,} bytes", source=source.name, row=row)
    raise CorpusError("the array ends early", source=source.name, row=row)
