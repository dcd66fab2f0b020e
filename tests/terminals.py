"""Runs `ggtok` in this process or in a pseudo-terminal of a given size."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from typing import NamedTuple

import pytest
from ggtok.cli import main

SECONDS = 60
"""How long a command may take: far more than it does."""


class Shown(NamedTuple):
    """What a command wrote to its terminal."""

    code: int
    raw: str

    @property
    def text(self) -> str:
        """Without colours, and with plain line ends."""
        return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", self.raw).replace("\r\n", "\n")


def on_terminal(
    *arguments: str, width: int = 80, height: int = 24, program: str = "ggtok", **environment: str
) -> Shown:
    """Runs a command of the module, with all three streams on a terminal."""
    outer, inner = pty.openpty()
    fcntl.ioctl(outer, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
    unset = ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "GGTOK_MODEL", "COLORTERM")
    kept = {name: value for name, value in os.environ.items() if name not in unset}
    process = subprocess.Popen(
        [sys.executable, "-m", program, *arguments],
        stdin=inner,
        stdout=inner,
        stderr=inner,
        start_new_session=True,
        env=kept | {"TERM": "xterm-256color", "PYTHONUTF8": "1"} | environment,
    )
    os.close(inner)
    shown, deadline = b"", time.monotonic() + SECONDS
    try:
        while time.monotonic() < deadline:
            if select.select([outer], [], [], 0.1)[0]:
                shown += os.read(outer, 65536)
    except OSError:  # Linux's answer when no one has the terminal open any more
        pass
    finally:
        os.close(outer)
        process.kill() if process.poll() is None and time.monotonic() >= deadline else None
    return Shown(process.wait(SECONDS), shown.decode("utf-8", "replace"))


def shown(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    """What a command writes to standard output; with the code 2, to standard error."""
    found = main(arguments)
    captured = capsys.readouterr()
    assert found == code, captured.err
    return captured.err if code == 2 else captured.out
