"""The parent's side of the pipe: a child process that answers queries, and is replaced when it dies or hangs.

The child runs with a large stack, so that llama.cpp's `std::regex` answers texts of some length instead of overflowing
and the two sides can be compared there.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

Query = tuple[Any, ...]
"""What to call and with what: `("encode", text, add_special, parse_special)`."""
Answer = tuple[Any, ...]
"""`("ok", value)`, `("error", class names, message)` or `("died", how)`."""

ROOT = Path(__file__).resolve().parents[2]
STACK_KIB = 256 * 1024
"""`std::regex` takes about half a kilobyte of stack per character: this is enough for half a million characters."""
MEMORY_KIB = 8 * 1024 * 1024
"""Limit on address space: an endless loop that appends ids must fail before the machine does."""


class Child:
    """One side of the comparison: `answerer` is the `MODULE:CLASS` that the process serves."""

    def __init__(self, answerer: str, timeout: float = 20.0) -> None:
        self.answerer = answerer
        self.timeout = timeout
        self.num_starts = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._opened: Query | None = None

    def ask(self, queries: Sequence[Query]) -> list[Answer]:
        """Returns all answers, in order. A query "died" if it kills the child, and again a fresh child by itself."""
        self.send(queries)
        return self.receive(queries)

    def send(self, queries: Sequence[Query]) -> None:
        """Starts work on the queries; `receive` must follow."""
        process = self._process or self._start()
        assert process.stdin is not None
        try:
            pickle.dump(list(queries), process.stdin)
            process.stdin.flush()
        except BrokenPipeError:
            pass  # it died between two requests: `receive` finds no answers and asks again

    def receive(self, queries: Sequence[Query]) -> list[Answer]:
        """Returns the answers to what `send` sent."""
        answers, how = self._read(queries)
        while len(answers) < len(queries):
            killer = queries[len(answers)]
            self._restart(killer)
            self.send([killer])
            alone, how_alone = self._read([killer])
            # If it answers alone, an earlier query caused the death.
            answers += alone or [("died", how_alone or how)]
            if not alone:
                self._restart(killer)
            rest = queries[len(answers) :]
            self.send(rest)
            more, how = self._read(rest)
            answers += more
        return answers

    def close(self) -> None:
        """Ends the process."""
        if self._process:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def _start(self) -> subprocess.Popen[bytes]:
        limits = f'ulimit -s {STACK_KIB} 2>/dev/null; ulimit -v {MEMORY_KIB}; exec "$@"'
        self.num_starts += 1
        self._process = subprocess.Popen(
            ["sh", "-c", limits, "sh", sys.executable, "-m", "tests.differential.serve", self.answerer],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=ROOT,
            env={**os.environ, "GGML_NO_BACKTRACE": "1"},  # an abort would start a debugger otherwise
        )
        return self._process

    def _restart(self, killer: Query) -> None:
        """Starts a fresh child and opens the same vocabulary, unless opening it kills the child."""
        self.close()
        self._start()
        if killer[0] == "open":
            self._opened = None
        if self._opened:
            self.send([self._opened])
            self._read([self._opened])

    def _read(self, queries: Sequence[Query]) -> tuple[list[Answer], str]:
        """Returns the answers that come before the child ends or the time is up, and how it ended."""
        process = self._process
        assert process is not None
        assert process.stdout is not None
        hung = threading.Event()

        def stop() -> None:
            hung.set()
            process.kill()

        watchdog = threading.Timer(self.timeout, stop)
        watchdog.start()
        answers: list[Answer] = []
        try:
            for query in queries:
                answers.append(pickle.load(process.stdout))
                if query[0] == "open":
                    self._opened = query
        except (EOFError, pickle.UnpicklingError):
            code = process.wait()
            return answers, f"no answer in {self.timeout:g} s" if hung.is_set() else _ended(code)
        finally:
            watchdog.cancel()
        return answers, ""


def _ended(code: int) -> str:
    return signal.Signals(-code).name if code < 0 else f"exit code {code}"
