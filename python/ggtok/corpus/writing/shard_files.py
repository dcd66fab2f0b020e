"""The files of a shard: written under other names, and renamed once all of them are complete and on the disk.

A file with its final name is never incomplete.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Self

from ...errors import CorpusError
from ...tokenizer.files import discard, finish, new_part
from ..packages import xxhash

SYNC_BYTES = 8 << 20
"""A disk writes them in the time that a core takes to make them."""


@dataclass(frozen=True, slots=True)
class Written:
    """A file of a shard that is complete."""

    name: str
    """Without its folder."""
    size: int
    """In bytes."""
    xxh128: str
    """Its XXH3 hash of 128 bits in hexadecimal, as `xxh128sum` prints it."""


class ShardFiles:
    """The files of one shard: `FOLDER/NAME` with a suffix for each of them. A `with` discards what is not committed."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder, self.name = folder, name
        self.parts: list[Part] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.discard()

    def named(self, name: str) -> ShardFiles:
        """Further files of the same shard, with another name."""
        more = ShardFiles(self.folder, name)
        more.parts = self.parts
        return more

    def open(self, suffix: str) -> BinaryIO:
        """Opens a file to be written, which `commit` closes and names `FOLDER/NAME` + suffix.

        Raises `CorpusError`, as do the file's methods, if the operating system refuses.
        """
        name = self.name + suffix
        with explained(name):
            part = Part(self.folder, name)
        self.parts.append(part)
        return part

    def commit(self) -> list[Written]:
        """Gives the files their names, in the order in which they were opened, once all of them are on the disk.

        Raises `CorpusError` if the operating system refuses, a full disk for example.
        """
        written = []
        for part in self.parts:
            with explained(part.final):
                part.flush()
                os.fsync(part.fileno())
                written.append(Written(part.final, os.fstat(part.fileno()).st_size, part.digest.hexdigest()))
        for part in self.parts:
            with explained(part.final):
                finish(part.raw, str(self.folder / part.final))
        self.parts.clear()
        return written

    def discard(self) -> None:
        """Deletes what has been written. Does nothing after `commit`."""
        for part in self.parts:
            discard(part.raw)  # not the buffer, which would try to write the rest
        self.parts.clear()


class Part(io.BufferedWriter):
    """A file under its other name, which is hashed while it is written. Its errors say what to do.

    The disk gets every `SYNC_BYTES` while the next ones are made, so that little is left to wait for at the end.
    """

    raw: io.FileIO

    def __init__(self, folder: Path, final: str) -> None:
        super().__init__(new_part(str(folder)), 1 << 16)
        self.final = final
        self.digest = xxhash.xxh3_128()
        self._num_waiting = 0

    def write(self, data: Any, /) -> int:
        if self.raw.closed:  # discarded: what a writer still writes when it is collected goes nowhere
            return len(data)
        with explained(self.final):
            size = super().write(data)
        self.digest.update(data)
        self._num_waiting += size
        if self._num_waiting >= SYNC_BYTES and hasattr(os, "posix_fadvise"):
            # Linux begins to write, without waiting. It drops what it has written, and the next bytes get those pages,
            # which the processor still has in its cache: without that, copying to them takes four times as long.
            os.posix_fadvise(self.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            self._num_waiting = 0
        return size

    def flush(self) -> None:
        if not self.raw.closed:
            with explained(self.final):
                super().flush()


@contextmanager
def explained(name: str) -> Iterator[None]:
    """Turns errors of the operating system into a `CorpusError` about the file `name`."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        problem = f"this cannot be written: {reason}. Fix that, then run the same command to continue"
        raise CorpusError(problem, source=name) from error
