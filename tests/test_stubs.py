"""The stub of the Rust module agrees with the built module: signatures, and the docstrings that it hands over."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from pathlib import Path
from typing import Any

import ggtok
import pytest
from ggtok import _ggtok


def test_stub_and_module_agree(tmp_path: Path) -> None:
    allowed = tmp_path / "allowed"
    allowed.write_text("ggtok._ggtok.Buffer.__buffer__\n")  # CPython 3.11 shows it only to C
    options = ["--allowlist", str(allowed), "--ignore-unused-allowlist"]
    command = [sys.executable, "-m", "mypy.stubtest", "ggtok._ggtok", *options]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr


def documented(nodes: list[ast.stmt], owner: Any) -> dict[str, tuple[str | None, str | None]]:
    """The docstrings of public definitions, in the stub and in the module."""
    found: dict[str, tuple[str | None, str | None]] = {}
    for node in nodes:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not node.name.startswith("_"):
            thing = getattr(owner, node.name)
            found[node.name] = (ast.get_docstring(node), inspect.getdoc(thing))
            if isinstance(node, ast.ClassDef):
                found |= {f"{node.name}.{name}": docs for name, docs in documented(node.body, thing).items()}
    return found


def test_docstrings_agree() -> None:
    """The build script read every docstring of a public name as Python does, and each stands at its own item."""
    stub = Path(ggtok.__file__).with_name("_ggtok.pyi").read_text(encoding="utf-8")
    public = {"Tokenizer", *ggtok.__all__}
    docs = documented([node for node in ast.parse(stub).body if getattr(node, "name", "") in public], _ggtok)
    assert {"Tokenizer.encode", "Tokenizer.repairs", "Buffer.tolist", "align"} < docs.keys()
    for name, (written, built) in docs.items():
        assert written == built, name
        assert built, name


@pytest.mark.parametrize(
    "name", ["encode", "encode_array", "count", "decode", "decode_bytes", "decoder", "encoder", "piece", "encode_batch"]
)
def test_help_has_an_example(name: str) -> None:
    """`help(ggtok.Tokenizer.encode)` shows arguments, errors and an example, also of what Rust implements."""
    call = getattr(ggtok.Tokenizer, name)
    text = inspect.getdoc(call) or ""
    assert ">>> " in text
    assert "Raises:" in text or "raises" in text
    assert "special" in str(inspect.signature(call))
