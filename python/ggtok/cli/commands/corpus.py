"""The command `ggtok corpus`: from files to training data."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from typing import Any, get_args

import click

from ...corpus.build import build
from ...corpus.info import LENGTH_HEAD, SOURCE_HEAD, Info, info, length_rows, source_rows, summary
from ...corpus.run import State
from ...corpus.settings import Compression, Format, InputFormat, Masks, Nulls, TooLong
from ...corpus.shapes import SHAPES
from ...corpus.trainers import TRAINERS
from ...corpus.verify import SAMPLE, verify
from ..file_arguments import OUTPUT
from ..inputs import takes_template
from ..options import Model, as_json, takes_model, takes_special
from ..output import print_json, to_stderr
from ..progress import progress
from ..table import print_pairs, print_table

NUM_SOURCES = 20
"""Sources that are listed, the largest first."""

SIZE_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


class Size(click.ParamType[int]):
    """A number of bytes, with K, M or G for powers of 1024."""

    name = "size"

    def convert(self, value: Any, parameter: click.Parameter | None, context: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        text = value.upper().removesuffix("B").removesuffix("I").strip()
        unit = text[-1:] if text[-1:] in SIZE_UNITS else ""
        try:
            return int(float(text.removesuffix(unit)) * SIZE_UNITS[unit])
        except (ValueError, OverflowError):
            self.fail(f"{value!r} is not a size such as 256M or 1G", parameter, context)


@click.group(short_help="Make training data from files.")
def command() -> None:
    """Make training data from files: encoded in shards, restartable, verified."""


@command.command("build", short_help="Encode files into a folder of shards.")
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
@click.option("-o", "--output", required=True, metavar="FOLDER", help="The folder to write.")
@click.option("--format", required=True, type=click.Choice(get_args(Format)), help="The format of the shards.")
@click.option("--field", multiple=True, metavar="NAME", help="The field with the text; repeatable.  [default: text]")
@click.option("--messages", multiple=True, metavar="NAME", help="The field with a conversation, instead of a text.")
@click.option("--shape", type=click.Choice([*SHAPES]), help="How rows hold conversations. Default: messages.")
@click.option("--date", metavar="YYYY-MM-DD", help="The day that a template is told. Default: that of the first run.")
@click.option("--tools", metavar="NAME", help="The column or field with the tools of a conversation.")
@takes_template
@click.option(
    "--mask", type=click.Choice(get_args(Masks)), default="turn", show_default=True, help="What the mask covers."
)
@click.option("--input-format", type=click.Choice(get_args(InputFormat)), help="Default: by the endings of the files.")
@click.option("--keep", metavar="NAME,...", help="Columns or fields to carry over (parquet, arrow).")
@click.option("--id", "id_field", metavar="NAME", help="The column or field with the documents' names (flat).")
@click.option(
    "--nulls", type=click.Choice(get_args(Nulls)), default="error", show_default=True, help="How to treat nulls."
)
@click.option("--skip-bad", is_flag=True, help="Write bad rows to a separate file, instead of stopping.")
@click.option("--append-eos", is_flag=True, help="End every document with EOS.")
@click.option("--max-length", type=int, metavar="N", help="The most tokens of a document.")
@click.option(
    "--too-long",
    type=click.Choice(get_args(TooLong)),
    default="cut",
    show_default=True,
    help="What to do with longer ones.",
)
@click.option("--shuffle", type=int, metavar="SEED", help="Shuffle the documents.")
@click.option("--pack", type=int, metavar="LENGTH", help="Pack documents into sequences (parquet, arrow).")
@click.option("--pad-id", type=int, metavar="ID", help="What fills packed sequences. Default: padding token, or EOS.")
@click.option("--attention-mask", is_flag=True, help="Write an attention mask (parquet, arrow).")
@click.option(
    "--for", "trainer", type=click.Choice([*TRAINERS]), help="Columns that this trainer reads (parquet, arrow)."
)
@click.option("--compression", type=click.Choice(get_args(Compression)), help="For parquet, arrow. Default: none.")
@click.option("--shard-size", type=Size(), help="Bytes of input per shard. Default: a 16th, from 8M to 128M.")
@click.option("--threads", type=int, metavar="N", help="Default: all cores.")
@takes_model
@takes_special
@as_json
def build_command(
    sources: tuple[str, ...],
    output: str,
    model: Model,
    special: dict[str, Any],
    keep: str | None,
    as_json: bool,
    **others: Any,
) -> None:
    """Encode the documents of files, folders, patterns or standard input (-) into a folder of shards.

    A text file is one document, or one per line with --input-format lines; JSON Lines have one per line, a JSON array
    one per object, CSV, TSV, Parquet and Arrow one per row. gzip, zstd, bz2 and lz4 are read too.

    The command can be stopped at any time: started again, it makes the shards that are missing, and the result is the
    same, byte for byte. The folder's manifest.json says what it was made from, and how.
    """
    names = tuple(name for name in (keep or "").split(",") if name)
    others |= {"field": others["field"] or "text", "messages": others["messages"] or None}
    tokenizer, state = model.open(), State()
    with progress(None, "") as bar, terminated():

        def show(now: State) -> None:
            nonlocal state
            state = now
            if bar.label == now.phase and now.documents:
                bar.note = f"{now.documents / (time.monotonic() - bar.began):,.0f} documents/s"
            bar.phase(f"{now.phase} inputs" if now.phase == "hashing" else now.phase, now.bytes, now.total_bytes, True)

        try:
            built = build(sources, output, tokenizer=tokenizer, keep=names, progress=show, **special, **others)
        except (KeyboardInterrupt, SystemExit):
            bar.close()
            to_stderr(f"stopped with {state.shards} shards done: the same command continues")
            raise
    if as_json:
        print_json(**built.to_dict())
    else:
        _print(built)


@contextmanager
def terminated() -> Iterator[None]:
    """Makes SIGTERM end the command in an orderly way, with the exit code that shells expect."""

    def end(*_: object) -> None:
        raise SystemExit(128 + signal.SIGTERM)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@command.command("verify", short_help="Check a folder against its manifest and its documents.")
@click.argument("folder", metavar="FOLDER")
@click.option("--sample", type=int, default=SAMPLE, show_default=True, metavar="N", help="Documents per shard.")
@click.option("--all", "is_all", is_flag=True, help="All documents.")
@takes_model
@as_json
@click.pass_context
def verify_command(context: click.Context, folder: str, sample: int, is_all: bool, model: Model, as_json: bool) -> None:
    """Check that every file of a corpus has its hash, that the tokenizer is the same, and that documents encoded again
    have the tokens that were written, and decode to their text.

    The exit code is 1 if something is wrong.
    """
    with progress(None, "") as bar:
        show = partial(bar.phase, "hashing", is_in_bytes=True)
        found = verify(folder, tokenizer=model.open(), sample=None if is_all else sample, progress=show)
    if as_json:
        print_json(**asdict(found))
    else:
        print_pairs(
            [
                *(("error:", problem) for problem in found.problems),
                *(("note:", note) for note in found.notes),
                ("files", f"{found.files:,} as they were written"),
                ("documents", f"{found.documents:,} encoded again, with the same tokens"),
                *((("masks", f"{found.masks:,} of them with the same assistant mask"),) if found.masks else ()),
                ("decoded", f"{found.decoded:,} of them to their text, byte for byte"),
                ("the first that is not", found.changed or ""),
            ]
        )
    context.exit(int(not found.is_right))


@command.command("info", short_help="Show what a folder holds.")
@click.argument("folder", metavar="FOLDER")
@click.option("--html", type=OUTPUT, metavar="PATH", help="Also write it as a page.")
@as_json
def info_command(folder: str, html: str | None, as_json: bool) -> None:
    """Show what a corpus holds: documents, tokens, a histogram of lengths, and bytes per token by source."""
    found = info(folder)
    if html is not None:
        found.to_html(html)
    if as_json:
        print_json(**found.to_dict())
    else:
        _print(found)


def _print(found: Info) -> None:
    print_pairs(summary(found))
    tables: list[tuple[Sequence[str], list[Any]]] = [(LENGTH_HEAD, length_rows(found))]
    tables.append((SOURCE_HEAD, source_rows(found, NUM_SOURCES)))
    for head, rows in tables:
        print()
        print_table(head, rows, right=range(1, len(head) - (head[-1] == "")))
