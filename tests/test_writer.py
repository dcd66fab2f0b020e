"""The one writer of files: what appears is complete and on the disk, and nothing else is touched, whatever is there."""

from __future__ import annotations

import errno
import os
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ggtok
import pytest
from ggtok import GgtokError, Tokenizer
from ggtok.corpus.writing.shard_files import ShardFiles
from ggtok.errors import CorpusError
from ggtok.tokenizer import files
from test_cli import call

SPM = Tokenizer.builtin("spm")
SOURCE = Path(ggtok.__file__).with_name("vocabularies") / "spm.gguf"

POSIX = pytest.mark.skipif(os.name == "nt", reason="Windows has neither pipes nor links in folders")


def edit(path: Path) -> object:
    return ggtok.edit(SOURCE, path, name="new")


def shard(path: Path) -> object:
    with ShardFiles(path.parent, path.name) as files:
        files.open("").write(b"data")
        return files.commit()


WRITERS: dict[str, Callable[[Path], object]] = {
    "edit": edit,
    "to_gguf": SPM.to_gguf,
    "to_sentencepiece": SPM.to_sentencepiece,
    "to_tokenizers_json": SPM.to_tokenizers_json,
    "to_html": lambda path: SPM.explain("a").to_html(path),
    "to_svg": lambda path: ggtok.evaluate(SPM, {"a": ["a b"]}).to_svg(path),
    "shard": shard,
}
EXPORTS = [name for name in WRITERS if name not in ("edit", "shard")]


@pytest.fixture(params=WRITERS)
def writer(request: pytest.FixtureRequest) -> Callable[[Path], object]:
    return WRITERS[request.param]


def left(folder: Path, name: str = ".ggtok-0123456789abcdef.part") -> Path:
    """What a writer that was killed leaves."""
    path = folder / name
    path.write_bytes(b"half of a file")
    return path


# what appears


def test_it_is_on_the_disk_before_it_has_its_name(
    writer: Callable[[Path], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[tuple[str, int]] = []
    sync, replace = os.fsync, os.replace

    def fsync(descriptor: int) -> None:
        sync(descriptor)
        steps.append(("sync", os.fstat(descriptor).st_ino))

    def renamed(old: str, new: str) -> None:
        steps.append(("rename", os.stat(old).st_ino))
        replace(old, new)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "replace", renamed)
    writer(tmp_path / "new")
    file, folder = (os.stat(path).st_ino for path in (tmp_path / "new", tmp_path))
    at = steps.index(("rename", file))
    assert ("sync", file) in steps[:at]
    assert steps[at + 1 :] == [("sync", folder)]


def test_the_longest_names(writer: Callable[[Path], object], tmp_path: Path) -> None:
    path = tmp_path / ("n" * 250 + ".gguf")
    writer(path)
    assert os.listdir(tmp_path) == [path.name]


@POSIX
def test_links(tmp_path: Path) -> None:
    """A link that is there leads to the file to write; one that appears meanwhile is replaced."""
    (tmp_path / "far").mkdir()
    link, far, precious = tmp_path / "link", tmp_path / "far" / "new", tmp_path / "precious"
    precious.write_text("mine")
    link.symlink_to(far)
    for name in ("edit", *EXPORTS):
        WRITERS[name](link)
        assert link.is_symlink()
        assert far.read_bytes() != b""
        far.unlink()
    path = tmp_path / "new"
    with files.replacing(str(path)) as file:
        file.write(b"data")
        path.symlink_to(precious)
    assert precious.read_text() == "mine"
    assert (path.is_symlink(), path.read_bytes()) == (False, b"data")
    assert os.lstat(path).st_mode & 0o777 != 0o777


@POSIX
def test_a_link_that_appears_between_the_checks_and_the_writing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    precious, path = tmp_path / "precious", tmp_path / "new"
    real = files.check_target

    def appears(*arguments: Any, **options: Any) -> str:
        place = real(*arguments, **options)
        path.unlink(missing_ok=True)
        path.symlink_to(precious)
        return place

    monkeypatch.setattr(files, "check_target", appears)
    monkeypatch.setattr("ggtok.lab.edit.check_target", appears)
    for name in ("edit", "to_html"):
        precious.write_text("mine")
        path.unlink(missing_ok=True)
        WRITERS[name](path)
        assert precious.read_text() == "mine"
        assert not path.is_symlink()


# what is not a regular file


@POSIX
def test_edit_opens_no_pipe_and_no_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)  # to open it would wait for ever
    link.symlink_to(pipe)
    before = os.stat("/dev/null")
    for path in (pipe, link, Path("/dev/null"), tmp_path):
        with pytest.raises(GgtokError, match="is not a regular file, and would be replaced"):
            edit(path)
        done = call("edit", str(SOURCE), "-o", str(path), "--set", "general.name=new")
        assert (done.code, "is not a regular file" in done.err) == (2, True)
    assert stat.S_ISFIFO(os.lstat(pipe).st_mode)
    assert os.path.samestat(os.stat("/dev/null"), before)
    assert sorted(os.listdir(tmp_path)) == ["link", "pipe"]


@POSIX
@pytest.mark.parametrize("name", EXPORTS)
def test_exports_write_to_pipes_and_devices(name: str, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()), daemon=True)
    reader.start()
    WRITERS[name](pipe)
    reader.join(10)
    assert len(got[0]) > 100
    WRITERS[name](Path("/dev/null"))
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    assert os.listdir(tmp_path) == ["pipe"]


@POSIX
def test_a_file_that_takes_the_place_of_a_device_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    path.write_text("mine")
    monkeypatch.setattr(files, "_is_special", lambda _: True)
    with pytest.raises(FileExistsError):
        SPM.to_gguf(path)
    assert path.read_text() == "mine"


