"""numpy, pyarrow and xxhash, imported on first use: `import ggtok.corpus` needs none of them.

Type checkers see the packages. At run time `np`, `pa` and the others are instances of `Package`.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ..errors import DependencyError

__all__ = ["check_packages", "np", "npt", "pa", "pc", "pq", "xxhash"]


class Package:
    """Stands for a package or one of its modules, and has its attributes. Raises what `check_packages` does."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        check_packages(self._name)
        value = getattr(import_module(self._name), attribute)
        setattr(self, attribute, value)  # found without this method from now on
        return value


def check_packages(*others: str) -> None:
    """Raises `DependencyError` if numpy, pyarrow or another one is not installed."""
    try:
        for name in ("numpy", "pyarrow", *others):
            import_module(name)
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
    import xxhash
else:
    np, npt, xxhash = Package("numpy"), Package("numpy.typing"), Package("xxhash")
    pa, pc, pq = Package("pyarrow"), Package("pyarrow.compute"), Package("pyarrow.parquet")
