"""Files read and written as a whole: a written one is complete under its name, or not there at all."""

from __future__ import annotations

import os

from ._prefix import MAX_BYTES, Prefix

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol, TypeAlias

    from ._prefix import Source

    class SupportsWrite(Protocol):
        """A binary file, or anything else that is written to like one."""

        def write(self, data: bytes, /) -> object: ...

    Target: TypeAlias = str | os.PathLike[str] | SupportsWrite


def read(source: Source) -> bytes:
    """All of a file by its path, of a readable binary file, or of a bytes-like object."""
    with Prefix.open(source) as prefix:
        prefix.reaches(MAX_BYTES if prefix.total is None else prefix.total)
        return prefix.data


def write(target: Target, data: bytes) -> None:
    """Writes a file by its path, or to a binary file that is open.

    A file is written under another name in the same folder and then renamed, so that nobody sees a part of it, whether
    the disk is full or the user presses Ctrl-C. What is no regular file, such as a pipe, is written to as it is.
    """
    if hasattr(target, "write"):
        target.write(data)
        return
    path = _path(target)
    try:
        _replace(os.path.realpath(path), data)
    except OSError as error:
        error.filename = path  # a write that fails names none, and one of a part names that
        raise


def _replace(path: str, data: bytes) -> None:
    if os.path.exists(path) and not os.path.isfile(path):
        with open(path, "wb") as file:
            file.write(data)
        return
    part = f"{path}.{os.urandom(4).hex()}.part"
    try:
        with open(part, "xb") as file:
            file.write(data)
        os.replace(part, path)
    except BaseException:
        if os.path.exists(part):
            os.unlink(part)
        raise


def _path(target: object) -> str:
    """A path as `str`. Not a number: that would be a file descriptor."""
    if not isinstance(target, (str, os.PathLike)):
        raise TypeError(f"the target must be a path or a binary file, not {type(target).__name__}")
    return os.fsdecode(target)


def beside(target: Target, suffix: str) -> str:
    """The path of a second file, named after the first."""
    return _path(target) + suffix
