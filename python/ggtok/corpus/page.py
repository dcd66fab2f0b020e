"""What a corpus holds, as a page of HTML that needs nothing else, and as a fragment for notebooks."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from ..tokenizer.notebook import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .info import Info

NUM_SOURCES = 50
"""Sources that a page shows, the largest first; the last row adds up the others."""

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


def summary(info: Info) -> list[tuple[str, str]]:
    """The sums of a corpus, by name."""
    tokenizer, packing = info.tokenizer, info.packing
    added = [name for name, is_added in (("BOS", tokenizer["adds_bos"]), ("EOS", tokenizer["adds_eos"])) if is_added]
    name = tokenizer["name"] or "without a name"
    rows = [
        ("format", info.format),
        ("tokenizer", f"{name} ({tokenizer['kind']}, {tokenizer['vocab_size']:,} tokens)"),
        ("added", " and ".join(added) or "neither BOS nor EOS"),
        ("shards", f"{info.shards:,}" + ("" if info.is_complete else ", not complete")),
        ("documents", f"{info.documents:,}"),
        ("tokens", f"{info.tokens:,}"),
        ("bytes of text", f"{info.text_bytes:,}"),
        ("bytes per token", _ratio(info.text_bytes, info.tokens)),
        ("tokens per document", _ratio(info.tokens, info.documents)),
    ]
    rows += [
        (label, f"{number:,}") for label, number in (("rejected rows", info.rejected), ("cut", info.cut)) if number
    ]
    rows += [("dropped as too long", f"{info.dropped:,}")] * (info.dropped > 0)
    if packing:
        size = packing["num_tokens"] + packing["num_padding"]
        rows.append(("sequences", f"{packing['num_sequences']:,} of {info.settings['writing']['pack']:,} tokens"))
        rows.append(("padding", f"{packing['num_padding']:,} tokens, {packing['num_padding'] / max(size, 1):.2%}"))
        rows.append(("cut into sequences", f"{packing['num_cut']:,} documents"))
    return rows


def _ratio(a: int, b: int) -> str:
    return f"{a / b:,.2f}" if b else "-"


def length_rows(info: Info) -> list[tuple[str, int]]:
    """The histogram of lengths: ranges of tokens, and documents."""
    return [
        (f"{each.least:,}" if each.least == each.most else f"{each.least:,} to {each.most:,}", each.documents)
        for each in info.lengths
    ]


def source_rows(info: Info, most: int) -> list[tuple[str, str, str, str]]:
    """The sources with most text: name, documents, tokens, and bytes per token."""
    ordered = sorted(info.sources, key=lambda source: -source.text_bytes)
    shown, others = ordered[:most], ordered[most:]
    rows = [(each.name, each.documents, each.tokens, each.text_bytes) for each in shown]
    if others:
        sums = (sum(each.documents for each in others), sum(each.tokens for each in others))
        rows.append((f"and {len(others):,} more", *sums, sum(each.text_bytes for each in others)))
    return [(name, f"{documents:,}", f"{tokens:,}", _ratio(size, tokens)) for name, documents, tokens, size in rows]


SOURCE_HEAD = ("source", "documents", "tokens", "bytes per token")


def page(info: Info) -> str:
    """The page."""
    return "".join(_page(info))


def _page(info: Info) -> Iterator[str]:
    title = escape(f"Corpus {info.folder.name or info.folder}")
    yield '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f"<title>{title}</title><style>{STYLE}</style></head><body><h1>{title}</h1><dl>"
    for name, value in summary(info):
        yield f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>"
    yield '</dl><h2>Lengths of documents</h2><div class="table"><table>'
    yield "<tr><th>tokens</th><th>documents</th><th></th></tr>"
    rows = length_rows(info)
    most = max((documents for _, documents in rows), default=1)
    for tokens, documents in rows:
        bar = f'<div style="width: {100 * documents / most:.1f}%"></div>'
        yield f'<tr><td>{tokens}</td><td>{documents:,}</td><td class="bar">{bar}</td></tr>'
    yield '</table></div><h2>Sources</h2><div class="table"><table>'
    yield "<tr>" + "".join(f"<th>{name}</th>" for name in SOURCE_HEAD) + "</tr>"
    for row in source_rows(info, NUM_SOURCES):
        name, *numbers = map(escape, row)
        yield f'<tr><td class="name">{name}</td>' + "".join(f"<td>{number}</td>" for number in numbers) + "</tr>"
    yield "</table></div></body></html>\n"


def fragment(info: Info) -> str:
    """The sums and the largest sources, for notebooks."""
    return table(("corpus", ""), summary(info), texts=2) + table(SOURCE_HEAD, source_rows(info, 10), texts=1)
