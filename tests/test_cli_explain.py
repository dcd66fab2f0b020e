"""`ggtok explain`: its output, and the walk through the steps in a real pseudo-terminal."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import VOCABULARIES
from ggtok import Tokenizer
from ggtok.lab.explain import strip
from ggtok.lab.explain.cells import cell_len
from ggtok.lab.explain.step import KEYS, Walk
from ggtok.lab.explain.trie import explain_trie, trie_sections
from ggtok.lab.explain.units import face
from hypothesis import given
from hypothesis import strategies as st
from terminals import shown

TEXT = "What is LoRA?"
SECONDS = 60
"""How long a screen may take to come: far more than it takes."""


@pytest.fixture(autouse=True)
def width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")


def test_short_view(capsys: pytest.CaptureFixture[str]) -> None:
    printed = shown(capsys, "explain", "--builtin", "bpe", "-p", TEXT)
    assert printed == Tokenizer.builtin("bpe").explain(TEXT).to_text(width=100) + "\n"
    lines = printed.splitlines()
    assert lines[1] == "BPE: start from bytes, and merge the neighbours whose rule was learned first"
    assert "What│␣is│␣L│o│RA│?" in lines
    assert "  W h a t → W h at → W hat → What  9713" in lines
    assert len(lines) < 12
    printed = shown(capsys, "explain", "--builtin", "wordpiece", "-p", "unaffable")
    assert "  ▁unaffable → ▁un · aff · able  4768 7489 4977" in printed.splitlines()
    printed = shown(capsys, "explain", "--builtin", "unigram", "-p", TEXT)
    assert re.search(r"^  ▁What +\u22129\.32; next best ▁ What \u221212\.73 +1573$", printed, re.M)


def test_lines_that_do_not_fit(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Ids are left out whole, signs are not cut, marks have something to stand on, and bytes stay beside the text."""
    monkeypatch.setenv("COLUMNS", "40")
    lines = shown(capsys, "explain", "--builtin", "bpe", "-p", "\u200d" * 9, "-p", "ab\xff\u0301").splitlines()
    assert "⟨200D⟩│⟨200D⟩│⟨200D⟩│⟨200D⟩│⟨200D⟩│" in lines
    assert any(line.endswith("  1134 1134 … 1134") for line in lines)
    assert "ab│C3│BF│◌\u0301" in lines
    assert face(b"ab\xff\xfec") == "ab FF FE c"
    parts = [strip.Part("", "even", 0), strip.Part("a", "odd", 1)]  # of a token without text, and of another one
    assert [*strip.lines(parts, 40, False)] == [("│a", 1)]
    lines = shown(capsys, "explain", "--builtin", "unigram", "-p", "about").splitlines()
    assert lines[-1] == "  ▁about   \u22128.08  431"
    monkeypatch.setenv("COLUMNS", "80")
    table = shown(capsys, "explain", "--trie", "un", "unique")
    assert "…" not in table
    assert re.search(r" the cell is free: the child is\n +placed\n", table)


