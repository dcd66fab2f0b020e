"""Files at a URL: a server on this machine cuts, redirects, lies, ignores ranges, never ends, and wants a token."""

from __future__ import annotations

import contextlib
import hashlib
import re
import socket
import struct
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from ggtok import DownloadError, GGUFError, Tokenizer
from ggtok.stores import remote, web
from hypothesis import given, settings
from hypothesis import strategies as st
from store_trees import Home, isolated
from web_server import BIG, BPE, Handler, Web, failure, served


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Web]:
    yield from served(tmp_path, monkeypatch)


# what is read


def test_only_the_beginning_is_read(server: Web) -> None:
    url = server.route("/m.gguf", lambda handler: handler.ranged(BIG))
    tok = Tokenizer.from_model(url, overrides={"tokenizer.ggml.add_bos_token": True})
    assert tok == Tokenizer.from_gguf(BPE, overrides={"tokenizer.ggml.add_bos_token": True})
    assert len(BPE) <= server.handler.sent < 2 * len(BPE)  # type: ignore[attr-defined]
    assert server.ranges[:2] == ["bytes=0-99999", "bytes=100000-199999"]
    assert len(server.ranges) == 4
    assert tok._source is None


def test_a_file_that_stays_the_same(server: Web) -> None:
    url = server.route("/m", lambda handler: handler.ranged(BPE, etag='"1"'))
    assert Tokenizer.from_model(url) == Tokenizer.from_gguf(BPE)
    assert len(server.ranges) > 2


