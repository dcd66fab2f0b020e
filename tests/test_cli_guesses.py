"""The command line does not guess: it says which input is which, who is to blame, and which vocabulary answered."""

from __future__ import annotations

import json
import os
import resource
import shlex
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import ggtok
import pytest
from ggtok import Tokenizer
from test_cli import Done, call, line

BPE = Tokenizer.builtin("bpe")
TEXT = "What is LoRA?"
IDS = BPE.encode(TEXT)
MARK = b"  # embedded vocabulary bpe\n"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.gguf"
    Tokenizer.builtin("spm").to_gguf(path)
    return path


@pytest.mark.parametrize("command", ["count", "encode", "split", "explain"])
def test_a_gguf_file_is_not_read_as_text(command: str, model: Path) -> None:
    arguments = [command, "--builtin", "bpe", *(["-n", "5"] if command == "split" else [])]
    done = call(*arguments, model)
    assert (done.code, done.out) == (2, b"")
    assert done.err == f"ggtok: error: {model} is a GGUF file, not a text: -m {model} names a model\n"
    done = call(*arguments, text=b"GGUF\0\0\0\3")
    assert done.err == "ggtok: error: standard input is a GGUF file, not a text: -m MODEL names a model\n"


def test_a_text_about_gguf_is_a_text(tmp_path: Path) -> None:
    """Even if one of its parts begins like a file."""
    assert call("count", "--builtin", "bpe", text=b"GGUF is a format").code == 0
    path = tmp_path / "text"
    path.write_bytes(b"x" * (1 << 20) + b"GGUF\3\0\0\0")
    assert call("count", "--builtin", "bpe", path).code == 0
    assert call("count", "--builtin", "bpe", "-p", "GGUF\3\1").code == 0


def test_the_embedded_vocabulary_is_marked_in_every_output() -> None:
    ids = " ".join(map(str, IDS)).encode()
    assert call("encode", "-p", TEXT).out == ids + MARK
    assert call("encode", "--lines", text=TEXT.encode()).out == ids + MARK
    assert call("encode", "--view", "-p", TEXT).out.endswith(b"6 tokens" + MARK)
    assert call("explain", "-p", TEXT).out.endswith(MARK.strip() + b"\n")
    for command in ("encode", "explain", "decode"):
        row = call(command, "--json", "-p", "9713" if command == "decode" else TEXT).json[0]
        assert row["model"] == "embedded vocabulary bpe"
        assert "model" not in call(command, "--builtin", "bpe", "--json", "-p", "1").json[0]
    assert call("count", "--builtin", "bpe", "-p", TEXT).out == b"6\n"


@pytest.mark.parametrize(
    "arguments",
    [
        *(["count", "-p", "a"], ["count", "--json"], ["split", "-n", "9", "-p", "a"], ["chat", "-p", "a"], ["chat"]),
        *(["bench"], ["search", "a"], ["evaluate", __file__], ["inspect"]),
        ["corpus", "build", __file__, "-o", "out", "--format", "flat"],
    ],
)
def test_numbers_need_a_model(arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is written, and standard input is not read."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GGTOK_MODEL", raising=False)
    monkeypatch.setattr("ggtok.stores.find.names_from", lambda start: [f"ollama:m{n}" for n in range(7)])
    done = call(*arguments, text=b"[")
    assert (done.code, done.out) == (2, b"")
    here = "ollama:m0, ollama:m1, ollama:m2, ollama:m3, ollama:m4 and 2 more (see ggtok models)"
    assert done.err.startswith("ggtok: error: no model given: -m MODEL (or GGTOK_MODEL) names one")
    assert here in done.err
    assert "--builtin" in done.err
    assert not os.listdir()


def test_count_names_what_is_missing_and_goes_on(tmp_path: Path) -> None:
    a, b, nosuch = (str(tmp_path / name) for name in ("a", "b", "nosuch"))
    for path in (a, b):
        Path(path).write_text(TEXT)
    done = call("count", "--builtin", "bpe", a, nosuch, b)
    assert (done.code, done.err) == (1, f"ggtok: error: {nosuch}: No such file or directory\n")
    assert [row.split()[0] for row in done.out.splitlines()] == [b"6", b"6", b"12"]
    assert call("count", "--builtin", "bpe", nosuch).code == 2
    assert call("encode", "--builtin", "bpe", a, nosuch).out == b""


