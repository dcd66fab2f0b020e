"""From what the user names to the list of inputs, and the survey of each."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from ggtok.corpus.sources import Input, inputs
from ggtok.corpus.survey import Survey, surveyed
from ggtok.errors import CorpusError
from hypothesis import given
from hypothesis import strategies as st


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with a few files."""
    monkeypatch.chdir(tmp_path)
    for name in ("b.jsonl", "a.jsonl.gz", "deep/c.ndjson", ".hidden.jsonl", ".git/d.jsonl", "notes.xyz", "out/0.jsonl"):
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(b"{}\n")
    return tmp_path


def names(*sources: str | Path, **options: object) -> list[str]:
    return [each.name for each in inputs(sources, **options)]  # type: ignore[arg-type]


def problem(*sources: str | Path, **options: object) -> str:
    with pytest.raises(CorpusError) as caught:
        names(*sources, **options)
    return str(caught.value)


def test_an_input_is_described(folder: Path) -> None:
    assert inputs(["a.jsonl.gz"]) == [Input("a.jsonl.gz", "a.jsonl.gz", "jsonl", "gzip", 3, source="a.jsonl.gz")]
    assert inputs(["b.jsonl"], format="lines") == [Input("b.jsonl", "b.jsonl", "lines", None, 3, source="b.jsonl")]
    assert inputs(["-"], format="jsonl") == [Input("-", "-", "jsonl", None, None, source="-")]


@pytest.mark.parametrize(
    ("name", "format", "compression"),
    [
        *(("a.jsonl", "jsonl", None), ("A.JSONL", "jsonl", None), ("a.jsonlines.zst", "jsonl", "zstd")),
        *(("a.parquet", "parquet", None), ("a.feather", "arrow", None), ("a.arrow", "arrow", None)),
        *(("a.txt", "text", None), ("a.py", "text", None), ("a.md.bz2", "text", "bz2"), ("a.txt.lz4", "text", "lz4")),
        *(("a.json", "json", None), ("a.csv.gz", "csv", "gzip"), ("a.tsv", "tsv", None)),
    ],
)
def test_endings(tmp_path: Path, name: str, format: str, compression: str | None) -> None:
    (tmp_path / name).touch()
    [found] = inputs([tmp_path / name])
    assert (found.format, found.compression) == (format, compression)


def test_folders_and_patterns(folder: Path) -> None:
    assert names(".", without=folder / "out") == ["./a.jsonl.gz", "./b.jsonl", "./deep/c.ndjson"]
    assert names("*.jsonl*", "deep") == ["a.jsonl.gz", "b.jsonl", "deep/c.ndjson"]
    assert names("**/*.*json", "*.jsonl") == ["deep/c.ndjson", "b.jsonl"]
    assert names("b.jsonl", "a.jsonl.gz") == ["b.jsonl", "a.jsonl.gz"], "the order of the arguments"
    assert names(".", without=folder / "out", format="jsonl")[-1] == "./notes.xyz", "any ending, if the format is given"


def test_a_name_with_wildcards_is_a_name_first(folder: Path) -> None:
    (folder / "[ab].jsonl").touch()
    assert names("[ab].jsonl") == ["[ab].jsonl"]
    (folder / "[ab].jsonl").unlink()
    assert names("[ab].jsonl") == ["b.jsonl"]


def test_folders_in_circles(folder: Path) -> None:
    (folder / "deep" / "up").symlink_to(folder / "deep", target_is_directory=True)
    assert names("deep") == ["deep/c.ndjson"]


def test_a_linked_folder_is_entered(folder: Path) -> None:
    (folder / "data").mkdir()
    (folder / "data" / "link").symlink_to(folder / "deep", target_is_directory=True)
    assert names("data") == ["data/link/c.ndjson"]


@pytest.mark.parametrize("also", ["./b.jsonl", "deep/../b.jsonl", "link.jsonl", "hard.jsonl", "*.jsonl", "b.jsonl"])
def test_a_file_that_comes_twice(folder: Path, also: str) -> None:
    (folder / "link.jsonl").symlink_to(folder / "b.jsonl")
    os.link(folder / "b.jsonl", folder / "hard.jsonl")
    assert "named twice" in problem("b.jsonl", also)


