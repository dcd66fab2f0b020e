"""The command `ggtok corpus`: from files to training data."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from typing import Any, BinaryIO, get_args

import click

from ...corpus.building import build
from ...corpus.overview import LENGTH_HEAD, SOURCE_HEAD, Info, gaps, info, length_rows, source_rows, summary
from ...corpus.run import State
from ...corpus.settings import Compression, Format, InputFormat, Masks, Nulls, TooLongOrSplit
from ...corpus.shapes import SHAPES
from ...corpus.trainers import TRAINERS
from ...corpus.verifying import SAMPLE, Verification, verify
from ..inputs import takes_template
from ..options import Command, Model, as_json, is_typed, takes_encoding, takes_model
from ..output import print_json, to_stderr
from ..progress import progress
from ..table import print_pairs, print_table

NUM_SOURCES = 20
"""Sources that are listed, the largest first."""

SIZE_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


class Parsed(click.ParamType[Any]):
    """An option's value that a function reads. If it cannot, the error says what is expected."""

    name = "value"

    def __init__(self, expected: str, parse: Callable[[str], Any]) -> None:
        self.expected, self.parse = expected, parse

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return self.parse(value)
        except (ValueError, OverflowError):
            self.fail(f"{value!r} is not {self.expected}", param, ctx)


def size_of(value: str) -> int:
    """A number of bytes, with K, M or G for powers of 1024."""
    text = value.upper().removesuffix("B").removesuffix("I").strip()
    unit = text[-1:] if text[-1:] in SIZE_UNITS else ""
    return int(float(text.removesuffix(unit)) * SIZE_UNITS[unit])


def tokens_of(value: str) -> int:
    """A number of tokens, with K, M, B or T for powers of 1000."""
    number, unit = value[:-1], "KMBT".find(value[-1:].upper())
    return int(float(number) * 1000 ** (unit + 1)) if value and unit >= 0 else int(value)


def share_of(value: str, read: Callable[[str], float] = float) -> float:
    """A share in percent; without the sign, what `read` makes of it."""
    return float(value.removesuffix("%")) / 100 if value.endswith("%") else read(value)


def weight_of(value: str) -> tuple[str, float]:
    """SOURCE=W."""
    name, _, number = value.rpartition("=")
    return name, float(number)


SIZE = Parsed("a size such as 256M or 1G", size_of)
TOKENS = Parsed("a number of tokens such as 500M or 10B", tokens_of)
SHARE = Parsed("a share such as 0.5%", share_of)
BOUND = Parsed("a number of rows or a share such as 1%", lambda value: share_of(value, int))
WEIGHT = Parsed("a source and its weight, such as web=0.5", weight_of)
PART = Parsed("a part such as 3/10", lambda value: tuple(map(int, value.split("/"))))


def choice(name: str, words: Any, *, default: str | None = None, help: str) -> Callable[[Command], Command]:
    """An option with one of the words of a `Literal`."""
    shows = default is not None
    return click.option(name, type=click.Choice(get_args(words)), default=default, show_default=shows, help=help)


def listed(file: BinaryIO) -> list[str]:
    """The names in a list, one on each line, or separated by NUL."""
    data = file.read()
    lines = data.split(b"\0") if b"\0" in data else data.splitlines()
    return [os.fsdecode(line) for line in lines if line]


@click.group(short_help="Make training data from files.")
def command() -> None:
    """Make training data from files: encoded in shards, restartable, verified."""


