"""The command `ggtok diff`: how the tokenizers of two files differ."""

from __future__ import annotations

import os
from typing import Any

import click

from ..._diff import diff
from ..._tokenizer import Tokenizer
from ..completion import MODEL
from ..inputs import Source
from ..options import as_json, takes_network, takes_special
from ..output import finite, lossless, print_json, printable


@click.command(short_help="Show how two models' tokenizers differ.")
@click.argument("a", type=MODEL)
@click.argument("b", type=MODEL)
@click.argument("file", required=False, type=click.Path())
@click.option("-p", "--text", metavar="TEXT", help="A text itself.")
@takes_special
@takes_network
@as_json
@click.pass_context
def command(
    context: click.Context,
    a: str,
    b: str,
    file: str | None,
    text: str | None,
    special: dict[str, Any],
    offline: bool | None,
    as_json: bool,
) -> None:
    """Show how the tokenizers of two models differ: settings, special tokens, tokens, merges. With a text, also
    where its ids first differ.

    The exit code is 0 if there is no difference, 1 if there is one, and 2 if a file cannot be read.
    """
    if file is not None and text is not None:
        raise click.ClickException("one text is compared: give FILE or -p, not both")
    first, second = (Tokenizer.from_model(name, offline=offline) for name in (a, b))
    source = Source(file, b"" if text is None else os.fsencode(text))
    found = diff(first, second, None if file is None and text is None else source.read(), **special)
    if as_json:
        print_json(a=lossless(os.fsencode(a)), b=lossless(os.fsencode(b)), **finite(found.to_dict()))
    else:
        print("\n".join(map(printable, str(found).splitlines())))
    context.exit(int(bool(found)))
