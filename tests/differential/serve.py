"""The child's side of the pipe: `python -m tests.differential.serve MODULE:CLASS` answers queries until it is closed.

A request is one pickled list of queries on standard input; each query is answered at once by one pickled pair, so that
after a crash the parent knows which query was being answered. An answer is `("ok", value)` or `("error", class names
of the exception from the outermost to `Exception`, message)`.

The answerer is a class with one method per kind of query, named like it.
"""

from __future__ import annotations

import importlib
import os
import pickle
import sys
from typing import BinaryIO

from .child import Answer, Query


def answer(answerer: object, query: Query) -> Answer:
    """Answers one query; an exception is an answer too."""
    kind, *arguments = query
    try:
        return ("ok", getattr(answerer, kind)(*arguments))
    except Exception as error:
        return ("error", [base.__name__ for base in type(error).__mro__], str(error))


def serve(answerer: object, requests: BinaryIO, answers: BinaryIO) -> None:
    """Answers requests until the parent closes the pipe."""
    while True:
        try:
            queries = pickle.load(requests)
        except EOFError:
            return
        for query in queries:
            pickle.dump(answer(answerer, query), answers)
            answers.flush()


def main() -> None:
    """Keeps the real standard output for answers; what a library prints goes to standard error."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    module, _, name = sys.argv[1].partition(":")
    serve(getattr(importlib.import_module(module), name)(), sys.stdin.buffer, answers)


if __name__ == "__main__":
    main()
