"""The command `ggtok count`: the number of tokens of each text, as `wc` counts words."""

from __future__ import annotations

from typing import Any

import click

from ..inputs import Rows, Source, takes_rows, takes_texts
from ..options import Model, as_json, takes_model, takes_special
from ..output import print_json


@click.command(short_help="Count the tokens of texts.")
@takes_texts
@takes_rows
@takes_model
@takes_special
@as_json
def command(sources: list[Source], rows: Rows | None, model: Model, special: dict[str, Any], as_json: bool) -> None:
    """Count the tokens of files, or of standard input, as wc counts words.

    One text gives a number. Several give a line each, and a total. With --lines or --jsonl there is a number for each
    text, and no total. Files of any size are counted in little memory.
    """
    tokenizer = model.open()
    if rows is not None:
        for source in sources:
            for texts in rows.texts(source):
                counts = tokenizer.count_batch([text for _, text in texts], **special)
                for (number, _), count in zip(texts, counts, strict=True):
                    if as_json:
                        print_json(**source.json(number), count=count)
                    else:
                        print(count)
        return
    total = 0
    # No text has more tokens than bytes, except a few that are added.
    width = len(str(sum(source.size or 10**7 for source in sources)))
    for source in sources:
        encoder = tokenizer.encoder(**special)
        count = sum(map(encoder.push_count, source.parts(bar=True))) + encoder.flush_count()
        total += count
        if as_json:
            print_json(**source.json(), count=count)
        elif len(sources) == 1:
            print(count)
        else:
            print(f"{count:>{width}} {source.name}")
    if len(sources) > 1 and not as_json:
        print(f"{total:>{width}} total")