@pytest.mark.parametrize(
    ("sources", "options", "message"),
    [
        ([], {}, "there are no inputs"),
        (["c.jsonl"], {}, "c.jsonl: no such file: the nearest are 'b.jsonl', 'a.jsonl.gz', 'data.json'"),
        (["nowhere/c.jsonl"], {}, "no such file, and no such folder"),
        ([""], {}, "no such file"),
        (["*.parquet"], {}, "none matches it as a pattern"),
        (
            ["notes.xyz"],
            {},
            "the ending '.xyz' is not known: choose input_format text, lines, jsonl, json, csv, tsv, parquet or arrow",
        ),
        (["README"], {}, "a name without an ending"),
        (["data.tar.gz"], {"format": "jsonl"}, ".tar files cannot be read: unpack it first"),
        (["data.parquet.gz"], {}, "a parquet file cannot be read inside gzip"),
        (["empty"], {}, "empty: this folder has no files to read: looked for .txt, .text, .md"),
        (["mixed"], {}, "mixed: this folder has texts, such as mixed/a.md, and tables, such as mixed/b.jsonl"),
        (["-"], {}, "input_format"),
        (["-"], {"format": "parquet"}, "cannot be read from standard input"),
        (["out/0.jsonl"], {"without": Path("out")}, "this file is in the output folder"),
        (["out/*"], {"without": Path("out")}, "none matches it as a pattern"),
        (["fifo"], {}, "a device or pipe"),
        (["dangling.jsonl"], {}, "no such file"),
    ],
)
def test_what_is_refused(folder: Path, sources: list[str], options: dict[str, object], message: str) -> None:
    for name in ("README", "data.json", "data.tar.gz", "data.parquet.gz", "mixed/a.md", "mixed/b.jsonl"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).touch()
    (folder / "empty").mkdir()
    os.mkfifo(folder / "fifo")
    (folder / "dangling.jsonl").symlink_to("gone")
    assert message in problem(*sources, **options)


def test_no_permission(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert problem("b.jsonl") == "b.jsonl: permission to read this file is denied"


def test_a_name_that_is_not_utf8(folder: Path) -> None:
    try:
        (folder / "\udcff.jsonl").touch()
    except OSError:
        pytest.skip("this file system has no such names")
    assert "is not UTF-8" in problem(".")


@given(st.lists(st.integers(0, 30), max_size=40), st.integers(1, 50), st.booleans())
def test_cuts_of_lines(lengths: list[int], cut: int, ends: bool) -> None:
    data = b"".join(b"x" * length + b"\n" for length in lengths) + b"end" * (not ends)
    found = survey(data, cut)
    starts = [0] + [at + 1 for at, byte in enumerate(data) if byte == 10 and at + 1 < len(data)]
    expected = []
    for row, start in enumerate(starts, 1):
        before = starts[row - 2] if row > 1 else 0
        # A line starts a part if a multiple of `cut` is in the line before it.
        if start == 0 or (start - 1) // cut > max(0, before - 1) // cut:
            expected.append((start, row))
    assert found.cuts == tuple(expected)
    assert found.input.size == len(data)


def survey(data: bytes, cut: int, progress: Callable[[int], object] = lambda num_bytes: None, chunk: int = 7) -> Survey:
    """The survey of lines, which are read a few bytes at a time."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr("ggtok.corpus.survey.CHUNK", chunk)
        path = Path(folder, "lines.txt")
        path.write_bytes(data)
        return surveyed(inputs([path], format="lines")[0], cut, counts_lines=True, progress=progress)


def test_progress_and_stop() -> None:
    seen: list[int] = []
    survey(b"a\n" * 10, 16, seen.append)
    assert seen == [7, 7, 4, 2]  # the last part too, so that all rows are known

    class StopError(Exception):
        pass

    def stop(num_bytes: int) -> None:
        raise StopError

    with pytest.raises(StopError):
        survey(b"a\n" * 10, 10, stop)


def test_compressed_files_and_texts_are_not_cut(folder: Path) -> None:
    [compressed, text] = inputs(["a.jsonl.gz", "notes.xyz"], format="jsonl")[:1] + inputs(["notes.xyz"], format="text")
    assert surveyed(compressed, 1, counts_lines=True).cuts == ((0, 1),)
    assert surveyed(text, 1, counts_lines=True).cuts == ((0, 1),)


def test_nothing_is_known_of_standard_input() -> None:
    [stdin] = inputs(["-"], format="jsonl")
    assert surveyed(stdin, 1, counts_lines=True) == Survey(stdin)


def test_a_file_that_is_gone(folder: Path) -> None:
    [source] = inputs(["b.jsonl"])
    (folder / "b.jsonl").unlink()
    with pytest.raises(CorpusError, match=r"b\.jsonl: it cannot be read: No such file"):
        surveyed(source, 1, counts_lines=True)


def test_a_file_that_becomes_shorter_meanwhile(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is beyond its end, which ends the search for the starts of lines."""
    [source] = inputs(["b.jsonl"])
    monkeypatch.setattr(Input, "status", lambda self: (100, 0))
    assert surveyed(source, 10).cuts == ((0, 1),)


def test_cuts_are_in_order() -> None:
    cuts = survey(b"ab\n" * 1000, 100, chunk=64).cuts
    assert len(cuts) == 30
    assert all(b - a in (99, 102) for (a, _), (b, _) in pairwise(cuts))
