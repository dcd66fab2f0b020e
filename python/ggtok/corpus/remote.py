"""Files on object stores and on the web, by their URLs, through fsspec."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..errors import CorpusError, DependencyError, GgtokError

URL = re.compile(r"([a-z][a-z0-9+.-]+)://")


class StoreError(CorpusError):
    """A store failed, which says nothing about the file: it is not a bad row."""


class Checked:
    """A file on a store, to be read from any place. An end before that of the file is a failure of the store."""

    def __init__(self, file: Any, url: str, size: int) -> None:
        self._file, self._url, self._size = file, url, size

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def read(self, size: int) -> bytes:
        """As of a file. Raises `StoreError`."""
        with explained(self._url):
            data: bytes = self._file.read(size)
            if len(data) < size and (end := self._file.tell()) < self._size:
                raise StoreError(f"the store ends it at byte {end:,} of {self._size:,}", source=self._url)
        return data


def is_url(name: str) -> bool:
    """Whether a name is not that of a local file."""
    return URL.match(name) is not None


def located(url: str) -> tuple[Any, str]:
    """The file system of a URL, and the path in it.

    Raises `CorpusError` if the scheme is unknown, and `DependencyError` if it needs a package.
    """
    try:
        from fsspec.core import url_to_fs

        found: tuple[Any, str] = url_to_fs(url)
        return found
    except ImportError as error:
        raise DependencyError(f"{url} needs a package: {error}; pip install 'ggtok[remote]'") from error
    except ValueError as error:
        raise CorpusError(f"this is not the URL of a file or folder: {error}", source=url) from error


def normal(url: str) -> str:
    """A URL as `listed` spells it."""
    files, path = located(url)
    return str(files.unstrip_protocol(path))


@contextmanager
def explained(url: str, verb: str = "read") -> Iterator[None]:
    """Turns what a store raises, which may be of any kind, into a `StoreError`."""
    try:
        yield
    except Exception as error:
        if isinstance(error, GgtokError) or not is_url(url):
            raise
        raise StoreError(f"it cannot be {verb}: {error!r}", source=url) from error


def listed(url: str) -> dict[str, int]:
    """The URLs and sizes of a file; of all files in a folder, or that match a pattern with `*`, by name.

    Raises `CorpusError` if there are none.
    """
    files, path = located(url)
    with explained(url):
        if "*" not in path and files.isfile(path):
            return {url: files.info(path)["size"] or 0}
        found = files.glob(path, detail=True) if "*" in path else files.find(path, detail=True)
        if sizes := {name: info["size"] for name, info in sorted(found.items()) if info["type"] == "file"}:
            return {files.unstrip_protocol(name): size or 0 for name, size in sizes.items()}
    raise CorpusError("no file has this name, and none matches it as a pattern", source=url)
