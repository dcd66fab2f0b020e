"""The charts of the benchmark, as SVG text: bars of throughput, curves of the time from the start, and who agrees with
llama.cpp."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from itertools import accumulate

from ggtok.lab.chart import HEAD, MARGIN, ROW, Panel, bars, document

CURVES_WIDTH = 690
LINE = 15
"""Pixels from one label to the next."""

TITLE = "Throughput on one core, documents never seen before, MB/s (geometric mean of four corpora; longer is faster)"

CURVES_TITLE = "From the start of a process to N bytes encoded with llama-bpe (lower is faster)"

READY_TITLE = "Seconds from the start of a process (shorter is faster)"

CURVES_STYLE = """\
polyline { fill: none; stroke-width: 2 }
.peer-line, .grid { stroke: #9aa4b2 }
.ours-line { stroke: #d9480f; stroke-width: 3 }
.ours-label { fill: #d9480f; font-weight: 600 }
.over { paint-order: stroke; stroke: #ffffff; stroke-width: 4; stroke-linejoin: round }
.grid { stroke-opacity: 0.35 }
@media (prefers-color-scheme: dark) {
  .peer-line, .grid { stroke: #5b6675 }
  .ours-line { stroke: #ff8f4a }
  .ours-label { fill: #ff8f4a }
  .over { stroke: #0d1117 }
}
"""

MATRIX_TITLE = "Texts whose ids differ from llama.cpp's"
NAME_WIDTH, CELL_WIDTH = 112, 84
"""Of a row's name and of a cell: narrow, so that a phone can show all of it."""
MATRIX_STYLE = """\
text.small { font-size: 11px; fill: #59636e }
text.other, tspan.other { fill: #c92a2a; font-weight: 600 }
.same { fill: #1c7a4c }
.band { fill: #1c7a4c; fill-opacity: 0.1 }
@media (prefers-color-scheme: dark) {
  text.small { fill: #9198a1 }
  text.other, tspan.other { fill: #ff8787 }
  .same { fill: #5fcf9b }
  .band { fill: #5fcf9b }
}
"""


def throughput(panels: Sequence[Panel], ours: str) -> str:
    """Bars of throughput; `ours` is the label that stands out."""
    return bars(TITLE, panels, ours)


def ready(panels: Sequence[Panel], ours: str, notes: Sequence[str]) -> str:
    """Bars of the time until a text is encoded, the fastest first."""
    return bars(READY_TITLE, panels, ours, columns=1, least_first=True, notes=notes)


def curves(lines: dict[str, list[tuple[int, float]]], ours: str) -> str:
    """Seconds over bytes, both logarithmic, one line per label; labels are at the ends of their lines."""
    left, right, top, bottom = 60, CURVES_WIDTH - 130, MARGIN + HEAD, 360
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

    ends: dict[int, list[tuple[float, str]]] = defaultdict(list)
    for label, line in lines.items():
        kind = "ours" if label == ours else "peer"
        places = " ".join(f"{x_of(n):.1f},{y_of(s):.1f}" for n, s in line)
        body.append(f'<polyline class="{kind}-line" points="{places}"/>')
        size, seconds = line[-1]
        text = f'<tspan class="{kind}-label">{escape(label)}</tspan> {seconds:.3g} s'
        ends[size].append((y_of(seconds) + 4, text))
    for size, labels in ends.items():
        labels.sort()
        x, raised, anchor = (x_of(size) + 8, 0, "start") if size == max(ends) else (x_of(size) - 4, 9, "end")
        for y, (_, text) in zip(_apart([y for y, _ in labels]), labels, strict=True):
            body.append(f'<text class="over" x="{x:.1f}" y="{y - raised:.1f}" text-anchor="{anchor}">{text}</text>')
    return document(CURVES_TITLE, bottom + 36, body, CURVES_WIDTH, style=CURVES_STYLE)


def matrix(head: Sequence[tuple[str, ...]], rows: Mapping[str, Sequence[int | str]], ours: str) -> str:
    """A dot for each row and column that agree, or the number of texts that differ, or a word if nothing was counted.

    `head` has the lines above each column.
    """
    middles = [MARGIN + NAME_WIDTH + CELL_WIDTH * (at + 0.5) for at in range(len(head))]
    width = int(middles[-1] + CELL_WIDTH / 2 + MARGIN)
    top = MARGIN + HEAD + LINE * max(map(len, head)) + 8
    body = []
    for x, lines in zip(middles, head, strict=True):
        for at, text in enumerate(lines):
            kind = "small" if at else "panel"
            y = MARGIN + HEAD + 8 + at * LINE
            body.append(f'<text class="{kind}" x="{x:g}" y="{y}" text-anchor="middle">{escape(text)}</text>')
    for name, cells in rows.items():
        kind = "panel" if name == ours else ""
        if kind:
            body.append(f'<rect class="band" x="8" y="{top}" width="{width - 16}" height="{ROW}" rx="4"/>')
        body.append(f'<text class="{kind}" x="{MARGIN}" y="{top + 16}">{escape(name)}</text>')
        for x, cell in zip(middles, cells, strict=True):
            if cell == 0:
                body.append(f'<circle class="same" cx="{x:g}" cy="{top + ROW / 2:g}" r="5.5"/>')
            else:
                kind, text = ("other", f"{cell:,}") if isinstance(cell, int) else ("small", escape(cell))
                text = "&#8211;" if text == "-" else text
                body.append(f'<text class="{kind}" x="{x:g}" y="{top + 16}" text-anchor="middle">{text}</text>')
        top += ROW
    legend = (
        f'<circle class="same" cx="{MARGIN + 6}" cy="{top + 20}" r="5.5"/>'
        f'<text class="small" x="{MARGIN + 18}" y="{top + 24}">all ids are the same'
        '<tspan dx="18" class="other">12</tspan> texts with other ids'
        '<tspan dx="18">&#8211;</tspan> cannot read the vocabulary</text>'
    )
    return document(MATRIX_TITLE, top + 40, [*body, legend], width, style=MATRIX_STYLE)


def _apart(places: list[float]) -> Iterator[float]:
    """Sorted positions of labels, moved up and down alike until they no longer overlap."""
    down = accumulate(places, lambda last, place: max(place, last + LINE))
    up = list(accumulate(reversed(places), lambda last, place: min(place, last - LINE)))
    return ((low + high) / 2 for low, high in zip(down, reversed(up), strict=True))
