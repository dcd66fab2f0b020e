"""One pass over a file before it is read: its size, its hash, and where it can be cut into parts of about equal work.

Lines are cut after the first line end at or after each multiple of the wanted size. Parquet files are cut between row
groups and Arrow files between record batches. What is compressed as a whole cannot be cut, unless it is unpacked.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import starmap
from typing import Any, NamedTuple

from ..errors import CorpusError
from .reading.streams import unpacked
from .sources import KINDS, Input

CHUNK = 1 << 22
"""Bytes that are read at once."""


class PartStart(NamedTuple):
    """Where a part of an input starts."""

    start: int
    """A byte of lines and Arrow streams, a row group of Parquet, a record batch of Arrow files."""
    row: int
    """The number of its first row, counted from 1."""


@dataclass(frozen=True, slots=True)
class Survey:
    """What is known of an input before it is read."""

    size: int
    """Bytes."""
    sha256: str
    cuts: tuple[PartStart, ...]
    """The first part starts with the input."""


def fingerprint(
    source: Input, cut: int, progress: Callable[[int], Any] = lambda _: None, unpacks: bool = False
) -> Survey:
    """Surveys a file, which is read once from front to back.

    Args:
        source: The input, a file.
        cut: Bytes that a part aims at: of the file, but of uncompressed data in Parquet.
        progress: Called with the number of bytes since the last call. What it raises stops the survey.
        unpacks: Whether compressed lines are unpacked and cut too, into parts of `cut` bytes of text.

    Raises:
        CorpusError: The file cannot be read or is damaged, or it is standard input, which can be read only once.
    """
    if source.path is None:
        raise CorpusError("standard input can be read only once, so it has no hash", source=source.name)
    has_lines = KINDS[source.format].has_lines and source.compression is None
    digest, lines = hashlib.sha256(), _Lines(cut)
    size = 0
    try:
        with open(source.path, "rb", buffering=0) as file:
            while chunk := file.read(CHUNK):
                digest.update(chunk)
                if has_lines:
                    lines.add(chunk)
                size += len(chunk)
                progress(len(chunk))
    except OSError as error:
        raise CorpusError(f"it cannot be read: {error.strerror}", source=source.name) from error
    if has_lines:
        parts = lines.finish()
    elif unpacks and KINDS[source.format].has_lines and size > cut // 4:  # else it is hardly longer than a part
        text = replace(source, path=str(unpacked(source, progress)), compression=None)
        return Survey(size, digest.hexdigest(), fingerprint(text, cut).cuts)
    elif KINDS[source.format].is_table:
        from .reading import module_of

        parts = module_of(source).parts(source, cut)
    else:
        parts = [(0, 1)]
    return Survey(size, digest.hexdigest(), tuple(starmap(PartStart, parts)))


class _Lines:
    """Counts lines and finds the cuts between them."""

    def __init__(self, cut: int) -> None:
        self.cut, self.next = cut, cut
        self.cuts = [(0, 1)]
        self.size, self.num_ends = 0, 0

    def add(self, chunk: bytes) -> None:
        """Counts the next bytes."""
        at = 0
        while self.size + len(chunk) > self.next:
            end = chunk.find(b"\n", max(at, self.next - self.size))
            if end < 0:
                break
            self.num_ends += chunk.count(b"\n", at, end + 1)
            at = end + 1
            self.cuts.append((self.size + at, self.num_ends + 1))
            self.next = -(-(self.size + at) // self.cut) * self.cut
        self.num_ends += chunk.count(b"\n", at)
        self.size += len(chunk)

    def finish(self) -> list[tuple[int, int]]:
        """The cuts, none of them at the end."""
        if len(self.cuts) > 1 and self.cuts[-1][0] == self.size:
            self.cuts.pop()
        return self.cuts
