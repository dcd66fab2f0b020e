"""Files read and written as a whole: a written file appears under its name complete, or not at all.

1. Bytes go to a *part*: a new file in the same folder, with a random name and a lock that lasts as long as its writer.
2. Once they are on the disk, the part is renamed. Until then, errors and Ctrl-C delete it.
3. What a killed writer leaves is a part without a lock. The next writer in that folder deletes it.
"""

from __future__ import annotations

import errno
import io
import os
import re
import stat
import sys
from contextlib import ExitStack, contextmanager, suppress
from typing import TypeAlias

from ..errors import GgtokError
from .arguments import file_name
from .metadata import MAX_BYTES, Prefix, Source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any, BinaryIO, Protocol

    class SupportsWrite(Protocol):
        """A binary file, or anything else that is written to like one."""

        def write(self, data: bytes, /) -> object: ...


PART = re.compile(r"\.ggtok-[0-9a-f]{16}\.part")
"""The name of a part. It is short, so that any name of a file that a file system allows can be written."""

Target: TypeAlias = "str | os.PathLike[str] | SupportsWrite"


def read(source: Source) -> bytes:
    """All of a file by its path, of a readable binary file, or of a bytes-like object."""
    with Prefix.open(source) as prefix:
        prefix.reach(MAX_BYTES if prefix.total is None else prefix.total)
        return prefix.data


def read_pipe(file: Any, size: int, watch: Callable[[], object] = lambda: None) -> bytes:
    """At most this many bytes of a pipe, a terminal or another file: what is there, once there is something.

    Python notices a Ctrl-C that comes just before a read only when that ends, which may be never. So this waits first,
    and calls `watch` meanwhile, which can end it by raising.
    """
    from select import select

    with suppress(io.UnsupportedOperation):  # bytes in memory have no file number
        number = file.fileno()
        while os.name != "nt" and not select([number], [], [], 0.1)[0]:
            watch()
    return bytes(file.read1(size))


def check_target(
    target: Target, inputs: Iterable[object] = (), *, overwrite: bool = False, regular: bool = False
) -> str:
    """Checks, before any work, that writing a file destroys nothing that is still needed.

    Args:
        target: Where the file will be written. An open file is not checked.
        inputs: What the file is made from. Paths are compared with it, also through links.
        overwrite: Whether a GGUF file with tensors may be replaced.
        regular: Whether to refuse what is not a regular file, such as a device or a pipe. It is not opened.

    Returns:
        The path that links at `target` lead to, for `replacing`; empty if the target is an open file.

    Raises:
        GgtokError: The target is one of the inputs, a GGUF file with tensors, or not a regular file.
        TypeError: The target is neither a path nor a binary file.
    """
    if hasattr(target, "write"):
        return ""
    path = _path(target)
    place = os.path.realpath(path)
    if regular and _is_special(path):
        raise GgtokError(f"{path} is not a regular file, and would be replaced: choose another name")
    for source in inputs:
        if isinstance(source, (str, os.PathLike)) and _is_same(path, os.fsdecode(source)):
            raise GgtokError(f"{path} is also an input, and would be replaced: choose another name")
    if not overwrite and _has_tensors(path):
        raise GgtokError(
            f"{path} is a GGUF file with tensors, which would be lost: choose another name, or overwrite it"
        )
    return place


def _is_same(path: str, other: str) -> bool:
    """Whether two paths lead to the same file, or would."""
    try:
        return os.path.samefile(path, other)
    except OSError:
        return os.path.realpath(path) == os.path.realpath(other)


def _is_special(path: str) -> bool:
    """Whether there is something other than a regular file."""
    return os.path.exists(path) and not os.path.isfile(path)


def _has_tensors(path: str) -> bool:
    if not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        head = file.read(16)
    return head[:4] == b"GGUF" and any(head[8:])


