"""The documents of inputs of lines and texts: which there are, their rows, and what is wrong with the others."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import tempfile
import tracemalloc
import types
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from ggtok import _ggtok
from ggtok.corpus.blocks import ROW, BadRow, Block
from ggtok.corpus.reading import read
from ggtok.corpus.settings import InputFormat, Reading
from ggtok.corpus.sources import inputs
from ggtok.corpus.survey import surveyed
from ggtok.errors import CorpusError
from hypothesis import given
from hypothesis import strategies as st

TEXT = Reading()


def blocks_of(path: Path, reading: Reading = TEXT, format: InputFormat | None = None) -> list[Block]:
    """All blocks of a file, each checked."""
    [source] = inputs([path], format=format)
    blocks = list(read(source, 0, None, 1, reading))
    for block in blocks:
        block.table.validate(full=True)
    assert sum(block.num_bytes for block in blocks) == path.stat().st_size or not blocks
    return blocks


def rows_of(blocks: list[Block], field: str = "text") -> dict[int, Any]:
    """The documents by their rows."""
    pairs = [pair for block in blocks for pair in zip(*(block.table[n].to_pylist() for n in (ROW, field)), strict=True)]
    assert [row for row, _ in pairs] == sorted({row for row, _ in pairs})
    return dict(pairs)


def bad_of(blocks: list[Block]) -> list[BadRow]:
    return [bad for block in blocks for bad in block.bad]


def small_blocks(patch: pytest.MonkeyPatch, size: int) -> None:
    patch.setattr("ggtok.corpus.reading.lines.BLOCK_SIZE", size)


@pytest.fixture
def jsonl(tmp_path: Path) -> Path:
    return tmp_path / "a.jsonl"


# ---------------------------------------------------------------------------------------------------------- JSON Lines

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
PLAIN = st.text(st.characters(exclude_categories=["Cs"]))


@given(
    st.lists(st.fixed_dictionaries({"text": PLAIN, "id": PLAIN, "n": VALUES}, optional={"o": VALUES}), min_size=1),
    st.booleans(),
    st.sampled_from([(",", ":"), (" , ", " :\t")]),
    st.sampled_from(["\n", "\r\n", "\n\n", " \n\t\n"]),
    st.integers(1, 200),
)
def test_what_json_dumps_writes(
    objects: list[dict[str, Any]], is_ascii: bool, separators: tuple[str, str], end: str, size: int
) -> None:
    def dumps(value: object) -> str:
        text = json.dumps(value, ensure_ascii=is_ascii, separators=separators)
        return text.encode("utf-8", "replace").decode()  # lone surrogates in `n`, if not written as ASCII

    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        small_blocks(patch, size)
        path = Path(folder, "a.jsonl")
        path.write_text("".join(dumps(each) + end for each in objects), "utf-8", newline="")
        blocks = blocks_of(path, Reading(columns=("id", "n", "o")))
    bad = {each.row for each in bad_of(blocks)}
    rows = range(1, 1 + len(objects) * end.count("\n"), end.count("\n"))
    for name in ("text", "id"):
        found = rows_of(blocks, name)
        assert found == {row: each[name] for row, each in zip(rows, objects, strict=True) if row not in bad}
    for name in ("n", "o"):
        found = rows_of(blocks, name)
        for row, each in zip(rows, objects, strict=True):
            value = each.get(name)
            if row not in bad:
                assert found[row] == (value if value is None or isinstance(value, str) else dumps(value))
    for row in bad:  # a string that is kept cannot be written as UTF-8
        values = [objects[(row - 1) // end.count("\n")].get(name) for name in ("n", "o")]
        assert any(isinstance(value, str) and any("\ud800" <= c <= "\udfff" for c in value) for value in values)


@given(st.lists(st.text(max_size=30), max_size=30), st.integers(1, 60), st.integers(1, 100), st.booleans())
def test_cuts_give_every_document_once(texts: list[str], cut: int, size: int, as_lines: bool) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        small_blocks(patch, size)
        path = Path(folder, "a")
        if as_lines:
            texts = ["".join(text.splitlines()).encode("utf-8", "replace").decode() for text in texts]
            path.write_bytes(b"".join(text.encode() + b"\n" for text in texts))
        else:
            texts = [text.encode("utf-8", "replace").decode() for text in texts]
            path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
        [source] = inputs([path], format="lines" if as_lines else "jsonl")
        survey = surveyed(source, cut, counts_lines=True)
        blocks = []
        ends = [*(start for start, _ in survey.cuts[1:]), None]
        for (start, row), end in zip(survey.cuts, ends, strict=True):
            blocks += list(read(source, start, end, row, TEXT))
    assert rows_of(blocks) == dict(enumerate(texts, 1))
    assert not bad_of(blocks)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"[1]", "it is a list, not an object"),
        (b'"a"', "it is a string, not an object"),
        (b"17", "it is a number, not an object"),
        (b" null ", "it is null, not an object"),
        (b"text", "it is not JSON: expected ident (column 2)"),
        (b'{"text": "a"', "it is not JSON: EOF while parsing an object (column 12)"),
        (b'{"text": "a', "it is not JSON: EOF while parsing a string (column 11)"),
        (b'{"text": "a"} x', "it is not JSON: trailing characters (column 15)"),
        (b'{"text": "a",}', "it is not JSON: trailing comma (column 14)"),
        (b"{'text': 'a'}", "it is not JSON: key must be a string (column 2)"),
        (
            b'{"text": "a\tb"}',
            "it is not JSON: control character (\\u0000-\\u001F) found while parsing a string (column",
        ),
        (b'{"text": "\\x"}', "it is not JSON: invalid escape (column"),
        (b'{"text": "a", "score": NaN}', "it is not JSON: NaN is not a JSON number (column 24)"),
        (b'{"text": "a", "score": -Infinity}', "it is not JSON: Infinity is not a JSON number (column 25)"),
        (b'{"txt": "a", "id": 1}', "it has no field 'text': the nearest is 'txt'"),
        (b'{"id": 1}', "it has no field 'text': there is 'id'"),
        (b"{}", "it has no field 'text'"),
        (b'{"text": 1.5}', "field 'text' is a number, not a string"),
        (b'{"text": true}', "field 'text' is a boolean, not a string"),
        (b'{"text": ["a"]}', "field 'text' is a list, not a string"),
        (b'{"text": {"a": 1}}', "field 'text' is an object, not a string"),
        (b'{"text": null}', "field 'text' is null"),
        (b'{"text": "a\xff"}', "byte 12 is not UTF-8"),
        (b'{"text": "a\\ud83d"}', "\\ud83d is half of a surrogate pair (column 12)"),
        (b'{"text": "\\ude00\\ud83d"}', "\\ude00 is half of a surrogate pair (column 11)"),
        (b'{"text": "\\ud83d\\u0041"}', "\\ud83d is half of a surrogate pair (column 11)"),
        (b'{"text": "a", "id": "\\ud83d"}', "\\ud83d is half of a surrogate pair (column 22)"),
    ],
)
def test_bad_lines(jsonl: Path, line: bytes, reason: str) -> None:
    good = b'{"text": "good", "id": "x"}'
    jsonl.write_bytes(b"\n".join([good, b"", line, good]))
    blocks = blocks_of(jsonl, Reading(columns=("id",)))
    assert rows_of(blocks) == {1: "good", 4: "good"}
    assert rows_of(blocks, "id") == {1: "x", 4: "x"}
    [bad] = bad_of(blocks)
    assert (bad.source, bad.row, bad.data) == (str(jsonl), 3, line)
    assert bad.reason.startswith(reason)


def python_reads(line: bytes) -> str | None:
    """The text of an object by Python's parser; `None` if there is none that can be encoded."""

    def refuse(constant: str) -> None:
        raise ValueError

    try:
        value = json.loads(line.decode(), parse_constant=refuse)
        value["text"].encode()
    except (ValueError, LookupError, TypeError, AttributeError):
        return None
    return str(value["text"])


