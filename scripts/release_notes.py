"""Prints what CHANGELOG.md says about a version, after a check that the version is the one to be released.

python scripts/release_notes.py v1.2.3      # exit code 1 if Cargo.toml or CHANGELOG.md have another version
python scripts/release_notes.py             # what is not released yet
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def version() -> str:
    """The version in Cargo.toml, from which everything else takes it."""
    return str(tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))["workspace"]["package"]["version"])


def notes(heading: str, changelog: str) -> str | None:
    """The section of a changelog under a heading; a date may follow in the heading."""
    section = re.search(rf"^## {re.escape(heading)}(?: [^\n]*)?\n(.*?)(?=^## |\Z)", changelog, re.MULTILINE | re.DOTALL)
    return section[1].strip() if section and section[1].strip() else None


def main(arguments: list[str]) -> int:
    tag = arguments[0] if arguments else ""
    if tag and tag != f"v{version()}":
        print(f"the tag is {tag}, but Cargo.toml has version {version()}", file=sys.stderr)
        return 1
    heading = tag.removeprefix("v") or "Unreleased"
    section = notes(heading, (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))
    if section is None:
        print(f"CHANGELOG.md says nothing under '## {heading}'", file=sys.stderr)
        return 1
    print(section)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
