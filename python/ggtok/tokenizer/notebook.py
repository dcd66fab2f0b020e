"""HTML for notebooks: plain tables and text, with styles in attributes, no scripts, and nothing to load.

Colours are the notebook's own, so both of its themes work.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

CELL = "padding: 1px 8px; white-space: pre-wrap; text-align: "


def table(head: Sequence[str], rows: Iterable[Sequence[str]], texts: int) -> str:
    """A table whose first `texts` columns are aligned to the left, the others to the right."""

    def row(tag: str, cells: Sequence[str]) -> str:
        return "<tr>" + "".join(_cell(tag, place < texts, cell) for place, cell in enumerate(cells)) + "</tr>"

    body = "".join(row("td", cells) for cells in rows)
    return f'<div style="overflow-x: auto"><table><thead>{row("th", head)}</thead><tbody>{body}</tbody></table></div>'


def _cell(tag: str, is_text: bool, value: str) -> str:
    return f'<{tag} style="{CELL}{"left" if is_text else "right"}">{html.escape(value)}</{tag}>'


def printed(text: str) -> str:
    """Lines as they are printed."""
    return f'<pre style="white-space: pre-wrap">{html.escape(text)}</pre>'
