"""The libraries that are adapted to, imported on first use."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ..errors import DependencyError


def load(module: str, package: str) -> Any:
    """A module of another library, which is in the package of this name.

    Raises `DependencyError` if it is not installed. An error of the library itself passes through.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != module.partition(".")[0]:
            raise  # it is installed, and misses something itself
        needs = f"this adapter needs {package}, which is not installed: pip install {package}"
        raise DependencyError(needs) from error
