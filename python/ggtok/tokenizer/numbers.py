"""Numbers that callers pass: sizes and threads."""

from __future__ import annotations

import os
from numbers import Real
from operator import index as as_int
from typing import SupportsIndex

from ..errors import ArgumentTypeError, GgtokError

MOST = 1 << 40
"""More than any text has tokens, and less than the core can count."""

MAX_THREADS = 1 << 16
"""Far more threads than any machine has cores."""


def at_least(least: int, value: SupportsIndex, name: str) -> int:
    """An integer, at most `MOST`. Raises `GgtokError` if it is less than `least`."""
    number = as_int(value)
    if number < least:
        raise GgtokError(f"{name} must be at least {least}, not {number}")
    return min(number, MOST)


def real(value: float, name: str) -> float:
    """A number as a float. Raises `ArgumentTypeError` if it is none."""
    if not isinstance(value, Real):
        raise ArgumentTypeError(f"{name} must be a number, not {type(value).__name__}")
    return float(value)


def seed_of(value: SupportsIndex | None) -> int | None:
    """A seed of random numbers, if one is given. Raises `GgtokError` if it does not fit into 64 bits."""
    if value is not None and not 0 <= as_int(value) < 1 << 64:
        raise GgtokError(f"seed must be from 0 to 2**64 - 1, not {value}")
    return None if value is None else as_int(value)


def num_threads(threads: SupportsIndex | None) -> int:
    """The number of threads: by default, the number of cores that this process may use."""
    if threads is not None:
        return min(at_least(1, threads, "threads"), MAX_THREADS)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
