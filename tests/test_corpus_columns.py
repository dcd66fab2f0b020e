"""The documents of Parquet and Arrow files: types, row groups and batches, nulls, damage, and memory."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from ggtok.corpus.blocks import BLOCK_SIZE, ROW, BadRow, Block
from ggtok.corpus.reading import read
from ggtok.corpus.settings import Reading
from ggtok.corpus.sources import Input, inputs
from ggtok.corpus.survey import surveyed
from ggtok.errors import CorpusError
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

TEXT = Reading()
Write = Callable[[Path, pa.Table, int], Path]


@pytest.fixture(autouse=True, scope="module")
def _memory_is_given_back() -> Iterator[None]:
    """pyarrow would keep 300 MB of the largest tables for the tests that follow in the same process."""
    yield
    pa.default_memory_pool().release_unused()


def as_parquet(folder: Path, table: pa.Table, rows: int = 1000) -> Path:
    pq.write_table(table, folder / "a.parquet", row_group_size=rows)
    return folder / "a.parquet"


def as_file(folder: Path, table: pa.Table, rows: int = 1000, **options: Any) -> Path:
    with pa.ipc.new_file(folder / "a.arrow", table.schema, options=pa.ipc.IpcWriteOptions(**options)) as file:
        file.write_table(table, rows)
    return folder / "a.arrow"


def as_stream(folder: Path, table: pa.Table, rows: int = 1000) -> Path:
    with pa.ipc.new_stream(folder / "b.arrow", table.schema) as file:
        file.write_table(table, rows)
    return folder / "b.arrow"


def as_compressed(folder: Path, table: pa.Table, rows: int = 1000) -> Path:
    return as_file(folder, table, rows, compression="zstd")


def as_feather(folder: Path, table: pa.Table, rows: int = 1000) -> Path:
    pyarrow.feather.write_feather(table, folder / "a.feather", chunksize=rows)
    return folder / "a.feather"


WRITERS = [as_parquet, as_file, as_stream, as_compressed, as_feather]
each_format = pytest.mark.parametrize("write", WRITERS)


def source_of(path: Path) -> Input:
    [source] = inputs([path])
    return source


def blocks_of(path: Path, reading: Reading = TEXT) -> list[Block]:
    blocks = list(read(source_of(path), 0, None, 1, reading))
    for block in blocks:
        block.table.validate(full=True)
    return blocks


def column(blocks: list[Block], name: str = "text") -> list[Any]:
    return [value for block in blocks for value in block.table[name].to_pylist()]


def bad_of(blocks: list[Block]) -> list[BadRow]:
    return [bad for block in blocks for bad in block.bad]


@each_format
def test_texts_rows_and_other_columns(tmp_path: Path, write: Write) -> None:
    texts, ids = [f"text {n}" for n in range(5000)], list(range(5000))
    table = pa.table({"other": ["x" * 100] * 5000, "id": ids, "text": texts, "deep": [{"a": 1}] * 5000})
    path = write(tmp_path, table, 700)
    blocks = blocks_of(path, Reading(columns=("id", "deep", "text")))
    assert blocks[0].table.column_names == ["text", "id", "deep", ROW]
    assert (column(blocks), column(blocks, "id"), column(blocks, "deep")) == (texts, ids, [{"a": 1}] * 5000)
    assert column(blocks, ROW) == list(range(1, 5001))
    assert 0.8 < sum(block.num_bytes for block in blocks) / path.stat().st_size <= 1


TEXT_TYPES = [
    *(pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(), pa.binary_view()),
    *(pa.dictionary(pa.int8(), pa.string()), pa.dictionary(pa.int32(), pa.large_binary())),
]


@pytest.mark.parametrize("write", [as_parquet, as_file, as_stream, as_compressed])
@pytest.mark.parametrize("kind", TEXT_TYPES, ids=str)
def test_types_of_texts(tmp_path: Path, write: Write, kind: pa.DataType) -> None:
    texts = ["a", "", "ä" * 20, None, "a"]
    blocks = blocks_of(write(tmp_path, pa.table({"text": pa.array(texts).cast(kind)}), 3), Reading(nulls="skip"))
    is_bytes = "binary" in str(kind)
    assert column(blocks) == [text.encode() if is_bytes else text for text in texts if text is not None]
    assert column(blocks, ROW) == [1, 2, 3, 5]
    assert {str(block.table["text"].type) for block in blocks} == {"large_binary" if is_bytes else "large_string"}


@each_format
def test_nulls(tmp_path: Path, write: Write) -> None:
    path = write(tmp_path, pa.table({"text": ["a", None, "b", None]}), 2)
    assert column(blocks_of(path, Reading(nulls="empty"))) == ["a", "", "b", ""]
    blocks = blocks_of(path)
    assert column(blocks) == ["a", "b"]
    assert [(bad.row, bad.reason) for bad in bad_of(blocks)] == [(n, "column 'text' is null") for n in (2, 4)]


@each_format
def test_strings_that_are_not_utf8(tmp_path: Path, write: Write) -> None:
    """Arrow does not check what it writes; a column of bytes may hold anything."""
    raw = [b"a", None, b"b\xff", b"c", b"\xc3"]
    broken = pa.array(raw, pa.binary()).view(pa.string())
    blocks = blocks_of(write(tmp_path, pa.table({"text": broken}), 3))
    assert (column(blocks), column(blocks, ROW)) == (["a", "c"], [1, 4])
    assert [(bad.row, bad.reason, bad.data) for bad in bad_of(blocks)] == [
        (2, "column 'text' is null", b""),
        (3, "column 'text': byte 2 is not UTF-8", b"b\xff"),
        (5, "column 'text': byte 1 is not UTF-8", b"\xc3"),
    ]
    blocks = blocks_of(write(tmp_path, pa.table({"text": pa.array(raw, pa.binary())}), 3), Reading(nulls="skip"))
    assert column(blocks) == [b"a", b"b\xff", b"c", b"\xc3"]


@each_format
def test_bad_rows_come_with_those_before_them(tmp_path: Path, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ggtok.corpus.reading.columns.BLOCK_SIZE", 500)
    texts = [None if n % 7 == 3 else "x" * (n % 50) for n in range(1000)]
    blocks = blocks_of(write(tmp_path, pa.table({"text": texts}), 300))
    assert len(blocks) > 40
    assert sum(block.num_bytes > 0 for block in blocks) == 4  # the first block of each batch
    rows = [sorted([*block.table[ROW].to_pylist(), *(bad.row for bad in block.bad)]) for block in blocks]
    assert [row for of_block in rows for row in of_block] == list(range(1, 1001))


def test_rows_without_texts_are_not_held(tmp_path: Path) -> None:
    """Other columns and bad rows count when blocks are cut."""
    table = pa.table({"text": pa.array(["", None] * 6000, pa.string()), "other": ["x" * 1000] * 12_000})
    blocks = blocks_of(as_parquet(tmp_path, table), Reading(columns=("other",)))
    assert len(bad_of(blocks)) == 6000
    assert len(blocks) > 1


MESSAGES = [[{"role": "user", "content": "a"}], [], None, [{"role": "user", "content": None}] * 3]


@each_format
@pytest.mark.parametrize("kind", [pa.list_, pa.large_list, pa.list_view])
def test_messages(tmp_path: Path, write: Write, kind: Callable[[pa.DataType], pa.DataType]) -> None:
    message = pa.struct({"role": pa.string(), "content": pa.string()})
    if write is as_parquet and kind is pa.list_view:
        kind = pa.list_  # Parquet has no views
    path = write(tmp_path, pa.table({"m": pa.array(MESSAGES, kind(message))}), 2)
    reading = Reading(field="m", is_chat=True, nulls="empty")
    assert column(blocks_of(path, reading), "m") == [each or [] for each in MESSAGES]
    assert column(blocks_of(path, Reading(field="m", is_chat=True, nulls="skip")), ROW) == [1, 2, 4]


@each_format
def test_messages_as_json(tmp_path: Path, write: Write) -> None:
    path = write(tmp_path, pa.table({"m": ['[{"role": "user"}]', None]}), 2)
    assert column(blocks_of(path, Reading(field="m", is_chat=True, nulls="empty")), "m") == ['[{"role": "user"}]', "[]"]


@each_format
def test_nothing_but_nulls(tmp_path: Path, write: Write) -> None:
    path = write(tmp_path, pa.table({"text": pa.nulls(3)}), 2)
    assert column(blocks_of(path, Reading(nulls="empty"))) == ["", "", ""]
    assert len(bad_of(blocks_of(path))) == 3


@each_format
@pytest.mark.parametrize(
    ("reading", "message"),
    [
        (Reading(field="txt"), "no column is called 'txt': the nearest is 'text'"),
        (Reading(columns=("url",)), "no column is called 'url': there are 'text', 'n', 'm'"),
        (Reading(field="n"), "column 'n' has the type int64, not texts"),
        (Reading(field="m"), "column 'm' has the type list<"),
        (Reading(field="m", is_chat=True), "column 'm' has the type list<"),
    ],
)
def test_columns_that_are_missing_or_of_another_type(
    tmp_path: Path, write: Write, reading: Reading, message: str
) -> None:
    path = write(tmp_path, pa.table({"text": ["a"], "n": [1], "m": [[1]]}), 10)
    with pytest.raises(CorpusError) as caught:
        blocks_of(path, reading)
    assert str(caught.value).startswith(f"{path}: {message}")


@pytest.mark.parametrize("write", [as_parquet, as_file, as_stream])
def test_two_columns_of_one_name(tmp_path: Path, write: Write) -> None:
    path = write(tmp_path, pa.Table.from_arrays([pa.array(["a"]), pa.array(["b"])], ["text", "text"]), 10)
    with pytest.raises(CorpusError, match="2 columns are called 'text'"):
        blocks_of(path)


@each_format
def test_no_rows(tmp_path: Path, write: Write) -> None:
    path = write(tmp_path, pa.table({"text": pa.array([], pa.string())}), 10)
    assert column(blocks_of(path)) == []
    assert surveyed(source_of(path), 10, counts_lines=True).cuts == ((0, 1),)


@each_format
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=20, deadline=None)
@given(texts=st.lists(st.text(max_size=5), max_size=30), rows=st.integers(1, 12), cut=st.integers(1, 2000))
def test_cuts_give_every_document_once(tmp_path: Path, write: Write, texts: list[str], rows: int, cut: int) -> None:
    path = write(tmp_path, pa.table({"n": range(len(texts)), "text": pa.array(texts, pa.string())}), rows)
    survey = surveyed(source_of(path), cut, counts_lines=True)
    ends = [*(start for start, _ in survey.cuts[1:]), None]
    blocks: list[Block] = []
    for (start, row), end in zip(survey.cuts, ends, strict=True):
        blocks += read(source_of(path), start, end, row, TEXT)
    assert column(blocks) == texts
    assert column(blocks, ROW) == list(range(1, len(texts) + 1))


@each_format
def test_cuts_are_about_as_large_as_wanted(tmp_path: Path, write: Write) -> None:
    path = write(tmp_path, pa.table({"text": [f"{n:0999}" for n in range(1000)]}), 10)
    cuts = surveyed(source_of(path), path.stat().st_size // 10, counts_lines=True).cuts
    if write is as_parquet:  # by what is not compressed
        cuts = surveyed(source_of(path), 100_000, counts_lines=True).cuts
    assert cuts[0] == (0, 1)
    assert 9 <= len(cuts) <= 12


def test_a_stream_with_dictionaries_is_not_cut(tmp_path: Path) -> None:
    chunks = [pa.array([f"{n}", "a"]).dictionary_encode() for n in range(20)]
    path = as_stream(tmp_path, pa.table({"text": pa.chunked_array(chunks)}), 2)
    assert surveyed(source_of(path), 1, counts_lines=True).cuts == ((0, 1),)
    assert column(blocks_of(path)) == [text for n in range(20) for text in (f"{n}", "a")]


@each_format
@pytest.mark.parametrize("share", [0.02, 0.5, 0.99])
def test_files_that_end_early(tmp_path: Path, write: Write, share: float) -> None:
    path = write(tmp_path, pa.table({"text": [f"{n:0999}" for n in range(1000)]}), 10)
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * share)])
    source = source_of(path)
    for use in (lambda: blocks_of(path), lambda: surveyed(source, 1000, counts_lines=True)):
        with pytest.raises(CorpusError, match="it is not valid") as caught:
            use()
        assert caught.value.source == str(path)


@each_format
def test_damaged_pages(tmp_path: Path, write: Write) -> None:
    """Any byte may be wrong: an error, a bad row or another text, and never a crash."""
    path = write(tmp_path, pa.table({"text": [f"{n}" * 20 for n in range(100)], "id": ["a"] * 100}), 10)
    data = path.read_bytes()
    for at in range(0, len(data), max(1, len(data) // 150)):
        path.write_bytes(data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :])
        try:
            blocks_of(path, Reading(columns=("id",)))
            surveyed(source_of(path), 100, counts_lines=True)
        except CorpusError as error:
            assert error.source == str(path)  # noqa: PT017


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow"])
def test_something_else(tmp_path: Path, name: str) -> None:
    for data in (b"", b"x", b"FEA1....", b"text " * 1000, b"PAR1" * 100, b"ARROW1" * 100, b"\xff" * 1000):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(CorpusError):
            blocks_of(tmp_path / name)
        with pytest.raises(CorpusError):
            surveyed(source_of(tmp_path / name), 10, counts_lines=True)


@each_format
def test_long_documents_are_alone(tmp_path: Path, write: Write) -> None:
    long = "x" * (BLOCK_SIZE + 1)
    texts = ["a", long, "b", "c", long, long, *["y" * 1000] * 10_000]
    blocks = blocks_of(write(tmp_path, pa.table({"text": texts}), 100_000))
    assert column(blocks) == texts
    assert [len(block.table) for block in blocks if len(block.table["text"][0].as_py()) > BLOCK_SIZE] == [1, 1, 1]
    assert max(block.table["text"].nbytes for block in blocks if len(block.table) > 1) < 1.1 * BLOCK_SIZE


MEASURE = """
import resource, sys
from ggtok.corpus.reading import read
from ggtok.corpus.settings import Reading
from ggtok.corpus.sources import inputs
import pyarrow as pa, pyarrow.parquet, numpy
[source] = inputs(sys.argv[1:])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
total = 0
for block in read(source, 0, None, 1, Reading()):
    total += block.table["text"].nbytes
    block = None
