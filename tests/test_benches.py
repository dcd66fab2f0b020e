"""The benchmark judges its machine, and its charts can be read."""

from __future__ import annotations

import importlib
import os
import re
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

BENCHES = Path(__file__).resolve().parents[1] / "benches"


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(BENCHES))
    return importlib.import_module


STAT = "cpu  {user} 100 50 {idle} 7 3 2 {steal} 40 0\ncpu0 1 2 3 4 5 6 7 8 9 0\nintr 1"
"""The fields after `steal` are counted in `user` and `nice` too."""


@pytest.mark.parametrize(
    ("user", "steal", "own", "found"),
    [
        (110, 0, 1.0, None),
        (110, 3, 1.0, None),
        (110, 8, 1.0, "the CPU is shared: 4% of its time went elsewhere"),
        (130, 0, 1.0, None),
        (150, 0, 1.0, "other processes took 25% of each core"),
        (150, 0, 1.5, None),
    ],
)
def test_what_disturbs_a_measurement(module: Any, user: int, steal: int, own: float, found: str | None) -> None:
    """Two seconds of all cores: `own` of them ours."""
    idle = module("idle")
    before = idle.parse(STAT.format(user=1000, idle=500, steal=10), 100, 3.0)
    after = idle.parse(STAT.format(user=1000 + user, idle=500 + 200 - user - steal, steal=10 + steal), 100, 3.0 + own)
    assert idle.disturbed(before, after) == found
    assert before.total == pytest.approx(16.72)
    assert before.busy == pytest.approx(11.55)


def test_a_busy_machine_is_refused(
    module: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    compare = module("compare")
    (tmp_path / "vocabs").mkdir()
    monkeypatch.setattr(os, "getloadavg", lambda: (0.5, 0.5, 0.5))
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    monkeypatch.setattr(compare, "install", lambda options: pytest.fail("began"))
    monkeypatch.setattr(sys, "argv", ["compare.py", "--shared", str(tmp_path)])
    with pytest.raises(SystemExit, match=r"nothing is measured: the load average is 0\.25 per core"):
        compare.main()
    monkeypatch.setattr(sys, "argv", [*sys.argv, "--quick", "--out", str(BENCHES / "results")])
    with pytest.raises(SystemExit):
        compare.main()
    assert "--quick is only for trying" in capsys.readouterr().err


def test_a_start_that_would_take_too_long_is_not_tried(module: Any) -> None:
    compare = module("compare")
    rows = [
        {"measurement": "start", "peer": "fast", "bytes": 10, "answer": {"seconds": 1.0}},
        {"measurement": "start", "peer": "slow", "bytes": 10, "answer": {"seconds": 13.0}},
        {"measurement": "start", "peer": "hung", "bytes": 10, "answer": {"failed": "over 60 s"}},
    ]
    for peer, too_long in [("fast", False), ("slow", True), ("hung", True), ("new", False)]:
        task = {"measurement": "start", "peer": peer, "bytes": 100}
        assert compare._is_endless(task, rows, 60) == too_long
        assert not compare._is_endless(task | {"bytes": 10}, rows, 60)


def test_labels_of_curves_do_not_overlap(module: Any) -> None:
    chart = module("chart")
    lines = {f"peer{n}": [(10**4, 1.0), (10**9, 12 + n / 10)] for n in range(6)} | {"early": [(10**4, 1.0)]}
    found = chart.curves(lines, "peer0")
    labels = re.findall(r'<text class="over" x="([\d.]+)" y="([\d.]+)".*?<tspan class="(\w+)-label">(\w+)', found)
    assert [name for *_, name in labels] == [*(f"peer{n}" for n in range(5, -1, -1)), "early"]
    assert [name for *_, kind, name in labels if kind == "ours"] == ["peer0"]
    assert len({x for x, *_ in labels[:-1]}) == 1
    places = [float(y) for _, y, *_ in labels[:-1]]
    assert all(low - high >= chart.LINE for high, low in pairwise(places))


def test_the_chart_of_the_start_shows_the_spread(module: Any) -> None:
    """A line from the least to the most, which the figure does not cover, and none for a single round."""
    report = module("report")
    machine = {"processor": "CPU", "cores": 2, "python": "3.11"}
    rows = [
        {"measurement": "start", "vocabulary": "llama-bpe", "peer": peer, "bytes": 10**6, "answer": {"seconds": each}}
        for peer, times in (("ggtok", [1.0, 2.0, 4.0]), ("llama_cpp", [5.0]))
        for each in times
    ]
    start = {"machine": machine, "settings": {"rounds": 3, "date": "2026-01-01"}}
    run = report.Run({"measured": {"start": start}, "results": rows})
    drawn = report.ready(run)
    [(x, width)] = re.findall(r'<rect class="spread" x="([\d.]+)" y="\d+" width="([\d.]+)"', drawn)
    (figure,) = re.findall(r'<text x="([\d.]+)" y="\d+">2</text>', drawn)
    (bar,) = re.findall(r'<rect class="ours" x="(\d+)" y="\d+" width="[\d.]+"', drawn)
    assert float(width) == pytest.approx(3 * (float(x) - float(bar)), abs=0.2)
    assert float(figure) > float(x) + float(width)
    assert "medians of 3 rounds" in drawn


def test_counts_of_valgrind(module: Any, tmp_path: Path) -> None:
    """valgrind leaves out zeros at the end of a line."""
    counts = module("counts")
    part = tmp_path / "counts.2"
    part.write_text("version: 1\nevents: Ir Dr D1mr DLmr\n\nfn=(1) main\n16 400 3\ntotals: 400 30 7\n")
    events = counts._totals(part) | {"faults": 12, "bytes": 200, "Dw": 0, "D1mw": 3, "DLmw": 0}
    assert [counts.cell([events, events], figure) for figure in counts.FIGURES] == [
        "2 / 2",
        "0.05 / 0.05",
        "0 / 0",
        "12 / 12",
    ]
