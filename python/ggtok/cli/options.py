"""Options that several commands share: which tokenizer, special tokens, JSON, the file to write."""

from __future__ import annotations

import functools
import inspect
import json
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

import click
from click.core import ParameterSource

from .. import Tokenizer
from ..errors import GgtokError, ModelNotFoundError
from ..tokenizer.base import BUILTIN
from .completion import MODEL
from .output import printable, to_stderr

Command: TypeAlias = Callable[..., Any]
Decorator: TypeAlias = Callable[[Command], Command]

DEFAULT = "bpe"
"""What `encode`, `decode` and `explain` use if no model was given. Numbers that people rely on need one."""

UNASKED = f"embedded vocabulary {DEFAULT}"
"""The same in output, so that it is not mistaken for another model's."""

NUM_NAMED = 5
"""How many models are named where one is missing."""

KINDS: dict[str, Callable[[str], str | int | float | bool]] = {
    "int": int,
    "float": float,
    "bool": lambda value: {"true": True, "false": False}[value],
    "str": str,
}
"""The types of metadata values, and how a value of each is read."""


def shared(*options: Callable[[Command], Command]) -> Callable[[Callable[..., dict[str, Any]]], Decorator]:
    """Makes a decorator that gives a command options or arguments, from a function that takes their values and returns
    what the command is passed in their place."""

    def decorator_of(passed: Callable[..., dict[str, Any]]) -> Decorator:
        names = list(inspect.signature(passed).parameters)

        @functools.wraps(passed)
        def takes(function: Command) -> Command:
            @functools.wraps(function)
            def command(**values: Any) -> Any:
                own = {name: values.pop(name) for name in names}
                return function(**passed(**own), **values)

            made: Command = command
            for option in reversed(options):
                made = option(made)
            return made

        return takes

    return decorator_of


def repeatable(*names: str, help: str, **settings: Any) -> Decorator:
    """An option that can be given several times, and whose help says so."""
    return click.option(*names, multiple=True, help=f"{help}; repeatable.", **settings)


as_json = click.option("--json", "as_json", is_flag=True, help="Write JSON, one object per line, in ASCII.")
"""Passes `as_json`."""


@dataclass(frozen=True)
class Model:
    """Which tokenizer a command was given."""

    path: str | None
    """A path, or another name of a model."""
    builtin: str | None
    overrides: dict[str, str | int | float | bool]
    offline: bool | None = None

    @property
    def name(self) -> str:
        """As people read it."""
        return printable(self.path) if self.path is not None else str(self.builtin)

    @property
    def mark(self) -> str:
        """Follows ids on a line if no model was given."""
        return f"  # {UNASKED}" if self.path is None and self.builtin is None else ""

    @property
    def json(self) -> dict[str, object]:
        """The same in an object of JSON."""
        return {"model": UNASKED} if self.mark else {}

    def open(self, default: str | None = None) -> Tokenizer:
        """The tokenizer of the model, or an embedded one. If nothing was given, the default is used if there is one,
        and standard error says so."""
        if self.path is not None:
            origin = " (GGTOK_MODEL)" * (self.path == os.environ.get("GGTOK_MODEL") and not is_typed("model"))
            try:
                return Tokenizer.from_model(self.path, overrides=self.overrides, offline=self.offline)
            except ModelNotFoundError as error:
                raise ModelNotFoundError(f"GGTOK_MODEL: {error}" if origin else str(error), name=self.path) from None
            except GgtokError:  # some are an OSError too
                raise
            except OSError as error:
                # A failed read does not name the file.
                raise OSError(error.errno, error.strerror, self.path + origin) from None
        if self.overrides:
            raise click.ClickException("--override-kv needs -m MODEL")
        name = self.builtin or default
        if name is None:
            raise click.ClickException(
                f"no model given: -m MODEL (or GGTOK_MODEL) names one{_models()}, and --builtin "
                f"an embedded vocabulary ({', '.join(BUILTIN)})"
            )
        if self.builtin is None:
            to_stderr(f'no model given (-m MODEL or GGTOK_MODEL): using the embedded vocabulary "{name}"')
        return Tokenizer.builtin(name)


def _models() -> str:
    """The first models on this machine."""
    from ..stores.find import names_from

    names = names_from("")
    more = f" and {len(names) - NUM_NAMED} more (see ggtok models)" if len(names) > NUM_NAMED else ""
    return f" (here: {', '.join(names[:NUM_NAMED])}{more})" if names else ""


takes_network = click.option(
    "--offline/--online",
    default=None,
    help="Never use the network; or also for hf: models that are not cached. Default: for URLs only.",
)
"""Passes `offline`."""


