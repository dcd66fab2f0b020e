"""The command `ggtok check`: what is suspicious about the tokenizers of files."""

from __future__ import annotations

import os
import sys
import warnings
from collections import Counter

import click

from ..._findings import TokenizerWarning
from ..._releases import parse
from ..._tokenizer import Tokenizer
from ...errors import GgtokError
from ..files import takes_models
from ..options import Model, as_json
from ..output import lossless, print_json, printable, to_stderr
from ..table import print_listed, print_pairs

SEVERITIES = ("error", "warning", "note")
"""The worst first."""


@click.command(short_help="Find what is suspicious about files.")
@click.option(
    "--llama-cpp", metavar="RELEASE", help="Also what a release of llama.cpp, such as b9538, does differently."
)
@takes_models
@as_json
@click.pass_context
def command(context: click.Context, models: list[Model], as_json: bool, llama_cpp: str | None) -> None:
    """Find what is suspicious about the tokenizers of GGUF files: each finding with its severity, what to do, and its
    code.

    The exit code is 1 if there is an error among the findings: ids are wrong or calls fail. It is 0 with warnings
    (they probably are or do) and notes (it can surprise you) alone, and 2 if a file does not open; the others are
    checked all the same. The last line counts several files by the worst finding of each.
    """
    if llama_cpp is not None:
        parse(llama_cpp)  # also if no file opens
    code = 0
    worst: Counter[str] = Counter()
    for model in models:
        name = model.path or model.builtin or "bpe"
        file = lossless(os.fsencode(name))
        try:
            findings = opened(model).check(llama_cpp=llama_cpp)
        except (GgtokError, OSError) as error:
            message = str(error) if isinstance(error, GgtokError) else f"{name}: {error.strerror}"
            to_stderr(f"error: {message}")
            if as_json:
                print_json(file=file, error=message)
            code = 2
            worst["unread"] += 1
            continue
        if any(finding.severity == "error" for finding in findings):
            code = max(code, 1)
        if as_json:
            print_json(file=file, findings=[finding._asdict() for finding in findings])
            continue
        severities = {finding.severity for finding in findings}
        worst.update([next(severity for severity in SEVERITIES if severity in severities)] if findings else [])
        lines = [*map(str, findings)] or ["nothing suspicious"]
        if not sys.stdout.isatty():
            print("\n".join(f"{printable(name)}: {printable(line)}" for line in lines))
        elif findings:
            print_listed(name, lines)
        else:
            print_pairs([(name, lines[0])])
    if len(models) > 1 and not as_json:
        parts = [f"{worst[severity]} with {severity}s" for severity in SEVERITIES if worst[severity]]
        parts += [f"{worst['unread']} not read"] if worst["unread"] else []
        print(", ".join([f"{len(models)} files", *(parts or ["nothing suspicious"])]))
    context.exit(code)


def opened(model: Model) -> Tokenizer:
    """The tokenizer, without the warnings that repeat what its check finds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TokenizerWarning)
        return model.open()
