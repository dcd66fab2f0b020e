"""The command `ggtok train`: text files in, a GGUF file with a new vocabulary out, with progress on a terminal."""

from __future__ import annotations

import json
import os
import shlex
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

import click
from click.shell_completion import CompletionItem

from ... import train
from ..._ggtok import pretokenizers
from ...lab.train import DEFAULTS
from ..inputs import text_path
from ..options import OUTPUT, check_output, name_and_value, repeatable
from ..output import printable
from ..progress import progress


def _pres(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
    return [CompletionItem(name) for name in pretokenizers() if name.startswith(incomplete)]


@click.command(short_help="Train a vocabulary and write it as a GGUF file.")
@click.argument("files", nargs=-1, required=True, type=click.Path(), metavar="FILE...")
@click.option("-o", "--output", required=True, type=OUTPUT, metavar="PATH", help="The GGUF file to write.")
@click.option("--force", is_flag=True, help="Replace PATH even if it is a GGUF file with tensors.")
@click.option("--field", metavar="NAME", help="The field with the text.  [default: text, of jsonl, parquet and arrow]")
@click.option("--tsv", is_flag=True, help="Each line of FILE is a text, a tab, and how often the text counts.")
@click.option("--kind", type=click.Choice([*DEFAULTS]), default="bpe", show_default=True, help="The algorithm.")
@click.option("--vocab-size", type=int, required=True, metavar="N", help="The number of tokens, special ones included.")
@click.option("--pre", metavar="NAME", shell_complete=_pres, help="The pre-tokenizer of bpe.  [default: qwen2]")
@repeatable("--special", metavar="ROLE=TEXT", help="A special token, such as eos=</s>; replaces all default ones")
@repeatable("--control", "control_tokens", metavar="TEXT", help="A control token")
@repeatable("--user-defined", "user_defined_tokens", metavar="TEXT", help="A token always read in text")
@click.option("--name", metavar="NAME", help="general.name of the file.")
@click.option("--threads", type=int, metavar="N", help="Threads for counting.  [default: all cores]")
@click.option("--memory", type=int, metavar="MIB", help="The most MiB of counted words in memory.")
@repeatable(
    *("--set", "assignments"),
    metavar="NAME=VALUE",
    help="Another setting of the kind, as docs/train.md lists them: --set min_frequency=3",
)
def command(
    files: tuple[str, ...],
    output: str,
    force: bool,
    tsv: bool,
    kind: str,
    pre: str | None,
    special: tuple[str, ...],
    memory: int | None,
    assignments: tuple[str, ...],
    **others: Any,
) -> None:
    """Train a vocabulary on text files in UTF-8 and write it as a GGUF file. JSON Lines, Parquet and Arrow have a text
    per row; other tables too, with --field. The files are read once, in parts, so they may be larger than memory.
    Ctrl-C leaves PATH as it was."""
    paths = list(map(text_path, files))
    check_output(output, paths, force)
    size = 0 if tsv else sum(path.stat().st_size for path in paths)
    settings = dict(_setting(kind, *name_and_value("--set", each)) for each in assignments)
    if pre is not None:
        settings["pre"] = pre
    with progress(size or None, "counting") as bar:
        tokenizer = train(
            _counted(paths) if tsv else None,
            files=None if tsv else paths,
            kind=cast(Any, kind),
            special=dict(name_and_value("--special", each) for each in special) or None,
            memory=None if memory is None else memory << 20,
            progress=bar.phase,
            **others,
            **settings,
        )
    tokenizer.to_gguf(output, overwrite=force)
    pre = f" with the pre-tokenizer {tokenizer.vocab.pre}" if tokenizer.vocab.pre else ""
    print(f"{printable(output)}: {kind}{pre}, {len(tokenizer.vocab):,} tokens, {os.path.getsize(output):,} bytes")
    print(f"next: {printable(shlex.join(['ggtok', 'evaluate', *files, '-m', output]))}")


def _counted(paths: Iterable[Path]) -> dict[str, int]:
    """The texts of files of sentencepiece's format tsv, and how often each counts in all."""
    counts = Counter[str]()
    for path in paths:
        with open(path, "rb") as file:
            for number, line in enumerate(file, 1):
                try:
                    text, count = line.decode().rstrip("\r\n").rsplit("\t", 1)
                    counts[text] += int(count)
                except ValueError:
                    where = f"{printable(str(path))}, line {number}"
                    raise click.ClickException(f"{where}: expected a text in UTF-8, a tab and a count") from None
    return counts


def _setting(kind: str, name: str, text: str) -> tuple[str, Any]:
    """A setting and its value: a number, true, false or null, or else a text, as its default is."""
    defaults = DEFAULTS[kind]
    if name not in defaults:
        known = ", ".join(sorted(defaults))
        raise click.ClickException(f"--set: {name!r} is not a setting of {kind}, which has {known}")
    if isinstance(defaults[name], str):
        return name, text
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = text
    if defaults[name] is not None and not isinstance(value, type(defaults[name])):
        raise click.ClickException(f"--set: {name} is {type(defaults[name]).__name__}: {text!r} is not")
    return name, value
