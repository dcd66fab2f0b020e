"""The tables of docs/releases.md: releases of llama.cpp across, what changed down. `docs/conf.py` puts them into the
page."""

from __future__ import annotations

import json
from collections.abc import Iterator
from html import escape
from typing import Any

from ggtok._releases import DATA

TODAY, BEFORE = ("\u25cf", "answers as today"), ("\u25cb", "answers as before")
OPENS, REFUSES = ("\u25cf", "opens it"), ("\u2013", "refuses it")
CONDITIONS = {
    **{"kind": "of kind", "model": "with the model", "pre": "with the pre-tokenizer"},
    "adds": "whose files ask for",
    "marked": "in which one of these is not declared as control:",
}
MOST = 6
"""Alternatives that are listed."""


def pages() -> dict[str, str]:
    """What stands below the introduction of the page."""
    data = json.loads(DATA.read_text(encoding="utf-8"))
    builds = [row["build"] for row in data["releases"]]
    changes = [(f'<a href="#{row["code"]}">{row["code"]}</a>', row["new"]) for row in data["changes"]]
    measured = (f"b{row['build']} ({row['from']}, ggml {row['ggml'] or 'unknown'})" for row in data["releases"])
    opening = [*names(data["pre"], ""), *names(data["models"], " (model)")]
    opening.append(("a default id of a special token that is outside the vocabulary", data["default_ids"][1]))
    text = f"""\
## What changed

{dots(builds[0], changes, TODAY, BEFORE)}
\u25cf answers as today, \u25cb answers as before. Each column is the first release of which a row says something new.

{chr(10).join(about(row) for row in data["changes"])}
## Which release opens a file first

The first release of each column that opens files with these values of `tokenizer.ggml.pre` and `tokenizer.ggml.model`.
All others are opened by b{builds[0]}, the oldest one that was measured.

{dots(builds[0], opening, OPENS, REFUSES)}
\u25cf opens it, \u2013 refuses it.

## What was measured

{", ".join(measured)}.
"""
    return {"releases": text}


def names(table: dict[str, list[int]], note: str) -> Iterator[tuple[str, int]]:
    """The names that some release refuses, with the first that opens them; together if it is the same, the latest
    first."""
    rows: dict[int, list[str]] = {}
    for name, (old, new) in table.items():
        if old:
            rows.setdefault(new, []).append(name)
    for new, found in sorted(rows.items(), reverse=True):
        yield ", ".join(f"<code>{escape(name)}</code>" for name in found) + note, new


def dots(oldest: int, rows: list[tuple[str, int]], today: tuple[str, str], earlier: tuple[str, str]) -> str:
    """A table of dots.

    Args:
        oldest: The first column.
        rows: Each with its label, and the first release that answers as today.
        today: The dot of that release and newer ones, and what it means.
        earlier: The dot of older ones.
    """
    columns = sorted({oldest, *(new for _, new in rows)})
    head = "".join(f'<th scope="col"><span>b{build}</span></th>' for build in columns)
    lines = []
    for label, new in rows:
        states = (today if build >= new else earlier for build in columns)
        cells = "".join(f'<td title="{words}">{dot}</td>' for dot, words in states)
        lines.append(f'<tr><th scope="row">{label}</th>{cells}</tr>')
    body = "\n".join(lines)
    return f'<table class="releases">\n<thead><tr><td></td>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>\n'


def about(row: dict[str, Any]) -> str:
    """One change: whom it concerns, since when, and an example."""
    number = row["pull_request"]
    source = f" ([#{number}](https://github.com/ggml-org/llama.cpp/pull/{number}))" if number else ""
    example = row["example"]
    return f"""\
### {row["code"]}

Between b{row["old"]} and b{row["new"]}{source}: {row["what"]}.

It concerns vocabularies {concerns(row["concerns"])}.

With {example["of"]}, `{example["call"]}` was `{example["before"]}` and is `{example["after"]}`.
"""


def concerns(conditions: dict[str, Any]) -> str:
    """Whom a change concerns, in words."""
    parts = []
    for name, wanted in conditions.items():
        if name == "settings":
            parts.append("with " + ", ".join(f"`{flag}` {str(value).lower()}" for flag, value in wanted.items()))
        elif name == "found":
            parts.append("in which the file gives such a token no role")
        else:
            listed = " or ".join(f"`{value}`" for value in wanted[:MOST])
            more = f" or {len(wanted) - MOST} more" if len(wanted) > MOST else ""
            parts.append(f"{CONDITIONS[name]} {listed}{more}")
    return " ".join(parts)
