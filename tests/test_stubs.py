"""The stub of the Rust module says what the built module has."""

from __future__ import annotations

import subprocess
import sys

import pytest


def test_stub_and_module_agree() -> None:
    pytest.importorskip("mypy", reason="stubtest is part of mypy")
    command = [sys.executable, "-m", "mypy.stubtest", "ggtok._ggtok"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