@given(
    st.dictionaries(st.sampled_from(["text", "te", "id", 'a"b\\']), VALUES | st.text(), max_size=4),
    st.lists(
        st.tuples(st.integers(0), st.integers(0), st.sampled_from([*b'{}[]",:\\ud8ceE+-.0 \t\xff\xc3tfn'])), max_size=3
    ),
    st.integers(0),
)
def test_damaged_lines_are_read_as_python_does(
    value: dict[str, Any], edits: list[tuple[int, int, int]], cut: int
) -> None:
    line = bytearray(json.dumps({"text": "\ud83d\ude00é\\\n"} | value).encode())
    for at, kind, byte in edits:
        at %= len(line)
        line[at : at + kind % 3] = bytes([byte])
    start, block = bytes(line[: cut % len(line)]), bytes(line[cut % len(line) :])
    read = _ggtok.json_lines((start, block + b"\n{", len(block)), 1, "text", False, [], "error")
    _, rows, [(offsets, validity, data)], bad = read
    text = python_reads(bytes(line))
    assert validity is None
    assert (len(rows), len(bad)) == ((1, 0) if text is not None else (0, 1 if line.strip() else 0))
    assert bytes(data) == (text or "").encode()
    assert memoryview(offsets).tolist() == ([0, len(data)] if len(rows) else [0])