print(total >> 20, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before >> 10)
"""


def peak_of(path: Path) -> tuple[int, int]:
    """MiB of text in a file, and how many more a process has for a while when it reads them."""
    done = subprocess.run([sys.executable, "-c", MEASURE, path], capture_output=True, text=True, check=True)
    total, peak = map(int, done.stdout.split())
    return total, peak


def test_a_record_batch_is_not_held_as_a_whole(tmp_path: Path) -> None:
    """150 MB of short texts in one batch: what is mapped counts, what is copied would come on top."""
    texts = pa.array(["x" * 999 + "\n"] * 150_000).cast(pa.string_view())
    path = as_file(tmp_path, pa.table({"text": texts}), 150_000)
    assert len(blocks_of(path)) > 30
    total, peak = peak_of(path)
    assert total >= 143
    assert peak < total + 60


def test_a_row_group_is_not_read_as_a_whole(tmp_path: Path) -> None:
    """150 MB of long documents in one row group take far less memory."""
    path = tmp_path / "a.parquet"
    text = "".join(chr(97 + n * n % 25) for n in range(1000)) * 1000
    schema = pa.schema({"text": pa.string()})
    with pq.ParquetWriter(path, schema, use_dictionary=False, compression="lz4") as file:
        file.write_table(pa.table({"text": [text] * 150}, schema), row_group_size=150)
    assert pq.ParquetFile(path).num_row_groups == 1
    total, peak = peak_of(path)
    assert total >= 143
    assert peak < 90
