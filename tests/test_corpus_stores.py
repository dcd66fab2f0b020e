"""Corpora written to object stores: what a killed run leaves, and stores that throttle, cut, lie or are shared."""

from __future__ import annotations

import itertools
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, get_args

import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from ggtok.corpus import build, info, verify
from ggtok.corpus.settings import Format
from ggtok.errors import CorpusError, DependencyError
from test_corpus_continuing import PLAIN, contents, ids_of, rows, write_rows

fsspec = pytest.importorskip("fsspec")
from fsspec.spec import AbstractBufferedFile, AbstractFileSystem  # noqa: E402

FORMATS: tuple[Format, ...] = get_args(Format)
ONE: dict[str, Any] = {**PLAIN, "threads": 1}

Fault = Callable[[str, str, bytes], bytes]
"""Called with an operation, a path and the bytes; gives back those that the store takes or gives, or raises."""


class Killed(BaseException):
    """The end of a process."""


class File(AbstractBufferedFile):  # type: ignore[misc]
    DEFAULT_BLOCK_SIZE = 1 << 14

    def _fetch_range(self, start: int, end: int) -> bytes:
        data: bytes = self.fs.fault("read", self.path, self.fs.objects[self.path][start:end])
        return data


class Store(AbstractFileSystem):  # type: ignore[misc]
    """Objects in memory, as a store has them: no renaming, no appending, no folders."""

    protocol = "store"
    cachable = False
    objects: ClassVar[dict[str, bytes]] = {}
    fault: ClassVar[Fault]
    size_of: ClassVar[Callable[[str, int], int]]

    def ls(self, path: str, detail: bool = True, **_: Any) -> list[Any]:
        path = self._strip_protocol(path)
        found = {}
        for name, data in [*self.objects.items()]:
            if name == path:
                found[name] = ("file", type(self).size_of(name, len(data)))
            elif name.startswith(f"{path}/"):
                first, *deeper = name[len(path) + 1 :].split("/")
                kind = ("directory", 0) if deeper else ("file", type(self).size_of(name, len(data)))
                found[f"{path}/{first}"] = kind
        if not found:
            raise FileNotFoundError(path)
        hashes = {name: hash(self.objects.get(name)) for name in found}
        each = [{"name": n, "type": kind, "size": size, "hash": hashes[n]} for n, (kind, size) in found.items()]
        return each if detail else [*found]

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        path = self._strip_protocol(path)
        found: dict[str, dict[str, Any]] = {each["name"]: each for each in self.ls(path)}
        folder: dict[str, Any] = {"name": path, "type": "directory", "size": 0}
        return found.get(path, folder)

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **_: Any) -> bytes:
        path = self._strip_protocol(path)
        if path not in self.objects:
            raise FileNotFoundError(path)
        return type(self).fault("read", path, self.objects[path][start:end])

    def pipe_file(self, path: str, value: bytes, **_: Any) -> None:
        path = self._strip_protocol(path)
        self.objects[path] = type(self).fault("write", path, value)
        type(self).fault("written", path, value)

    def put_file(self, lpath: str, rpath: str, **_: Any) -> None:
        self.pipe_file(rpath, Path(lpath).read_bytes())

    def get_file(self, rpath: str, lpath: str, **_: Any) -> None:
        Path(lpath).write_bytes(self.cat_file(rpath))

    def _rm(self, path: str) -> None:
        type(self).fault("delete", path, b"")
        self.objects.pop(self._strip_protocol(path), None)

    def _open(self, path: str, mode: str = "rb", **others: Any) -> File:
        return File(self, path, mode, **others)


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[type[Store]]:
    """A store without faults, and a folder of its own for what is made on the way to it."""
    fsspec.register_implementation("store", Store, clobber=True)
    monkeypatch.setattr(Store, "objects", {})
    Store.fault = staticmethod(lambda operation, path, data: data)
    Store.size_of = staticmethod(lambda path, size: size)
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    yield Store
    assert [*(tmp_path / "temporary").iterdir()] == []