def test_repeated_keys_and_odd_ones(jsonl: Path) -> None:
    """The last one wins, as in Python."""
    lines = [
        b'{"text": 1, "text": "a"}',
        b'{"t\\u0065xt": "b", "x": "\\ud800", "deep": ' + b"[" * 999 + b"]" * 999 + b"}",
    ]
    jsonl.write_bytes(b"\n".join([*lines, b'{"text": "a", "text": null}', b"\xef\xbb\xbf{}"]))
    blocks = blocks_of(jsonl)
    assert rows_of(blocks) == {1: "a", 2: "b"}
    assert [bad.row for bad in bad_of(blocks)] == [3, 4], "a byte order mark only at the start of the file"


def test_nulls(jsonl: Path) -> None:
    jsonl.write_bytes(b'{"text": null}\n{"text": "a"}\n')
    assert rows_of(blocks_of(jsonl, Reading(nulls="skip"))) == {2: "a"}
    assert rows_of(blocks_of(jsonl, Reading(nulls="empty"))) == {1: "", 2: "a"}
    assert not bad_of(blocks_of(jsonl, Reading(nulls="skip")))


def test_many_nulls_in_a_column(jsonl: Path) -> None:
    """The validity bits of a column, with the first null at any place."""
    for first in range(20):
        ids = ["a"] * first + [None, "b", None, *"cdefghij"]
        jsonl.write_text("".join(json.dumps({"text": "", "id": each}) + "\n" for each in ids))
        assert list(rows_of(blocks_of(jsonl, Reading(columns=("id",))), "id").values()) == ids


def test_a_field_that_is_kept_too(jsonl: Path) -> None:
    jsonl.write_bytes(b'{"text": "a"}\n')
    [block] = blocks_of(jsonl, Reading(columns=("text", "id")))
    assert block.table.column_names == ["text", "id", ROW]


def test_messages(jsonl: Path) -> None:
    jsonl.write_bytes(b'{"m": [{"role": "user", "content": "\\u00e4"}]}\n{"m": 1}\n{"m": null}\n{"m": "[1]"}\n')
    blocks = blocks_of(jsonl, Reading(field="m", is_chat=True, nulls="empty"))
    assert rows_of(blocks, "m") == {1: '[{"role": "user", "content": "\\u00e4"}]', 3: "[]", 4: "[1]"}
    assert [bad.reason for bad in bad_of(blocks)] == ["field 'm' is a number, not a list of messages or its JSON text"]


def test_a_byte_order_mark(tmp_path: Path) -> None:
    for name, format in (("a.jsonl", "jsonl"), ("a.txt", "lines"), ("b.txt", "text")):
        text = '{"text": "a"}' if format == "jsonl" else "a"
        (tmp_path / name).write_text(text, "utf-8-sig")
        assert rows_of(blocks_of(tmp_path / name, format=format)) == {1: "a"}  # type: ignore[arg-type]


def test_what_is_kept_of_a_bad_row(jsonl: Path) -> None:
    jsonl.write_bytes(b"[" * 100_000)
    [bad] = bad_of(blocks_of(jsonl))
    assert bad.data == b"[" * BadRow.MOST_DATA


