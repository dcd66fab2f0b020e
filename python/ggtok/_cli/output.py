"""Standard output and standard error: JSON that keeps every byte, one-line messages, and what ends without a word."""

from __future__ import annotations

import base64
import io
import json
import math
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any


def to_stderr(message: str) -> None:
    """One line on standard error."""
    print(f"ggtok: {' '.join(message.split())}", file=sys.stderr, flush=True)


@contextmanager
def shown_warnings() -> Iterator[None]:
    """Warnings as one line each, and output that no locale's encoding stops."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = lambda message, *_: to_stderr(f"warning: {message}")
        yield


def flush() -> None:
    """Writes what waits for standard output, so that a failure is seen."""
    if sys.stdout is not None:
        sys.stdout.flush()


def give_up_output() -> None:
    """Points standard output to nowhere, so that the interpreter does not fail to flush it at exit."""
    with suppress(OSError, ValueError, AttributeError):  # where it is no file
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def write_bytes(data: bytes) -> None:
    """Writes exactly these bytes to standard output."""
    sys.stdout.flush()
    sys.stdout.buffer.write(data)


def lossless(text: bytes) -> str | dict[str, str]:
    """Bytes as JSON has them: a string where they are UTF-8, which a token's bytes need not be, or else base64."""
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(text).decode("ascii")}


def print_json(**values: object) -> None:
    """One JSON object on a line, in ASCII, so that it is valid in every locale."""
    print(json.dumps(_finite(values)))


def _finite(value: Any) -> Any:
    """A value without numbers that JSON cannot say: these become strings."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {name: _finite(item) for name, item in value.items()}
    return [*map(_finite, value)] if isinstance(value, (list, tuple)) else value
