"""The command `ggtok evaluate`: how well vocabularies fit texts."""

from __future__ import annotations

import os

import click

from ... import Tokenizer
from ...lab.evaluate import WordScore, evaluate, rows_of
from ...tokenizer.base import BUILTIN
from ..completion import MODEL
from ..inputs import text_path
from ..options import OUTPUT, Model, as_json, check_output, repeatable, takes_network
from ..output import print_json, printable
from ..progress import progress
from ..table import print_table, short_names


@click.command(short_help="Measure how well vocabularies fit texts.")
@click.argument("files", nargs=-1, required=True, metavar="[NAME=]FILE...")
@click.option("-m", "--model", "models", multiple=True, type=MODEL, help="A model; repeatable.  [env: GGTOK_MODEL]")
@repeatable("--builtin", type=click.Choice(BUILTIN), help="An embedded vocabulary")
@click.option("--reference", metavar="NAME", help="The text that the others translate.")
@click.option("--svg", type=OUTPUT, metavar="PATH", help="Write a chart of the bytes per token.")
@click.option("--worst", type=int, default=0, metavar="N", help="List the N words that cost the most tokens.")
@click.option("--extend", "more", type=int, metavar="N", help="Add each with N more tokens, trained on these texts.")
@takes_network
@as_json
def command(
    files: tuple[str, ...],
    models: tuple[str, ...],
    builtin: tuple[str, ...],
    reference: str | None,
    svg: str | None,
    worst: int,
    more: int | None,
    offline: bool | None,
    as_json: bool,
) -> None:
    """Measure how well vocabularies fit texts, side by side: bytes per token, tokens per word, the share of unknown
    tokens, and how much of the vocabulary is used. --worst lists words by the tokens that they take beyond one each
    time, and how many tokens are in no text. --extend shows what `ggtok extend` would save. Texts and models are shown
    by the names of their files, or as much of their paths as distinguishes them; NAME= gives a text another name.
    """
    texts = {}
    unnamed = [argument for argument in files if "=" not in argument]
    shown = dict(zip(unnamed, short_names(unnamed), strict=True))
    for argument in files:
        name, equals, path = argument.partition("=")
        name = name if equals else shown[argument]
        if name in texts:
            raise click.ClickException(f"two texts are called {name!r}: give names, NAME=FILE")
        texts[name] = text_path(path if equals else argument)
    check_output(svg, [*texts.values(), *models])
    opened = {name: Tokenizer.from_model(name, offline=offline) for name in models}
    if not opened and not builtin:
        model = Model(os.environ.get("GGTOK_MODEL") or None, None, {}, offline)
        opened = {model.path or "bpe": model.open()}
    named = {}
    bases = [*opened.values(), *map(Tokenizer.builtin, builtin)]
    for name, base in zip(short_names([*opened, *builtin]), bases, strict=True):
        named[name] = base
        if more is not None:
            from ... import extend

            named[f"{name} +{more:,}"] = extend(base, files=texts.values(), num_tokens=more)
    with progress(sum(path.stat().st_size for path in texts.values()) or None, "reading") as advance:
        evaluation = evaluate(
            named, files=texts, reference=shown.get(reference or "", reference), progress=advance, worst=worst
        )
    if svg is not None:
        evaluation.to_svg(svg)
    if as_json:
        for row in evaluation.to_dicts():
            print_json(**row)
        for word in evaluation.worst:
            print_json(**word._asdict())
    else:
        head, *rows = rows_of(evaluation)
        print_table(head, rows, right=range(2, len(head)))
    if worst and not as_json:
        print()
        print_table([*WordScore._fields], [[*map(str, row)] for row in evaluation.worst], right=(2, 3))
        for name, ids in evaluation.unused.items():
            print(f"{printable(name)}: {len(ids):,} tokens are in no text")
