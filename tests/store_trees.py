"""Builds the folders in which other tools keep models, from their documented layouts, with small vocabularies in them.

`Home` is the home folder of a user who has them all; the environment names nothing else.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from conftest import VOCABULARIES
from ggtok.stores import ollama, tools

VARIABLES = (
    *("OLLAMA_MODELS", "LLAMA_CACHE", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HOME", "HF_TOKEN", "HF_ENDPOINT"),
    *("XDG_CACHE_HOME", "XDG_DATA_HOME", "MODELS_PATH", "RAMALAMA_STORE", "GGTOK_MODEL", "GGTOK_OFFLINE"),
    *("HF_HUB_OFFLINE", "HF_TOKEN_PATH", "MODEL_ENDPOINT", "HUGGING_FACE_HUB_TOKEN"),
)
OLLAMA_TYPE = "application/vnd.ollama.image."
COMMIT, OLDER = "a" * 40, "b" * 40


def isolated(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Makes a folder the home of the user, and lets no store be anywhere else."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(folder))
    monkeypatch.setattr(ollama, "SERVICE", folder / "service")
    monkeypatch.setattr(tools.RamaLama, "ROOT", folder / "root")
    return folder


def vocabulary(name: str) -> bytes:
    """The bytes of an embedded vocabulary."""
    return (VOCABULARIES / f"{name}.gguf").read_bytes()


class Home:
    """The stores below a folder. Each method adds a model, and returns the file that its name should lead to."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ollama = folder / ".ollama/models"
        self.hub = folder / ".cache/huggingface/hub"
        self.lmstudio = folder / ".lmstudio/models"
        self.docker = folder / ".docker/models"
        self.ramalama = folder / ".local/share/ramalama/store"
        self.jan = folder / ".local/share/Jan/data"
        self.gpt4all = folder / ".local/share/nomic.ai/GPT4All"

    def write(self, path: Path, data: bytes | str | dict[str, Any]) -> Path:
        """A file, with its folders."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(
            data if isinstance(data, bytes) else (data if isinstance(data, str) else dumped(data)).encode()
        )
        return path

    def ollama_blob(self, data: bytes) -> tuple[str, Path]:
        """A blob by its digest."""
        digest = hashlib.sha256(data).hexdigest()
        return f"sha256:{digest}", self.write(self.ollama / "blobs" / f"sha256-{digest}", data)

    def ollama_manifest(self, place: str, *layers: tuple[str, str], **others: Any) -> Path:
        """A manifest: `place` is its path in the store, each layer has a type and a digest."""
        rows = [{"mediaType": OLLAMA_TYPE + kind, "digest": digest, "size": 1} for kind, digest in layers]
        return self.write(self.ollama / place, {"schemaVersion": 2, "layers": rows, **others})

    def ollama_model(
        self, place: str, name: str, layers: tuple[str, ...] = ("template",), text: str = "", **config: Any
    ) -> Path:
        """A model with a license and other layers of one text."""
        digest, blob = self.ollama_blob(vocabulary(name))
        other, _ = self.ollama_blob(text.encode())
        configuration, _ = self.ollama_blob(dumped(config).encode())
        rows = [(kind, other) for kind in layers] + [("model", digest), ("license", digest)]
        self.ollama_manifest(place, *rows, config={"digest": configuration})
        return blob

    def hub_file(self, repository: str, file: str, data: bytes, *, commit: str = COMMIT, links: bool = True) -> Path:
        """A file of a repository: a link to a blob, or without links the file itself."""
        folder = self.hub / f"models--{repository.replace('/', '--')}"
        path = folder / "snapshots" / commit / file
        if not links:
            return self.write(path, data)
        blob = self.write(folder / "blobs" / hashlib.sha256(data).hexdigest(), data)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(blob)
        return path

    def hub_ref(self, repository: str, name: str = "main", commit: str = COMMIT) -> None:
        """A ref."""
        self.write(self.hub / f"models--{repository.replace('/', '--')}" / "refs" / name, commit)

    def docker_model(self, tags: list[str], *layers: tuple[str, bytes, str], write: bool = True) -> list[Path]:
        """A model with tags: each layer has a type, its bytes, and a file name."""
        rows, blobs = [], []
        for kind, data, name in layers:
            digest = hashlib.sha256(data).hexdigest()
            annotations = {"annotations": {"org.cncf.model.filepath": name}} if name else {}
            rows.append({"mediaType": kind, "digest": f"sha256:{digest}", **annotations})
            blobs.append(self.docker / "blobs/sha256" / digest)
            if write:
                self.write(blobs[-1], data)
        manifest = dumped({"layers": rows})
        digest = hashlib.sha256(manifest.encode()).hexdigest()
        self.write(self.docker / "manifests/sha256" / digest, manifest)
        index = self.docker / "models.json"
        known = json.loads(index.read_text())["models"] if index.exists() else []
        known.append({"id": f"sha256:{digest}", "tags": tags, "files": []})
        self.write(index, {"models": known})
        return blobs

    def ramalama_model(self, place: str, tag: str, *files: tuple[str, str, bytes]) -> list[Path]:
        """A ref with files: each has a type, a name and its bytes."""
        folder, rows, paths = self.ramalama / place, [], []
        digest = f"sha256:{hashlib.sha256(tag.encode()).hexdigest()}"
        for kind, name, data in files:
            blob = self.write(folder / "blobs" / f"sha256-{hashlib.sha256(data).hexdigest()}", data)
            rows.append({"hash": blob.name.replace("-", ":"), "name": name, "type": kind})
            paths.append(folder / "snapshots" / digest.replace(":", "-") / name)
            paths[-1].parent.mkdir(parents=True, exist_ok=True)
            paths[-1].symlink_to(blob)
        ref = {"version": "v1.0", "hash": digest, "path": str(folder), "files": rows}
        self.write(folder / "refs" / f"{tag}.json", ref)
        return paths

    def all(self) -> dict[str, Path]:
        """A model of each store, by name."""
        gguf = "application/vnd.docker.ai.gguf.v3"
        self.write(self.jan / "llamacpp/models/jan/v1/model.yml", "model_path: llamacpp/models/jan/v1/model.gguf\n")
        paths = {
            "ollama:llama3.2": self.ollama_model("manifests/registry.ollama.ai/library/llama3.2/latest", "bpe"),
            "hf:owner/repo-GGUF": self.hub_file("owner/repo-GGUF", "repo-Q4_K_M.gguf", vocabulary("spm")),
            "lmstudio:pub/model-GGUF": self.write(self.lmstudio / "pub/model-GGUF/m.gguf", vocabulary("wordpiece")),
            "docker:smollm2": self.docker_model(["ai/smollm2:latest"], (gguf, vocabulary("unigram"), ""))[0],
            "ramalama:ollama://library/smollm:135m": self.ramalama_model(
                "ollama/library/smollm", "135m", ("chat_template", "chat", b"{}"), ("gguf", "smollm", vocabulary("bpe"))
            )[1],
            "jan:jan/v1": self.write(self.jan / "llamacpp/models/jan/v1/model.gguf", vocabulary("spm")),
            "gpt4all:Llama-3-8B": self.write(self.gpt4all / "Llama-3-8B.gguf", vocabulary("spm")),
        }
        self.hub_ref("owner/repo-GGUF")
        return paths

    def without(self, folder: Path) -> None:
        """Removes a folder."""
        shutil.rmtree(folder)


def dumped(value: object) -> str:
    """JSON."""
    return json.dumps(value)
