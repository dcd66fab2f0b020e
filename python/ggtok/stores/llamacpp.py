"""The cache of llama.cpp before it shared huggingface_hub's: `OWNER_REPO_FILE.gguf` in one folder.

Source: `fs_get_cache_directory` and `common_params_handle_model` in llama.cpp's `common`, up to 2025. Slashes became
underscores, so the names are those of `manifest=OWNER=REPO=TAG.json`, which lies beside a model; a name that someone
types needs no manifest.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from .model import entries, from_environment, home, is_gguf


def place() -> Path:
    """The folder."""
    if set_by_user := from_environment("LLAMA_CACHE"):
        return set_by_user
    if sys.platform == "darwin":
        base = home() / "Library/Caches"
    elif os.name == "nt":
        base = from_environment("LOCALAPPDATA") or home() / "AppData/Local"
    else:
        base = from_environment("XDG_CACHE_HOME") or home() / ".cache"
    return base / "llama.cpp"


def repositories() -> set[str]:
    """The repositories that have a manifest, as `OWNER/REPO`."""
    names = [entry.name.split("=") for entry in entries(place())]
    return {f"{name[1]}/{name[2]}" for name in names if name[0] == "manifest" and len(name) == 4}


def files(repository: str) -> dict[str, Path]:
    """The GGUF files of a repository: their names in it, with underscores for slashes, and where they are.

    A file may begin with the names of two repositories, such as `o/a` and `o/a_b`: it is of the longer one, if that has
    a manifest.
    """
    start = _start(repository)
    longer = tuple(other for other in map(_start, repositories()) if other.startswith(start) and other != start)
    found = [entry for entry in entries(place()) if entry.name.lower().startswith(start) and is_gguf(entry.name)]
    return {entry.name[len(start) :]: Path(entry.path) for entry in found if not entry.name.lower().startswith(longer)}


def _start(repository: str) -> str:
    """How the names of a repository's files begin, in lower case."""
    return f"{repository.replace('/', '_')}_".lower()
