"""What `scripts/check_prose.py` finds in a tree that is made up."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
prose: Any = importlib.import_module("check_prose")

PAGE = "# One\n\nSee [two](two.md#a-heading).\n\nNext: [two](two.md)\n"
WORKFLOW = f"""
permissions: {{}}
    runs-on: x
    timeout-minutes: 5
    permissions:
    uses: actions/checkout@{"a" * 40} # v1.2
        persist-credentials: false
"""
TREE = {
    "README.md": "# ggtok\n",
    "CHANGELOG.md": "# Changelog\n\n## Unreleased\n",
    "docs/moved.json": "{}",
    "docs/one.md": PAGE,
    "docs/two.md": "# Two\n\n## A heading\n\nNext: [one](one.md)\n",
    "rust/core/src/lib.rs": "//! A crate.\n",
    ".github/workflows/ci.yml": WORKFLOW,
}


@pytest.mark.parametrize(
    ("file", "text", "problem"),
    [
        ("README.md", "# ggtok\n", None),
        ("README.md", "[x](docs/one.md)", "README.md: docs/one.md is relative"),
        ("docs/one.md", PAGE.replace("two.md#", "three.md#"), "three.md leads nowhere"),
        ("docs/one.md", PAGE.replace("a-heading", "another"), "two.md#another leads to no heading"),
        ("docs/one.md", PAGE.replace("Next", "Then"), "docs/one.md: does not end with the next step"),
        ("docs/one.md", PAGE.replace("One", "`none.rs`"), "names the file none.rs, which does not exist"),
        ("docs/one.md", PAGE.replace("One", "1" * 130), "has a line of 132 columns"),
        ("docs/one.md", PAGE.replace("See", "```\n" + "1" * 130 + "\n```\n\nSee"), None),
        ("CHANGELOG.md", "## 1.0.0\n", "the first section must be Unreleased"),
        ("docs/moved.json", '{"run": "none.html"}', "the address run leads nowhere"),
        ("rust/core/src/lib.rs", "use std::fmt;\n", "rust/core/src/lib.rs does not open with a sentence"),
        (".github/workflows/ci.yml", WORKFLOW.replace("a" * 40, "v1"), "is not pinned to a commit"),
        (".github/workflows/ci.yml", WORKFLOW + "    runs-on: y\n", "a job lacks timeout-minutes or permissions"),
    ],
)
def test_problems(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, text: str, problem: str | None) -> None:
    monkeypatch.setattr(prose, "ADDRESSES", "one" if file != "docs/moved.json" else "run")
    for name, content in {**TREE, file: text}.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    found = list(prose.problems(tmp_path))
    assert len(found) == (problem is not None), found
    assert problem is None or problem in found[0]
