"""What a store has: models with their names and files, read with care, because other programs write these folders."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

MAX_JSON = 1 << 24
"""No manifest or index of a store is larger."""

MAX_DEPTH = 8
"""How many folders deep a store is searched."""

DIGEST = re.compile(r"sha256[:-]([0-9a-fA-F]{64})")
"""The digest of a blob. Nothing else becomes a part of a path."""

SPLIT = re.compile(r"(?P<stem>.+)-(?P<part>\d{5})-of-(?P<count>\d{5})\.gguf", re.IGNORECASE | re.DOTALL)
"""The name of a part of a split file, as `gguf-split` writes it. The metadata is in part 1."""

COMPANIONS = {
    "mmproj": "a projector for images or sound (mmproj)",
    "imatrix": "an importance matrix for quantizing",
    "mtp-": "a draft model (MTP)",
    "eagle3-": "a draft model (EAGLE-3)",
    "dflash-": "a draft model (DFlash)",
    "dspark-": "a draft model (DSpark)",
}
"""Parts of the names of files that lie beside a model and are not one, as in llama.cpp's `common/download.cpp`."""


class Prompts(NamedTuple):
    """What the program that a store belongs to makes of a conversation, apart from the file's chat template."""

    writer: str = ""
    """What of it writes prompts in place of the file's template, such as `template layer`; empty if nothing does."""
    added: tuple[str, ...] = ()
    """What it adds to every conversation, such as `a system message`."""

    def __str__(self) -> str:
        return ", ".join(part for part in (self.writer, *self.added) if part)


class Model(NamedTuple):
    """A model in a store."""

    name: str
    """What `Tokenizer.from_model` takes, such as `ollama:llama3.2`. A store itself leaves out its prefix."""
    path: str
    """The GGUF file; empty if there is none."""
    problem: str = ""
    """Why no file can be opened; empty if one can."""
    prompts: Prompts = Prompts()


def model_at(name: str, path: Path) -> Model:
    """The model in a file, if the file exists and is not a companion of models."""
    if kind := companion(path.name):
        return Model(name, "", f"it is {kind}")
    if os.path.isfile(path):
        return Model(name, str(path))
    return Model(name, "", f"its file is missing: {path}" + " is a link that leads nowhere" * os.path.islink(path))


def home() -> Path:
    """The user's home folder; `/` if there is none, where no store is."""
    path = os.path.expanduser("~")
    return Path("/" if path == "~" else path)


def from_environment(name: str) -> Path | None:
    """The folder that a variable names, if it is set and not empty."""
    value = os.environ.get(name)
    return Path(os.path.expanduser(value)) if value else None


def data_home() -> Path:
    """The folder for data of programs on Linux."""
    return from_environment("XDG_DATA_HOME") or home() / ".local/share"


def read_json(path: Path) -> dict[str, Any] | None:
    """The object in a small JSON file; `None` if it cannot be read, or has something else."""
    import json

    text = read_text(path)
    try:
        value = None if text is None else json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def read_text(path: Path) -> str | None:
    """A small file of UTF-8; `None` if it cannot be read, or is not a regular file, as a pipe is."""
    if not os.path.isfile(path):
        return None
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_JSON + 1)
        return data.decode("utf-8") if len(data) <= MAX_JSON else None
    except (OSError, ValueError):  # ValueError: not UTF-8, or a null byte in the path
        return None


def dicts(value: object) -> list[dict[str, Any]]:
    """The objects in a list of JSON; nothing if it is not a list."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def text_of(value: object) -> str:
    """A string of JSON; empty if it is something else."""
    return value if isinstance(value, str) else ""


def inside(path: str) -> str:
    """A relative path of a list that stays in its folder; empty if it would not, or if it is not Unicode."""
    parts = PurePosixPath(path)
    is_text = path.encode("utf-8", "replace").decode() == path
    return path if is_text and not parts.is_absolute() and ".." not in parts.parts else ""


def entries(folder: Path) -> list[os.DirEntry[str]]:
    """What is in a folder, in the order of names; nothing if it cannot be read."""
    try:
        with os.scandir(folder) as found:
            return sorted(found, key=lambda entry: entry.name)
    except (OSError, ValueError):
        return []


def folders(folder: Path) -> Iterator[Path]:
    """The folders in a folder, and links to folders."""
    for entry in entries(folder):
        if os.path.isdir(entry):
            yield Path(entry.path)


def files_below(folder: Path, depth: int = MAX_DEPTH) -> Iterator[str]:
    """The paths of all files below a folder, relative to it and with `/`: those of a folder first, then its folders'.

    Links to folders are followed, at most `depth` deep.
    """
    inner = []
    for entry in entries(folder):
        if os.path.isdir(entry):
            inner.append(entry.name)
        else:
            yield entry.name
    for name in inner if depth > 1 else ():
        for path in files_below(folder / name, depth - 1):
            yield f"{name}/{path}"


def companion(path: str) -> str | None:
    """What a GGUF file is if its name says that it is not a model; `None` for a model."""
    name = path.replace(os.sep, "/").rpartition("/")[2].lower()
    return next((kind for mark, kind in COMPANIONS.items() if mark in name), None)


def is_gguf(path: str) -> bool:
    """Whether a file has the name of a GGUF file."""
    return path.lower().endswith(".gguf")


def is_model(path: str) -> bool:
    """Whether a file has the name of a model: a GGUF file but not a companion, and of a split one the first part."""
    split = SPLIT.fullmatch(path)
    return is_gguf(path) and companion(path) is None and (split is None or int(split["part"]) == 1)


def first_part(path: str) -> str:
    """The file with the metadata: the first part of a split file, if it exists, or the file itself."""
    split = SPLIT.fullmatch(path)
    if split is None or int(split["part"]) == 1:
        return path
    first = f"{split['stem']}-00001-of-{split['count']}{path[-5:]}"
    return first if os.path.exists(first) else path
