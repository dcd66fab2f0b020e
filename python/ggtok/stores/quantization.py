"""Which file of a repository a name means: `owner/repo`, `owner/repo:Q4_K_M` or `owner/repo/file.gguf`.

Source: `find_best_model` in llama.cpp's `common/download.cpp`: the first file in the order of the list whose path has
the tag before a `.` or `-`, in upper or lower case; without a tag Q4_K_M, then Q8_0, then the first file. Deviations:
(1) a tag is text and not a regular expression; (2) a list is sorted, so that the answer does not depend on the disk.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from .model import SPLIT, Model, is_gguf, is_model, model_at

PREFERRED = ("Q4_K_M", "Q8_0")

TAG = re.compile(r"[-.]([A-Z0-9_]+)$", re.IGNORECASE)
"""The end of a file's name that is its tag, as in `get_gguf_split_info`."""


def chosen(files: Iterable[str], tag: str) -> str | None:
    """The file with a tag, or the preferred one if the tag is empty."""
    models = [file for file in files if is_model(file)]
    for wanted in (tag,) if tag else PREFERRED:
        marked = re.compile(re.escape(wanted) + "[.-]", re.IGNORECASE)
        for file in models:
            if marked.search(file):
                return file
    return models[0] if models and not tag else None


def parts(name: str) -> tuple[str, str, str]:
    """The parts of a name: `owner/repo`, the path of a file in it, and the tag."""
    owner, _, rest = name.partition("/")
    repository, _, file = rest.partition("/")
    tag = ""
    if not file:
        repository, _, tag = repository.partition(":")
    return f"{owner}/{repository}", file, tag


def named(files: list[str], rest: str, tag: str) -> str | None:
    """The file that `owner/repo/REST:TAG` means."""
    if rest:
        return next((file for file in files if is_gguf(file) and file.lower() == rest.lower()), None)
    return chosen(files, tag)


def find(
    name: str, repositories: Iterable[tuple[str, Path]], files_of: Callable[[Path], Mapping[str, Path]]
) -> Model | None:
    """The model of a name, from repositories and their folders. `files_of` are a folder's files by their path in it."""
    wanted, rest, tag = parts(name)
    for repository, folder in repositories:
        if repository.lower() == wanted.lower():
            files = files_of(folder)
            if file := named([*files], rest, tag):
                return model_at(name, files[file])
    return None


def models(repository: str, files: Mapping[str, Path]) -> Iterator[Model]:
    """The models among these files, each with the shortest name that finds it."""
    for file, name in names(repository, [*files]).items():
        yield model_at(name, files[file])


def names(repository: str, files: list[str]) -> dict[str, str]:
    """The files that are models, and the name of each."""
    found = {}
    models = [file for file in files if is_model(file)]
    for file in models:
        split = SPLIT.fullmatch(file)
        tag = TAG.search(split["stem"] if split else file[:-5])
        if len(models) == 1:
            found[file] = repository
        elif tag and chosen(models, tag[1]) == file:
            found[file] = f"{repository}:{tag[1]}"
        else:
            found[file] = f"{repository}/{file}"
    return found
