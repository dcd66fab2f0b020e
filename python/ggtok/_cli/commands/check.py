"""The command `ggtok check`: what is suspicious about the tokenizers of files."""

from __future__ import annotations

import os
import sys
import warnings

import click

from ..._findings import TokenizerWarning
from ..._tokenizer import Tokenizer
from ...errors import GgtokError
from ..files import takes_models
from ..options import Model, as_json
from ..output import lossless, print_json, printable, to_stderr
from ..table import print_pairs


@click.command(short_help="Find what is suspicious about files.")
@takes_models
@as_json
@click.pass_context
def command(context: click.Context, models: list[Model], as_json: bool) -> None:
    """Find what is suspicious about the tokenizers of GGUF files: each finding with its severity, what to do, and its
    code.

    The exit code is 1 if there is an error among the findings: ids are wrong or calls fail. It is 0 with warnings
    (they probably are or do) and notes (it can surprise you) alone, and 2 if a file does not open; the others are
    checked all the same.
    """
    code = 0
    for model in models:
        name = model.path or model.builtin or "bpe"
        file = lossless(os.fsencode(name))
        try:
            findings = opened(model).check()
        except (GgtokError, OSError) as error:
            message = str(error) if isinstance(error, GgtokError) else f"{name}: {error.strerror}"
            to_stderr(f"error: {message}")
            if as_json:
                print_json(file=file, error=message)
            code = 2
            continue
        if any(finding.severity == "error" for finding in findings):
            code = max(code, 1)
        if as_json:
            print_json(file=file, findings=[finding._asdict() for finding in findings])
            continue
        lines = [*map(str, findings)] or ["nothing suspicious"]
        if sys.stdout.isatty():
            print_pairs([(name, line) for line in lines])
        else:
            print("\n".join(f"{printable(name)}: {printable(line)}" for line in lines))
    context.exit(code)


def opened(model: Model) -> Tokenizer:
    """The tokenizer, without the warnings that repeat what its check finds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TokenizerWarning)
        return model.open()
