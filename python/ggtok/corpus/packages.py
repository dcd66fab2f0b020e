"""The optional packages that a corpus needs, imported on first use."""

from __future__ import annotations

from typing import Any

from ..errors import DependencyError


def import_arrow() -> Any:
    """pyarrow. Raises `DependencyError` if it, or numpy, is not installed."""
    try:
        import numpy as numpy
        import pyarrow  # type: ignore[import-untyped]
    except ModuleNotFoundError as error:
        needs = f"ggtok.corpus needs {error.name}, which is not installed: pip install 'ggtok[corpus]'"
        raise DependencyError(needs) from error
    return pyarrow
