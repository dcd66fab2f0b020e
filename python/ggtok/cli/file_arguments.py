"""Files as arguments: GGUF files to look at, big texts to read, and files to write."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import click

from ..tokenizer.files import check_target
from .completion import MODEL
from .inputs import Source
from .options import Model, is_typed, shared, takes_model


class OutputFile(click.Path):
    """The path of a file to write. Its folder must exist before long work begins."""

    def convert(self, value: Any, parameter: click.Parameter | None, context: click.Context | None) -> str:
        folder = os.path.dirname(value)
        if folder and not os.path.isdir(folder):
            self.fail(f"{folder} is not a folder", parameter, context)
        return str(value)


OUTPUT = OutputFile()


@shared(click.argument("files", nargs=-1, type=MODEL, metavar="[MODEL]..."), takes_model)
def takes_models(files: tuple[str, ...], model: Model) -> dict[str, Any]:
    """Gives a command models as arguments as well as `-m`, and passes it `models: list[Model]`, at least one."""
    if files and any(map(is_typed, ("model", "builtin"))):
        raise click.ClickException("the model is given twice: as an argument and with -m or --builtin")
    return {"models": [Model(file, None, model.overrides, model.offline) for file in files] or [model]}


def check_output(path: str | None, inputs: Iterable[object], force: bool = False) -> None:
    """Refuses, before any work, an output that is one of the inputs, or a GGUF file with tensors without `--force`."""
    if path is not None:
        check_target(path, inputs, overwrite=force)


def short_names(paths: Sequence[str]) -> list[str]:
    """The stem of each file's name, or as much of the end of its path as no other has."""
    parts = [Path(path).parts for path in paths]
    forms = [
        [Path(path).stem, *("/".join(own[-n:]) for n in range(1, len(own))), path]
        for path, own in zip(paths, parts, strict=True)
    ]
    times = Counter(form for own in forms for form in set(own))
    return [next((form for form in own if times[form] == 1), own[-1]) for own in forms]


def text_path(argument: str) -> Path:
    """The path of a text that is read in parts; `-` is standard input, if that has a path."""
    if argument != "-" or os.name == "nt":
        return Path(argument)
    with Source("-").open():  # says that it is waiting for the keyboard
        return Path("/dev/stdin")
