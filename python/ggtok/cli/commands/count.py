"""The command `ggtok count`: the number of tokens of each text, as `wc` counts words."""

from __future__ import annotations

from typing import Any

import click

from ... import Tokenizer
from ..inputs import Rows, Source, takes_files, takes_rows
from ..inputs import sources as sources_of
from ..options import Model, as_json, takes_model, takes_special
from ..output import explained, is_of_output, print_json, to_stderr


@click.command(short_help="Count the tokens of texts.")
@takes_files
@takes_rows
@takes_model
@takes_special
@as_json
@click.pass_context
def command(
    context: click.Context,
    files: tuple[str, ...],
    text: tuple[str, ...],
    rows: Rows | None,
    model: Model,
    special: dict[str, Any],
    as_json: bool,
) -> None:
    """Count the tokens of files, or of standard input, as wc counts words.

    One text gives a number. Several give a line each, and a total; a folder or a file that cannot be read is named, the
    others are counted, and the exit code is 1. With --lines or --jsonl there is a number for each text, and no total.
    Files of any size are counted in little memory.
    """
    sources = sources_of(files, text, exist=len(files) + len(text) <= 1)
    tokenizer = model.open()
    total = failures = 0
    # No text has more tokens than bytes, except a few that are added.
    width = len(str(sum(source.size or 10**7 for source in sources)))
    for source in sources:
        try:
            if rows is not None:
                _count_rows(tokenizer, source, rows, special, as_json)
                continue
            encoder = tokenizer.encoder(**special)
            count = sum(map(encoder.push_count, source.parts(bar=True))) + encoder.flush_count()
        except (OSError, click.ClickException) as error:
            if len(sources) == 1 or is_of_output(error):
                raise
            to_stderr(f"error: {explained(error)}")
            failures += 1
            continue
        total += count
        if as_json:
            print_json(**source.json(), count=count)
        elif len(sources) == 1:
            print(count)
        else:
            print(f"{count:>{width}} {source.name}")
    if len(sources) > 1 and rows is None and not as_json:
        print(f"{total:>{width}} total")
    context.exit(int(failures > 0))


def _count_rows(tokenizer: Tokenizer, source: Source, rows: Rows, special: dict[str, Any], as_json: bool) -> None:
    for texts in rows.texts(source):
        counts = tokenizer.count_batch([text for _, text in texts], **special)
        for (number, _), count in zip(texts, counts, strict=True):
            if as_json:
                print_json(**source.json(number), count=count)
            else:
                print(count)
