"""Two programs that render templates: llama.cpp's own Jinja engine, built from its sources, and ours.

    GGTOK_LLAMA_CPP=path/to/llama.cpp python -m tests.differential.jinja_original    # builds it, prints where it is

`Program` asks either of them. `jinja_original.cpp` describes the lines that both read and write.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import select
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .paths import ROOT

HARNESS = Path(__file__).with_suffix(".cpp")
SOURCES = [
    *(f"common/jinja/{name}.cpp" for name in ("lexer", "parser", "runtime", "string", "value")),
    "common/json.cpp",
    "common/unicode.cpp",
]
INCLUDES = ["common", "vendor", "ggml/include"]
FLAGS = ["-std=c++17", "-O2", "-DNDEBUG"]
"""llama.cpp's release builds have `NDEBUG` too. Without it, assertions refuse some syntax trees."""

Case = dict[str, Any]
"""A template under "template", what it sees under "values", and whether to report coverage under "trace"."""
Answer = dict[str, Any]
"""What one line says: "text" or "b64" and "parts", or "error", or "crash"."""


def llama_cpp() -> Path:
    """llama.cpp's tree, which `GGTOK_LLAMA_CPP` names."""
    tree = os.environ.get("GGTOK_LLAMA_CPP")
    if not tree or not (Path(tree) / "common" / "jinja").is_dir():
        raise FileNotFoundError("GGTOK_LLAMA_CPP must name a llama.cpp tree that has common/jinja")
    return Path(tree).resolve()


def build() -> Path:
    """Returns the original's program. It is compiled once for each state of the sources, under `target/`."""
    tree = llama_cpp()
    digest = hashlib.sha256(" ".join(FLAGS).encode())
    for pattern in ("jinja/*.[ch]*", "json.*", "unicode.*"):
        for path in sorted((tree / "common").glob(pattern)):
            digest.update(path.read_bytes())
    digest.update(HARNESS.read_bytes())
    program = ROOT / "target" / "jinja-original" / digest.hexdigest()[:16] / "jinja_original"
    if program.exists():
        return program
    program.parent.mkdir(parents=True, exist_ok=True)
    compiler = [os.environ.get("CXX", "c++"), *FLAGS, *(f"-I{tree / folder}" for folder in INCLUDES)]
    unfinished = program.with_suffix(f".{os.getpid()}")
    subprocess.run([*compiler, HARNESS, *(tree / source for source in SOURCES), "-o", unfinished], check=True)
    return unfinished.replace(program)


class Program:
    """A running program that answers cases, started anew when it dies or hangs."""

    def __init__(self, command: Sequence[str | os.PathLike[str]], *, timeout: float = 30.0) -> None:
        self.command = list(command)
        self.timeout = timeout
        """Seconds without any answer, after which the program counts as hung."""
        self.num_starts = 0
        self._process: subprocess.Popen[bytes] | None = None

    def ask(self, cases: Sequence[Case]) -> list[Answer]:
        """Returns the answers, in order. A case that ends the program is a "crash"."""
        lines = [json.dumps(case).encode() + b"\n" for case in cases]
        answers: list[Answer] = []
        while len(answers) < len(lines):
            is_fresh = self._process is None
            new, death = self._exchange(lines[len(answers) :])
            answers += new
            if death is not None:
                self.close()
                # Otherwise an earlier case may be the cause, and this one gets a separate program.
                if is_fresh and not new:
                    answers.append({"crash": death})
        return answers

    def close(self) -> None:
        """Ends the program."""
        if self._process:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def _exchange(self, lines: Sequence[bytes]) -> tuple[list[Answer], str | None]:
        process = self._process or self._start()
        assert process.stdin is not None
        assert process.stdout is not None
        writer = threading.Thread(target=_write, args=(process, b"".join(lines)), daemon=True)
        writer.start()
        received = bytearray()
        count = 0
        death: str | None = None
        while count < len(lines):
            readable, _, _ = select.select([process.stdout], [], [], self.timeout)
            chunk = os.read(process.stdout.fileno(), 1 << 16) if readable else b""
            if not chunk:
                death = f"exit {process.wait()}" if readable else "hang"
                process.kill()
                break
            received += chunk
            count += chunk.count(b"\n")
        writer.join()
        return [json.loads(line) for line in received.split(b"\n")[:-1]], death

    def _start(self) -> subprocess.Popen[bytes]:
        self.num_starts += 1
        self._process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        return self._process


def original() -> Program:
    """llama.cpp's engine."""
    return Program([build()])


def rendered(answer: Answer) -> bytes | None:
    """The text's bytes, or None for an error."""
    if "b64" in answer:
        return _binary(answer["b64"])
    text: str | None = answer.get("text")
    return None if text is None else text.encode("utf-8", "surrogatepass")


def parts(answer: Answer) -> list[tuple[bytes, bool]]:
    """The text's pieces, each with whether it came from the values."""
    binary = "b64" in answer
    return [(_binary(piece) if binary else piece.encode(), is_input) for piece, is_input in answer.get("parts", [])]


def _binary(encoded: str) -> bytes:
    return base64.b64decode(encoded)


def _write(process: subprocess.Popen[bytes], data: bytes) -> None:
    assert process.stdin is not None
    try:
        process.stdin.write(data)
        process.stdin.flush()
    except OSError:
        pass  # it died, which the reader notices


if __name__ == "__main__":
    sys.stdout.write(f"{build()}\n")
