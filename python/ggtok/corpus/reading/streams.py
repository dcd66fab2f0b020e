"""The bytes of an input from a place on, decompressed by pyarrow, which releases the GIL.

gzip members, zstd and LZ4 frames, and bzip2 streams may follow each other. Data that ends early, is damaged or is
followed by something else is an error that says how far the input was read. It comes after the documents before that.
"""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from shutil import rmtree
from tempfile import gettempdir, mkdtemp
from threading import get_ident, local
from typing import Any, Self

from ...errors import CorpusError
from ...tokenizer.files import new_part, read_pipe, remove_parts
from ..packages import pa
from ..sources import Input

FOLDER = "GGTOK_UNPACKED"
"""The variable with the folder of unpacked texts, for the processes that help this one."""

PREFIX = "ggtok-unpacked-"
"""What the name of that folder starts with."""

CHUNK = 1 << 22
"""Bytes that are unpacked at once."""

READER = local()
"""What a thread that reads has: `watch`, if it is to be called while standard input is waited for. It may raise."""

LEAST = 1 << 16
"""The fewest bytes that are asked for at once. pyarrow takes memory for all of them before it reads, so no more are
asked for than a short input may have."""


def unpacked(source: Input, watch: Callable[[int], object] = lambda num_bytes: None) -> Path:
    """A file with the text of a compressed input, to be read from any place.

    It is made once, in a temporary folder that is deleted when the process ends, or by the next one if it is killed.
    `watch` is called meanwhile, and can stop it by raising. Raises `CorpusError` as `Stream` does.
    """
    if FOLDER not in os.environ:
        for part in Path(gettempdir()).glob(f"{PREFIX}*/.ggtok-*.part"):
            remove_parts(str(part.parent))
            if not part.exists():
                rmtree(part.parent, ignore_errors=True)
        os.environ[FOLDER] = mkdtemp(prefix=PREFIX)
        atexit.register(rmtree, os.environ[FOLDER], ignore_errors=True)
        atexit.register(new_part(os.environ[FOLDER]).close)  # locked until then
    version = os.stat(source.path)
    path = Path(os.environ[FOLDER], f"{version.st_dev}-{version.st_ino}-{version.st_size}-{version.st_mtime_ns}")
    if not path.exists():
        part = path.with_suffix(f".{os.getpid()}-{get_ident()}")
        with Stream(source) as stream, open(part, "wb") as file:
            while data := stream.read(CHUNK):
                watch(0)
                file.write(data)
        part.replace(path)
    return path


class Stream:
    """An input that is read from front to back, or from a place in its unpacked text on.

    Raises `CorpusError` if it cannot be opened or read.
    """

    closed = False
    """For pyarrow, which reads from it as from a file."""

    def __init__(self, source: Input, start: int | None = None) -> None:
        self._source, self._raw = source, None
        self._num_read, self._share = 0, 1.0
        try:
            if source.size is None:
                self._file: Any = sys.stdin.buffer
            elif source.compression is None or start is not None:
                text = replace(source, path=str(unpacked(source))) if source.compression else source
                self._file = text.open()
                if source.compression:
                    self._share = source.size / self._file.size()
                self._file.seek(start or 0)
            else:
                if not source.size:
                    raise CorpusError(f"it is empty, without even a header of {source.compression}", source=source.name)
                self._raw = source.open()
                self._file = pa.CompressedInputStream(self._raw, source.compression)
        except OSError as error:
            raise self._error(error) from error
        watch = getattr(READER, "watch", lambda: None)
        self._read = self._file.read if source.size is not None else partial(read_pipe, self._file, watch=watch)

    @property
    def position(self) -> int:
        """Bytes of the file that were read from `start` on: compressed ones, if it is compressed, or their share."""
        return int(self._num_read * self._share if self._raw is None else self._raw.tell())

    def read(self, size: int) -> bytes:
        """The next bytes: fewer than `size` only at the end."""
        most = size if self._source.size is None else max(self._source.size + 1, LEAST)
        try:
            parts: list[bytes] = []
            while size and (part := self._read(min(size, most))):  # a pipe has what was written so far
                parts.append(part)
                size -= len(part)
        except MemoryError:
            raise
        except (OSError, pa.ArrowException) as error:
            raise self._error(error) from error
        data = b"".join(parts)
        self._num_read += len(data)
        return data

    def _error(self, error: Exception) -> CorpusError:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        if self._raw is None:
            return CorpusError(f"it cannot be read: {reason}", source=self._source.name)
        kind = self._source.compression
        problem = f"the {kind} data ends early" if "Truncated" in reason else f"the {kind} data is damaged: {reason}"
        place = f"about byte {self.position:,} of {self._source.size:,}, after {self._num_read:,} bytes of text"
        return CorpusError(f"{problem} ({place})", source=self._source.name)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._source.size is not None:
            self._file.close()
        if self._raw is not None:
            self._raw.close()
