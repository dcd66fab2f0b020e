"""Shuffling: every shard has documents of all inputs, compressed or not, from all of their length."""

from __future__ import annotations

import gzip
import json
import os
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from ggtok.corpus import build, plan, verify
from ggtok.corpus.reading.streams import FOLDER

KB = 1 << 10
LENGTHS = {"a": 3000, "b": 1500, "c": 1500}


@pytest.fixture
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Two compressed files, and one that is not, with documents of the same size."""
    monkeypatch.setattr(plan, "LEAST_PIECE", 4 * KB)
    chance = random.Random(1)
    paths = []
    for name, number in LENGTHS.items():
        noise = ["".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=200)) for _ in range(number)]
        rows = [{"text": text, "source": name, "place": at} for at, text in enumerate(noise)]
        data = "".join(json.dumps(row) + "\n" for row in rows).encode()
        paths.append(tmp_path / f"{name}.jsonl{'' if name == 'c' else '.gz'}")
        paths[-1].write_bytes(data if name == "c" else gzip.compress(data))
    return paths


def test_every_shard_has_documents_of_every_part_of_every_input(sources: list[Path], tmp_path: Path) -> None:
    options: dict[str, Any] = {"tokenizer": "bpe", "format": "parquet", "keep": ["source", "place"]}
    options |= {"shuffle": 7, "shard_size": 128 * KB}
    found = build(sources, tmp_path / "out", threads=1, **options)
    shards = [pq.read_table(path) for path in sorted((tmp_path / "out").glob("*.parquet"))]
    assert found.documents == sum(LENGTHS.values())
    rows = [(row["source"], int(row["place"])) for shard in shards for row in shard.to_pylist()]
    assert sorted(rows) == [(name, at) for name, number in LENGTHS.items() for at in range(number)]
    whole = [shard for shard in shards if len(shard) > 300]
    assert len(whole) >= 6
    for shard in whole:
        shares = Counter(shard["source"].to_pylist())
        for name, number in LENGTHS.items():
            assert abs(shares[name] / len(shard) - number / 6000) < 0.2, (name, shares)
        places = [int(row["place"]) for row in shard.to_pylist() if row["source"] == "a"]
        assert min(places) < 1000
        assert max(places) > 2000
        assert abs(sum(places) / len(places) - 1500) < 450

    build(sources, tmp_path / "again", threads=3, **options)
    for path in (tmp_path / "out").glob("*.parquet"):
        assert (tmp_path / "again" / path.name).read_bytes() == path.read_bytes()
    assert verify(tmp_path / "out", tokenizer="bpe", sample=None).problems == []


def test_a_chat_is_unpacked_for_all_processes(sources: list[Path], tmp_path: Path) -> None:
    talk = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "x" * 500}]
    data = "".join(json.dumps({"messages": talk, "n": n}) + "\n" for n in range(200)).encode()
    (tmp_path / "talk.jsonl.gz").write_bytes(gzip.compress(data))
    options: dict[str, Any] = {"tokenizer": "bpe", "format": "parquet", "messages": "messages", "keep": ["n"]}
    for threads in (1, 3):
        build([tmp_path / "talk.jsonl.gz"], tmp_path / str(threads), shuffle=1, threads=threads, **options)
    tables = [pq.read_table(tmp_path / threads / "00000.parquet") for threads in ("1", "3")]
    assert tables[0] == tables[1]
    assert sorted(map(int, tables[0]["n"].to_pylist())) == [*range(200)]
    assert tables[0]["n"].to_pylist() != [str(n) for n in range(200)]


def test_what_a_killed_process_unpacked_is_deleted_by_the_next(sources: list[Path], tmp_path: Path) -> None:
    code = """if True:
        import os, signal, sys
        from ggtok.corpus import build
        def progress(state):
            if state.phase == "encoding" and sys.argv[3] == "killed":
                os.kill(os.getpid(), signal.SIGKILL)
        options = {"tokenizer": "bpe", "format": "megatron", "shuffle": 7, "shard_size": 1 << 17}
        build([sys.argv[1]], sys.argv[2], progress=progress, **options)
    """
    folder = tmp_path / "temporary"
    folder.mkdir()
    own = {name: value for name, value in os.environ.items() if name != FOLDER}  # not the folder of this process
    for end, status, left in (("killed", -9, 1), ("killed", -9, 1), ("done", 0, 0)):
        command = [sys.executable, "-c", code, str(sources[0]), str(tmp_path / "out"), end]
        found = subprocess.run(command, env=own | {"TMPDIR": str(folder)}, check=False)
        assert found.returncode == status
        assert len([*folder.iterdir()]) == left


def test_progress_ends_at_all_bytes_of_the_files(sources: list[Path], tmp_path: Path) -> None:
    """What is unpacked is longer than its file, which is what progress counts."""
    seen: list[tuple[str, int, int | None]] = []
    build(
        sources,
        tmp_path / "out",
        tokenizer="bpe",
        format="parquet",
        shuffle=7,
        shard_size=128 * KB,
        threads=1,
        progress=lambda state: seen.append((state.phase, state.bytes, state.total_bytes)),
    )
    total = sum(path.stat().st_size for path in sources)
    assert {each[2] for each in seen} == {total}
    assert max(number for _, number, _ in seen) <= total
    assert seen[-1][0] == "encoding"
    assert 0.95 * total <= seen[-1][1]


@pytest.mark.parametrize(
    "options",
    [
        {"shuffle": 7},
        {"validation": 0.3},
        {"nulls": "skip"},
        {"skip_bad": True},
        {"max_length": 3, "too_long": "split"},
        {"max_length": 3, "too_long": "drop"},
    ],
    ids=str,
)
def test_kept_views(tmp_path: Path, options: dict[str, Any]) -> None:
    """pyarrow reads columns of views, which polars writes, but does not move their rows."""
    texts = [None if n % 9 == 0 else "some words " * (n % 5) for n in range(100)]
    notes = [f"the note of row {n}" for n in range(100)]
    tables = []
    for kind in (pa.string(), pa.string_view()):
        columns = [pa.array(texts), pa.array(notes, kind), pa.array([[note] for note in notes], pa.list_(kind))]
        table = pa.table(columns, ["text", "note", "notes"])
        with pa.ipc.new_file(tmp_path / "rows.arrow", table.schema) as file:
            file.write_table(table)
        out = tmp_path / str(kind)
        given = {"nulls": "empty", "tokenizer": "bpe", "format": "arrow", "keep": ["note", "notes"]} | options
        if "skip_bad" in options:
            given["nulls"] = "error"
        build([tmp_path / "rows.arrow"], out, **given)
        parts = [pa.ipc.open_file(path).read_all() for path in sorted(out.glob("*.arrow"))]
        tables.append([part.to_pylist() for part in parts])
    assert tables[0] == tables[1]
    assert sum(map(len, tables[0])) > 40
