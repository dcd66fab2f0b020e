"""A progress bar with rate and time left, on standard error if it is a terminal."""

from __future__ import annotations

import math
import os
import sys
import time
from contextlib import closing, suppress

from ..lab.explain.cells import cell_len
from ..lab.explain.terminal import fitted
from .output import CELL, drawn, painted, to_stderr

DELAY = 0.5
"""Seconds before the bar appears: shorter work needs none."""

INTERVAL = 0.1
"""Seconds between two states of the bar. It has no thread, which would slow down what it measures."""

LINES = 30
"""Seconds between two lines of a log."""

NARROW = 60
"""Columns of a terminal that does not say how many it has."""

GAP, LEAST = "  ", 10
"""What is between the label, the bar and the numbers; the least columns that are worth a bar."""


class Bar:
    """How far some work is. Calling it reports how many more bytes are done.

    Between the calls, nothing else may write to the terminal.
    """

    def __init__(self, total: int | None, label: str, logs: bool = False) -> None:
        self.total, self.label, self.done, self.first = total, label, 0, 0
        self.is_in_bytes = True
        self.note = ""
        """What else is shown, after the rate."""
        self.began = time.monotonic()
        self._is_log = not (sys.stderr.isatty() and os.environ.get("TERM") != "dumb")
        self._due = self.began + ((LINES if logs else math.inf) if self._is_log else DELAY)
        self._is_shown = False

    def __call__(self, num_bytes: int) -> None:
        """Reports that `num_bytes` more bytes are done."""
        self.done += num_bytes
        if (now := time.monotonic()) >= self._due:
            self._due = now + (LINES if self._is_log else INTERVAL)
            if self._is_log:
                to_stderr(GAP.join((self.label, self.numbers().strip())))
            else:
                self._show()

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
        """Removes the bar."""
        if self._is_shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
            self._is_shown = False

    def _show(self) -> None:
        width, numbers = NARROW, self.numbers()
        with suppress(OSError):
            width = os.get_terminal_size(sys.stderr.fileno()).columns
        label = "".join(each if each.isprintable() else "\ufffd" for each in self.label)
        label = fitted(label, width - len(numbers) - len(GAP) - 1)
        room = width - cell_len(label) - len(numbers) - 2 * len(GAP) - 1
        parts = [label, numbers]
        if self.total and room >= LEAST:
            full = room * min(self.done, self.total) // self.total
            color = "" if os.environ.get("NO_COLOR") else "32"
            parts.insert(1, painted(CELL * full, color) + painted(CELL * (room - full), "2"))
        line = GAP.join(filter(None, parts))
        print(f"\r{drawn(line, sys.stderr)}\x1b[K", end="", file=sys.stderr, flush=True)
        self._is_shown = True


def progress(total: int | None, label: str, logs: bool = False) -> closing[Bar]:
    """A bar that ends at `total` bytes, or whose end is unknown. To a pipe or a file, it writes a line twice a minute
    if it `logs`, else nothing."""
    return closing(Bar(total, label, logs))
