"""A walk through the units of a trace in a terminal, with keys, forward and back."""

from __future__ import annotations

import os
import re
import select
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from ...errors import GgtokError
from . import strip
from .cells import cell_len
from .explain import Trace
from .pictures import Line, picture
from .terminal import fitted, padded, styled, wrapped
from .terminal_tables import LEAST_WIDTH
from .units import MARK, Story, Unit

HELP = (
    ("→  ←   n  p", "next step, step before"),
    ("Enter", "open what is marked ▸ and walk inside; close it"),
    ("Page Down  Page Up   ]  [", "next stage, stage before"),
    ("Home  End   g  G", "first step, last step"),
    ("Space", "play, pause"),
    ("+  -", "play faster, slower"),
    ("q", "quit"),
    ("?", "this help, and back"),
)

KEYS = {
    **dict.fromkeys(("n", "j", "\x1b[C", "\x1b[B", "\x1bOC", "\x1bOB"), "next"),
    **dict.fromkeys(("p", "b", "k", "\x7f", "\x1b[D", "\x1b[A", "\x1bOD", "\x1bOA"), "before"),
    **dict.fromkeys(("\r", "\n"), "open"),
    **dict.fromkeys(("]", "\x1b[6~"), "next stage"),
    **dict.fromkeys(("[", "\x1b[5~"), "stage before"),
    **dict.fromkeys(("g", "\x1b[H", "\x1bOH", "\x1b[1~"), "first"),
    **dict.fromkeys(("G", "\x1b[F", "\x1bOF", "\x1b[4~"), "last"),
    **dict.fromkeys(("q", "Q", "\x1b"), "quit"),
    " ": "play",
    "+": "faster",
    "-": "slower",
    "?": "help",
}
"""What each key does, by what a terminal sends."""

KEY = re.compile(r"\x1b\[[0-9;]*[A-Za-z~]|\x1bO[A-Za-z]|.", re.DOTALL)
POLL = 0.25
"""Seconds between looks at the size of the terminal."""

ESCAPE = 0.05
"""Seconds within which what follows Escape belongs to the same key."""

SPEEDS = (0.5, 1.0, 2.0, 4.0)
"""Steps a second while playing."""

STRIP_LINES = 3


