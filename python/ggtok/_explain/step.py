"""A walk through the steps of a trace in a terminal, with keys, forward and back."""

from __future__ import annotations

import os
import re
import select
import shutil
import signal
import sys
from bisect import bisect_right
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import accumulate
from types import FrameType
from typing import Any

from rich.cells import cell_len

from ..errors import GgtokError
from .sections import sections
from .tables import Row, Span
from .terminal import fitted, styled, wrapped
from .text import LEAST_WIDTH, Table, headline, shown
from .texts import to_bytes, to_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .trace import Trace

HELP = (
    ("n  space  →  ↓  Enter", "next step"),
    ("p  b  ←  ↑", "step before"),
    ("]  [", "next table, table before"),
    ("g  G", "first step, last step"),
    ("q", "quit"),
    ("?", "this help, and back"),
)

KEYS = {
    **dict.fromkeys(("n", " ", "j", "\r", "\n", "\x1b[C", "\x1b[B", "\x1bOC", "\x1bOB"), "next"),
    **dict.fromkeys(("p", "b", "k", "\x7f", "\x1b[D", "\x1b[A", "\x1bOD", "\x1bOA"), "before"),
    **dict.fromkeys(("]", "\x1b[6~"), "next table"),
    **dict.fromkeys(("[", "\x1b[5~"), "table before"),
    **dict.fromkeys(("g", "\x1b[H", "\x1bOH", "\x1b[1~"), "first"),
    **dict.fromkeys(("G", "\x1b[F", "\x1bOF", "\x1b[4~"), "last"),
    **dict.fromkeys(("q", "Q", "\x1b"), "quit"),
    "?": "help",
}
"""What each key does, by what a terminal sends."""

KEY = re.compile(r"\x1b\[[0-9;]*[A-Za-z~]|\x1bO[A-Za-z]|.", re.DOTALL)
POLL = 0.25
"""Seconds between looks at the size of the terminal."""

ESCAPE = 0.05
"""Seconds within which what follows Escape belongs to the same key."""