@shared(
    click.option(
        *("-m", "--model"),
        type=MODEL,
        metavar="MODEL",
        envvar="GGTOK_MODEL",
        show_envvar=True,
        help="A GGUF file, or a model by name, such as ollama:llama3.2 (see ggtok models).",
    ),
    click.option("--builtin", type=click.Choice(BUILTIN), help="An embedded vocabulary, instead of a model."),
    click.option(
        "--override-kv",
        metavar="KEY=TYPE:VALUE",
        multiple=True,
        help="Replace metadata, as llama.cpp does. TYPE is int, float, bool or str; commas separate several.",
    ),
    takes_network,
)
def takes_model(
    model: str | None, builtin: str | None, override_kv: tuple[str, ...], offline: bool | None
) -> dict[str, Any]:
    """Gives a command `-m`, `--builtin`, `--override-kv` and `--offline`, and passes it `model: Model`."""
    if builtin is not None and model is not None:
        if is_typed("model"):
            raise click.ClickException("-m and --builtin: give only one")
        model = None
    import csv

    # Commas separate several overrides; one with commas is in quotes.
    items = [item for row in override_kv for items in csv.reader([row]) for item in items]
    return {"model": Model(model, builtin, dict(map(_override, items)), offline)}


@shared(click.argument("files", nargs=-1, type=MODEL, metavar="[MODEL]..."), takes_model)
def takes_models(files: tuple[str, ...], model: Model) -> dict[str, Any]:
    """Gives a command models as arguments as well as `-m`, and passes it `models: list[Model]`, at least one."""
    if files and any(map(is_typed, ("model", "builtin"))):
        raise click.ClickException("the model is given twice: as an argument and with -m or --builtin")
    return {"models": [Model(file, None, model.overrides, model.offline) for file in files] or [model]}


def is_typed(parameter: str) -> bool:
    """Whether a parameter of the running command is on the command line, and not from the environment."""
    return click.get_current_context().get_parameter_source(parameter) is ParameterSource.COMMANDLINE


@shared(
    click.option("--no-special", is_flag=True, help="Add no BOS, EOS or SEP."),
    click.option("--parse-special", is_flag=True, help="Read control tokens written in the text as tokens."),
)
def takes_special(no_special: bool, parse_special: bool) -> dict[str, Any]:
    """Gives a command `--no-special` and `--parse-special`, and passes it `special`: keywords of `encode`."""
    return {"special": {"add_special": not no_special, "parse_special": parse_special}}


def takes_encoding(function: Command) -> Command:
    """Gives a command all options of `takes_model` and `takes_special`, and `--json`."""
    return takes_model(takes_special(as_json(function)))


class OutputFile(click.Path):
    """The path of a file to write. Its folder must exist before long work begins."""

    def convert(self, value: Any, parameter: click.Parameter | None, context: click.Context | None) -> str:
        folder = os.path.dirname(value)
        if folder and not os.path.isdir(folder):
            self.fail(f"{folder} is not a folder", parameter, context)
        return str(value)


OUTPUT = OutputFile()


def check_output(path: str | None, inputs: Iterable[object], force: bool = False) -> None:
    """Refuses, before any work, an output that is one of the inputs, or a GGUF file with tensors without `--force`."""
    if path is not None:
        from ..tokenizer.files import check_target

        check_target(path, inputs, overwrite=force)


def name_and_value(option: str, written: str) -> tuple[str, str]:
    """NAME=VALUE, as a repeatable option takes it."""
    name, equals, value = written.partition("=")
    if not (name and equals):
        raise click.ClickException(f"{option}: {written!r} is not NAME=VALUE")
    return name, value


def setting(written: str) -> tuple[str, Any]:
    """A variable of a chat template: JSON, or else a text."""
    name, value = name_and_value("--set", written)
    if name == "messages":
        raise click.ClickException(f"--set: {name!r} is not a variable of a template")
    try:
        return name, json.loads(value)
    except (ValueError, RecursionError):
        return name, value


def _override(item: str) -> tuple[str, str | int | float | bool]:
    """One override in llama.cpp's notation: `string_parse_kv_override` in its `common/common.cpp`.

    Deviations: (1) a number must be a number; llama.cpp reads anything else as 0. (2) Keys and strings may be
    longer than 127 bytes.
    """
    key, equals, typed = item.partition("=")
    kind, colon, value = typed.partition(":")
    if not (key and equals and colon):
        raise click.ClickException(f"--override-kv: {item!r} is not KEY=TYPE:VALUE")
    if kind not in KINDS:
        raise click.ClickException(f"--override-kv: {item!r} has the type {kind!r}: expected int, float, bool or str")
    return key, typed_value("--override-kv", item, kind, value)


def typed_value(option: str, item: str, kind: str, value: str) -> str | int | float | bool:
    """A value of one of `KINDS`, as an option takes it."""
    try:
        return KINDS[kind](value)
    except (ValueError, KeyError):
        expected = "an int" if kind == "int" else f"a {kind}"
        raise click.ClickException(f"{option}: {item!r} has the value {value!r}: expected {expected}") from None
