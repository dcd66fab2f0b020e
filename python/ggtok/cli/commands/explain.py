"""The command `ggtok explain`: every step from a text to its tokens, printed, walked through, compared or as a page."""

from __future__ import annotations

import json
import os
import re
import shutil
from dataclasses import dataclass
from typing import Any, Literal

import click

from ... import Tokenizer
from ...lab.diff import plain
from ...lab.explain import compare
from ...lab.explain.explain import Trace
from ...lab.explain.html import compare_page, trie_page
from ...lab.explain.step import walk
from ...lab.explain.terminal_tables import LEAST_WIDTH, printed
from ...lab.explain.trie import explain_trie, trie_sections
from ...lab.explain.utf8 import to_bytes
from ...tokenizer.files import write
from ..completion import MODEL
from ..inputs import Source, takes_files
from ..inputs import sources as sources_of
from ..options import DEFAULT, OUTPUT, Model, check_output, is_typed, takes_encoding
from ..output import print_json, wants_colors, with_options
from ..pair import MOST_LINES, print_pair, print_verdict
from ..table import print_line, short_names
from ..view import screen

MAX_ROWS = 40


@dataclass(frozen=True)
class Request:
    """What is shown, and how."""

    model: Model
    special: dict[str, Any]
    """Keywords of `encode`."""
    as_json: bool
    html: str | None
    tables: Literal["all"] | None

    def trace(self, tokenizer: Tokenizer, source: Source) -> Trace:
        return tokenizer.explain(source.read(), **self.special)


@click.command(short_help="Show every step from texts to their tokens.")
@takes_files
@click.option("--all", "tables", is_flag=True, help="Print every table.")
@click.option("--step", is_flag=True, help="Walk through the steps with keys; ? shows them.")
@click.option("--why", metavar="START:END", help="Say why these characters, counted from 0, are not one token.")
@click.option(
    "--compare", "pair", nargs=2, type=MODEL, help="Where two models cut a text differently; with --all, every step."
)
@click.option("--trie", is_flag=True, help="Build a double array of the arguments; look up these and each -p.")
@click.option("--html", type=OUTPUT, metavar="PATH", help="Write a page that needs no network.")
@takes_encoding
def command(
    files: tuple[str, ...],
    text: tuple[str, ...],
    tables: bool,
    step: bool,
    why: str | None,
    pair: tuple[str, str] | None,
    trie: bool,
    **shared: Any,
) -> None:
    """Show how texts became their tokens: the idea of the algorithm, each text cut into its tokens, and a line for each
    piece or word. --step and --html show every step, --all prints them as tables.
    """
    if sum((step, why is not None, pair is not None, trie)) > 1:
        raise click.ClickException("--step, --why, --compare and --trie: give only one")
    request = Request(tables="all" if tables else None, **shared)
    if tables and (step or why is not None or trie or request.as_json):
        raise click.ClickException("--all does not go with --step, --why, --trie or --json")
    if pair is not None or trie:
        mode = "--trie takes words" if trie else "--compare takes two models"
        if any(map(is_typed, ("model", "builtin", "override_kv"))):
            raise click.ClickException(f"{mode}, without -m, --builtin or --override-kv")
    check_output(request.html, [*(() if trie else files), *(pair or ()), request.model.path])
    if trie:
        return _trie(request, list(map(os.fsencode, files)), list(map(os.fsencode, text)))
    sources = sources_of(files, text)
    if len(sources) > 1 and (step or request.html is not None):
        raise click.ClickException("--step and --html are for one text")
    if pair is not None:
        return _compare(request, pair, sources)
    return _traces(request, sources, step, None if why is None else _span(why))


def _traces(request: Request, sources: list[Source], step: bool, span: tuple[int, int] | None) -> None:
    tokenizer = request.model.open(DEFAULT)
    for number, source in enumerate(sources):
        trace = request.trace(tokenizer, source)
        if number and not request.as_json:
            print()
        if request.html is not None:
            trace.to_html(request.html)
        if step:
            walk(trace, colors=wants_colors())
        elif span is not None:
            why = trace.why(*span)
            if request.as_json:
                reasons = [{"kind": each.kind, "message": each.message} for each in why.reasons]
                print_json(start=why.start, end=why.end, ids=[each.id for each in why.tokens], reasons=reasons)
            else:
                for line in str(why).split("\n"):
                    print_line(line)
        elif request.as_json:
            print(json.dumps(json.loads(trace.to_json()) | request.model.json))
        elif request.html is None:
            title, note, *lines = trace.to_text(request.tables, width=_width(), colors=wants_colors()).split("\n")
            print(title, with_options(note), *lines, sep="\n")
        if request.model.mark and not (step or request.as_json or request.html):
            print(request.model.mark.strip())


def _compare(request: Request, pair: tuple[str, str], sources: list[Source]) -> None:
    first, second = short_names(pair)
    tokenizers = [Tokenizer.from_model(name, offline=request.model.offline) for name in pair]
    for source in sources:
        a, b = (request.trace(tokenizer, source) for tokenizer in tokenizers)
        if request.html is not None:
            write(request.html, compare_page(a, b, (first, second)).encode())
        elif request.as_json:
            step = compare.first_difference(compare.pairs(a, b))
            difference = step and {"table": step.section.title, "row": step.row}
            cuts = plain(compare.cuts(a, b))
            print_json(a=json.loads(a.to_json()), b=json.loads(b.to_json()), cuts=cuts, difference=difference)
        else:
            found, out = compare.cuts(a, b), screen()
            print_verdict(out, found)
            most = None if request.tables else MOST_LINES
            print_pair(out, pair, to_bytes(a.text), compare.spans(a, b), found, most)
            print()
            if request.tables:
                print(compare.render(a, b, (first, second), width=_width(), max_rows=MAX_ROWS, colors=wants_colors()))
            else:
                print_line("--all prints every step, --html a page", out.palette.dim)


def _trie(request: Request, words: list[bytes], looked_up: list[bytes]) -> None:
    if not words:
        raise click.ClickException("--trie needs words as arguments")
    trie, made = explain_trie(words, dict.fromkeys([*words, *looked_up]))
    if request.html is not None:
        write(request.html, trie_page(trie.words, made, trie_sections(trie)).encode())
    elif request.as_json:
        print(json.dumps(json.loads(made)))
    else:
        print(*(printed(each, _width(), MAX_ROWS, wants_colors()) for each in trie_sections(trie)), sep="\n\n")


def _span(written: str) -> tuple[int, int]:
    match = re.fullmatch(r"(\d{1,9}):(\d{1,9})", written, re.ASCII)
    if match is None:
        raise click.ClickException(f"--why: {written!r} is not START:END, two numbers of characters")
    return int(match[1]), int(match[2])


def _width() -> int:
    return max(shutil.get_terminal_size().columns, LEAST_WIDTH)
