"""Files of numbers, mapped into memory to be read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ...errors import CorpusError
from ..packages import np, npt


def mapped(prefix: Path, suffix: str, dtype: str) -> npt.NDArray[Any]:
    """The numbers in the file `PREFIX` + suffix. An empty file, which cannot be mapped, is an empty array.

    Raises `CorpusError` if the file cannot be read, or ends within a number.
    """
    path = prefix.with_name(prefix.name + suffix)
    try:
        size = path.stat().st_size
        if size % np.dtype(dtype).itemsize:
            raise CorpusError(f"this file of {size} bytes ends within a number", source=path.name)
        return np.asarray(np.memmap(path, dtype, "r")) if size else np.empty(0, dtype)
    except OSError as error:
        raise CorpusError(f"this cannot be read: {error.strerror or error}", source=path.name) from error