def test_chat_does_not_guess(tmp_path: Path) -> None:
    (tmp_path / "t").write_text("{{ messages[0].content }}")
    chat = ["chat", "--builtin", "bpe", "--template-file", str(tmp_path / "t")]
    for options in (("--count", "--ids"), ("--view", "--json"), ("--ids", "--json")):
        done = call(*chat, "-p", "a", *options)
        assert (done.code, done.out) == (2, b"")
        assert "--ids, --count, --view and --json: give only one" in done.err
    assert call(*chat, "-p", os.fsdecode(b"a\xff")).err.startswith("ggtok: error: -p: not UTF-8 at byte 1")
    assert "--system: not UTF-8 at byte 0" in call(*chat, "-p", "a", "-s", os.fsdecode(b"\xff")).err
    (tmp_path / "chat").write_text('[{"role": "developer", "content": [{"type": "text", "text": "b"}]}]')
    assert call(*chat, tmp_path / "chat").out == b"b"
    assert call(*chat, tmp_path / "chat", "--raw").out == b"[{'type': 'text', 'text': 'b'}]"


def test_marked_ids_are_decoded() -> None:
    marked = call("encode", "-p", TEXT).out
    assert call("decode", text=marked).out == TEXT.encode()
    assert call("decode", "--lines", text=marked * 2).out == f"{TEXT}\n{TEXT}\n".encode()
    assert call("decode", text=b"9713 # 5981\n5981").out == b"What is"


def test_help_says_how_to_name_a_model() -> None:
    assert "-m or GGTOK_MODEL" in " ".join(call("--help").out.decode().split("Options:")[0].split())


def test_count_continues_after_an_error(tmp_path: Path, model: Path) -> None:
    (tmp_path / "a").write_text(" a" * 3)
    (tmp_path / "folder").mkdir()
    (tmp_path / "z").write_text(" a" * 2)
    done = call("count", "--builtin", "bpe", *sorted(tmp_path.iterdir()))
    counts = [row.split() for row in done.out.decode().splitlines()]
    assert (done.code, counts) == (1, [["3", f"{tmp_path}/a"], ["2", f"{tmp_path}/z"], ["5", "total"]])
    assert done.err.splitlines() == [
        f"ggtok: error: {tmp_path}/folder: Is a directory",
        f"ggtok: error: {model} is a GGUF file, not a text: -m {model} names a model",
    ]
    done = call("count", "--builtin", "bpe", "--json", tmp_path / "folder", tmp_path / "z")
    assert (done.code, done.json) == (1, [{"file": f"{tmp_path}/z", "count": 2}])
    assert call("count", "--builtin", "bpe", "--lines", tmp_path / "folder", tmp_path / "z").code == 1
    assert call("count", "--builtin", "bpe", tmp_path / "folder").code == 2


@pytest.mark.parametrize("command", ["count", "encode", "decode", "split -n 5", "chat", "explain", "bench"])
@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- 2>&-"])
def test_closed_streams(command: str, closed: str) -> None:
    done = subprocess.run(
        f"{shlex.quote(sys.executable)} -m ggtok {command} --builtin bpe {closed}",
        shell=True,
        capture_output=True,
        input=b"[]",
        timeout=60,
    )
    assert b"Traceback" not in done.stderr + done.stdout
    assert done.returncode in (0, 2)
    if closed == "<&-":
        assert done.stderr == b"ggtok: error: standard input is closed: name a file, or give a text with -p\n"
    if closed == ">&-" and command == "count":
        assert b"standard output is closed" in done.stderr


