"""The commands that read much text: `train`, `evaluate`, `bench`; the progress bar, and Ctrl-C."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import ggtok
import pytest
from conftest import VOCABULARIES
from ggtok import Tokenizer
from ggtok.cli import main
from ggtok.cli.commands.bench import BAR, scaled
from terminals import on_terminal, shown
from tiny_model import TOKENS, write_model

FOX = "The quick brown fox jumps over the lazy dog.\nA quick brown dog jumps over the lazy fox.\n" * 9


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "fox.txt"
    path.write_text(FOX)
    return path


# train


def test_train(capsys: pytest.CaptureFixture[str], corpus: Path, tmp_path: Path) -> None:
    output = tmp_path / "fox.gguf"
    arguments = ["train", str(corpus), "-o", str(output), "--vocab-size", "280"]
    assert shown(capsys, *arguments) == (
        f"{output}: bpe with the pre-tokenizer qwen2, 280 tokens, {output.stat().st_size:,} bytes\n"
        f"next: ggtok evaluate {corpus} -m {output}\n"
    )
    assert Tokenizer.from_gguf(output) == ggtok.train(files=[corpus], kind="bpe", vocab_size=280)
    options = ["--pre", "gpt-2", "--set", "min_frequency=3", "--set", "add_bos=true", "--name", "fox"]
    options += ["--threads", "1", "--memory", "1"]
    special = ["--special", "eos=<end>", "--special", "bos=<start>", "--control", "<c>", "--user-defined", "<u>"]
    assert shown(capsys, *arguments, *options, *special)
    tokenizer = Tokenizer.from_gguf(output)
    assert tokenizer == ggtok.train(
        files=[str(corpus)],
        kind="bpe",
        vocab_size=280,
        pre="gpt-2",
        min_frequency=3,
        add_bos=True,
        name="fox",
        special={"eos": "<end>", "bos": "<start>"},
        control_tokens=["<c>"],
        user_defined_tokens=["<u>"],
    )
    assert tokenizer.metadata["general.name"] == "fox"


@pytest.mark.skipif(not Path("/dev/stdin").exists(), reason="standard input has no path")
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_train_and_evaluate_from_a_pipe(corpus: Path, tmp_path: Path, mark: bytes) -> None:
    output = tmp_path / "fox.gguf"
    run = [sys.executable, "-m", "ggtok", "train", "-", "-o", str(output), "--vocab-size", "280"]
    subprocess.run(run, input=mark + FOX.encode(), capture_output=True, check=True)
    assert Tokenizer.from_gguf(output) == ggtok.train(files=[corpus], kind="bpe", vocab_size=280)
    run = [sys.executable, "-m", "ggtok", "evaluate", "fox=-", "-m", str(output), "--json"]
    found = json.loads(subprocess.run(run, input=FOX.encode(), capture_output=True, check=True).stdout)
    assert (found["text"], found["bytes"]) == ("fox", len(FOX))


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no full device")
def test_a_full_disk_is_named(capsys: pytest.CaptureFixture[str], corpus: Path) -> None:
    full = "ggtok: error: /dev/full: No space left on device\n"
    assert shown(capsys, "train", str(corpus), "-o", "/dev/full", "--vocab-size", "280", code=2) == full
    assert shown(capsys, "evaluate", str(corpus), "--builtin", "bpe", "--svg", "/dev/full", code=2) == full
    assert shown(capsys, "explain", "-p", "a", "--builtin", "bpe", "--html", "/dev/full", code=2) == full


@pytest.mark.parametrize("kind", ["spm", "unigram", "wordpiece"])
def test_train_other_kinds(capsys: pytest.CaptureFixture[str], corpus: Path, tmp_path: Path, kind: str) -> None:
    output = tmp_path / "fox.gguf"
    options = ["--set", "byte_fallback=false"] if kind == "spm" else []
    shown(capsys, "train", str(corpus), "-o", str(output), "--kind", kind, "--vocab-size", "40", *options)
    assert len(Tokenizer.from_gguf(output).vocab) == 40


# evaluate


def test_evaluate(capsys: pytest.CaptureFixture[str], corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "de.txt").write_text("Der schnelle braune Fuchs.")
    texts = {"en": corpus, "de": tmp_path / "de.txt"}
    expected = ggtok.evaluate({name: Tokenizer.builtin(name) for name in ("bpe", "unigram")}, texts, reference="en")
    arguments = ["evaluate", *(f"{name}={path}" for name, path in texts.items()), "--reference", "en"]
    arguments += ["--builtin", "bpe", "--builtin", "unigram"]
    assert shown(capsys, *arguments) == f"{expected}\n"
    rows = [json.loads(line) for line in shown(capsys, *arguments, "--json").splitlines()]
    assert rows == expected.to_dicts()
    chart = tmp_path / "chart.svg"
    shown(capsys, *arguments, "--svg", str(chart))
    assert chart.read_text().startswith("<svg")


def test_evaluate_with_the_model_of_the_environment(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, corpus: Path
) -> None:
    monkeypatch.delenv("GGTOK_MODEL", raising=False)
    assert main(["evaluate", str(corpus)]) == 2
    assert "no model given" in capsys.readouterr().err
    path = str(VOCABULARIES / "unigram.gguf")
    monkeypatch.setenv("GGTOK_MODEL", path)
    assert " unigram " in shown(capsys, "evaluate", str(corpus))
    assert " unigram " not in shown(capsys, "evaluate", str(corpus), "--builtin", "bpe")


def test_evaluate_shows_files_by_short_names(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("a/en.txt", "b/en.txt", "b/de.txt", "b/de.md", "b/fr.txt")]
    models = [tmp_path / name for name in ("q4/model.gguf", "q8/model.gguf", "other.gguf")]
    for path in (*paths, *models):
        path.parent.mkdir(exist_ok=True)
        path.symlink_to(VOCABULARIES / "spm.gguf") if path in models else path.write_text("a fox")
    arguments = ["evaluate", *map(str, paths), "--builtin", "bpe"]
    for model in models:
        arguments += ["-m", str(model)]
    rows = [json.loads(row) for row in shown(capsys, *arguments, "--json", "--reference", str(paths[4])).splitlines()]
    assert list(dict.fromkeys(row["text"] for row in rows)) == ["a/en.txt", "b/en.txt", "de.txt", "de.md", "fr", "all"]
    assert list(dict.fromkeys(row["tokenizer"] for row in rows)) == ["q4/model.gguf", "q8/model.gguf", "other", "bpe"]
    assert [row["parity"] for row in rows][:-4] == [1] * 20
    wide = on_terminal(*arguments, width=80).text.splitlines()
    assert wide[0].split() == ["bytes/", "tokens/", "byte"]
    assert wide[1].split() == ["text", "tokenizer", "tokens", "token", "word", "unknown", "fallback", "used"]
    assert len(wide) == 2 + len(rows)
    assert max(map(len, wide)) <= 80
    same = shown(capsys, "evaluate", str(paths[0]), str(paths[0]), code=2)
    assert f"two texts are called {str(paths[0])!r}" in same


def test_evaluate_tells_its_progress(corpus: Path) -> None:
    told: list[int] = []
    ggtok.evaluate(Tokenizer.builtin("bpe"), {"a": corpus, "b": ["one", "two"]}, progress=told.append)
    assert sum(told) == len(FOX) + 6


# bench


def test_bench(capsys: pytest.CaptureFixture[str], corpus: Path) -> None:
    found = json.loads(shown(capsys, "bench", str(corpus), "--builtin", "spm", "--seconds", "0", "--json"))
    tokenizer = Tokenizer.builtin("spm")
    assert (found["model"], found["texts"], found["rounds"]) == ("spm", 1, 3)
    assert (found["bytes"], found["tokens"]) == (len(FOX), tokenizer.count(FOX))
    calls = [(row["call"], row["pass"]) for row in found["measurements"]]
    assert calls == [(call, which) for call in ("encode", "count", "decode") for which in ("first", "second")]
    assert all(len(row["seconds"]) == 3 and min(row["seconds"]) > 0 for row in found["measurements"])
    assert len(found["open_seconds"]) == 9
    assert all(row["bytes_per_second"] > 0 for row in found["measurements"])
    printed = shown(capsys, "bench", str(corpus), "-p", "a", "--builtin", "spm", "--seconds", "0")
    assert [scaled(each) for each in (0.25, 99.4, 12_345, 2.5e9)] == ["0.25 ", "99.4 ", "12.3 k", "2.50 G"]
    assert max(line.count("━") for line in printed.splitlines()) == BAR
    assert on_terminal("bench", "-p", FOX, "--builtin", "spm", "--seconds", "1.5").raw.count("%  ") > 2
    assert f"{len(FOX) + 1:,} bytes" in printed
    assert "2 texts" in printed
    assert [line.split()[:2] for line in printed.splitlines()[-6:]] == [[*each] for each in calls]


# Progress and Ctrl-C

SLOW = """
import time
from ggtok.cli.progress import progress
with progress(1000, "a\\x1b[31m long label") as advance:
    for _ in range(10):
        time.sleep(0.05)
        advance(100)
    advance.phase("merging", 0, 20)
    time.sleep(0.2)
    advance.phase("merging", 5, 20)