def test_tables(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    trace = Tokenizer.builtin("spm").explain(TEXT)
    path = tmp_path / "text"
    path.write_text(TEXT)
    tables = trace.to_text("all", width=100) + "\n"
    assert shown(capsys, "explain", "--all", "--builtin", "spm", str(path)) == tables
    assert shown(capsys, "explain", "--all", "--builtin", "spm", "-p", TEXT) == tables
    assert shown(capsys, "explain", "--all", "--no-special", "--builtin", "spm", "-p", TEXT) != tables
    assert "special token" in shown(capsys, "explain", "--all", "--parse-special", "-p", "<|im_end|>")


def test_json(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    trace = Tokenizer.builtin("bpe").explain("na\u00efve")
    printed = shown(capsys, "explain", "--builtin", "bpe", "--json", "-p", "na\u00efve")
    assert printed.isascii()
    assert json.loads(printed) == json.loads(trace.to_json())
    path = tmp_path / "bytes"
    path.write_bytes(b"a\xff")
    printed = shown(capsys, "explain", "--json", "-p", TEXT, str(path))
    assert [json.loads(line)["text"] for line in printed.splitlines()] == [TEXT, {"base64": "Yf8="}]


def test_why(capsys: pytest.CaptureFixture[str]) -> None:
    why = Tokenizer.builtin("bpe").explain(TEXT).why(8, 12)
    assert shown(capsys, "explain", "--builtin", "bpe", "-p", TEXT, "--why", "8:12") == f"{why}\n"
    found = json.loads(shown(capsys, "explain", "-p", TEXT, "--why", "8:12", "--json"))
    assert found["ids"] == [6266, 78, 9612]
    assert [reason["message"] for reason in found["reasons"]] == [reason.message for reason in why.reasons]


def test_page(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    assert shown(capsys, "explain", "-p", TEXT, "--html", str(path)) == ""
    assert path.read_text(encoding="utf-8").startswith("<!")
    assert shown(capsys, "explain", "--trie", "un", "uni", "--html", str(path)) == ""
    assert "uni" in path.read_text(encoding="utf-8")


def test_compare(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    files = [str(VOCABULARIES / f"{name}.gguf") for name in ("bpe", "spm")]
    printed = shown(capsys, "explain", "-p", TEXT, "--compare", *files)
    assert printed.startswith("Same cuts, other ids. 6 and 7 tokens.\n\nbpe What│·is│·L│o│RA│?\nspm What│·is│")
    printed = shown(capsys, "explain", "--all", "-p", TEXT, "--compare", *files)
    assert "The steps first differ in the table " in printed
    assert printed.count("--- here they differ ---") >= 1
    printed = shown(capsys, "explain", "--compare", files[0], files[0], "-p", TEXT, "--all")
    assert printed.startswith("Same cuts, same ids. ")
    assert "All steps are the same." in printed
    found = json.loads(shown(capsys, "explain", "--json", "-p", TEXT, "--compare", *files))
    assert (found["a"]["algorithm"], found["b"]["algorithm"]) == ("bpe", "spm")
    assert set(found["difference"]) == {"table", "row"}
    assert found["cuts"]["num_tokens_a"] == len(found["a"]["tokens"])
    monkeypatch.setenv("COLUMNS", "40")
    assert max(map(len, shown(capsys, "explain", "-p", TEXT, "--compare", *files).splitlines())) <= 40
    monkeypatch.setenv("COLUMNS", "120")
    lines = shown(capsys, "explain", "--all", "-p", TEXT, "--compare", *files).splitlines()
    assert max(map(cell_len, lines)) <= 120
    assert {line.index("spm: ") for line in lines if line.startswith("bpe: ")} == {61}  # side by side


def test_trie(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["un", "uni", "unique", "que", "quick"]
    printed = shown(capsys, "explain", "-p", "union", "--trie", *words)
    for title in (
        "Insertion of 'quick'",
        "The array after 'un'",
        "Walk of 'unique'",
        "Packed as an XCDA",
        "Walk of 'union'",
    ):
        assert title in printed
    rows = {
        " ".join(line.split()) for line in shown(capsys, "explain", "-p", "hero", "--trie", "he", "hers").splitlines()
    }
    assert rows >= {
        *("1 68 h 3 1 4 1 goes on", "5 6f o 1 ends: CHECK names another node"),
        *("68 h 105 107 68 h no goes on", "65 e 103 100 65 e yes 0 goes on", "6f o 107 0 00 no ends: LCHECK differs"),
    }
    [packed] = [each for each in trie_sections(explain_trie(words)[0]) if each.title == "Packed as an XCDA"]
    assert {(row.cells[1], row.mark) for row in packed.rows} == {("root", ""), ("node", ""), ("value", "won")}
    found = json.loads(shown(capsys, "explain", "--json", "-p", "union", "--trie", *words))
    assert [lookup["value"] for lookup in found["lookups"]] == [0, 1, 2, 3, 4, None]


# The walk


TRACE = Tokenizer.builtin("bpe").explain("na\u00efve \u4f60\u597d\u0301\x07 LoRA")


@given(
    keys=st.lists(st.sampled_from([*KEYS, "x", "\x1b[Z"]), max_size=30),
    width=st.integers(1, 120),
    height=st.integers(1, 40),
)
def test_a_screen_fits(keys: list[str], width: int, height: int) -> None:
    walk = Walk(TRACE)
    for key in keys:
        if not walk.key(key):
            assert KEYS[key] == "quit"
            break
        assert 0 <= walk.at < len(walk)
        lines = walk.screen(width, height, False)
        assert len(lines) <= height
        assert all(cell_len(line) <= width and line.isprintable() for line in lines)


def test_moves() -> None:
    walk = Walk(Tokenizer.builtin("spm").explain(TEXT))
    stages = [unit.stage for unit in walk.units]
    assert stages == ["normalize", "merge", "merge", "merge", "tokens"]

    def press(keys: str) -> tuple[int, int | None]:
        assert all(map(walk.key, keys))
        return walk.at, walk.inside

    assert press("p") == (0, None)
    assert press("\r") == (0, None)  # nothing to open
    assert press("n") == (1, None)
    assert press("\r") == (1, 0)
    assert press("nn") == (1, 2)
    assert press("p") == (1, 1)
    assert press("\r") == (1, None)
    assert press("\rp") == (1, None)
    assert press("\r" + "n" * walk.unit.length) == (2, None)
    assert press("]") == (4, None)
    assert press("]n") == (4, None)
    assert press("[") == (1, None)
    assert press("n[") == (1, None)
    assert press("G") == (4, None)
    assert press("g") == (0, None)
    press("?")
    assert any("step before" in line for line in walk.screen(80, 24, False))
    assert press("n") == (0, None)
    assert not walk.key("q")


def test_playing() -> None:
    walk = Walk(Tokenizer.builtin("spm").explain(TEXT))
    walk.key(" ")
    assert walk.plays
    while not walk.is_last():
        walk.move("next")
    walk.key("n")
    assert not walk.plays
    for _ in range(9):
        walk.key("+")
    walk.key(" ")
    assert (walk.at, walk.plays) == (0, True)
    assert "4 steps a second" in walk.screen(120, 24, False)[-1]


def test_the_answer_comes_at_the_end() -> None:
    """Before the first merge nothing is known; a piece's tokens are known after it."""
    walk = Walk(Tokenizer.builtin("bpe").explain(TEXT))
    assert not walk.known()
    walk.key("n")
    assert walk.known() == {0}
    walk.key("\r")
    assert not walk.known()
    walk.key("G")
    assert walk.known() == {*range(6)}


def test_what_is_said() -> None:
    walk = Walk(Tokenizer.builtin("spm").explain("World"))
    walk.key("n")
    walk.key("\r")
    walk.key("n")
    lines = walk.screen(100, 24, False)
    assert lines[7:9] == ["▁ W o r l d ", "▁ W or  l d "]
    screen = " ".join(lines)
    assert "o + r → or: 3 pairs could merge; this one has the best score (\u221211)." in screen
    assert " The next best was ld (\u2212179)." in screen


def test_a_word_that_is_listed_and_looked_up_is_walked_once(capsys: pytest.CaptureFixture[str]) -> None:
    once, twice = ["--trie", "un", "unit", "-p", "x"], ["--trie", "un", "unit", "-p", "un", "-p", "x"]
    assert shown(capsys, "explain", *once, "--json") == shown(capsys, "explain", *twice, "--json")
    assert len(re.findall(r"(?i)^.*look-?up of 'un'.*$", shown(capsys, "explain", *twice), re.M)) <= 1


class Terminal:
    """A pseudo-terminal with `ggtok explain --step` in it."""

    START = """
import fcntl, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
from ggtok.cli import main
sys.exit(main())
"""

    def __init__(self, *arguments: str, width: int = 80, height: int = 24, **environment: str) -> None:
        self.keys, inner = pty.openpty()
        self.resize(width, height)
        self.before = termios.tcgetattr(inner)
        kept = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")}
        self.process = subprocess.Popen(
            [sys.executable, "-c", self.START, "explain", "--step", *arguments],
            stdin=inner,
            stdout=inner,
            stderr=inner,
            start_new_session=True,
            env=kept | {"TERM": "xterm", "PYTHONUTF8": "1"} | environment,
        )
        self.inner = inner
        self.read = self.raw = ""

    def resize(self, width: int, height: int) -> None:
        fcntl.ioctl(self.keys, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))

    def press(self, keys: str) -> None:
        os.write(self.keys, keys.encode())

    def until(self, text: str) -> list[str]:
        """The lines of the first complete screen that has a text."""
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            if select.select([self.keys], [], [], 0.1)[0]:
                self.read += os.read(self.keys, 65536).decode("utf-8", "replace")
            for screen in self.read.split("\x1b[H")[1:]:
                plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", screen)
                if "\x1b[J" in screen and text in plain:
                    self.raw, self.read = self.read, ""
                    return plain.split("\r\n")
        raise AssertionError(f"no screen with {text!r}: {self.read!r}")

    def end(self) -> tuple[int, str]:
        """The exit code and what was written last. The terminal is as it was."""
        code = self.process.wait(SECONDS)
        while select.select([self.keys], [], [], 0.1)[0]:
            self.read += os.read(self.keys, 65536).decode("utf-8", "replace")
        assert termios.tcgetattr(self.inner) == self.before
        assert self.read.rstrip().endswith("\x1b[?25h\x1b[?1049l")
        return code, self.read


@pytest.fixture
def terminals() -> Iterator[list[Terminal]]:
    started: list[Terminal] = []
    yield started
    for each in started:
        each.process.kill()
        each.process.wait()
        os.close(each.keys)
        os.close(each.inner)


def test_walk_in_a_terminal(terminals: list[Terminal]) -> None:
    terminals.append(terminal := Terminal("--builtin", "spm", "-p", "What is \u6f22\u5b57?"))
    terminal.until("step 1 of 5")
    terminal.press("n\x1b[C\r")
    lines = terminal.until("step 3 of 5, inside 1 of")
    assert lines[1].strip() == "normalize ──[merge 2 of 3]── tokens"
    assert lines[3] == "What␣is␣\u6f22\u5b57?"
    terminal.press("?")
    terminal.until("first step, last step")
    terminal.press("?g ")
    terminal.until("Space pause (1 step a second)")
    terminal.press("++")
    lines = terminal.until("step 5 of 5")
    assert any(line.endswith("?") for line in lines[3:])
    terminal.resize(40, 12)
    lines = terminal.until("? help")
    assert len(lines) == 12
    assert max(map(cell_len, lines)) <= 40
    terminal.press("q")
    assert terminal.end()[0] == 0


@pytest.mark.parametrize(
    ("number", "code"), [(None, 130), (signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_any_exit_restores_the_terminal(terminals: list[Terminal], number: signal.Signals | None, code: int) -> None:
    terminals.append(terminal := Terminal("-p", TEXT))
    terminal.until("step 1 of")
    if number is None:
        terminal.press("\x03")
    else:
        terminal.process.send_signal(number)
    assert terminal.end()[0] == code


def test_a_stopped_walk_continues(terminals: list[Terminal]) -> None:
    terminals.append(terminal := Terminal("-p", TEXT))
    terminal.until("step 1 of")
    terminal.process.send_signal(signal.SIGTSTP)
    assert os.WIFSTOPPED(os.waitpid(terminal.process.pid, os.WUNTRACED)[1])
    terminal.process.send_signal(signal.SIGCONT)
    terminal.until("step 1 of")
    terminal.press("n")
    terminal.until("step 2 of")
    terminal.press("q")
    assert terminal.end()[0] == 0


def test_colors(terminals: list[Terminal]) -> None:
    terminals.append(plain := Terminal("-p", TEXT, NO_COLOR="1"))
    plain.until("step 1 of")
    assert re.search(r"\x1b\[[0-9;]+m", plain.raw) is None
    terminals.append(colored := Terminal("-p", TEXT))
    colored.until("step 1 of")
    assert "\x1b[1m" in colored.raw
