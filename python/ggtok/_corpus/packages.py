"""The optional packages that a corpus needs, imported on first use."""

from __future__ import annotations

from ..errors import DependencyError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def import_arrow() -> Any:
    """The module `pyarrow`. Raises `DependencyError` if it is not installed."""
    try:
        import pyarrow  # type: ignore[import-untyped]
    except ModuleNotFoundError as error:
        raise DependencyError("a corpus needs pyarrow, which is not installed: pip install 'ggtok[corpus]'") from error
    return pyarrow
