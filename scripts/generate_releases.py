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
    "found": "with such a token, to which the file gives no role",
    "marked": "in which one of these is not declared as control:",
}
MOST = 6
"""Alternatives that are listed."""


def pages() -> dict[str, str]:
    """What stands below the introduction of the page."""
    data = json.loads(DATA.read_text(encoding="utf-8"))
    builds = [row["build"] for row in data["releases"]]
    changes = [(label(row), row["new"]) for row in data["changes"]]
    found = [row for row in data["changes"] if "found" in row["concerns"]]
    others = (about(row) for row in data["changes"] if row not in found)
    measured = (f"| b{row['build']} | {row['from']} | {row['ggml'] or 'unknown'} |" for row in data["releases"])
    text = f"""\
## What changed

{dots(builds[0], changes, TODAY, BEFORE)}
\u25cf answers as today, \u25cb as before the change. The columns are the releases that brought something new.

{chr(10).join(others)}
{by_text(found)}
## Which release opens a file first

Files with these values of `tokenizer.ggml.pre` or `tokenizer.ggml.model` open since the first \u25cf of their row. All
other values are as old as b{builds[0]}, the oldest release that was measured.

{dots(builds[0], [*names(data["pre"], ""), *names(data["models"], " (model)")], OPENS, REFUSES)}
\u25cf opens it, \u2013 refuses it.

## What was measured

<details>
<summary>{len(builds)} releases, from b{builds[0]} to b{builds[-1]}</summary>

| release | taken from | ggml |
|---|---|---|
{chr(10).join(measured)}

</details>
"""
    return {"releases": text}


def label(row: dict[str, Any]) -> str:
    """The name of a change, which leads to its description, and whom it concerns in short."""
    whom = next(iter(row["concerns"].values()))
    more = ", \u2026" if len(whom) > 2 else ""
    return f'<a href="#{row["code"]}">{row["code"]}</a> <small>{escape(", ".join(whom[:2]))}{more}</small>'


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
    for name, new in rows:
        states = (today if build >= new else earlier for build in columns)
        cells = "".join(f'<td title="{words}">{dot}</td>' for dot, words in states)
        lines.append(f'<tr><th scope="row">{name}</th>{cells}</tr>')
    body = "\n".join(lines)
    return f'<table class="releases">\n<thead><tr><td></td>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>\n'


def about(row: dict[str, Any]) -> str:
    """One change: whom it concerns, since when, and an example."""
    return f"""\
### {row["code"]}

Between b{row["old"]} and b{row["new"]}{sources(row)}: {row["what"]}.

It concerns vocabularies {concerns(row["concerns"])}. {example(row["example"])}
"""


def sources(row: dict[str, Any]) -> str:
    """Links to the pull requests of a change, in brackets."""
    links = (f"[#{number}](https://github.com/ggml-org/llama.cpp/pull/{number})" for number in row["pull_requests"])
    return f" ({', '.join(links)})" if row["pull_requests"] else ""


def by_text(rows: list[dict[str, Any]]) -> str:
    """The changes that differ in nothing but the texts of tokens."""
    lines = (
        f'| <span id="{row["code"]}">b{row["old"]} and b{row["new"]}</span>{sources(row)} '
        f"| {listed(row['concerns']['found'])} |"
        for row in rows
    )
    return f"""\
### special-texts

A token with one of these texts counts as special, and may end generation. Which texts these are has grown:

| between | texts |
|---|---|
{chr(10).join(lines)}

It concerns vocabularies {CONDITIONS["found"]}. {example(rows[0]["example"])}
"""


def example(row: dict[str, Any]) -> str:
    """What was answered and what is, in a sentence."""
    vocabulary, before, after = (row[name] for name in ("vocabulary", "before", "after"))
    if "token" in row:
        return f"In {vocabulary}, `{row['token']}` was {before}, and is {after}."
    settings = "".join(f" and `{setting}`" for setting in row["settings"])
    return f"With {vocabulary}{settings}, `{row['call']}` was `{before}`, and is `{after}`."


def listed(texts: list[str]) -> str:
    """Texts as code, in a cell of a table."""
    return ", ".join(f"`{text}`" for text in texts).replace("|", "\\|")


def concerns(conditions: dict[str, Any]) -> str:
    """Whom a change concerns, in words."""
    parts = []
    for name, wanted in conditions.items():
        if name == "settings":
            parts.append("with " + ", ".join(f"`{flag}` {str(value).lower()}" for flag, value in wanted.items()))
        else:
            some = " or ".join(f"`{value}`" for value in wanted[:MOST])
            more = f" or {len(wanted) - MOST} more" if len(wanted) > MOST else ""
            parts.append(f"{CONDITIONS[name]} {some}{more}")
    return " ".join(parts)
