"""The optional packages that a corpus needs, imported on first use."""

from __future__ import annotations

from ..errors import DependencyError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def import_arrow() -> Any:
    """pyarrow. Raises `DependencyError` if it, or numpy, is not installed."""
    try:
        import numpy as numpy
        import pyarrow  # type: ignore[import-untyped]
    except ModuleNotFoundError as error:
        needs = f"ggtok.corpus needs {error.name}, which is not installed: pip install 'ggtok[corpus]'"
        raise DependencyError(needs) from error
    return pyarrow
