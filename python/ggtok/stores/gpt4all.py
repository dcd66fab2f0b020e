"""GPT4All's models: GGUF files in one folder, which differs by system, and in the cache of its Python package."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

from .model import Model, companion, data_home, entries, from_environment, home, is_gguf, is_model

PREFIX = "gpt4all"
TITLE = "GPT4All"


def places() -> list[Path]:
    """The folder of the application, and the one of the Python package."""
    if sys.platform == "darwin":
        base = home() / "Library/Application Support"
    elif os.name == "nt":
        base = from_environment("LOCALAPPDATA") or home() / "AppData/Local"
    else:
        base = data_home()
    return [base / "nomic.ai/GPT4All", home() / ".cache/gpt4all"]


def models() -> Iterator[Model]:
    """All models of all places."""
    seen = set()
    for file, path in _files():
        if file not in seen and is_model(file):
            seen.add(file)
            yield _model(file, path)


def find(name: str) -> Model | None:
    """The model of a file name, with or without `.gguf`."""
    wanted = name.lower() if is_gguf(name) else f"{name.lower()}.gguf"
    return next((_model(file, path) for file, path in _files() if file.lower() == wanted), None)


def _files() -> Iterator[tuple[str, str]]:
    for place in places():
        for entry in entries(place):
            if is_gguf(entry.name):
                yield entry.name, entry.path


def _model(file: str, path: str) -> Model:
    name = f"{PREFIX}:{file[:-5]}"
    kind = companion(file)
    problem = f"it is {kind}" if kind else "" if os.path.isfile(path) else f"its file is missing: {path}"
    return Model(name, "" if problem else path, problem)
