"""Where a corpus is: in a local folder, or under a URL on an object store, which fsspec reads and writes.

No other module knows which. They differ in how a file appears as a whole:

- A local file is written under another name and renamed. The journal is a file, with a line for each finished shard.
- A store cannot rename or append, but it has an object as a whole or not at all. The files of a shard are made in a
  temporary folder and uploaded. Then its record is uploaded, an object in the journal, which is a folder.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from stat import S_ISREG
from tempfile import TemporaryDirectory, gettempdir
from typing import Any

from ..errors import CorpusError
from ..tokenizer.files import lock, no_follow, remove_parts, replacing
from .remote import explained as explained_by_url
from .remote import is_url, located
from .writing.shard_files import Written, explained

MANIFEST, LOCK = "manifest.json", ".ggtok.lock"


class Folder:
    """A local folder. All methods raise `CorpusError`."""

    journal = "journal.jsonl"

    def __init__(self, path: Path) -> None:
        self.local = path
        """Where the files of shards are made."""

    def at(self, name: str = "") -> Any:
        """The path of a file, or its URL."""
        return self.local / name

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Makes the folder, and keeps other runs out. The lock is an empty file: one with anything in it is not ours.

        Raises `CorpusError` if another run has it.
        """
        path, name = self.local / LOCK, str(self.at())
        self.local.mkdir(parents=True, exist_ok=True)
        try:
            descriptor = no_follow(str(path), os.O_WRONLY | os.O_CREAT)
        except OSError as error:
            raise CorpusError(f"{LOCK} cannot be opened: {error.strerror}", source=name) from error
        with open(descriptor, "wb") as file:
            try:
                lock(file)
                status = os.stat(path)  # the run before deletes it
            except OSError as error:
                raise CorpusError("another run is using this folder", source=name) from error
            if status.st_size or not S_ISREG(status.st_mode):
                raise CorpusError(f"it holds {LOCK}, which another program made", source=name)
            try:
                remove_parts(str(self.local))
                yield
            finally:
                if os.name != "nt":  # which deletes no open file
                    path.unlink()

    def sizes(self) -> dict[str, int]:
        """The size of each file, and -1 for what is not a file."""
        with os.scandir(self.local) as entries:
            return {entry.name: entry.stat().st_size if entry.is_file() else -1 for entry in entries}

    def read(self, name: str) -> bytes | None:
        """A file; `None` if there is none."""
        path = self.local / name
        return path.read_bytes() if path.is_file() else None  # reading a pipe could block

    def write(self, name: str, data: Iterable[bytes]) -> None:
        """Writes a file as a whole, over an existing one."""
        with explained(name), replacing(str(self.local / name)) as file:
            file.writelines(data)

    def remove(self, name: str) -> None:
        """Deletes a file."""
        (self.local / name).unlink()

    def add(self, files: list[Written]) -> None:
        """Takes the files of a finished shard from `local`."""

    @contextmanager
    def fetched(self, names: Iterable[str]) -> Iterator[Path]:
        """A local folder with some of the files."""
        yield self.local

    def records(self) -> list[tuple[str, bytes]]:
        """The records of the journal, each with its name. A last line that was cut short is left out."""
        data = self.read(self.journal) or b""
        whole = data[: data.rfind(b"\n") + 1]
        return [(f"line {number}", line) for number, line in enumerate(whole.splitlines(), 1)]

    def record(self, shard: str, data: bytes) -> None:
        """Adds the record of a finished shard to the journal: a line."""
        with explained(self.journal), open(self.local / self.journal, "ab", opener=no_follow) as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())

    def clear_journal(self) -> None:
        """Deletes the journal."""
        with explained(self.journal):
            (self.local / self.journal).unlink(missing_ok=True)


