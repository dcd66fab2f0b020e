"""Progress of long work: a line on standard error, if that is a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress(total: int | None, label: str) -> Iterator[Callable[[int], None]]:
    """Shows how far work on `total` bytes is; the function that it gives is told of each part's size."""
    done = 0

    def advance(size: int) -> None:
        nonlocal done
        done += size
        if sys.stderr.isatty() and total:
            print(f"\r{label} {done / total:4.0%}", end="", file=sys.stderr, flush=True)

    try:
        yield advance
    finally:
        if sys.stderr.isatty() and done:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
