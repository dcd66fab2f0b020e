"""The short view of a trace: what the algorithm does, the text cut into its tokens, and a line for each part of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from . import strip
from .cells import cell_len
from .pictures import line
from .record import Record
from .terminal import fitted, padded, styled, wrapped
from .terminal_tables import headline, shortened
from .units import Story, Unit, text_face

MOST_LINES = 24
"""The lines of a stage; more of its parts are left out in the middle."""

STRIP_LINES = 8
"""The lines of the strip."""

LISTED = {"merge", "dna", "search", "match"}
"""The stages whose units are listed."""

MOST_NAMED = 3
"""Special tokens that are named."""

MOST_IDS = 40
"""The columns that ids beside a line take at most."""


def render(trace: Record, width: int, colors: bool) -> str:
    """The short view in at most `width` columns."""
    return "\n".join(_lines(trace, width, colors))


def _lines(trace: Record, width: int, colors: bool) -> Iterator[str]:
    story = Story(trace)
    yield styled(headline(trace, width), "title", colors)
    if trace.unread:
        texts = dict.fromkeys(text_face(each.text) for each in trace.unread)
        what = f"{', '.join([*texts][:MOST_NAMED])}{', …' * (len(texts) > MOST_NAMED)}"
        told = f"parse_special=True would read these as special tokens, not as text: {what}"
        yield from (styled(line, "warning:", colors) for line in wrapped(told, width))
    yield from wrapped(story.idea, width)
    cut = [line for line, _ in strip.lines(strip.strip(trace), width, colors)]
    if cut:
        yield ""
    for part in shortened(cut, STRIP_LINES):
        yield fitted(f"... {part} more lines ...", width) if isinstance(part, int) else part
    for stage in filter(LISTED.__contains__, story.stages):
        yield ""
        yield styled(story.stages[stage], "header", colors)
        yield from _parts(trace, story, stage, width, colors)


def _parts(trace: Record, story: Story, stage: str, width: int, colors: bool) -> Iterator[str]:
    """A line for each unit of a stage, with the ids of its tokens."""
    shown = shortened([unit for unit in story.units if unit.stage == stage and unit.tokens], MOST_LINES)
    told = story.told(unit for unit in shown if isinstance(unit, Unit))
    rows = []
    for unit in shown:
        if isinstance(unit, int):
            rows.append((f"... {unit} more ...", ""))
            continue
        ids = _ids([trace.tokens[place].id for place in unit.tokens], min(MOST_IDS, width // 2))
        room = width - cell_len(ids) - 4
        rows.append((fitted(line(told[unit.id], room), room), ids))
    most = max((cell_len(text) for text, _ in rows), default=0)
    for text, ids in rows:
        gap = min(most, width - cell_len(ids) - 4)
        yield f"  {padded(text, max(gap, cell_len(text)))}  {styled(ids, 'lost', colors)}".rstrip()


def _ids(ids: Sequence[int], width: int) -> str:
    """Ids in at most `width` columns: if there are more, the first and the last ones."""
    written, most = [*map(str, ids)], width
    while True:
        line = " ".join("…" if isinstance(each, int) else each for each in shortened(written, most))
        if len(line) <= width:
            return line
        most -= 1
