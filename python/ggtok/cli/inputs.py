"""Where texts come from: files, `-p TEXT`, standard input, and many texts in one of them (`--lines`, `--jsonl`).

Nothing is read before it is needed, and no more of it than about a megabyte, or a line, at once.
"""

from __future__ import annotations

import io
import json
import os
import re
import signal
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from threading import current_thread, main_thread
from typing import Any, TypeVar

import click

from ..errors import GgtokError
from ..tokenizer.files import read_pipe
from ..tokenizer.metadata import BOM
from .options import Command, repeatable, setting, shared
from .output import lossless, printable, to_stderr
from .progress import progress

Text = str | bytes

Result = TypeVar("Result")

NO_SPACE = re.compile(r"[^ \t\r\n]")

GGUF = re.compile(rb"GGUF(?:[\x01-\x09]\0\0\0|\0\0\0[\x01-\x09])")
"""How a GGUF file begins, in either byte order."""

PART = 1 << 20
"""How many bytes are read at once."""


@dataclass(frozen=True)
class Source:
    """One input: a file by its path, `-` for standard input, or the bytes of `-p`."""

    path: str | None
    text: bytes = b""

    @property
    def name(self) -> str:
        """As people read it, on one line."""
        if self.path is None:
            shown = repr(self.text[:60].decode("utf-8", "replace"))
            return shown if len(self.text) <= 60 else f"{shown[:-1]}…{shown[-1]}"
        return "standard input" if self.path == "-" else printable(self.path)

    def json(self, line: int | None = None) -> dict[str, object]:
        """As JSON names it, or a line of it: by its path, which need not be UTF-8; `-p` has none."""
        where: dict[str, object] = {} if self.path is None else {"file": lossless(os.fsencode(self.path))}
        return where if line is None else where | {"line": line}

    def at(self, line: int | None) -> str:
        """A line of it, as people read it."""
        return self.name if line is None else f"{self.name}, line {line}"

    @property
    def size(self) -> int | None:
        """In bytes; `None` if it is not a regular file."""
        if self.path is None:
            return len(self.text)
        try:
            return os.stat(sys.stdin.fileno() if self.path == "-" else self.path).st_size or None
        except (OSError, ValueError, AttributeError):  # standard input may be closed
            return None

    @contextmanager
    def open(self) -> Iterator[Any]:
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

    def parts(self, *, bar: bool | None = None) -> Iterator[bytes]:
        """The bytes in order, as they arrive.

        Args:
            bar: Whether to show progress. Default: unless results go to the terminal.
        """
        parts = self._parts(not sys.stdout.isatty() if bar is None else bar)
        # The bar must be gone before an error is printed.
        click.get_current_context().call_on_close(parts.close)
        return parts

    def _parts(self, bar: bool) -> Generator[bytes]:
        with self.open() as file, progress(self.size, self.name) if bar else nullcontext(lambda _: None) as advance:
            is_first = self.path is not None
            while part := self._read(file):
                if is_first and GGUF.match(part):
                    name = "MODEL" if self.path == "-" else self.name
                    raise click.ClickException(f"{self.name} is a GGUF file, not a text: -m {name} names a model")
                is_first = False
                yield part
                advance(len(part))

    def _read(self, file: Any) -> bytes:
        try:
            return read_pipe(file, PART)
        except OSError as error:
            raise OSError(error.errno, error.strerror, self.name) from None

    def lines(self) -> Iterator[list[tuple[int, bytes]]]:
        """Lines with their numbers, from 1 on, without their ends (`\\n` or `\\r\\n`): those of each part together."""
        number, begun = 1, []
        for part in self.parts():
            head, newline, _ = part.partition(b"\n")
            begun.append(head)
            if newline:
                *complete, rest = (b"".join(begun) + part[len(head) :]).split(b"\n")
                yield list(enumerate((line.removesuffix(b"\r") for line in complete), number))
                number += len(complete)
                begun = [rest]
        if last := b"".join(begun):
            yield [(number, last.removesuffix(b"\r"))]

    def read(self) -> bytes:
        return b"".join(self.parts())

    def texts(self, rows: Rows | None) -> Iterator[tuple[int | None, Text]]:
        """Its texts, each with the number of its line; without `rows` there is one, with `None`."""
        if rows is None:
            yield None, self.read()
        else:
            for texts in rows.texts(self):
                yield from texts


@dataclass(frozen=True)
class Rows:
    """How a source contains many texts: each line is one, or a string that each line's JSON object has."""

    field: str | None

    def texts(self, source: Source) -> Iterator[list[tuple[int, Text]]]:
        """Texts with the numbers of their lines, as they arrive. Empty lines of JSON are skipped."""
        for lines in source.lines():
            if self.field is None:
                yield list(lines)
            else:
                yield [(number, self._string(source, number, line)) for number, line in lines if line.strip()]

    def _string(self, source: Source, number: int, line: bytes) -> str:
        where = source.at(number)
        row = parse_json(line, where)
        if not isinstance(row, dict):
            raise click.ClickException(f"{where}: expected a JSON object, found {kind(row)}")
        if self.field not in row:
            raise click.ClickException(f"{where}: no field {self.field!r}, only {', '.join(map(repr, row)) or 'none'}")
        text = row[self.field]
        if not isinstance(text, str):
            raise click.ClickException(f"{where}: the field {self.field!r} must be a string, not {kind(text)}")
        return text


