"""What is known of a file before it is read: its size, its time, a sample of it, and where it can be cut.

The parts are of about equal work. Lines are cut after the first line end at or after each multiple of the wanted size.
Parquet files are cut between row groups and Arrow files between record batches. What is compressed as a whole cannot
be cut, unless it is unpacked. Little of a file is read for that, unless its lines are to be counted.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from ..errors import CorpusError
from .reading.streams import unpacked
from .remote import StoreError, is_url
from .sources import KINDS, Input

CHUNK = 1 << 22
"""Bytes that are read at once."""

SAMPLE = 1 << 16
"""Bytes of a file's start, middle and end that are hashed each: all of a short one."""


@dataclass(frozen=True, slots=True)
class Survey:
    """What is known of an input before it is read."""

    input: Input
    """The same, with its size, time and sample."""
    cuts: tuple[tuple[int, int], ...] = ((0, 1),)
    """Where parts start, the first one with the input, and the number of the first row of each.

    A start is a byte of lines and Arrow streams, a row group of Parquet, a record batch of Arrow files. Rows are
    counted from 1; 0 if the lines before were not counted.
    """
    rows: int | None = None
    """The most rows that it can have, if that was looked at."""


def surveyed(
    source: Input,
    cut: int,
    progress: Callable[[int], object] = lambda num_bytes: None,
    counts_lines: bool = False,
    skip_bad: bool = False,
    unpacks: bool = False,
    counts_rows: bool = False,
) -> Survey:
    """Surveys an input. Nothing is known of standard input, which can be read only once.

    Args:
        source: The input.
        cut: Bytes that a part aims at: of the file, but of uncompressed data in Parquet.
        progress: Called with the number of bytes that were counted since the last call. What it raises stops the
            survey.
        counts_lines: Whether to count the lines of a file that is cut, which is read as a whole for that.
        skip_bad: Whether a damaged file is one part, and not an error.
        unpacks: Whether compressed lines are unpacked and cut too, into parts of `cut` bytes of text.
        counts_rows: Whether to count the lines of every file that is not compressed.

    Raises:
        CorpusError: The file cannot be read or is damaged.
    """
    if source.size is None:
        return Survey(source)
    size, time = source.status()
    digest, parts, rows = hashlib.sha256(), [(0, 1)], None
    try:
        with source.open() as file:
            for start in sorted({0, max((size - SAMPLE) // 2, 0), max(size - SAMPLE, 0)}):
                file.seek(start)
                digest.update(file.read(SAMPLE))
            if KINDS[source.format].has_lines and source.compression is None:
                parts = _line_starts(file, cut, size)
                if counts_rows or (counts_lines and len(parts) > 1):
                    *parts, (_, rows) = _counted(file, [*(start for start, _ in parts), size], progress)
            elif unpacks and KINDS[source.format].has_lines and size > cut // 4 and not is_url(source.path):
                text = replace(source, path=str(unpacked(source, progress)), compression=None)
                # It counts bytes of the text, of which the file has fewer.
                parts = [*surveyed(text, cut, lambda num_bytes: progress(0), True).cuts]
        if KINDS[source.format].is_table:
            from .reading import module_of

            *parts, (_, rows) = module_of(source).parts(source, cut)
    except OSError as error:
        raise CorpusError(f"it cannot be read: {error.strerror or error}", source=source.name) from error
    except CorpusError as error:
        if not skip_bad or isinstance(error, StoreError):
            raise
    input = replace(source, size=size, time=time, sample=digest.hexdigest())
    return Survey(input, tuple(parts), rows)


def _line_starts(file: Any, cut: int, size: int) -> list[tuple[int, int]]:
    """Where parts of lines start, without the numbers of their rows. None starts at the end."""
    parts, position = [(0, 1)], cut
    while position < size:
        file.seek(position)
        while (chunk := file.read(SAMPLE)) and (end := chunk.find(b"\n")) < 0:
            position += len(chunk)
        if not chunk or (position := position + end + 1) >= size:
            break
        parts.append((position, 0))
        position = -(-position // cut) * cut
    return parts


def _counted(file: Any, starts: list[int], progress: Callable[[int], object]) -> list[tuple[int, int]]:
    """Some starts of lines, with the numbers of their rows. Reads the file up to the last of them."""
    parts, row = [(0, 1)], 1
    file.seek(0)
    for start, end in pairwise(starts):
        while start < end and (chunk := file.read(min(CHUNK, end - start))):
            row += chunk.count(b"\n")
            start += len(chunk)
            progress(len(chunk))
        parts.append((end, row))
    return parts


def num_lines(source: Input, end: int) -> int:
    """The number of line ends before a place in a file."""
    with source.open() as file:
        return _counted(file, [0, end], lambda num_bytes: None)[-1][1] - 1
