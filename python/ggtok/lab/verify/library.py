"""Finds the shared library of llama.cpp that a package brings, without importing the package."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata, util
from pathlib import Path

from ...errors import DependencyError, LibraryError
from ..releases import data

PACKAGES = {
    "xllamacpp": ("xllamacpp", ("xllamacpp*.so", "xllamacpp*.pyd", "xllamacpp*.dylib")),
    "llama-cpp-python": ("llama_cpp", ("lib/libllama.so", "lib/libllama.dylib", "lib/llama.dll", "lib/libllama.dll")),
}
"""For each package the module that it installs, and where in its folder the library may be."""


@dataclass(frozen=True)
class Library:
    """Which llama.cpp ggtok was compared with: what is known about it."""

    path: str
    """The file of the shared library."""
    package: str | None = None
    """The package that brought it, with its version: `"xllamacpp 2026.10.11549"`."""
    release: str | None = None
    """llama.cpp's release, `"b11549"`: from the package's version, or from the library if it knows."""
    ggml: str | None = None
    """The version of ggml that the library names: `"0.24.0"`."""
    after: str | None = None
    """Without a `release`: the newest release that was measured and has an older ggml."""
    before: str | None = None
    """Without a `release`: the oldest release that was measured and has a newer ggml."""

    def __str__(self) -> str:
        known = [f"llama.cpp {self.release or 'of an unknown release'}"]
        bounds = [f"{word} {release}" for word, release in (("after", self.after), ("before", self.before)) if release]
        known[0] += f" {' and '.join(bounds)}" if bounds else ""
        known += [f"ggml {self.ggml}"] if self.ggml else []
        known += [f"from {self.package}"] if self.package else []
        return ", ".join(known)


def find_library(path: str | os.PathLike[str] | None = None) -> Library:
    """The library at this path, or of the first package in `PACKAGES` that is installed.

    Raises:
        LibraryError: The path does not name a file.
        DependencyError: No path is given, and no package is installed.
    """
    if path is not None:
        name = os.path.abspath(os.fsdecode(path))
        if os.path.isdir(name):
            raise LibraryError("this is a folder: name the library in it, such as libllama.so", path=name)
        if not os.path.isfile(name):
            raise LibraryError("no such file", path=name)
        return described(name)
    for file in installed():
        return described(str(file))
    names = " or ".join(PACKAGES)
    raise DependencyError(
        f"llama.cpp is not installed: pip install {names}, or name a shared library with library=PATH"
    )


def installed() -> Iterator[Path]:
    """The libraries of the packages that are installed."""
    for module, patterns in PACKAGES.values():
        spec = util.find_spec(module)
        folders = [Path(folder) for folder in (spec.submodule_search_locations or ())] if spec is not None else []
        yield from (file for folder in folders for pattern in patterns for file in sorted(folder.glob(pattern)))


def described(path: str) -> Library:
    """What is known about a library from the package that it belongs to, if it is in the folder of one."""
    for package, (module, _) in PACKAGES.items():
        for folder in Path(path).parents:
            if folder.name == module:
                found = next(iter(metadata.distributions(name=package, path=[str(folder.parent)])), None)
                if found is not None:
                    return Library(path, f"{package} {found.version}", release_of(package, found.version))
    return Library(path)


def release_of(package: str, version: str) -> str | None:
    """llama.cpp's release by the version of a package: xllamacpp's ends in it since 2026 (`2026.4.8672.1`). Older
    ones are known if they were measured."""
    if package == "xllamacpp" and (named := re.match(r"20\d\d\.\d+\.(\d{4,})", version)):
        return f"b{named[1]}"
    return next((f"b{row['build']}" for row in data()["releases"] if row["from"] == f"{package} {version}"), None)
