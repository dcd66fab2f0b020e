"""The command line, in its own process where streams matter."""

from __future__ import annotations

import base64
import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest
from ggtok import Tokenizer
from ggtok._cli import main

TEXT = "What is LoRA?"
LLAMA_BPE = [128000, 3923, 374, 6621, 5726, 30]


def run(
    *arguments: str | bytes | Path, text: bytes = b"", code: int = 0, environment: dict[str, str] | None = None
) -> tuple[bytes, str]:
    """Standard output and standard error of one command."""
    command = [sys.executable, "-m", "ggtok", *arguments]
    environment = os.environ | (environment or {})
    done = subprocess.run(command, input=text, capture_output=True, env=environment, check=False)
    assert done.returncode == code, done.stderr.decode()
    return done.stdout, done.stderr.decode()


def on_terminal(*arguments: str) -> str:
    reading, writing = pty.openpty()
    subprocess.run([sys.executable, "-m", "ggtok", *arguments], stdout=writing, stdin=subprocess.DEVNULL, check=True)
    os.close(writing)
    shown = b""
    try:
        while chunk := os.read(reading, 4096):
            shown += chunk
    except OSError:  # Linux's answer when the writer has closed the terminal
        pass
    os.close(reading)
    return shown.decode().replace("\r\n", "\n")


@pytest.fixture(scope="module")
def model(shared: Path) -> str:
    return str(shared / "vocabs" / "llama-bpe.gguf")


