"""The command `ggtok verify`: ggtok beside a llama.cpp that is installed."""

from __future__ import annotations

import click

from ...lab.verify.verify import repeat, verify
from ...tokenizer.text_or_path import Path
from ..inputs import text_path
from ..options import Model, as_json, takes_model
from ..output import finite, print_json
from ..progress import progress
from ..table import print_report


@click.command(short_help="Compare with the llama.cpp that is installed.")
@takes_model
@click.option("--text", "texts", multiple=True, metavar="FILE", help="A text to compare, whole and line by line.")
@click.option("--seconds", type=float, metavar="N", help="Seconds to spend on made-up texts. Without --text: 10.")
@click.option("--libllama", metavar="PATH", help="llama.cpp's library. Default: that of xllamacpp or llama-cpp-python.")
@click.option("--seed", type=int, metavar="N", help="Make up the same texts again.")
@click.option("--repeat", "token", metavar="CALL", help="Repeat one call, as the report of a difference says.")
@as_json
def command(
    model: Model,
    texts: tuple[str, ...],
    seconds: float | None,
    libllama: str | None,
    seed: int | None,
    token: str | None,
    as_json: bool,
) -> int:
    """Compare ggtok with the llama.cpp that is installed, on your texts and on made-up ones: ids, bytes and pieces,
    with all flags. Shows what was compared, and each difference with a command that repeats it. Differences that a
    known change of llama.cpp explains are counted by change.

    The exit code is 0 if all answers are the same, 1 if one differs, and 2 if llama.cpp is not installed or cannot be
    used.
    """
    if token is not None and (texts or seconds is not None or seed is not None):
        raise click.ClickException("--repeat repeats one call: give it alone")
    tokenizer = model.open()
    if token is not None:
        found = repeat(tokenizer, token, libllama)
    else:
        files: list[Path] = [text_path(text) for text in texts]
        with progress(None, "comparing") as bar:
            found = verify(
                tokenizer, files=files or None, seconds=seconds, library=libllama, seed=seed, progress=bar.phase
            )
    if as_json:
        print_json(**finite(found.to_dict()))
    else:
        print_report(found.lines(), whole="repeat")
    return 0 if found.agrees else 1