@pytest.fixture
def sources(tmp_path: Path) -> list[Path]:
    (tmp_path / "in").mkdir()
    return [write_rows(tmp_path / "in" / f"{name}.jsonl", rows(name)) for name in "ab"]


def objects(url: str) -> dict[str, bytes]:
    """What is below a URL."""
    files, path = fsspec.core.url_to_fs(url)
    files.invalidate_cache()
    return {name.removeprefix(f"{path}/"): files.cat_file(name) for name in files.find(path)}


def is_complete(data: bytes | None) -> bool:
    return data is not None and json.loads(data)["complete"]


@pytest.mark.parametrize("url", ["store://bucket/out", "memory://bucket/out", "file://"])
def test_a_store_gets_what_a_folder_gets(store: type[Store], tmp_path: Path, sources: list[Path], url: str) -> None:
    url = url if url != "file://" else f"file://{tmp_path}/out"
    try:
        build(sources, tmp_path / "local", **PLAIN)
        found = build(sources, url, **PLAIN)
        remote, local = objects(url), contents(tmp_path / "local")
        assert {**remote, "manifest.json": b""} == {**local, "manifest.json": b""}
        assert info(url).to_dict() == found.to_dict()
        assert found.inputs == [str(path) for path in sources] or url.startswith("file")
        assert [str(file).rpartition("/")[2] for file in found.files] == [
            file.name for file in info(tmp_path / "local").files
        ]
        assert verify(url, sample=None).documents == verify(tmp_path / "local", sample=None).documents == 4000
        build(sources, url, **PLAIN)
        assert objects(url) == remote
        more = write_rows(tmp_path / "in" / "c.jsonl", rows("c"))
        assert build([*sources, more], url, **PLAIN).documents == 6000
        assert remote.items() - objects(url).items() == {("manifest.json", remote["manifest.json"])}
        found._repr_html_()
    finally:
        if url.startswith("memory"):
            fsspec.filesystem("memory").rm("/bucket", recursive=True)


