"""A progress bar with rate and time left, on standard error if it is a terminal."""

from __future__ import annotations

import math
import os
import sys
import time
from contextlib import closing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rich.progress import Progress

DELAY = 0.5
"""Seconds before the bar appears: shorter work needs none."""

INTERVAL = 0.1
"""Seconds between two states of the bar. It has no thread, which would slow down what it measures."""

NARROW = 60
"""Columns of a terminal below which only the numbers are shown, without the bar."""


class Bar:
    """How far some work is. Calling it reports how many more bytes are done.

    Between the calls, nothing else may write to the terminal.
    """

    def __init__(self, total: int | None, label: str) -> None:
        self.total, self.label, self.done, self.first = total, label, 0, 0
        self.is_in_bytes = True
        self.note = ""
        """What else is shown, after the rate."""
        self.began = time.monotonic()
        shows = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self._due = self.began + DELAY if shows else math.inf
        self._shown: Progress | None = None

    def __call__(self, num_bytes: int) -> None:
        """Reports that `num_bytes` more bytes are done."""
        self.done += num_bytes
        if (now := time.monotonic()) < self._due:
            return
        self._due = now + INTERVAL
        if self._shown is None:
            self._show()
        else:
            self._shown.update(self._shown.task_ids[-1], completed=self.done, numbers=self.numbers(), refresh=True)

    def phase(self, label: str, done: int, total: int | None, is_in_bytes: bool = False) -> None:
        """Reports how far a phase is. Another label starts another phase."""
        if label != self.label:
            self.close()
            self.label, self.total, self.done, self.first = label, total, done, done
            self.is_in_bytes, self.began = is_in_bytes, time.monotonic()
        self(done - self.done)

    def numbers(self) -> str:
        """The share that is done, the rate, and the time left."""
        shown = [f"{min(self.done / self.total, 1):4.0%}"] if self.total else []
        steps, seconds = self.done - self.first, time.monotonic() - self.began
        if self.is_in_bytes:
            shown.append(f"{steps / 1e6 / seconds:.1f} MB/s")
        if self.note:
            shown.append(self.note)
        if self.total and steps:
            left = int(seconds / steps * max(self.total - self.done, 0))
            shown.append(f"{left // 60}:{left % 60:02} left")
        return "  ".join(shown)

    def close(self) -> None:
        if self._shown is not None:
            self._shown.stop()
            self._shown = None

    def _show(self) -> None:
        from rich import progress as rich
        from rich.console import Console

        class Steady(Console):
            def show_cursor(self, show: bool = True) -> bool:
                """Never hides it: a process that is stopped or killed could not bring it back."""
                return False

        console = Steady(stderr=True)
        columns: list[rich.ProgressColumn] = [rich.TextColumn("{task.description}", markup=False)]
        if console.width >= NARROW:
            columns.append(rich.BarColumn(bar_width=None))
        columns.append(rich.TextColumn("{task.fields[numbers]}", markup=False))
        self._shown = rich.Progress(
            *columns, console=console, auto_refresh=False, transient=True, redirect_stdout=False, redirect_stderr=False
        )
        label = "".join(each if each.isprintable() else "\ufffd" for each in self.label)
        self._shown.add_task(label, total=self.total, completed=self.done, numbers=self.numbers())
        self._shown.start()


def progress(total: int | None, label: str) -> closing[Bar]:
    """A bar that ends at `total` bytes, or whose end is unknown. It writes nothing to a pipe or a file."""
    return closing(Bar(total, label))
