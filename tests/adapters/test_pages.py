"""The examples of docs/adapters.md: each runs with its library, and gives what the comment beside or below it says."""

from __future__ import annotations

import ast
import importlib.util
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from conftest import VOCABULARIES

PAGE = (Path(__file__).resolve().parents[2] / "docs/adapters.md").read_text(encoding="utf-8")
HEADINGS = re.findall(r"^##+ (.*)$", PAGE, re.MULTILINE)


def section(heading: str) -> str:
    return re.split(r"^##+ ", PAGE.split(f"# {heading}\n")[1], maxsplit=1, flags=re.MULTILINE)[0]


def blocks(text: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


ENVIRONMENT = {
    "HAYSTACK_TELEMETRY_ENABLED": "False",
    "HF_HUB_OFFLINE": "1",
    "HF_DATASETS_DISABLE_PROGRESS_BARS": "1",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
}
"""Settings that keep libraries from using the network."""

START = blocks(section("Adapters"))


def missing(program: str) -> list[str]:
    """The libraries that a program imports and that are not installed."""
    names = {name for names in re.findall(r"^ *(?:from|import) (\w+)", program, re.MULTILINE) for name in [names]}
    return sorted(name for name in names if importlib.util.find_spec(name) is None)


def run(block: str, names: dict[str, Any]) -> int:
    """Runs a block, and compares expressions with the comments beside or below them. Returns how many there were."""
    lines, num_compared = block.splitlines(), 0
    for node in ast.parse(block).body:
        code = compile(ast.unparse(node), "<page>", "eval" if isinstance(node, ast.Expr) else "exec")
        value = eval(code, names)
        rest = lines[node.end_lineno - 1][node.end_col_offset :] if node.end_lineno and node.end_col_offset else ""
        below = lines[node.end_lineno] if node.end_lineno and node.end_lineno < len(lines) else ""
        comment = rest.strip() or below.strip()
        if isinstance(node, ast.Expr) and comment.startswith("# "):
            assert repr(value) == comment.removeprefix("# "), ast.unparse(node)
            num_compared += 1
    return num_compared


@pytest.mark.parametrize("heading", [heading for heading in HEADINGS if blocks(section(heading))])
def test_examples(heading: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    programs = blocks(section(heading))
    if absent := missing("".join(programs)):
        pytest.skip(f"not installed: {', '.join(absent)}; .ci/adapters says how")
    shutil.copy(VOCABULARIES / "bpe.gguf", tmp_path / "model.gguf")
    monkeypatch.chdir(tmp_path)
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    names: dict[str, Any] = {}
    for block in START:
        run(block, names)
    assert sum(run(block, names) for block in programs) > 0


def test_every_adapter_is_listed() -> None:
    """In the table that is made for the page, with what it has."""
    from ggtok import adapters

    script = Path(__file__).resolve().parents[2] / "scripts/generate_lists.py"
    spec: Any = importlib.util.spec_from_file_location("generate_lists", script)
    lists: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(lists)
    table = lists.pages()["adapters"]
    assert re.findall(r"^\| `(\w+)` \| .*\. \| `\1\.", table, re.MULTILINE) == adapters.__all__
