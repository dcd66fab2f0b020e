"""The command line: encode, decode, count, split and chat, in their own process where streams matter."""

from __future__ import annotations

import base64
import io
import json
import os
import signal
import struct
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from conftest import BUILTIN
from ggtok import Tokenizer, _ggtok
from ggtok.cli import COMMANDS, main
from hypothesis import example, given
from hypothesis import strategies as st

TEXT = "What is LoRA?"
IDS = [9713, 5981, 6266, 78, 9612, 30]
BPE = Tokenizer.builtin("bpe")
OPENED_ONCE = mock.patch.object(Tokenizer, "builtin", {name: Tokenizer.builtin(name) for name in BUILTIN}.__getitem__)


@pytest.fixture(autouse=True)
def _no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GGTOK_MODEL", raising=False)


class Done:
    """What a command returned and wrote."""

    def __init__(self, code: int, out: bytes, err: str) -> None:
        self.code, self.out, self.err = code, out, err

    @property
    def json(self) -> list[dict[str, object]]:
        """The objects on the lines of standard output."""
        return [json.loads(line) for line in self.out.splitlines()]


def call(*arguments: str | Path, text: bytes = b"") -> Done:
    """Runs a command in this process."""
    out, err = io.BytesIO(), io.StringIO()
    stdin, stdout = io.TextIOWrapper(io.BytesIO(text)), io.TextIOWrapper(out, "utf-8", write_through=True)
    with mock.patch.object(sys, "stdin", stdin), redirect_stdout(stdout), redirect_stderr(err), OPENED_ONCE:
        code = main([str(each) for each in arguments])
    return Done(code, out.getvalue(), err.getvalue())


def bpe(command: str, *arguments: str | Path, text: bytes = b"") -> Done:
    """Runs a command with the embedded vocabulary, which must succeed and have nothing to say."""
    done = call(command, "--builtin", "bpe", *arguments, text=text)
    assert (done.code, done.err) == (0, "")
    return done


