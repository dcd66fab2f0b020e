"""A chart of horizontal bars in several panels, as SVG text.

Hand-written, so that drawing needs no plotting package. Each panel has its own scale from zero; bars are sorted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import NamedTuple

PANEL_WIDTH, COLUMNS = 430, 2
ROW, BAR, HEAD, GAP, MARGIN, NOTE = 22, 14, 34, 22, 16, 17
WIDTH = 2 * MARGIN + COLUMNS * PANEL_WIDTH + GAP
LABEL_WIDTH, VALUE_WIDTH = 105, 48
LABEL_LEN = 14
"""How many characters of a label fit."""

STYLE = """
text, .spread { font: 13px system-ui, sans-serif; fill: #1f2328 }
.title { font-weight: 600; font-size: 14px }
.panel { font-weight: 600 }
.ground { fill: #ffffff }
.peer { fill: #9aa4b2 }
.ours { fill: #d9480f }
@media (prefers-color-scheme: dark) {
  text, .spread { fill: #e6edf3 }
  .ground { fill: #0d1117 }
  .peer { fill: #5b6675 }
  .ours { fill: #ff8f4a }
}
"""


NOTES = ".note { font-size: 11px; opacity: 0.8 }\n"
"""The style of what stands below a chart."""


class Panel(NamedTuple):
    """One group of bars: a title and a value per label, and of some the least and the most that was measured."""

    title: str
    values: dict[str, float]
    spread: dict[str, tuple[float, float]] | None = None

    @property
    def height(self) -> int:
        """Pixels from the title to the end of the last bar."""
        return HEAD + ROW * len(self.values)


def bars(
    title: str,
    panels: Sequence[Panel],
    ours: str | None = None,
    *,
    columns: int = COLUMNS,
    least_first: bool = False,
    notes: Sequence[str] = (),
) -> str:
    """The chart, with notes below it; `ours` is the label that stands out."""
    rows = [panels[at : at + columns] for at in range(0, len(panels), columns)]
    top = MARGIN + HEAD
    body: list[str] = []
    for row in rows:
        for column, panel in enumerate(row):
            body += _panel(panel, MARGIN + column * (PANEL_WIDTH + GAP), top, ours, least_first)
        top += max(panel.height for panel in row) + GAP
    for note in notes:
        body.append(f'<text class="note" x="{MARGIN}" y="{top}">{escape(note)}</text>')
        top += NOTE
    width = 2 * MARGIN + columns * PANEL_WIDTH + (columns - 1) * GAP
    return document(title, top, body, width, style=NOTES * bool(notes))


def document(title: str, height: int, body: Sequence[str], width: int = WIDTH, *, style: str = "") -> str:
    """An SVG document with a title and elements below it; `style` is added to the style of all charts."""
    head = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" aria-label="{escape(title)}">',
        f"<style>{STYLE}{style}</style>",
        f'<rect class="ground" width="{width}" height="{height}"/>',
        f'<text class="title" x="{MARGIN}" y="{MARGIN + 14}">{escape(title)}</text>',
    ]
    return "\n".join([*head, *body, "</svg>"]) + "\n"


def _panel(panel: Panel, left: int, top: int, ours: str | None, least_first: bool) -> Iterator[str]:
    yield f'<text class="panel" x="{left}" y="{top + 16}">{escape(panel.title)}</text>'
    longest = PANEL_WIDTH - LABEL_WIDTH - VALUE_WIDTH
    spread = panel.spread or {}
    scale = longest / (max([*panel.values.values(), *(high for _, high in spread.values())], default=1) or 1)
    ordered = sorted(panel.values.items(), key=lambda item: item[1] if least_first else -item[1])
    for n, (label, value) in enumerate(ordered):
        y = top + HEAD - 6 + n * ROW
        start, length = left + LABEL_WIDTH, max(value * scale, 1)
        kind = "ours" if label == ours else "peer"
        yield f'<text x="{start - 8}" y="{y + 12}" text-anchor="end">{escape(_short(label))}</text>'
        yield f'<rect class="{kind}" x="{start}" y="{y}" width="{length:.1f}" height="{BAR}" rx="2"/>'
        low, high = (start + end * scale for end in spread.get(label, (value, value)))
        if high > low:
            yield f'<rect class="spread" x="{low:.1f}" y="{y + 6}" width="{high - low:.1f}" height="2"/>'
        yield f'<text x="{max(start + length, high) + 6:.1f}" y="{y + 12}">{value:.3g}</text>'


def _short(label: str) -> str:
    return label if len(label) <= LABEL_LEN else label[: LABEL_LEN - 1] + "…"
