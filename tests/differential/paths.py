"""Where the tests' material is, and llama.cpp."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def shared() -> Path:
    """The folder with vocabularies and corpora."""
    return Path(os.environ.get("GGTOK_SHARED") or ROOT.parent / "shared")


@cache
def corpora() -> list[bytes]:
    """The corpora's bytes."""
    return [path.read_bytes() for path in sorted((shared() / "corpora").glob("*.txt"))]