def test_the_ways_in(model: str, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    line = " ".join(map(str, LLAMA_BPE)).encode() + b"\n"
    path = tmp_path / "text"
    path.write_text(TEXT)
    assert main(["encode", "-m", model, TEXT, "-f", str(path)]) == 0
    assert capsysbinary.readouterr().out == line * 2
    assert run("encode", "-m", model, text=TEXT.encode())[0] == line
    assert run("encode", "-m", model, TEXT, "-f", "-", text=TEXT.encode())[0] == line * 2
    assert run("count", "-m", model, text=TEXT.encode())[0] == b"6\n"
    assert run("count", "-m", model, TEXT, "")[0] == b"6\n1\n"


def test_encode_options(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    def encode(*options: str) -> str:
        assert main(["encode", "-m", model, *options]) == 0
        return capsys.readouterr().out.strip()

    bare = " ".join(map(str, LLAMA_BPE[1:]))
    assert encode("--no-special", TEXT) == bare
    assert encode("--override-kv", "tokenizer.ggml.add_bos_token=bool:false", TEXT) == bare
    assert encode("--no-special", "--parse-special", "<|end_of_text|>") == "128001"
    assert encode("--no-special", "<|end_of_text|>") != "128001"
    pieces = ["<|begin_of_text|>", "What", " is", " Lo", "RA", "?"]
    assert json.loads(encode("--json", TEXT)) == {"ids": LLAMA_BPE, "pieces": pieces}


def test_several_overrides(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    several = 'tokenizer.ggml.add_bos_token=bool:false,"tokenizer.ggml.eos_token_id=int:7"'
    pre = "tokenizer.ggml.pre=str:qwen2"
    assert main(["inspect", model, "--json", "--override-kv", several, "--override-kv", pre]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["add_bos"], shown["special"]["eos"]["id"], shown["pre"]) == (False, 7, "qwen2")


def test_decode(model: str) -> None:
    words = [str(id) for id in LLAMA_BPE]
    assert run("decode", "-m", model, *words[1:])[0] == TEXT.encode()
    assert run("decode", "-m", model, text=str(LLAMA_BPE[1:]).encode())[0] == TEXT.encode()
    assert run("decode", "-m", model, "--unparse-special", *words)[0] == b"<|begin_of_text|>" + TEXT.encode()
    assert json.loads(run("decode", "-m", model, "--json", *words[1:])[0]) == {"text": TEXT}


def test_any_bytes(model: str, tmp_path: Path) -> None:
    tokenizer = Tokenizer.from_gguf(model)
    for data in ("Å\n漢字\0 \r\n".encode(), b"a\xff\xfe\x00\xf0\x9f"):
        (tmp_path / "data").write_bytes(data)
        ids, _ = run("encode", "-m", model, text=data)
        assert [int(id) for id in ids.split()] == tokenizer.encode(data)
        assert run("encode", "-m", model, "-f", tmp_path / "data")[0] == ids
        assert run("decode", "-m", model, text=ids)[0] == tokenizer.decode_bytes(tokenizer.encode(data))
    ids, _ = run("encode", b"\xff\xfe")
    assert [int(id) for id in ids.split()] == Tokenizer.builtin("bpe").encode(b"\xff\xfe")


LOCALES = {
    "utf-8": {"PYTHONUTF8": "1"},
    "latin-1": {"PYTHONIOENCODING": "latin-1", "PYTHONUTF8": "0"},
    "ascii": {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    "ascii output": {"PYTHONIOENCODING": "ascii"},
}


def from_json(piece: str | dict[str, str]) -> bytes:
    return piece.encode() if isinstance(piece, str) else base64.b64decode(piece["base64"], validate=True)


@pytest.mark.parametrize("locale", LOCALES)
def test_json_keeps_every_byte_in_every_locale(locale: str) -> None:
    tokenizer = Tokenizer.builtin("bpe")
    for text in (
        "naïve 漢字 😀\n".encode(),
        "ǁ\ud800".encode("utf-8", "surrogatepass"),
        "漢".encode()[:2] + b"\xff\x00\x80b",
    ):
        shown = run("encode", "--json", text=text, environment=LOCALES[locale])[0]
        assert shown.isascii()
        encoded = json.loads(shown)
        assert encoded["ids"] == tokenizer.encode(text)
        assert [from_json(piece) for piece in encoded["pieces"]] == [tokenizer.piece(id) for id in encoded["ids"]]
        assert any(isinstance(piece, dict) for piece in encoded["pieces"])
        ids = [str(id) for id in encoded["ids"]]
        shown = run("decode", "--json", *ids, environment=LOCALES[locale])[0]
        assert shown.isascii()
        assert from_json(json.loads(shown)["text"]) == tokenizer.decode_bytes(encoded["ids"])


@pytest.mark.parametrize("locale", LOCALES)
def test_json_of_an_argument(locale: str) -> None:
    shown = run("encode", "--json", "naïve".encode(), environment=LOCALES[locale])[0]
    assert json.loads(shown) == {"ids": [6450, 304, 5991], "pieces": ["na", "ï", "ve"]}
    shown = run("inspect", "--builtin", "spm", "--json", environment=LOCALES[locale])[0]
    assert json.loads(shown)["special"]["bos"] == {"id": 1, "piece": "<s>"}


def test_an_override_that_is_not_utf8(model: str) -> None:
    override = b"tokenizer.ggml.pre=str:llama-\xff"
    _, error = run("encode", "-m", model, "--override-kv", override, "a", code=2)
    assert 'unknown pre-tokenizer "llama-\\xff"' in error


@pytest.mark.parametrize("name", ["spm", "bpe", "wordpiece", "unigram"])
def test_builtin_vocabularies(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    tokenizer = Tokenizer.builtin(name)
    assert main(["encode", "--builtin", name, TEXT]) == 0
    assert capsys.readouterr().out.split() == [str(id) for id in tokenizer.encode(TEXT)]
    assert main(["inspect", "--builtin", name, "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["size"] == len(tokenizer.vocab)
    assert shown["repairs"] == list(tokenizer.repairs)


def test_on_a_terminal(model: str) -> None:
    assert on_terminal("encode", "-m", model, "--no-special", TEXT + "\n").splitlines() == [
        "    3923  'What'",
        "     374  ' is'",
        "    6621  ' Lo'",
        "    5726  'RA'",
        "    5380  '?\\n'",
    ]
    assert on_terminal("count", "-m", model, TEXT) == "6\n"
    assert on_terminal("count", "-m", model, TEXT, "a") == "       6  'What is LoRA?'\n       2  'a'\n"
    assert on_terminal("decode", "-m", model, *map(str, LLAMA_BPE[1:])) == TEXT + "\n"
    shown = on_terminal("inspect", model)
    for row in ("kind +bpe", "pre-tokenizer +llama-bpe", "tokens +128256", r"bos token +128000 +'<\|begin_of_text\|>'"):
        assert re.search(f"^{row}$", shown, re.MULTILINE), shown


def test_a_reader_that_stops(model: str) -> None:
    command = [sys.executable, "-m", "ggtok", "encode", "-m", model]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        process.stdout.close()
        process.stdin.write(b"a b c " * 100_000)
        process.stdin.close()
        assert process.wait() == 1
        assert process.stderr.read() == b""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["encode", "-m", "/absent/model.gguf", "x"], "/absent/model.gguf: No such file or directory"),
        (["encode", "-m", __file__, "x"], "not a GGUF file"),
        (["encode", "-f", "/absent/text"], "/absent/text: No such file or directory"),
        (["decode", "x"], "token ids must be integers"),
        (["decode", "99999999"], "99999999"),
        (["decode", "-1"], "-1"),
        (["decode", "99999999999999999999999"], "99999999999999999999999"),
        (["inspect", "a", "-m", "b"], "the model is given twice"),
        (["encode", "--override-kv", "a=int:1", "x"], "--override-kv needs --model"),
        (["encode", "-m", "m", "--override-kv", "a=1", "x"], "'a=1' is not KEY=TYPE:VALUE"),
        (["encode", "-m", "m", "--override-kv", "a=i8:1", "x"], "has the type 'i8': expected int, float, bool or str"),
        (["encode", "-m", "m", "--override-kv", "a=bool:1", "x"], "has the value '1': expected a bool"),
        (["encode", "-m", "m", "--override-kv", "a=int:x", "x"], "has the value 'x': expected a int"),
    ],
)
def test_errors_are_one_line(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    out, error = capsys.readouterr()
    assert out == ""
    assert error.startswith("ggtok: error: ")
    assert message in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    "arguments", [[], ["nonsense"], ["encode", "--nonsense"], ["encode", "-m", "a", "--builtin", "bpe"]]
)
def test_wrong_usage(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(arguments)
    assert "usage: ggtok" in capsys.readouterr().err


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["--version"])
    assert capsys.readouterr().out.startswith("ggtok 0.")