@command.command("build", short_help="Encode files into a folder of shards.")
@click.argument("sources", nargs=-1, metavar="SOURCE...")
@click.option(
    "--files-from", type=click.File("rb"), metavar="FILE", help="Read names of sources from a list (-: stdin)."
)
@click.option("-o", "--output", required=True, metavar="FOLDER", help="The folder to write; also s3://bucket/out.")
@click.option("--format", required=True, type=click.Choice(get_args(Format)), help="The format of the shards.")
@click.option("--field", multiple=True, metavar="NAME", help="The field with the text; repeatable.  [default: text]")
@click.option("--messages", multiple=True, metavar="NAME", help="The field with a conversation, instead of a text.")
@click.option("--shape", type=click.Choice([*SHAPES]), help="How rows hold conversations. Default: messages.")
@click.option("--date", metavar="YYYY-MM-DD", help="The day that a template is told. Default: that of the first run.")
@click.option("--tools", metavar="NAME", help="The column or field with the tools of a conversation.")
@takes_template
@choice("--mask", Masks, default="turn", help="What the mask covers.")
@choice("--input-format", InputFormat, help="Default: by the endings of the files.")
@click.option("--keep", metavar="NAME,...", help="Columns or fields to carry over (parquet, arrow).")
@click.option("--id", "id_field", metavar="NAME", help="The column or field with the documents' names (flat).")
@choice("--nulls", Nulls, default="error", help="How to treat nulls.")
@click.option("--skip-bad", is_flag=True, help="Write bad rows to a separate file, instead of stopping.")
@click.option("--max-bad", type=BOUND, metavar="N|P%", help="With --skip-bad: the most bad rows, such as 100 or 1%.")
@click.option("--append-eos", is_flag=True, help="End every document with EOS.")
@click.option("--max-length", type=int, metavar="N", help="The most tokens of a document.")
@choice("--too-long", TooLongOrSplit, default="cut", help="What to do with longer ones.")
@click.option("--overlap", type=int, default=0, metavar="N", help="With split: tokens that a piece repeats.")
@click.option("--fim", type=SHARE, default="0", metavar="P%", help="Documents to fill in the middle of, such as 50%.")
@click.option(
    "--fim-spm", type=SHARE, default="50%", metavar="P%", help="Those that begin with the suffix.  [default: 50%]"
)
@click.option(
    "--weight", type=WEIGHT, multiple=True, metavar="SOURCE=W", help="How often to read a source, such as code=2.5."
)
@click.option("--token-weights", is_flag=True, help="Weights are proportions of tokens, such as 30 and 70.")
@click.option("--budget", type=TOKENS, metavar="N", help="The tokens after which the corpus ends, such as 10B.")
@click.option("--validation", type=SHARE, default="0", metavar="P%", help="Documents for validation, such as 0.5%.")
@click.option("--shuffle", type=int, metavar="SEED", help="Shuffle the documents.")
@click.option("--pack", type=int, metavar="LENGTH", help="Pack documents into sequences (parquet, arrow).")
@click.option("--pad-id", type=int, metavar="ID", help="What fills packed sequences. Default: padding token, or EOS.")
@click.option("--attention-mask", is_flag=True, help="Write an attention mask (parquet, arrow).")
@click.option(
    "--for", "trainer", type=click.Choice([*TRAINERS]), help="Columns that this trainer reads (parquet, arrow)."
)
@choice("--compression", Compression, help="For parquet, arrow. Default: none.")
@click.option(
    "--shard-size", type=SIZE, metavar="SIZE", help="Bytes of input per shard. Default: a 16th, from 8M to 128M."
)
@click.option("--shard", "part", type=PART, metavar="I/N", help="Take the I-th of N parts of all inputs.")
@click.option("--rebuild", is_flag=True, help="Make all shards anew if inputs or settings do not let them be kept.")
@click.option("--rehash", is_flag=True, help="Compare all documents of finished shards with the inputs.")
@click.option("--threads", type=int, metavar="N", help="Default: all cores.")
@takes_encoding
def build_command(
    sources: tuple[str, ...],
    files_from: BinaryIO | None,
    output: str,
    model: Model,
    special: dict[str, Any],
    keep: str | None,
    weight: tuple[tuple[str, float], ...],
    as_json: bool,
    **others: Any,
) -> None:
    """Encode the documents of files, folders, patterns or standard input (-) into a folder of shards.

    A text file is one document, or one per line with --input-format lines; JSON Lines have one per line, a JSON array
    one per object, CSV, TSV, Parquet and Arrow one per row. gzip, zstd, bz2 and lz4 are read too.

    The command can be stopped at any time: started again, it makes the shards that are missing, and the result is the
    same, byte for byte. If inputs were added, removed or changed, the shards of the others are kept. The folder's
    manifest.json says what it was made from, and how.

    With --json, standard output has an object on a line for the start, for each shard, and for the end.
    """
    if files_from is not None:
        sources += tuple(listed(files_from))
    names = tuple(name for name in (keep or "").split(",") if name)
    others |= {"field": others["field"] or "text", "messages": others["messages"] or None, "weights": dict(weight)}
    tokenizer, state = model.open(), State()
    if as_json:
        print_json(event="start", folder=output, sources=len(sources))
    # SIGTERM ends the command in an orderly way, with the exit code that shells expect.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    with progress(None, "", logs=True) as bar:

        def show(now: State) -> None:
            nonlocal state
            state = now
            if bar.label == now.phase and now.documents:
                bar.note = f"{now.documents / (time.monotonic() - bar.began):,.0f} documents/s"
            bar.phase(now.phase, now.bytes, now.total_bytes, True)
            for shard in now.finished if as_json else ():
                print_json(event="shard", **shard)
            sys.stdout.flush()

        try:
            built = build(sources, output, tokenizer=tokenizer, keep=names, progress=show, **special, **others)
        except (KeyboardInterrupt, SystemExit):
            bar.close()
            to_stderr(f"stopped with {state.shards} shards done: the same command continues")
            raise
    if as_json:
        print_json(event="end", **built.to_dict())
    else:
        _print(built)


