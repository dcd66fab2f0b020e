"""A chart of horizontal bars in several panels, and one of curves, as SVG text.

Hand-written, so that drawing needs no plotting package. Each panel has its own scale from zero; bars are sorted.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

PANEL_WIDTH, COLUMNS = 430, 2
ROW, BAR, HEAD, GAP, MARGIN = 22, 14, 34, 22, 16
LABEL_WIDTH, VALUE_WIDTH = 105, 48
TITLE = "Throughput on one core, documents never seen before, MB/s (geometric mean of four corpora; longer is faster)"

CURVES_TITLE = "From the start of the interpreter to N bytes of text encoded with llama-bpe (lower is faster)"

STYLE = """
text { font: 13px system-ui, sans-serif; fill: #1f2328 }
.title { font-weight: 600; font-size: 14px }
.panel { font-weight: 600 }
.ground { fill: #ffffff }
.peer { fill: #9aa4b2 }
.ours { fill: #d9480f }
polyline { fill: none; stroke-width: 2 }
.peer-line, .grid { stroke: #9aa4b2 }
.ours-line { stroke: #d9480f; stroke-width: 3 }
.ours-label { fill: #d9480f }
.grid { stroke-opacity: 0.35 }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 }
  .ground { fill: #0d1117 }
  .peer { fill: #5b6675 }
  .ours { fill: #ff8f4a }
  .peer-line, .grid { stroke: #5b6675 }
  .ours-line { stroke: #ff8f4a }
  .ours-label { fill: #ff8f4a }
}
"""


@dataclass(frozen=True)
class Panel:
    """One group of bars: a title and a value per label."""

    title: str
    values: dict[str, float]

    @property
    def height(self) -> int:
        """Pixels from the title to the end of the last bar."""
        return HEAD + ROW * len(self.values)


def svg(panels: Sequence[Panel], ours: str) -> str:
    """The chart; `ours` is the label that stands out."""
    rows = [panels[at : at + COLUMNS] for at in range(0, len(panels), COLUMNS)]
    top = MARGIN + HEAD
    body: list[str] = []
    for row in rows:
        for column, panel in enumerate(row):
            body += _panel(panel, MARGIN + column * (PANEL_WIDTH + GAP), top, ours)
        top += max(panel.height for panel in row) + GAP
    return _document(TITLE, top, body)


def _document(title: str, height: int, body: Sequence[str]) -> str:
    width = 2 * MARGIN + COLUMNS * PANEL_WIDTH + GAP
    head = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" aria-label="{escape(title)}">',
        f"<style>{STYLE}</style>",
        f'<rect class="ground" width="{width}" height="{height}"/>',
        f'<text class="title" x="{MARGIN}" y="{MARGIN + 14}">{escape(title)}</text>',
    ]
    return "\n".join([*head, *body, "</svg>"]) + "\n"


def curves(lines: dict[str, list[tuple[int, float]]], ours: str) -> str:
    """Seconds over bytes, both logarithmic, one line per label; labels stand at the ends of their lines."""
    left, right, top, bottom = 60, 2 * PANEL_WIDTH - 60, MARGIN + HEAD, 380
    points = [point for line in lines.values() for point in line]
    (low_x, high_x), (low_y, high_y) = (
        (math.floor(math.log10(min(values))), math.ceil(math.log10(max(values))))
        for values in zip(*points, strict=True)
    )

    def x_of(size: float) -> float:
        return left + (math.log10(size) - low_x) / (high_x - low_x) * (right - left)

    def y_of(seconds: float) -> float:
        return bottom - (math.log10(seconds) - low_y) / (high_y - low_y) * (bottom - top)

    body = []
    for power in range(low_x, high_x + 1):
        x, text = x_of(10**power), f"{10 ** (power % 3)} {['', 'kB', 'MB', 'GB'][power // 3]}"
        body.append(f'<line class="grid" x1="{x:.1f}" y1="{top}" x2="{x:.1f}" y2="{bottom}"/>')
        body.append(f'<text x="{x:.1f}" y="{bottom + 20}" text-anchor="middle">{text}</text>')
    for power in range(low_y, high_y + 1):
        y = y_of(10**power)
        body.append(f'<line class="grid" x1="{left}" y1="{y:.1f}" x2="{right}" y2="{y:.1f}"/>')
        body.append(f'<text x="{left - 8}" y="{y + 4:.1f}" text-anchor="end">{10.0**power:g} s</text>')

    taken = top - ROW
    for label, line in sorted(lines.items(), key=lambda item: -item[1][-1][1] / item[1][-1][0]):
        kind = "ours" if label == ours else "peer"
        places = " ".join(f"{x_of(n):.1f},{y_of(s):.1f}" for n, s in line)
        body.append(f'<polyline class="{kind}-line" points="{places}"/>')
        taken = max(taken + ROW - 6, round(y_of(line[-1][1])) + 4)
        body.append(f'<text class="{kind}-label" x="{x_of(line[-1][0]) + 8:.1f}" y="{taken}">{escape(label)}</text>')
    return _document(CURVES_TITLE, bottom + 40, body)


def _panel(panel: Panel, left: int, top: int, ours: str) -> Iterator[str]:
    yield f'<text class="panel" x="{left}" y="{top + 16}">{escape(panel.title)}</text>'
    longest = PANEL_WIDTH - LABEL_WIDTH - VALUE_WIDTH
    scale = longest / max(panel.values.values(), default=1)
    ordered = sorted(panel.values.items(), key=lambda item: -item[1])
    for n, (label, value) in enumerate(ordered):
        y = top + HEAD - 6 + n * ROW
        start, length = left + LABEL_WIDTH, max(value * scale, 1)
        kind = "ours" if label == ours else "peer"
        yield f'<text x="{start - 8}" y="{y + 12}" text-anchor="end">{escape(label)}</text>'
        yield f'<rect class="{kind}" x="{start}" y="{y}" width="{length:.1f}" height="{BAR}" rx="2"/>'
        yield f'<text x="{start + length + 6:.1f}" y="{y + 12}">{value:.3g}</text>'