# --------------------------------------------------------------------------------------------------- lines and blocks


def test_lines(tmp_path: Path) -> None:
    """Every line is a document, the empty ones too."""
    path = tmp_path / "a.txt"
    for data, expected in (
        (b"", []),
        (b"\n", [""]),
        (b"a\n\nb", ["a", "", "b"]),
        (b"a\r\n\r\nb\rc\r\n", ["a", "", "b\rc"]),
    ):
        path.write_bytes(data)
        assert list(rows_of(blocks_of(path, format="lines")).values()) == expected
    path.write_bytes(b"a\nb\xc3\nc")
    blocks = blocks_of(path, format="lines")
    assert rows_of(blocks) == {1: "a", 3: "c"}
    assert [(bad.source, bad.row, bad.reason) for bad in bad_of(blocks)] == [(str(path), 2, "byte 2 is not UTF-8")]


def test_a_long_line_is_a_block_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small_blocks(monkeypatch, 100)
    path = tmp_path / "a.txt"
    path.write_bytes(b"a\n" * 90 + b"b" * 1000 + b"\n" + b"c\n" * 90)
    blocks = [block.table["text"].to_pylist() for block in blocks_of(path, format="lines")]
    assert ["b" * 1000] in blocks
    assert all(sum(map(len, texts)) <= 200 for texts in blocks if texts != ["b" * 1000])


def test_a_line_over_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small_blocks(monkeypatch, 10)
    monkeypatch.setattr("ggtok.corpus.reading.lines.MOST_LINE", 35)
    path = tmp_path / "a.txt"
    path.write_bytes(b"a" * 34 + b"\n" + b"b" * 34 + b"\n" + b"c" * 35 + b"\nd\n" + b"e" * 99)
    blocks = blocks_of(path, format="lines")
    assert rows_of(blocks) == {1: "a" * 34, 2: "b" * 34, 4: "d"}
    assert [bad.row for bad in bad_of(blocks)] == [3, 5]
    assert bad_of(blocks)[1].reason == "the line has 99 bytes, more than 35"
    assert bad_of(blocks)[1].data.startswith(b"eeeeeeee")


def test_a_long_line_is_searched_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line of 100 MB, in a sparse file. Searching it again for each block would take minutes."""
    import resource

    path = tmp_path / "a.txt"
    with path.open("wb") as file:
        file.truncate(100 << 20)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    [block] = blocks_of(path, format="lines")
    assert len(block.table["text"][0].as_buffer()) == 100 << 20
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 400 << 10


# ---------------------------------------------------------------------------------------------------- compressed files


def compress(kind: str, data: bytes) -> bytes:
    if kind == "gz":
        return gzip.compress(data)
    if kind == "bz2":
        return bz2.compress(data)
    written = pa.BufferOutputStream()
    with pa.CompressedOutputStream(written, {"zst": "zstd", "lz4": "lz4"}[kind]) as file:
        file.write(data)
    return bytes(written.getvalue())


NUMBERS = [str(number) for number in range(20_000)]
PLAIN_LINES = "".join(number + "\n" for number in NUMBERS).encode()


@pytest.mark.parametrize("kind", ["gz", "zst", "bz2", "lz4"])
def test_compressed_lines(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    small_blocks(monkeypatch, 10_000)
    path, half = tmp_path / f"a.txt.{kind}", len(PLAIN_LINES) // 2
    middle = b"" if kind == "bz2" else compress(kind, b"")  # pyarrow fails at an empty one in the middle
    parts = [compress(kind, PLAIN_LINES[:half]), middle, compress(kind, PLAIN_LINES[half:]), compress(kind, b"")]
    for data in (compress(kind, PLAIN_LINES), b"".join(parts)):
        path.write_bytes(data)
        blocks = blocks_of(path, format="lines")
        assert rows_of(blocks) == dict(enumerate(NUMBERS, 1))
        assert len(blocks) > 10
    assert rows_of(blocks_of(path)) == {1: PLAIN_LINES.decode()}, "as a text"


@pytest.mark.parametrize("kind", ["gz", "zst", "bz2", "lz4"])
@pytest.mark.parametrize("damage", ["half", "last byte", "last 9", "garbage", "one byte", "not compressed", "empty"])
def test_damaged_compressed_files(tmp_path: Path, kind: str, damage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    small_blocks(monkeypatch, 10_000)
    path, data = tmp_path / f"a.txt.{kind}", compress(kind, PLAIN_LINES)
    path.write_bytes(
        {
            **{
                "half": data[: len(data) // 2],
                "last byte": data[:-1],
                "last 9": data[:-9],
                "garbage": data + b"garbage",
            },
            **{"one byte": data + b"\x1f", "not compressed": PLAIN_LINES, "empty": b""},
        }[damage]
    )
    rows: list[str] = []
    blocks = read(inputs([path], format="lines")[0], 0, None, 1, TEXT)
    with pytest.raises(CorpusError, match=r"data ends early|data is damaged|it is empty") as caught:
        rows.extend(row for block in blocks for row in block.table["text"].to_pylist())
    assert caught.value.source == str(path)
    assert rows == NUMBERS[: len(rows)]
    if damage in ("half", "last byte", "last 9"):
        assert f"ends early (about byte {path.stat().st_size:,} of {path.stat().st_size:,}, after" in str(caught.value)


def test_frames_to_skip(tmp_path: Path) -> None:
    """zstd's frames with other data, such as the index of a seekable file."""
    frame = b"\x50\x2a\x4d\x18\x04\0\0\0abcd"
    path = tmp_path / "a.txt.zst"
    path.write_bytes(frame + compress("zst", b"a") + frame + compress("zst", b"b") + frame)
    assert rows_of(blocks_of(path)) == {1: "ab"}


