"""Answerers that die, fail or hang, for the tests of who asks them. A child imports this file, so it imports little."""

from __future__ import annotations

import os
import sys
import time

from ggtok.errors import LibraryError


class Dying:
    """A library that ends the process which loads it."""

    def __init__(self, path: str) -> None:
        pass

    def library(self) -> None:
        sys.stderr.write("the reason\n")
        sys.stderr.flush()
        os._exit(3)


class Unknown(Dying):
    """A library whose layout cannot be told."""

    def library(self) -> None:
        raise LibraryError("its parameters have an unknown layout", path="a.so")


class Sleeping:
    """An answerer that hangs on one query, ends its process on another, and fails on a third."""

    def sleep(self) -> None:
        time.sleep(60)

    def end(self) -> None:
        sys.stderr.write("the reason\n")
        sys.stderr.flush()
        os._exit(3)

    def fail(self) -> None:
        raise KeyError("x")

    def double(self, number: int) -> int:
        return 2 * number
