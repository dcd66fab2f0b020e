"""The charts of the benchmark, as SVG text: bars of throughput, and curves of the time from the start."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from ggtok._chart import HEAD, MARGIN, PANEL_WIDTH, ROW, Panel, bars, document

TITLE = "Throughput on one core, documents never seen before, MB/s (geometric mean of four corpora; longer is faster)"

CURVES_TITLE = "From the start of the interpreter to N bytes of text encoded with llama-bpe (lower is faster)"


def throughput(panels: Sequence[Panel], ours: str) -> str:
    """Bars of throughput; `ours` is the label that stands out."""
    return bars(TITLE, panels, ours)


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
    return document(CURVES_TITLE, bottom + 40, body)