class Walk:
    """A reader's place in a trace. Each row of each section is a step."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.sections = sections(trace)
        self.starts = [0, *accumulate(len(section.rows) for section in self.sections)]
        self.at = 0
        self.helps = False
        self._table: tuple[int, int, Table] | None = None

    def __len__(self) -> int:
        return self.starts[-1]

    def key(self, key: str) -> bool:
        """Does what a key says. Returns whether the walk continues."""
        action = KEYS.get(key)
        if action == "quit":
            return False
        if action == "help" or self.helps:
            self.helps = action == "help" and not self.helps
            return True
        section = self._section()
        moves = {
            "next": self.at + 1,
            "before": self.at - 1,
            "next table": self.starts[section + 1],
            # The start of this table, or from there the one before it.
            "table before": self.starts[section - (self.at == self.starts[section])] if section else 0,
            "first": 0,
            "last": len(self) - 1,
        }
        if action is not None:
            self.at = min(max(moves[action], 0), len(self) - 1)
        return True

    def screen(self, width: int, height: int, colors: bool) -> list[str]:
        """The lines of the screen: at most `height`, each at most `width` columns wide."""
        if width < LEAST_WIDTH or height < 8:
            return wrapped("The terminal is too small.", max(width, 1))[:height]
        number = self._section()
        place = f"step {self.at + 1} of {len(self)}, table {number + 1} of {len(self.sections)}"
        lines = [styled(headline(self.trace, width), "title", colors)]
        keys = "n next  p before  [ ] table  q quit  ? help"
        last = place + "   " + keys if len(place) + 3 + len(keys) <= width else fitted(place + "  ? help", width)
        if self.helps:
            lines += ["", *(line for keys, what in HELP for line in wrapped(f"{keys}  {what}", width))]
        else:
            lines += [*self._text(width, colors), ""]
            lines += self._rows(number, width, height - len(lines) - 1, colors)
        lines = lines[: height - 1]
        return [*lines, *[""] * (height - 1 - len(lines)), last]

    def _section(self) -> int:
        return bisect_right(self.starts, self.at) - 1

    def _row(self) -> Row:
        number = self._section()
        return self.sections[number].rows[self.at - self.starts[number]]

    def _text(self, width: int, colors: bool) -> Iterator[str]:
        """The text around what the step is about, and a line that marks it."""
        span = self._row().span
        if span is None:
            yield ""
            yield ""
            return
        before, inside, after = self._around(span, width)
        yield before + styled(inside, "current", colors) + after
        yield " " * cell_len(before) + "^" * max(cell_len(inside), 1)

    def _around(self, span: Span, width: int) -> tuple[str, str, str]:
        text = to_bytes(self.trace.text)
        start, end = span
        inside = fitted(visible(text[start:end]), max(width // 2, 1))
        room = width - max(cell_len(inside), 1)
        # Four bytes and one column are the most and the least that a character takes, except for marks.
        before = visible(text[max(start - 4 * width, 0) : start])
        after = visible(text[end : end + 4 * width])
        while cell_len(before) > max(room // 2, room - cell_len(after)):
            before = before[1:]
        while cell_len(after) > room - cell_len(before):
            after = after[:-1]
        return before, inside, after

    def _rows(self, number: int, width: int, height: int, colors: bool) -> list[str]:
        """The section up to the current row: as many of the rows before it as there is room for."""
        section, row = self.sections[number], self._row()
        if self._table is None or self._table[:2] != (number, width):
            self._table = (number, width, Table(section, width - 2, section.rows))
        table = self._table[2]
        head = [styled("  " * (style == "header") + line, style, colors) for line, style in table.head(section.title)]
        found = [styled(f"> {line}", "current", colors) for line, _ in table.row(row)]
        place = self.at - self.starts[number]
        while place > 0:
            place -= 1
            above = [styled("  " + line, style, colors) for line, style in table.row(section.rows[place])]
            if len(head) + len(found) + len(above) > height:
                break
            found = above + found
        return [*head[: max(height - len(found), 0)], *found]


def visible(text: bytes) -> str:
    """A text on one line: what is invisible is escaped."""
    found = to_text(text)
    return shown(found)[1:-1] if isinstance(found, str) else shown(found)[2:-1]


def walk(trace: Trace, *, colors: bool) -> None:
    """Shows the steps until the reader quits.

    Raises:
        GgtokError: There is no terminal to read keys from and draw on.
        KeyboardInterrupt: Ctrl-C. The terminal is as before, then and at any other exit.
    """
    try:
        import termios
        import tty
    except ImportError:
        raise GgtokError("the walk through the steps needs a terminal of Linux, macOS or another Unix") from None
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise GgtokError("the walk through the steps needs a terminal to read keys from and draw on")
    keys, screen = sys.stdin.fileno(), sys.stdout.fileno()
    before = termios.tcgetattr(keys)

    drawn: list[object] = []

    def begin() -> None:
        drawn.clear()
        tty.setcbreak(keys)
        os.write(screen, b"\x1b[?1049h\x1b[?25l")

    def end() -> None:
        os.write(screen, b"\x1b[0m\x1b[?25h\x1b[?1049l")
        termios.tcsetattr(keys, termios.TCSADRAIN, before)

    state = Walk(trace)
    with restored(begin, end):
        while True:
            size = shutil.get_terminal_size()
            lines = state.screen(size.columns, size.lines, colors)
            if drawn != [size, lines]:
                drawn[:] = [size, lines]
                draw(screen, lines)
            if not select.select([keys], [], [], POLL)[0]:
                continue
            read = os.read(keys, 1024)
            if read.endswith(b"\x1b") and select.select([keys], [], [], ESCAPE)[0]:
                read += os.read(keys, 1024)
            if not read:
                return
            for key in KEY.findall(read.decode("utf-8", "replace")):
                if not state.key(key):
                    return


def draw(screen: int, lines: list[str]) -> None:
    """Writes all lines at once, over those before."""
    text = "\n".join(f"{line}\x1b[K" for line in lines)
    written = f"\x1b[H{text}\x1b[J".encode(sys.stdout.encoding or "utf-8", "backslashreplace")
    while written:
        written = written[os.write(screen, written) :]


@contextmanager
def restored(begin: Callable[[], None], end: Callable[[], None]) -> Iterator[None]:
    """Calls `begin` before and `end` after the body, also around a stop of the program and before it is ended."""

    def ended(number: int, _: FrameType | None) -> None:
        raise SystemExit(128 + number)

    def stopped(number: int, _: FrameType | None) -> None:
        end()
        os.kill(os.getpid(), signal.SIGSTOP)
        begin()

    handlers: dict[int, Any] = {signal.SIGTERM: ended, signal.SIGHUP: ended, signal.SIGTSTP: stopped}
    handlers = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    begin()
    try:
        yield
    finally:
        end()
        for number, handler in handlers.items():
            signal.signal(number, handler)