def test_connections_are_kept(server: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    accepted = []

    def count(*request: Any) -> bool:
        accepted.append(request)
        return True

    monkeypatch.setattr(server.server, "verify_request", count)
    Tokenizer.from_model(server.route("/m.gguf", lambda handler: handler.ranged(BIG)))
    assert len(server.ranges) == 4
    assert len(accepted) == 1


@pytest.mark.parametrize("whole", [BPE, BIG])
def test_servers_that_ignore_ranges(server: Web, whole: bytes) -> None:
    ended = threading.Event()

    def answer(handler: Handler) -> None:
        try:
            handler.answer(200, whole)
        finally:
            ended.set()

    assert Tokenizer.from_model(server.route("/m.gguf", answer)) == Tokenizer.from_gguf(BPE)
    assert len(server.ranges) == 1
    assert ended.wait(60)
    assert server.handler.sent < len(BPE) + 16_000_000  # type: ignore[attr-defined]


def test_servers_that_send_no_length(server: Web) -> None:
    def chunked(handler: Handler) -> None:
        handler.send_response(200)
        handler.send_header("transfer-encoding", "chunked")
        handler.end_headers()
        for start in range(0, len(BPE), 5000):
            part = BPE[start : start + 5000]
            handler.push(b"%x\r\n%b\r\n" % (len(part), part))
        handler.push(b"0\r\n\r\n")

    def closing(handler: Handler) -> None:
        handler.answer(200, BPE, content_length="")
        handler.close_connection = True

    for name, answer in (("/chunked", chunked), ("/closing", closing)):
        assert Tokenizer.from_model(server.route(name, answer)) == Tokenizer.from_gguf(BPE)


def test_short_ranges(server: Web) -> None:
    def answer(handler: Handler) -> None:
        start, _ = handler.range(len(BIG))
        part = BIG[start : start + 70_000]
        handler.answer(206, part, content_range=f"bytes {start}-{start + len(part) - 1}/*")

    assert Tokenizer.from_model(server.route("/m.gguf", answer)) == Tokenizer.from_gguf(BPE)


# cuts


@pytest.mark.parametrize("most", [30_000, 99_999])
@pytest.mark.parametrize("ranges", [True, False])
def test_cuts_are_resumed(server: Web, most: int, ranges: bool) -> None:
    def whole(handler: Handler) -> None:
        handler.answer(200, BPE[: most * len(server.seen)], content_length=str(len(BPE)))
        handler.close_connection = True

    url = server.route("/m", (lambda handler: handler.ranged(BPE, most=most)) if ranges else whole)
    assert Tokenizer.from_model(url) == Tokenizer.from_gguf(BPE)
    assert len(server.seen) > len(BPE) // most


def test_cuts_at_the_same_place(server: Web) -> None:
    url = server.route("/m", lambda handler: handler.ranged(BPE, most=max(0, 5000 - handler.range(len(BPE))[0])))
    error = failure(url)
    assert "the connection broke" in str(error) or "the answer ends after" in str(error)
    assert len(server.seen) == 1 + remote.MAX_FAILURES


def test_resets(server: Web) -> None:
    def reset(handler: Handler) -> None:
        if len(server.seen) % 2:
            handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            handler.connection.close()
            handler.close_connection = True
            handler.rfile.close()
        else:
            handler.ranged(BPE)

    assert Tokenizer.from_model(server.route("/m", reset)) == Tokenizer.from_gguf(BPE)


def test_busy_servers(server: Web) -> None:
    statuses = iter((503, 429, 500))

    def busy(handler: Handler) -> None:
        status = next(statuses, None)
        handler.ranged(BPE) if status is None else handler.answer(status, b"busy")

    assert Tokenizer.from_model(server.route("/m", busy)) == Tokenizer.from_gguf(BPE)
    error = failure(server.route("/always", lambda handler: handler.answer(503, b"busy")))
    assert (error.status, "the server answers with status 503" in str(error)) == (503, True)


def test_servers_that_are_not_there(server: Web) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    assert "127.0.0.1: no connection (" in str(failure(f"http://127.0.0.1:{port}/m.gguf"))
    assert "no server has this name" in str(failure("http://no-such-host.invalid/m.gguf"))
    error = failure(f"{server.url.replace('http', 'https')}/m.gguf")
    assert "no secure connection" in str(error) or "the connection broke" in str(error)


# time and size


def test_servers_that_do_not_answer(server: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web, "READ_SECONDS", 0.1)
    monkeypatch.setattr(remote, "MAX_FAILURES", 1)
    failed = threading.Event()

    def silent(handler: Handler) -> None:
        failed.wait(60)

    url = server.route("/m", silent)
    assert "no answer within 0.1 s" in str(failure(url))
    failed.set()


def test_servers_that_trickle(server: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    def trickle(handler: Handler) -> None:
        handler.answer(200, BPE[:1000], content_length="")
        drip(handler, b"", b"\0")

    monkeypatch.setattr(remote, "MAX_SECONDS", 0.3)
    assert "it takes more than 0.3 s" in str(failure(server.route("/m", trickle)))


def endless(handler: Handler) -> None:
    """A GGUF file whose first value is an array of 2^40 bytes."""
    handler.answer(200, struct.pack("<4sIQQ", b"GGUF", 3, 0, 1), content_length="")
    handler.push(struct.pack("<Q1sIIQ", 1, b"a", 9, 0, 1 << 40))
    while True:
        handler.push(bytes(1 << 16))


def test_files_that_never_end(server: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "MAX_BYTES", 4 << 20)
    url = server.route("/m", endless)
    with pytest.raises((DownloadError, GGUFError)) as caught:
        Tokenizer.from_model(url)
    assert server.handler.sent < 20 << 20  # type: ignore[attr-defined]
    assert url in str(caught.value)
    with remote.Head(url) as head, pytest.raises(DownloadError, match="the metadata is longer than 4 MiB"):
        deque(iter(lambda: head.read(1 << 24), b""), 0)


# lies


def lies() -> dict[str, tuple[Callable[[Handler], None], str]]:
    def too_long(handler: Handler) -> None:
        handler.answer(200, BPE[:50_000], content_length="1000000")
        handler.close_connection = True

    def other_place(handler: Handler) -> None:
        handler.answer(206, BPE[5:100], content_range=f"bytes 5-99/{len(BPE)}")

    def grows(handler: Handler) -> None:
        start, end = handler.range(len(BPE))
        handler.answer(206, BPE[start:end], content_range=f"bytes {start}-{end - 1}/{len(BPE) + start}")

    def changes(handler: Handler) -> None:
        handler.ranged(BPE, etag=f'"{handler.headers["range"]}"')

    def shuffles(handler: Handler) -> None:
        start, _ = handler.range(len(BPE))
        handler.answer(200, BPE[:50_000] if start == 0 else bytes(len(BPE)), content_length=str(len(BPE)))
        handler.close_connection = True

    def nonsense(handler: Handler) -> None:
        handler.push(b"\0" * 100)
        handler.close_connection = True

    return {
        "too long": (too_long, "the answer ends after 50000 of 1000000 bytes|the connection broke"),
        "other place": (other_place, "the server does not send the bytes that were asked for"),
        "no place": (lambda handler: handler.answer(206, BPE), "the server does not send the bytes"),
        "backwards": (lambda handler: handler.answer(206, BPE, content_range="bytes 9-0/5"), "does not send the bytes"),
        "huge": (
            lambda handler: handler.answer(206, BPE, content_range=f"bytes 0-{'9' * 30}/*"),
            "does not send the bytes",
        ),
        "grows": (grows, "the file changed while it was read"),
        "changes": (changes, "the file changed while it was read"),
        "shuffles": (shuffles, "the file changed while it was read"),
        "gzip": (lambda handler: handler.ranged(BPE, content_encoding="gzip"), "the server compresses the file"),
        "not HTTP": (nonsense, "the connection broke"),
        "500 headers": (lambda handler: handler.answer(200, BPE, **{f"x{n}": "1" for n in range(500)}), "broke"),
    }


@pytest.mark.parametrize("lie", lies())
def test_lies(server: Web, monkeypatch: pytest.MonkeyPatch, lie: str) -> None:
    monkeypatch.setattr(remote, "MAX_FAILURES", 1)
    answer, problem = lies()[lie]
    assert re.search(problem, str(failure(server.route("/m", answer))))


@pytest.mark.parametrize("length", ["1000", "3", "0"])
def test_lengths_that_are_too_short(server: Web, length: str) -> None:
    url = server.route("/m", lambda handler: handler.answer(200, BPE, content_length=length))
    with pytest.raises(GGUFError) as caught:
        Tokenizer.from_model(url)
    assert caught.value.path == url


def test_other_files(server: Web) -> None:
    for body in (b"<!doctype html>", b"", b"GGUF"):
        url = server.route("/m", lambda handler, body=body: handler.answer(200, body))  # type: ignore[misc]
        with pytest.raises(GGUFError) as caught:
            Tokenizer.from_model(url)
        assert str(caught.value).startswith(f"{url}: ")
    for status, meaning in ((401, "HF_TOKEN"), (403, "terms"), (404, "no such file"), (418, "status 418")):
        url = server.route("/m", lambda handler, status=status: handler.answer(status, b""))  # type: ignore[misc]
        error = failure(url)
        assert (error.status, meaning in str(error)) == (status, True)


@given(data=st.data())
@settings(max_examples=30)
def test_any_answers_give_the_file_or_a_typed_error(data: st.DataObject) -> None:
    """Answers made at random, each of them to one request."""
    statuses = st.sampled_from((200, 206, 301, 302, 404, 416, 503))
    header = st.sampled_from(("content-range", "content-length", "etag", "location", "transfer-encoding", "x"))
    value = st.sampled_from(
        ("bytes 0-9/20", "bytes 0-/", "10", "-1", '"a"', "/m", "http://", "chunked", "\x7f", "9" * 25)
    )
    answer = st.tuples(statuses, st.dictionaries(header, value, max_size=3), st.binary(max_size=40))
    answers = iter(data.draw(st.lists(answer, max_size=8)))

    def route(handler: Handler) -> None:
        status, headers, body = next(answers, (404, {}, b""))
        handler.answer(status, body, **{"content_length": "", **{k.replace("-", "_"): v for k, v in headers.items()}})
        handler.close_connection = True

    server = Web()
    pause, remote.PAUSE_SECONDS = remote.PAUSE_SECONDS, 0.0
    try:
        with pytest.raises((DownloadError, GGUFError)):
            Tokenizer.from_model(server.route("/m", route))
    finally:
        remote.PAUSE_SECONDS = pause
        server.close()


# the package


def test_without_urllib3() -> None:
    code = """
import sys
sys.modules["urllib3"] = None
import ggtok
try:
    ggtok.Tokenizer.from_model("https://example.invalid/m.gguf")
except ggtok.DependencyError as error:
    print(error)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "reading a URL needs urllib3: pip install 'ggtok[hf]'\n"


def test_names_do_not_import_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blob = Home(isolated(tmp_path, monkeypatch)).ollama_model("manifests/registry.ollama.ai/library/m/latest", "bpe")
    assert blob.name == f"sha256-{hashlib.sha256(BPE).hexdigest()}"
    code = "import sys, ggtok; ggtok.Tokenizer.from_model('ollama:m'); print({'urllib3', 'ssl'} & sys.modules.keys())"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "set()\n"


# a deadline, whatever the bytes


def drip(handler: Handler, before: bytes, part: bytes) -> None:
    """An answer that goes on for ever, a few bytes at a time."""
    handler.push(before)
    for _ in range(2000):
        handler.push(part)
        time.sleep(0.01)
    handler.close_connection = True


HEAD = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
DRIPS = {
    "headers": (b"HTTP/1.1 200 OK\r\nx: ", b"x"),
    "many headers": (b"HTTP/1.1 ", b"100 Continue\r\n\r\nHTTP/1.1 "),
    "chunk size": (HEAD, b"0"),
    "chunk extension": (HEAD + b"5;", b"x"),
    "trailers": (HEAD + b"4\r\nGGUF\r\n0\r\n", b"x: 1\r\n"),
    "trailer": (HEAD + b"4\r\nGGUF\r\n0\r\nx", b"x"),
}


@pytest.mark.parametrize("name", DRIPS)
def test_answers_that_drip_end(server: Web, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Each limit alone ends them: that of a step, and that of everything."""
    url = server.route("/m", lambda handler: drip(handler, *DRIPS[name]))
    monkeypatch.setattr(remote, "MAX_FAILURES", 0)
    monkeypatch.setattr(web, "READ_SECONDS", 0.2)
    assert "no answer within 0.2 s" in str(failure(url))
    monkeypatch.setattr(web, "READ_SECONDS", 600.0)
    monkeypatch.setattr(remote, "MAX_SECONDS", 0.2)
    assert "it takes more than 0.2 s" in str(failure(url))


def test_a_handshake_that_drips_ends(monkeypatch: pytest.MonkeyPatch, server: Web) -> None:
    """A TLS record of which each byte takes its time."""
    monkeypatch.setattr(remote, "MAX_SECONDS", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            with contextlib.suppress(OSError), listener.accept()[0] as line:
                line.sendall(b"\x16\x03\x03\x40\x00")
                while True:
                    line.sendall(b"\x02")
                    time.sleep(0.01)

        threading.Thread(target=answer, daemon=True).start()
        url = f"https://127.0.0.1:{listener.getsockname()[1]}/m"
        assert "it takes more than 0.3 s" in str(failure(url))


def test_connections_do_not_pile_up(server: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that closes each one and sends little."""

    def answer(handler: Handler) -> None:
        handler.close_connection = True
        start, end = handler.range(len(BPE))
        if start >= len(BPE):
            return handler.answer(416, b"")
        part = BPE[start : min(start + 2000, end)]
        handler.answer(206, part, content_range=f"bytes {start}-{start + len(part) - 1}/*", connection="close")

    most: list[int] = []
    cut = web.Client._cut

    def noted(client: web.Client) -> None:
        most.append(len(client._lines))
        cut(client)

    monkeypatch.setattr(web.Client, "_cut", noted)
    assert Tokenizer.from_model(server.route("/m", answer)) == Tokenizer.from_gguf(BPE)
    assert len(server.seen) > 2 * web.MAX_LINES
    assert max(most) == web.MAX_LINES + 1


# addresses


@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.1", "10.0.0.1", "172.16.9.9", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "127.1"),
        *("2130706433", "0x7f.1", "::1", "fe80::1", "fd00::1", "::ffff:10.0.0.1", "localhost", "a.localhost"),
    ],
)
def test_private_addresses(host: str) -> None:
    assert web.is_private(host)


@pytest.mark.parametrize("host", ["8.8.8.8", "2606:4700::1111", "::ffff:8.8.8.8", "huggingface.co", "localhost.com"])
def test_public_addresses(host: str) -> None:
    assert not web.is_private(host)


@pytest.fixture
def public(server: Web, monkeypatch: pytest.MonkeyPatch) -> str:
    """The server under an address that counts as public, which another address of this machine does not."""
    real = web.is_private
    monkeypatch.setattr(web, "is_private", lambda host: host != "127.0.0.1" and real(host))
    return server.url


def test_no_redirect_reaches_a_private_address(server: Web, public: str) -> None:
    inner = Web("127.0.0.2")
    try:
        secret = inner.route("/m", lambda handler: handler.ranged(BPE))
        for target in (secret, secret.replace("127.0.0.2", "2130706434")):
            url = server.route("/away", lambda handler, target=target: handler.answer(302, b"", location=target))  # type: ignore[misc]
            assert "the server leads to 127.0.0.2, which is a private address" in str(failure(url))
        assert inner.seen == []
        assert Tokenizer.from_model(secret) == Tokenizer.from_gguf(BPE)  # the user may
        back = inner.route("/back", lambda handler: handler.answer(302, b"", location=secret))
        assert Tokenizer.from_model(back) == Tokenizer.from_gguf(BPE)
    finally:
        inner.close()


def test_a_proxy_does_not_hide_a_private_address(server: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", server.url)
    away = "http://169.254.169.254/latest"
    server.handler.routes["http://far.example/m"] = lambda handler: handler.answer(302, b"", location=away)  # type: ignore[attr-defined]
    error = failure("http://far.example/m")
    assert "the server leads to 169.254.169.254" in str(error)
    assert [path for path, _ in server.seen] == ["http://far.example/m"]


@pytest.mark.parametrize(
    "url",
    ["https://[", "https://[::1", "http://user:secret@[x]/m", "https://a:99999999/", "http://\u2100.com/", "http:///m"],
)
def test_what_is_not_a_url(url: str, server: Web) -> None:
    error = failure(url)
    assert "secret" not in str(error)
