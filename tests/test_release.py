"""What a release consists of: one version everywhere, metadata, notices, and what is inside wheels and the sdist.

`GGTOK_DIST` names a folder with built files; without it the tests of those are skipped. `.ci/release-checks` sets it.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email.parser import Parser
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "scripts"))
notices: Any = importlib.import_module("generate_notices")
release: Any = importlib.import_module("release_notes")
WORKSPACE = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))["workspace"]
CARGO = WORKSPACE["package"]
CRATES = ("core", "chat", "train", "explain", "python")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
VERSION = release.version()
NO_DIST = "GGTOK_DIST names no folder with built files"
FOLDERS = re.compile(rb"/root/|/home/[a-z]|/Users/[a-z]|[A-Z]:\\Users\\|\.cargo/registry|/__w/|/github/workspace")
"""Folders of machines that build."""
MODULE = re.compile(r"ggtok/_ggtok\.(abi3\.so|cpython-314t-[\w-]+\.so|pyd|cp314t-\w+\.pyd)")
FILES = {
    *("ggtok/__init__.py", "ggtok/_ggtok.pyi", "ggtok/py.typed"),
    *(f"ggtok/vocabularies/{name}.gguf" for name in ("bpe", "spm", "unigram", "wordpiece")),
}


def built(pattern: str) -> list[Any]:
    """Parameters for one test per built file, or a single skipped one."""
    folder = os.environ.get("GGTOK_DIST")
    paths = sorted((ROOT / folder).glob(pattern)) if folder else []
    if folder and not paths:
        raise FileNotFoundError(f"{folder} has no {pattern}")
    return [pytest.param(path, id=path.name) for path in paths] or [
        pytest.param(None, id="absent", marks=pytest.mark.skip(reason=NO_DIST))
    ]


def test_one_version() -> None:
    """It stands in Cargo.toml; maturin and the module take it from there."""
    for crate in (*CRATES, "benches"):
        text = (ROOT / "rust" / crate / "Cargo.toml").read_text(encoding="utf-8")
        assert tomllib.loads(text)["package"]["version"] == {"workspace": True}
    ours = [row for name, row in WORKSPACE["dependencies"].items() if name.startswith("ggtok-")]
    assert {row["version"] for row in ours} == {f"={VERSION}"}
    assert PROJECT["dynamic"] == ["version"]
    lock = tomllib.loads((ROOT / "Cargo.lock").read_text(encoding="utf-8"))["package"]
    assert {crate["version"] for crate in lock if crate["name"].startswith("ggtok-")} == {VERSION}
    citation = ROOT / "CITATION.cff"
    if citation.exists():
        assert re.findall(r"^version: *[\"']?([^\"'\s]+)", citation.read_text(encoding="utf-8"), re.MULTILINE) == [
            VERSION
        ]


def test_the_installed_version() -> None:
    ggtok = pytest.importorskip("ggtok")
    assert ggtok.__version__ == VERSION


def test_one_build_of_a_checkout_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """While maturin builds, a second build waits."""
    fcntl = pytest.importorskip("fcntl")

    def build_wheel(folder: str) -> str:
        with Path("pyproject.toml").open("rb") as file, pytest.raises(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return folder

    monkeypatch.setitem(sys.modules, "maturin", SimpleNamespace(build_wheel=build_wheel))
    monkeypatch.delitem(sys.modules, "build_backend", raising=False)
    monkeypatch.chdir(ROOT)
    assert importlib.import_module("build_backend").build_wheel("dist") == "dist"
    with Path("pyproject.toml").open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_the_same_facts_for_python_and_rust() -> None:
    assert PROJECT["urls"]["Repository"] == CARGO["repository"]
    assert PROJECT["urls"]["Homepage"] == CARGO["homepage"]
    assert [author["name"] for author in PROJECT["authors"]] == CARGO["authors"]
    oldest = PROJECT["requires-python"].removeprefix(">=")
    assert f"Programming Language :: Python :: {oldest}" in PROJECT["classifiers"]
    python = (ROOT / "rust/python/Cargo.toml").read_text(encoding="utf-8")
    assert f"abi3-py{oldest.replace('.', '')}" in python


def test_the_oldest_rust_is_what_ci_builds_with() -> None:
    ci = (ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8")
    assert f'toolchain: ["{CARGO["rust-version"]}", stable' in ci
    for crate in notices.CRATES:
        assert f"Rust {CARGO['rust-version']} or newer" in (crate / "README.md").read_text(encoding="utf-8")


def test_nothing_is_published_before_the_crates_pass_on_aarch64() -> None:
    text = (ROOT / ".github/workflows/release.yml").read_text(encoding="utf-8")
    jobs = dict(re.findall(r"^  ([\w-]+):\n((?:(?:    .*| *#.*)?\n)+)", text.partition("\njobs:\n")[2], re.MULTILINE))
    tested = [name for name, job in jobs.items() if "runs-on: ubuntu-24.04-arm\n" in job and "run: cargo test" in job]
    assert len(tested) == 1
    crates = " ".join(f"-p {name}" for name in ("ggtok-core", "ggtok-chat", "ggtok-train", "ggtok-explain"))
    assert f"run: cargo test {crates} --locked\n" in jobs[tested[0]]
    assert set(re.findall(r"[\w-]+", re.findall(r"needs: (.*)", jobs["pypi"])[0])) >= {*tested, "smoke", "checks"}


def test_notices_are_current() -> None:
    if not shutil.which("cargo"):
        pytest.skip("cargo is not installed")
    assert notices.main(["--check"]) == 0


@pytest.mark.parametrize(
    ("expression", "taken"),
    [
        ("MIT", ["MIT"]),
        ("Unlicense OR MIT", ["MIT"]),
        ("MIT/Apache-2.0", ["MIT"]),
        ("(MIT OR Apache-2.0) AND Unicode-3.0", ["MIT", "Unicode-3.0"]),
        ("BSD-2-Clause", ["BSD-2-Clause"]),
    ],
)
def test_licences_of_an_expression(expression: str, taken: list[str]) -> None:
    assert notices.licences(expression) == taken


def test_an_unknown_licence_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"no licence of 'GPL-3.0-only' is known"):
        notices.licences("GPL-3.0-only")


def test_a_release_needs_its_version_in_the_tag_and_the_changelog(capsys: pytest.CaptureFixture[str]) -> None:
    assert release.main(["v0.0.0"]) == 1
    assert f"Cargo.toml has version {VERSION}" in capsys.readouterr().err
    changelog = "# Changelog\n\n## Unreleased\n\n## 1.2.3 (2026-01-02)\n\n- One.\n\n## 1.2.2\n\n- Two.\n"
    assert release.notes("1.2.3", changelog) == "- One."
    assert release.notes("1.2.2", changelog) == "- Two."
    assert release.notes("1.2", changelog) is None
    assert release.notes("Unreleased", changelog) is None


@pytest.mark.parametrize("path", built("*.whl"))
def test_a_wheel(path: Path) -> None:
    with zipfile.ZipFile(path) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    info = f"ggtok-{VERSION}.dist-info"
    modules = [name for name in contents if MODULE.fullmatch(name)]
    assert len(modules) == 1
    assert contents.keys() >= FILES
    others = [name for name in contents if not name.startswith(("ggtok/", f"{info}/"))]
    assert others == [f"ggtok-{VERSION}.data/data/share/man/man1/ggtok.1"]
    assert not [name for name in contents if re.search(r"__pycache__|\.py[co]$|(^|/)tests?/|\.rs$", name)]
    assert not FOLDERS.findall(contents[modules[0]])

    assert contents[f"{info}/licenses/LICENSE"] == (ROOT / "LICENSE").read_bytes()
    assert contents[f"{info}/licenses/THIRD-PARTY-NOTICES.md"] == (ROOT / "THIRD-PARTY-NOTICES.md").read_bytes()
    # The SBOM has the crates of the wheel's platform, the notices those of all.
    listed = contents[f"{info}/sboms/ggtok-python.cyclonedx.json"].decode()
    for crate in CRATES:
        text = (ROOT / "rust" / crate / "Cargo.toml").read_text(encoding="utf-8")
        assert not [name for name in tomllib.loads(text)["dependencies"] if f'"{name}"' not in listed]

    metadata = Parser().parsestr(contents[f"{info}/METADATA"].decode())
    assert metadata["Version"] == VERSION
    assert metadata["License-Expression"] == PROJECT["license"]
    assert metadata.get_all("License-File") == PROJECT["license-files"]
    assert {url.split(",")[0] for url in metadata.get_all("Project-URL", [])} == PROJECT["urls"].keys()


@pytest.mark.parametrize("path", built("*.whl"))
def test_the_tag_of_a_wheel_for_linux(path: Path, tmp_path: Path) -> None:
    """The module needs nothing that the oldest system of its tag lacks.

    A module for musl asks for `libc.so`, which musl's loader takes to mean itself; auditwheel knows only Alpine's name.
    It searches an empty folder, because this machine's `libc.so` may be a script for linkers.
    """
    pytest.importorskip("auditwheel")
    if "linux" not in path.name:
        pytest.skip("not for Linux")
    command = [sys.executable, "-m", "auditwheel", "show", "--json", "--ldpaths", str(tmp_path), str(path)]
    shown = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    assert shown["sym_tag"] in path.stem.split("-")[-1].split(".")
    assert shown["external_libs"].keys() <= ({"libc.so"} if "musllinux" in path.name else set())


@pytest.mark.parametrize("path", built("*.tar.gz"))
def test_the_source_distribution(path: Path) -> None:
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    needed = {
        "Cargo.toml",
        "Cargo.lock",
        "pyproject.toml",
        "README.md",
        "LICENSE",
        "THIRD-PARTY-NOTICES.md",
        "PKG-INFO",
    }
    assert names >= needed | {f"python/{name}" for name in FILES}
    sources = {
        source.relative_to(ROOT).as_posix()
        for folder in (*(f"rust/{crate}/src" for crate in CRATES), "python/ggtok", "tests", "scripts")
        for source in (ROOT / folder).rglob("*")
        if source.is_file() and source.suffix in {".rs", ".py", ".pyi", ".gguf", ".txt", ".json"}
    }
    assert sources - names == set()
    assert not [name for name in names if re.search(r"__pycache__|\.so$|\.py[co]$|^(target|benches|\.)", name)]
    assert path.stat().st_size < 4 << 20
