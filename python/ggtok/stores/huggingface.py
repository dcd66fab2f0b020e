"""The cache of huggingface_hub, which llama.cpp uses too: `models--OWNER--REPO/{refs,snapshots,blobs}`.

Source: llama.cpp's `common/hf-cache.cpp` and huggingface_hub's `constants.py`. A snapshot is a folder of links to
blobs; without symbolic links the files themselves are in it. `refs/main` names the snapshot, otherwise any other ref.
What is missing there is taken from the other snapshots, the newest first: a file may have been downloaded by commit.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from . import quantization
from .model import Model, entries, files_below, folders, from_environment, home, is_gguf, read_text

TITLE = "the Hugging Face cache"

REPOSITORY = re.compile("{0}/{0}".format(r"[A-Za-z0-9_]+(?:[.-]+[A-Za-z0-9_]+)*"))
"""An owner, and the name of a repository."""

COMMIT = re.compile(r"[0-9a-fA-F]{40}")


def places() -> list[Path]:
    """`LLAMA_CACHE`, and one of `HF_HUB_CACHE`, `HUGGINGFACE_HUB_CACHE`, `HF_HOME/hub`,
    `XDG_CACHE_HOME/huggingface/hub`, `~/.cache/huggingface/hub`."""
    below = {"HF_HUB_CACHE": "", "HUGGINGFACE_HUB_CACHE": "", "HF_HOME": "hub", "XDG_CACHE_HOME": "huggingface/hub"}
    chosen = (folder / inner for variable, inner in below.items() if (folder := from_environment(variable)))
    hub = next(chosen, home() / ".cache/huggingface/hub")
    llama = from_environment("LLAMA_CACHE")
    return [hub] if llama is None else list(dict.fromkeys((llama, hub)))


def parse(name: str) -> tuple[str, str, str] | None:
    """`OWNER/REPO`, the path of a file in it, and the tag; `None` if a name is not of this form."""
    repository, file, tag = quantization.parts(name)
    has_no_tag = not (file or tag) and ":" in name
    return None if has_no_tag or not REPOSITORY.fullmatch(repository) else (repository, file, tag)


def models() -> Iterator[Model]:
    """`owner/repo`, `owner/repo:Q4_K_M`, `owner/repo/file.gguf`: downloaded by llama.cpp or huggingface_hub. As in
    llama.cpp, no tag means Q4_K_M, then Q8_0, then the first file."""
    for repository, folder in _repositories():
        yield from quantization.models(repository, _files(folder))


def find(name: str) -> Model | None:
    """The model of a name."""
    return quantization.find(name, _repositories(), _files) if parse(name) else None


def _repositories() -> Iterator[tuple[str, Path]]:
    """`OWNER/REPO` and its folder."""
    for folder in (each for place in places() for each in folders(place)):
        if folder.name.startswith("models--"):
            yield folder.name.removeprefix("models--").replace("--", "/", 1), folder


def _files(repository: Path) -> dict[str, Path]:
    """The GGUF files of a repository: their paths in it, sorted, and where they are."""
    found: dict[str, Path] = {}
    for snapshot in _snapshots(repository):
        for file in files_below(snapshot):
            if is_gguf(file):
                found.setdefault(file, snapshot / file)
    return dict(sorted(found.items()))


def _snapshots(repository: Path) -> list[Path]:
    """The snapshot of `refs/main`, or of another ref, and then the others, the newest first."""
    root = repository / "snapshots"
    commits = {}
    for entry in entries(repository / "refs"):
        commit = (read_text(Path(entry.path)) or "").partition("\n")[0].strip()
        if COMMIT.fullmatch(commit):
            commits[entry.name] = commit
    first = commits.get("main") or next(iter(commits.values()), "")
    return sorted(folders(root), key=lambda folder: (folder.name != first, -os.path.getmtime(folder)))
