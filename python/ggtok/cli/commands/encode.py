"""The command `ggtok encode`: texts to token ids, or to tokens as people see them on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import Any, Literal

import click

from ... import Encoding, Tokenizer
from ..._ggtok import json_items
from ..inputs import Rows, Source, Text, takes_rows, takes_texts
from ..options import DEFAULT, Model, takes_encoding
from ..output import Items, painted, print_json

SLICE = 4096
"""How many items of a list become JSON at once."""


@click.command(short_help="Turn texts into token ids.")
@takes_texts
@takes_rows
@takes_encoding
@click.option(
    "--view/--ids", default=None, help="Show the tokens, or write bare ids. Default: show them on a terminal."
)
def command(
    sources: list[Source], rows: Rows | None, model: Model, special: dict[str, Any], as_json: bool, view: bool | None
) -> None:
    """Turn files, or standard input, into token ids, a line for each text.

    On a terminal, the text is shown cut into its tokens, with the ids below. --json writes an object for each text,
    with ids, pieces and offsets in bytes; ggtok decode reads it. Files of any size are encoded in little memory; --json
    needs about ten times the size of a file.
    """
    tokenizer = model.open(DEFAULT)
    if as_json:
        for source in sources:
            for line, text in source.texts(rows):
                columns = _columns(tokenizer, tokenizer.encode_with_offsets(text, unit="byte", **special))
                print_json(**source.json(line), **columns, **model.json)
    elif sys.stdout.isatty() if view is None else view:
        _show(tokenizer, sources, rows, special, model.mark)
    elif rows is not None:
        for source in sources:
            for texts in rows.texts(source):
                for ids in tokenizer.encode_batch([text for _, text in texts], **special).tolist():
                    print(" ".join(map(str, ids)) + model.mark)
    else:
        for source in sources:
            separator = ""
            for ids in _ids(tokenizer, source.parts(), special):
                sys.stdout.write(separator + str(ids)[1:-1].replace(",", ""))  # twice as fast as join
                separator = " "
            print(model.mark)


def _columns(tokenizer: Tokenizer, encoding: Encoding) -> dict[str, Items]:
    """The ids, pieces and offsets of a text as JSON, in slices: as Python objects they take forty times the memory."""

    def items(column: Literal["ids", "pieces", "offsets"]) -> Items:
        starts = range(0, len(encoding), SLICE)
        return Items(json_items(tokenizer, encoding, column, at, at + SLICE) for at in starts)

    return {"ids": items("ids"), "pieces": items("pieces"), "offsets": items("offsets")}


def _ids(tokenizer: Tokenizer, parts: Iterable[Text], special: dict[str, Any]) -> Iterator[list[int]]:
    """The ids of a text that arrives in parts; no list is empty."""
    encoder = tokenizer.encoder(**special)
    for part in parts:
        if ids := encoder.push(part):
            yield ids
    if ids := encoder.flush():
        yield ids


def _show(tokenizer: Tokenizer, sources: list[Source], rows: Rows | None, special: dict[str, Any], mark: str) -> None:
    from ..view import View, screen

    for source in sources:
        if len(sources) > 1:
            print(painted(f"{source.name}:", screen().palette.strong))
        view = View(tokenizer, screen())
        if rows is None:
            for ids in _ids(tokenizer, source.parts(), special):
                view.add(ids)
            view.end(total=True, mark=mark)
        else:
            for _, text in source.texts(rows):
                view.add(tokenizer.encode(text, **special))
                view.end()
