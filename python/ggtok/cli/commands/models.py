"""The command `ggtok models`: the models that other tools keep on this machine, and their tokenizers."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import click

from ... import Tokenizer
from ...errors import GgtokError
from ...stores import find
from ...stores.model import Model
from ...tokenizer.findings import Finding, TokenizerWarning
from ...tokenizer.numbers import num_threads
from ..options import as_json
from ..output import explained, lossless, print_json, printable, to_stderr
from ..table import print_table


class Stores(click.Command):
    """A command whose help ends with the stores, which other distributions add to."""

    def format_epilog(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Stores"):
            formatter.write_dl([(each.plugin.name, each.title) for each in find.stores()])


def _completed(context: click.Context, parameter: click.Parameter, start: str) -> list[str]:
    return [each.plugin.name for each in find.stores() if each.plugin.name.startswith(start)]


@click.command(cls=Stores, short_help="List the models on this machine.")
@click.argument("stores", nargs=-1, metavar="[STORE]...", shell_complete=_completed)
@click.option("--paths", is_flag=True, help="Show the files instead of the tokenizers, without opening them.")
@as_json
def command(stores: tuple[str, ...], paths: bool, as_json: bool) -> None:
    """List the models that Ollama, llama.cpp, LM Studio and others keep on this machine: the name that -m takes, the
    tokenizer, the size of the vocabulary, what ggtok check finds, and what writes Ollama's prompts if it is
    not the file's chat template. STORE is the start of a name, such as ollama or hf.

    Only metadata is read. A model that does not open is listed with the reason.
    """
    chosen = find.stores(stores or None)
    if absent := {*stores}.difference(each.plugin.name for each in chosen):
        known = ", ".join(each.plugin.name for each in find.stores())
        raise click.ClickException(f"no such store {printable(min(absent))!r}: the stores are {known}")
    models = [model for each in chosen for model in each.models()]
    rows = map(_located, models) if paths else _opened(models)
    if as_json:
        for row in rows:
            print_json(**row)
    elif models:
        if paths:
            print_table(("name", "file"), list(map(_path_row, rows)))
        else:
            _print(list(rows))
    if not models:
        places = [str(place) for each in chosen for place in each.places()]
        to_stderr("there are no models in these folders:")
        print("\n".join(f"  {printable(place)}" for place in places), file=sys.stderr)


def _print(rows: list[dict[str, Any]]) -> None:
    """The table. It has a column for prompts if something else than the files' templates writes or changes any."""
    columns = {"name": "name", "kind": "kind", "pre": "pre", "size": "tokens"}
    if any("prompts" in row for row in rows):
        columns["prompts"] = "prompts"
    cells = [[*("" if row.get(key) is None else str(row[key]) for key in columns), _summary(row)] for row in rows]
    print_table([*columns.values(), "check"], cells, right=(3,))


def _opened(models: list[Model]) -> Iterator[dict[str, Any]]:
    """What there is to say of each model, in their order. Files are read and checked on several threads."""
    with warnings.catch_warnings(), ThreadPoolExecutor(num_threads(None)) as pool:
        warnings.simplefilter("ignore", TokenizerWarning)  # `check` finds the same
        try:
            yield from pool.map(_facts, models)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _located(model: Model) -> dict[str, Any]:
    found: dict[str, Any] = {"name": model.name, "file": lossless(os.fsencode(model.path)) if model.path else None}
    prompts = {"prompts": str(model.prompts)} if any(model.prompts) else {}
    return found | prompts | ({"error": model.problem} if model.problem else {})


def _facts(model: Model) -> dict[str, Any]:
    found = _located(model)
    if model.problem:
        return found
    try:
        tokenizer = Tokenizer.from_model(model.path)
        vocab = tokenizer.vocab
        facts = {"kind": vocab.kind, "model": vocab.model, "pre": vocab.pre, "size": len(vocab)}
        return found | facts | {"findings": [finding._asdict() for finding in tokenizer.check()]}
    except (GgtokError, OSError) as error:
        message = error.strerror or str(error) if isinstance(error, OSError) else explained(error)
        return found | {"error": message.removeprefix(f"{model.path}: ")}


def _path_row(row: dict[str, Any]) -> tuple[str, ...]:
    path = row["file"]
    return row["name"], f"error: {row['error']}" if path is None else path if isinstance(path, str) else repr(path)


def _summary(row: dict[str, Any]) -> str:
    """Why it does not open; or the most severe finding, and how many more there are, without notes."""
    if "error" in row:
        return f"error: {row['error']}"
    severe = [Finding(**finding) for finding in row["findings"] if finding["severity"] != "note"]
    if not severe:
        return "ok"
    more = f" and {len(severe) - 1} more" if len(severe) > 1 else ""
    return f"{severe[0].severity}: {severe[0].message} [{severe[0].code}]{more}"
