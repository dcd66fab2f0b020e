"""A `str` among texts is a text, never a path. Files are `files=[...]`, or paths (`os.PathLike`) among the texts."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar

from ..errors import ArgumentTypeError
from .arguments import file_name, items_of

T = TypeVar("T")
Path = str | os.PathLike[str]

NUM_LOOKED_UP = 1000
"""How many texts of an iterable are looked up as names of files: each takes a system call."""

LONGEST_NAME = 1024
"""Characters of a text that may be a path."""


def paths(files: Iterable[Path]) -> list[os.PathLike[str]]:
    """The paths of files that were given by name. Raises `TypeError` for a lone one."""
    from pathlib import Path

    if isinstance(files, (str, bytes, os.PathLike)):
        raise ArgumentTypeError(f"files must be a list of paths, not a single one: files=[{str(files)!r}]")
    return [Path(os.fsdecode(file_name(file))) for file in items_of("files", files, "paths")]


def refuse_lone(texts: object) -> None:
    """Raises `TypeError` for a `str` that could be a text or the name of a file, and for a mapping or a buffer."""
    if isinstance(texts, (Mapping, bytearray, memoryview)):
        raise ArgumentTypeError(f"texts must be an iterable of texts, not {type(texts).__name__}")
    if isinstance(texts, (str, bytes, bytearray, memoryview)):
        shown = repr(texts if len(texts) <= 20 else texts[:20])
        raise ArgumentTypeError(
            f"texts is a single {type(texts).__name__}: [{shown}] is a text, files=[{shown}] a file"
        )


def either(texts: T | None, files: object, name: str) -> None:
    """Raises `TypeError` unless exactly one of the two was given."""
    if (texts is None) is (files is None):
        raise ArgumentTypeError(f"{name}() takes texts or files, {'one of them' if files is None else 'not both'}")


def watched(texts: Iterable[T]) -> Iterator[T]:
    """The same texts, with a warning about the first one that is the name of a file."""
    iterator = iter(texts)
    for number, text in zip(range(NUM_LOOKED_UP), iterator, strict=False):
        yield text
        if isinstance(text, str) and is_file_name(text):
            warn_of_name(f"text {number}", text)
            break
    yield from iterator


def is_file_name(text: str) -> bool:
    """Whether a text is the name of an existing file."""
    return 0 < len(text) <= LONGEST_NAME and "\n" not in text and "\0" not in text and os.path.isfile(text)


def warn_of_name(where: str, text: str) -> None:
    """Warns of a text that is the name of a file."""
    from .findings import Finding, warn_of

    message, advice = f"{where} is {text!r}, the name of a file", f"files=[{text!r}] reads it"
    warn_of(Finding("text-names-file", "warning", message, advice))
