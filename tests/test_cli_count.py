"""`ggtok count` of folders: the files that git would list, as a tree of tokens."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from conftest import TOKENIZERS
from ggtok.cli import main
from ggtok.cli.folders import Node, files_below
from terminals import on_terminal, shown

FILES = {
    ".gitignore": "*.log\n/build\n!keep.log\nsub/*.tmp\n",
    "a.txt": "a few words",
    "b.log": "left out",
    "keep.log": "kept",
    "build/out.txt": "left out",
    "sub/.gitignore": "!c.log\nd.txt\n# a comment\ndeep/\n",
    "sub/c.log": "kept",
    "sub/d.txt": "left out",
    "sub/e.tmp": "left out",
    "sub/build/f.txt": "kept",
    "sub/deep/g.txt": "left out",
    "sub/é ü.txt": "kept",
}
COUNT = ("count", "--builtin", "bpe")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / "work" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "work/logo.png").write_bytes(b"\x89PNG\0\0")
    return tmp_path / "work"


def counted(text: str) -> int:
    return TOKENIZERS["bpe"].count(text)


@pytest.mark.skipif(shutil.which("git") is None, reason="no git")
@pytest.mark.parametrize("start", ["", "sub"])
def test_the_files_are_those_of_git(folder: Path, start: str) -> None:
    subprocess.run(["git", "init", "-q", folder], check=True)
    listed = ["git", "ls-files", "-z", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=folder / start, check=True, capture_output=True).stdout.split(b"\0")[:-1]
    found = [os.path.relpath(path, folder / start) for path in files_below(str(folder / start))]
    assert sorted(map(os.fsencode, found)) == sorted(names)


def test_a_tree(capsys: pytest.CaptureFixture[str], folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    (folder / "link").symlink_to(folder)
    lines = shown(capsys, *COUNT, "-r").splitlines()
    kept = [name for name in FILES if FILES[name] != "left out"]
    total = sum(counted(FILES[name]) for name in kept)
    assert lines[0].split() == [str(total), "━" * 12 + "100%", "./"]
    assert len(lines) == len(kept) + 2 + 2  # folders, the picture
    assert [line.split()[-1] for line in lines if line.split()[0] == "binary"] == ["logo.png"]
    rows = [json.loads(line) for line in shown(capsys, *COUNT, "-r", "--json").splitlines()]
    assert {row["file"]: row["count"] for row in rows} == {
        **{f"./{name}": counted(FILES[name]) for name in kept},
        "./logo.png": None,
    }
    assert shown(capsys, *COUNT, "-r", str(folder)).splitlines()[0].endswith(f" {folder}/")
    colored = on_terminal(*COUNT, "-r", str(folder))
    assert "\x1b[34m━" in colored.raw
    assert "+" not in colored.text
    assert "|-- " in on_terminal(*COUNT, "-r", str(folder), PYTHONUTF8="0", PYTHONIOENCODING="ascii").text


def test_the_files_with_the_most_tokens(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    first, second, total = shown(capsys, *COUNT, "-r", "--top", "2", str(folder)).splitlines()
    kept = {name: counted(text) for name, text in FILES.items() if text != "left out"}
    names = sorted(kept, key=lambda name: -kept[name])[:2]
    assert [first.split(), second.split()] == [[str(kept[name]), str(folder / name)] for name in names]
    assert total.split() == [str(sum(kept.values())), "total"]


def test_names_that_end_with_null_bytes(
    capsys: pytest.CaptureFixture[str], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [str(folder / "a.txt"), str(folder / "sub/é ü.txt")]
    listed = b"".join(os.fsencode(name) + b"\0" for name in names)
    (folder / "list").write_bytes(listed)
    plain = shown(capsys, *COUNT, *names)
    assert shown(capsys, *COUNT, "--files0-from", str(folder / "list")) == plain
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(listed), isatty=lambda: False))
    assert shown(capsys, *COUNT, "--files0-from", "-") == plain
    (folder / "list").write_bytes(b"")
    assert shown(capsys, *COUNT, "--files0-from", str(folder / "list")) == ""
    assert "without -r" in shown(capsys, *COUNT, "-r", "--lines", code=2)


def test_an_empty_folder_and_a_deep_one(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert shown(capsys, *COUNT, "-r", str(tmp_path)).split() == ["0", "0%", "total"]
    tree = Node()
    tree.add("d/" * 2000 + "x", 2)
    assert [node.count for node, _ in tree.rows("")] == [2] * 2002


def test_a_folder_that_cannot_be_read_is_named(
    capsys: pytest.CaptureFixture[str], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scan = os.scandir

    def refuses(path: str) -> object:
        if path.endswith("sub"):
            raise PermissionError(13, "Permission denied", path)
        return scan(path)

    monkeypatch.setattr(os, "scandir", refuses)
    assert main([*COUNT, "-r", str(folder)]) == 1
    found = capsys.readouterr()
    assert found.err.startswith(f"ggtok: error: {folder}/sub: ")
    assert "a.txt" in found.out


def test_counting_a_text_loads_only_what_looks_at_its_name(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a few words")
    code = "import atexit, sys; atexit.register(lambda: print(*sys.modules)); from ggtok.cli import main; main()"
    command = [sys.executable, "-c", code, *COUNT, str(tmp_path / "a.txt")]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    parts = {name.split(".")[2] for name in result.stdout.split() if name.startswith("ggtok.corpus.")}
    assert parts == {"names", "packages", "remote", "settings", "shapes", "sources"}
