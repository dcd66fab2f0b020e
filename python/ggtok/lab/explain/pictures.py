"""The drawings of a story in the columns of a terminal. A step takes O(n) time for what it shows."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any, TypeAlias

from ...trace import Token
from .cells import cell_len
from .units import text_face

Span: TypeAlias = tuple[int, int]
"""The letters of a word that a symbol stands for: where they start and end."""

Line: TypeAlias = list[tuple[str, str]]
"""A line of a picture in parts, each with its style."""

MOST_STATES = 60
"""Symbols up to which a line shows how they merge; of more it shows the last state alone."""

MOST_BEFORE = 12
"""States that a picture shows before the current one."""

MOST_WAITING = 6
"""Pairs that wait, of which a picture shows the first."""

CONTEXT = 48
"""Columns of a rewritten text that are shown before a step."""


def picture(drawing: dict[str, Any], step: int | None, tokens: Sequence[Token]) -> list[Line]:
    """A drawing at a step inside its unit, or as one step."""
    match drawing["kind"]:
        case "tokens":
            return [[(f"{token.id:>7}  ", "lost"), (text_face(token.piece or token.text), "")] for token in tokens]
        case "marked":
            return [[(text, style) for text, style in drawing["parts"]]]
        case "rewritten":
            return _rewritten(drawing["parts"], step)
        case "cuts":
            line: Line = []
            for part in drawing["parts"]:
                line += [("│", "lost")] * bool(line) + [(part, "")]
            return [line]
        case "tree":
            return _merged(drawing, step)
        case "lattice":
            return _searched(drawing, step)
        case _:
            rows = drawing["whole"] if step is None else [*drawing["taken"][:step], *drawing["rows"][step]]
            styles = {"taken": "won", "wins": "current", "loses": "lost", "way": "lost"}
            return _rows(drawing["letters"], [(each, each["note"], styles.get(each["kind"], "")) for each in rows])


def _rewritten(parts: Sequence[tuple[str, str]], step: int | None) -> list[Line]:
    if step is None:
        before, after = map("".join, zip(*parts, strict=True))
        return [[(before, "")], [(after, "won")]]
    done = "".join(after for _, after in parts[:step])
    return [[(done[-CONTEXT:], ""), (parts[step][1], "current")]]


def _rows(letters: dict[str, Any], rows: Sequence[tuple[dict[str, Any], str, str]]) -> list[Line]:
    """Letters, and below them a line for each token, as long as the token, with a note."""
    shown = letters["cells"]
    columns = list(accumulate(map(cell_len, shown), initial=0))
    lines: list[Line] = [[("".join(shown), "")]]
    for each, note, style in rows:
        start, end = columns[each["from"]], columns[each["to"]]
        mark = f"╰{'─' * (end - start - 2)}╯" if end - start > 1 else "╵" * (end - start)
        text = "".join(shown[each["from"] : each["to"]])
        written = " ".join(filter(None, [text, note]))
        lines.append([(" " * start, ""), (mark, style), (f" {written}", style)])
    return lines


def _searched(drawing: dict[str, Any], step: int | None) -> list[Line]:
    """The tokens that lead to a dot, or in the end the best way."""
    step = len(drawing["letters"]["cells"]) if step is None else step
    last = step == len(drawing["letters"]["cells"])
    rows = []
    for each in drawing["arcs"]:
        if each["place"] is None if last else each["born"] != step + 1:
            continue
        note = "unknown " * each["is_unknown"] + each["total"] + " beaten" * (not each["wins"])
        rows.append((each, note, "won" if each["wins"] else "lost"))
    return _rows(drawing["letters"], sorted(rows, key=lambda row: int(row[0]["from"])) if last else rows)


def _merged(drawing: dict[str, Any], step: int | None) -> list[Line]:
    """The states so far, one below the other, each symbol in the middle of what it was made of; and what waits."""
    steps, cells, named = states(drawing), drawing["letters"]["cells"], faces(drawing)
    step = len(steps) - 1 if step is None else step
    columns = list(accumulate((cell_len(cell) + 1 for cell in cells), initial=0))
    lines = []
    for count in range(max(0, step - MOST_BEFORE), step + 1) if len(cells) <= MOST_STATES else (step,):
        line: Line = []
        for start, end in steps[count]:
            room, shown = columns[end] - columns[start] - 1, named[start, end]
            space = max(room - cell_len(shown), 0)
            is_new = count > 0 and (start, end) not in steps[count - 1]
            style = "" if not is_new else "current" if count == step else "won"
            line += [(" " * (space // 2), ""), (shown, style), (" " * (space - space // 2 + 1), "")]
        lines.append(line)
    waiting = [each for each in drawing["pairs"] if each["born"] <= step and not (each["died"] or step + 1) <= step]
    listed: Line = []
    for each in waiting[:MOST_WAITING]:
        listed.append((f"{each['by']}: {' + '.join(each['faces'])}", "lost" if listed else "won"))
        listed.append(("   ", ""))
    return [*lines, [], listed] if listed else lines


def states(drawing: dict[str, Any]) -> list[list[Span]]:
    """The symbols before the first merge and after each."""
    found = [[(at, at + 1) for at in range(len(drawing["letters"]["cells"]))]]
    for pair in sorted((each for each in drawing["pairs"] if each["won"]), key=lambda each: each["died"]):
        outside = [each for each in found[-1] if each[1] <= pair["from"] or pair["to"] <= each[0]]
        found.append(sorted([*outside, (pair["from"], pair["to"])]))
    return found


def faces(drawing: dict[str, Any]) -> dict[Span, str]:
    """The symbols as a reader knows them."""
    letters = {(at, at + 1): cell for at, cell in enumerate(drawing["letters"]["cells"])}
    return letters | {(pair["from"], pair["to"]): pair["face"] for pair in drawing["pairs"]}


def line(told: dict[str, Any], width: int) -> str:
    """A unit on one line: as much as fits."""
    drawing = told["drawing"]
    shown: list[str] = told["lines"]
    if drawing["kind"] == "tree" and 1 < len(drawing["letters"]["cells"]) <= MOST_STATES:
        named = faces(drawing)
        shown = _arrows([" ".join(named[span] for span in state) for state in states(drawing)])
    return next((each for each in shown if cell_len(each) <= width), shown[-1])


def _arrows(written: list[str]) -> list[str]:
    """States with arrows between them: all, or the first and ever fewer of the last ones, or the last alone."""
    first, rest = written[0], written[1:]
    fewer = [" → ".join([first, "…", *rest[at:]]) for at in range(1, len(rest))]
    return [" → ".join(written), *fewer, written[-1]]