@pytest.mark.parametrize("format", FORMATS)
def test_a_run_can_be_killed_at_every_write(store: type[Store], sources: list[Path], format: Format) -> None:
    arguments = {**ONE, "format": format}
    build(sources[:1], "store://bucket/whole", **arguments)
    expected = objects("store://bucket/whole")
    for last in range(1, 200):
        store.objects = {name: data for name, data in store.objects.items() if "/whole/" in name}
        kills = [last, 1 + last // 2, 0]

        def kill(operation: str, path: str, data: bytes) -> bytes:
            if operation in (("write", "written")[last % 2], "delete"):  # noqa: B023
                kills[0] -= 1  # noqa: B023
                if kills[0] == 0:  # noqa: B023
                    raise Killed
            return data

        store.fault = staticmethod(kill)
        while True:
            try:
                build(sources[:1], "store://bucket/out", **arguments)
                break
            except Killed:
                kills.pop(0)
                if is_complete(store.objects.get("bucket/out/manifest.json")):
                    assert objects("store://bucket/out").items() >= expected.items()
        assert objects("store://bucket/out") == expected
        if len(kills) == 3:
            break
    assert last > len(expected) + 2  # and their records


def test_what_a_killed_run_left_is_not_part_of_the_next(store: type[Store], sources: list[Path]) -> None:
    url = "store://bucket/out"

    def kill(operation: str, path: str, data: bytes) -> bytes:
        if "00002.idx" in path or operation == "delete":
            raise Killed
        return data

    store.fault = staticmethod(kill)
    with pytest.raises(Killed):
        build(sources, url, **ONE)
    assert info(url).shards == 2
    assert not info(url).is_complete
    assert "it is not complete: the command that began it continues" in verify(url).problems
    assert {"journal/00000.json", "00002.bin"} < objects(url).keys()
    for _ in range(2):  # as many as it takes to be the first run again
        with pytest.raises(Killed):
            build(sources[1:], url, **ONE, append_eos=True, rebuild=True)
    store.fault = staticmethod(lambda operation, path, data: data)
    build(sources[1:], url, **ONE, append_eos=True, rebuild=True)
    assert verify(url, sample=None).documents == 2000
    assert not any("journal" in name for name in objects(url))


def test_a_part_that_a_store_lost_is_found(store: type[Store], sources: list[Path]) -> None:
    url = "store://bucket/out"
    build(sources, url, **PLAIN)
    before = objects(url)
    data = store.objects["bucket/out/00001.bin"]
    store.objects["bucket/out/00001.bin"] = data[:-1] + bytes([data[-1] ^ 1])
    assert verify(url).problems[0] == "00001.bin is not what was written"
    store.objects["bucket/out/00001.bin"] = data[:-1]
    assert f"it has {len(data) - 1:,} bytes instead of {len(data):,}" in verify(url).problems[0]
    del store.objects["bucket/out/00001.bin"]
    assert verify(url).problems[0] == "00001.bin is missing"
    build(sources, url, **PLAIN)
    assert objects(url) == before


def test_outputs_that_are_cut_or_refused(store: type[Store], sources: list[Path]) -> None:
    url = "store://bucket/out"

    def failing(name: str, of: str, fault: Callable[[bytes], bytes]) -> None:
        store.fault = staticmethod(
            lambda operation, path, data: fault(data) if (operation, path) == (of, name) else data
        )

    def refuse(data: bytes) -> bytes:
        raise OSError(503, "SlowDown")

    failing("bucket/out/00001.bin", "write", lambda data: data[:10])
    with pytest.raises(CorpusError, match=r"store://bucket/out/00001\.bin: the store has 10 of its .* bytes"):
        build(sources, url, **ONE)
    for name in ("manifest.json", "vocabulary.gguf", "00003.idx", "journal/00003.json"):
        store.objects.clear()
        failing(f"bucket/out/{name}", "write", refuse)
        with pytest.raises(CorpusError, match=f"store://bucket/out/{name}: it cannot be written: .*SlowDown"):
            build(sources, url, **ONE)
    failing("bucket/out/manifest.json", "read", lambda data: data[: len(data) // 2])
    for call in (info, verify, lambda url: build(sources, url, **ONE)):
        with pytest.raises(
            CorpusError, match=r"store://bucket/out/manifest\.json: this cannot be read as the manifest"
        ):
            call(url)
    failing("bucket/out/journal/00001.json", "read", lambda data: data[:10])
    with pytest.raises(CorpusError, match=r"store://bucket/out/journal: the journal is damaged \(00001\.json\)"):
        info(url)
    failing("bucket/out/00001.bin", "read", refuse)
    with pytest.raises(CorpusError, match=r"store://bucket/out/00001\.bin: it cannot be read: .*SlowDown"):
        verify(url)


def test_files_that_go_while_a_run_ends(store: type[Store], sources: list[Path]) -> None:
    def lose(operation: str, path: str, data: bytes) -> bytes:
        if path == "bucket/out/00003.idx":
            store.objects.pop("bucket/out/00000.bin", None)
        return data

    store.fault = staticmethod(lose)
    with pytest.raises(CorpusError, match="store://bucket/out: files of shard 00000 have gone: run it again"):
        build(sources, "store://bucket/out", **ONE)
    store.fault = staticmethod(lambda operation, path, data: data)
    assert build(sources, "store://bucket/out", **ONE).is_complete


def test_two_runs_do_not_write_one_corpus(store: type[Store], sources: list[Path]) -> None:
    begun = 0

    def begin(operation: str, path: str, data: bytes) -> bytes:
        nonlocal begun
        if path == "bucket/out/00001.bin" and operation == "write" and not begun:
            begun += 1
            with pytest.raises(CorpusError, match="store://bucket/out: another run is using this folder"):
                build(sources, "store://bucket/out", **ONE)  # on the same machine
            store.objects["bucket/out/manifest.json"] += b" "  # on another
        return data

    store.fault = staticmethod(begin)
    with pytest.raises(CorpusError, match="store://bucket/out: another run is using this folder"):
        build(sources, "store://bucket/out", **ONE)
    assert begun == 1


def test_the_output_is_not_an_input(store: type[Store], tmp_path: Path, sources: list[Path]) -> None:
    for path in sources:
        store.objects[f"bucket/{path.name}"] = path.read_bytes()
    for _ in range(2):
        assert build(["store://bucket"], "store://bucket/out", **{**ONE, "format": "parquet"}).documents == 4000
    assert verify("store://bucket/out", sample=None).documents == 4000


def test_outputs_that_cannot_be(tmp_path: Path, sources: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for output, error, message in (
        ("foo://bucket/out", CorpusError, "foo://bucket/out: this is not the URL"),
        ("adl://host/out", DependencyError, r"adl://host/out needs a package: .*pip install 'ggtok\[remote\]'"),
        ("memory://bucket/*", CorpusError, r"memory://bucket/\*: the name of an output cannot have"),
        ("http://127.0.0.1:9/out", (CorpusError, DependencyError), "http://127.0.0.1:9/out"),
        (f"file://{sources[0]}", CorpusError, "a.jsonl: this is a file, not a folder"),
    ):
        with pytest.raises(error, match=message):
            build(sources, output, **ONE)
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    for call in (info, verify, lambda url: build(sources, url, **ONE)):
        with pytest.raises(DependencyError, match=r"fsspec.*pip install 'ggtok\[remote\]'"):
            call("memory://bucket/out")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in"]


@pytest.mark.parametrize("skip_bad", [False, True])
@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz", "a.csv", "a.json", "a.txt", "a.parquet", "a.arrow"])
def test_inputs_that_a_store_cuts(store: type[Store], tmp_path: Path, name: str, skip_bad: bool) -> None:
    texts = [str(random.Random(n).random()) for n in range(9000)]
    table = pa.table({"text": texts})
    path = tmp_path / name
    if name.endswith("parquet"):
        pq.write_table(table, path, row_group_size=1000)
    elif name.endswith("arrow"):
        feather.write_feather(table, str(path), chunksize=1000)
    elif name.endswith("csv"):
        path.write_text("text\n" + "\n".join(texts))
    elif name.endswith("json"):
        path.write_text(json.dumps([{"text": text} for text in texts]))
    else:
        write_rows(path, texts)
    data, url = path.read_bytes(), f"store://bucket/{name}"
    options = {**ONE, "skip_bad": skip_bad, "shard_size": 1 << 24}
    store.objects[f"bucket/{name}"] = data
    assert build([url], tmp_path / "whole", **options).rejected == 0

    def fail(end: int, data: bytes) -> bytes:
        raise OSError(503, "SlowDown")

    store.objects[f"bucket/{name}"] = data[: len(data) // 2]
    store.size_of = staticmethod(lambda path, size: len(data))
    with pytest.raises(CorpusError, match=f"{url}: the store ends it at byte .* of {len(data):,}"):
        build([url], tmp_path / "lied", **options)
    store.objects[f"bucket/{name}"] = data
    reads = 0

    def cut(operation: str, path: str, data: bytes) -> bytes:
        nonlocal reads
        reads += 1
        if reads > 3:
            raise OSError(503, "SlowDown")
        return data

    store.fault = staticmethod(cut)
    with pytest.raises(CorpusError, match=f"{url}: it cannot be read: .*SlowDown"):
        build([url], tmp_path / "refused", **options)
    store.fault = staticmethod(lambda operation, path, data: data)
    for folder in ("lied", "refused"):
        build([url], tmp_path / folder, **options)
        assert contents(tmp_path / folder) == contents(tmp_path / "whole")


class S3:
    """moto's S3, and what happens to its requests."""

    def __init__(self) -> None:
        app = pytest.importorskip(
            "moto.moto_server.werkzeug_app", reason="moto is not installed: pip install moto[server]"
        )
        pytest.importorskip("s3fs", reason="s3fs is not installed: pip install s3fs")

        self._app = app.DomainDispatcherApplication(app.create_backend_app)
        self.fault: Callable[[int, str, str], str] = lambda number, method, path: "none"
        self._number, self._lock = 0, threading.Lock()
        self._server = import_module("werkzeug.serving").make_server("127.0.0.1", 0, self, threaded=True)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.environment = {
            **os.environ,
            "AWS_ACCESS_KEY_ID": "a",
            "AWS_SECRET_ACCESS_KEY": "b",
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self._server.port}",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_MAX_ATTEMPTS": "2",
        }

    def __call__(self, environment: dict[str, Any], start: Any) -> Any:
        with self._lock:
            self._number += 1
            fault = self.fault(self._number, environment["REQUEST_METHOD"], environment["PATH_INFO"])
        if fault == "slow down":
            environment["wsgi.input"].read(int(environment.get("CONTENT_LENGTH") or 0))
            body = b"<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"
            start("503 Slow Down", [("Content-Type", "application/xml"), ("Content-Length", str(len(body)))])
            return [body]
        answer = self._app(environment, start)
        return [b"".join(answer)[:100]] if fault == "cut" else answer  # fewer bytes than Content-Length says

    def close(self) -> None:
        self._server.shutdown()


@pytest.fixture(scope="module")
def s3() -> Iterator[S3]:
    server = S3()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in server.environment.items():
            patch.setenv(name, value)
        fsspec.filesystem("s3").mkdir("shards")  # moto has one S3 in a process
        yield server
    server.close()


@pytest.fixture
def faults(s3: S3) -> Iterator[S3]:
    """The same, without faults in the end."""
    yield s3
    s3.fault = lambda number, method, path: "none"


def run(*arguments: object) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "ggtok", "corpus", *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


class Gcs:
    """The store of gcp-storage-emulator, and what happens at its requests."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        reason = "gcp-storage-emulator is not installed: pip install gcp-storage-emulator"
        module = pytest.importorskip("gcp_storage_emulator.server", reason=reason)
        pytest.importorskip("gcsfs", reason="gcsfs is not installed: pip install gcsfs")
        self.fault: Callable[[int, str, str], str] = lambda number, method, path: "none"
        number, handle = itertools.count(1), module.Router.handle

        def counted(router: Any, method: str) -> None:
            self.fault(next(number), method, "")
            handle(router, method)

        patch.setattr(module.Router, "handle", counted)
        self._server = module.create_server("127.0.0.1", 0, in_memory=True, default_bucket="shards")
        self._server.start()
        patch.setenv("STORAGE_EMULATOR_HOST", f"http://127.0.0.1:{self._server._api._httpd.server_address[1]}")
        patch.setenv("GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT", "false")  # which asks Google itself about each bucket

    def close(self) -> None:
        self._server.stop()


@pytest.fixture(scope="module")
def gcs() -> Iterator[Gcs]:
    with pytest.MonkeyPatch.context() as patch:
        server = Gcs(patch)
        yield server
        server.close()


def check_kills(server: S3 | Gcs, url: str, sources: list[Path], format: Format) -> None:
    """Runs that are killed at some of their requests, and one that is not, leave what an unharmed run does."""
    arguments = ("build", *sources, "--builtin", "bpe", "--format", format, "--shard-size", "64K", "-o")
    numbers = []
    server.fault = lambda number, method, path: numbers.append(number) or "none"  # type: ignore[func-returns-value]
    whole = run(*arguments, f"{url}/whole")
    assert whole.communicate()[0]
    assert whole.returncode == 0
    chance, killed = random.Random(format), 0
    for _ in range(4):
        process = run(*arguments, f"{url}/out")
        left = chance.randrange(len(numbers) // 5, len(numbers))

        def kill(number: int, method: str, path: str) -> str:
            nonlocal left
            left -= 1
            if left == 0:
                process.send_signal(signal.SIGKILL)  # noqa: B023
            return "none"

        server.fault = kill
        process.communicate()
        killed += process.returncode == -signal.SIGKILL
    assert killed
    server.fault = lambda number, method, path: "none"
    last = run(*arguments, f"{url}/out")
    assert last.communicate()[1] is not None
    assert last.returncode == 0
    assert objects(f"{url}/out") == objects(f"{url}/whole")
    assert info(f"{url}/out").documents == verify(f"{url}/out", sample=None).documents == 4000


@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
@pytest.mark.parametrize("format", FORMATS)
def test_s3_with_kills(faults: S3, sources: list[Path], format: Format) -> None:
    check_kills(faults, f"s3://shards/{format}", sources, format)


@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
def test_gcs_with_kills(gcs: Gcs, tmp_path: Path, sources: list[Path]) -> None:
    check_kills(gcs, "gs://shards/corpus", sources, "parquet")
    for path in sources:
        fsspec.filesystem("gs").pipe_file(f"shards/in/{path.name}", path.read_bytes())
    build(["gs://shards/in/*.jsonl"], tmp_path / "out", **PLAIN)
    build(sources, tmp_path / "local", **PLAIN)
    assert ids_of(tmp_path / "out") == ids_of(tmp_path / "local")


def test_s3_that_throttles_and_cuts(faults: S3, tmp_path: Path, sources: list[Path]) -> None:
    for path in sources:
        fsspec.filesystem("s3").pipe_file(f"shards/in/{path.name}", path.read_bytes())
    build(["s3://shards/in"], tmp_path / "expected", **PLAIN)
    found = set()

    def fault(number: int, method: str, path: str) -> str:
        which = ("none", "slow down", "none", "cut" if method == "GET" else "none")[number % 4]
        found.add((which, method))
        return which

    faults.fault = fault
    build(["s3://shards/in"], "s3://shards/throttled", **PLAIN)
    assert verify("s3://shards/throttled", sample=None).documents == 4000
    assert {("slow down", "PUT"), ("slow down", "GET"), ("cut", "GET")} <= found
    faults.fault = lambda number, method, path: "none"
    shards = {name: data for name, data in contents(tmp_path / "expected").items() if name.startswith("0")}
    assert shards.items() < objects("s3://shards/throttled").items()


@pytest.mark.parametrize("fault", ["slow down", "cut"])
def test_s3_that_never_works(faults: S3, tmp_path: Path, sources: list[Path], fault: str) -> None:
    fsspec.filesystem("s3").pipe_file("shards/never/a.jsonl", sources[0].read_bytes())
    build(sources, "s3://shards/broken", **PLAIN)
    faults.fault = lambda number, method, path: fault if path.endswith(("a.jsonl", "0.bin", "1.bin")) else "none"
    with pytest.raises(CorpusError, match=r"s3://shards/(never/a\.jsonl|never): it cannot be read"):
        build(["s3://shards/never"], tmp_path / "out", **PLAIN, skip_bad=True)
    with pytest.raises(CorpusError, match=r"s3://shards/broken/0000.\.bin: it cannot be read"):
        verify("s3://shards/broken")
    if fault == "slow down":
        with pytest.raises(CorpusError, match=r"s3://shards/refused/0000.\.bin: it cannot be written"):
            build(sources, "s3://shards/refused", **PLAIN)
    with pytest.raises(CorpusError, match=r"s3://no-such-bucket/out/manifest.json: it cannot be written: .*bucket"):
        build(sources, "s3://no-such-bucket/out", **PLAIN)
