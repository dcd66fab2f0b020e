"""Standard output and standard error: JSON that keeps every byte, and messages of one line."""

from __future__ import annotations

import base64
import codecs
import errno
import io
import json
import math
import os
import re
import shlex
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple, TextIO
from unicodedata import category

import click

UNUSUAL = re.compile(r"[^\n\t\x20-\x7e\u200c\u200d]")
"""Characters that a terminal may obey. Two joiners, which emoji and some scripts need, are not among them."""

OBEYED = ("Cc", "Cf", "Zl", "Zp")
"""Categories of characters that a terminal does obey: control, formatting such as U+202E, and ends of lines."""

ARGUMENT = re.compile(
    r"""(?x) (?<![\w.]) (?: (input_format | max_length | pad_id | skip_bad) \b
    | (library | offline | parse_special | raw | template | template_text | too_long | tools | trust | \w+_only) =
      (True | False | '[^']*' | (?=[A-Z\W]|$))
    | overrides=\{"([^"]+)":\ (?: "([^"]+)" | (False) | \.\.\. )\} )"""
)
"""An argument that the library's messages name."""

OPTIONS = {
    "library": "--libllama ",
    "offline=False": "--online",
    "normalize_corpus_only=True": "--set normalize_corpus_only=true",
}
"""What arguments are called on the command line, except those that have the name of their option."""

CELL = "━"
"""What bars are made of."""

SIGNS = f"├└│─{CELL}✓✗"
"""What is drawn beside texts."""


def to_stderr(message: str) -> None:
    """One line on standard error, with options for the arguments that it names."""
    print(f"ggtok: {printable(' '.join(with_options(message).split()))}", file=sys.stderr, flush=True)


def with_options(message: str) -> str:
    """A message of the library, with options for the arguments that it names."""
    return ARGUMENT.sub(_option, message)


def _option(argument: re.Match[str]) -> str:
    alone, name, value, key, text, is_false = argument.groups()
    if key:
        return f"--override-kv {key}={f'str:{text}' if text else 'bool:false' if is_false else 'TYPE:VALUE'}"
    known = OPTIONS.get(argument[0].rstrip("="))
    option = known or "--" + (alone or name).replace("_", "-").replace("template-text", "template-file")
    return option if known or value in (None, "", "True") else f"{option} {shlex.quote(value[1:-1])}"


def printable(text: str) -> str:
    """A text with its control characters and lone surrogates escaped, so that a terminal does not obey them."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


@contextmanager
def shown_warnings() -> Iterator[None]:
    """Shows warnings as one line each, and keeps the locale's encoding from failing on any output."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", ResourceWarning)  # of Python's import, if Ctrl-C interrupts it
        warnings.showwarning = lambda message, *_: to_stderr(f"warning: {message}")
        yield


def wants_colors() -> bool:
    """Whether standard output shows colours, and its reader wants them (https://no-color.org, FORCE_COLOR)."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return bool(os.environ.get("FORCE_COLOR")) or sys.stdout.isatty()


def painted(text: str, style: str) -> str:
    """A text in a style, which is a code of the terminal."""
    return f"\x1b[{style}m{text}\x1b[0m" if style and text else text


def drawn(line: str, stream: TextIO | None = None) -> str:
    """A line with its signs, or with others if the encoding of the stream (default: standard output) lacks them."""
    try:
        SIGNS.encode((stream or sys.stdout).encoding or "utf-8")
    except UnicodeEncodeError:
        return line.translate(str.maketrans(SIGNS, "|`|-#+x"))
    return line


def is_of_output(error: Exception) -> bool:
    """Whether an error says that standard output cannot be written to. Errors of files have the name of the file."""
    return isinstance(error, OSError) and error.filename is None and error.errno not in (None, errno.ENOENT)


def explained(error: Exception) -> str:
    """What an error says, with the name of the file."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return error.format_message() if isinstance(error, click.ClickException) else str(error)


def give_up_output() -> None:
    """Points standard output at the null device, so that the interpreter does not fail to flush it at exit."""
    with suppress(OSError, ValueError, AttributeError):  # if it is not a file
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class Writer:
    """Writes the bytes of a text to standard output: as they are, or on a terminal with control characters escaped."""

    def __init__(self) -> None:
        sys.stdout.flush()
        self._is_terminal = sys.stdout.isatty()
        self._decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")
        self._last = "\n"

    def write(self, data: bytes) -> None:
        if self._is_terminal:
            self._show(self._decoder.decode(data))
        else:
            sys.stdout.buffer.write(data)

    def end(self) -> None:
        """Ends the text: on a terminal with a newline, if it has none."""
        if self._is_terminal:
            self._show(self._decoder.decode(b"", final=True))
            self._show("" if self._last == "\n" else "\n")

    def _show(self, text: str) -> None:
        sys.stdout.write(UNUSUAL.sub(_unless_obeyed, text))
        self._last = text[-1:] or self._last


def _unless_obeyed(found: re.Match[str]) -> str:
    """A character that a terminal does not obey, or its escape."""
    return printable(found[0]) if category(found[0]) in OBEYED else found[0]


def print_text(text: str, end: str = "") -> None:
    """A text as `Writer` writes it, and what is written after it."""
    writer = Writer()
    writer.write((text + end).encode("utf-8", "surrogatepass"))
    writer.end()


def lossless(text: bytes) -> str | dict[str, str]:
    """Bytes as JSON has them: a string if they are UTF-8, which a token's bytes need not be, otherwise base64."""
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(text).decode("ascii")}


class Items(NamedTuple):
    """The items of a list as JSON in ASCII, several in each part, for a list that is too long to be made first."""

    parts: Iterable[bytes]


def print_json(**values: object) -> None:
    """One JSON object on a line, in ASCII, so that it is valid in every locale."""
    separator = "{"
    for name, value in values.items():
        sys.stdout.write(f"{separator}{json.dumps(name)}: ")
        if isinstance(value, Items):
            _write_items(value)
        else:
            sys.stdout.write(json.dumps(value))
        separator = ", "
    sys.stdout.write("}\n")


def _write_items(items: Items) -> None:
    """Writes a list around the text layer of standard output, which would copy every part twice."""
    sys.stdout.write("[")
    sys.stdout.flush()
    for number, part in enumerate(items.parts):
        if number > 0:
            sys.stdout.buffer.write(b", ")
        sys.stdout.buffer.write(part)
    sys.stdout.write("]")


def finite(value: Any) -> Any:
    """A value for JSON, which has no infinite numbers and no NaN: these become strings."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {name: finite(item) for name, item in value.items()}
    return [*map(finite, value)] if isinstance(value, (list, tuple)) else value
