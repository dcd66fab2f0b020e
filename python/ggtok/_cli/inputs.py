"""Where texts come from: files, `-p TEXT`, standard input, and many texts in one of them (`--lines`, `--jsonl`)."""

from __future__ import annotations

import functools
import io
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO, TypeVar

import click

from .output import to_stderr

Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass(frozen=True)
class Source:
    """One input: a file by its path, `-` for standard input, or the bytes of `-p`."""

    path: str | None
    text: bytes = b""

    @property
    def name(self) -> str:
        """As messages name it."""
        if self.path is None:
            return "-p"
        return "standard input" if self.path == "-" else self.path

    @property
    def size(self) -> int | None:
        """In bytes; `None` for what is no regular file."""
        if self.path is None:
            return len(self.text)
        try:
            return os.stat(sys.stdin.fileno() if self.path == "-" else self.path).st_size or None
        except (OSError, ValueError):
            return None

    @contextmanager
    def open(self) -> Iterator[BinaryIO]:
        """The bytes, as a file to read."""
        if self.path is None:
            yield io.BytesIO(self.text)
        elif self.path == "-":
            if sys.stdin is None:
                raise click.ClickException("standard input is closed: name a file, or give a text with -p")
            if sys.stdin.isatty():
                keys = "Ctrl-Z and Enter" if os.name == "nt" else "Ctrl-D"
                to_stderr(f"reading standard input; end with {keys}")
            yield sys.stdin.buffer
        else:
            with open(self.path, "rb") as file:
                yield file

    def read(self) -> bytes:
        """All bytes."""
        with self.open() as file:
            return file.read()


def takes_texts(function: Command) -> Command:
    """Gives a command files as arguments and `-p`, and passes it `sources: list[Source]`, at least one."""

    @click.argument("files", nargs=-1, type=click.Path(), metavar="[FILE]...")
    @click.option("-p", "--text", multiple=True, metavar="TEXT", help="A text itself; repeatable.")
    @functools.wraps(function)
    def command(*args: Any, files: tuple[str, ...], text: tuple[str, ...], **others: Any) -> Any:
        return function(*args, sources=sources_of(files, text), **others)

    return command  # type: ignore[return-value]


def sources_of(files: Sequence[str], texts: Sequence[str]) -> list[Source]:
    """The inputs in the order texts, files; standard input if there are none."""
    for path in files:
        if path != "-" and not os.path.exists(path):
            raise click.ClickException(f"{path!r} is no file; a text itself is given with -p")
    return [Source(None, os.fsencode(text)) for text in texts] + [Source(path) for path in files or ["-"][: not texts]]
