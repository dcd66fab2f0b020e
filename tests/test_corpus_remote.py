"""Corpora from object stores: fsspec's memory, and S3 as moto's server has it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from ggtok.corpus import build, info, verify
from ggtok.corpus.sources import inputs
from ggtok.errors import CorpusError, DependencyError
from test_corpus_continuing import PLAIN, contents, ids_of, rows, write_rows

fsspec = pytest.importorskip("fsspec")

ONE: dict[str, Any] = {**PLAIN, "threads": 1}
"""fsspec's memory has one position in a file for all threads."""


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    (tmp_path / "in").mkdir()
    found = [write_rows(tmp_path / "in" / name, rows(name, 4000)) for name in ("a.jsonl", "b.jsonl.gz")]
    pq.write_table(pa.table({"text": rows("c", 4000)}), tmp_path / "in" / "c.parquet", row_group_size=500)
    feather.write_feather(pa.table({"text": rows("d", 1000)}), str(tmp_path / "in" / "d.arrow"), chunksize=200)
    return [*found, tmp_path / "in" / "c.parquet", tmp_path / "in" / "d.arrow"]


@pytest.fixture
def memory(files: list[Path]) -> Iterator[str]:
    """The URL of a folder in memory with these files."""
    store = fsspec.filesystem("memory")
    for file in files:
        store.pipe(f"/bucket/{file.name}", file.read_bytes())
    yield "memory://bucket"
    store.rm("/bucket", recursive=True)


def test_inputs_on_a_store_are_the_same_as_files(tmp_path: Path, files: list[Path], memory: str) -> None:
    build(files, tmp_path / "expected", **ONE)
    for name, sources in (
        ("folder", [memory]),
        ("files", [f"{memory}/{file.name}" for file in files]),
        ("patterns", [f"{memory}/{pattern}" for pattern in ("*.jsonl", "*.gz", "*c.p*", "d*")]),
    ):
        build(sources, tmp_path / name, **ONE)
        assert ids_of(tmp_path / name) == ids_of(tmp_path / "expected")
        assert verify(tmp_path / name, sample=None).problems == []
    before = contents(tmp_path / "folder")
    build([memory], tmp_path / "folder", **ONE)
    assert contents(tmp_path / "folder") == before
    assert [source.name for source in info(tmp_path / "folder").sources] == [
        f"memory:///bucket/{file.name}" for file in files
    ]
    parts = [build([memory], tmp_path / f"{n}", **ONE, part=(n, 2)).documents for n in (1, 2)]
    assert sum(parts) == 13000


def test_what_is_wrong_with_a_url_is_said(tmp_path: Path, memory: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for source, error, message in (
        (f"{memory}/none.jsonl", CorpusError, "no file has this name"),
        (f"{memory}/*.zip", CorpusError, "none matches it"),
        ("foo://bucket/a.jsonl", CorpusError, "foo"),
        ("adl://host/a.jsonl", DependencyError, r"pip install 'ggtok\[remote\]'"),
    ):
        with pytest.raises(error, match=message):
            inputs([source])
    with pytest.raises(CorpusError, match="named twice"):
        inputs([f"{memory}/a.jsonl", f"{memory}/a.jsonl"])


def test_a_file_of_a_store_that_changes_or_goes(tmp_path: Path, memory: str) -> None:
    build([memory], tmp_path / "out", **ONE)
    store = fsspec.filesystem("memory")
    store.rm("/bucket/d.arrow")
    found = verify(tmp_path / "out")
    assert found.problems == []
    assert any("d.arrow" in note for note in found.notes)
    store.pipe("/bucket/a.jsonl", b'{"text": "another"}\n')
    with pytest.warns(UserWarning, match=r"a\.jsonl"):
        assert build([memory], tmp_path / "out", **ONE).documents == 8001


@pytest.fixture(scope="module")
def s3() -> Iterator[dict[str, Any]]:
    """The environment of a process that uses moto's S3, which this machine has for the test."""
    moto = pytest.importorskip("moto.server", reason="moto is not installed: pip install 'moto[server,s3]'")
    server = moto.ThreadedMotoServer(port=0)
    server.start()
    _, port = server.get_host_and_port()
    environment = {
        "AWS_ACCESS_KEY_ID": "a",
        "AWS_SECRET_ACCESS_KEY": "b",
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    yield environment
    server.stop()


@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
def test_s3_with_kills(tmp_path: Path, files: list[Path], s3: dict[str, Any]) -> None:
    pytest.importorskip("s3fs", reason="s3fs is not installed: pip install s3fs")
    environment = {**os.environ, **s3}
    store = fsspec.filesystem("s3", key="a", secret="b", endpoint_url=s3["AWS_ENDPOINT_URL"])
    store.mkdir("bucket")
    for file in files:
        store.pipe(f"bucket/in/{file.name}", file.read_bytes())
    url = "s3://bucket/in"
    arguments = ("--builtin", "bpe", "--format", "megatron", "--shard-size", "64K")
    command = [sys.executable, "-m", "ggtok", "corpus", "build", url, *arguments, "-o"]
    whole = subprocess.run([*command, tmp_path / "whole"], env=environment, check=False, capture_output=True)
    assert whole.returncode == 0, whole.stderr.decode()
    for delay in (0.2, 0.5, 0.8, 1.1):
        process = subprocess.Popen([*command, tmp_path / "out"], env=environment, stdout=subprocess.DEVNULL)
        time.sleep(delay)
        process.send_signal(signal.SIGKILL)
        process.wait()
    subprocess.run([*command, tmp_path / "out"], env=environment, check=True, capture_output=True)
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")
    build(files, tmp_path / "local", **PLAIN)
    assert ids_of(tmp_path / "out") == ids_of(tmp_path / "local")
