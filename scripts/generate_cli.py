"""Writes the manual page ggtok.1, and makes the reference of docs/cli, from the commands and their help.

python scripts/generate_cli.py
python scripts/generate_cli.py --check      # exit code 1 if the manual page is not current

`docs/conf.py` puts the reference into the pages. The manual page is committed, because wheels hold it, and the help can
only be read once the extension module is built.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import click
from ggtok.cli import COMMANDS as OURS
from ggtok.cli import group

ROOT = Path(__file__).parent.parent
MANUAL = ROOT / "ggtok.data/data/share/man/man1/ggtok.1"

INTRODUCTION = (
    "Arguments are files, as in wc. -p TEXT gives the text itself, and without either a command reads standard input. "
    "The model is -m MODEL, a file or a name such as ollama:llama3.2, or the environment variable GGTOK_MODEL; without "
    "one, the embedded vocabulary bpe is used, and every output is marked with its name."
)

GROUPS = {
    "cli/texts": ("encode", "decode", "count", "split", "chat", "explain"),
    "cli/files": ("models", "inspect", "check", "diff", "verify", "search", "bench", "completion"),
    "cli/making": ("train", "extend", "evaluate", "prune", "edit", "corpus"),
}
"""The commands of each page."""

COMMANDS = "|".join(name for names in GROUPS.values() for name in names)
CODE = re.compile(
    rf"""(?<![\w-])(?:ggtok (?:{COMMANDS})(?: (?:--\w+|"[^"]*"|Ġ\w+))?"""
    r"""|--?[a-z][a-z-]*(?: "[^"]*"| \w+=\w+)?|\w+='[^']*'|\w+=</s>)(?![\w-])"""
)
"""What is typed, within the words of a help."""

EXIT_CODES = {
    "0": "Success. For `diff` and `verify`: nothing differs.",
    "1": (
        "`diff` or `verify` found a difference, `check` an error, `search` nothing, or `count` could not read one of "
        "many files. "
        "Any command: the reader of the output closed it, as `head` does."
    ),
    "2": "An argument, a file or a text is wrong. One line on standard error names it.",
    "130": "Ctrl-C was pressed. A file that was being written is unchanged.",
}

VARIABLES = {
    "GGTOK_MODEL": "The GGUF file to use if there is neither `-m` nor `--builtin`.",
    "NO_COLOR": "If it is set and not empty, nothing is coloured.",
    "FORCE_COLOR": "If it is set and not empty, tokens and explain's tables are coloured even in a pipe.",
    "COLUMNS": "The width to assume instead of the terminal's.",
    "TERM": "With `dumb`, nothing is coloured or moved.",
}


class Page:
    """One command's name, help and parameters."""

    def __init__(self, name: str, command: click.Command, parent: click.Context | None = None) -> None:
        self.name = name
        context = click.Context(command, parent, info_name=name, **command.context_settings)
        self.usage = [name, *command.collect_usage_pieces(context)]
        self.paragraphs = [_joined(part) for part in inspect.cleandoc(command.help or "").split("\n\n") if part.strip()]
        records = [param.get_help_record(context) for param in command.get_params(context)]
        self.options = [(record[0], _joined(record[1])) for record in records if record and record[1]]


def _joined(text: str) -> str:
    """A paragraph in one line; lines after click's mark stay as they are."""
    text = text.strip("\n")
    return text.removeprefix("\b\n") if text.startswith("\b\n") else " ".join(text.split())


def commands() -> Iterator[Page]:
    """Every command, in the order of the help, with the commands of a group after it."""
    yield from _commands_of(group, click.Context(group, info_name="ggtok", **group.context_settings))


def _commands_of(parent: click.Group, context: click.Context) -> Iterator[Page]:
    for name in OURS if parent is group else parent.list_commands(context):
        command = parent.get_command(context, name)
        assert command is not None
        if command.hidden:
            continue
        yield Page(f"{context.command_path} {name}", command, context)
        if isinstance(command, click.Group):
            yield from _commands_of(command, click.Context(command, context, name, **command.context_settings))


# Markdown


def pages() -> dict[str, str]:
    """The reference by groups of commands, and the exit codes and variables.

    Raises:
        KeyError: A command is in no group.
    """
    found: dict[str, list[str]] = {}
    for page in commands():
        found.setdefault(page.name.split()[1], []).append(_reference(page))
    parts = {name: "\n".join("\n".join(found.pop(command)) for command in group) for name, group in GROUPS.items()}
    if found:
        raise KeyError(f"commands that are in no group: {', '.join(found)}")
    tables = (("Exit codes", "code", EXIT_CODES), ("Environment variables", "name", VARIABLES))
    parts["cli"] = "\n".join(
        f"## {title}\n\n" + _table(head, ((f"`{name}`", text) for name, text in rows.items()))
        for title, head, rows in tables
    )
    return parts


def _reference(page: Page) -> str:
    options = _table("option", ((f"`{_cell(names)}`", _words(_cell(help))) for names, help in page.options))
    usage = f"## {page.name}\n\n```text\n{' '.join(page.usage)}\n```\n"
    return "\n".join([usage, *map(_block, page.paragraphs), options])


def _table(head: str, rows: Iterable[tuple[str, str]]) -> str:
    return f"| {head} | meaning |\n|---|---|\n" + "".join(f"| {name} | {text} |\n" for name, text in rows)


def _block(paragraph: str) -> str:
    return f"```text\n{paragraph}\n```\n" if "\n" in paragraph else _words(paragraph) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _words(text: str) -> str:
    """Text with what is typed as code."""
    parts = [re.sub(r"([<>*_])", r"\\\1", part) for part in CODE.split(text)]
    typed = [f"`{code}`" for code in CODE.findall(text)]
    return "".join(part + code for part, code in zip(parts, [*typed, ""], strict=True))


# roff


def manual() -> str:
    """ggtok.1 as it should be."""
    summary = inspect.cleandoc(group.help or "").split("\n\n")[0]
    lines = [
        '.\\" Written by python scripts/generate_cli.py. DO NOT EDIT.',
        '.TH GGTOK 1 "" ggtok "User Commands"',
        ".SH NAME",
        f"ggtok \\- {_roff(_joined(summary).rstrip('.'))}",
        ".SH SYNOPSIS",
        ".B ggtok",
        ".I COMMAND",
        "[\\fIOPTION\\fR]... [\\fIARGUMENT\\fR]...",
        ".SH DESCRIPTION",
    ]
    whole = Page("ggtok", group)
    lines += _paragraphs([INTRODUCTION]) + _options(whole.options) + [".SH COMMANDS"]
    for page in commands():
        lines += [f".SS {_roff(' '.join(page.usage))}", *_paragraphs(page.paragraphs), *_options(page.options)]
    for title, rows in (('"EXIT STATUS"', EXIT_CODES), ("ENVIRONMENT", VARIABLES)):
        lines += [f".SH {title}", *_options((name, text.replace("`", "")) for name, text in rows.items())]
    lines += [".SH SEE ALSO", "The pages of the documentation: https://ggtok.readthedocs.io"]
    return "\n".join(lines) + "\n"


def _paragraphs(paragraphs: list[str]) -> list[str]:
    lines = []
    for paragraph in paragraphs:
        if "\n" in paragraph:
            lines += [".PP", ".nf", ".RS 4", *map(_roff, paragraph.split("\n")), ".RE", ".fi"]
        else:
            lines += [".PP", _roff(paragraph)]
    return lines


def _options(options: object) -> list[str]:
    return [line for names, text in options for line in (".TP", f".B {_tag(names)}", _roff(text) or "\\&")]  # type: ignore[attr-defined]


def _tag(names: str) -> str:
    """An option's names, which may break after each of its choices."""
    return _roff(names).replace("|", "|\\:")


def _roff(text: str) -> str:
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + text if text.startswith((".", "'")) else text


def main() -> int:
    """Writes or checks."""
    if "--check" not in sys.argv[1:]:
        MANUAL.write_text(manual(), encoding="utf-8")
    elif MANUAL.read_text(encoding="utf-8") != manual():
        print(f"{MANUAL.relative_to(ROOT)} is not current: run python scripts/generate_cli.py", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
