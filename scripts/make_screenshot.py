"""Writes docs/_static/tokens-light.svg and tokens-dark.svg: the coloured token view of a fixed text.

python scripts/make_screenshot.py
python scripts/make_screenshot.py --check      # exit code 1 if the pictures are not current
"""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable
from contextlib import redirect_stdout
from pathlib import Path

from ggtok import Tokenizer
from ggtok.cli.view import MANY, Screen, View
from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "_static"
COMMAND = "ggtok encode --parse-special story.txt"
TEXT = (
    "<|im_start|>user\n"
    "Once upon a time, 1024 tokenizers met in a café.\n"
    'def greet(name):\n    return f"Hello, {name}! 👋"\n'
    "<|im_end|>"
)
"""Only characters that every monospaced font has, and one emoji, each byte of which is a token."""

LIGHT = TerminalTheme((255, 255, 255), (31, 35, 40), [(0, 0, 0)] * 8)
DARK = TerminalTheme((13, 17, 23), (230, 237, 243), [(0, 0, 0)] * 8)

SVG = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">
<style>
.{unique_id}-matrix {{
  font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace;
  font-size: {char_height}px; line-height: {line_height}px; font-variant-east-asian: full-width;
}}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal"><rect width="{terminal_width}" height="{terminal_height}"/></clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""
"""rich's picture without the fonts that it loads from a server."""


def picture(tokenizer: Tokenizer, ids: Iterable[int], command: str, *, dark: bool, width: int = 76) -> str:
    """The view as an SVG picture, as a terminal shows it after a command. The same arguments give the same bytes."""
    console = Console(
        record=True,
        width=width,
        file=io.StringIO(),
        force_terminal=True,
        color_system="truecolor",
        no_color=False,
        legacy_windows=False,
        highlight=False,
        markup=False,
        emoji=False,
    )
    console.print(f"$ {command}", soft_wrap=True)
    shown = io.StringIO()
    with redirect_stdout(shown):
        view = View(tokenizer, Screen(width, MANY))
        view.add(ids)
        view.end(total=True)
    console.print(Text.from_ansi(shown.getvalue()), soft_wrap=True)
    svg = console.export_svg(title="", theme=DARK if dark else LIGHT, code_format=SVG, unique_id="ggtok")
    return svg.replace("rgba(255,255,255,0.35)", "rgba(128,128,128,0.5)")  # a frame that is visible on white too


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
