"""Inputs on object stores and on the web, by their URLs, through fsspec."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..errors import CorpusError, DependencyError, GgtokError

URL = re.compile(r"([a-z][a-z0-9+.-]+)://")


def is_url(name: str | None) -> bool:
    """Whether a name is not that of a local file."""
    return name is not None and URL.match(name) is not None


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
        raise CorpusError(f"this cannot be read: {error}", source=url) from error


@contextmanager
def explained(url: str) -> Iterator[None]:
    """Turns what a store raises, which may be of any kind, into a `CorpusError`."""
    try:
        yield
    except Exception as error:
        if isinstance(error, GgtokError) or not is_url(url):
            raise
        raise CorpusError(f"it cannot be read: {error!r}", source=url) from error


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
