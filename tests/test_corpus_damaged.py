"""Manifests and journals that are damaged: each call gives a result, or an error that names the file and the place."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from pathlib import Path
from typing import Any

import ggtok
import pytest
from damage import GONE, cases, damaged
from ggtok import GgtokError
from ggtok.errors import CorpusError


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A small corpus with packed sequences and a bad row, and the call that made it."""
    folder = tmp_path_factory.mktemp("corpus")
    (folder / "in.jsonl").write_text('{"text": "one text"}\n{"text": 1}\n{"text": "What is LoRA?"}\n')
    call: dict[str, Any] = {"tokenizer": "bpe", "format": "parquet", "pack": 8, "skip_bad": True}
    ggtok.corpus.build([folder / "in.jsonl"], folder / "out", **call)
    return folder, {"sources": [folder / "in.jsonl"], **call}


def use(folder: Path, out: Path, arguments: dict[str, Any]) -> None:
    """Everything that reads a manifest. Errors of input are those of ggtok."""
    info = None
    with contextlib.suppress(CorpusError):
        info = ggtok.corpus.info(out)
    if info is not None:
        repr(info)
        info.to_dict()
        assert all(path.parent == out for path in info.files)
        info._repr_html_()
        with contextlib.suppress(GgtokError):
            ggtok.corpus.verify(out, tokenizer="bpe", threads=1)
    with contextlib.suppress(GgtokError):
        ggtok.corpus.build(output=out, threads=1, **arguments)


def test_damaged_manifests(built: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    folder, arguments = built
    document = json.loads((folder / "out" / "manifest.json").read_text())
    shutil.copytree(folder / "out", out := tmp_path / "out")
    for number, (path, new) in enumerate(cases(document)):
        data = json.dumps(damaged(document, path, new))
        (out / "manifest.json").write_text(data)
        (out / "journal.jsonl").unlink(missing_ok=True)
        try:
            if number % 19 == 0:  # building takes longer
                use(folder, out, arguments)
            else:
                with contextlib.suppress(CorpusError):
                    info = ggtok.corpus.info(out)
                    repr((info, info.to_dict(), info.files))
        except BaseException as error:
            raise AssertionError(path, new) from error


@pytest.mark.parametrize(
    ("path", "new", "says"),
    [
        ((), [], "the manifest is [], not dict"),
        (("settings",), GONE, "missing 1 required positional argument: 'settings'"),
        (("settings", "writing", "format"), "zip", "settings.writing.format is 'zip'"),
        (("tokenizer", "digest"), 7, "tokenizer.digest is 7, not str"),
        (("inputs", 0, "size"), "7", "inputs[0].size is '7'"),
        (("shards", 0, "files", 0, "name"), "../x", "shards[0] has a name that no shard has"),
        (("shards", 0, "lengths"), {"1000000000000": 1}, "shards[0].lengths has keys [1000000000000]"),
        (("shards", 0, "sources"), {"7": [1, 1, 1]}, "shards[0] has inputs [7, 0], of 1"),
        (("shards", 0, "tokens"), 10**4000, "shards[0].tokens is 1000"),
    ],
)
def test_the_error_names_the_place(
    built: tuple[Path, dict[str, Any]], tmp_path: Path, path: tuple[Any, ...], new: Any, says: str
) -> None:
    document = json.loads((built[0] / "out" / "manifest.json").read_text())
    (tmp_path / "manifest.json").write_text(json.dumps(damaged(document, path, new)))
    for call in (ggtok.corpus.info, lambda out: ggtok.corpus.verify(out, tokenizer="bpe")):
        with pytest.raises(CorpusError) as caught:
            call(tmp_path)
        assert str(caught.value).startswith(str(tmp_path / "manifest.json"))
        assert says in str(caught.value)


def test_numbers_of_any_length(tmp_path: Path) -> None:
    for data in (b'{"manifest": %s}' % (b"9" * 5000), b"[" * 100_000, b"\xff"):
        (tmp_path / "manifest.json").write_bytes(data)
        with pytest.raises(CorpusError, match="this cannot be read as the manifest of a corpus"):
            ggtok.corpus.info(tmp_path)


def test_damaged_journals(built: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    folder, arguments = built
    document = json.loads((folder / "out" / "manifest.json").read_text())
    (shard,) = document["shards"]
    shutil.copytree(folder / "out", out := tmp_path / "out")
    for number, (path, new) in enumerate(cases(shard)):
        (out / "manifest.json").write_text(json.dumps({**document, "complete": False, "shards": []}))
        (out / "journal.jsonl").write_text(json.dumps(damaged(shard, path, new)) + "\n")
        try:
            if number % 19 == 0:
                use(folder, out, arguments)
            else:
                with contextlib.suppress(CorpusError):
                    ggtok.corpus.info(out).to_dict()
        except BaseException as error:
            raise AssertionError(path, new) from error


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such pipes")
@pytest.mark.parametrize("name", ["manifest.json", "journal.jsonl"])
def test_what_is_not_a_file_is_not_waited_for(built: tuple[Path, dict[str, Any]], tmp_path: Path, name: str) -> None:
    """A folder from a stranger may hold pipes, and links to devices that never end."""
    folder, arguments = built
    shutil.copytree(folder / "out", out := tmp_path / "out")
    if name != "manifest.json":
        document = json.loads((out / "manifest.json").read_text())
        (out / "manifest.json").write_text(json.dumps({**document, "complete": False}))
    for make in (os.mkfifo, lambda path: path.symlink_to("/dev/zero"), Path.mkdir):
        path = out / name
        path.rmdir() if path.is_dir() else path.unlink(missing_ok=True)
        make(path)
        use(folder, out, arguments)
