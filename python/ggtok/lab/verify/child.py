"""The parent's side of the pipe: a child process that answers queries, and is replaced when it dies or hangs."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from typing import IO, Any

from . import serve
from .serve import Answer, Query

LAST_WORDS = 4096
"""Bytes at the end of what a process wrote to standard error, in which the reason of its death is."""


class Process:
    """A process that can be started again. What it writes to standard error is kept."""

    def __init__(self, command: list[str], timeout: float, **options: Any) -> None:
        self.command, self.timeout = command, timeout
        """`timeout` is in seconds, for one answer: after that the process counts as hung."""
        self._options = options
        self._running: subprocess.Popen[bytes] | None = None
        self._stderr: IO[bytes] | None = None

    def start(self) -> subprocess.Popen[bytes]:
        """Starts it, whatever it was."""
        self.close()
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process
        self._running = process = subprocess.Popen(
            self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._stderr, **self._options
        )
        return process

    def close(self) -> None:
        """Ends it."""
        if self._running:
            self._running.kill()
            self._running.communicate()
        if self._stderr:
            self._stderr.close()
        self._running = self._stderr = None

    def last_words(self) -> str:
        """The last of what it wrote to standard error."""
        assert self._stderr is not None
        size = self._stderr.seek(0, os.SEEK_END)
        self._stderr.seek(max(0, size - LAST_WORDS))
        return self._stderr.read().decode("utf-8", "replace").strip()


class Child(Process):
    """One side of the comparison: `answerer` is the `MODULE:CLASS` that the process serves, made with `arguments`."""

    def __init__(self, answerer: str, arguments: tuple[object, ...] = (), *, timeout: float = 20.0) -> None:
        # What the main module of this process is must not matter: so no `-m`, and no `multiprocessing`.
        call = f"import sys; sys.path[:] = {sys.path!r}; from {serve.__name__} import main; "
        command = [sys.executable, "-c", f"{call}main({answerer!r}, {arguments!r})"]
        # Ctrl-C reaches this process alone, which ends the other. An abort would start a debugger otherwise.
        super().__init__(command, timeout, start_new_session=True, env={**os.environ, "GGML_NO_BACKTRACE": "1"})
        self._opened: Query | None = None
        self._num_answers = 0
        """Given by this process, apart from opening a vocabulary."""

    def ask(self, queries: Sequence[Query]) -> list[Answer]:
        """Returns all answers, in order. A query "died" if it kills the child, and again a fresh child by itself."""
        self.send(queries)
        return self.receive(queries)

    def send(self, queries: Sequence[Query]) -> None:
        """Starts work on the queries; `receive` must follow."""
        process = self._running or self._started()
        assert process.stdin is not None
        try:
            pickle.dump(list(queries), process.stdin)
            process.stdin.flush()
        except BrokenPipeError:
            pass  # it died between two requests: `receive` finds no answers and asks again

    def receive(self, queries: Sequence[Query]) -> list[Answer]:
        """Returns the answers to what `send` sent."""
        answers, death = self._read(queries)
        while len(answers) < len(queries):
            killer, alone = queries[len(answers)], list[Answer]()
            if self._num_answers > 0:
                # If it answers alone, an earlier query caused the death.
                self._restart(killer)
                self.send([killer])
                alone, death_alone = self._read([killer])
                death = death_alone or death
            answers += alone or [("died", *(death or ()))]
            if not alone:
                self._restart(killer)
            rest = queries[len(answers) :]
            self.send(rest)
            more, death = self._read(rest)
            answers += more
        return answers

    def _started(self) -> subprocess.Popen[bytes]:
        self._num_answers = 0
        return self.start()

    def _restart(self, killer: Query) -> None:
        """Starts a fresh child and opens the same vocabulary, unless opening it kills the child."""
        self._started()
        if killer[0] == "open":
            self._opened = None
        if self._opened:
            self.send([self._opened])
            self._read([self._opened])

    def _read(self, queries: Sequence[Query]) -> tuple[list[Answer], tuple[str, str] | None]:
        """Returns the answers that come before the child ends or the time is up, and how it ended, with its message."""
        process = self._running
        assert process is not None
        assert process.stdout is not None
        watchdog = Watchdog(process, self.timeout)
        answers: list[Answer] = []
        try:
            for query in queries:
                answers.append(pickle.load(process.stdout))
                watchdog.postpone()
                if query[0] == "open":
                    self._opened = query
                else:
                    self._num_answers += 1
        except (EOFError, pickle.UnpicklingError):
            code = process.wait()
            how = f"no answer in {self.timeout:g} s" if watchdog.has_bitten else _ended(code)
            return answers, (how, self.last_words())
        finally:
            watchdog.end()
        return answers, None


class Watchdog:
    """Kills a process that does not answer for some seconds."""

    def __init__(self, process: subprocess.Popen[bytes], seconds: float) -> None:
        self.has_bitten = False
        self._process, self._seconds = process, seconds
        self._over = threading.Event()
        self.postpone()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def postpone(self) -> None:
        """An answer has arrived."""
        self._end = time.monotonic() + self._seconds

    def end(self) -> None:
        """All answers have come, or none will."""
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(self._end - time.monotonic()):
            if time.monotonic() >= self._end:
                self.has_bitten = True
                self._process.kill()
                return


def _ended(code: int) -> str:
    return signal.Signals(-code).name if code < 0 else f"exit code {code}"
