"""The command `ggtok prune`: a model and texts in, a GGUF file with the tokens that the texts need out."""

from __future__ import annotations

import json

import click

from ...lab.prune import prune
from ...tokenizer.files import write
from ...tokenizer.seam import metadata_of, path_of
from ..inputs import text_path
from ..options import OUTPUT, Model, check_output, takes_model
from ..output import printable


@click.command(short_help="Drop the tokens that texts do not need.")
@click.argument("files", nargs=-1, required=True, type=click.Path(), metavar="FILE...")
@takes_model
@click.option("-o", "--output", required=True, type=OUTPUT, metavar="PATH", help="The GGUF file to write.")
@click.option("--ids", "ids_to", type=OUTPUT, metavar="PATH", help="Write the new id of each old one: a list in JSON.")
@click.option("--parse-special", is_flag=True, help="Read control tokens written in the texts as tokens.")
def command(files: tuple[str, ...], model: Model, output: str, ids_to: str | None, parse_special: bool) -> None:
    """Write a model's vocabulary without the tokens that the texts do not need: the texts are encoded to the same
    tokens as before, under new ids. The new file has no weights.

    In the list of --ids, a token that was dropped has the id -1.
    """
    base, paths = model.open(), list(map(text_path, files))
    inputs = [*paths, *filter(None, [path_of(base)])]
    check_output(output, inputs)
    check_output(ids_to, [*inputs, output])
    tokenizer, ids = prune(base, files=paths, parse_special=parse_special)
    tokenizer.to_gguf(output)
    if ids_to is not None:
        write(ids_to, json.dumps(ids.tolist()).encode())
    rows = f"{len(tokenizer.vocab):,} of {len(ids):,}"
    print(f"{printable(output)}: {rows} tokens, {metadata_of(tokenizer).size:,} of {metadata_of(base).size:,} bytes")
    print(f"no weights are written: {rows} rows of embeddings stay, embeddings[ids >= 0] with the list of --ids")