print("end")
"""


@pytest.fixture
def slow(tmp_path: Path) -> str:
    (tmp_path / "slow_work.py").write_text(SLOW)
    return f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"


@pytest.mark.parametrize("width", [20, 40, 120])
def test_progress_on_a_terminal(slow: str, width: int) -> None:
    found = on_terminal(program="slow_work", width=width, PYTHONPATH=slow)
    assert found.code == 0
    assert "%" in found.text
    assert "\x1b[31m long" not in found.raw
    assert found.text.endswith("end\n")
    assert "\x1b[?25l" not in found.raw  # the cursor stays
    states = found.raw.split("\r")
    assert len(states) > 3
    if width == 120:
        assert re.search(r"0\.0 MB/s  0:\d\d left", found.text)
        assert "merging" in found.text
        assert "━" in found.text
    if width == 40:
        assert "\x1b[3" not in on_terminal(program="slow_work", width=width, PYTHONPATH=slow, NO_COLOR="1").raw


def test_no_progress_without_a_terminal(slow: str) -> None:
    assert on_terminal(program="slow_work", PYTHONPATH=slow, TERM="dumb").raw == "end\r\n"
    environment = os.environ | {"PYTHONPATH": slow}
    done = subprocess.run(
        [sys.executable, "-m", "slow_work"], env=environment, capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == ("end\n", "")


START = """
import sys
from ggtok.cli import main
print("started", flush=True)
sys.exit(main())
"""


def cpu_seconds(pid: int) -> float:
    times = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return sum(map(int, times)) / os.sysconf("SC_CLK_TCK")


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux's account of processes")
def test_evaluate_with_more_tokens(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path, chart = tmp_path / "german.txt", tmp_path / "chart.svg"
    path.write_text("Das Eichhörnchen sieht ein anderes Eichhörnchen.\n" * 9)
    arguments = ["evaluate", str(path), "--builtin", "bpe", "--builtin", "wordpiece", "--extend", "4"]
    lines = shown(capsys, *arguments, "--svg", str(chart), "--json").splitlines()
    tokens = {row["tokenizer"]: row["tokens"] for row in map(json.loads, lines)}
    assert [*tokens] == ["bpe", "bpe +4", "wordpiece", "wordpiece +4"]
    assert tokens["bpe +4"] == Tokenizer.builtin("bpe").count(path.read_text()) - 9 * 8
    assert "bpe +4" in chart.read_text()
    assert main(["evaluate", str(path), "--builtin", "bpe", "--extend", "0"]) == 2
    assert "num_tokens must be at least 1" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["train", "evaluate", "bench", "check"])
def test_ctrl_c(command: str, tmp_path: Path) -> None:
    """The command ends before its work does, with nothing written and nothing left behind."""
    text = tmp_path / "text"
    text.write_text("".join(f"word{number} and {number * 7919} more\n" for number in range(1_000_000)))
    texts = [str(text)] * 1000  # work for minutes
    output = tmp_path / "out.gguf"
    output.write_text("as before")
    arguments = {
        "train": [*texts, "-o", str(output), "--vocab-size", "30000"],
        "evaluate": [*(f"{n}={text}" for n in range(1000)), "--builtin", "unigram", "--svg", str(output)],
        "bench": [str(text), "--builtin", "unigram", "--seconds", "100"],
        "check": [str(VOCABULARIES / "bpe.gguf")] * 2000,
    }[command]
    run = [sys.executable, "-c", START, command, *arguments]
    with subprocess.Popen(run, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stdout.readline() == b"started\n"
        while cpu_seconds(process.pid) < 1:  # it has been imported, and works
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        assert process.communicate()[1] == b""
        assert process.returncode == 130
    assert output.read_text() == "as before"
    assert sorted(os.listdir(tmp_path)) == ["out.gguf", "text"]


# extend


def test_extend(capsys: pytest.CaptureFixture[str], corpus: Path, tmp_path: Path) -> None:
    output, model = tmp_path / "fox.gguf", VOCABULARIES / "spm.gguf"
    arguments = ["extend", str(corpus), "-m", str(model), "-n", "6", "-o", str(output)]
    base = Tokenizer.from_gguf(model)
    tok = ggtok.extend(base, files=[corpus], num_tokens=6)
    before, after = (each.count(FOX, add_special=False) for each in (base, tok))
    assert shown(capsys, *arguments, "--threads", "1") == (
        f"{output}: 6 tokens after the {base.vocab_size:,} of {model}, {output.stat().st_size:,} bytes\n"
        f"saves: {before - after} of the {before} tokens of these texts ({1 - after / before:.1%})\n"
        f"next: ggtok evaluate {corpus} -m {model} -m {output}\n"
    )
    assert Tokenizer.from_gguf(output) == tok
    out = shown(capsys, *arguments[:2], "--builtin", "spm", *arguments[4:])
    assert out.endswith(f"next: ggtok evaluate {corpus} --builtin spm -m {output}\n")
    assert "is also an input" in shown(capsys, *arguments[:-1], str(model), code=2)


def test_extend_a_model_with_weights(capsys: pytest.CaptureFixture[str], corpus: Path, tmp_path: Path) -> None:
    model = tmp_path / "model.gguf"
    write_model(model)
    out = shown(capsys, "extend", str(corpus), "-m", str(model), "-n", "2", "-o", str(tmp_path / "new.gguf"))
    assert f"\nweights: give the embeddings {len(TOKENS) + 2} rows" in out
