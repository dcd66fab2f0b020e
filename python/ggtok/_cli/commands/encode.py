"""The command `ggtok encode`: texts to token ids."""

from __future__ import annotations

from typing import Any

import click

from ..inputs import Source, takes_texts
from ..options import Model, as_json, takes_model, takes_special
from ..output import lossless, print_json


@click.command(short_help="Turn texts into token ids.")
@takes_texts
@takes_model
@takes_special
@as_json
def command(sources: list[Source], model: Model, special: dict[str, Any], as_json: bool) -> None:
    """Turn texts into token ids."""
    tokenizer = model.open()
    for source in sources:
        ids = tokenizer.encode(source.read(), **special)
        if as_json:
            print_json(ids=ids, pieces=[lossless(tokenizer.piece(id)) for id in ids])
        else:
            print(*ids)