# what a kill leaves


KILLED = """
import os, signal, sys
from ggtok.tokenizer import files
with files.replacing(sys.argv[1]) as file:
    file.write(b"data")
    os.kill(os.getpid(), signal.SIGKILL)
"""


@POSIX
def test_the_next_write_deletes_what_a_kill_left(writer: Callable[[Path], object], tmp_path: Path) -> None:
    run = subprocess.run([sys.executable, "-c", KILLED, tmp_path / "old"], check=False)
    assert run.returncode == -signal.SIGKILL
    (part,) = os.listdir(tmp_path)
    assert files.PART.fullmatch(part)
    writer(tmp_path / "new")
    assert os.listdir(tmp_path) == ["new"]


@POSIX
def test_nothing_else_is_deleted(writer: Callable[[Path], object], tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("mine")
    (tmp_path / ".ggtok-0000000000000000.part").symlink_to(precious)
    for name in (".mine.part", "new.12345678.part", ".ggtok-012.part", ".ggtok-0123456789ABCDEF.part"):
        left(tmp_path, name)
    before = set(os.listdir(tmp_path))
    writer(tmp_path / "new")
    assert set(os.listdir(tmp_path)) == {*before, "new"}
    assert precious.read_text() == "mine"


def test_writers_at_the_same_time(writer: Callable[[Path], object], tmp_path: Path) -> None:
    """What another one is writing stays, and gets its name."""
    with files.replacing(str(tmp_path / "slow")) as file:
        file.write(b"slow")
        writer(tmp_path / "new")
    assert sorted(os.listdir(tmp_path)) == ["new", "slow"]
    assert (tmp_path / "slow").read_bytes() == b"slow"


def test_many_writers_of_one_file(tmp_path: Path) -> None:
    path, errors = tmp_path / "new", list[BaseException]()

    def work(number: int) -> None:
        try:
            for _ in range(50):
                files.write(path, b"%d" % number * 1000)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert os.listdir(tmp_path) == ["new"]
    assert len(set(path.read_bytes())) == 1


def test_file_systems_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(files, "lock", none)
    part = left(tmp_path)
    SPM.to_gguf(tmp_path / "new")
    assert sorted(os.listdir(tmp_path)) == [part.name, "new"]  # it may be in use


def test_a_write_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    path = tmp_path / "new"
    path.write_text("old")
    monkeypatch.setattr(os, "fsync", fail)
    for name in ("edit", *EXPORTS):
        with pytest.raises(OSError, match="Input/output error") as caught:
            WRITERS[name](path)
        assert caught.value.filename == (str(path) if name == "edit" else os.fspath(path))
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["new"]


# the lock of a corpus


@pytest.fixture
def arguments(tmp_path: Path) -> dict[str, Any]:
    source = tmp_path / "in.jsonl"
    source.write_text('{"text": "one text"}\n')
    return {"sources": [source], "output": tmp_path / "out", "tokenizer": "bpe", "format": "megatron"}


@POSIX
@pytest.mark.parametrize("name", [".lock", ".ggtok.lock"])
@pytest.mark.parametrize("is_corpus", [False, True])
def test_the_lock_of_a_corpus_is_never_a_users_file(
    name: str, is_corpus: bool, tmp_path: Path, arguments: dict[str, Any]
) -> None:
    out, precious = tmp_path / "out", tmp_path / "precious"
    if is_corpus:
        ggtok.corpus.build(**arguments)
    out.mkdir(exist_ok=True)

    def attempt() -> None:
        if is_corpus and name == ".lock":
            assert ggtok.corpus.build(**arguments).is_complete
        else:
            with pytest.raises(CorpusError, match=r"\.lock"):
                ggtok.corpus.build(**arguments)

    (out / name).write_text("mine")
    attempt()
    assert (out / name).read_text() == "mine"
    (out / name).unlink()
    precious.write_text("mine")
    (out / name).symlink_to(precious)
    attempt()
    assert precious.read_text() == "mine"
    assert (out / name).is_symlink()
    (out / name).unlink()
    os.mkfifo(out / name)
    attempt()
    assert stat.S_ISFIFO(os.lstat(out / name).st_mode)
    (out / name).unlink()
    assert ggtok.corpus.build(**arguments).is_complete


@POSIX
def test_a_corpus_keeps_files_that_look_like_its_own(tmp_path: Path, arguments: dict[str, Any]) -> None:
    ggtok.corpus.build(**arguments)
    out, precious = tmp_path / "out", tmp_path / "precious"
    (out / ".notes.part").write_text("mine")
    (out / "manifest.json.1.part").write_text("mine")
    precious.write_text("mine")
    manifest = (out / "manifest.json").read_text().replace('"complete": true', '"complete": false')
    (out / "manifest.json").write_text(manifest)  # so that the journal is read
    (out / "journal.jsonl").symlink_to(precious)
    assert ggtok.corpus.build(**arguments).is_complete
    assert (out / ".notes.part").read_text() == "mine"
    assert (out / "manifest.json.1.part").read_text() == "mine"
    assert precious.read_text() == "mine"


def test_looking_at_a_corpus_does_not_change_it(tmp_path: Path, arguments: dict[str, Any]) -> None:
    """A run may be writing a line of the journal just now, which is not to be cut."""
    ggtok.corpus.build(**arguments)
    out = tmp_path / "out"
    manifest = (out / "manifest.json").read_text().replace('"complete": true', '"complete": false')
    (out / "manifest.json").write_text(manifest)
    (out / "journal.jsonl").write_text('{"name": "000')
    assert ggtok.corpus.info(out).shards == 1
    assert (out / "journal.jsonl").read_text() == '{"name": "000'
    assert ggtok.corpus.build(**arguments).is_complete
