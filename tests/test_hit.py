"""The files that a text of cached pieces passes, as the page on the architecture lists them."""

from __future__ import annotations

import importlib
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
hit: Any = importlib.import_module("generate_hit")


@pytest.mark.skipif(not (shutil.which("valgrind") and shutil.which("cargo")), reason="needs valgrind and cargo")
def test_the_page_lists_what_was_traced() -> None:
    assert hit.PAGE.read_text(encoding="utf-8") == hit.page()
