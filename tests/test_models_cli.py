"""Models by name on the command line: `-m`, `ggtok models`, completion in bash, and the examples of docs/open.md."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.shell_completion import get_completion_class
from conftest import command_in
from ggtok import Tokenizer
from ggtok.cli import group
from ggtok.cli.completion import Bash
from store_trees import Home, isolated, vocabulary
from test_cli import call

PAGE = (Path(__file__).resolve().parents[1] / "docs/open.md").read_text(encoding="utf-8")
LIBRARY = "manifests/registry.ollama.ai/library"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    home = Home(isolated(tmp_path, monkeypatch))
    (tmp_path / "book.txt").write_text("What is LoRA, in one line?\n")
    monkeypatch.chdir(tmp_path)
    return home


def test_every_command_takes_names(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    home.all()
    bpe, spm = "ollama:llama3.2", "hf:owner/repo-GGUF"
    number = Tokenizer.builtin("bpe").count("What is LoRA?")
    assert call("count", "-m", bpe, "-p", "What is LoRA?").out == b"%d\n" % number
    assert call("inspect", bpe).out == call("inspect", "--builtin", "bpe").out
    assert call("check", spm, "--json").json[0]["findings"] == Tokenizer.builtin("spm").check()
    assert call("diff", bpe, "ramalama:smollm:135m").code == 0
    assert call("diff", bpe, spm).code == 1
    assert call("evaluate", "-m", bpe, "-m", spm, "--builtin", "unigram", "book.txt").code == 0
    assert call("explain", "--compare", bpe, spm, "-p", "a").code == 0
    assert call("edit", bpe, "-o", "new.gguf", "--set", "general.name=new").code == 0
    assert Tokenizer.from_gguf("new.gguf").metadata["general.name"] == "new"
    monkeypatch.setenv("GGTOK_MODEL", bpe)
    assert call("count", "-p", "What is LoRA?").out == b"%d\n" % number


def test_errors_are_one_line(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    home.ollama_model(f"{LIBRARY}/llama3.2/latest", "bpe")
    wrong = "Ollama has no model 'ollama:lama3.2'; did you mean ollama:llama3.2? "
    for arguments in (("count", "-p", "a", "-m"), ("check",), ("inspect",), ("edit", "--dry-run"), ("diff", "x")):
        done = call(*arguments, "ollama:lama3.2")
        assert (done.code, done.out) == (2, b"")
        assert done.err.count("\n") == 1
    assert wrong in call("check", "ollama:lama3.2").err
    monkeypatch.setenv("GGTOK_MODEL", "ollama:lama3.2")
    assert f"GGTOK_MODEL: {wrong}" in call("count", "-p", "a").err


def test_models(home: Home) -> None:
    paths = home.all()
    home.ollama_manifest(f"{LIBRARY}/gone/latest", ("model", f"sha256:{'0' * 64}"))
    home.write(home.lmstudio / "pub/damaged/m.gguf", vocabulary("bpe")[:5000])
    home.write(home.lmstudio / "pub/text/m.gguf", b"no GGUF")
    no_pre = Tokenizer.from_gguf(vocabulary("bpe"), overrides={"tokenizer.ggml.pre": "default"})
    no_pre.to_gguf(home.gpt4all / "old.gguf")
    rows = {str(row["name"]): row for row in call("models", "--json").json}
    assert rows.keys() == {*paths, "ollama:gone", "lmstudio:pub/damaged", "lmstudio:pub/text", "gpt4all:old"}
    for name, path in paths.items():
        tokenizer = Tokenizer.from_gguf(path)
        kind, pre, size = tokenizer.vocab.kind, tokenizer.vocab.pre, tokenizer.vocab_size
        assert rows[name]["file"] == str(path)
        assert [rows[name][key] for key in ("kind", "pre", "size", "findings")] == [kind, pre, size, tokenizer.check()]
    assert "its blob is missing" in str(rows["ollama:gone"]["error"])
    assert str(rows["lmstudio:pub/text"]["error"]).startswith("this is not a GGUF file")
    done = call("models")
    assert (done.code, done.err) == (0, "")
    lines = {line.split()[0]: line for line in done.out.decode().splitlines()}
    assert lines["ollama:llama3.2"].split() == ["ollama:llama3.2", "bpe", "qwen2", "13000", "template", "layer", "ok"]
    assert "error: its blob is missing" in lines["ollama:gone"]
    assert re.search(r"(warning|error): .*\[pre-[a-z]+\]", lines["gpt4all:old"])
    assert call("models", "lmstudio", "--json").out.count(b"\n") == 3


def test_models_without_opening_them(home: Home) -> None:
    home.all()
    home.write(home.lmstudio / "pub/text/m.gguf", b"no GGUF")
    home.ollama_manifest(f"{LIBRARY}/gone/latest", ("model", f"sha256:{'0' * 64}"))
    rows = {str(row["name"]): row for row in call("models", "--paths", "--json").json}
    assert rows["lmstudio:pub/text"] == {
        "name": "lmstudio:pub/text",
        "file": str(home.lmstudio / "pub/text/m.gguf"),
    }
    assert "missing" in str(rows["ollama:gone"]["error"])
    assert str(home.lmstudio / "pub/text/m.gguf") in call("models", "--paths").out.decode()


def test_prompts_of_ollama_are_listed(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    home.ollama_model(f"{LIBRARY}/coder/latest", "bpe", ("system",), renderer="qwen3-coder", parser="qwen3-coder")
    home.ollama_model(f"{LIBRARY}/plain/latest", "bpe", ())
    monkeypatch.setenv("COLUMNS", "120")
    lines = call("models").out.decode().splitlines()
    assert lines[0].split() == ["name", "kind", "pre", "tokens", "prompts", "check"]
    assert "  renderer 'qwen3-coder' and parser 'qwen3-coder', a system message  ok" in lines[1]
    assert lines[2].split() == ["ollama:plain", "bpe", "qwen2", "13000", "ok"]
    assert ["prompts" in row for row in call("models", "--json").json] == [True, False]


def test_chat_warns_of_prompts_of_ollama(home: Home) -> None:
    home.ollama_model(f"{LIBRARY}/m/latest", "bpe")
    done = call("chat", "-m", "ollama:m", "-p", "Hi", "--count")
    assert done.code == 0
    assert "with its own template layer, not the file's chat template" in done.err
    assert call("count", "-m", "ollama:m", "-p", "Hi").err == ""


def test_no_models(home: Home) -> None:
    done = call("models")
    assert (done.code, done.out) == (0, b"")
    assert done.err.startswith(f"ggtok: there are no models in these folders:\n  {home.ollama}\n  ")


def examples() -> Iterator[tuple[str, str]]:
    for block in re.findall(r"^```console\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            yield command, output


def test_examples_of_the_page(home: Home) -> None:
    """All of them, with the home folder of someone who has every tool. `> ` continues a line."""
    if any(os.path.exists(folder) for folder in ("/usr/share/ollama", "/var/lib/ramalama")):
        pytest.skip("this machine has models outside the home folder")
    home.all()
    command_in(home.folder)
    environment = os.environ | {"PATH": f"{home.folder}:{os.environ['PATH']}"}
    for command, output in examples():
        if command.startswith("export "):
            name, _, value = command.removeprefix("export ").partition("=")
            environment[name] = value
            continue
        run = subprocess.run(["sh", "-c", command], env=environment, capture_output=True, text=True, check=False)
        shown = (run.stdout + run.stderr).replace(str(home.folder), "~")
        assert shown.split() == output.replace("\n> ", "\n").split(), command


# Completion


def completed(*words: str) -> list[str]:
    kind = get_completion_class("zsh")
    assert kind is not None
    found = kind(group, {}, "ggtok", "_GGTOK_COMPLETE").get_completions(list(words[:-1]), words[-1])
    return [item.value for item in found]


def test_names_are_completed(home: Home) -> None:
    home.all()
    home.write(home.folder / "olive.gguf", b"")
    assert completed("count", "-m", "ol") == ["ollama:llama3.2", "olive.gguf"]
    assert completed("count", "-m", "hf:own") == completed("inspect", "hf:") == ["hf:owner/repo-GGUF"]
    assert completed("diff", "a.gguf", "jan:") == ["jan:jan/v1"]
    assert "olive.gguf" in completed("count", "-m", "")


@pytest.mark.parametrize(
    ("words", "args", "incomplete", "kept"),
    [
        (["ggtok", "count", "-m", "ol"], ["count", "-m"], "ol", 0),
        (["ggtok", "count", "-m", "ollama", ":", "ll"], ["count", "-m"], "ollama:ll", 7),
        (["ggtok", "count", "-m", "ollama", ":"], ["count", "-m"], "ollama:", 7),
        (["ggtok", "count", "-m", "ollama", ":", "m", ":", "1"], ["count", "-m"], "ollama:m:1", 9),
        (["ggtok", "count", "-m", "ollama:ll"], ["count", "-m"], "ollama:ll", 0),
        (["ggtok", "count", "-m", "ollama", ":", "m", "te"], ["count", "-m", "ollama:m"], "te", 0),
        (["ggtok", "count", ""], ["count"], "", 0),
    ],
)
def test_words_of_bash(
    monkeypatch: pytest.MonkeyPatch, words: list[str], args: list[str], incomplete: str, kept: int
) -> None:
    monkeypatch.setenv("COMP_WORDS", "\n".join(words))
    monkeypatch.setenv("COMP_CWORD", str(len(words) - 1))
    bash = Bash(group, {}, "ggtok", "_GGTOK_COMPLETE")
    assert bash.get_completion_args() == (args, incomplete)
    assert bash._kept == kept


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_bash_completes_names(home: Home) -> None:
    home.ollama_model(f"{LIBRARY}/llama3.2/latest", "bpe")
    home.ollama_model(f"{LIBRARY}/llama3.2/1b", "bpe")
    command_in(home.folder)
    code = """
source <(ggtok completion bash)
for words in "ggtok count -m ol" "ggtok count -m ollama : lla" "ggtok count -m ollama : llama3.2 : 1"; do
    COMP_WORDS=($words) COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) COMPREPLY=()
    _ggtok_completion ggtok
    echo "${COMPREPLY[@]}"
done
"""
    environment = os.environ | {"PATH": f"{home.folder}:{os.environ['PATH']}"}
    run = subprocess.run(["bash", "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert run.stdout.splitlines() == ["ollama:llama3.2 ollama:llama3.2:1b", "llama3.2 llama3.2:1b", "1b"]


def test_json_names_files_that_are_not_utf8(home: Home) -> None:
    path = os.fsdecode(os.fsencode(home.gpt4all) + b"/a\xff.gguf")
    try:
        home.write(Path(path), vocabulary("spm"))
    except OSError:
        pytest.skip("the file system takes names in UTF-8 only")
    (line,) = call("models", "--json").out.splitlines()
    assert json.loads(line)["kind"] == "spm"
    assert call("models").code == 0
