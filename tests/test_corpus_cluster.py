"""Corpora of many jobs: lists of files, parts, several folders, progress for schedulers, and the recipe of the page."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import ggtok
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from ggtok.cli.progress import Bar
from ggtok.corpus import build, info
from test_corpus_continuing import BPE, LEAST, PLAIN, ids_of, rows, write_rows

PAGE = Path(__file__).parent.parent / "docs" / "corpus-engines.md"


def ggtok_corpus(*arguments: object, stdin: bytes = b"", code: int = 0, **environment: str) -> list[Any]:
    """The lines of JSON that a command prints."""
    done = subprocess.run(
        [sys.executable, "-m", "ggtok", "corpus", *map(str, arguments)],
        input=stdin,
        capture_output=True,
        check=False,
        env={**os.environ, **environment},
    )
    assert done.returncode == code, done.stderr.decode()
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Many short inputs, one with an odd name, and a long one of each kind that is cut."""
    folder = tmp_path_factory.mktemp("many")
    found = [write_rows(folder / f"{n:02}.jsonl", [f"document {n}"]) for n in range(37)]
    found.append(write_rows(folder / "with [a] space.jsonl", ["odd"]))
    found.append(write_rows(folder / "long.jsonl", rows("long", 6000)))
    pq.write_table(pa.table({"text": rows("parquet", 9000)}), folder / "long.parquet", row_group_size=300)
    return [*found, folder / "long.parquet"]


BUILD = ("--builtin", "bpe", "--format", "megatron", "--shard-size", "64K", "--json")


@pytest.mark.parametrize("separator", ["\n", "\0"])
def test_inputs_come_from_a_list(tmp_path: Path, many: list[Path], separator: str) -> None:
    listed = separator.join(map(str, many)) + separator
    (tmp_path / "list").write_text(listed)
    build(many, tmp_path / "expected", **PLAIN)
    for name, file in (("a", tmp_path / "list"), ("b", "-")):
        ggtok_corpus("build", "--files-from", file, "-o", tmp_path / name, *BUILD, stdin=listed.encode())
        assert ids_of(tmp_path / name) == ids_of(tmp_path / "expected")


