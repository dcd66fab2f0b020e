"""Documentation that runs or is made from the code: examples, commands, lists, generated pages."""

from __future__ import annotations

import doctest
import importlib
import json
import os
import pkgutil
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import ggtok
import ggtok.lab.explain
import pytest
from conftest import command_in

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
CALLS = (ROOT / "docs/calls.md").read_text(encoding="utf-8")
DEVIATIONS = (ROOT / "docs/deviations.md").read_text(encoding="utf-8")
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
MODULES = sorted(
    module.name for module in pkgutil.walk_packages(ggtok.__path__, "ggtok.") if module.name != "ggtok.__main__"
)
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def section(heading: str) -> str:
    return README.split(f"\n## {heading}\n")[1].split("\n## ")[0]


def fenced(language: str, text: str = README) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def run_examples(test: doctest.DocTest) -> None:
    report: list[str] = []
    doctest.DocTestRunner(optionflags=OPTIONS).run(test, out=report.append)
    assert not report, "".join(report)


# Examples


RUN = [page.relative_to(ROOT).as_posix() for page in PAGES if ">>> " in page.read_text(encoding="utf-8")]


@pytest.mark.parametrize("page", RUN)
def test_examples_of_pages(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    test = doctest.DocTestParser().get_doctest("\n".join(fenced("python", text)), {}, page, page, 0)
    assert len(test.examples) == len(re.findall(r"^ *>>> ", text, re.MULTILINE))
    run_examples(test)


@pytest.mark.parametrize("name", MODULES)
def test_docstrings(name: str) -> None:
    for test in doctest.DocTestFinder().find(importlib.import_module(name)):
        run_examples(test)


def test_readme_command_line(shared: Path, tmp_path: Path) -> None:
    """Every `$ ggtok` example with the output below it; llama-bpe stands in for llama-3.gguf."""
    (tmp_path / "llama-3.gguf").symlink_to(shared / "vocabs/llama-bpe.gguf")
    (tmp_path / "book.txt").write_text("a" + " a" * 289_429)  # and BOS
    (tmp_path / "question.txt").write_text("What is LoRA?")
    command_in(tmp_path)
    environment = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    (console,) = fenced("console")
    for part in re.split(r"^\$ ", console, flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        run = subprocess.run(["sh", "-c", command], cwd=tmp_path, env=environment, capture_output=True, check=False)
        assert run.stdout.decode().rstrip("\n") == output.rstrip("\n"), run.stderr.decode()


# The README's two set-up commands


def test_two_setup_commands() -> None:
    assert re.findall(r"^```(\w*)$", README, re.MULTILINE).count("sh") == 2
    for heading in ("Quick start", "Test"):
        assert section(heading).count("```") == 2
        (command,) = fenced("sh", section(heading))
        assert command.count("\n") == 1
        assert command.startswith("python3 -m venv --clear .venv && .venv/bin/pip install ")
        assert '.venv/bin/ggtok encode -p "What is LoRA?"' in command


def test_ci_takes_the_test_command_from_the_readme() -> None:
    script = (ROOT / ".ci/run").read_text(encoding="utf-8")
    assert "README.md" in script
    assert "pytest" not in script


# Pages. `scripts/check_prose.py` checks links, columns, openings and endings.


def test_the_first_screen_is_llama_3s(shared: Path) -> None:
    """The code of the first page, and the picture beside it."""
    tokenizer = ggtok.Tokenizer.from_gguf(shared / "vocabs/llama-bpe.gguf")
    [code] = [text for text in fenced("python") if "from_gguf" in text]
    assert f"# {tokenizer.encode('What is LoRA?')}" in code.splitlines()
    assert code in (ROOT / "docs/index.md").read_text(encoding="utf-8")
    picture = (ROOT / "docs/_static/tokens.svg").read_text(encoding="utf-8")
    ids = [int(id) for id in re.findall(r'class="id"[^>]*>(\d+)<', picture)]
    assert ids == tokenizer.encode("What is LoRA?")


def test_every_call_is_named_on_its_page() -> None:
    calls = {name for name in dir(ggtok.Tokenizer) if not name.startswith("_")}
    errors = {name for name in ggtok.__all__ if name.endswith("Error")}
    unnamed = {name for name in calls | errors if not re.search(rf"`{name}\b|\.{name}\b", CALLS)}
    assert unnamed == set()


def test_guides_use_every_call() -> None:
    guides = "".join(page.read_text(encoding="utf-8") for page in ROOT.glob("docs/*.md"))
    calls = {name for name in dir(ggtok.Tokenizer) if not name.startswith("_")}
    calls |= {name for name in ggtok.__all__ if name.islower()}
    assert {name for name in calls if not re.search(rf"\.{name}\b", guides)} == set()


def test_rust_examples_are_those_of_the_crate() -> None:
    """`cargo test` runs them there, with a vocabulary that is embedded."""
    openings = [path.read_text(encoding="utf-8") for path in ROOT.glob("rust/*/src/*.rs")]
    lines = [line.removeprefix("//!").removeprefix(" ") for text in openings for line in text.splitlines()]
    tested = "\n".join(line for line in lines if not line.startswith("# ")).replace("bpe.gguf", "model.gguf")
    shown = fenced("rust", (ROOT / "docs/rust.md").read_text(encoding="utf-8"))
    assert shown
    assert [example for example in shown if example not in tested] == []


@pytest.mark.parametrize("script", ["generate_cli.py", "generate_trace.py"])
def test_generated_files_are_current(script: str) -> None:
    command = [sys.executable, str(ROOT / "scripts" / script), "--check"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


def test_the_proof_is_current(monkeypatch: pytest.MonkeyPatch) -> None:
    """As `python benches/exactness.py --report` and `benches/report.py` write it."""
    monkeypatch.syspath_prepend(str(ROOT / "benches"))
    exactness: Any = importlib.import_module("exactness")
    report: Any = importlib.import_module("report")
    data = json.loads(exactness.RESULTS.read_text(encoding="utf-8"))
    run = report.Run(json.loads(exactness.SPEEDS.read_text(encoding="utf-8")))
    comparison = exactness.Comparison(data["results"])
    assert exactness.PICTURE.read_text(encoding="utf-8") == exactness.picture(comparison)
    index = (ROOT / "docs/index.md").read_text(encoding="utf-8")
    performance = (ROOT / "docs/performance.md").read_text(encoding="utf-8")
    for name, page, text in (
        ("proof", README, exactness.proof(data["cases"], run)),
        ("proof", index, exactness.proof(data["cases"], run)),
        ("matrix", README, exactness.matrix(comparison)),
        ("matrix", DEVIATIONS, exactness.matrix(comparison)),
        ("exactness", DEVIATIONS, exactness.kinds(data["cases"])),
        ("peers", DEVIATIONS, exactness.peers(comparison)),
        ("benchmark", README, report.summary(run, short=True)),
        ("benchmark", performance, report.summary(run, short=False)),
    ):
        assert f"<!-- {name}:begin -->\n{text}<!-- {name}:end -->" in page, name


# Deviations


def deviating() -> list[str]:
    """Files that number deviations from llama.cpp at their beginning."""
    paths = {
        *ROOT.glob("rust/core/src/**/*.rs"),
        *ROOT.glob("python/ggtok/tokenizer/*.py"),
        *ROOT.glob("python/ggtok/lab/*.py"),
        *ROOT.glob("python/ggtok/cli/**/*.py"),
    }
    paths -= {*ROOT.glob("**/oracle.rs")}
    return sorted(
        path.relative_to(ROOT).as_posix()
        for path in paths
        if re.search(r"Deviations:\s*(//[/!]\s*)?(1\.|\(1\))", path.read_text(encoding="utf-8"))
    )


def test_deviations_lists_every_file_that_has_one() -> None:
    listed = set(re.findall(r"`(\w+/[\w/.]+\.(?:rs|py))`", DEVIATIONS))
    assert listed == set(deviating())


def test_deviations_name_tests_that_exist() -> None:
    named = re.findall(r"`(test_\w+\.py|[\w/]+\.rs)::(\w+)`", DEVIATIONS)
    assert named
    for file, test in named:
        folder = "tests" if file.endswith(".py") else "" if file.startswith("rust/") else "rust/core/src"
        path = ROOT / folder / file
        assert re.search(rf"(def|fn) {test}\(", path.read_text(encoding="utf-8")), f"{file}::{test}"