class RemoteFolder(Folder):
    """A folder on a store.

    Nothing can lock it against other machines, so writing compares the manifest's version with that which this run read
    or wrote.
    """

    journal = "journal"

    def __init__(self, url: str) -> None:
        self._url, self._version = url.rstrip("/"), ""
        # The same for all runs of a user, which are locked there, and delete what a killed one left.
        self._user = os.getuid() if hasattr(os, "getuid") else 0
        super().__init__(Path(gettempdir(), f"ggtok-{self._user}-{sha256(self._url.encode()).hexdigest()[:16]}"))

    def at(self, name: str = "") -> Any:
        return f"{self._url}/{name}" if name else self._url

    @contextmanager
    def _store(self, name: str = "", verb: str = "read") -> Iterator[tuple[Any, str]]:
        """fsspec's file system, and the path in it. Errors name the file."""
        files, path = located(self._url)
        files.invalidate_cache()  # other threads and processes write too
        with explained_by_url(self.at(name), verb):
            yield files, f"{path.rstrip('/')}/{name}" if name else path

    @contextmanager
    def locked(self) -> Iterator[None]:
        self.local.mkdir(0o700, exist_ok=True)
        if self.local.lstat().st_uid != self._user:
            raise CorpusError("it belongs to another user: set TMPDIR to another folder", source=str(self.local))
        try:
            with super().locked():
                try:
                    yield
                finally:
                    for name in super().sizes().keys() - {LOCK}:
                        super().remove(name)
        finally:
            with suppress(OSError):  # another run is there
                self.local.rmdir()

    def sizes(self) -> dict[str, int]:
        with self._store() as (files, path), suppress(FileNotFoundError):
            inside = (each for each in files.ls(path, detail=True) if each["name"].rstrip("/") != path.rstrip("/"))
            found = {each["name"].rstrip("/").rpartition("/")[2]: each for each in inside}
            return {name: each["size"] if each["type"] == "file" else -1 for name, each in found.items()}
        return {}

    def read(self, name: str) -> bytes | None:
        if name == MANIFEST:
            self._version = self._current()
        with self._store(name) as (files, path), suppress(FileNotFoundError):
            data: bytes = files.cat_file(path)
            return data
        return None

    def write(self, name: str, data: Iterable[bytes]) -> None:
        if self._version != self._current():
            raise CorpusError("another run is using this folder", source=self._url)
        with self._store(name, "written") as (files, path):
            files.pipe_file(path, b"".join(data))
        if name == MANIFEST:
            self._version = self._current()

    def _current(self) -> str:
        """The version of the manifest; empty if there is none."""
        with self._store(MANIFEST) as (files, path), suppress(FileNotFoundError):
            return str(files.ukey(path))
        return ""

    def remove(self, name: str) -> None:
        with self._store(name, "deleted") as (files, path):
            files.rm(path)

    def add(self, files: list[Written]) -> None:
        for file in files:
            with self._store(file.name, "written") as (store, path):
                store.put_file(str(self.local / file.name), path)
                if (size := store.info(path)["size"]) != file.size:
                    problem = f"the store has {size:,} of its {file.size:,} bytes"
                    raise CorpusError(problem, source=self.at(file.name))
            super().remove(file.name)

    @contextmanager
    def fetched(self, names: Iterable[str]) -> Iterator[Path]:
        with TemporaryDirectory(prefix="ggtok-", ignore_cleanup_errors=True) as folder:
            for name in names:
                with self._store(name) as (files, path):
                    files.get_file(path, os.path.join(folder, name))
            yield Path(folder)

    def records(self) -> list[tuple[str, bytes]]:
        with self._store(self.journal) as (files, path):
            names = files.find(path)
            found = files.cat(names) if names else {}
            return [(name.rpartition("/")[2], data) for name, data in sorted(found.items())]

    def record(self, shard: str, data: bytes) -> None:
        """Adds the record to the journal: an object."""
        self.write(f"{self.journal}/{shard}.json", [data])

    def clear_journal(self) -> None:
        with self._store(self.journal, "deleted") as (files, path), suppress(FileNotFoundError):
            files.rm(path, recursive=True)


def folder_of(name: str) -> Folder:
    """The folder of a path or URL. Raises `CorpusError` if it is a file, and what `located` does."""
    if is_url(name):
        files, path = located(name)
        if not getattr(files, "local_file", False):
            if any(each in path for each in "*?["):
                raise CorpusError("the name of an output cannot have *, ? or [", source=name)
            return RemoteFolder(name)
        name = path
    if os.path.exists(name) and not os.path.isdir(name):
        raise CorpusError("this is a file, not a folder", source=name)
    return Folder(Path(name))
