"""Ollama's store: `manifests/HOST/NAMESPACE/MODEL/TAG`, JSON that lists layers, and `blobs/sha256-HEX`.

Source: `manifest/paths.go`, `manifest/manifest.go` and `types/model/name.go` of Ollama. From 0.40 it writes
`manifests-v2`, which is looked up first: there the public registry is `ollama.com`, in `manifests` it is
`registry.ollama.ai`; a manifest may be a list of manifests, one for each runner. Names are compared without case.
What writes prompts is chosen as in `selectedTemplateSource` and `GetModel` of `server/images.go`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from .model import DIGEST, Model, Prompts, dicts, files_below, from_environment, home, read_json, read_text, text_of

TITLE = "Ollama"

SERVICE = Path("/usr/share/ollama/.ollama/models")
"""The folder of the service that Ollama's installer sets up on Linux."""

PUBLIC = ("ollama.com", "registry.ollama.ai")
PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
HOST = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*(:[0-9]+)?")
RUNNERS = ("ollama", "llamacpp")
"""The runners that read GGUF files, the preferred one first."""

TYPES = "application/vnd.ollama.image."

HARMONY = ("gptoss", "gpt-oss")
"""The families whose prompts are in the format Harmony, if their template layer has the marks of it."""


class Reference(NamedTuple):
    """The parts of a name."""

    host: str
    namespace: str
    model: str
    tag: str

    @classmethod
    def parse(cls, name: str) -> Reference | None:
        """`[HOST/][NAMESPACE/]MODEL[:TAG]`; `None` if it is not of this form."""
        place, slash, last = name.rpartition("/")
        model, colon, tag = last.partition(":")
        host, _, namespace = place.rpartition("/")
        if (slash and not place) or (colon and not tag):
            return None
        host = PUBLIC[0] if host.lower() in ("", *PUBLIC) else host  # one name for the public registry
        parts = cls(host, namespace or "library", model, tag or "latest")
        fits = HOST.fullmatch(parts.host) and all(PART.fullmatch(part) for part in parts[1:])
        return parts if fits else None

    def __str__(self) -> str:
        """The shortest name, as `ollama list` shows it, without the tag `latest`."""
        shown = [self.host, self.namespace, self.model]
        if self.host == PUBLIC[0]:
            shown = shown[2:] if self.namespace == "library" else shown[1:]
        return "/".join(shown) + (f":{self.tag}" if self.tag != "latest" else "")


def places() -> list[Path]:
    """`OLLAMA_MODELS`; otherwise `~/.ollama/models` and the service's `/usr/share/ollama/.ollama/models`."""
    set_by_user = from_environment("OLLAMA_MODELS")
    return [set_by_user] if set_by_user else [home() / ".ollama/models", SERVICE]


def models() -> Iterator[Model]:
    """`llama3.2`, `llama3.2:1b`, `user/model`, `hf.co/owner/repo:Q4_K_M`: as `ollama list` shows them."""
    for place, reference, manifest in _manifests():
        yield _model(place, str(reference), read_json(manifest))


def find(name: str) -> Model | None:
    """The model of a name."""
    wanted = Reference.parse(name)
    if wanted is None:
        return None
    for place, reference, manifest in _manifests():
        if [*map(str.lower, reference)] == [*map(str.lower, wanted)]:
            return _model(place, name, read_json(manifest))
    return None


def _manifests() -> Iterator[tuple[Path, Reference, Path]]:
    """Where each model is, what it is called, and its manifest."""
    for place, folder in product(places(), ("manifests-v2", "manifests")):
        root = place / folder
        for path in files_below(root, len(Reference._fields)):
            name, _, tag = path.replace("%3A", ":").rpartition("/")
            reference = Reference.parse(f"{name}:{tag}") if name.count("/") == 2 else None
            if reference and os.path.isfile(root / path):
                yield place, reference, root / path


def _model(place: Path, name: str, manifest: dict[str, Any] | None) -> Model:
    """The GGUF file of a manifest, or why there is none."""
    if manifest is None:
        return Model(name, "", "its manifest cannot be read")
    if children := dicts(manifest.get("manifests")):
        return _model_in_list(place, name, children)
    layers = dicts(manifest.get("layers"))
    for layer in layers:
        if layer.get("mediaType") == TYPES + "model":
            blob = _blob(place, layer)
            if blob is None:
                return Model(name, "", "its manifest names no blob")
            if not os.path.isfile(blob):
                return Model(name, "", f"its blob is missing: {blob}")
            return Model(name, str(blob), prompts=_prompts(place, _config(place, manifest), layers))
    return Model(name, "", _absence(_config(place, manifest), layers))


def _model_in_list(place: Path, name: str, children: list[dict[str, Any]]) -> Model:
    """The same for a list of manifests, each for one runner; one that is not in the list itself is a blob."""

    def order(child: dict[str, Any]) -> int:
        runner = text_of(child.get("runner")).lower()
        return RUNNERS.index(runner) if runner in RUNNERS else len(RUNNERS)

    answers = []
    for child in sorted(children, key=order):
        if "manifests" not in child:  # lists are not nested
            blob = None if "layers" in child else _blob(place, child)
            answers.append(_model(place, name, child if blob is None else read_json(blob)))
    first = answers[0] if answers else Model(name, "", "its manifest is empty")
    return next((answer for answer in answers if answer.path), first)


def _blob(place: Path, layer: dict[str, Any]) -> Path | None:
    digest = DIGEST.fullmatch(text_of(layer.get("digest")))
    return place / "blobs" / f"sha256-{digest[1]}" if digest else None


def _config(place: Path, manifest: dict[str, Any]) -> dict[str, Any]:
    """What the configuration of a manifest says; nothing if it cannot be read."""
    config = manifest.get("config")
    blob = _blob(place, config) if isinstance(config, dict) else None
    return (read_json(blob) if blob else None) or {}


def _prompts(place: Path, config: dict[str, Any], layers: list[dict[str, Any]]) -> Prompts:
    """What writes the prompts of a model, and what Ollama adds to its conversations."""
    of_kind = {text_of(layer.get("mediaType")).removeprefix(TYPES): layer for layer in layers}
    template = of_kind.get("template") or of_kind.get("prompt")
    named = [f"{each} {text_of(config.get(each))!r}" for each in ("renderer", "parser") if text_of(config.get(each))]
    if named:
        writer = " and ".join(named)
    elif template and config.get("model_family") in HARMONY and _is_harmony(_blob(place, template)):
        writer = "Harmony format"
    else:
        writer = "template layer" if template else ""
    kinds = {"system": "a system message", "messages": "messages"}
    return Prompts(writer, tuple(name for kind, name in kinds.items() if kind in of_kind))


def _is_harmony(template: Path | None) -> bool:
    text = read_text(template) if template else None
    return text is not None and "<|start|>" in text and "<|end|>" in text


def _absence(config: dict[str, Any], layers: list[dict[str, Any]]) -> str:
    """What a model is that has no GGUF file."""
    if text_of(config.get("remote_host")) or text_of(config.get("remote_model")):
        return "it runs in Ollama's cloud: no file of it is here"
    kinds = config.get("capabilities")
    kind = "a model that makes images" if isinstance(kinds, list) and "image" in kinds else "a model"
    written = text_of(config.get("model_format")) or "another format"
    if any(layer.get("mediaType") == TYPES + "tensor" for layer in layers):
        return f"it is {kind} in single tensors ({written}) and has no GGUF file"
    return f"it is {kind} without a GGUF file ({written})"
