"""RamaLama's store: `store/TYPE/ORGANIZATION/NAME/{refs/TAG.json,snapshots,blobs}`.

Source: `ramalama/model_store` of RamaLama 0.25. A ref lists files with their types; a snapshot has links to blobs, and
the colon of a digest is a hyphen in a file name.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from .model import Model, data_home, dicts, entries, folders, from_environment, inside, read_json, text_of

PREFIX = "ramalama"
TITLE = "RamaLama"

ROOT = Path("/var/lib/ramalama")
"""The folder of the user root."""

MAX_DEPTH = 8
"""How many folders deep models are: a type, an organization of any number of folders, a name."""


def places() -> list[Path]:
    """The user's store, and root's."""
    own = from_environment("RAMALAMA_STORE") or data_home() / "ramalama"
    return [own / "store", ROOT / "store"]


def models() -> Iterator[Model]:
    """All models of all places."""
    for place in places():
        for kind in folders(place):
            for folder in _with_refs(kind, MAX_DEPTH):
                name = folder.relative_to(kind).as_posix()
                for entry in entries(folder / "refs"):
                    tag, dot, _ = entry.name.rpartition(".json")
                    if dot:
                        full = f"{PREFIX}:{kind.name}://{name}:{tag}"
                        yield _model(full, folder, read_json(Path(entry.path)))


def find(name: str) -> Model | None:
    """The model of a name as `ramalama list` shows it, or of its end: `smollm:135m` is `ollama://library/smollm:135m`.

    Without a tag, the tag is `latest`.
    """
    name = name.replace(":///", "://").lower()
    wanted = name if ":" in name.rpartition("/")[2] else f"{name}:latest"
    for model in models():
        known = model.name.removeprefix(f"{PREFIX}:").lower()
        if known == wanted or known.endswith(f"/{wanted}"):
            return model
    return None


def _with_refs(folder: Path, depth: int) -> Iterator[Path]:
    """The folders that have refs."""
    for inner in folders(folder):
        if (inner / "refs").is_dir():
            yield inner
        elif depth > 1:
            yield from _with_refs(inner, depth - 1)


def _model(name: str, folder: Path, ref: object) -> Model:
    if not isinstance(ref, dict):
        return Model(name, "", "its ref cannot be read")
    files = dicts(ref.get("files"))
    for file in files:
        if file.get("type") == "gguf":
            snapshot = inside(text_of(ref.get("hash")).replace(":", "-"))
            inner = inside(text_of(file.get("name")))
            if not (snapshot and inner):
                return Model(name, "", "its ref names no file")
            path = folder / "snapshots" / snapshot / inner
            missing = "" if os.path.isfile(path) else f"its file is missing: {path}"
            return Model(name, "" if missing else str(path), missing)
    kinds = sorted({text_of(file.get("type")) for file in files})
    return Model(name, "", f"it has no GGUF file, but {', '.join(kinds) or 'no files at all'}")
