"""The part of a GGUF file after its metadata: the list of tensors, and their data, which is copied and never read.

Source: the GGUF specification (`docs/gguf.md` of ggml), and llama.cpp's `ggml/src/gguf.cpp`, `gguf_init_from_reader`.
Complexity: one step per tensor; the data is copied by the kernel if possible.

Deviations: none.
"""

from __future__ import annotations

import errno
import os
import struct
from collections.abc import Callable
from typing import Any, BinaryIO, NamedTuple

from ..._ggtok import Metadata
from ...errors import GGUFError

DEFAULT_ALIGNMENT = 32
MAX_DIMENSIONS = 4
MAX_NAME = 1 << 16
"""Bytes of a tensor's name. llama.cpp allows 64."""

SLICE = 1 << 24
"""Bytes that are copied at once, so that Ctrl-C stops soon and progress is shown."""

CANNOT_COPY = (errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM)
"""What `copy_file_range` fails with if the kernel or the file system does not have it."""


class Tensors(NamedTuple):
    """Where the tensors of a file are."""

    infos: bytes
    """The list of tensors as in the file. Its offsets count from `start`, so it stays the same in another file."""
    start: int
    """The place of the data in the file."""
    end: int
    rows: list[tuple[bytes, tuple[int, ...], int, int]]
    """The list: the name of each tensor, up to a NUL, its shape, the number of its type, and where its data is after
    `start`."""

    @classmethod
    def of(cls, file: BinaryIO, metadata: Metadata) -> Tensors:
        """Reads the list of tensors. Raises `GGUFError` if it is damaged or its data is missing."""
        end = os.fstat(file.fileno()).st_size
        file.seek(metadata.size)
        order = ">" if metadata.big_endian else "<"
        infos, last, rows = bytearray(), 0, list[tuple[bytes, tuple[int, ...], int, int]]()

        def take(code: str) -> tuple[Any, ...]:
            size = struct.calcsize(order + code)
            data = file.read(size)
            if len(data) < size:
                offset = metadata.size + len(infos)
                expected = f"{metadata.tensor_count} tensors"
                raise GGUFError("the file ends inside the list of tensors", offset=offset, expected=expected)
            infos.extend(data)
            return struct.unpack(order + code, data)

        for _ in range(metadata.tensor_count):
            offset = metadata.size + len(infos)
            (size,) = take("Q")
            if size > MAX_NAME:
                raise GGUFError("the name of a tensor is too long", offset=offset, found=f"{size} bytes")
            (name,) = take(f"{size}s")
            (dimensions,) = take("I")
            if dimensions > MAX_DIMENSIONS:
                found = f"{dimensions} dimensions"
                raise GGUFError("a tensor has too many dimensions", offset=offset, found=found)
            *shape, kind, place = take(f"{dimensions}QIQ")
            rows.append((name.partition(b"\0")[0], tuple(shape), kind, place))
            last = max(last, place + (0 not in shape))
        start = aligned(metadata.size + len(infos), metadata)
        if metadata.tensor_count and start + last > end:
            expected = f"data up to byte {start + last} at least"
            raise GGUFError("the file ends before the data of its tensors", offset=end, expected=expected)
        return cls(bytes(infos), min(start, end), end, rows)


def aligned(size: int, metadata: Metadata) -> int:
    """The next place where the data of tensors may begin."""
    alignment = metadata.get("general.alignment")
    return size + -size % (alignment if isinstance(alignment, int) else DEFAULT_ALIGNMENT)


def copy(source: BinaryIO, target: BinaryIO, start: int, end: int, progress: Callable[[int], object]) -> None:
    """Appends the bytes from `start` to `end` of one file to another. `progress` is called with their number.

    The kernel copies them, or shares them if the file system can; elsewhere they are read and written.
    """
    target.flush()
    at, by_kernel = start, hasattr(os, "copy_file_range")
    while at < end:
        size = min(SLICE, end - at)
        if by_kernel:
            try:
                copied = os.copy_file_range(source.fileno(), target.fileno(), size, at, target.tell())
            except OSError as error:
                if error.errno not in CANNOT_COPY:
                    raise
                by_kernel = False
                continue
            target.seek(copied, os.SEEK_CUR)
        else:
            source.seek(at)
            copied = target.write(source.read(size))
        if not copied:
            raise OSError(errno.EIO, "the file became shorter while it was copied", source.name)
        at += copied
        progress(copied)
