"""The page of the command line, the manual page, and shell completion."""

from __future__ import annotations

import doctest
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.shell_completion import get_completion_class
from conftest import VOCABULARIES, command_in
from ggtok import Tokenizer
from ggtok.cli import COMMANDS, group
from store_trees import isolated

ROOT = Path(__file__).resolve().parents[1]
MANUAL = ROOT / "ggtok.data/data/share/man/man1/ggtok.1"
PAGE = (ROOT / "docs/cli.md").read_text(encoding="utf-8")
PRE = "tokenizer.ggml.pre"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the examples find: texts, models, and `ggtok` on the path."""
    folder = tmp_path_factory.mktemp("cli")
    (folder / "book.txt").write_text("What is LoRA, in one line?\n")
    (folder / "german.txt").write_text("Was ist LoRA, kurz?\n")
    for name, count in (("moby-dick", 312_866), ("faust", 81_204)):
        (folder / f"{name}.txt").write_text("a" + " a" * (count - 1))
    shutil.copy(VOCABULARIES / "bpe.gguf", folder / "model.gguf")
    shutil.copy(VOCABULARIES / "unigram.gguf", folder / "other.gguf")
    Tokenizer.from_gguf(folder / "model.gguf", overrides={PRE: "gpt-2"}).to_gguf(folder / "gpt-2.gguf")
    (folder / "bin").mkdir()
    command_in(folder / "bin")
    return folder


def environment(folder: Path) -> dict[str, str]:
    return os.environ | {"PATH": f"{folder}/bin:{os.environ['PATH']}", "GGTOK_MODEL": "model.gguf"}


# docs/cli.md


def examples() -> Iterator[tuple[str, str]]:
    """Each command of the page with its output. A command continues in lines that begin with `> `."""
    for block in re.findall(r"^```console\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL):
        for example in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, output = re.fullmatch(r"(.*(?:\n>.*)*)\n((?s:.*))", example).groups()  # type: ignore[union-attr]
            yield re.sub(r"\n> ?", "\n", command), output


@pytest.mark.parametrize(("command", "output"), [*examples()])
def test_examples_of_the_page(folder: Path, command: str, output: str) -> None:
    run = subprocess.run(
        ["sh", "-c", command], cwd=folder, env=environment(folder), capture_output=True, text=True, check=False
    )
    same = doctest.OutputChecker().check_output(output, run.stdout, doctest.ELLIPSIS)
    assert same, f"{run.stdout}{run.stderr}"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_is_explained(name: str) -> None:
    command = group.get_command(group.make_context("ggtok", ["inspect"], resilient_parsing=True), name)
    assert command is not None
    assert command.help
    assert command.short_help
    assert command.short_help.endswith(".")
    for parameter in command.params:
        if parameter.param_type_name == "option":
            text = getattr(parameter, "help", None)
            assert text, parameter.name
            assert re.search(r"[.\]]$", text), (parameter.name, text)


# ggtok.1


@pytest.mark.skipif(shutil.which("groff") is None, reason="groff is not installed")
@pytest.mark.parametrize("width", [40, 80])
def test_groff_has_no_objection(width: int) -> None:
    command = ["groff", "-man", "-Tutf8", "-ww", "-K", "utf8", f"-rLL={width}n", str(MANUAL)]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    assert run.stderr == ""
    shown = re.sub(r"\x1b\[[0-9;]*m|.\x08", "", run.stdout)
    for name in COMMANDS:
        assert f"ggtok {name}" in " ".join(shown.split())
    assert "ggtok corpus build [OPTIONS] SOURCE..." in " ".join(shown.split())
    assert "GGTOK_MODEL" in shown


# Completion


def completed(folder: Path, *words: str) -> list[tuple[str, str]]:
    """Type and value of what is offered for the last word."""
    kind = get_completion_class("bash")
    assert kind is not None
    before = Path.cwd()
    os.chdir(folder)
    try:
        found = kind(group, {}, "ggtok", "_GGTOK_COMPLETE").get_completions(list(words[:-1]), words[-1])
    finally:
        os.chdir(before)
    return [(each.type, each.value) for each in found]


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    isolated(tmp_path / "home", monkeypatch)
    for name in ("model.gguf", "model.bin", "text.txt", ".hidden.gguf", "models/in.gguf", "empty/readme"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    return tmp_path


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("se",), [("plain", "search")]),
        (("encode", "-m", ""), [("plain", "empty/"), ("plain", "model.gguf"), ("plain", "models/")]),
        (("encode", "--model", "mod"), [("plain", "model.gguf"), ("plain", "models/")]),
        (("encode", "-m", "models"), [("dir", "models")]),
        (("encode", "-m", "models/"), [("plain", "models/in.gguf")]),
        (("encode", "-m", "absent/"), []),
        (("encode", "-m", ".h"), [("plain", ".hidden.gguf")]),
        (("inspect", "mod"), [("plain", "model.gguf"), ("plain", "models/")]),
        (("diff", "model.gguf", "models/i"), [("plain", "models/in.gguf")]),
        (("encode", "te"), [("file", "te")]),
        (("encode", "--builtin", "w"), [("plain", "wordpiece")]),
        (("completion", ""), [("plain", "bash"), ("plain", "zsh"), ("plain", "fish")]),
        (("train", "--pre", "qwen2"), [("plain", "qwen2")]),
        (("check", "--js"), [("plain", "--json")]),
    ],
)
def test_completion(files: Path, words: tuple[str, ...], offered: list[tuple[str, str]]) -> None:
    assert completed(files, *words) == offered


def test_names_that_need_quotes_are_left_to_the_shell(files: Path) -> None:
    (files / "my model.gguf").write_bytes(b"")
    assert completed(files, "encode", "-m", "my") == [("file", "my")]
    assert completed(files, "encode", "-m", "mod") == [("plain", "model.gguf"), ("plain", "models/")]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_reads_its_script(folder: Path, shell: str) -> None:
    script = subprocess.run(
        [str(folder / "bin/ggtok"), "completion", shell], env=environment(folder), capture_output=True, check=True
    )
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    path = folder / f"completion.{shell}"
    path.write_bytes(script.stdout)
    run = subprocess.run([shell, "-n", str(path)], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stderr) == (0, "")


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_bash_completes(folder: Path, files: Path) -> None:
    """The script in a real bash, with the variables that a key press sets."""
    code = """
source <(ggtok completion bash)
complete -p ggtok
for words in "ggtok se" "ggtok encode -m mod" "ggtok inspect --builtin u"; do
    COMP_WORDS=($words) COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) COMPREPLY=()
    _ggtok_completion ggtok
    echo "${COMPREPLY[@]}"
done
"""
    run = subprocess.run(
        ["bash", "-c", code], cwd=files, env=environment(folder), capture_output=True, text=True, check=True
    )
    assert run.stdout.splitlines() == [
        "complete -o nosort -F _ggtok_completion ggtok",
        "search",
        "model.gguf models/",
        "unigram",
    ]


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
def test_fish_completes(folder: Path, files: Path) -> None:
    code = 'ggtok completion fish | source; complete -C "ggtok se"; complete -C "ggtok encode -m mod"'
    run = subprocess.run(
        ["fish", "-c", code], cwd=files, env=environment(folder), capture_output=True, text=True, check=True
    )
    assert [line.split("\t")[0] for line in run.stdout.splitlines()] == ["search", "model.gguf", "models/"]
