"""The command `ggtok diff`: how the tokenizers of two files differ."""

from __future__ import annotations

import os
from typing import Any

import click

from ... import Tokenizer
from ...lab.diff import counts, diff, lists, of_vocabularies, settings
from ..completion import MODEL
from ..inputs import Source
from ..options import as_json, takes_network, takes_special
from ..output import finite, lossless, print_json, printable
from ..pair import MOST_LINES, print_pair, print_verdict
from ..table import print_line, print_table, short_names
from ..view import screen

MOST_ROWS = 15
"""Rows of the table, so that everything fits into 34 lines."""


@click.command(short_help="Show how two models' tokenizers differ.")
@click.argument("a", type=MODEL)
@click.argument("b", type=MODEL)
@click.argument("file", required=False, type=click.Path())
@click.option("-p", "--text", metavar="TEXT", help="The text.")
@click.option(
    "--all", "shows_all", is_flag=True, help="List every token and merge that differs, and show the whole text."
)
@takes_special
@takes_network
@as_json
def command(
    a: str,
    b: str,
    file: str | None,
    text: str | None,
    shows_all: bool,
    special: dict[str, Any],
    offline: bool | None,
    as_json: bool,
) -> int:
    """Show on one screen how the tokenizers of two models differ: in a sentence, and in a table of counts, settings and
    special tokens. With a text, also where they cut it differently. --all lists every token and merge.

    The exit code is 0 if nothing differs, 1 if something does, and 2 if a file cannot be read.
    """
    if file is not None and text is not None:
        raise click.ClickException("one text is compared: give FILE or -p, not both")
    first, second = (Tokenizer.from_model(name, offline=offline) for name in (a, b))
    compared = None
    if file is not None or text is not None:
        compared = Source(file, b"" if text is None else os.fsencode(text)).read()
    found = diff(first, second, compared, **special)
    if as_json:
        print_json(a=lossless(os.fsencode(a)), b=lossless(os.fsencode(b)), **finite(found.to_dict()))
    else:
        out = screen()
        if found and found.cuts is not None:
            print_verdict(out, found.cuts)
        print_line(of_vocabularies(found), "" if found and found.cuts else out.palette.strong)
        if compared and found and found.cuts is not None:
            spans = [side.encode_with_offsets(compared, unit="byte", **special).tolist()[1] for side in (first, second)]
            print_pair(out, (a, b), compared, (spans[0], spans[1]), found.cuts, None if shows_all else MOST_LINES)
        if shows_all:
            print()
            for line in lists(found):
                print_line(printable(line))
        elif found:
            rows = [*counts(found), *settings(found)]
            print()
            print_table(("", *short_names((a, b))), rows[:MOST_ROWS])
            more = f"{len(rows) - MOST_ROWS} more settings, " * (len(rows) > MOST_ROWS)
            print_line(f"--all prints {more}all tokens and merges that differ", out.palette.dim)
    return int(bool(found))
