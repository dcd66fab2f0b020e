"""Writes docs/_static/explain.svg: how a word becomes tokens, as the explain page shows it, moving.

python scripts/make_moving_picture.py
python scripts/make_moving_picture.py --check              # exit code 1 if the picture is not current
python scripts/make_moving_picture.py --record llama-3.gguf   # tell the story anew, with the vocabulary of Llama 3

The picture is drawn from the story of a word in docs/_static/strawberry.json. It is a list of scenes, each with a
caption, the places of the characters and the boxes around them. CSS moves things from scene to scene. The first scene
and the last are the finished word, which stands where motion is not wanted.
"""

from __future__ import annotations

import json
import sys
import textwrap
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from ggtok import Tokenizer
from ggtok.lab.explain.units import MARK

STATIC = Path(__file__).resolve().parent.parent / "docs/_static"
PATH, STORY = STATIC / "explain.svg", STATIC / "strawberry.json"
TEXT = "strawberry"

WIDTH, HEIGHT, MARGIN = 600, 250, 24
CHAR, BOX_TOP, BOX_HEIGHT = 28, 80, 66
"""The width of a character's cell, and where boxes are."""
IN_BOX, BETWEEN = 6, 12
"""Pixels between a box and its characters, and between boxes."""
CAPTION_TOP, LINE = 190, 22
CAPTION_LETTERS = 62
"""How many letters of a line fit."""
SECONDS, LAST_SECONDS, MOVE = 0.9, 1.9, 0.35
"""How long a scene and the last one take, and how long of it things move."""
TONES = 4

STYLE = """
svg { color-scheme: light dark }
text { font: 15px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; fill: #1b2028 }
.mono { font: 28px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; text-anchor: middle }
.ground { fill: #ffffff; stroke: #cfd6dd }
.idea { font-weight: 600; font-size: 17px }
.box { fill: #f5f7f9; stroke: #cfd6dd; stroke-width: 1.5 }
.now { fill: none; stroke: #0a56b0; stroke-width: 3 }
.tone-0 { fill: #d3e5f8 } .tone-1 { fill: #fae4bf } .tone-2 { fill: #cdecdf } .tone-3 { fill: #ecd8ee }
.id { font-size: 15px; font-weight: 600; text-anchor: middle; font-variant-numeric: tabular-nums }
@media (prefers-color-scheme: dark) {
  text { fill: #e5ebf1 }
  .ground { fill: #10151b; stroke: #36414d }
  .box { fill: #171e26; stroke: #36414d }
  .now { stroke: #7db9ff }
  .tone-0 { fill: #1d3d60 } .tone-1 { fill: #573d12 } .tone-2 { fill: #154638 } .tone-3 { fill: #4a2b50 }
}
@media (prefers-reduced-motion: reduce) { * { animation: none !important } }
"""


@dataclass(frozen=True)
class Box:
    """Characters that are together, from the first to before the end."""

    start: int
    end: int
    token: tuple[int, int] | None = None
    """The place and the id of the token that it became."""


@dataclass
class Scene:
    """What is seen at one time."""

    caption: list[tuple[str, bool]]
    """In parts, each with whether it is emphasised."""
    boxes: list[Box]
    now: Box | None = None
    """The box that was just made."""

    def places(self) -> tuple[list[float], dict[Box, float]]:
        """The left edge of each character and of each box, in the middle of the picture."""
        chars, boxes, x = [], {}, 0.0
        for box in self.boxes:
            boxes[box] = x
            chars += [x + IN_BOX + CHAR * at for at in range(box.end - box.start)]
            x += width_of(box) + BETWEEN
        left = (WIDTH - x + BETWEEN) / 2
        return [left + char for char in chars], {box: left + place for box, place in boxes.items()}


def width_of(box: Box) -> float:
    """How wide a box is."""
    return 2 * IN_BOX + CHAR * (box.end - box.start)


def _parts(caption: str) -> list[tuple[str, bool]]:
    """A caption in parts, each with whether it is emphasised."""
    return [(part, place % 2 == 1) for place, part in enumerate(caption.split(MARK)) if part]


def scenes(page: Any) -> Iterator[Scene]:
    """The scenes of a word of ASCII characters, which is one piece of a BPE vocabulary."""
    (told,) = (unit for unit in page["story"]["units"] if unit["stage"] == "merge")
    drawing = told["drawing"]
    leaves = [Box(leaf["from"], leaf["to"], tuple(leaf["tokens"][0])) for leaf in drawing["leaves"]]
    finished = Scene(_parts(told["whole"]), leaves)
    yield finished
    boxes = [Box(at, at + 1) for at in range(len(page["text"]))]
    yield Scene(_parts(told["steps"][0]), boxes)
    for pair in sorted((pair for pair in drawing["pairs"] if pair["won"]), key=itemgetter("died")):
        made = Box(pair["from"], pair["to"])
        boxes = sorted(
            [box for box in boxes if not made.start <= box.start < made.end] + [made], key=lambda box: box.start
        )
        what = [(f"{' + '.join(pair['faces'])} → {pair['face']}", True), (f": {pair['by']}, learned first", False)]
        yield Scene(what, boxes, made)
    yield finished


