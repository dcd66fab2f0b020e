"""A web server on this machine that answers as a test says, however wrongly."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable, Iterator
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest
from ggtok import DownloadError, Tokenizer
from ggtok.stores import remote, web
from store_trees import isolated, vocabulary

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

    def __init__(self, host: str = "127.0.0.1") -> None:
        self.handler = type("Routes", (Handler,), {"routes": {}, "seen": [], "sent": 0})
        self.server = Server((host, 0), self.handler)
        self.url = f"http://{host}:{self.server.server_port}"
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


def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Web]:
    """A server for one test, whose user has no stores, tokens or proxies, and a client that starts small."""
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
    """The error of a URL, which names it."""
    with pytest.raises(DownloadError) as caught:
        Tokenizer.from_model(url, **options)
    assert caught.value.url == web.shown(url)
    assert caught.value.path is None
    return caught.value
