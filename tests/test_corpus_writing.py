"""The files of a corpus: each format as its own package writes and reads it, and what a full disk leaves."""

from __future__ import annotations

import csv
import errno
import gc
import gzip
import hashlib
import io
import os
import re
import shutil
import struct
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any, get_args

import numpy as np
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xxhash
from ggtok.corpus.blocks import IDS, MASK, ROW, SOURCE
from ggtok.corpus.packing import Packer
from ggtok.corpus.settings import Format, Writing
from ggtok.corpus.writing import ShardWriter, parquet, tables, writer_of
from ggtok.corpus.writing.shard_files import ShardFiles, Written
from ggtok.errors import CorpusError
from ggtok.tokenizer.files import PART
from hypothesis import given
from hypothesis import strategies as st
from shard_rows import rows_of

FORMATS: tuple[Format, ...] = get_args(Format)
MASKED = [format for format in FORMATS if format != "megatron"]
VOCAB_SIZE = 70_000
DOCUMENTS = [[], [1, 2, 3], [69_999], [], [], list(range(500)), [7] * 17, [0], []]
"""Empty documents first, last and together."""

Documents = list[list[int]]


def column(docs: Documents, kind: pa.DataType | None = None) -> pa.Array:
    return pa.array(docs, pa.list_(kind or pa.int32()))


def masks(docs: Documents) -> Documents:
    return [[token % 2 for token in doc] for doc in docs]


def table(docs: Documents, **columns: Any) -> pa.Table:
    own = {
        IDS: column(docs),
        MASK: column(masks(docs), pa.int8()),
        ROW: pa.array(range(1, len(docs) + 1), pa.int64()),
        SOURCE: pa.array(["a,b.jsonl"] * len(docs), pa.string()),
    }
    return pa.table(own | columns)


def open_writer(files: ShardFiles, writing: Writing) -> ShardWriter:
    return writer_of(writing.format)(files, writing)


def write(
    folder: Path, whole: pa.Table, format: Format, *cuts: int, name: str = "shard", **settings: Any
) -> list[Written]:
    with ShardFiles(folder, name) as files:
        writer = open_writer(files, Writing(format, **({"vocab_size": VOCAB_SIZE} | settings)))
        for start, end in pairwise([0, *sorted(cuts), len(whole)]):
            writer.write(whole.slice(start, end - start))
        writer.close()
        return files.commit()


def packed(docs: Documents, length: int, pad_id: int) -> pa.Table:
    sequences: list[pa.Table] = []
    packer = Packer(length, pad_id, sequences.append)
    packer.push(table(docs))
    packer.flush()
    return pa.concat_tables(sequences)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


# All formats


@pytest.mark.parametrize("format", FORMATS)
def test_every_document_once_and_in_order(tmp_path: Path, format: Format) -> None:
    written = write(tmp_path, table(DOCUMENTS), format, 2, 2, 5, assistant_mask=format in MASKED)
    has_empty = format != "flat"
    assert rows_of(tmp_path / "shard", format) == [doc for doc in DOCUMENTS if doc or has_empty]
    assert writer_of(format).has_masks is (format in MASKED)
    if format in MASKED:
        assert rows_of(tmp_path / "shard", format, MASK) == [mask for mask in masks(DOCUMENTS) if mask or has_empty]
    described = {(name, len(data), xxhash.xxh3_128(data).hexdigest()) for name, data in contents(tmp_path).items()}
    assert {(file.name, file.size, file.xxh128) for file in written} == described