def write(target: Target, data: bytes, inputs: Iterable[object] = (), *, overwrite: bool = False) -> None:
    """Writes a file by its path, or to a binary file that is open. Raises what `check_target` does.

    What is not a regular file, such as a pipe, is written to as it is.
    """
    place = check_target(target, inputs, overwrite=overwrite)
    if hasattr(target, "write"):
        target.write(data)
        return
    path = _path(target)
    try:
        if _is_special(path):
            with open(path, "wb", opener=_open_special) as file:
                file.write(data)
        else:
            with replacing(place) as file:
                file.write(data)
    except OSError as error:
        error.filename = path  # a write that fails names none, and one of a part names that
        raise


def _open_special(path: str, flags: int) -> int:
    """Opens what is not a regular file, and refuses what replaced it just now."""
    descriptor = os.open(path, flags & ~(os.O_CREAT | os.O_TRUNC))
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
    return descriptor


@contextmanager
def replacing(path: str) -> Iterator[BinaryIO]:
    """A new file that replaces the one at `path` when the block ends, and is deleted if the block raises.

    A link at `path` is replaced and not followed: `check_target` does that once, before any work.
    """
    part = new_part(os.path.dirname(path) or ".")
    file = io.BufferedWriter(part)
    try:
        yield file
        file.flush()
        finish(part, path)
    except BaseException:
        discard(part)
        raise


def new_part(folder: str) -> io.FileIO:
    """A new part in a folder, locked until it is closed. Deletes what killed writers left there."""
    remove_parts(folder)
    while True:
        part = io.FileIO(os.path.join(folder, f".ggtok-{os.urandom(8).hex()}.part"), "x")
        try:
            if os.name != "nt":  # which deletes no open file
                lock(part)
            is_ours = os.path.exists(part.name)
        except BlockingIOError:
            is_ours = False
        except OSError:  # a file system without locks, where `remove_parts` deletes nothing
            is_ours = True
        if is_ours:
            return part
        part.close()  # another writer took it for a leftover


def finish(part: io.FileIO, path: str) -> None:
    """Gives a part its name, once it is on the disk. A regular file that was there passes its permissions on."""
    os.fsync(part.fileno())
    with suppress(FileNotFoundError):
        mode = os.lstat(path).st_mode
        if stat.S_ISREG(mode):
            os.chmod(part.name, stat.S_IMODE(mode))
    if os.name == "nt":  # which renames no open file
        part.close()
    os.replace(part.name, path)
    part.close()
    _sync_folder(os.path.dirname(path) or ".")


def discard(part: io.FileIO) -> None:
    """Deletes a part."""
    with suppress(OSError):
        part.close()
    with suppress(OSError):
        os.unlink(part.name)


def remove_parts(folder: str) -> None:
    """Deletes the parts in a folder that no writer has locked."""
    with suppress(PermissionError):
        for name in filter(PART.fullmatch, os.listdir(folder)):
            path = os.path.join(folder, name)
            with suppress(OSError), ExitStack() as stack:  # OSError: it is in use, or another user's
                if os.name != "nt":
                    lock(stack.enter_context(open(path, "r+b", opener=no_follow)))
                os.unlink(path)


def no_follow(path: str, flags: int) -> int:
    """Opens a file, but no link to one, and without waiting for the other end of a pipe."""
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0), 0o666)


def lock(file: BinaryIO | io.FileIO) -> None:
    """Locks a file until it is closed, or its process ends, however it does. Raises `OSError` if another has it."""
    if sys.platform == "win32":
        import msvcrt

        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
    else:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _sync_folder(folder: str) -> None:
    """Makes the names of the files in a folder survive a power failure, where the system has a call for that."""
    with suppress(PermissionError), ExitStack() as stack:  # PermissionError: any folder on Windows
        descriptor = os.open(folder, os.O_RDONLY)
        stack.callback(os.close, descriptor)
        os.fsync(descriptor)


def _path(target: object) -> str:
    """A path as `str`. Not a number: that would be a file descriptor."""
    if not isinstance(target, (str, os.PathLike)):
        raise TypeError(f"the target must be a path or a binary file, not {type(target).__name__}")
    return os.fsdecode(file_name(target))
