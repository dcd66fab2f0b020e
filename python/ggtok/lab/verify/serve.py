"""The child's side of the pipe: answers queries until it is closed.

A request is one pickled list of queries on standard input. Each query is answered at once by one pickled tuple, so that
after a crash the parent knows which query was being answered. An answer is `("ok", value)` or `("error", class names of
the exception from the outermost to `Exception`, message)`.

The answerer is a class with one method per kind of query, named like it. It runs in a thread with a large stack, so
that llama.cpp's `std::regex` answers texts of some length instead of overflowing, and they can be compared.
"""

from __future__ import annotations

import importlib
import os
import pickle
import sys
import threading
from contextlib import suppress
from typing import Any, BinaryIO

Query = tuple[Any, ...]
"""What to call and with what: `("encode", text, add_special, parse_special)`."""
Answer = tuple[Any, ...]
"""`("ok", value)`, `("error", class names, message)`, or from the parent's side `("died", how, message)`."""

STACK_BYTES = 256 << 20
"""`std::regex` takes about half a kilobyte of stack per character: this is enough for half a million characters."""
MEMORY_BYTES = 8 << 30
"""The most memory: an endless loop that appends ids must fail before the machine does."""


def answer(answerer: object, query: Query) -> Answer:
    """Answers one query; an exception is an answer too."""
    kind, *arguments = query
    try:
        return ("ok", getattr(answerer, kind)(*arguments))
    except Exception as error:
        return ("error", [base.__name__ for base in type(error).__mro__], str(error))


def serve(answerer: object, requests: BinaryIO, answers: BinaryIO) -> None:
    """Answers requests until the parent closes the pipe."""
    with suppress(EOFError, BrokenPipeError):
        while True:
            for query in pickle.load(requests):
                pickle.dump(answer(answerer, query), answers)
                answers.flush()


def limit_resources() -> None:
    """Limits memory, and writes no core files, if the system can do that."""
    with suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        _, most = resource.getrlimit(resource.RLIMIT_DATA)
        limit = MEMORY_BYTES if most == resource.RLIM_INFINITY else min(MEMORY_BYTES, most)
        resource.setrlimit(resource.RLIMIT_DATA, (limit, most))


def main(answerer: str, arguments: tuple[object, ...]) -> None:
    """Serves `MODULE:CLASS`. Keeps the real standard output for answers; what a library prints goes to standard error.

    The process ends without cleaning up, because libraries crash in that.
    """
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    limit_resources()
    module, _, name = answerer.partition(":")
    side = getattr(importlib.import_module(module), name)(*arguments)
    threading.stack_size(STACK_BYTES)
    thread = threading.Thread(target=serve, args=(side, sys.stdin.buffer, answers))
    thread.start()
    thread.join()
    os._exit(0)