class Animation:
    """Keyframes over the scenes, each once however many elements share it."""

    def __init__(self, num_scenes: int) -> None:
        self.seconds = SECONDS * (num_scenes - 1) + LAST_SECONDS
        self.num_scenes = num_scenes
        self.rules: dict[tuple[float, tuple[str, ...]], str] = {}

    def style(self, values: list[str], move: float = MOVE) -> str:
        """Attributes of an element that has one CSS declaration in each scene, and changes in so many seconds."""
        if len(set(values)) == 1:
            return f'style="{values[0]}"'
        name = self.rules.setdefault((move, tuple(values)), f"k{len(self.rules)}")
        return f'style="{values[-1]}" class="{name}"'

    def css(self) -> str:
        """All keyframes."""
        lines = []
        for (move, values), name in self.rules.items():
            frames = defaultdict(list)
            for scene, value in enumerate(values):
                if scene == 0 or value != values[scene - 1]:
                    start = SECONDS * scene
                    if scene:
                        frames[values[scene - 1]].append(start)
                    frames[value].append(start + (move if scene else 0))
            frames[values[-1]].append(self.seconds)
            body = " ".join(
                f"{', '.join(f'{100 * time / self.seconds:.2f}%' for time in times)} {{ {value} }}"
                for value, times in frames.items()
            )
            lines.append(f"@keyframes {name} {{ {body} }}")
            lines.append(f".{name} {{ animation: {name} {self.seconds:g}s ease-in-out infinite }}")
        return "\n".join(lines)


def drawing(page: Any) -> str:
    """The picture."""
    shown = list(scenes(page))
    animation = Animation(len(shown))
    body = [*_frame(page, shown, animation), *_boxes(shown, animation), *_chars(page["text"], shown, animation)]
    pieces = ", ".join(token["piece"] for token in page["tokens"])
    label = f"{page['story']['idea']}. {page['text']} becomes {pieces} with Llama 3."
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        f'role="img" aria-label="{escape(label)}">\n<style>{STYLE}{animation.css()}\n</style>\n'
        + "\n".join(body)
        + "\n</svg>\n"
    )


def _opacity(*visible_in: bool) -> list[str]:
    return [f"opacity: {int(shown)}" for shown in visible_in]


def _frame(page: Any, shown: list[Scene], animation: Animation) -> Iterator[str]:
    """What surrounds the word: the idea and the captions."""
    yield f'<rect class="ground" x="0.5" y="0.5" width="{WIDTH - 1}" height="{HEIGHT - 1}" rx="10"/>'
    yield f'<text class="idea" x="{MARGIN}" y="40">“{page["text"]}” with Llama 3</text>'
    for at, scene in enumerate(shown):
        style = animation.style(_opacity(*(at == other for other in range(len(shown)))), 0.02)
        yield f'<g text-anchor="middle" {style}>{"".join(_lines(scene.caption))}</g>'


def _lines(caption: list[tuple[str, bool]]) -> Iterator[str]:
    """A caption in lines."""
    strong = [is_strong for text, is_strong in caption for _ in text]
    text = "".join(text for text, _ in caption)
    at = 0
    for number, line in enumerate(textwrap.wrap(text, CAPTION_LETTERS)):
        at = text.index(line, at)
        parts = groupby(zip(line, strong[at:], strict=False), itemgetter(1))
        spans = (
            f'<tspan font-weight="{650 if is_strong else 400}">{escape("".join(letter for letter, _ in part))}</tspan>'
            for is_strong, part in parts
        )
        yield f'<text x="{WIDTH // 2}" y="{CAPTION_TOP + number * LINE}">{"".join(spans)}</text>'
        at += len(line)


def _boxes(shown: list[Scene], animation: Animation) -> Iterator[str]:
    """Every box of any scene. In the other scenes it is hidden, at the position that it will have or had."""
    places = [scene.places() for scene in shown]
    for box in dict.fromkeys(box for scene in shown for box in scene.boxes):
        values = []
        for scene, (chars, boxes) in zip(shown, places, strict=True):
            x = boxes.get(box, chars[box.start] - IN_BOX)
            values.append(f"transform: translate({x:g}px, {BOX_TOP}px); opacity: {int(box in scene.boxes)}")
        kind = "box" if box.token is None else f"box tone-{box.token[0] % TONES}"
        size = f'width="{width_of(box):g}" height="{BOX_HEIGHT}" rx="6"'
        ring = _opacity(*(scene.now == box for scene in shown))
        yield f'<g {animation.style(values)}><rect class="{kind}" {size}/>'
        if "opacity: 1" in ring:
            yield f'<g {animation.style(ring)}><rect class="now" {size}/></g>'
        if box.token:
            yield f'<text class="id" x="{width_of(box) / 2:g}" y="{BOX_HEIGHT - 10}">{box.token[1]}</text>'
        yield "</g>"


def _chars(text: str, shown: list[Scene], animation: Animation) -> Iterator[str]:
    """The characters, which move with their boxes."""
    places = [scene.places()[0] for scene in shown]
    for at, char in enumerate(text):
        style = animation.style(
            [f"transform: translate({chars[at] + CHAR / 2:g}px, {BOX_TOP + 34}px)" for chars in places]
        )
        yield f'<g {style}><text class="mono">{escape(char)}</text></g>'


def main() -> int:
    """Writes, or with `--check` compares, the picture."""
    if "--record" in sys.argv:
        page = Tokenizer.from_gguf(sys.argv[-1]).explain(TEXT, add_special=False)._raw.page()
        STORY.write_text(page + "\n", encoding="utf-8")
    made = drawing(json.loads(STORY.read_text(encoding="utf-8"))).encode()
    if "--check" in sys.argv:
        return 0 if PATH.exists() and PATH.read_bytes() == made else 1
    PATH.write_bytes(made)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
