"""Writes docs/_static/explain.svg: how a text becomes tokens, as the explain page shows it, moving.

python scripts/make_moving_picture.py
python scripts/make_moving_picture.py --check      # exit code 1 if the picture is not current

The picture is drawn from a trace, in the page's words. It is a list of scenes, each with a stage, a caption, the places
of the characters, the boxes around them, and the tokens so far. CSS moves things from scene to scene; where motion is
not wanted, the last scene stands.
"""

from __future__ import annotations

import sys
import textwrap
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from ggtok import Tokenizer
from ggtok.lab.explain.words import said, say, words

PATH = Path(__file__).resolve().parent.parent / "docs/_static/explain.svg"
TEXT = "What is LoRA?"
STAGES = ("split", "merge", "tokens")

WIDTH, HEIGHT, MARGIN = 600, 340, 24
CHAR, BOX_TOP, BOX_HEIGHT = 21, 134, 40
"""The width of a character's cell, and where boxes are."""
IN_BOX, BETWEEN, PIECES = 4, 4, 22
"""Pixels between a box and its characters, between boxes, and between pieces."""
CAPTION_TOP, LINE, STRIP_TOP = 208, 20, 266
IDEA_LETTERS, CAPTION_LETTERS = 50, 58
"""How many letters of a line fit."""
SECONDS, LAST_SECONDS, MOVE = 2.0, 5.0, 0.45
"""How long a scene and the last one take, and how long of it things move."""
TONES = 4

