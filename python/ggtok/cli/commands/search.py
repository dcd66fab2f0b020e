"""The command `ggtok search`: the tokens of a vocabulary whose pieces match."""

from __future__ import annotations

import os
import re

import click

from ... import Tokenizer
from ..._ggtok import texts
from ...lab.diff import quoted
from ...tokenizer.vocab import TokenAttribute
from ..options import Model, as_json, takes_model
from ..output import finite, lossless, print_json
from ..table import print_table


@click.command(short_help="Find tokens by what they stand for.")
@click.argument("query")
@click.option("--prefix", is_flag=True, help="Pieces that start with QUERY.")
@click.option("-e", "--regex", is_flag=True, help="QUERY is a Python regular expression.")
@takes_model
@as_json
def command(query: str, prefix: bool, regex: bool, model: Model, as_json: bool) -> int:
    """Find the tokens whose pieces contain QUERY. A piece is what a token stands for in a text, so most words begin
    with a space: ggtok search " the". If none matches, the file's own spelling is searched: ggtok search Ġthe.

    The exit code is 1 if no token matches.
    """
    if prefix and regex:
        raise click.ClickException("--prefix is for a text; begin a regular expression with ^")
    try:
        pattern = re.compile(query) if regex else os.fsencode(query)
    except re.error as error:
        raise click.ClickException(f"{query!r} is not a regular expression: {error}") from None
    tokenizer = model.open()
    ids = tokenizer.vocab.search(pattern, match="prefix" if prefix else "contains")
    if not ids and not regex:
        ids = _spelled(tokenizer, os.fsencode(query), prefix)
    tokens = [(tokenizer.vocab[id], tokenizer.piece(id)) for id in ids]
    if as_json:
        for token, piece in tokens:
            text, names = lossless(token.text.encode("utf-8", "surrogateescape")), _names(token.attributes)
            print_json(id=token.id, piece=lossless(piece), text=text, score=finite(token.score), attributes=names)
    elif tokens:
        rows = [
            (str(token.id), quoted(piece), f"{token.score:g}", ", ".join(_names(token.attributes)))
            for token, piece in tokens
        ]
        print_table(("id", "piece", "score", "attributes"), rows, right=(0, 2))
    return int(not tokens)


def _spelled(tokenizer: Tokenizer, query: bytes, prefix: bool) -> list[int]:
    """The tokens that the file spells so, as `Ġthe` or `▁the`."""
    rows = enumerate(texts(tokenizer))
    return [id for id, text in rows if (text.startswith(query) if prefix else query in text)]


def _names(attributes: TokenAttribute) -> list[str]:
    return [str(each.name).lower() for each in attributes]
