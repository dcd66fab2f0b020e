"""numpy and pyarrow, imported on first use: `import ggtok.corpus` needs neither of them.

Type checkers see the packages. At run time `np`, `pa` and the others are instances of `Package`.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ..errors import DependencyError

__all__ = ["check_packages", "np", "npt", "pa", "pc", "pq"]


class Package:
    """Stands for a package or one of its modules, and has its attributes. Raises what `check_packages` does."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        check_packages()
        value = getattr(import_module(self._name), attribute)
        setattr(self, attribute, value)  # found without this method from now on
        return value


def check_packages() -> None:
    """Raises `DependencyError` if numpy or pyarrow is not installed."""
    try:
        import numpy as numpy
        import pyarrow as pyarrow
    except ModuleNotFoundError as error:
        needs = f"ggtok.corpus needs {error.name}, which is not installed: pip install 'ggtok[corpus]'"
        raise DependencyError(needs) from error


TYPE_CHECKING = False
if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq
else:
    np, npt = Package("numpy"), Package("numpy.typing")
    pa, pc, pq = Package("pyarrow"), Package("pyarrow.compute"), Package("pyarrow.parquet")