@command.command("verify", short_help="Check folders against their manifests and documents.")
@click.argument("folders", nargs=-1, required=True, metavar="FOLDER...")
@click.option("--sample", type=int, default=SAMPLE, show_default=True, metavar="N", help="Documents per shard.")
@click.option("--all", "is_all", is_flag=True, help="All documents.")
@takes_model
@as_json
def verify_command(folders: tuple[str, ...], sample: int, is_all: bool, model: Model, as_json: bool) -> int:
    """Check that every file of a corpus has its hash, and that documents encoded again have the tokens that were
    written, and decode to their text. The tokenizer is the one that the folder keeps; one that you name must
    be the same. Of several folders, also check that they are parts of a whole, and that none is missing. A
    folder can be a URL.

    The exit code is 1 if something is wrong.
    """
    tokenizer = model.open() if model.builtin or model.overrides or is_typed("model") else None
    problems = gaps([info(folder) for folder in folders]) if len(folders) > 1 else []
    is_right = not problems
    for folder in folders:
        with progress(None, "", logs=True) as bar:
            show = partial(bar.phase, "hashing", is_in_bytes=True)
            found = verify(folder, tokenizer=tokenizer, sample=None if is_all else sample, progress=show)
        is_right &= found.is_right
        named = {"folder": folder} if len(folders) > 1 else {}
        _print_verified(named, found, as_json)
    _print_gaps(problems, as_json)
    return int(not is_right)


def _print_verified(named: dict[str, str], found: Verification, as_json: bool) -> None:
    if as_json:
        print_json(**named, **asdict(found))
        return
    print_pairs(
        [
            *named.items(),
            *(("error:", problem) for problem in found.problems),
            *(("note:", note) for note in found.notes),
            ("files", f"{found.files:,} as they were written"),
            ("documents", f"{found.documents:,} encoded again, with the same tokens"),
            *((("masks", f"{found.masks:,} of them with the same assistant mask"),) if found.masks else ()),
            ("decoded", f"{found.decoded:,} of them to their text, byte for byte"),
            ("the first that is not", found.changed or ""),
        ]
    )


@command.command("info", short_help="Show what folders hold.")
@click.argument("folders", nargs=-1, required=True, metavar="FOLDER...")
@as_json
def info_command(folders: tuple[str, ...], as_json: bool) -> int:
    """Show what a corpus holds: documents, tokens, a histogram of lengths, and bytes per token by source. Of several
    folders, show the sums, and what is missing between them; the exit code is 1 then. A folder can be a URL.
    """
    found = [info(folder) for folder in folders]
    if len(found) > 1:
        names = ("shards", "documents", "tokens", "text_bytes", "rejected")
        rows = [[getattr(each, name) for name in names] for each in found]
        rows.append([sum(column) for column in zip(*rows, strict=True)])
        if as_json:
            print_json(folders=list(folders), **dict(zip(names, rows[-1], strict=True)))
        else:
            cells = [
                [name, *(f"{number:,}" for number in row)] for name, row in zip((*folders, "all"), rows, strict=True)
            ]
            print_table(("folder", *names), cells, right=range(1, 6))
        _print_gaps(problems := gaps(found), as_json)
        return int(bool(problems))
    if as_json:
        print_json(**found[0].to_dict())
    else:
        _print(found[0])
    return 0


def _print_gaps(problems: list[str], as_json: bool) -> None:
    if as_json and problems:
        print_json(problems=problems)
    elif problems:
        print_pairs([("error:", problem) for problem in problems])


def _print(found: Info) -> None:
    print_pairs(summary(found))
    tables = (LENGTH_HEAD, length_rows(found)), (SOURCE_HEAD, source_rows(found, NUM_SOURCES))
    for head, rows in tables:
        print()
        print_table(head, rows, right=range(1, len(head) - (head[-1] == "")))
