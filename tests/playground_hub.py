"""A server that speaks the Hugging Face Hub's API to a browser, for one that takes it for huggingface.co.

Chromium's `--host-resolver-rules` lead the Hub's name, a CDN's and that of any other server here. As on the Hub, files
are redirected to the CDN, which serves ranges; a model that is private or missing is 401, a gated one 403, and headers
that scripts may read are exposed.
"""

from __future__ import annotations

import json
import re
import ssl
import subprocess
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

HUB, CDN, OTHER = "huggingface.co", "cdn.hub.test", "files.test"
PADDING = 800_000_000
"""Weights that no test may read."""

EXPOSED = "Content-Range, ETag, X-Error-Code, Retry-After, RateLimit"
TOKEN = "hf_secret"


def certificate(folder: Path) -> ssl.SSLContext:
    """A server's context with a new certificate, which Chromium is told to accept."""
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=hub.test"]
    key, cert = folder / "key.pem", folder / "cert.pem"
    subprocess.run([*command, "-keyout", str(key), "-out", str(cert)], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    return context


class Hub:
    """The server, the models that it has, and what it was asked."""

    def __init__(self, folder: Path) -> None:
        self.models: dict[str, dict[str, bytes]] = {}
        self.refusals: dict[str, tuple[int, dict[str, str]]] = {}
        """By the beginning of a path: the status and headers that it is refused with."""
        self.has_ranges = True
        self.wrong_total: int | None = None
        self.cut: int | None = None
        self.delay = 0.0
        self.asked: list[tuple[str, str, dict[str, str]]] = []
        self.sent = 0
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (Handler,), {"hub": self}))
        self.server.daemon_threads = True
        self.server.handle_error = lambda *_: None  # type: ignore[method-assign]
        self.server.socket = certificate(folder).wrap_socket(self.server.socket, server_side=True)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def arguments(self) -> list[str]:
        """Those of Chromium."""
        port = self.server.server_port
        rules = ", ".join(f"MAP {host}:443 127.0.0.1:{port}" for host in (HUB, CDN, OTHER))
        return [f"--host-resolver-rules={rules}", "--ignore-certificate-errors"]

    def reset(self) -> None:
        self.__dict__.update(has_ranges=True, wrong_total=None, cut=None, delay=0.0, sent=0)
        for each in (self.refusals, self.asked):
            each.clear()

    def stop(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    def paths(self, host: str = HUB) -> list[str]:
        """What a host was asked for, besides permissions."""
        return [path for name, path, _ in self.asked if name == host]


class Handler(BaseHTTPRequestHandler):
    hub: Hub
    protocol_version = "HTTP/1.1"

    def log_message(self, *args: object) -> None:
        pass

    def answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        self.send_header("access-control-allow-origin", "*")
        self.send_header("access-control-allow-headers", "authorization, range")
        self.send_header("access-control-expose-headers", EXPOSED)
        for name, value in {"content-length": str(len(body)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def do_OPTIONS(self) -> None:
        self.answer(204)

    def do_GET(self) -> None:
        hub, host, url = self.hub, self.headers["host"], urlsplit(self.path)
        hub.asked.append((host, self.path, {name.lower(): value for name, value in self.headers.items()}))
        time.sleep(hub.delay)
        path = unquote(url.path)
        for prefix, (status, headers) in hub.refusals.items():
            if path.startswith(prefix):
                return self.answer(status, b"no", **headers)
        if host != HUB:
            return self.file(path)
        if path == "/api/models":
            found = [{"id": name, "downloads": 1234} for name in hub.models]
            return self.answer(200, json.dumps(found).encode(), content_type="application/json")
        match = re.fullmatch(r"(/api/models)?/([^/]+/[^/]+)(?:/resolve/main/(.*))?", path)
        files = hub.models.get(match[2]) if match else None
        if files is None or match is None:
            return self.answer(401, x_error_code="RepoNotFound")
        if match[2].startswith("private/") and self.headers["authorization"] != f"Bearer {TOKEN}":
            return self.answer(401, x_error_code="RepoNotFound")
        if match[1]:
            return self.model(files, url.query)
        if match[3] not in files:
            return self.answer(404, x_error_code="EntryNotFound")
        return self.answer(302, location=f"https://{CDN}/{match[2]}/{match[3]}")

    def model(self, files: dict[str, bytes], query: str) -> None:
        """A model with the list of its files, which have sizes if these are asked for."""
        items = [
            {"rfilename": path, **({"size": len(data) + PADDING} if query == "blobs=true" else {})}
            for path, data in files.items()
        ]
        self.answer(200, json.dumps({"siblings": items}).encode(), content_type="application/json")

    def file(self, path: str) -> None:
        """A file, with weights of zeros at its end. Counts what is sent."""
        hub = self.hub
        owner, name, file = path.strip("/").split("/", 2)
        data = hub.models[f"{owner}/{name}"][file]
        total = len(data) + PADDING
        asked = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers["range"] or "")
        is_part = asked is not None and hub.has_ranges
        start, end = (int(asked[1]), min(int(asked[2]) + 1, total)) if asked and is_part else (0, total)
        total = hub.wrong_total or total
        self.send_response(206 if is_part else 200)
        self.send_header("access-control-allow-origin", "*")
        self.send_header("access-control-expose-headers", EXPOSED)
        self.send_header("content-length", str(end - start))
        self.send_header("connection", "close")
        if is_part:
            self.send_header("content-range", f"bytes {start}-{end - 1}/{total}")
        self.end_headers()
        while start < end and (hub.cut is None or start < hub.cut):
            stop = min(start + (1 << 16), end, hub.cut or end)
            part = data[start:stop]
            self.wfile.write(part + bytes(stop - start - len(part)))
            hub.sent += stop - start
            start = stop
        self.close_connection = True
