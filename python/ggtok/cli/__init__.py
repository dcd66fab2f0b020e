"""The command line: the Python API for people and shell scripts.

One file per command in `commands/`, imported when the command runs. Arguments are files, as in `wc`; a text itself is
`-p TEXT`. Results go to standard output, all else to standard error.
Exit codes: 0 or what a command returns, 1 if the reader of the output has closed it, 2 for errors in arguments, files
or texts (one line on standard error), 130 after Ctrl-C.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence
from functools import cache
from importlib import import_module

import click

from .._ggtok import __version__
from .._plugins import Plugin, added
from ..errors import GgtokError
from .output import explained, give_up_output, is_of_output, printable, shown_warnings, to_stderr

COMMANDS = (
    *("encode", "decode", "count", "split", "chat", "explain", "train", "extend", "evaluate", "prune"),
    *("corpus", "models", "inspect", "check", "edit", "diff", "verify", "search", "bench", "completion"),
)


class Commands(click.Group):
    """The commands, each imported when it is needed: `command` in `commands/NAME.py`, or of another distribution."""

    def list_commands(self, context: click.Context) -> list[str]:
        return [*COMMANDS, *added("ggtok.commands", COMMANDS)]

    def resolve_command(
        self, context: click.Context, arguments: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command of a name; of a misspelt one, an error that names ours."""
        name = arguments[0]
        if name in COMMANDS or name.startswith("-") or self.get_command(context, name):
            return super().resolve_command(context, arguments)
        from difflib import get_close_matches

        known = self.list_commands(context)
        near = get_close_matches(name, known, 1)
        hint = f"did you mean ggtok {near[0]}?" if near else f"the commands are {', '.join(known)}"
        raise click.ClickException(f"no such command {printable(name)!r}: {hint}")

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name in COMMANDS:
            command: click.Command = import_module(f".commands.{name}", __name__).command
            return command
        plugin = added("ggtok.commands", COMMANDS).get(name)
        return _loaded(plugin) if plugin else None


@cache
def _loaded(plugin: Plugin) -> click.Command | None:
    with plugin:
        command = plugin.load()
        if not isinstance(command, click.Command):
            raise TypeError(f"{plugin.value} is a {type(command).__name__}, not a click.Command")
        return command
    return None


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.version_option(__version__, prog_name="ggtok", message="%(prog)s %(version)s", help="Show the version.")
def group() -> None:
    """Text to tokens and back, exactly as llama.cpp does: -m or GGTOK_MODEL names a model."""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code."""
    if "_GGTOK_COMPLETE" in os.environ:
        from click.shell_completion import add_completion_class

        from .completion import Bash

        add_completion_class(Bash)
        warnings.simplefilter("ignore")  # a shell would show them between the words
        group.main(prog_name="ggtok")  # answers the shell and exits
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - messages go nowhere, and no file takes its number
    if sys.stdout is None:
        return _fail("standard output is closed")
    try:
        with shown_warnings():
            code = _run(list(sys.argv[1:] if argv is None else argv))
        sys.stdout.flush()  # so that a failure is seen
    except BrokenPipeError:
        give_up_output()
        return 1
    except (KeyboardInterrupt, RuntimeError) as error:
        # Python 3.11 makes a RuntimeError of a Ctrl-C while it calls `__set_name__`, as imports of dataclasses do.
        if isinstance(error, RuntimeError) and not isinstance(error.__cause__, KeyboardInterrupt):
            raise
        give_up_output()
        if argv is None:
            os._exit(130)  # at once: freeing a tokenizer and long lists takes longer than people wait
        return 130
    except click.UsageError as error:
        # What click's parser found has a context, and its help says more.
        help = f" (see {error.ctx.command_path} --help)" if error.ctx else ""
        return _fail(error.format_message().rstrip(".") + help)
    except (GgtokError, click.ClickException) as error:
        return _fail(str(error))
    except OSError as error:
        where = "standard output: " if is_of_output(error) else ""
        give_up_output()
        return _fail(where + explained(error))
    return code


def _run(argv: list[str]) -> int:
    try:
        with group.make_context("ggtok", argv) as context:
            code = group.invoke(context)
            return code if type(code) is int else 0
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return 2
    except click.exceptions.Exit as exit:
        return exit.exit_code


def _fail(message: str) -> int:
    to_stderr(f"error: {message}")
    return 2
