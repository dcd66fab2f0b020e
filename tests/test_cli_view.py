"""The token view, and what the command line does on a terminal."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path

import pexpect  # type: ignore[import-untyped]
import pytest
from conftest import BUILTIN, TOKENIZERS, command_in
from ggtok import Tokenizer
from ggtok.cli.view import MAX_IDS, MIN_WIDTH, PLAIN, SHARED, Screen, View, units
from ggtok.lab.explain.cells import cell_len
from hypothesis import given
from hypothesis import strategies as st
from terminals import on_terminal

ENCODE = ("encode", "--builtin", "bpe")
MARK = "<|im_end|>"


@pytest.mark.parametrize(
    ("piece", "shown"),
    [
        (b"What", [("What", "")]),
        (b" is", [("·", "mark"), ("is", "")]),
        (b"\t\r\n", [("→␍↵", "mark")]),
        (b"\x1b[31m\x7f\x00", [("\\x1b", "mark"), ("[31m", ""), ("\\x7f\\x00", "mark")]),
        (b"\xf0\x9f", [("\\xf0\\x9f", "byte")]),
        (b"a\xe6\xbc", [("a", ""), ("\\xe6\\xbc", "byte")]),
        ("漢".encode(), [("漢", "")]),
        ("e\u0301".encode(), [("e\u0301", "")]),
        ("\u0301e".encode(), [("◌\u0301e", "")]),
        (" \u0301".encode(), [("·", "mark"), ("◌\u0301", "")]),
        ("👩\u200d💻".encode(), [("👩\u200d💻", "")]),
        ("👩\u200d".encode(), [("👩", ""), ("\\u200d", "mark")]),
        ("a\u200db".encode(), [("a", ""), ("\\u200d", "mark"), ("b", "")]),
        ("❤\ufe0f\ufe0f".encode(), [("❤\ufe0f\ufe0f", "")]),
        ("\ufe0f".encode(), [("\\ufe0f", "mark")]),
        ("👍🏽".encode(), [("👍🏽", "")]),
        ("🏽👍".encode(), [("🏽👍", "")]),
        ("\u202eabc\u00a0\u3000".encode(), [("\\u202e", "mark"), ("abc", ""), ("\\xa0\\u3000", "mark")]),
        (b"", []),
    ],
    ids=ascii,
)
def test_what_is_shown_for_a_piece(piece: bytes, shown: list[tuple[str, str]]) -> None:
    joined: list[tuple[str, str]] = []
    for text, _, kind in units(piece):
        if joined and joined[-1][1] == kind:
            joined[-1] = joined[-1][0] + text, kind
        else:
            joined.append((text, kind))
    assert joined == shown


@given(st.binary(max_size=30) | st.text(max_size=20).map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_a_terminal_gets_nothing_that_it_obeys(piece: bytes) -> None:
    for encoding in ("utf-8", "ascii", "latin-1"):
        for text, width, _ in units(piece, encoding):
            assert text.replace("\u200d", "").isprintable()
            assert "\u200d" not in (text[0], text[-1])
            assert text.encode(encoding)
            assert width >= max(sum(map(cell_len, text.replace("◌", ""))), 1)


def rows(tokenizer: Tokenizer, ids: list[int], width: int) -> list[str]:
    """The lines of the view without colours."""
    out = io.StringIO()
    with redirect_stdout(out):
        view = View(tokenizer, Screen(width, PLAIN))
        view.add(ids)
        view.end()
    return out.getvalue().splitlines()


@pytest.mark.parametrize("name", BUILTIN)
@given(st.text(max_size=60), st.integers(1, 60))
def test_the_view_has_every_token_in_its_width(name: str, text: str, width: int) -> None:
    tokenizer = TOKENIZERS[name]
    ids = tokenizer.encode(text)
    lines = rows(tokenizer, ids, width)
    for line in lines:
        assert sum(cell_len(char) for char in line.replace("◌", "")) <= max(width, MIN_WIDTH)
    # The units of all pieces, then the ids; a sign for each token inside a character.
    shown = "".join(lines).replace("│", "").replace(" ", "")
    pieces = b"".join(map(tokenizer.piece, ids))
    expected = "".join(unit.text for char in pieces.decode("utf-8", "surrogateescape") for unit in units(char.encode()))
    assert shown.replace(SHARED[0], "").replace("◌", "") == (
        expected.replace("│", "").replace(SHARED[0], "").replace("◌", "") + "".join(map(str, ids))
    )


def test_the_text_stays_in_one_piece() -> None:
    tokenizer = TOKENIZERS["bpe"]
    assert rows(tokenizer, tokenizer.encode("What is\nLoRA?\n\n\n漢"), 80) == [
        "What│·is│↵",
        "L│o│RA│?│↵",
        "↵",
        "↵",
        "漢",
        "9713 5981 198 43 78 9612 30 7122 3248",
    ]
    assert "".join(rows(tokenizer, tokenizer.encode("│" * 40), 10)).count("│") >= 40
    # A row ends where the next token does not fit.
    assert rows(tokenizer, tokenizer.encode("What is it"), 10) == ["What│·is│", "·it", "9713 5981", "6040"]
    assert rows(tokenizer, tokenizer.encode("What is it"), 3) == rows(tokenizer, tokenizer.encode("What is it"), 10)
    assert rows(tokenizer, tokenizer.encode("What is it"), 9)[:2] == ["What│·is│", "·it"]
    assert rows(tokenizer, tokenizer.encode("What are it"), 10)[:2] == ["What│·are│", "·it"]
    assert rows(tokenizer, [tokenizer.vocab.bos_id or 0], 10) == ["<|endoftex", "t|>", str(tokenizer.vocab.bos_id)]


def test_many_ids_are_not_all_listed() -> None:
    tokenizer = TOKENIZERS["bpe"]
    lines = rows(tokenizer, tokenizer.encode(" a" * MAX_IDS), 100)
    assert " ".join(lines).count("5884") == MAX_IDS
    assert "more" not in lines[-1]
    lines = rows(tokenizer, tokenizer.encode(" a" * (MAX_IDS + 1234)), 100)
    assert " ".join(lines).count("5884") == MAX_IDS
    assert "… and 1,234 more: --ids writes all of them" in " ".join(lines[-2:])


def test_on_a_terminal() -> None:
    shown = on_terminal(*ENCODE, "--parse-special", "-p", f"What is\x1b[31m{MARK}", width=60)
    assert shown.code == 0
    assert "\x1b[31m<" not in shown.raw
    assert re.search(r"\x1b\[38;5;16;48;5;153mWhat\x1b\[0m", shown.raw)
    special = on_terminal(*ENCODE, "--parse-special", "-p", MARK * 2)
    assert re.search(r"\x1b\[1;38;5;231;48;5;90m<\|im_end\|>\x1b\[0m\x1b\[1;38;5;231;48;5;54m<\|im_end\|>", special.raw)
    head, ids, count = shown.text.splitlines()
    assert head == r"What·is\x1b[31m<|im_end|>"
    assert ids.split()[:2] == ["9713", "5981"]
    assert count == "8 tokens"


@pytest.mark.parametrize(
    ("variables", "colors"),
    [
        ({}, True),
        ({"NO_COLOR": "1"}, False),
        ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, False),
        ({"NO_COLOR": ""}, True),
        ({"TERM": "linux"}, True),
        ({"TERM": "dumb"}, False),
    ],
    ids=str,
)
def test_colors(variables: dict[str, str], colors: bool) -> None:
    shown = on_terminal(*ENCODE, "-p", "a b", **variables)  # type: ignore[arg-type]
    assert shown.text == f"a{'' if colors else '│'}·b\n64 5920\n2 tokens\n"
    assert bool(re.search(r"\x1b\[[0-9;]*4[0-9]", shown.raw)) == colors
    assert ("\x1b" in shown.raw) == (variables.get("TERM") != "dumb")


def test_into_a_pipe(tmp_path: Path) -> None:
    command = command_in(tmp_path)

    def run(*arguments: str, **environment: str) -> bytes:
        shown: bytes = pexpect.run(
            f"sh -c '{command} encode --builtin bpe -p a {' '.join(arguments)} | cat'",
            env=os.environ | environment,
        )
        return shown

    assert run() == b"64\r\n"
    assert run(FORCE_COLOR="1", NO_COLOR="") == b"64\r\n"
    assert run("--view", TERM="dumb", FORCE_COLOR="") == b"a\r\n64\r\n1 token\r\n"
    assert b"\x1b[" in run("--view", FORCE_COLOR="1", NO_COLOR="", TERM="xterm")
    assert on_terminal(*ENCODE, "--ids", "-p", "a").raw == "64\r\n"


def test_an_ascii_terminal() -> None:
    shown = on_terminal(*ENCODE, "-p", "a ï\n", width=40, PYTHONUTF8="0", PYTHONIOENCODING="ascii")
    assert shown.text.splitlines()[0] == r"a_\xef\n"
    plain = on_terminal(*ENCODE, "-p", "a b", NO_COLOR="1", PYTHONUTF8="0", PYTHONIOENCODING="ascii")
    assert plain.text.splitlines()[0] == "a|_b"


def test_decode_and_chat_escape_what_a_terminal_obeys() -> None:
    ids = " ".join(map(str, TOKENIZERS["bpe"].encode("a\x1b[31mb\r\n\tc")))
    assert on_terminal("decode", "--builtin", "bpe", "-p", ids).raw == "a\\x1b[31mb\\r\r\n\tc\r\n"
    assert on_terminal("decode", "--builtin", "bpe", "-p", "198").raw == "\r\n"
    assert "\x1b" not in on_terminal("chat", "--builtin", "bpe", "-p", "\x1b[2J").raw


def test_a_hint_where_it_waits_for_the_keyboard() -> None:
    child = pexpect.spawn(sys.executable, ["-m", "ggtok", "count", "--builtin", "bpe"], encoding="utf-8", timeout=60)
    child.expect_exact("ggtok: reading standard input; end with Ctrl-D\r\n")
    child.sendline("a b")
    child.sendeof()
    child.expect(r"\r\n3\r\n")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0
    child = pexpect.spawn(sys.executable, ["-m", "ggtok", "encode", "--builtin", "bpe"], encoding="utf-8", timeout=60)
    child.expect_exact("end with Ctrl-D\r\n")
    child.sendintr()
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 130


def test_the_pictures_are_current_and_need_no_network() -> None:
    root = Path(__file__).parents[1]
    subprocess.run([sys.executable, root / "scripts" / "make_screenshot.py", "--check"], check=True)
    for name in ("light", "dark"):
        picture = (root / "docs" / "_static" / f"tokens-{name}.svg").read_text(encoding="utf-8")
        assert re.findall(r"https?://[^\"' ]*", picture) == ["http://www.w3.org/2000/svg"]
        assert "@font-face" not in picture


def test_the_package_does_without_rich() -> None:
    """It is half of an install. Pictures and tests still use it."""
    code = "import sys; from ggtok.cli import main; main(['encode', '--builtin', 'bpe', '--view', '-p', 'a'])"
    command = [sys.executable, "-c", f"{code}; assert not any(name.split('.')[0] == 'rich' for name in sys.modules)"]
    subprocess.run(command, check=True, capture_output=True)
    package = Path(__file__).parents[1] / "python/ggtok"
    texts = {path: path.read_text(encoding="utf-8") for path in package.rglob("*.py")}
    assert [path for path, text in texts.items() if re.search(r"^ *(from|import) rich\b", text, re.MULTILINE)] == []
