"""The command `ggtok split`: texts in chunks that fit a budget of tokens."""

from __future__ import annotations

import sys
from typing import Any

import click

from ..inputs import Rows, Source, characters, naming, takes_rows, takes_texts
from ..options import Model, takes_encoding
from ..output import print_json, print_text

BOUNDARIES = ("paragraph", "line", "sentence", "word", "character", "markdown", "python")


@click.command(short_help="Cut texts into chunks that fit a budget of tokens.")
@takes_texts
@takes_rows
@click.option(
    "-n", "--max-tokens", type=click.IntRange(min=1), required=True, metavar="N", help="The most tokens of a chunk."
)
@click.option(
    "--overlap",
    type=click.IntRange(min=0),
    default=0,
    metavar="N",
    help="The most tokens that a chunk repeats (default: 0).",
)
@click.option(
    "--boundary",
    "boundaries",
    type=click.Choice(BOUNDARIES),
    multiple=True,
    metavar="NAME",
    help=f"Where to cut; repeatable: {', '.join(BOUNDARIES)}. Default: paragraph, line, sentence and word.",
)
@click.option("--prefix", metavar="TEXT", help="What comes before each chunk: it is counted, but not written.")
@click.option("--strip", is_flag=True, help="Remove white space at the ends of chunks.")
@click.option("-0", "--null", is_flag=True, help="Write a null byte after each chunk, for xargs -0.")
@takes_encoding
def command(
    sources: list[Source],
    rows: Rows | None,
    max_tokens: int,
    boundaries: tuple[str, ...],
    null: bool,
    model: Model,
    special: dict[str, Any],
    as_json: bool,
    **settings: Any,
) -> None:
    """Cut files, or standard input, into chunks that fit a budget of tokens.

    A chunk ends at the coarsest boundary that fills at least half of the budget: a paragraph, line, sentence or word.
    A line before each chunk gives its number of tokens and its range of characters. --json writes objects with "text",
    "start", "end" and "count", --null only the chunks.
    """
    if as_json and null:
        raise click.ClickException("--json and --null: give only one")
    tokenizer = model.open()
    settings |= special | ({"boundaries": boundaries} if boundaries else {})
    for source in sources:
        for line, text in source.texts(rows):
            with naming(source.at(line)):
                chunks = tokenizer.split(characters(text, source.at(line)), max_tokens, **settings)
            for chunk in chunks:
                if as_json:
                    print_json(**source.json(line), **chunk._asdict())
                elif null:
                    sys.stdout.flush()
                    sys.stdout.buffer.write(chunk.text.encode() + b"\0")
                else:
                    of = f"{source.at(line)}: " if len(sources) > 1 or rows else ""
                    print(f"--- {of}{chunk.count} tokens, characters {chunk.start} to {chunk.end}")
                    print_text(chunk.text, "" if chunk.text.endswith("\n") else "\n")
