"""Files read and written as a whole: a written one is complete under its name, or not there at all."""

from __future__ import annotations

import os
import stat
from contextlib import contextmanager
from typing import TypeAlias

from ._arguments import file_name
from ._metadata import MAX_BYTES, Prefix, Source
from .errors import GgtokError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import BinaryIO, Protocol

    class SupportsWrite(Protocol):
        """A binary file, or anything else that is written to like one."""

        def write(self, data: bytes, /) -> object: ...


Target: TypeAlias = "str | os.PathLike[str] | SupportsWrite"


def read(source: Source) -> bytes:
    """All of a file by its path, of a readable binary file, or of a bytes-like object."""
    with Prefix.open(source) as prefix:
        prefix.reaches(MAX_BYTES if prefix.total is None else prefix.total)
        return prefix.data


def check_target(target: Target, inputs: Iterable[object] = (), *, overwrite: bool = False) -> None:
    """Checks, before any work, that writing a file destroys nothing that is still needed.

    Args:
        target: Where the file will be written. One that is already open is not checked.
        inputs: What the file is made from. Paths are compared with it, also through links.
        overwrite: Whether a GGUF file with tensors may be replaced.

    Raises:
        GgtokError: The target is one of the inputs, or a GGUF file with tensors.
        TypeError: The target is neither a path nor a binary file.
    """
    if hasattr(target, "write"):
        return
    path = _path(target)
    for source in inputs:
        if isinstance(source, (str, os.PathLike)) and _is_same(path, os.fsdecode(source)):
            raise GgtokError(f"{path} is what this is made from, and would be replaced: choose another name")
    if not overwrite and _has_tensors(path):
        raise GgtokError(
            f"{path} is a GGUF file with tensors, which would be lost: choose another name, or overwrite it"
        )


def _is_same(path: str, other: str) -> bool:
    """Whether two paths lead to the same file, or would."""
    try:
        return os.path.samefile(path, other)
    except OSError:
        return os.path.realpath(path) == os.path.realpath(other)


def _has_tensors(path: str) -> bool:
    if not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        head = file.read(16)
    return head[:4] == b"GGUF" and any(head[8:])


def write(target: Target, data: bytes, inputs: Iterable[object] = (), *, overwrite: bool = False) -> None:
    """Writes a file by its path, or to a binary file that is open. Raises what `check_target` does.

    A file is written under another name in the same folder and then renamed, so it is never seen half written, even if
    the disk is full or the user presses Ctrl-C. What is not a regular file, such as a pipe, is written to as it is.
    """
    check_target(target, inputs, overwrite=overwrite)
    if hasattr(target, "write"):
        target.write(data)
        return
    path = _path(target)
    try:
        if os.path.exists(path) and not os.path.isfile(path):
            with open(path, "wb") as file:
                file.write(data)
        else:
            with replacing(path) as file:
                file.write(data)
    except OSError as error:
        error.filename = path  # a write that fails names none, and one of a part names that
        raise


@contextmanager
def replacing(path: str) -> Iterator[BinaryIO]:
    """A new file that takes the place of the one at `path` when the block ends, and is deleted if the block raises.

    The place is the one that a symbolic link leads to, and a file that was there passes its permissions on.
    """
    path = os.path.realpath(path)
    part = f"{path}.{os.urandom(4).hex()}.part"
    try:
        with open(part, "xb") as file:
            yield file
        if os.path.exists(path):
            os.chmod(part, stat.S_IMODE(os.stat(path).st_mode))
        os.replace(part, path)
    except BaseException:
        if os.path.exists(part):
            os.unlink(part)
        raise


def _path(target: object) -> str:
    """A path as `str`. Not a number: that would be a file descriptor."""
    if not isinstance(target, (str, os.PathLike)):
        raise TypeError(f"the target must be a path or a binary file, not {type(target).__name__}")
    return os.fsdecode(file_name(target))
