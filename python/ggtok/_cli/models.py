"""GGUF files as arguments, for commands that look at files instead of texts."""

from __future__ import annotations

import functools
from typing import Any

import click

from .completion import GGUF
from .options import Command, Model, takes_model


def takes_models(function: Command) -> Command:
    """Gives a command GGUF files as arguments beside `-m`, and passes it `models: list[Model]`, at least one."""

    @click.argument("files", nargs=-1, type=GGUF, metavar="[FILE]...")
    @takes_model
    @functools.wraps(function)
    def command(*args: Any, files: tuple[str, ...], model: Model, **others: Any) -> Any:
        context = click.get_current_context()
        if files and any(is_typed(context, name) for name in ("model", "builtin")):
            raise click.ClickException("the model is given twice: as an argument and with -m or --builtin")
        models = [Model(file, None, model.overrides) for file in files] or [model]
        return function(*args, models=models, **others)

    return command  # type: ignore[return-value]


def is_typed(context: click.Context, parameter: str) -> bool:
    """Whether a parameter is on the command line, and not from the environment."""
    return context.get_parameter_source(parameter) is click.core.ParameterSource.COMMANDLINE