@pytest.mark.parametrize("format", FORMATS)
@given(data=st.data())
def test_bytes_do_not_depend_on_how_documents_come(tmp_path_factory: Any, format: Format, data: st.DataObject) -> None:
    docs = data.draw(st.lists(st.lists(st.integers(0, VOCAB_SIZE - 1), max_size=9), max_size=40))
    flags = data.draw(st.lists(st.sampled_from([True, False, None]), min_size=len(docs), max_size=len(docs)))
    names = pa.array([None if flag is None else f'"{number}", é' for number, flag in enumerate(flags)], pa.string())
    whole = table(docs, name=names, flag=pa.array(flags, pa.bool_()), lists=column(docs, pa.int64()))
    settings: dict[str, Any] = {"assistant_mask": format in MASKED, "id_column": "name"}
    if format in ("parquet", "arrow"):
        settings |= {"columns": ("flag", "lists"), "attention_mask": True}
    found = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "GROUP_BYTES", 300)
        for cuts in ([], data.draw(st.lists(st.integers(0, len(docs)), max_size=5))):
            folder = tmp_path_factory.mktemp("shard")
            write(folder, whole, format, *cuts, **settings)
            found.append(contents(folder))
            shutil.rmtree(folder)
    assert found[0] == found[1]


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("docs", [[], [[]], [[], []]], ids=["none", "one empty", "two empty"])
def test_nothing_to_write(tmp_path: Path, format: Format, docs: Documents) -> None:
    write(tmp_path, table(docs), format)
    assert rows_of(tmp_path / "shard", format) == ([] if format == "flat" else docs)


@pytest.mark.parametrize("format", FORMATS)
def test_no_table_at_all(tmp_path: Path, format: Format) -> None:
    files = ShardFiles(tmp_path, "shard")
    open_writer(files, Writing(format, VOCAB_SIZE)).close()
    files.commit()
    assert rows_of(tmp_path / "shard", format) == []


@pytest.mark.parametrize(
    ("format", "most_of_16_bits", "suffix", "wide"),
    [("megatron", 65_499, ".bin", "<i4"), ("datatrove", 65_536, ".ds", "<u4"), ("flat", 65_536, ".npy", "<u4")],
)
def test_bits_of_a_token(tmp_path: Path, format: Format, most_of_16_bits: int, suffix: str, wide: str) -> None:
    for vocab_size, dtype in ((most_of_16_bits, "<u2"), (most_of_16_bits + 1, wide)):
        write(tmp_path, table([[0, vocab_size - 1], [1]]), format, vocab_size=vocab_size)
        found = np.fromfile(tmp_path / f"shard{suffix}", dtype)
        assert found.tolist() == [0, vocab_size - 1, 1]


# Parquet and Arrow


def test_tables_as_others_read_them(tmp_path: Path) -> None:
    names = pa.array(["a", None, *"cdefghi"])
    whole = table(DOCUMENTS, id=names, kind=names.dictionary_encode(), more=pa.array([{"x": 1}] * 9), unused=names)
    settings: dict[str, Any] = {"columns": ("id", "kind", "more"), "attention_mask": True}
    for format in ("parquet", "arrow"):
        write(tmp_path, whole, format, 4, assistant_mask=True, **settings)
    expected = {
        IDS: DOCUMENTS,
        "attention_mask": [[1] * len(doc) for doc in DOCUMENTS],
        MASK: masks(DOCUMENTS),
        "id": names.to_pylist(),
        "kind": names.to_pylist(),
        "more": [{"x": 1}] * 9,
    }
    found = pq.read_table(tmp_path / "shard.parquet")
    assert found.to_pydict() == expected
    assert list(expected) == found.column_names
    assert found.schema.field(IDS).type == pa.list_(pa.int32())
    assert found.schema.field(MASK).type == pa.list_(pa.int8())
    with pa.memory_map(str(tmp_path / "shard.arrow")) as source:
        assert pa.ipc.open_file(source).read_all().to_pydict() == expected
    assert polars.read_parquet(tmp_path / "shard.parquet").to_dict(as_series=False) == expected
    assert polars.read_ipc(tmp_path / "shard.arrow").to_dict(as_series=False) == expected


@pytest.mark.parametrize("format", ["parquet", "arrow"])
def test_datasets_reads_them(tmp_path: Path, format: Format) -> None:
    datasets = pytest.importorskip("datasets", reason="datasets is not installed")
    write(tmp_path, table(DOCUMENTS), format)
    rows = datasets.load_dataset(
        format, data_files=str(tmp_path / f"shard.{format}"), split="train", cache_dir=str(tmp_path / "cache")
    )
    assert rows[IDS][:] == DOCUMENTS


