"""Whether other work disturbs a measurement: the load, other processes' CPU time, and a CPU shared with others.

All figures are per core. The load average counts a measurement itself, so it only says whether one may begin.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

MOST_LOAD = 0.2
"""The highest load average, and the largest share of the time that other processes may take."""
MOST_STOLEN = 0.02
"""The largest share of the time that a hypervisor may take; it counts in ticks of 10 ms."""


class Times(NamedTuple):
    """Seconds of all cores together since the machine started."""

    total: float
    busy: float
    stolen: float
    own: float
    """Of `busy`, what this process took, and its children that have ended."""


def busy() -> str | None:
    """Why nothing should be measured now, or `None`."""
    load = os.getloadavg()[0] / (os.cpu_count() or 1)
    if load > MOST_LOAD:
        return f"the load average is {load:.2f} per core, and may be {MOST_LOAD}: wait, or end what else runs"
    return None


def now() -> Times:
    """The times so far."""
    own = os.times()
    return parse(Path("/proc/stat").read_text(), os.sysconf("SC_CLK_TCK"), sum(own[:4]))


def parse(stat: str, per_second: int, own: float) -> Times:
    """The times in the first line of `/proc/stat`: user, nice, system, idle, iowait, irq, softirq, steal, ..."""
    ticks = [int(word) / per_second for word in stat.split("\n")[0].split()[1:9]]
    waiting, stolen = ticks[3] + ticks[4], ticks[7]
    return Times(sum(ticks), sum(ticks) - waiting - stolen, stolen, own)


def disturbed(before: Times, after: Times) -> str | None:
    """What disturbed the machine between two moments, or `None`."""
    total, busy, stolen, own = (end - start for start, end in zip(before, after, strict=True))
    if busy - own > MOST_LOAD * total:
        return f"other processes took {(busy - own) / total:.0%} of each core"
    if stolen > MOST_STOLEN * total:
        return f"the CPU is shared: {stolen / total:.0%} of its time went elsewhere"
    return None