STYLE = """
svg { color-scheme: light dark }
text { font: 15px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; fill: #1b2028 }
.mono { font: 19px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; text-anchor: middle }
.ground { fill: #ffffff; stroke: #cfd6dd }
.idea { font-weight: 600; font-size: 16px }
.small { font-size: 12.5px; fill: #56606b }
.line { stroke: #cfd6dd; stroke-width: 2 }
.stage rect { fill: #f5f7f9; stroke: #cfd6dd }
.stage text { text-anchor: middle; font-size: 13.5px }
.lit rect { fill: #0a56b0; stroke: #0a56b0 }
.lit text { fill: #ffffff }
.box { fill: #f5f7f9; stroke: #cfd6dd; stroke-width: 1.5 }
.now { fill: none; stroke: #0a56b0; stroke-width: 3 }
.tone-0 { fill: #d3e5f8 } .tone-1 { fill: #fae4bf } .tone-2 { fill: #cdecdf } .tone-3 { fill: #ecd8ee }
.id { font-size: 12px; text-anchor: middle; font-variant-numeric: tabular-nums }
@media (prefers-color-scheme: dark) {
  text { fill: #e5ebf1 }
  .ground { fill: #10151b; stroke: #36414d }
  .small { fill: #9fabb8 }
  .line { stroke: #36414d }
  .stage rect, .box { fill: #171e26; stroke: #36414d }
  .lit rect { fill: #7db9ff; stroke: #7db9ff }
  .lit text { fill: #10151b }
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
    token: int | None = None
    """The position of the token that it became."""


@dataclass
class Scene:
    """What is seen at one time."""

    stage: str
    caption: list[tuple[str, bool]]
    """In parts, each with whether it is emphasised."""
    boxes: list[Box]
    piece_ends: list[int] = field(default_factory=list)
    """Where pieces end, once the text is cut."""
    now: Box | None = None
    """The box that was just made."""
    num_tokens: int = 0

    def places(self) -> tuple[list[float], dict[Box, float]]:
        """The left edge of each character and of each box, in the middle of the picture."""
        chars, boxes, x = [], {}, 0.0
        for box in self.boxes:
            boxes[box] = x
            chars += [x + IN_BOX + CHAR * at for at in range(box.end - box.start)]
            x += width_of(box) + (PIECES if box.end in self.piece_ends else BETWEEN)
        left = (WIDTH - (boxes[self.boxes[-1]] + width_of(self.boxes[-1]))) / 2
        return [left + char for char in chars], {box: left + place for box, place in boxes.items()}


def width_of(box: Box) -> float:
    """How wide a box is."""
    return 2 * IN_BOX + CHAR * (box.end - box.start)


def plain(sentence: str) -> list[tuple[str, bool]]:
    """A sentence without emphasis."""
    return [(sentence, False)]


def visible(text: str) -> str:
    """A text whose spaces can be seen."""
    return text.replace(" ", "␣").replace("Ġ", "␣")


def scenes(trace: Any) -> Iterator[Scene]:
    """The scenes of a text of ASCII characters in one fragment, with a BPE vocabulary."""
    (fragment,) = trace.fragments
    pieces = fragment.steps.pieces
    ends = [piece.end for piece in pieces]
    n = len(trace.text)
    yield Scene("split", plain("A text. Which tokens will it become?"), [Box(0, n)])
    starts = [0, *ends[:-1]]
    cut = [Box(start, end) for start, end in zip(starts, ends, strict=True)]
    yield Scene("split", said("captions.split", n=len(pieces)), cut, ends)
    boxes = [Box(at, at + 1) for at in range(n)]
    yield Scene("merge", plain("Each piece starts as single bytes."), boxes, ends)
    done = 0
    for piece, start in zip(pieces, starts, strict=True):
        merging = piece.merging
        waiting = [*merging.queue]
        index = {symbol.index: start + at for at, symbol in enumerate(merging.symbols)}
        merged = [pop for pop in merging.pops if not pop.stale]
        alone = {"text": visible(piece.text), "unit": "byte", "token": piece.symbols[0].token}
        scene = Scene("merge", said("captions.single", **alone), boxes, ends)
        for pop in merged:
            pair = pop.bigram
            left = next(box for box in boxes if box.start == index[pair.left])
            right = next(box for box in boxes if box.start == index[pair.right])
            box = Box(left.start, right.end)
            texts = {old.start: visible(trace.text[old.start : old.end]) for old in boxes}
            can_merge = [
                new
                for new in waiting
                if visible(new.text) == texts.get(index[new.left], "") + texts.get(index[new.right], "")
            ]
            num = len(can_merge)
            one, other = texts[left.start], texts[right.start]
            values = {"left": one, "right": other, "merged": one + other, "waiting": num, "rank": pair.rank}
            caption = said("captions.merge_rank" if num > 1 else "captions.merge_rank_one", **values)
            boxes = [box if old is left else old for old in boxes if old is not right]
            scene = Scene("merge", caption, boxes, ends, box, done)
            waiting = [new for new in can_merge if new is not pair and new != pair] + [*pop.added]
            if pop is not merged[-1]:
                yield scene
        # The last merge of a piece shows its tokens too.
        tokens = {
            box: Box(box.start, box.end, done + at)
            for at, box in enumerate(box for box in boxes if start <= box.start < piece.end)
        }
        done += len(tokens)
        boxes = [tokens.get(box, box) for box in boxes]
        now = tokens.get(scene.now) if scene.now else None
        yield Scene(scene.stage, scene.caption, boxes, ends, now, done)
        if len(tokens) > 1:
            yield Scene(scene.stage, said("captions.end"), boxes, ends, None, done)
    yield Scene("tokens", said("captions.tokens", n=done, characters=f"{n} characters"), boxes, ends, None, done)


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


def drawing(trace: Any) -> str:
    """The picture."""
    shown = list(scenes(trace))
    animation = Animation(len(shown))
    body = [*_frame(shown, animation), *_boxes(shown, animation), *_chars(trace.text, shown, animation)]
    body += _strip(trace, shown, animation)
    label = (
        f"{words()['ideas']['bpe']}. {TEXT} becomes {', '.join(visible(str(token.piece)) for token in trace.tokens)}."
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        f'role="img" aria-label="{escape(label)}">\n<style>{STYLE}{animation.css()}\n</style>\n'
        + "\n".join(body)
        + "\n</svg>\n"
    )


def _opacity(*visible_in: bool) -> list[str]:
    return [f"opacity: {int(shown)}" for shown in visible_in]


def _frame(shown: list[Scene], animation: Animation) -> Iterator[str]:
    """What surrounds the text: the idea, the bar of stages, and the captions."""
    yield f'<rect class="ground" x="0.5" y="0.5" width="{WIDTH - 1}" height="{HEIGHT - 1}" rx="10"/>'
    for at, line in enumerate(textwrap.wrap(words()["ideas"]["bpe"], IDEA_LETTERS)):
        yield f'<text class="idea" x="{MARGIN}" y="{36 + at * 21}">{escape(line)}</text>'
    width, gap = 96, 24
    yield f'<path class="line" d="M{MARGIN} 87H{MARGIN + 3 * width + 2 * gap}"/>'
    for at, stage in enumerate(STAGES):
        x = MARGIN + at * (width + gap)
        for kind, style in (
            ("stage", ""),
            ("stage lit", animation.style(_opacity(*(scene.stage == stage for scene in shown)))),
        ):
            yield (
                f'<g class="{kind}"><g {style}><rect x="{x}" y="74" width="{width}" height="26" rx="13"/>'
                f'<text x="{x + width / 2:g}" y="92">{say(f"stages.{stage}")}</text></g></g>'
            )
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
        kind = "box" if box.token is None else f"box tone-{box.token % TONES}"
        size = f'width="{width_of(box):g}" height="{BOX_HEIGHT}" rx="6"'
        ring = _opacity(*(scene.now == box for scene in shown))
        yield f'<g {animation.style(values)}><rect class="{kind}" {size}/>'
        if "opacity: 1" in ring:
            yield f'<g {animation.style(ring)}><rect class="now" {size}/></g>'
        yield "</g>"


def _chars(text: str, shown: list[Scene], animation: Animation) -> Iterator[str]:
    """The characters, which move with their boxes."""
    places = [scene.places()[0] for scene in shown]
    for at, char in enumerate(text):
        style = animation.style(
            [f"transform: translate({chars[at] + CHAR / 2:g}px, {BOX_TOP + 27}px)" for chars in places]
        )
        yield f'<g {style}><text class="mono">{escape(visible(char))}</text></g>'


def _strip(trace: Any, shown: list[Scene], animation: Animation) -> Iterator[str]:
    """The tokens with their ids, which fill while pieces are done."""
    yield f'<text class="small" x="{MARGIN}" y="{STRIP_TOP}">tokens so far</text>'
    yield f'<path class="line" d="M{MARGIN} {STRIP_TOP + 58}H{WIDTH - MARGIN}"/>'
    x = float(MARGIN)
    for at, token in enumerate(trace.tokens):
        face = visible(str(token.piece))
        width = max(12 * len(face), 8 * len(str(token.id))) + 14
        style = animation.style(_opacity(*(at < scene.num_tokens for scene in shown)))
        yield (
            f'<g {style}><rect class="tone-{at % TONES}" x="{x:g}" y="{STRIP_TOP + 10}" width="{width}" height="44" '
            f'rx="5"/><text class="mono" x="{x + width / 2:g}" y="{STRIP_TOP + 30}">{escape(face)}</text>'
            f'<text class="id" x="{x + width / 2:g}" y="{STRIP_TOP + 47}">{token.id}</text></g>'
        )
        x += width + 4


def main() -> int:
    """Writes, or with `--check` compares, the picture."""
    made = drawing(Tokenizer.builtin("bpe").explain(TEXT)).encode()
    if "--check" in sys.argv:
        return 0 if PATH.exists() and PATH.read_bytes() == made else 1
    PATH.write_bytes(made)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