@pytest.mark.parametrize("of", [1, 3, 50])
def test_parts_are_together_all_of_it(
    tmp_path: Path, many: list[Path], of: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(many[0].parent)
    many = [Path(path.name) for path in many]  # the names decide, and that of a temporary folder is never the same
    build(many, tmp_path / "whole", **PLAIN)
    folders = [tmp_path / str(number) for number in range(1, of + 1)]
    for number, folder in enumerate(folders, 1):
        build(many, folder, **PLAIN, part=(number, of))
    assert sorted(ids for folder in folders for ids in ids_of(folder)) == ids_of(tmp_path / "whole")
    if of == 3:
        assert all(info(folder).documents > 1000 for folder in folders)  # the long files are divided


def test_parts_of_a_shuffled_whole_lose_nothing(tmp_path: Path, many: list[Path]) -> None:
    packed = write_rows(tmp_path / "packed.jsonl.gz", rows("packed", 90_000))
    parts = [build([*many, packed], tmp_path / f"{n}", **PLAIN, shuffle=1, part=(n, 3)).documents for n in (1, 2, 3)]
    assert sum(parts) == 38 + 6000 + 9000 + 90_000


def test_parts_stay_when_inputs_are_added(tmp_path: Path, many: list[Path]) -> None:
    for number in (1, 2, 3):
        build(many[:20], tmp_path / str(number), **PLAIN, part=(number, 3))
        before = {file.name: file.read_bytes() for file in info(tmp_path / str(number)).files}
        build(many, tmp_path / str(number), **PLAIN, part=(number, 3))
        after = {file.name: file.read_bytes() for file in info(tmp_path / str(number)).files}
        assert before.items() <= after.items()
    assert sum(info(tmp_path / str(number)).documents for number in (1, 2, 3)) == 38 + 6000 + 9000


def test_several_folders_have_sums_and_gaps(tmp_path: Path, many: list[Path]) -> None:
    for number in (1, 2, 3):
        build(many, tmp_path / str(number), **PLAIN, part=(number, 3))
    folders = [tmp_path / "1", tmp_path / "2", tmp_path / "3"]
    [found] = ggtok_corpus("info", *folders, "--json")
    assert found["documents"] == 38 + 6000 + 9000
    assert len(ggtok_corpus("verify", *folders, "--json")) == 3
    assert "part 2 of 3 is missing" in ggtok_corpus("info", *folders[::2], "--json", code=1)[1]["problems"]
    assert (
        "part 1 of 3 is in 2 folders" in ggtok_corpus("info", *folders, tmp_path / "1", "--json", code=1)[1]["problems"]
    )
    build(many[:-1], tmp_path / "other", **PLAIN, part=(3, 3))
    [_, said] = ggtok_corpus("info", *folders[:2], tmp_path / "other", "--json", code=1)
    assert said["problems"] == ["the folders are not parts of the same number of parts of the same inputs"]
    build(many[:3], tmp_path / "a", **PLAIN)
    build(many[2:5], tmp_path / "b", **PLAIN | {"shard_size": None})
    [_, said] = ggtok_corpus("verify", tmp_path / "a", tmp_path / "b", "--json", code=1)[1:]
    assert said["problems"] == [f"{many[2]} is in 2 folders"]


def test_events_for_a_scheduler(tmp_path: Path, many: list[Path]) -> None:
    events = ggtok_corpus("build", *many, "-o", tmp_path / "out", *BUILD)
    assert [event["event"] for event in events] == ["start", *["shard"] * info(tmp_path / "out").shards, "end"]
    assert sum(event["documents"] for event in events[1:-1]) == events[-1]["documents"] == 38 + 6000 + 9000


def test_a_log_has_a_line_twice_a_minute(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    for logs, expected in (
        (True, ["ggtok: encoding 31% 10.3 MB/s 1:06 left", "ggtok: encoding 62% 10.3 MB/s 0:36 left"]),
        (False, []),
    ):
        now = 100.0
        bar = Bar(10**9, "encoding", logs)
        for _ in range(61):
            now += 1
            bar(10**7)
        err = capsys.readouterr().err
        assert len(err.splitlines()) == len(expected), err
        assert all("encoding" in line and "MB/s" in line and "left" in line for line in err.splitlines())


def recipe() -> str:
    """The page's program for a cluster without an engine."""
    section = PAGE.read_text().partition("## Without an engine")[2].partition("\n## ")[0]
    return re.search(r"```sh\n(.*?)```", section, re.DOTALL)[1]  # type: ignore[index]


@pytest.mark.skipif(os.name == "nt", reason="a shell script")
def test_the_recipe_for_an_array_of_jobs(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    names = [
        write_rows(tmp_path / "in" / f"{n:04} long name {'x' * 100}.jsonl", [f"document {n}"]) for n in range(3000)
    ]
    (tmp_path / "files.txt").write_text("".join(f"{name}\n" for name in names))
    shutil.copy(Path(ggtok.__file__).parent / "vocabularies" / "bpe.gguf", tmp_path / "model.gguf")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "ggtok").write_text(f'#!/bin/sh\nexec {sys.executable} -m ggtok "$@"\n')
    (tmp_path / "bin" / "ggtok").chmod(0o755)
    script = recipe().replace("/shared", str(tmp_path))
    script = script.replace("/1000", "/3")
    path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    for job in "123":
        subprocess.run(
            ["sh", "-ec", script],
            env={**os.environ, "PATH": path, "SLURM_ARRAY_TASK_ID": job},
            check=True,
            capture_output=True,
        )
    folders = [tmp_path / "tokens" / job for job in "123"]
    assert [len(ids_of(folder)) > 800 for folder in folders] == [True] * 3
    assert sorted(ids for folder in folders for ids in ids_of(folder)) == sorted(
        (*ids, BPE.vocab.eos_id) for ids in BPE.encode_batch([f"document {n}" for n in range(3000)]).tolist()
    )
    [check] = re.findall(r"```console\n\$ (ggtok corpus verify .*)\n", PAGE.read_text())
    check = check.replace("/shared", str(tmp_path))
    assert subprocess.run(["sh", "-c", check], env={**os.environ, "PATH": path}, check=False).returncode == 0
    shutil.rmtree(folders[1])
    assert subprocess.run(["sh", "-c", check], env={**os.environ, "PATH": path}, check=False).returncode == 1


def test_bad_names_of_parts_and_bounds(tmp_path: Path, many: list[Path]) -> None:
    for options in (
        ["--shard", "0/3"],
        ["--shard", "4/3"],
        ["--shard", "x"],
        ["--max-bad", "1%"],
        ["--shard", "1/2/3"],
    ):
        ggtok_corpus("build", many[0], "-o", tmp_path / "out", *BUILD, *options, code=2)
    ggtok_corpus("build", many[0], "-o", tmp_path / "out", *BUILD, "--skip-bad", "--max-bad", "x%", code=2)
    assert not (tmp_path / "out").exists()
    assert LEAST == 1 << 16