class Walk:
    """A reader's place in a trace: a unit, and perhaps a step inside it."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.story = Story(trace)
        self.units = self.story.units
        self.at = 0
        self.inside: int | None = None
        self.helps = False
        self.plays = False
        self.speed = SPEEDS.index(1.0)

    def __len__(self) -> int:
        return len(self.units)

    @property
    def unit(self) -> Unit:
        return self.units[self.at]

    def key(self, key: str) -> bool:
        """Does what a key says. Returns whether the walk continues."""
        action = KEYS.get(key)
        if action == "quit":
            return False
        if action == "help" or self.helps:
            self.helps = action == "help" and not self.helps
            return True
        if action == "play":
            self.plays = not self.plays
            if self.plays and self.is_last():
                self.at, self.inside = 0, None
        elif action in ("faster", "slower"):
            self.speed = min(max(self.speed + (1 if action == "faster" else -1), 0), len(SPEEDS) - 1)
        elif action is not None:
            self.plays = False
            self.move(action)
        return True

    def is_last(self) -> bool:
        """Whether no step follows."""
        return self.at == len(self) - 1 and self.inside in (None, self.unit.length - 1)

    def move(self, action: str) -> None:
        """Goes to another step, opens or closes a unit."""
        if action == "open":
            self.inside = 0 if self.inside is None and self.unit.length else None
        elif action == "next" and self.inside is not None and self.inside < self.unit.length - 1:
            self.inside += 1
        elif action == "before" and self.inside:
            self.inside -= 1
        elif action == "before" and self.inside == 0:
            self.inside = None
        elif action != "next" or not self.is_last():
            starts = [at for at, unit in enumerate(self.units) if not at or self.units[at - 1].stage != unit.stage]
            moves = {
                "next": self.at + 1,
                "before": self.at - 1,
                "next stage": next((at for at in starts if at > self.at), len(self) - 1),
                # The start of this stage, or from there the one before it.
                "stage before": next((at for at in reversed(starts) if at < self.at), 0),
                "first": 0,
                "last": len(self) - 1,
            }
            self.at, self.inside = min(max(moves[action], 0), len(self) - 1), None

    def step(self) -> tuple[str, list[Line]]:
        """What is said and drawn now."""
        told = self.story.told([self.unit])[self.unit.id]
        caption = told["whole"] if self.inside is None else told["steps"][self.inside]
        return caption, picture(told["drawing"], self.inside, self.trace.tokens)

    def known(self) -> set[int]:
        """The places of the tokens that are known after this step."""
        done = self.units[: self.at + (self.inside in (None, self.unit.length - 1))]
        return {place for unit in done for place in unit.tokens}

    def screen(self, width: int, height: int, colors: bool) -> list[str]:
        """The lines of the screen: at most `height`, each at most `width` columns wide."""
        if width < LEAST_WIDTH or height < 8:
            return wrapped("The terminal is too small.", max(width, 1))[:height]
        lines = [styled(line, "title", colors) for line in wrapped(self.story.idea, width)]
        if self.helps:
            room = max(len(keys) for keys, _ in HELP)
            rows = [f"{padded(keys, room)}  {what}" for keys, what in HELP]
            if max(map(cell_len, rows)) > width:
                rows = [f"{keys}  {what}" for keys, what in HELP]
            lines += ["", *(line for row in rows for line in wrapped(row, width))]
        else:
            caption, drawn = self.step()
            lines += [fitted(self._bar(), width), ""]
            lines += self._strip(width, colors)
            lines += ["", *_caption(caption, width, colors), ""]
            lines += _picture(drawn, width, height - len(lines) - 1, colors)
        lines = lines[: height - 1]
        return [*lines, *[""] * (height - 1 - len(lines)), self._status(width)]

    def _bar(self) -> str:
        """The stages, with how far the current one is."""
        parts = []
        for stage, title in self.story.stages.items():
            own = [at for at, unit in enumerate(self.units) if unit.stage == stage]
            if self.unit.stage != stage:
                parts.append(f" {title} ")
            elif len(own) == 1:
                parts.append(f"[{title}]")
            else:
                parts.append(f"[{title} {own.index(self.at) + 1} of {len(own)}]")
        return "──".join(parts)

    def _strip(self, width: int, colors: bool) -> list[str]:
        """The tokens that are known so far in the text: the lines around those that the step is about."""
        cut = list(strip.lines(strip.strip(self.trace, self.known()), width, colors))
        own = self.trace.tokens[self.unit.tokens.start : self.unit.tokens.stop]
        at = next((at for at, (_, end) in enumerate(cut) if own and end > own[0].start), 0)
        first = max(0, min(at - STRIP_LINES // 2, len(cut) - STRIP_LINES))
        return [line for line, _ in cut[first : first + STRIP_LINES]] or [""]

    def _status(self, width: int) -> str:
        place = f"step {self.at + 1} of {len(self)}"
        opens = ""
        if self.inside is not None:
            place += f", inside {self.inside + 1} of {self.unit.length}"
            opens = "Enter close"
        elif self.unit.length:
            opens = f"Enter ▸ {self.unit.length} step{'s' * (self.unit.length > 1)}"
        speed = SPEEDS[self.speed]
        played = f"Space pause ({speed:g} step{'s' * (speed > 1)} a second)" if self.plays else "Space play"
        shown = [f"{place} ", "→ next", *filter(None, [opens]), "PgDn stage", played, "? help", "q quit"]
        for dispensable in ("PgDn stage", played, "→ next", "q quit"):
            if cell_len("  ".join(shown)) > width:
                shown.remove(dispensable)
        return fitted("  ".join(shown), width)


def _caption(caption: str, width: int, colors: bool) -> Iterator[str]:
    """The sentences in lines, with emphasis. The marks of it take no columns."""
    is_strong = False
    for line in wrapped(caption, width):
        written = ""
        for place, part in enumerate(line.split(MARK)):
            is_strong ^= place > 0
            written += styled(part, "title", colors and is_strong) if part else ""
        yield written


def _picture(picture: list[Line], width: int, height: int, colors: bool) -> list[str]:
    """The lines of a picture that fit: around its current part."""
    currents = [
        (row, sum(cell_len(text) for text, _ in line[:place]), cell_len(line[place][0]))
        for row, line in enumerate(picture)
        for place in range(len(line))
        if line[place][1] == "current"
    ]
    row, column, size = currents[-1] if currents else (0, 0, 0)
    first = max(0, row - height + 1)
    widest = max((sum(cell_len(text) for text, _ in line) for line in picture), default=0)
    left = max(0, min(column + size // 2 - width // 2, widest - width))
    return [_cropped(line, left, width, colors) for line in picture[first : first + height]]


def _cropped(line: Line, left: int, width: int, colors: bool) -> str:
    """The columns of a line from `left` on."""
    written, column = "", 0
    for text, style in line:
        kept = ""
        for each in text:
            size = cell_len(each)
            if left <= column and column + size <= left + width:
                kept += each
            column += size
        written += styled(kept, style, colors) if kept else ""
    return written


def walk(trace: Trace, *, colors: bool) -> None:
    """Shows the steps until the reader quits.

    Raises:
        GgtokError: Standard input or output is not a terminal, or this is not Unix.
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

    state, since = Walk(trace), time.monotonic()
    with restored(begin, end):
        while True:
            size = shutil.get_terminal_size()
            lines = state.screen(size.columns, size.lines, colors)
            if drawn != [size, lines]:
                drawn[:] = [size, lines]
                draw(screen, lines)
            due = since + 1 / SPEEDS[state.speed]
            wait = min(POLL, max(due - time.monotonic(), 0)) if state.plays else POLL
            if not select.select([keys], [], [], wait)[0]:
                if state.plays and time.monotonic() >= due:
                    state.move("next")
                    state.plays, since = not state.is_last(), time.monotonic()
                continue
            since = time.monotonic()
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