def parse_json(data: bytes, where: str) -> Any:
    """The value of JSON in UTF-8. `where` names it in errors."""
    return _parse(json.loads, data, where)


def parse_json_values(data: bytes, where: str) -> list[tuple[int, Any]]:
    """Consecutive values of JSON in UTF-8, each with the number of the line where it begins."""

    def values(data: bytes) -> list[tuple[int, Any]]:
        text, decoder = data.decode("utf-8"), json.JSONDecoder()
        found: list[tuple[int, Any]] = []
        line, start, end = 1, 0, 0
        while begin := NO_SPACE.search(text, end):
            line += text.count("\n", start, begin.start())
            start = begin.start()
            value, end = decoder.raw_decode(text, start)
            found.append((line, value))
        return found

    return _parse(values, data, where)


def _parse(parse: Callable[[bytes], Result], data: bytes, where: str) -> Result:
    try:
        with killable(len(data)):
            return parse(data)
    except json.JSONDecodeError as error:
        line = f"line {error.lineno}, " if b"\n" in data.rstrip() else ""
        raise click.ClickException(f"{where}: not JSON: {error.msg} at {line}column {error.colno}") from None
    except (ValueError, RecursionError) as error:
        raise click.ClickException(f"{where}: not JSON: {error}") from None


@contextmanager
def naming(where: str) -> Iterator[None]:
    """Puts the name of an input before what the library says about it."""
    try:
        yield
    except GgtokError as error:
        raise click.ClickException(f"{where}: {error}") from None


@contextmanager
def killable(size: int) -> Iterator[None]:
    """Lets Ctrl-C end the process during a call on `size` bytes, which would notice it only at its end.

    A call on few bytes ends soon anyway, and only the main thread can change what Ctrl-C does.
    """
    if size <= PART or current_thread() is not main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def characters(text: Text, where: str) -> str:
    """The text of an input that must be UTF-8."""
    if isinstance(text, str):
        return text
    try:
        with killable(len(text)):
            return text.decode("utf-8")
    except UnicodeDecodeError as error:
        hint = "convert it first, for example with iconv"
        raise click.ClickException(f"{where}: not UTF-8 at byte {error.start}; {hint}") from None


def template_text(path: str) -> str:
    """The text of a file with a chat template, without a byte order mark."""
    [source] = sources([path], [], "a Jinja template is expected")
    return characters(source.read(), source.name).removeprefix(BOM)


@shared(
    click.option("--template", metavar="NAME", help="The name of one of the model's templates, or chatml."),
    click.option("--template-file", metavar="FILE", type=click.Path(), help="A Jinja template instead of the model's."),
    repeatable("--set", "variables", metavar="NAME=VALUE", help="A variable of the template"),
)
def takes_template(template: str | None, template_file: str | None, variables: tuple[str, ...]) -> dict[str, Any]:
    """Gives a command `--template`, `--template-file` and `--set`, and passes it what the library calls them."""
    text = None if template_file is None else template_text(template_file)
    return {"template": template, "template_text": text, "variables": dict(map(setting, variables))}


def text_path(argument: str) -> Path:
    """The path of a text that is read in parts; `-` is standard input, if that has a path."""
    if argument != "-" or os.name == "nt":
        return Path(argument)
    with Source("-").open():  # says that it is waiting for the keyboard
        return Path("/dev/stdin")


def kind(value: object) -> str:
    """What a value of JSON is, for an error."""
    names = {dict: "an object", list: "a list", str: "a string", bool: "a truth value", type(None): "null"}
    return names.get(type(value), "a number")


def takes_files(function: Command) -> Command:
    """Gives a command files as arguments and `-p`, and passes it `files` and `text`, tuples of strings."""
    function = repeatable("-p", "--text", metavar="TEXT", help="A text")(function)
    return click.argument("files", nargs=-1, type=click.Path(), metavar="[FILE]...")(function)


@shared(takes_files)
def takes_texts(files: tuple[str, ...], text: tuple[str, ...]) -> dict[str, Any]:
    """Gives a command files as arguments and `-p`, and passes it `sources: list[Source]`, at least one."""
    return {"sources": sources(files, text)}


@shared(
    click.option("--lines", is_flag=True, help="Treat each line as a text."),
    click.option("--jsonl", metavar="FIELD", help="Treat each line as a JSON object with the text in this field."),
)
def takes_rows(lines: bool, jsonl: str | None) -> dict[str, Any]:
    """Gives a command `--lines` and `--jsonl`, and passes it `rows: Rows | None`."""
    if lines and jsonl is not None:
        raise click.ClickException("--lines and --jsonl: give only one")
    return {"rows": Rows(jsonl) if lines or jsonl is not None else None}


def sources(
    files: Sequence[str], texts: Sequence[str], hint: str = "a text itself is given with -p", exist: bool = True
) -> list[Source]:
    """The inputs that a command was given; standard input if none. If all have to exist, `hint` says what else a
    missing file may be."""
    for path in files if exist else ():
        if path != "-" and not os.path.exists(path):
            raise click.ClickException(f"{printable(path)}: no such file ({hint})")
    return [Source(None, os.fsencode(text)) for text in texts] + [Source(path) for path in files] or [Source("-")]
