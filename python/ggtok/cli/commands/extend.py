"""The command `ggtok extend`: a model's vocabulary and text files in, a GGUF file of the vocabulary with new tokens
out."""

from __future__ import annotations

import os
import shlex

import click

from ... import extend
from ...tokenizer.seam import metadata_of, path_of
from ..inputs import text_path
from ..options import OUTPUT, Model, check_output, takes_model
from ..output import printable
from ..progress import progress


@click.command(short_help="Add tokens to a model's vocabulary, trained on texts.")
@click.argument("files", nargs=-1, required=True, type=click.Path(), metavar="FILE...")
@takes_model
@click.option("-n", "--num-tokens", type=int, required=True, metavar="N", help="How many tokens to add.")
@click.option("-o", "--output", required=True, type=OUTPUT, metavar="PATH", help="The GGUF file to write.")
@click.option("--force", is_flag=True, help="Replace PATH even if it is a GGUF file with tensors.")
@click.option("--threads", type=int, metavar="N", help="Threads for counting.  [default: all cores]")
def command(
    files: tuple[str, ...], model: Model, num_tokens: int, output: str, force: bool, threads: int | None
) -> None:
    """Add tokens to a model's vocabulary, trained on text files in UTF-8, and write the vocabulary as a GGUF file,
    without tensors. Old tokens keep their ids, and texts without a new token keep theirs."""
    base, paths = model.open(), list(map(text_path, files))
    check_output(output, [*paths, *filter(None, [path_of(base)])], force)
    with progress(sum(path.stat().st_size for path in paths) or None, "counting") as bar:
        extended = extend(base, files=paths, num_tokens=num_tokens, threads=threads, progress=bar.phase)
    extended.to_gguf(output, overwrite=force)
    before, after = (sum(each.count_file(path, add_special=False) for path in paths) for each in (base, extended))
    old, new, written = base.vocab_size, extended.vocab_size, os.path.getsize(output)
    print(f"{printable(output)}: {new - old:,} tokens after the {old:,} of {model.name}, {written:,} bytes")
    print(f"saves: {before - after:,} of the {before:,} tokens of these texts ({1 - after / max(before, 1):.1%})")
    if metadata_of(base).tensor_count:
        print(
            f"weights: give the embeddings {new:,} rows; ggtok.replaced names the old rows that a new one starts from"
        )
    of_base = ["-m", model.path] if model.path is not None else ["--builtin", str(model.builtin)]
    print(f"next: {printable(shlex.join(['ggtok', 'evaluate', *files, *of_base, '-m', output]))}")