def test_who_is_to_blame(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: Path) -> None:
    monkeypatch.setenv("GGTOK_MODEL", "./nope")
    assert call("count", "-p", "a").err == "ggtok: error: GGTOK_MODEL: ./nope: No such file or directory\n"
    assert call("count", "-m", "nope.gguf", "-p", "a").err == "ggtok: error: nope.gguf: No such file or directory\n"
    assert call("count", "-m", "nope", "-p", "a").err.startswith("ggtok: error: no such file 'nope', and")
    monkeypatch.setenv("GGTOK_MODEL", "nope")
    assert call("count", "-p", "a").err.startswith("ggtok: error: GGTOK_MODEL: no such file 'nope', and")
    assert call("count", "-m", str(tmp_path), "-p", "a").err == f"ggtok: error: {tmp_path}: Is a directory\n"
    with pytest.raises(OSError, match="File too large") as caught:
        _train_with_small_files()
    assert os.path.basename(caught.value.filename).startswith("ggtok-")
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setattr("tempfile._candidate_tempdir_list", lambda: [])
    text = tmp_path / "text"
    text.write_text("a b " * 100)
    output = str(tmp_path / "out.gguf")
    done = call("train", text, "-o", output, "--vocab-size", "258", "--memory", "1")
    assert done.err.startswith("ggtok: error: No usable temporary directory")


def _train_with_small_files() -> None:
    """Trains where no file can be written to, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        words = " ".join(f"{number:x}" for number in range(5000))
        ggtok.train([words], kind="bpe", vocab_size=258, memory=1000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.skipif(not os.path.exists("/proc/self/mem"), reason="needs a file that cannot be read")
def test_a_model_that_cannot_be_read() -> None:
    done = call("count", "-m", "/proc/self/mem", "-p", "a")
    assert (done.code, done.err) == (2, "ggtok: error: /proc/self/mem: Input/output error\n")


def test_tokens_are_found_as_the_file_spells_them() -> None:
    for query in ("\u0120the", "the", "\u0120th"):
        found = call("search", "--builtin", "bpe", "--json", "--prefix", query)
        assert BPE.vocab.id("\u0120the") in [row["id"] for row in found.json] or query == "the"
        assert found.code == 0
    assert call("search", "--builtin", "spm", "\u2581the").code == 0
    assert call("search", "--builtin", "bpe", "\u0120\u0120zzz").code == 1


@pytest.mark.parametrize(("name", "meant"), [("cuont", "count"), ("decod", "decode"), ("explan", "explain")])
def test_a_misspelt_command_is_named(name: str, meant: str) -> None:
    done = call(name, "-p", "a")
    assert (done.code, done.out) == (2, b"")
    assert done.err == f"ggtok: error: no such command {name!r}: did you mean ggtok {meant}?\n"
    assert "the commands are encode, decode" in call("xyzzy").err


@pytest.mark.parametrize("delay", [0.03, 0.05, 0.07, 0.09, 0.12, 0.16, 0.2])
def test_ctrl_c_while_it_starts(delay: float) -> None:
    """Python's own start cannot be helped: a traceback may name its files, but none of ours. The text does not end."""
    command = [sys.executable, "-m", "ggtok", "count", "--builtin", "bpe"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    time.sleep(delay)
    while process.poll() is None:  # once, unless it comes in a callback of Python's import, which loses it
        process.send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            process.wait(10)
    _, error = process.communicate()
    assert process.returncode != 0
    assert b"ggtok" not in error


def test_json_of_a_long_text_is_what_it_was(tmp_path: Path) -> None:
    """It is written in slices."""
    text = "naïve \ud83d 中文 words " * 2000
    path = tmp_path / "text"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    (row,) = call("encode", "--builtin", "bpe", "--json", path).json
    encoding = BPE.encode_with_offsets(path.read_bytes(), unit="byte")
    ids, offsets = encoding.tolist()
    assert (row["ids"], row["offsets"]) == (ids, [list(pair) for pair in offsets])
    assert isinstance(row["pieces"], list)
    assert len(row["pieces"]) == len(ids)
    empty: Done = call("encode", "--builtin", "bpe", "--json", "-p", "")
    assert json.loads(empty.out) == {"ids": [], "pieces": [], "offsets": []}
    assert line(ids) == call("encode", "--builtin", "bpe", path).out
