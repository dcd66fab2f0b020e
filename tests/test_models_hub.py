"""Who gets which secret, when the network is used at all, and repositories of the Hugging Face Hub."""

from __future__ import annotations

import json
import re
import shutil
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import quote

import ggtok
import pytest
from ggtok import DownloadError, ModelNotFoundError, Tokenizer
from ggtok.stores import hub, remote, tools, web
from store_trees import Home, vocabulary
from test_cli import call
from web_server import BIG, BPE, Handler, Web, failure, served


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Web]:
    yield from served(tmp_path, monkeypatch)


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
            "is not an http or https URL|redirects to no address", str(failure(server.route("/m", redirect(target))))
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
    assert "no server has this name" in str(failure("http://far.invalid/m.gguf"))


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
    # A Python that finds no certificates of the system takes certifi's.
    monkeypatch.delenv("SSL_CERT_FILE")
    monkeypatch.setattr(ssl, "get_default_verify_paths", lambda: SimpleNamespace(cafile=None, capath=None))
    monkeypatch.setitem(sys.modules, "certifi", SimpleNamespace(where=lambda: str(certificate)))
    assert Tokenizer.from_model(url) == Tokenizer.from_gguf(BPE)


# offline


@pytest.mark.parametrize("value", ["1", "true", "yes"])
def test_offline(server: Web, monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    url = server.route("/m", lambda handler: handler.ranged(BPE))
    error = failure(url, offline=True)
    assert ("offline=True" in str(error), error.status) == (True, None)
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
    with pytest.raises(ModelNotFoundError, match="offline=False reads it from the Hub"):
        Tokenizer.from_model("hf:o/r")
    with pytest.raises(ModelNotFoundError) as caught:
        Tokenizer.from_model("hf:o/r", offline=True)
    assert "offline=False" not in str(caught.value)
    for name in ("ollama:x", "lmstudio:x/y", "x"):
        with pytest.raises(ModelNotFoundError):
            Tokenizer.from_model(name, offline=False)
    with pytest.raises(ModelNotFoundError, match="is a URL"):
        ggtok.find(f"{server.url}/m.gguf")
    assert server.seen == []


# the Hub


FILES = "/api/models/o/r"
"""Where a repository's files are listed."""


def repository(server: Web, files: dict[str, bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    """A repository `o/r` of the Hub."""
    monkeypatch.setenv("HF_ENDPOINT", server.url)
    body = json.dumps({"id": "o/r", "siblings": [{"rfilename": name} for name in files]}).encode()
    server.route(FILES, lambda handler: handler.answer(200, body))
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
    assert done.err == f"ggtok: error: {server.url}/o/r: --offline forbids the network\n"


@pytest.mark.parametrize(
    ("status", "body", "problem"),
    [
        (401, b"", "a token is needed"),
        (404, b"", "no such file"),
        (200, b"<html>", "answer is not JSON"),
        (200, b"\xff", "answer is not JSON"),
        (200, b"[" * 100_000, "answer is not JSON"),
        *((200, body, "the server's answer is not a list of files") for body in (b"{}", b"[]", b'{"siblings": {}}')),
    ],
)
def test_lists_that_are_not(
    server: Web, monkeypatch: pytest.MonkeyPatch, status: int, body: bytes, problem: str
) -> None:
    repository(server, {}, monkeypatch)
    server.route(FILES, lambda handler: handler.answer(status, body))
    with pytest.raises(DownloadError, match=problem):
        Tokenizer.from_model("hf:o/r", offline=False)


def test_lists_that_are_too_long(server: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    repository(server, {}, monkeypatch)
    monkeypatch.setattr(web, "MAX_JSON", 1000)
    server.route(FILES, lambda handler: handler.answer(200, b" " * 2000))
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


# lists that someone made


@pytest.mark.parametrize(
    ("path", "is_file"),
    [
        *(("../../other/m.gguf", False), ("/m.gguf", False), ("a/../../m.gguf", False), ("..", False)),
        *(("\ud800.gguf", False), ("", False), ("a/b/m.gguf", True), ("a?b#c%2e%2e.gguf", True), ("..m.gguf", True)),
    ],
)
def test_paths_of_a_list(server: Web, monkeypatch: pytest.MonkeyPatch, path: str, is_file: bool) -> None:
    repository(server, {}, monkeypatch)
    body = json.dumps({"siblings": [{"rfilename": path}, {"rfilename": None}, {}, 7, None]}).encode()
    server.route(FILES, lambda handler: handler.answer(200, body))
    with pytest.raises((DownloadError, ModelNotFoundError)) as caught:
        Tokenizer.from_model("hf:o/r", offline=False)
    assert isinstance(caught.value, DownloadError) == is_file
    asked = [each for each, _ in server.seen if "/resolve/" in each]
    assert asked == ([f"/o/r/resolve/main/{quote(path)}"] if is_file else [])


def test_numbers_of_a_list(server: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    repository(server, {}, monkeypatch)
    body = b'{"siblings": [{"rfilename": "m.gguf", "size": %s}]}' % (b"9" * 5000)
    server.route(FILES, lambda handler: handler.answer(200, body))
    with pytest.raises(DownloadError, match="answer is not JSON"):
        Tokenizer.from_model("hf:o/r", offline=False)


def test_no_list_reaches_a_private_address(server: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    real, inner = web.is_private, Web("127.0.0.2")
    monkeypatch.setattr(web, "is_private", lambda host: host != "127.0.0.1" and real(host))
    repository(server, {}, monkeypatch)
    server.route(FILES, redirect(f"{inner.url}/"))
    with pytest.raises(DownloadError, match=r"leads to 127\.0\.0\.2"):
        Tokenizer.from_model("hf:o/r", offline=False)
    assert inner.seen == []
    inner.close()


def test_a_list_that_drips_ends(server: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    repository(server, {}, monkeypatch)

    def drip(handler: Handler) -> None:
        handler.push(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
        for _ in range(2000):
            handler.push(b"1\r\n \r\n")
            time.sleep(0.01)

    server.route(FILES, drip)
    monkeypatch.setattr(hub, "MAX_SECONDS", 0.3)
    with pytest.raises(DownloadError, match=r"it takes more than 0\.3 s"):
        Tokenizer.from_model("hf:o/r", offline=False)


def test_paths_of_jan_are_read_in_linear_time() -> None:
    """Long files, each of whose characters may begin something: quadratic time would never end."""
    for text in ("model_path:" + " " * 4_000_000 + "x", "model_path: " + " #" * 2_000_000, "model_path: x\n" * 300_000):
        tools.model_path(text)
    for text in ("model_path: x\n" + (" " * 1000 + "\n") * 4000, "model_path: >\n" + " a\n" * 1_000_000):
        tools.model_path(text)


@pytest.mark.parametrize(
    ("text", "path"),
    [
        *(("model_path: a b.gguf", "a b.gguf"), ("x: 1\r\nmodel_path : 'it''s' # c\r\n", "it's")),
        *(('model_path: "a\\u00e9"', "a\u00e9"), ("model_path: >-\n  a\n  b\nx: 1", "a b"), ("  model_path: a", "")),
        *(
            ("model_path: a#b\t#c", "a#b"),
            ("model_path:", ""),
            ("model_path: a\n  b\n\n  c", "a b"),
            ("model_paths: a", ""),
        ),
        *(("model_paths: a", ""), ('model_path: "a', ""), ("model_path: \nmodel_path: a", "")),
    ],
)
def test_paths_of_jan(text: str, path: str) -> None:
    assert tools.model_path(text) == path
