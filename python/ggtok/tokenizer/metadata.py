"""The metadata of a GGUF file: sources are opened here, and read by the core (`rust/core/src/gguf.rs`).

A file is read, not mapped, because a mapped file that shrinks kills the process. The first read is 16 MiB, and each of
the following doubles what is there. Nothing is allocated for bytes beyond the end of the file.
"""

from __future__ import annotations

import io
import os
import stat
from contextlib import contextmanager
from types import MappingProxyType
from typing import TypeAlias

from .._ggtok import Array, Metadata
from ..errors import ArgumentTypeError, GGUFError
from .arguments import file_name, mapping
from .contents import not_gguf

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any, Protocol

    from _typeshed import ReadableBuffer

    class Readable(Protocol):
        """A binary file, or anything else that reads like one."""

        def read(self, size: int, /) -> bytes: ...


Scalar: TypeAlias = str | int | float | bool
Source: TypeAlias = "str | os.PathLike[str] | ReadableBuffer | Readable"

BOM = "\ufeff"
"""A byte order mark, which some editors put at the start of a file."""

FIRST_READ = 1 << 24
"""Larger than nearly all metadata, and read in a few milliseconds."""

MAX_BYTES = (1 << 32) - 9
"""A prefix never grows beyond what the core reads."""


def name_of(source: object) -> str | None:
    """The path of a source, if it is one or a file that has one."""
    if not isinstance(source, (str, os.PathLike)):
        source = getattr(source, "name", None)
    return os.fsdecode(source) if isinstance(source, (str, os.PathLike)) else None


def read_metadata(source: Source, overrides: Mapping[str, Scalar] | None = None, *, flawed: bool = False) -> Metadata:
    """Reads a path, the bytes of a file, or a readable binary file from its current position.

    With `flawed`, keys may be empty or occur several times.
    Raises `GGUFError` if it is not valid GGUF, `OSError` if it cannot be read, and `TypeError` for an argument of
    another type.
    """
    checked = {} if overrides is None else _checked_overrides(overrides)
    with Prefix.open(source) as prefix:
        while True:
            try:
                found = Metadata.read(prefix.data, prefix.total, checked, flawed)
            except GGUFError as error:
                raise (not_gguf(prefix.data) if error.offset == 0 else None) or error from None
            if isinstance(found, Metadata):
                return found
            prefix.reach(found)


def scalars(metadata: Metadata) -> Mapping[str, Scalar]:
    """All values that are not arrays, with overrides; read-only."""
    entries = metadata.entries().items()
    values = {key: value for key, (_, value) in entries if not isinstance(value, Array)}
    return MappingProxyType(values | metadata.overrides)


def _checked_overrides(overrides: object) -> dict[str, Scalar]:
    given = mapping("overrides", overrides)
    for key in given:
        if not isinstance(key, str):
            raise ArgumentTypeError(f"the key of an override must be str, not {type(key).__name__}")
    return {str(key): _checked_override(key, value) for key, value in given.items()}


def _checked_override(key: str, value: object) -> Scalar:
    """Strips subclasses, so that the type of an override is one of four."""
    for python_type in (bool, int, float, str):
        if isinstance(value, python_type):
            return python_type(value)
    raise ArgumentTypeError(f"the override of {key} must be str, int, float or bool, not {type(value).__name__}")


def to_bytes(text: str) -> bytes:
    """The bytes of a string from a file, or of one from an override, which may hold any surrogate."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


class Prefix:
    """`data` is the source from its first byte, or from the position of a file; `reach` reads more of it."""

    def __init__(self, read: Callable[[int, int], bytes], total: int | None, data: bytes = b"") -> None:
        self.data = data
        self.total = total
        """The size of the source in bytes; `None` while it is not known."""
        self._read = read

    @classmethod
    @contextmanager
    def open(cls, source: Source) -> Iterator[Prefix]:
        """The prefix of a file by its path, of a bytes-like object, or of a readable binary file."""
        if isinstance(source, (str, os.PathLike)):
            with io.FileIO(file_name(source)) as file:
                yield cls._of_file(file)
        elif hasattr(source, "read"):
            yield cls._of_file(source)
        elif isinstance(source, bytes) and len(source) <= MAX_BYTES:
            yield cls(lambda *_: b"", len(source), source)
        else:
            yield cls._of_buffer(source)

    @classmethod
    def _of_buffer(cls, source: ReadableBuffer) -> Prefix:
        try:
            view = memoryview(source)
        except TypeError:
            found = type(source).__name__
            raise ArgumentTypeError(
                f"the source must be a path, bytes-like, or a readable binary file, not {found}"
            ) from None
        is_bytes = view.c_contiguous and view.format in ("B", "b", "c")
        view = view.cast("B") if is_bytes else memoryview(view.tobytes())
        return cls(lambda start, size: view[start : start + size].tobytes(), view.nbytes)

    @classmethod
    def _of_file(cls, file: Any) -> Prefix:
        def read(_: int, size: int) -> bytes:
            chunk: object = file.read(size)
            if not isinstance(chunk, (bytes, bytearray, memoryview)):
                raise ArgumentTypeError(
                    f"the source must be a binary file whose read() returns bytes, not {type(chunk).__name__}"
                )
            return bytes(chunk)

        total = None
        raw = getattr(file, "raw", file)
        if isinstance(raw, io.FileIO):  # for other files, finding the size may cost more than reading them
            status = os.fstat(raw.fileno())
            if stat.S_ISREG(status.st_mode):
                total = max(0, status.st_size - file.tell()) or None
        return cls(read, total)

    def reach(self, end: int) -> None:
        """Reads on until `data` has `end` bytes, or all of the source, or `MAX_BYTES`."""
        have = len(self.data)
        parts = [self.data] if have else []
        while have < end:
            goal = min(max(FIRST_READ, 2 * have), self.total or MAX_BYTES, MAX_BYTES)
            chunk = self._read(have, goal - have)
            if not chunk:
                self.total = have
                break
            parts.append(chunk)
            have += len(chunk)
        self.data = b"".join(parts)
