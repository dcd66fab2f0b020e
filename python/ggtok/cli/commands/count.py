"""The command `ggtok count`: the number of tokens of each text, as `wc` counts words."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import click

from ... import Tokenizer
from ...errors import GgtokError
from ..folders import Node, files_below, print_tree
from ..inputs import Rows, Source, takes_files, takes_rows
from ..inputs import sources as sources_of
from ..options import Model, takes_encoding
from ..output import explained, is_of_output, print_json, to_stderr
from ..progress import progress

LOOKED_AT = 8192
"""Bytes at the start of a file in which a null byte makes it binary, as for git."""


@click.command(short_help="Count the tokens of texts.")
@takes_files
@click.option("-r", "--recursive", is_flag=True, help="Count the files below folders, and show them as a tree.")
@click.option("--top", type=click.IntRange(min=1), metavar="N", help="Show only the N files with the most tokens.")
@click.option(
    "--files0-from", "names", metavar="FILE", help="Count the files that FILE names, separated by null bytes."
)
@click.option("--field", metavar="NAME", help="Count only this field of JSON Lines, CSV and other tables.")
@takes_rows
@takes_encoding
def command(
    files: tuple[str, ...],
    text: tuple[str, ...],
    recursive: bool,
    top: int | None,
    names: str | None,
    field: str | None,
    rows: Rows | None,
    model: Model,
    special: dict[str, Any],
    as_json: bool,
) -> int:
    """Count the tokens of files, or of standard input, as wc counts words.

    One text gives a number. Several give a line each, and a total. What cannot be read is named, everything else is
    counted, and the exit code is 1. With --lines or --jsonl there is a number for each text, and no total. Files of any
    size are counted in little memory. Compressed files are unpacked. Of Parquet and Arrow, the field text is counted.

    With -r, a tree shows the tokens of each file and folder. What .gitignore excludes is left out, and binary files are
    named, but not counted. --files0-from reads the names that find -print0 or git ls-files -z writes; - is standard
    input.
    """
    if rows is not None and (recursive or top):
        raise click.ClickException("--lines and --jsonl count texts: give them without -r and --top")
    if names is not None:
        read = Source(names).read().split(b"\0")
        files += tuple(os.fsdecode(name) for name in read if name)
        if not files:
            return 0
    if recursive and not (files or text):
        files = (".",)
    if recursive:
        files = tuple(found for path in files for found in (files_below(path) if os.path.isdir(path) else [path]))
    is_one = len(files) + len(text) <= 1 and not recursive
    # A folder may have no files.
    sources = [] if recursive and not (files or text) else sources_of(files, text, exist=is_one)
    tokenizer = model.open()
    tree, failures = Node(), 0
    counts: list[tuple[int, str]] = []
    # No text has more tokens than bytes, except a few that are added.
    width = len(str(sum(source.size or 10**7 for source in sources)))
    with progress(sum(source.size or 0 for source in sources) or None, "counting") as bar:
        for source in sources:
            try:
                if rows is not None:
                    _count_rows(tokenizer, source, rows, special, as_json)
                    continue
                count = None if recursive and _is_binary(source) else _count(tokenizer, source, special, field, bar)
            except (OSError, GgtokError, click.ClickException) as error:
                if is_one or is_of_output(error):
                    raise
                bar.close()
                to_stderr(f"error: {explained(error)}")
                failures += 1
                continue
            bar.close()  # it would be in the line that is printed
            counts.append((count or 0, source.name))
            tree.add(source.path or source.name, count)
            if as_json:
                print_json(**source.json(), count=count)
            elif is_one:
                print(count)
            elif not (recursive or top):
                print(f"{count:>{width}} {source.name}")
    if rows is None and not (as_json or is_one):
        if top:
            width = len(f"{tree.count:,}")
            for number, name in sorted(counts, key=lambda pair: -pair[0])[:top]:
                print(f"{number:>{width},} {name}")
        if recursive and not top:
            print_tree(tree)
        else:
            print(f"{tree.count:>{width}{',' * bool(top)}} total")
    return int(failures > 0)


def _count(
    tokenizer: Tokenizer, source: Source, special: dict[str, Any], field: str | None, advance: Callable[[int], None]
) -> int:
    if source.path not in (None, "-"):
        from ...corpus.sources import format_of_rows

        if rows := format_of_rows(str(source.path), field):
            from ...corpus.reading import documents

            columns = documents(str(source.path), field, *rows)
            return sum(sum(tokenizer.count_batch(chunk, **special)) for column in columns for chunk in column.chunks)
    encoder, count = tokenizer.encoder(**special), 0
    for part in source.parts(bar=False):
        count += encoder.push_count(part)
        advance(len(part))
    return count + encoder.flush_count()


def _is_binary(source: Source) -> bool:
    """Whether a file is not a text, as git decides."""
    if source.path in (None, "-"):
        return False
    with source.open() as file:
        return b"\0" in file.read(LOOKED_AT)


def _count_rows(tokenizer: Tokenizer, source: Source, rows: Rows, special: dict[str, Any], as_json: bool) -> None:
    for texts in rows.texts(source):
        counts = tokenizer.count_batch([text for _, text in texts], **special)
        for (number, _), count in zip(texts, counts, strict=True):
            if as_json:
                print_json(**source.json(number), count=count)
            else:
                print(count)
