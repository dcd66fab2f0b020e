"""Manifests of stores that are damaged, and lists of servers: a model or a typed error, and no waiting."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ggtok
import pytest
from damage import DAMAGE, cases, damaged
from ggtok import GgtokError, Tokenizer
from ggtok.stores import find, tools, web
from ggtok.stores.model import Model
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from store_trees import Home, isolated, vocabulary
from web_server import BPE, Web, served

TYPE = "application/vnd.docker.ai.gguf.v3"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """A model in each store that has manifests of JSON."""
    home = Home(isolated(tmp_path, monkeypatch))
    home.ollama_model("manifests/registry.ollama.ai/library/m/latest", "bpe", model_family="gptoss", renderer="r")
    digest, _ = home.ollama_blob(vocabulary("spm"))
    child = {"runner": "ollama", "layers": [{"mediaType": "application/vnd.ollama.image.model", "digest": digest}]}
    home.ollama_manifest("manifests-v2/ollama.com/library/l/latest", manifests=[child])
    home.docker_model(["ai/m:latest"], (TYPE, vocabulary("bpe"), "m.gguf"))
    home.ramalama_model("ollama/library/m", "latest", ("gguf", "m.gguf", vocabulary("bpe")))
    home.write(home.jan.parent / "settings.json", {"data_folder": str(home.jan)})
    home.write(home.lmstudio.parent / "settings.json", {"downloadsFolder": str(home.lmstudio)})
    return home


def models() -> list[Model]:
    return [model for each in find.stores() for model in each.models()]


def use() -> None:
    """Everything that reads a store."""
    for model in models():
        assert model.path or model.problem
        with contextlib.suppress(GgtokError):
            Tokenizer.from_model(model.name)
    for prefix in tools.STORES:
        with contextlib.suppress(GgtokError):
            ggtok.find(f"{prefix}:m")


def manifests(home: Home) -> list[Path]:
    found = []
    for path in home.folder.rglob("*"):
        with contextlib.suppress(ValueError, OSError):
            if path.is_file() and path.stat().st_size < 5000 and isinstance(json.loads(path.read_bytes()), dict):
                found.append(path)
    return sorted(found)


def test_damaged_manifests_of_stores(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Tokenizer, "from_model", classmethod(lambda cls, name: ggtok.find(name)))  # without opening it
    paths = manifests(home)
    assert len(paths) >= 8
    use()
    for path in paths:
        before = path.read_bytes()
        document = json.loads(before)
        for place, new in cases(document):
            path.write_text(json.dumps(damaged(document, place, new)))
            try:
                use()
            except BaseException as error:
                raise AssertionError(path, place, new) from error
        path.write_bytes(before)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such pipes")
def test_what_is_not_a_file_is_not_waited_for(home: Home) -> None:
    """Everything in a store may be a pipe."""
    for path in sorted(home.folder.rglob("*")):
        if path.is_file():
            path.unlink()
            os.mkfifo(path)
    (home.folder / ".lmstudio-home-pointer").symlink_to("/dev/zero")
    use()
    assert [model for model in models() if model.path] == []


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    with pytest.MonkeyPatch.context() as monkeypatch:
        for server in served(tmp_path_factory.mktemp("home"), monkeypatch):
            monkeypatch.setenv("HF_ENDPOINT", server.url)
            yield server


ITEMS = st.fixed_dictionaries(
    {},
    optional={
        "rfilename": st.sampled_from(
            (*DAMAGE, "m.gguf", "a/m-Q8_0.gguf", "m-00001-of-00002.gguf", "\0.gguf", "a\nb.gguf")
        ),
    },
)
LISTS = st.lists(ITEMS | st.sampled_from(DAMAGE)) | st.sampled_from(DAMAGE)


@given(answer=st.fixed_dictionaries({}, optional={"siblings": LISTS}) | st.sampled_from(DAMAGE))
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_list_gives_the_file_or_a_typed_error(server: Web, answer: Any) -> None:
    server.handler.routes = {  # type: ignore[attr-defined]
        "/api/models/o/r": lambda handler: handler.answer(200, json.dumps(answer).encode()),
        **{f"/o/r/resolve/main/{name}": lambda handler: handler.ranged(BPE) for name in ("m.gguf", "a/m-Q8_0.gguf")},
    }
    with contextlib.suppress(GgtokError):
        assert Tokenizer.from_model("hf:o/r", offline=False).vocab.kind == "bpe"
    assert all(path.startswith(("/o/r/resolve/main/", "/api/models/o/r")) for path, _ in server.seen)


@given(
    url=st.text(st.sampled_from("htps:/[]@.?#%0a\u2100\ud800\\ "), max_size=20),
    scheme=st.sampled_from(("https://", "http://")),
)
def test_any_url_is_typed(url: str, scheme: str) -> None:
    """What cannot be a URL of the web is refused before any connection."""
    with contextlib.suppress(GgtokError), pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(web.Client, "get", lambda client, *_: client._checked("x:"))
        Tokenizer.from_model(scheme + url, offline=False)
