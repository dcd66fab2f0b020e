"""Makes shards in another process, if the GIL would keep threads waiting: for chats and short inputs, and
on many cores.

The two processes talk through pipes, in pickles: the parent sends the job once and then one task after the other with
its inputs, and the child answers with progress, shards, an error, or `None` when the task is done. `multiprocessing`
would import the main module of the program again, which must be written for that.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from ..errors import CorpusError
from .documents import Watch
from .manifest import Shard
from .plan import Task
from .shard import Job, make_shards


class Child:
    """A process that makes the shards of one task at a time."""

    def __init__(self, job: Job) -> None:
        code = f"import sys; sys.path[:] = {sys.path!r}; from {__name__} import main; main()"
        # Ctrl-C reaches this process alone, which ends the other.
        self._process = subprocess.Popen(
            [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        )
        self._to: Any = self._process.stdin
        self._from: Any = self._process.stdout
        self._inputs = job.inputs
        self._send(replace(job, inputs=[]))

    def _send(self, message: object) -> None:
        pickle.dump(message, self._to)
        self._to.flush()

    def make_shards(self, task: Task, watch: Watch) -> Iterator[Shard]:
        """As the function of this name. Raises `CorpusError` if the process dies."""
        try:
            self._send((task, {piece.input: self._inputs[piece.input] for piece in task.ranges}))
            while (message := pickle.load(self._from)) is not None:
                if isinstance(message, Exception):
                    raise message
                if isinstance(message, Shard):
                    yield message
                else:
                    watch(message)
        except (EOFError, BrokenPipeError) as error:
            status = self._process.wait()
            raise CorpusError(f"a worker process ended with status {status}; run the command again") from error

    def end(self) -> None:
        """Ends the process, whatever it is doing: what it was writing has no name yet."""
        self._process.kill()
        self._process.communicate()


def main() -> None:
    """What the child runs. It ends with its parent, whose end of the pipe closes then."""
    receive = sys.stdin.buffer
    with os.fdopen(os.dup(1), "wb") as send:
        os.dup2(2, 1)  # whatever prints does not disturb the answers

        def answer(message: object) -> None:
            pickle.dump(message, send)
            send.flush()

        job: Job = pickle.load(receive)
        while True:
            try:
                task, inputs = pickle.load(receive)
            except EOFError:
                return
            try:
                for shard in make_shards(replace(job, inputs=inputs), task, answer):
                    answer(shard)
            except BrokenPipeError:
                return
            except Exception as error:
                answer(error)
            else:
                answer(None)
