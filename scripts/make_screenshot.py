"""Writes docs/_static/tokens-light.svg and tokens-dark.svg: the coloured token view of a fixed text.

python scripts/make_screenshot.py
python scripts/make_screenshot.py --check      # exit code 1 if the pictures are not current
"""

from __future__ import annotations

import sys
from pathlib import Path

from ggtok import Tokenizer
from ggtok._cli.view import picture

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "_static"
COMMAND = "ggtok encode --parse-special story.txt"
TEXT = (
    "<|im_start|>user\n"
    "Once upon a time, 1024 tokenizers met in a café.\n"
    'def greet(name):\n    return f"Hello, {name}! 👋"\n'
    "<|im_end|>"
)
"""Only characters that every monospaced font has, and one emoji, each byte of which is a token."""


def main() -> int:
    """Writes, or with `--check` compares, both pictures."""
    tokenizer = Tokenizer.builtin("bpe")
    ids = tokenizer.encode(TEXT, parse_special=True)
    is_current = True
    for name, dark in (("light", False), ("dark", True)):
        path = FOLDER / f"tokens-{name}.svg"
        made = picture(tokenizer, ids, COMMAND, dark=dark).encode()
        if "--check" in sys.argv:
            is_current &= path.exists() and path.read_bytes() == made
        else:
            FOLDER.mkdir(exist_ok=True)
            path.write_bytes(made)
    return 0 if is_current else 1


if __name__ == "__main__":
    raise SystemExit(main())
