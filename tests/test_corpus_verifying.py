"""`verify`: what it finds in the files of a corpus, and what it takes as the same."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path
from typing import Any, get_args

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xxhash
from ggtok.corpus import build, verify
from ggtok.corpus.settings import Format
from ggtok.errors import CorpusError
from test_corpus_build import BPE, texts, write_jsonl


def test_verify_finds_tokens_of_another_text(tmp_path: Path) -> None:
    source = write_jsonl(tmp_path / "a.jsonl", [{"text": "one text"}, {"text": "another"}])
    build([source], tmp_path / "out", tokenizer="bpe", format="megatron")
    write_jsonl(source, [{"text": "one test"}, {"text": "another"}])
    found = verify(tmp_path / "out", tokenizer="bpe")
    assert not found.is_right
    assert found.problems == ["shard 00000: 00000.bin does not have the tokens or masks of its documents"]
    assert "another tokenizer" in verify(tmp_path / "out", tokenizer="spm").problems[0]
    source.unlink()
    found = verify(tmp_path / "out")
    assert "documents are not compared" in found.notes[0]
    assert found.problems == ["no document could be compared, because no input can be read"]
    assert verify(tmp_path / "out", sample=0).is_right
    (tmp_path / "out" / "vocabulary.gguf").unlink()
    with pytest.raises(CorpusError, match=r"it has no vocabulary\.gguf: give the tokenizer"):
        verify(tmp_path / "out")


@pytest.mark.parametrize("format", get_args(Format))
@pytest.mark.parametrize("options", [{}, {"shuffle": 1}, {"pack": 16, "trainer": "trl"}], ids=["", "shuffle", "pack"])
def test_verify_compares_every_format(tmp_path: Path, format: Any, options: dict[str, Any]) -> None:
    if "pack" in options and format not in ("parquet", "arrow"):
        return
    rows = [{"text": text} for text in texts(300, 1)]
    source = write_jsonl(tmp_path / "a.jsonl", rows)
    build([source], tmp_path / "out", tokenizer=BPE, format=format, **options)
    for sample in (1, 10, None):
        assert verify(tmp_path / "out", sample=sample).problems == []
    rows[-1]["text"] = rows[-1]["text"][::-1]
    write_jsonl(source, rows)
    (problem,) = verify(tmp_path / "out", sample=None).problems
    assert problem.endswith("does not have the tokens or masks of its documents")


@pytest.mark.parametrize("format", ["parquet", "arrow", "flat"])
def test_verify_takes_the_same_rows_of_another_arrow_or_zlib(tmp_path: Path, format: Any) -> None:
    source = write_jsonl(tmp_path / "a.jsonl", [{"text": text, "x": len(text)} for text in texts(300, 1)])
    keep = ["x"] if format != "flat" else []
    build([source], tmp_path / "out", tokenizer=BPE, format=format, keep=keep)
    path = tmp_path / "out" / {"parquet": "00000.parquet", "arrow": "00000.arrow", "flat": "00000.csv.gz"}[format]
    manifest, before = tmp_path / "out" / "manifest.json", path.read_bytes()

    def write_again(keeps: slice) -> None:
        if format == "flat":
            lines = gzip.decompress(before).splitlines(keepends=True)
            path.write_bytes(gzip.compress(b"".join(lines[keeps]), 9))
        elif format == "parquet":
            pq.write_table(pq.read_table(io.BytesIO(before))[keeps], path, row_group_size=70, compression="zstd")
        else:
            rows = pa.ipc.open_file(before).read_all()[keeps]
            with pa.ipc.new_file(path, rows.schema) as writer:
                writer.write_table(rows, 70)
        document = json.loads(manifest.read_text())
        for file in document["shards"][0]["files"]:
            if file["name"] == path.name:
                data = path.read_bytes()
                file |= {"size": len(data), "xxh128": xxhash.xxh3_128(data).hexdigest()}
        manifest.write_text(json.dumps(document))

    write_again(slice(None))
    assert path.read_bytes() != before
    for sample in (10, None):
        assert verify(tmp_path / "out", sample=sample).problems == []
    write_again(slice(-1))
    (problem,) = verify(tmp_path / "out", sample=None).problems
    assert problem == f"shard 00000: {path.name} does not have the tokens or masks of its documents"


@pytest.mark.parametrize("format", get_args(Format))
def test_verify_says_which_files_are_damaged(tmp_path: Path, format: Any) -> None:
    source = write_jsonl(tmp_path / "a.jsonl", [{"text": text} for text in texts(300, 1)])
    options: dict[str, Any] = {"max_length": 100, "too_long": "split", "overlap": 9}  # with masks
    built = build([source], tmp_path / "out", tokenizer=BPE, format=format, **options)
    for path in built.files:
        whole = path.read_bytes()
        for damaged in (whole[: len(whole) // 3], whole[:3], b"", None, whole + b"more", whole[:-9] + bytes(9)):
            path.unlink(missing_ok=True)
            if damaged is not None:
                path.write_bytes(damaged)
            for sample in (10, None):
                assert verify(tmp_path / "out", sample=sample).problems[0].startswith(f"{path.name} is ")
        path.write_bytes(whole)
    assert verify(tmp_path / "out", sample=None).problems == []


def test_verify_says_that_a_vocabulary_changes_texts(tmp_path: Path) -> None:
    source = write_jsonl(tmp_path / "a.jsonl", [{"text": "Naïve"}, {"text": "plain"}])
    build([source], tmp_path / "out", tokenizer="wordpiece", format="megatron")
    found = verify(tmp_path / "out", tokenizer="wordpiece")
    assert (found.problems, found.documents, found.decoded) == ([], 2, 0)
    assert found.changed is not None
    assert "comes back as" in found.changed
