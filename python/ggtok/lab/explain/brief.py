"""The short view of a trace: what the algorithm does, the text cut into its tokens, and a line for each part of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.cells import cell_len

from . import strip
from .record import Record
from .stages import idea, title_of, units
from .terminal import fitted, padded, styled, wrapped
from .terminal_tables import headline, shortened
from .units import Unit

MOST_LINES = 24
"""The lines of a stage; more of its parts are left out in the middle."""

STRIP_LINES = 8
"""The lines of the strip."""

MOST_IDS = 40
"""The columns that ids beside a line take at most."""


def render(trace: Record, width: int, colors: bool) -> str:
    """The short view in at most `width` columns."""
    return "\n".join(_lines(trace, width, colors))


def _lines(trace: Record, width: int, colors: bool) -> Iterator[str]:
    yield styled(headline(trace, width), "title", colors)
    yield from wrapped(idea(trace), width)
    cut = [line for line, _ in strip.lines(strip.strip(trace), width, colors)]
    if cut:
        yield ""
    for part in shortened(cut, STRIP_LINES):
        yield fitted(f"... {part} more lines ...", width) if isinstance(part, int) else part
    found = units(trace)
    for stage in dict.fromkeys(unit.stage for unit in found):
        own = [unit for unit in found if unit.stage == stage and unit.line is not None]
        if own:
            yield ""
            yield styled(title_of(stage), "header", colors)
            yield from _parts(trace, own, width, colors)


def _parts(trace: Record, own: list[Unit], width: int, colors: bool) -> Iterator[str]:
    """A line for each unit of a stage, in the order of the text, with the ids of its tokens."""
    own = sorted(own, key=lambda unit: unit.tokens.start)
    rows = []
    for part in shortened(own, MOST_LINES):
        if isinstance(part, int):
            rows.append((f"... {part} more ...", ""))
            continue
        ids = _ids([trace.tokens[place].id for place in part.tokens], min(MOST_IDS, width // 2))
        room = width - cell_len(ids) - 4
        rows.append((fitted(part.line(room) if part.line else "", room), ids))
    most = max(cell_len(text) for text, _ in rows)
    for text, ids in rows:
        gap = min(most, width - cell_len(ids) - 4)
        yield f"  {padded(text, max(gap, cell_len(text)))}  {styled(ids, 'lost', colors)}".rstrip()


def _ids(ids: Sequence[int], width: int) -> str:
    """Ids in at most `width` columns: if there are more, the first and the last ones."""
    written = " ".join(map(str, ids))
    if len(written) <= width:
        return written
    first, last, room = list[str](), list[str](), width - 1
    for place in range(len(ids)):
        side, at = (last, -1 - place // 2) if place % 2 else (first, place // 2)
        room -= len(str(ids[at])) + 1
        if room < 0:
            break
        side.append(str(ids[at]))
    return " ".join([*first, "…", *reversed(last)])