# -------------------------------------------------------------------------------------------------------------- texts


@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz", "a.jsonl"])
def test_a_short_input_takes_little_memory(tmp_path: Path, name: str) -> None:
    """As much as could come would be taken before it is read, and given back, 4 MiB or 1 GiB for each file."""
    data = b'{"text": "What is LoRA?"}'
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    (source,) = inputs([tmp_path / name])
    list(read(source, 0, None, 1, Reading("text")))
    tracemalloc.start()
    try:
        list(read(source, 0, None, 1, Reading("text")))
        assert tracemalloc.get_traced_memory()[1] < 1 << 18
    finally:
        tracemalloc.stop()


def test_a_text_is_one_document(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    for text in ("", "a", "a\r\nb\n\n", "\0ä\n"):
        path.write_bytes(text.encode())
        assert rows_of(blocks_of(path)) == {1: text}
    path.write_bytes(b"ab\xff")
    [bad] = bad_of(blocks_of(path))
    assert (bad.source, bad.row, bad.reason) == (str(path), 1, "byte 3 is not UTF-8")


@pytest.mark.parametrize("format", ["text", "lines"])
def test_texts_have_no_columns(tmp_path: Path, format: InputFormat) -> None:
    path = tmp_path / "a.txt"
    path.touch()
    for reading in (Reading(columns=("id",)), Reading(is_chat=True)):
        with pytest.raises(CorpusError, match="a text has no"):
            blocks_of(path, reading, format)


# ------------------------------------------------------------------------------------------------------ standard input


class SlowPipe(io.RawIOBase):
    """It gives a few bytes at a time."""

    def __init__(self, data: bytes) -> None:
        self.parts = iter([data[at : at + 3] for at in range(0, len(data), 3)])

    def read1(self, size: int = -1) -> bytes:
        return next(self.parts, b"")


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", types.SimpleNamespace(buffer=SlowPipe(b'{"text": "a"}\n{"text": "b"}')))
    blocks = list(read(inputs(["-"], format="jsonl")[0], 0, None, 1, TEXT))
    assert rows_of(blocks) == {1: "a", 2: "b"}


def test_a_file_that_is_gone(jsonl: Path) -> None:
    jsonl.touch()
    [source] = inputs([jsonl])
    jsonl.unlink()
    with pytest.raises(CorpusError, match=r"it cannot be read: .*No such file"):
        list(read(source, 0, None, 1, TEXT))
