"""Docker Model Runner's store: `models.json` with tags, `manifests/sha256/HEX` and `blobs/sha256/HEX`.

Source: `pkg/distribution/internal/store` of docker/model-runner. A tag without a namespace is in `ai/`, on Docker Hub.
A layer has a GGUF file if its type says so, or if it is a raw weight (CNCF ModelPack) whose file name ends in `.gguf`.
Docker Engine on Linux keeps the store in a volume, which belongs to root: there `MODELS_PATH` has to name it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .model import DIGEST, Model, companion, dicts, from_environment, home, is_gguf, is_model, read_json, text_of

TITLE = "Docker Model Runner"

HUBS = ("docker.io/", "index.docker.io/", "registry-1.docker.io/")
GGUF = ("application/vnd.docker.ai.gguf.v3", "application/vnd.cncf.model.weight.v1.gguf")
RAW = "application/vnd.cncf.model.weight.v1.raw"
FILE = ("org.cncf.model.filepath", "org.opencontainers.image.title")
"""The annotations that have a layer's file name."""


def places() -> list[Path]:
    """`MODELS_PATH` or `~/.docker/models`."""
    return [from_environment("MODELS_PATH") or home() / ".docker/models"]


def models() -> Iterator[Model]:
    """`smollm2`, `ai/smollm2:135M-Q4_0`: as `docker model list` shows them; a model without a tag by its digest."""
    for place, digest, tags in _entries():
        for name in sorted(map(shown, tags)) or [digest]:
            yield _model(place, name, digest)


def find(name: str) -> Model | None:
    """The model of a tag, or of a digest."""
    for place, digest, tags in _entries():
        if digest and (full(name) in map(full, tags) or name == digest):
            return _model(place, name, digest)
    return None


def full(tag: str) -> str:
    """A tag with its namespace and its version, in lower case."""
    tag = tag.lower()
    for hub in HUBS:
        tag = tag.removeprefix(hub)
    if tag.startswith("huggingface.co/"):
        tag = f"hf.co/{tag.removeprefix('huggingface.co/')}"
    tag = tag if "/" in tag else f"ai/{tag}"
    return tag if ":" in tag.rpartition("/")[2] else f"{tag}:latest"


def shown(tag: str) -> str:
    """The shortest tag that means the same."""
    return full(tag).removeprefix("ai/").removesuffix(":latest")


def _entries() -> Iterator[tuple[Path, str, list[str]]]:
    """Where each model is, its digest, and its tags."""
    for place in places():
        index = read_json(place / "models.json") or {}
        for entry in dicts(index.get("models")):
            tags = entry.get("tags")
            names = map(text_of, tags if isinstance(tags, list) else ())
            yield place, text_of(entry.get("id")), list(filter(None, names))


def _model(place: Path, name: str, digest: str) -> Model:
    """The model of a digest, or why it has no file."""
    path = _blob(place, "manifests", digest)
    manifest = read_json(path) if path else None
    if manifest is None:
        return Model(name, "", "its manifest cannot be read")
    layers = [(layer, _file_name(layer)) for layer in dicts(manifest.get("layers"))]
    weights = [(layer, file) for layer, file in layers if _is_gguf(layer, file)]
    if not weights:
        types = sorted({text_of(layer.get("mediaType")) for layer, _ in layers})
        return Model(name, "", f"it has no GGUF file, but {', '.join(types) or 'no files at all'}")
    layer = next((layer for layer, file in weights if is_model(file)), weights[0][0])  # part 1 of a split file
    blob = _blob(place, "blobs", text_of(layer.get("digest")))
    if blob is None:
        return Model(name, "", "its manifest names no blob")
    return Model(name, str(blob)) if os.path.isfile(blob) else Model(name, "", f"its blob is missing: {blob}")


def _file_name(layer: dict[str, Any]) -> str:
    annotations = layer.get("annotations")
    annotations = annotations if isinstance(annotations, dict) else {}
    return next((text_of(annotations[key]) for key in FILE if key in annotations), "")


def _is_gguf(layer: dict[str, Any], name: str) -> bool:
    kind = layer.get("mediaType")
    return kind in GGUF or (kind == RAW and is_gguf(name) and companion(name) is None)


def _blob(place: Path, folder: str, digest: str) -> Path | None:
    found = DIGEST.fullmatch(digest)
    return place / folder / "sha256" / found[1] if found else None
