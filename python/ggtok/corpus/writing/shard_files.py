"""The files of a shard: written under other names, and renamed once all of them are complete and on the disk.

A file with its final name is never incomplete.
"""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Any, BinaryIO, Self

from ...errors import CorpusError
from ...tokenizer.files import discard, finish, new_part

SYNC_BYTES = 32 << 20
"""A disk writes them in about a tenth of a second, as long as a core takes to make them."""


@dataclass(frozen=True, slots=True)
class Written:
    """A file of a shard that is complete."""

    name: str
    """Without its folder."""
    size: int
    """In bytes."""
    sha256: str
    """In hexadecimal."""


class ShardFiles:
    """The files of one shard: `FOLDER/NAME` with a suffix for each of them. A `with` discards what is not committed."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder, self.name = folder, name
        self._parts: list[_Part] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.discard()

    def open(self, suffix: str) -> BinaryIO:
        """Opens a file to be written, which `commit` closes and names `FOLDER/NAME` + suffix.

        Raises `CorpusError`, as do the file's methods, if the operating system refuses.
        """
        name = self.name + suffix
        with explained(name):
            part = _Part(self.folder, name)
        self._parts.append(part)
        return part

    def commit(self) -> list[Written]:
        """Gives the files their names, in the order in which they were opened, once all of them are on the disk.

        Raises `CorpusError` if the operating system refuses, a full disk for example.
        """
        written = []
        for part in self._parts:
            with explained(part.final):
                part.flush()
                part.begin_sync()
                with open(part.name, "rb") as file:
                    sha256 = hashlib.file_digest(file, "sha256").hexdigest()
                    written.append(Written(part.final, os.fstat(file.fileno()).st_size, sha256))
                part.end_sync()
                os.fsync(part.fileno())
        for part in self._parts:
            with explained(part.final):
                finish(part.raw, str(self.folder / part.final))
        self._parts.clear()
        return written

    def discard(self) -> None:
        """Deletes what has been written. Does nothing after `commit`."""
        for part in self._parts:
            with suppress(OSError):
                part.end_sync()
            discard(part.raw)  # not the buffer, which would try to write the rest
        self._parts.clear()


class _Part(io.BufferedWriter):
    """A file under its other name. Its errors say what to do.

    The disk gets every `SYNC_BYTES` while the next ones are made, so that little is left to wait for at the end.
    """

    raw: io.FileIO

    def __init__(self, folder: Path, final: str) -> None:
        super().__init__(new_part(str(folder)), 1 << 16)
        self.final = final
        self._num_waiting = 0
        self._syncing: Thread | None = None
        self._failure: OSError | None = None

    def write(self, data: Any, /) -> int:
        if self.raw.closed:  # discarded: what a writer still writes when it is collected goes nowhere
            return len(data)
        with explained(self.final):
            size = super().write(data)
        self._num_waiting += size
        if self._num_waiting >= SYNC_BYTES:
            self.begin_sync()
        return size

    def flush(self) -> None:
        if not self.raw.closed:
            with explained(self.final):
                super().flush()

    def begin_sync(self) -> None:
        """Starts to move to the disk what was written, in a thread, unless one is still at it."""
        if self._syncing is None or not self._syncing.is_alive():
            self._num_waiting = 0
            self._syncing = Thread(target=self._sync)
            self._syncing.start()

    def _sync(self) -> None:
        try:
            os.fsync(self.fileno())
        except OSError as error:  # which the system tells once
            self._failure = error

    def end_sync(self) -> None:
        """Waits for the thread. Raises what it met."""
        if self._syncing is not None:
            self._syncing.join()
        if self._failure is not None:
            raise self._failure


@contextmanager
def explained(name: str) -> Iterator[None]:
    """Turns errors of the operating system into a `CorpusError` about the file `name`."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        problem = f"this cannot be written: {reason}. Fix that, then run the same command to continue"
        raise CorpusError(problem, source=name) from error
