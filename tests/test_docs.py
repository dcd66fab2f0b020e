"""Documentation that runs or can be checked: examples, commands, links, lists, line lengths, generated pages."""

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
import ggtok._explain
import pytest
from conftest import command_in

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
DEVIATIONS = (ROOT / "docs/deviations.md").read_text(encoding="utf-8")
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
WRITTEN = [page for page in PAGES if "DO NOT EDIT" not in page.read_text(encoding="utf-8")]
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
    (tmp_path / "book.txt").write_text("What is LoRA?")
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


# Pages


SITE = "https://ggtok.readthedocs.io/en/latest/"
FILES = re.compile(r"https://(?:github\.com/ggtok/ggtok/blob|raw\.githubusercontent\.com/ggtok/ggtok)/main/(.+)")


def target(page: Path, link: str) -> Path | None:
    """The file behind a link; None for links that lead out of the project."""
    if link.startswith(SITE):
        file = ROOT / "docs" / re.sub(r"(^|/)$", r"\1index.html", link.removeprefix(SITE))
        return file if file.exists() else file.with_suffix(".md")
    if found := FILES.fullmatch(link):
        return ROOT / found[1]
    return None if re.match(r"https?:", link) else page.parent / link


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    links = re.findall(r"\]\(([^)#\s]+)", text) + re.findall(r'(?:src|srcset|href)="([^"#]+)"', text)
    files = {link: target(page, link) for link in links}
    assert [link for link, file in files.items() if file and not file.exists()] == []


