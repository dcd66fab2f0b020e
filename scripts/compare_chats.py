"""Compares ggtok's chats with those of llama.cpp's own server, for all templates of a llama.cpp tree or of a folder.

python scripts/compare_chats.py PATH [NAME...] [OPTION...]

NAME is a template or a pattern of names. The options are those of `python -m tests.differential.chats`: for example,
`--per-template 200 --seed 7`. Needs the packages xllamacpp, gguf and numpy. Exits with 1 if a difference is not
explained.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
chats: Any = importlib.import_module("tests.differential.chats")


def main(arguments: Sequence[str] | None = None) -> int:
    """Compares the named templates, or all."""
    words = [*(sys.argv[1:] if arguments is None else arguments)]
    first = next((at for at, word in enumerate(words) if word.startswith("-")), len(words))
    parser = argparse.ArgumentParser(description="ggtok's chats beside llama-server's.")
    parser.add_argument("path", type=Path, help="llama.cpp's tree, or a folder of *.jinja files")
    parser.add_argument("names", nargs="*", metavar="NAME", help="templates, or patterns (default: all)")
    options = parser.parse_args(words[:first] or words)
    own = options.path / "models" / "templates"
    named = [word for name in options.names for word in ("--only", name)]
    folder = str(own if own.is_dir() else options.path)
    result: int = chats.main(["--templates", folder, "--ours", "ggtok", *named, *words[first:]])
    return result


if __name__ == "__main__":
    raise SystemExit(main())