@pytest.mark.parametrize("format", ["parquet", "arrow"])
@pytest.mark.parametrize("compression", ["zstd", "lz4", "snappy", "none"])
def test_compression(tmp_path: Path, format: Format, compression: str) -> None:
    docs = [[7] * 10_000]
    if (format, compression) == ("arrow", "snappy"):  # which `build` refuses
        return
    (written,) = write(tmp_path, table(docs), format, compression=compression)
    assert (written.size < 20_000) == (compression != "none")
    assert rows_of(tmp_path / "shard", format) == docs


def test_masks_take_few_bytes_in_parquet(tmp_path: Path) -> None:
    """Parquet has no integers of 8 bits: as they are, a mask would take 32 for each token."""
    docs = [list(range(50_000))]
    (without,) = write(tmp_path, table(docs), "parquet")
    (with_masks,) = write(tmp_path, table(docs), "parquet", attention_mask=True, assistant_mask=True)
    assert with_masks.size - without.size < 50_000 / 2


def test_groups_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Row groups and record batches end before they are too large. Only one document may be larger."""
    monkeypatch.setattr(tables, "GROUP_BYTES", 1000)
    docs = [[1] * 100, [2] * 100, [3] * 100, [4] * 5000, [5] * 10, [6] * 300, [], []]
    texts = pa.array(["", "", "", "", "x" * 900, "", "", ""])
    for format in ("parquet", "arrow"):
        write(tmp_path, table(docs, text=texts), format, 1, 4, columns=("text",))
    groups = pq.ParquetFile(tmp_path / "shard.parquet").metadata
    assert [groups.row_group(number).num_rows for number in range(groups.num_row_groups)] == [2, 1, 1, 1, 1, 2]
    with pa.memory_map(str(tmp_path / "shard.arrow")) as source:
        file = pa.ipc.open_file(source)
        assert [len(file.get_batch(number)) for number in range(file.num_record_batches)] == [2, 1, 1, 1, 1, 2]


def test_column_that_changes_its_type(tmp_path: Path) -> None:
    files = ShardFiles(tmp_path, "shard")
    writer = open_writer(files, Writing("parquet", VOCAB_SIZE, columns=("x",)))
    writer.write(table([[1]], x=pa.array([5])))
    writer.write(table([[1]], x=pa.array([None])))
    writer.write(table([[1]], x=pa.array(["6"])))
    with pytest.raises(CorpusError, match="column 'x' is string here, and int64 in documents before"):
        writer.write(table([[1]], x=pa.array(["seven"])))
    files.discard()


def test_document_too_long_for_parquet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "MOST_TOKENS", 100)
    write(tmp_path, table([[1] * 100]), "parquet")
    with pytest.raises(CorpusError, match="this document has 101 tokens, and Parquet takes at most 100"):
        write(tmp_path, table([[1], [1] * 101]), "parquet")
    write(tmp_path, table([[1] * 101]), "arrow")


def test_carried_column_that_parquet_does_not_have(tmp_path: Path) -> None:
    spans = pa.array([(1, 2, 3)], pa.month_day_nano_interval())
    with pytest.raises(CorpusError, match=r"shard: parquet cannot hold this: Unhandled type.*interval"):
        write(tmp_path, table([[1]], x=spans), "parquet", columns=("x",))
    assert contents(tmp_path) == {}


def test_null_instead_of_tokens(tmp_path: Path) -> None:
    whole = table([[1]]).set_column(0, IDS, pa.array([None], pa.list_(pa.int32())))
    with pytest.raises(CorpusError, match="null"):
        write(tmp_path, whole, "megatron")


@pytest.mark.parametrize("format", ["parquet", "arrow"])
def test_packed(tmp_path: Path, format: Format) -> None:
    files = ShardFiles(tmp_path, "shard")
    writer = open_writer(files, Writing(format, VOCAB_SIZE, attention_mask=True, assistant_mask=True, pack=8, pad_id=9))
    writer.write(packed([[1] * 3, [2] * 9, [3] * 4], 8, 9))
    writer.close()
    files.commit()
    path = tmp_path / f"shard.{format}"
    rows = polars.read_parquet(path) if format == "parquet" else polars.read_ipc(path)
    assert rows.to_dict(as_series=False) == {
        IDS: [[1, 1, 1, 2, 3, 3, 3, 3], [2] * 8],
        "attention_mask": [[1] * 8, [1] * 8],
        "cu_seqlens": [[0, 3, 4, 8], [0, 8]],
        MASK: [[1, 1, 1, 0, 1, 1, 1, 1], [0] * 8],
    }
    assert rows_of(tmp_path / "shard", format) == [[1] * 3, [2], [3] * 4, [2] * 8]
    assert rows_of(tmp_path / "shard", format, MASK) == [[1] * 3, [0], [1] * 4, [0] * 8]


def test_attention_mask_of_padding(tmp_path: Path) -> None:
    write(tmp_path, packed([[1], [2, 2, 2], [3, 3]], 4, 9), "parquet", attention_mask=True, pack=4, pad_id=9)
    found = pq.read_table(tmp_path / "shard.parquet")
    assert found["attention_mask"].to_pylist() == [[1, 1, 1, 1], [1, 1, 0, 0]]
    assert found.schema.metadata[b"ggtok"] == b'{"pack": 4, "pad_id": 9}'


# Megatron


@pytest.mark.parametrize("vocab_size", [60_000, VOCAB_SIZE])
def test_megatron_as_its_own_builder(tmp_path: Path, vocab_size: int) -> None:
    """The bytes of `IndexedDatasetBuilder.add_document(doc, [len(doc)] if doc else [])`, of megatron-core 0.16.1."""
    docs = [[token % vocab_size for token in doc] for doc in DOCUMENTS]
    write(tmp_path, table(docs), "megatron", 3, vocab_size=vocab_size)
    code, letter, itemsize = (8, "H", 2) if vocab_size < 65_500 else (4, "i", 4)
    lengths = [len(doc) for doc in docs if doc]
    starts = [itemsize * sum(lengths[:number]) for number in range(len(lengths))]
    documents = [sum(map(bool, docs[:number])) for number in range(len(docs) + 1)]
    index = b"MMIDIDX\x00\x00" + struct.pack("<QBQQ", 1, code, len(lengths), len(documents))
    index += struct.pack(f"<{len(lengths)}i{len(starts)}q{len(documents)}q", *lengths, *starts, *documents)
    assert (tmp_path / "shard.idx").read_bytes() == index
    flat = [token for doc in docs for token in doc]
    assert (tmp_path / "shard.bin").read_bytes() == struct.pack(f"<{len(flat)}{letter}", *flat)


# datatrove


@pytest.mark.parametrize("vocab_size", [60_000, VOCAB_SIZE])
def test_datatrove_as_its_own_package(tmp_path: Path, vocab_size: int) -> None:
    """The bytes that its `TokenizedFile` writes, and what the functions of its merger read."""
    tokenizer = pytest.importorskip("datatrove.pipeline.tokens.tokenizer", reason="datatrove is not installed")
    from datatrove.pipeline.tokens.merger import get_data_reader, load_doc_ends  # type: ignore[import-untyped]

    docs = [[token % vocab_size for token in doc] for doc in DOCUMENTS]
    own, ours = tmp_path / "own", tmp_path / "ours"
    ours.mkdir()
    itemsize = 2 if vocab_size < 65_536 else 4
    file = tokenizer.TokenizedFile(
        str(own),
        "shard.ds",
        save_loss_metadata=True,
        tokenizer_name_or_path="a model_of two lines",
        save_final_metadata=True,
        token_size=itemsize,
    )
    for doc, mask in zip(docs, masks(docs), strict=True):
        file.write(doc, np.array(mask))
    file.close()
    settings: dict[str, Any] = {"assistant_mask": True, "tokenizer_name": "a model|of two lines"}
    write(ours, table(docs), "datatrove", 5, vocab_size=vocab_size, **settings)
    assert contents(ours) == contents(own)
    ends = load_doc_ends((ours / "shard.ds.index").open("rb"))
    found = get_data_reader((ours / "shard.ds").open("rb"), ends, itemsize)
    assert [np.frombuffer(data, f"<u{itemsize}").tolist() for data in found] == docs


ROUNDED = {0: "0.00 T", 999: "999 T", 1000: "1.00 kT", 9_994: "9.99 kT", 9_999: "10.0 kT", 99_949: "99.9 kT"}
ROUNDED |= {99_950: "100 kT", 999_500: "1.00 MT", 10**9 - 1: "1.00 GT", 5 * 10**12: "5.00 TT"}


@pytest.mark.parametrize("number", ROUNDED)
def test_datatrove_rounds_as_humanize(number: int) -> None:
    from ggtok.corpus.writing.datatrove import rounded

    assert rounded(number) == ROUNDED[number]
    humanize = pytest.importorskip("humanize", minversion="4.17", reason="datatrove is not installed")
    assert ROUNDED[number] == humanize.metric(number, unit="T")


# nanoGPT, dolma and OLMo-core


def test_flat_index_as_csv_writes_it(tmp_path: Path) -> None:
    names = ["", "plain", 'quo"te', "com,ma", None, "é", "ends", "x", "y"]
    write(tmp_path, table(DOCUMENTS, name=pa.array(names)), "flat", 4, id_column="name", assistant_mask=True)
    expected, start = io.StringIO(), 0
    rows = csv.writer(expected)
    for row, (doc, name) in enumerate(zip(DOCUMENTS, names, strict=True), 1):
        if doc:
            rows.writerow([start, start + len(doc), name or "", "a,b.jsonl", row])
        start += len(doc)
    index = (tmp_path / "shard.csv.gz").read_bytes()
    assert gzip.decompress(index).decode() == expected.getvalue()
    assert index[3:8] == bytes(5), "the index has a name or a time"
    flat = [token for doc in DOCUMENTS for token in doc]
    assert np.memmap(tmp_path / "shard.npy", np.uint32, "r").tolist() == flat
    assert np.memmap(tmp_path / "shard.mask", np.bool_, "r").tolist() == [bool(token % 2) for token in flat]


def test_flat_ids_of_dolma(tmp_path: Path) -> None:
    sources = pa.array(["b.jsonl", "a.jsonl", "b.jsonl"])
    write(tmp_path, table([[1], [2, 3], [4]]).set_column(3, SOURCE, sources), "flat")
    hashes = [hashlib.sha256(name.encode()).hexdigest() for name in sources.to_pylist()]
    lines = gzip.decompress((tmp_path / "shard.csv.gz").read_bytes()).decode().split("\r\n")
    assert lines == [
        f"0,1,{hashes[0]}-1,b.jsonl,1",
        f"1,3,{hashes[1]}-2,a.jsonl,2",
        f"3,4,{hashes[2]}-3,b.jsonl,3",
        "",
    ]


def test_flat_ids_that_cannot_be(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=r"a,b\.jsonl, row 2: column 'x' has a line break"):
        write(tmp_path, table([[1], [2]], x=pa.array(["fine", "two\nlines"])), "flat", id_column="x")
    with pytest.raises(CorpusError, match="column 'x' is struct<y: int64>, which cannot be an id"):
        write(tmp_path, table([[1]], x=pa.array([{"y": 1}])), "flat", id_column="x")
    write(tmp_path, table([[1]], x=pa.array([17])), "flat", id_column="x", name="numbers")
    assert gzip.decompress((tmp_path / "numbers.csv.gz").read_bytes()) == b'0,1,17,"a,b.jsonl",1\r\n'


# The page on the formats

PAGE = (Path(__file__).parents[1] / "docs/corpus.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(?!>>> )(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
LARGE = {"datasets": "datasets", "megatron": "megatron", "datatrove": "torch", "olmo_core": "olmo_core", "trl": "trl"}
"""Packages that the tests do not install, and what each of them needs."""


@pytest.mark.parametrize("block", BLOCKS, ids=[re.findall(r"(?:import|from) (\w+)", block)[-1] for block in BLOCKS])
def test_code_of_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: str) -> None:
    for package, needed in LARGE.items():
        if f"from {package}" in block:
            pytest.importorskip(needed, reason=f"{package} is not installed")
    monkeypatch.chdir(tmp_path)
    for folder in ("corpus", "packed"):
        Path(folder).mkdir()
    for format in FORMATS:
        write(Path("corpus"), table(DOCUMENTS), format, name="00000")
        write(Path("corpus"), table([[7, 7, 7]]), format, name="val-00000")  # which nothing trains on
    write(Path("packed"), packed(DOCUMENTS, 1024, 0), "parquet", name="00000", pack=1024, pad_id=0)
    names: dict[str, Any] = {}
    exec(block, names)
    if "documents" in names:
        has_empty = any(word in block for word in ("corpus/[0-9]*.parquet", ".ds.index"))
        assert [list(ids) for ids in names["documents"]] == [doc for doc in DOCUMENTS if doc or has_empty]
    if "positions" in names:
        assert names["positions"].tolist() == [place for doc in DOCUMENTS for place in range(len(doc))]
    assert {"documents", "dataset", "Trainer"} & set(names)


def test_figures_of_the_page() -> None:
    """The limits in its table are those of the writers."""
    assert f"{parquet.MOST_TOKENS // 1_000_000} million tokens" in PAGE.replace("\n", " ")
    assert f"at most {tables.GROUP_BYTES >> 20} MiB" in PAGE


# Files and their errors


def test_parts_until_all_are_complete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = ShardFiles(tmp_path, "shard")
    for suffix in (".bin", ".idx"):
        assert files.open(suffix).write(b"data") == 4
    parts = sorted(contents(tmp_path))
    assert len(parts) == 2
    assert all(map(PART.fullmatch, parts))
    synced = []

    def fail(descriptor: int) -> None:
        synced.append(descriptor)
        if len(set(synced)) == 2:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(CorpusError, match=r"shard\.idx: this cannot be written: Input/output error"):
        files.commit()
    assert sorted(contents(tmp_path)) == parts
    files.discard()
    assert contents(tmp_path) == {}


def test_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=r"shard\.parquet: this cannot be written: No such file or directory"):
        write(tmp_path / "nowhere", table(DOCUMENTS), "parquet")


@pytest.mark.parametrize("format", FORMATS)
def test_discarded_while_it_is_written(tmp_path: Path, format: Format) -> None:
    files = ShardFiles(tmp_path, "shard")
    writer = open_writer(files, Writing(format, VOCAB_SIZE))
    writer.write(table(DOCUMENTS))
    files.discard()
    del writer
    gc.collect()  # what pyarrow and gzip write when they are collected must not fail
    assert contents(tmp_path) == {}


FULL_DISK = """
import resource, sys
from pathlib import Path
import numpy as np
import pyarrow as pa
from ggtok.corpus.settings import Writing
from ggtok.corpus.writing import writer_of
from ggtok.corpus.writing.shard_files import ShardFiles
from ggtok.errors import CorpusError

resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, resource.RLIM_INFINITY))
rng = np.random.default_rng(1)
offsets = np.arange(0, (1 << 16) + 1, 16, dtype=np.int32)
table = pa.table({
    "input_ids": pa.ListArray.from_arrays(offsets, rng.integers(0, 70000, 1 << 16, np.int32)),
    "ggtok:row": pa.array(range(len(offsets) - 1)),
    "ggtok:source": pa.array(["a"] * (len(offsets) - 1)),
})
for format in sys.argv[2:]:
    try:
        with ShardFiles(Path(sys.argv[1]), format) as files:
            writer = writer_of(format)(files, Writing(format, 70000))
            for _ in range(40):
                writer.write(table)
            writer.close()
            files.commit()
    except CorpusError as error:
        print(error)
print(sorted(path.name for path in Path(sys.argv[1]).iterdir()))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit for the size of a file")
def test_full_disk(tmp_path: Path) -> None:
    """A limit for the size of a file stands in for the disk: the operating system refuses to write."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-X", "dev", "-c", FULL_DISK, str(tmp_path), *FORMATS],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    *messages, left = done.stdout.splitlines()
    suffixes = (".parquet", ".arrow", ".bin", ".ds", ".npy")
    for format, suffix, message in zip(FORMATS, suffixes, messages, strict=True):
        problem = "this cannot be written: File too large. Fix that, then run the same command to continue"
        assert message == f"{format}{suffix}: {problem}"
    assert left == "[]"
