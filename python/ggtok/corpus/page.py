"""Tables about a corpus as a page of HTML that needs nothing else, and as a fragment for notebooks."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import TypeAlias

from ..tokenizer.notebook import table

Row: TypeAlias = tuple[str, str]
SourceRow: TypeAlias = tuple[str, str, str, str]

STYLE = """
:root { color-scheme: light dark; --paper: light-dark(#ffffff, #10151b); --ink: light-dark(#1b2028, #e5ebf1);
  --muted: light-dark(#56606b, #9fabb8); --line: light-dark(#cfd6dd, #36414d); --bar: light-dark(#0a56b0, #7db9ff);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif; }
body { margin: 0 auto; padding: 20px; max-width: 880px; background: var(--paper); color: var(--ink); }
h1 { font-size: 1.4rem; margin: 0; overflow-wrap: anywhere; }
h2 { font-size: 1.1rem; margin: 28px 0 8px; }
p { margin: 4px 0; color: var(--muted); }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 4px 20px; margin: 16px 0 0; }
dt { color: var(--muted); }
dd { margin: 0; overflow-wrap: anywhere; }
.table { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { padding: 3px 0 3px 14px; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap; }
th { color: var(--muted); font-weight: 500; white-space: normal; vertical-align: bottom; }
td:first-child, th:first-child { padding-left: 0; text-align: left; }
.name { min-width: 7.5em; white-space: normal; overflow-wrap: anywhere; }
.bar { width: 45%; }
@media (max-width: 500px) { th, td { padding-left: 8px; } .bar { width: 30%; } .name { min-width: 5.5em; } }
.bar div { height: 12px; border-radius: 2px; background: var(--bar); min-width: 1px; }
"""


SOURCE_HEAD = ("source", "documents", "tokens", "bytes per token")


def page(title: str, summary: list[Row], lengths: list[tuple[str, int]], sources: list[SourceRow]) -> Iterator[str]:
    """The parts of the page: sums by name, the histogram of lengths, and the sources."""
    title = escape(title)
    yield '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f"<title>{title}</title><style>{STYLE}</style></head><body><h1>{title}</h1><dl>"
    for name, value in summary:
        yield f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>"
    yield '</dl><h2>Lengths of documents</h2><div class="table"><table>'
    yield "<tr><th>tokens</th><th>documents</th><th></th></tr>"
    most = max((documents for _, documents in lengths), default=1)
    for tokens, documents in lengths:
        bar = f'<div style="width: {100 * documents / most:.1f}%"></div>'
        yield f'<tr><td>{tokens}</td><td>{documents:,}</td><td class="bar">{bar}</td></tr>'
    yield '</table></div><h2>Sources</h2><div class="table"><table>'
    yield "<tr>" + "".join(f"<th>{name}</th>" for name in SOURCE_HEAD) + "</tr>"
    for row in sources:
        name, *numbers = map(escape, row)
        yield f'<tr><td class="name">{name}</td>' + "".join(f"<td>{number}</td>" for number in numbers) + "</tr>"
    yield "</table></div></body></html>\n"


def fragment(summary: list[Row], sources: list[SourceRow]) -> str:
    """The sums and the largest sources, for notebooks."""
    return table(("corpus", ""), summary, texts=2) + table(SOURCE_HEAD, sources, texts=1)