def run(*arguments: str | bytes, environment: dict[str, str], text: bytes = b"") -> Done:
    """Runs a command in its own process, which must succeed."""
    command = [sys.executable, "-m", "ggtok", *arguments]
    done = subprocess.run(command, input=text, capture_output=True, env=os.environ | environment, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return Done(0, done.stdout, done.stderr.decode())


def line(ids: list[int]) -> bytes:
    return " ".join(map(str, ids)).encode() + b"\n"


def from_json(text: object) -> bytes:
    if isinstance(text, str):
        return text.encode()
    assert isinstance(text, dict)
    return base64.b64decode(text["base64"], validate=True)


# Where the texts come from


def test_arguments_are_files(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_text(TEXT)
    assert bpe("encode", path).out == line(IDS)
    assert bpe("encode", "-p", TEXT).out == line(IDS)
    assert bpe("encode", text=TEXT.encode()).out == line(IDS)
    assert bpe("encode", "-", path, "-p", "a", text=TEXT.encode()).out == line(BPE.encode("a")) + line(IDS) * 2
    assert bpe("encode", "-p", "").out == b"\n"


def test_an_argument_that_is_not_a_file_suggests_p() -> None:
    for command in ("encode", "count", "split"):
        done = call(command, *(["-n", "5"] if command == "split" else []), TEXT)
        assert (done.code, done.out) == (2, b"")
        assert done.err == f"ggtok: error: {TEXT}: no such file (a text itself is given with -p)\n"
    assert "ids themselves are given with -p" in call("decode", "9713").err


def test_a_model(tmp_path: Path) -> None:
    path = tmp_path / "spm.gguf"
    Tokenizer.builtin("spm").to_gguf(path)
    wanted = line(Tokenizer.builtin("spm").encode(TEXT))
    assert call("encode", "-m", path, "-p", TEXT).out == wanted
    with mock.patch.dict(os.environ, GGTOK_MODEL=str(path)):
        done = call("encode", "-p", TEXT)
        assert (done.out, done.err) == (wanted, "")
        assert bpe("encode", "-p", TEXT).out == line(IDS)
    override = "tokenizer.ggml.add_bos_token=bool:false"
    assert call("encode", "-m", path, "--override-kv", override, "-p", TEXT).out == wanted.removeprefix(b"1 ")


def test_without_a_model_the_embedded_one_says_so_once(tmp_path: Path) -> None:
    done = call("encode", "-p", "a", "-p", "b")
    assert done.code == 0
    assert done.err == 'ggtok: no model given (-m MODEL or GGTOK_MODEL): using the embedded vocabulary "bpe"\n'


def test_lines(tmp_path: Path) -> None:
    texts = [b"one text", b"", b"with an end\r of no line", b"\xff", b"last"]
    data = b"one text\r\n" + b"\n".join(texts[1:])
    wanted = b"".join(line(BPE.encode(text)) for text in texts)
    assert bpe("encode", "--lines", text=data).out == wanted
    assert bpe("encode", "--lines", text=data + b"\n").out == wanted
    assert bpe("count", "--lines", text=data).out == b"".join(b"%d\n" % BPE.count(text) for text in texts)
    assert bpe("decode", "--lines", text=wanted).out == b"".join(BPE.decode_bytes(BPE.encode(t)) + b"\n" for t in texts)
    (tmp_path / "data").write_bytes(data)
    shown = bpe("count", "--lines", "--json", tmp_path / "data").json
    assert shown[3] == {"file": str(tmp_path / "data"), "line": 4, "count": BPE.count(b"\xff")}


@given(st.lists(st.binary(max_size=5).map(lambda data: data.replace(b"\n", b"").replace(b"\r", b""))), st.data())
def test_lines_however_they_arrive(texts: list[bytes], data: st.DataObject) -> None:
    whole = b"".join(text + b"\n" for text in texts)
    with mock.patch("ggtok.cli.inputs.PART", data.draw(st.integers(1, 20))):
        assert bpe("encode", "--lines", text=whole).out == b"".join(line(BPE.encode(text)) for text in texts)
        assert bpe("encode", text=whole).out == line(BPE.encode(whole))
        assert bpe("decode", text=line(BPE.encode(whole))).out == BPE.decode_bytes(BPE.encode(whole))


def test_jsonl() -> None:
    texts = ["one\ntext", "naïve \ud83d", ""]
    data = "\n\n".join(json.dumps({"n": 1, "body": text}) for text in texts).encode()
    assert bpe("encode", "--jsonl", "body", text=data).out == b"".join(line(BPE.encode(text)) for text in texts)
    assert [row["line"] for row in bpe("count", "--jsonl", "body", "--json", text=data).json] == [1, 3, 5]


# What comes out


def test_count_as_wc_does(tmp_path: Path) -> None:
    for name, size in (("a", 3), ("b\n", 2)):
        (tmp_path / name).write_text(" a" * size)
    assert bpe("count", tmp_path / "a").out == b"3\n"
    shown = bpe("count", "-p", TEXT, tmp_path / "a", tmp_path / "b\n").out.decode()
    assert shown == f" 6 '{TEXT}'\n 3 {tmp_path}/a\n 2 {tmp_path}/b\\n\n11 total\n"
    rows = bpe("count", "--json", tmp_path / "a", "-p", TEXT).json
    assert rows == [{"count": 6}, {"file": f"{tmp_path}/a", "count": 3}]


def test_special_tokens() -> None:
    assert call("encode", "--builtin", "wordpiece", "--no-special", "-p", TEXT).out.split()[0] != b"2"
    assert bpe("encode", "--parse-special", "-p", "<|im_end|>").out == b"12993\n"
    assert bpe("encode", "-p", "<|im_end|>").out != b"12993\n"
    assert bpe("decode", "-p", "12993").out == b""
    assert bpe("decode", "--unparse-special", "-p", "12993").out == b"<|im_end|>"
    spm = ["--builtin", "spm", "-p", "1 2", "--unparse-special"]
    assert call("decode", *spm).out == b"<s></s>"
    assert call("decode", *spm, "--remove-special").out == Tokenizer.builtin("spm").decode_bytes(
        [1, 2], remove_special=True, unparse_special=True
    )


@pytest.mark.parametrize("name", BUILTIN)
@given(st.one_of(st.binary(max_size=40), st.text(max_size=20).map(lambda text: text.encode())))
def test_json_is_read_back(name: str, data: bytes) -> None:
    tokenizer = Tokenizer.builtin(name)
    encoded = call("encode", "--builtin", name, "--json", text=data)
    assert encoded.out.isascii()
    [row] = encoded.json
    ids = tokenizer.encode(data)
    _, offsets = tokenizer.encode_with_offsets(data, unit="byte").tolist()
    assert encoded.out.decode() == json.dumps(row) + "\n"
    assert isinstance(row["pieces"], list)
    assert (row["file"], row["ids"]) == ("-", ids)
    assert [from_json(piece) for piece in row["pieces"]] == [tokenizer.piece(id) for id in ids]
    assert row["offsets"] == [list(span) for span in offsets]
    decoded = call("decode", "--builtin", name, text=encoded.out)
    assert (decoded.code, decoded.out) == (0, tokenizer.decode_bytes(ids))
    # llama.cpp reads a byte that is not UTF-8 as U+FFFD, and some vocabularies change spaces and letters.
    if name == "bpe" and data.decode("utf-8", "ignore").encode() == data:
        assert decoded.out == data
    [row] = call("decode", "--builtin", name, "--json", text=encoded.out).json
    assert from_json(row["text"]) == decoded.out


@given(st.lists(st.tuples(st.integers(-(1 << 31), (1 << 31) - 1), *[st.integers(-(1 << 63), (1 << 63) - 1)] * 2)))
@example([(id, id, 10 * id) for id in (0, 1, 9, 10, 99, 100, 9999, 10_000, 99_999_999, 100_000_000, -1)])
def test_json_of_numbers_of_every_length(tokens: list[tuple[int, int, int]]) -> None:
    ids, offsets = [id for id, *_ in tokens], [span for _, *span in tokens]
    packed = (
        struct.pack(f"<{len(ids)}i", *ids),
        struct.pack(f"<{2 * len(ids)}q", *(at for span in offsets for at in span)),
        bytes(4 * len(ids)),
    )
    encoding = _ggtok._encoding(*packed)
    assert _ggtok.json_items(BPE, encoding, "ids", 0, len(ids)).decode() == json.dumps(ids)[1:-1]
    assert _ggtok.json_items(BPE, encoding, "offsets", 0, len(ids)).decode() == json.dumps(offsets)[1:-1]


def test_decode_reads_numbers_as_people_write_them() -> None:
    numbers = " ".join(map(str, IDS))
    for text in (numbers, str(IDS), numbers.replace(" ", "\n\n"), f" {numbers}\t", ",".join(map(str, IDS))):
        assert bpe("decode", "-p", text).out == TEXT.encode()
        assert bpe("decode", text=text.encode()).out == TEXT.encode()
    objects = f'{{"ids": {IDS}}}\n  {{"ids":\n {IDS}}}'
    assert bpe("decode", text=objects.encode()).out == TEXT.encode() * 2
    assert bpe("decode", "--lines", text=f'{{"ids": {IDS}}}\n\n[30]\n'.encode()).out == f"{TEXT}\n\n?\n".encode()
    assert bpe("decode", text=b"").out == b""


LOCALES = {
    "utf-8": {"PYTHONUTF8": "1"},
    "latin-1": {"PYTHONIOENCODING": "latin-1", "PYTHONUTF8": "0"},
    "ascii": {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
}


@pytest.mark.parametrize("locale", LOCALES)
def test_json_in_every_locale(locale: str, tmp_path: Path) -> None:
    path = os.fsencode(tmp_path) + b"/na\xc3\xafve \xff"
    with open(path, "wb") as file:
        file.write("naïve 漢字 \0\x1b😀\n".encode())
    done = run("encode", "--builtin", "spm", "--json", path, "-p", "naïve".encode(), environment=LOCALES[locale])
    assert done.out.isascii()
    argument, row = done.json
    assert argument["ids"] == Tokenizer.builtin("spm").encode("naïve")
    assert from_json(row["file"]) == path
    assert run("decode", "--builtin", "spm", text=done.out, environment=LOCALES[locale]).out.endswith(
        "漢字 \0\x1b😀\n".encode()
    )
    shown = run("count", "--builtin", "spm", path, path, environment=LOCALES[locale]).out
    assert shown.endswith(b"total\n")


def test_split(tmp_path: Path) -> None:
    text = "Title\n\nOne sentence. And another, longer one. 漢字\n"
    path = tmp_path / "text"
    path.write_text(text, encoding="utf-8")
    chunks = BPE.split(text, 9, overlap=2)
    rows = bpe("split", "-n", "9", "--overlap", "2", "--json", path).json
    assert rows == [{"file": str(path)} | chunk._asdict() for chunk in chunks]
    parts = bpe("split", "-n", "9", "--null", path).out.split(b"\0")
    assert b"".join(parts) == text.encode()
    assert bpe("split", "-n", "9", path).out.decode().startswith("--- 9 tokens, characters 0 to 21\nTitle\n\nOne sent")
    assert len(bpe("split", "-n", "3", "--boundary", "word", "--json", "-p", "a b c d").json) == 2
    [row] = bpe("split", "-n", "9", "--jsonl", "x", "--json", text=b'{"x": "a b"}').json
    assert row == {"file": "-", "line": 1, "text": "a b", "start": 0, "end": 3, "count": 2}


def test_chat(tmp_path: Path) -> None:
    messages = [{"role": "system", "content": "S"}, {"role": "user", "content": "Hi"}]
    prompt, ids = BPE.apply_chat_template(messages), BPE.encode_chat(messages)
    path = tmp_path / "messages"
    for value in (messages, {"model": "m", "messages": messages}):
        path.write_text(json.dumps(value))
        assert bpe("chat", path).out == prompt.encode()
        assert bpe("chat", text=path.read_bytes()).out == prompt.encode()
    assert bpe("chat", "-p", "Hi", "-s", "S", "--ids").out == line(ids)
    assert bpe("chat", path, "--count").out == b"%d\n" % len(ids)
    [row] = bpe("chat", path, "--json").json
    assert (row["prompt"], row["ids"]) == (prompt, ids)
    closed = BPE.apply_chat_template(messages, add_generation_prompt=False).encode()
    assert bpe("chat", path, "--no-generation-prompt").out == closed
    answered = [*messages, {"role": "assistant", "content": "Sure"}]
    path.write_text(json.dumps(answered))
    continued = closed + b"<|im_start|>assistant\nSure"
    assert bpe("chat", path).out == bpe("chat", path, "--continue").out == continued
    assert bpe("chat", path, "--no-generation-prompt").out == continued + b"<|im_end|>\n"
    body: dict[str, Any] = {"messages": messages, "add_generation_prompt": False}
    path.write_text(json.dumps(body))
    assert bpe("chat", path).out == closed
    path.write_text(json.dumps(body | {"chat_template_kwargs": {"a": 1, "b": 1}}))
    (tmp_path / "t").write_text(
        "{{ a }}{{ b }}{{ messages | length }}{{ messages[0].content }}{{ messages[1].content }}"
    )
    assert bpe("chat", path, "--template-file", tmp_path / "t", "--set", "b=2").out == b"122SHi"
    quoted = [{"role": "user", "content": "<|im_end|>"}]
    path.write_text(json.dumps(quoted))
    assert bpe("chat", path, "--count", "--trust").out == b"%d\n" % BPE.count_messages(quoted, trust=True)
    assert bpe("chat", path, "--ids", "--trust", "--raw").out == line(BPE.encode_chat(quoted, trust=True))
    tools, template = tmp_path / "tools", tmp_path / "template"
    tools.write_text('[{"type": "function", "function": {"name": "f"}}]')
    template.write_text("{{ tools[0].function.name }} {{ on }} {{ word }}{{ messages[0].content }}")
    variables = ["--set", "on=true", "--set", "word=yes"]
    assert bpe("chat", "-p", "a", "--tools", tools, "--template-file", template, *variables).out == b"f True yesa"


def test_help_and_version() -> None:
    assert call("--version").out.startswith(b"ggtok 0.")
    assert b"Usage: ggtok" in call("--help").out
    done = call()
    assert (done.code, done.out) == (2, b"")
    assert "Usage: ggtok" in done.err
    for command in COMMANDS:
        done = call(command, "-h")
        assert (done.code, done.err) == (0, "")
        assert f"Usage: ggtok {command}" in done.out.decode()


# Streams


@pytest.mark.parametrize("arguments", [["encode"], ["encode", "--view"], ["encode", "--json"], ["split", "-n", "5"]])
def test_a_reader_that_stops(arguments: list[str], tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(b"a b c " * 200_000)
    command = [sys.executable, "-m", "ggtok", *arguments, "--builtin", "bpe", str(tmp_path / "text")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stderr
        process.stdout.read(10)
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
@pytest.mark.parametrize("arguments", [["encode", "-p", "x"], ["encode"], ["decode", "-p", "30"], ["--help"]])
def test_a_full_disk(arguments: list[str]) -> None:
    text = b"a b c " * 100_000
    with open("/dev/full", "wb") as full:
        command = [sys.executable, "-m", "ggtok", *arguments]
        done = subprocess.run(
            command, input=text, stdout=full, stderr=subprocess.PIPE, env=os.environ | {"GGTOK_MODEL": ""}, check=False
        )
    assert done.returncode == 2
    assert done.stderr.endswith(b"ggtok: error: standard output: No space left on device\n")
    assert done.stderr.count(b"\n") <= 2


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["count"], b"a b c\n"),
        (["encode"], b"a b c\n"),
        (["encode", "--lines"], b"a b c\n"),
        (["encode", "--view"], b"a b c\n"),
        (["encode", "--json"], b"a b c\n"),
        (["count", "--jsonl", "t"], b'{"t": "a b c"}\n'),
        (["decode"], b"30 31 32\n"),
        (["decode", "--lines"], b"30 31 32\n"),
        (["split", "-n", "5"], b"a b c\n"),
        (["chat"], b" "),
        (["corpus", "build", "-", "--input-format", "lines", "--format", "flat", "-o"], b"a b c\n"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_ctrl_c(arguments: list[str], text: bytes, tmp_path: Path) -> None:
    """It comes while the command works on more than a pipe holds, or waits for what follows."""
    output = [str(tmp_path)] if arguments[-1] == "-o" else []
    command = [sys.executable, "-m", "ggtok", *arguments, *output, "--builtin", "bpe"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, bufsize=0
    ) as process:
        assert process.stdin
        assert process.stderr
        process.stdin.write((text * 100_000)[:100_000])
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 130
        assert process.stderr.read() in (b"", b"ggtok: stopped with 0 shards done: the same command continues\n")


@pytest.mark.parametrize(("cause", "code"), [(KeyboardInterrupt(), 130), (ValueError(), None)])
def test_ctrl_c_while_a_name_is_set(cause: BaseException, code: int | None) -> None:
    """Python 3.11 makes a `RuntimeError` of what is raised then; others are shown."""
    error = RuntimeError("Error calling __set_name__")
    error.__cause__ = cause
    with mock.patch("ggtok.cli._run", side_effect=error):
        if code is None:
            with pytest.raises(RuntimeError, match="__set_name__"):
                call("count")
        else:
            assert call("count").code == code
