"""Arguments that callers pass: words, iterables, mappings and names of files. Others are refused by name."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from typing import Any, get_args

from ..errors import ArgumentTypeError, GgtokError


def one_of(name: str, value: object, words: Any, error: type[GgtokError] = GgtokError) -> None:
    """Raises an error that lists the known words, unless a value is one of them: of a `Literal` or a list."""
    known = tuple(words) if isinstance(words, (list, tuple, dict)) else get_args(words)
    *others, last = [repr(word) for word in known if word is not None]
    expected = f"{name} must be {', '.join(others)} or {last}"
    if value is not None and not isinstance(value, str):
        raise ArgumentTypeError(f"{expected}, not {type(value).__name__}")
    if value not in known:
        raise error(f"{expected}, not {value!r}")


def items_of(name: str, values: Any, kind: str) -> Iterator[Any]:
    """Iterates over the items of an argument. One text, path or mapping is not an iterable of them."""
    is_single = isinstance(values, (str, bytes, bytearray, memoryview, os.PathLike, Mapping))
    if is_single or not hasattr(values, "__iter__"):
        raise ArgumentTypeError(f"{name} must be an iterable of {kind}, not one {type(values).__name__}")
    return iter(values)


def mapping(name: str, value: object) -> dict[Any, Any]:
    """A mapping as a dict."""
    if not isinstance(value, Mapping):
        raise ArgumentTypeError(f"{name} must be a mapping, not {type(value).__name__}")
    return dict(value)


def without_surrogates(name: str, text: object) -> None:
    """Raises `GgtokError` for a text that UTF-8 cannot encode."""
    found = re.search("[\ud800-\udfff]", text) if isinstance(text, str) else None
    if found:
        raise GgtokError(f"{name} has a lone surrogate, character {found.start()}")


def file_name(path: str | bytes | os.PathLike[Any]) -> str | bytes:
    """The name of a file. Raises `GgtokError` for one that the system does not allow."""
    name: str | bytes = os.fspath(path)
    try:
        encoded = os.fsencode(name)
    except UnicodeEncodeError:
        encoded = b"\0"
    if b"\0" in encoded:
        raise GgtokError(f"no file can have the name {name!r}")
    return name
