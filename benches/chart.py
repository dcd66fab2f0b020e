"""A chart of horizontal bars in several panels, as SVG text.

Hand-written, so that drawing needs no plotting package. Each panel has its own scale from zero; bars are sorted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

PANEL_WIDTH, COLUMNS = 430, 2
ROW, BAR, HEAD, GAP, MARGIN = 22, 14, 34, 22, 16
LABEL_WIDTH, VALUE_WIDTH = 105, 48
TITLE = "Throughput on one core, documents never seen before, MB/s (geometric mean of four corpora; longer is faster)"

STYLE = """
text { font: 13px system-ui, sans-serif; fill: #1f2328 }
.title { font-weight: 600; font-size: 14px }
.panel { font-weight: 600 }
.ground { fill: #ffffff }
.peer { fill: #9aa4b2 }
.ours { fill: #d9480f }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 }
  .ground { fill: #0d1117 }
  .peer { fill: #5b6675 }
  .ours { fill: #ff8f4a }
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
    width, height = 2 * MARGIN + COLUMNS * PANEL_WIDTH + GAP, top
    head = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" aria-label="{escape(TITLE)}">',
        f"<style>{STYLE}</style>",
        f'<rect class="ground" width="{width}" height="{height}"/>',
        f'<text class="title" x="{MARGIN}" y="{MARGIN + 14}">{escape(TITLE)}</text>',
    ]
    return "\n".join([*head, *body, "</svg>"]) + "\n"


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
