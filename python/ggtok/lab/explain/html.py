"""A trace as a page of HTML that needs nothing else, and as a fragment for notebooks.

The page is put together from the files in `page/`. It holds the trace as JSON and draws it with the scripts that are in
the page too; a content security policy forbids everything else. Texts of the trace never become markup.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.resources import files
from itertools import islice, pairwise

from ...tokenizer.notebook import printed
from ...trace import Text
from . import terminal_tables
from .record import Record, reasons
from .sections import origin_of, sections
from .tables import Cell, Row, Section
from .terminal import fitted
from .terminal_tables import headline, shortened, shown
from .units import text_face
from .utf8 import to_bytes
from .verdict import words

SCRIPTS = ("base", "table", "merging", "spans", "lattice", "stages", "tokens", "frame", "mount", "verdict")
"""The scripts of `page/` that build the view of a trace in any page, in the order in which they need each other."""

TITLE = 100
"""The most columns of a title."""

MAX_PAIRS = 500
"""For how many pairs of neighbouring tokens the page says why they are not one: each takes time to answer."""

EXACT = 1 << 53
"""JavaScript's integers are not exact beyond this."""

FRAGMENT_TOKENS = 2000
FRAGMENT_SECTIONS = 40
FRAGMENT_ROWS = 60
"""The most tokens, sections, and rows of a section in a fragment, which a notebook keeps with its output."""

FRAGMENT_WIDTH = 100
"""The columns of a table in a fragment."""

TONES = ("64, 140, 220", "220, 150, 30", "40, 160, 110", "170, 90, 190")
"""Red, green and blue of the tokens' colours; pale enough to read text on in light and dark notebooks."""


def page(trace: Record) -> str:
    """The page of a trace. Takes O(n) time for n steps."""
    return render("trace", f"{fitted(shown(trace.text), TITLE)} with {trace.algorithm}", _parts(trace))


def compare_page(a: Record, b: Record, names: tuple[str, str]) -> str:
    """The page of two traces of one text. `names` are those of the files."""
    sides = _array(_object(_parts(trace)) for trace in (a, b))
    parts = {"names": _dumps(names), "sides": sides}
    return render("compare", f"{names[0]} and {names[1]}: {shown(a.text[:60])}", parts)


def _parts(trace: Record) -> dict[str, str]:
    return {"page": trace._raw.page(), "why": _dumps(_whys(trace)), "sections": _array(map(_section, sections(trace)))}


def _object(parts: Mapping[str, str]) -> str:
    """JSON values as one object."""
    return "{" + ", ".join(f'"{name}": {part}' for name, part in parts.items()) + "}"


def _array(items: Iterable[str]) -> str:
    """JSON values as one array."""
    return "[" + ",".join(items) + "]"


def trie_page(words: Sequence[Text], trie: str, tables: Sequence[Section]) -> str:
    """The page of a double array: `trie` is the JSON of `explain_trie`, `tables` what the terminal shows."""
    title = f"{', '.join(map(shown, words[:8]))}{' …' if len(words) > 8 else ''} in a double array"
    return render("trie", title, {"trie": trie, "sections": _array(map(_section, tables))})


def render(view: str, title: str, parts: Mapping[str, str]) -> str:
    """A page. `view` says which view of `main.js` draws it, from `parts`, which are JSON."""
    folder = files(__package__) / "page"
    style = "".join((folder / f"{name}.css").read_text(encoding="utf-8") for name in ("common", "style"))
    script = scripts(*SCRIPTS, "walks", "trie", "compare", "main")
    data = _object({"view": json.dumps(view), **parts})
    values = {
        "policy": f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; base-uri 'none'; "
        "form-action 'none'",
        "title": html.escape(title),
        "style": style,
        "script": script,
        # In JSON, `<` occurs in strings only. Escaped, it can neither end the element nor begin a comment.
        "data": data.replace("<", "\\u003c"),
    }
    template = (folder / "page.html").read_text(encoding="utf-8")
    return re.sub(r"\{\{(\w+)\}\}", lambda match: values[match[1]], template)


def scripts(*names: str) -> str:
    """Scripts of `page/` as one, with the sentences that they say."""
    folder = files(__package__) / "page"
    sources = [(folder / f"{name}.js").read_text(encoding="utf-8") for name in names]
    return "\n".join([f"const WORDS = {_dumps(words())};\n", *sources])


def _hash(content: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(content.encode("utf-8")).digest()).decode("ascii")


def _base64(value: bytes) -> dict[str, str]:
    return {"base64": base64.b64encode(value).decode("ascii")}


_dumps = json.JSONEncoder(separators=(",", ":"), default=_base64).encode
"""JSON without spaces; bytes are in base64."""


def _whys(trace: Record) -> list[tuple[int, object]]:
    """Why each of the first tokens is not one token with the next: its place, and the answer."""
    found = (
        (place, reasons(trace, left.start, right.end))
        for place, (left, right) in enumerate(pairwise(trace.tokens))
        if left.start < right.end and left.fragment is not None and right.fragment is not None
    )
    return list(islice(found, MAX_PAIRS))


def _section(section: Section) -> str:
    """A table as JSON. Rows are written one by one: a long call would not see Ctrl-C."""
    parts = {"title": _dumps(section.title), "about": _dumps(section.about), "columns": _dumps(section.columns)}
    return _object({**parts, "rows": _array(map(_row, section.rows))})


def _row(row: Row) -> str:
    return _dumps((list(map(_exact, row.cells)), row.mark))


def _exact(value: Cell) -> Cell:
    """A value as JavaScript can hold it: large integers and numbers such as infinity as words."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return str(value) if isinstance(value, int) and abs(value) > EXACT else value


def fragment(trace: Record) -> str:
    """The tokens in colours and all tables, for a notebook: styles in attributes, no scripts, nothing to load."""
    tables = [
        f"<p>… {part} more tables …</p>" if isinstance(part, int) else _table(part)
        for part in shortened(sections(trace), FRAGMENT_SECTIONS)
    ]
    title = html.escape(headline(trace, TITLE))
    return (
        f'<div style="line-height: 1.5"><p style="margin: 0 0 6px">{title}</p>'
        f'<div style="margin-bottom: 10px">{"".join(_tokens(trace))}</div>{"".join(tables)}</div>'
    )


def _tokens(trace: Record) -> Iterator[str]:
    for place, token in enumerate(trace.tokens[:FRAGMENT_TOKENS]):
        kind = origin_of(trace, token) or ""
        border = {"added": "1px dashed", "special": "1px solid"}.get(kind, "1px solid transparent")
        yield (
            f'<span title="token {token.id}{", " * bool(kind)}{kind}" style="display: inline-block; margin: 1px; '
            f"padding: 1px 4px; border: {border}; border-radius: 4px; background: rgba({TONES[place % len(TONES)]}, "
            '0.25); font-family: monospace; white-space: pre-wrap; vertical-align: top">'
            f"{html.escape(text_face(token.piece or token.text))}<br>"
            f'<span style="font-size: 75%">{token.id}</span></span>'
        )
        if to_bytes(token.piece).endswith(b"\n"):
            yield "<br>"
    if len(trace.tokens) > FRAGMENT_TOKENS:
        yield f"<p>… {len(trace.tokens) - FRAGMENT_TOKENS} more tokens …</p>"


def _table(section: Section) -> str:
    table = terminal_tables.printed(section, FRAGMENT_WIDTH, FRAGMENT_ROWS, colors=False)
    rows = printed(table.removeprefix(f"{section.title}\n"))
    return f"<details><summary>{html.escape(section.title)} ({len(section.rows)})</summary>{rows}</details>"
