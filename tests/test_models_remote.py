"""Files at a URL: a server on this machine cuts, redirects, lies, ignores ranges, never ends, and wants a token."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import ggtok
import pytest
from ggtok import DownloadError, GGUFError, ModelNotFoundError, Tokenizer
from ggtok._stores import hub, remote, web
from hypothesis import given, settings
from hypothesis import strategies as st
from store_trees import Home, isolated, vocabulary
from test_cli import call

BPE = vocabulary("bpe")
BIG = BPE + bytes(20_000_000)
"""With what stands for tensors."""


def absent(handler: Handler) -> None:
    handler.answer(404, b"no such file")


class Handler(BaseHTTPRequestHandler):
    """Answers as the test says that put a function under the path."""

    protocol_version = "HTTP/1.1"
    routes: ClassVar[dict[str, Callable[[Handler], None]]]
    seen: ClassVar[list[tuple[str, Message]]]
    sent: ClassVar[int]

    def do_GET(self) -> None:
        self.seen.append((self.path, self.headers))
        route = self.routes.get(self.path, absent)
        try:
            route(self)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def answer(self, status: int, body: bytes, **headers: str) -> None:
        """A whole answer. `content_length=""` leaves that header out."""
        self.send_response(status)
        fields = {"content_length": str(len(body)), **headers}
        for name, value in fields.items():
            if value:
                self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.push(body)

    def push(self, data: bytes) -> None:
        for start in range(0, len(data), 1 << 16):
            self.wfile.write(data[start : start + (1 << 16)])
            type(self).sent += len(data[start : start + (1 << 16)])

    def range(self, size: int) -> tuple[int, int]:
        """What was asked for, as a slice."""
        found = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers["range"])
        assert found is not None
        return int(found[1]), min(int(found[2]) + 1, size)

    def ranged(self, data: bytes, *, most: int | None = None, **headers: str) -> None:
        """A range, of which no more than `most` bytes are sent before the connection ends."""
        start, end = self.range(len(data))
        if start >= len(data):
            return self.answer(416, b"")
        self.send_response(206)
        fields = {
            "content_range": f"bytes {start}-{end - 1}/{len(data)}",
            "content_length": str(end - start),
            **headers,
        }
        for name, value in fields.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.push(data[start : end if most is None else min(end, start + most)])
        self.close_connection = most is not None

    def log_message(self, format: str, *args: object) -> None:
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        error = sys.exception()
        assert isinstance(error, OSError), error


class Web:
    """A server in a thread, with its address."""

    def __init__(self) -> None:
        self.handler = type("Routes", (Handler,), {"routes": {}, "seen": [], "sent": 0})
        self.server = Server(("127.0.0.1", 0), self.handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True)
        self.thread.start()

    def route(self, path: str, answer: Callable[[Handler], None]) -> str:
        """The URL of an answer."""
        self.handler.routes[path] = answer  # type: ignore[attr-defined]
        return self.url + path

    @property
    def seen(self) -> list[tuple[str, Message]]:
        """The requests: paths and headers."""
        return self.handler.seen  # type: ignore[attr-defined, no-any-return]

    @property
    def ranges(self) -> list[str | None]:
        return [headers["range"] for _, headers in self.seen]

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Web]:
    isolated(tmp_path, monkeypatch)
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        for variable in (name, name.upper()):
            monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(remote, "PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(remote, "FIRST_READ", 100_000)
    server = Web()
    yield server
    server.close()


def failure(url: str, **options: Any) -> DownloadError:
    with pytest.raises(DownloadError) as caught:
        Tokenizer.from_model(url, **options)
    assert caught.value.url == web.shown(url)
    assert caught.value.path is None
    return caught.value


# what is read


def test_only_the_beginning_is_read(server: Web) -> None:
    url = server.route("/m.gguf", lambda handler: handler.ranged(BIG))
    tok = Tokenizer.from_model(url, overrides={"tokenizer.ggml.add_bos_token": True})
    assert tok == Tokenizer.from_gguf(BPE, overrides={"tokenizer.ggml.add_bos_token": True})
    assert len(BPE) <= server.handler.sent < 2 * len(BPE)  # type: ignore[attr-defined]
    assert server.ranges[:2] == ["bytes=0-99999", "bytes=100000-199999"]
    assert len(server.ranges) == 4
    assert tok._source is None


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
    url = server.route("/m.gguf", lambda handler: handler.answer(200, whole))
    assert Tokenizer.from_model(url) == Tokenizer.from_gguf(BPE)
    assert len(server.ranges) == 1
    time.sleep(0.1)
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
    start = time.monotonic()
    assert "127.0.0.1: no connection (" in str(failure(f"http://127.0.0.1:{port}/m.gguf"))
    assert "there is no server of this name" in str(failure("http://no-such-host.invalid/m.gguf"))
    assert time.monotonic() - start < 5
    error = failure(f"{server.url.replace('http', 'https')}/m.gguf")
    assert "no secure connection" in str(error) or "the connection broke" in str(error)


# time and size


def test_servers_that_do_not_answer(server: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web, "READ_SECONDS", 0.1)
    monkeypatch.setattr(remote, "MAX_FAILURES", 1)
    url = server.route("/m", lambda handler: time.sleep(1))
    assert "no answer within 0.1 s" in str(failure(url))


def test_servers_that_trickle(server: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    def trickle(handler: Handler) -> None:
        handler.answer(200, BPE[:1000], content_length="")
        for _ in range(300):
            handler.push(b"\0")
            time.sleep(0.01)
        handler.close_connection = True

    monkeypatch.setattr(remote, "MAX_SECONDS", 0.3)
    start = time.monotonic()
    assert "it takes more than 0.3 s" in str(failure(server.route("/m", trickle)))
    assert time.monotonic() - start < 2


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
        "other place": (other_place, "the server sends other bytes than it was asked for"),
        "no place": (lambda handler: handler.answer(206, BPE), "the server sends other bytes"),
        "backwards": (lambda handler: handler.answer(206, BPE, content_range="bytes 9-0/5"), "other bytes"),
        "huge": (lambda handler: handler.answer(206, BPE, content_range=f"bytes 0-{'9' * 30}/*"), "other bytes"),
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


# redirects and secrets


def redirect(target: str, status: int = 302) -> Callable[[Handler], None]:
    return lambda handler: handler.answer(status, b"", location=target)


@pytest.fixture
def other(server: Web) -> Iterator[Web]:
    other = Web()
    yield other
    other.close()


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects(server: Web, other: Web, status: int) -> None:
    far = other.route("/cdn/m?signature=secret", lambda handler: handler.ranged(BIG))
    server.route("/near", redirect(far, status))
    url = server.route("/m", redirect("near", status))
    assert Tokenizer.from_model(url) == Tokenizer.from_gguf(BPE)
    assert len(other.seen) == 4


def test_redirects_that_do_not_end_well(server: Web) -> None:
    assert "more than 10 redirects" in str(failure(server.route("/loop", redirect("/loop"))))
    for target in ("file:///etc/passwd", "ftp://x/y", "http://[", "http://a b/", "http://h:port/"):
        assert re.search(
            "is not a URL of the web|redirects to no address", str(failure(server.route("/m", redirect(target))))
        )
    server.route("/m", lambda handler: handler.answer(302, b""))
    assert failure(server.url + "/m").status == 302


def test_no_redirect_leaves_https(server: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    class Response:
        status, headers = 302, {"location": "http://plain.example/m"}

        def close(self) -> None:
            pass

    class Pool:
        def request(self, *_: object, **__: object) -> Response:
            return Response()

        def clear(self) -> None:
            pass

    monkeypatch.setattr(web.Client, "_pool", lambda *_: Pool())
    assert "redirects to an address without https" in str(failure("https://secure.example/m"))


def authorizations(server: Web) -> set[str | None]:
    return {headers["authorization"] for _, headers in server.seen}


def test_the_token_goes_to_the_hub_alone(server: Web, other: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_secret\n")
    monkeypatch.setenv("HF_ENDPOINT", f"{server.url}/")
    far = other.route("/m", lambda handler: handler.ranged(BPE))

    def gated(handler: Handler) -> None:
        allowed = handler.headers["authorization"] == "Bearer hf_secret"
        redirect(far)(handler) if allowed else handler.answer(401, b"")

    assert Tokenizer.from_model(server.route("/o/r/resolve/main/m.gguf", gated)) == Tokenizer.from_gguf(BPE)
    assert authorizations(server) == {"Bearer hf_secret"}
    assert authorizations(other) == {None}
    Tokenizer.from_model(far)
    assert authorizations(other) == {None}
    back = other.route("/back", redirect(f"{server.url}/o/r/resolve/main/m.gguf"))
    Tokenizer.from_model(back)
    assert authorizations(server) == {"Bearer hf_secret"}
    monkeypatch.setenv("HF_TOKEN", "two\nlines")
    error = failure(far)
    assert "HF_TOKEN has characters" in str(error)
    assert "two" not in str(error)
    monkeypatch.delenv("HF_TOKEN")
    assert failure(server.url + "/o/r/resolve/main/m.gguf").status == 401


def test_passwords_stay_secret(server: Web, other: Web) -> None:
    far = other.route("/m", lambda handler: handler.ranged(BPE))
    server.route("/m?key=secret", redirect(far))
    url = server.url.replace("://", "://user:pass%20word@") + "/m?key=secret"
    Tokenizer.from_model(url)
    assert authorizations(server) == {"Basic dXNlcjpwYXNzIHdvcmQ="}
    assert authorizations(other) == {None}
    error = failure(url.replace("/m?", "/absent?"))
    assert str(error).startswith(f"{server.url}/absent: ")
    assert "pass" not in str(error)
    assert "secret" not in str(error)


def test_proxies(server: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", server.url.replace("://", "://user:word@"))
    server.handler.routes["http://far.example/m.gguf"] = lambda handler: handler.ranged(BPE)  # type: ignore[attr-defined]
    assert Tokenizer.from_model("http://far.example/m.gguf") == Tokenizer.from_gguf(BPE)
    assert {headers["proxy-authorization"] for _, headers in server.seen} == {"Basic dXNlcjp3b3Jk"}
    monkeypatch.setenv("no_proxy", "far.invalid")
    assert "there is no server of this name" in str(failure("http://far.invalid/m.gguf"))


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
def test_https(server: Web, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A certificate that this test makes: refused, until it is among the system's."""
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    make = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost"
    subprocess.run([*make.split(), "-keyout", key, "-out", certificate], capture_output=True, check=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.server.socket = context.wrap_socket(server.server.socket, server_side=True)
    server.route("/m", lambda handler: handler.ranged(BPE))
    url = f"https://localhost:{server.server.server_port}/m"
    error = str(failure(url))
    assert "localhost: no secure connection (" in error
    assert "certificate" in error
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    assert Tokenizer.from_model(url) == Tokenizer.from_gguf(BPE)
    assert "no secure connection" in str(failure(url.replace("localhost", "127.0.0.1")))


# offline


@pytest.mark.parametrize("value", ["1", "true", "yes"])
def test_offline(server: Web, monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    url = server.route("/m", lambda handler: handler.ranged(BPE))
    assert "offline mode" in str(failure(url, offline=True))
    monkeypatch.setenv("GGTOK_OFFLINE", value)
    for offline in (None, False):
        assert "GGTOK_OFFLINE forbids the network" in str(failure(url, offline=offline))
    with pytest.raises(DownloadError, match="GGTOK_OFFLINE"):
        Tokenizer.from_model("hf:o/r", offline=False)
    monkeypatch.setenv("GGTOK_OFFLINE", "0")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(DownloadError, match="HF_HUB_OFFLINE forbids"):
        Tokenizer.from_model("hf:o/r", offline=False)
    assert server.seen == []
    assert Tokenizer.from_model(url) == Tokenizer.from_gguf(BPE)


def test_names_never_use_the_network_unasked(server: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", server.url)
    with pytest.raises(ModelNotFoundError, match=r"--online \(offline=False\) reads it from the Hub"):
        Tokenizer.from_model("hf:o/r")
    with pytest.raises(ModelNotFoundError) as caught:
        Tokenizer.from_model("hf:o/r", offline=True)
    assert "--online" not in str(caught.value)
    for name in ("ollama:x", "lmstudio:x/y", "x"):
        with pytest.raises(ModelNotFoundError):
            Tokenizer.from_model(name, offline=False)
    with pytest.raises(ModelNotFoundError, match="is a URL"):
        ggtok.find(f"{server.url}/m.gguf")
    assert server.seen == []


# the Hub


def repository(server: Web, files: dict[str, bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    """A repository `o/r` of the Hub, whose list comes in pages of two."""
    monkeypatch.setenv("HF_ENDPOINT", server.url)
    rows: list[dict[str, Any]] = [{"type": "directory", "path": "x.gguf"}]
    rows += [{"type": "file", "path": name, "size": len(data)} for name, data in files.items()]
    for at in range(0, len(rows), 2):
        path = "/api/models/o/r/tree/main?recursive=true" + (f"&cursor={at}" if at else "")
        following = f'<{server.url}/api/models/o/r/tree/main?recursive=true&cursor={at + 2}>; rel="next"'
        link = {"link": following} if at + 2 < len(rows) else {}
        body = json.dumps(rows[at : at + 2]).encode()
        server.route(path, lambda handler, body=body, link=link: handler.answer(200, body, **link))  # type: ignore[misc]
    for name, data in files.items():
        path = f"/o/r/resolve/main/{name.replace(' ', '%20')}"
        server.route(path, lambda handler, data=data: handler.ranged(data))  # type: ignore[misc]


def test_repositories(server: Web, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    files = {"m-Q8_0.gguf": vocabulary("spm"), "m-Q4_K_M.gguf": BIG, "mmproj-Q4_K_M.gguf": b"", "a b/c.gguf": BPE}
    repository(server, files, monkeypatch)
    spm, bpe = Tokenizer.builtin("spm"), Tokenizer.from_gguf(BPE)
    assert Tokenizer.from_model("hf:o/r", offline=False) == bpe
    assert Tokenizer.from_model("hf:o/r:q8_0", offline=False) == spm
    assert Tokenizer.from_model("hf:o/r/a b/c.gguf", offline=False) == bpe
    assert Tokenizer.from_model(f"{server.url}/o/r") == bpe
    assert Tokenizer.from_model(f"{server.url}/o/r:Q8_0") == spm
    assert Tokenizer.from_model(f"{server.url}/o/r/blob/main/m-Q8_0.gguf") == spm
    with pytest.raises(ModelNotFoundError) as caught:
        Tokenizer.from_model("hf:o/r:Q2_K", offline=False)
    assert caught.value.nearest == ("hf:o/r/a b/c.gguf", "hf:o/r:Q4_K_M", "hf:o/r:Q8_0")
    with pytest.raises(ModelNotFoundError, match="it is a projector"):
        Tokenizer.from_model("hf:o/r/mmproj-Q4_K_M.gguf", offline=False)
    requests = len(server.seen)
    home = Home(tmp_path)
    home.hub_file("o/r", "m-Q4_K_M.gguf", vocabulary("wordpiece"))
    assert Tokenizer.from_model("hf:o/r", offline=False).vocab.kind == "wordpiece"  # the cache wins
    assert len(server.seen) == requests
    done = call("count", "-m", "hf:o/r:Q8_0", "--online", "-p", "What is LoRA?")
    assert done.out == b"%d\n" % spm.count("What is LoRA?")
    done = call("count", "-m", f"{server.url}/o/r", "--offline", "-p", "a")
    assert done.err == f"ggtok: error: {server.url}/o/r: offline mode (--offline, offline=True) forbids the network\n"


@pytest.mark.parametrize(
    ("status", "body", "problem"),
    [
        (401, b"", "it wants a token"),
        (404, b"", "there is no such file"),
        (200, b"<html>", "something else than JSON"),
        (200, b"\xff", "something else than JSON"),
        (200, b"[" * 100_000, "something else than JSON"),
        (200, b"{}", "the server's list of files is not one"),
    ],
)
def test_lists_that_are_not(
    server: Web, monkeypatch: pytest.MonkeyPatch, status: int, body: bytes, problem: str
) -> None:
    repository(server, {}, monkeypatch)
    server.route("/api/models/o/r/tree/main?recursive=true", lambda handler: handler.answer(status, body))
    with pytest.raises(DownloadError, match=problem):
        Tokenizer.from_model("hf:o/r", offline=False)


def test_lists_that_never_end(server: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    repository(server, {}, monkeypatch)
    path = "/api/models/o/r/tree/main?recursive=true"
    server.route(path, lambda handler: handler.answer(200, b"[]", link=f'<{path}>; rel="next"'))
    with pytest.raises(DownloadError, match="list of files does not end"):
        Tokenizer.from_model("hf:o/r", offline=False)
    monkeypatch.setattr(web, "MAX_JSON", 1000)
    server.route(path, lambda handler: handler.answer(200, b" " * 2000))
    with pytest.raises(DownloadError, match="list is too long"):
        Tokenizer.from_model("hf:o/r", offline=False)
    with pytest.raises(ModelNotFoundError, match=r"not of the form hf:owner/repo\[:TAG\]"):
        Tokenizer.from_model("hf:..", offline=False)


def test_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HF_ENDPOINT", raising=False)
    hub_url = "https://huggingface.co/o/r"
    assert remote.address(f"{hub_url}/blob/main/m.gguf?x") == f"{hub_url}/resolve/main/m.gguf?x"
    assert remote.address("https://x.y/o/r/blob/main/m.gguf") == "https://x.y/o/r/blob/main/m.gguf"
    assert remote.address(f"{hub_url}/m-00003-of-00007.gguf") == f"{hub_url}/m-00001-of-00007.gguf"
    assert hub.repository_of(f"{hub_url}:Q8_0/") == "o/r:Q8_0"
    for other in (
        f"{hub_url}/m.gguf",
        "https://x.y/o/r",
        "https://huggingface.co/",
        "https://[",
        "http://huggingface.co:x/",
    ):
        assert hub.repository_of(other) is None


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
