"""The command `ggtok count`: the number of tokens of each text, as `wc` counts words."""

from __future__ import annotations

from typing import Any

import click

from ..inputs import Source, takes_texts
from ..options import Model, as_json, takes_model, takes_special
from ..output import print_json


@click.command(short_help="Count the tokens of texts.")
@takes_texts
@takes_model
@takes_special
@as_json
def command(sources: list[Source], model: Model, special: dict[str, Any], as_json: bool) -> None:
    """Count the tokens of files, as wc counts words."""
    tokenizer = model.open()
    for source in sources:
        with source.open() as file:
            count = tokenizer.count_file(file, **special)
        if as_json:
            print_json(count=count)
        else:
            print(count)