def headings(page: str) -> set[str]:
    """The anchors of a page's headings, as the site makes them."""
    text = re.sub(r"^```.*?^```$", "", (ROOT / f"docs/{page}.md").read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    titles = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


ADDRESSES = """
adapters api/adapters api/compare api/corpus api/errors api/index api/results api/tokenizer api/traces api/types
api/vocabulary architecture batches changes chat check cli coming-from/index coming-from/llama-cpp
coming-from/llama-cpp-python coming-from/sentencepiece coming-from/tiktoken coming-from/tokenizers contributing
convert corpus corpus-engines corpus-formats corpus-scale count decode deviations edit encode evaluate experiments
explain how/bpe how/detokenizing how/index how/plamo2 how/rwkv how/special-tokens how/spm how/unigram how/wordpiece
how/xcda index install maintaining models offsets open parts performance quickstart releases releasing run rust security
supported trace train verify vocabularies vocabulary why
"""
"""Pages that the site has had. Others link to them."""


@pytest.mark.parametrize("address", ADDRESSES.split())
def test_old_addresses_lead_somewhere(address: str) -> None:
    moved = json.loads((ROOT / "docs/moved.json").read_text(encoding="utf-8"))
    page, _, heading = moved.get(address, f"{address}.html").partition("#")
    assert (ROOT / "docs" / page).with_suffix(".md").exists()
    assert (address in moved) != (ROOT / f"docs/{address}.md").exists()
    assert not heading or heading in headings(page.removesuffix(".html"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_to_headings(page: Path) -> None:
    """Of the site, wherever the link is."""
    text = page.read_text(encoding="utf-8")
    text = re.sub(r"^```(?!\{).*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    for link, heading in re.findall(r"\]\(([^)#\s]*)#([^)\s]+)\)", text):
        file = (target(page, link) or ROOT).resolve() if link else page
        if file.suffix == ".md" and file.is_relative_to(ROOT / "docs") and page.stem not in GENERATED:
            assert heading in headings(file.relative_to(ROOT / "docs").with_suffix("").as_posix()), link


GENERATED = {"cli", "trace", "trace-trie"}
"""Pages whose own links lead to headings that are made while the site is built."""


NEXTLESS = {"index", "changes", "contributing"}


@pytest.mark.parametrize("page", sorted(ROOT.glob("docs/**/*.md")), ids=lambda page: page.name)
def test_pages_end_with_the_next_step(page: Path) -> None:
    name = page.relative_to(ROOT / "docs").with_suffix("").as_posix()
    if name in NEXTLESS or (page.parent.name == "api" and name != "api/index"):
        return
    text = re.sub(r"\n```\{toctree\}.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    assert re.search(r"\n\nNext: [^\n]*\]\([^\n]+(\n[^\n]+)*\n*$", text)


def test_links_of_the_readme_are_absolute() -> None:
    """A package index has no other files to lead to."""
    assert [link for link in re.findall(r"\]\(([^)]+)\)", README) if not link.startswith(("https://", "#"))] == []


def test_readme_names_what_is_public() -> None:
    calls = {name for name in dir(ggtok.Tokenizer) if not name.startswith("_")}
    errors = {name for name in ggtok.__all__ if name.endswith("Error")}
    unnamed = {name for name in calls | errors if not re.search(rf"`{name}\b|\.{name}\b", README)}
    assert unnamed == set()


def test_guides_use_every_call() -> None:
    guides = "".join(page.read_text(encoding="utf-8") for page in ROOT.glob("docs/*.md"))
    calls = {name for name in dir(ggtok.Tokenizer) if not name.startswith("_")}
    calls |= {name for name in ggtok.__all__ if name.islower()}
    assert {name for name in calls if not re.search(rf"\.{name}\b", guides)} == set()


def test_rust_examples_are_those_of_the_crate() -> None:
    """`cargo test` runs them there."""
    openings = [path.read_text(encoding="utf-8") for path in ROOT.glob("rust/*/src/*.rs")]
    lines = [line.removeprefix("//!").removeprefix(" ") for text in openings for line in text.splitlines()]
    tested = "\n".join(line for line in lines if not line.startswith("# "))
    shown = fenced("rust", (ROOT / "docs/rust.md").read_text(encoding="utf-8"))
    assert shown
    assert [example for example in shown if example not in tested] == []


def test_changelog_has_unreleased() -> None:
    lines = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").splitlines()
    assert next(line for line in lines if line.startswith("## ")) == "## Unreleased"


@pytest.mark.parametrize("script", ["generate_cli.py", "generate_trace.py"])
def test_generated_files_are_current(script: str) -> None:
    command = [sys.executable, str(ROOT / "scripts" / script), "--check"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


def test_every_source_file_opens_with_a_sentence() -> None:
    paths = [*ROOT.glob("rust/*/src/**/*.rs"), *ROOT.glob("python/ggtok/**/*.py")]
    opening = re.compile(r'(//! |""")\S[^\n]*(\n(//! )?[^\s/][^\n]*)*?\.(\s|""")')
    assert [path for path in paths if not opening.match(path.read_text(encoding="utf-8"))] == []


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


@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: page.name)
def test_files_that_a_page_names_exist(page: Path) -> None:
    """Each by its path from the root, or from the source folder of the core."""
    named = re.findall(r"`((?:\w+/)*\w+\.(?:rs|py|json|svg|md))`", page.read_text(encoding="utf-8"))
    folders = [ROOT, ROOT / "rust/core/src", ROOT / "tests", ROOT / "benches/results", ROOT / "docs"]
    assert [name for name in named if not any((folder / name).exists() for folder in folders)] == []


@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: page.name)
def test_pages_keep_to_120_columns(page: Path) -> None:
    """Except tables and code."""
    text = page.read_text(encoding="utf-8")
    text = re.sub(r"^```.*?^```$|<!-- (\w+):begin -->.*?<!-- \1:end -->", "", text, flags=re.M | re.S)
    assert [line for line in text.splitlines() if len(line) > 120 and not line.startswith("|")] == []


# Deviations


def deviating() -> list[str]:
    """Files that number deviations from llama.cpp at their beginning."""
    paths = {
        *ROOT.glob("rust/core/src/**/*.rs"),
        *ROOT.glob("python/ggtok/*.py"),
        *ROOT.glob("python/ggtok/_cli/**/*.py"),
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
