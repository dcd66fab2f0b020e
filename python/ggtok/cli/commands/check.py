"""The command `ggtok check`: problems with the tokenizers of files."""

from __future__ import annotations

import json
import os
import shlex
import sys
import warnings
from collections import Counter

import click

from ... import Tokenizer
from ...errors import GgtokError
from ...lab.convert.edits import Edits
from ...lab.diagnosis import check_file, repair_of
from ...lab.edit import Edited
from ...lab.releases import parse
from ...stores.find import is_url, located
from ...tokenizer.findings import Finding, TokenizerWarning
from ..options import OUTPUT, Model, as_json, takes_models
from ..output import lossless, print_json, printable, to_stderr, with_options
from ..table import print_listed
from .edit import write

SEVERITIES = ("error", "warning", "note")
"""The worst first."""

SIGNS = {"error": "✗", "warning": "!", "note": "!", "none": "✓"}

LONGEST = 2000
"""Characters of a command that is printed."""


@click.command(short_help="Check files for tokenizer problems.")
@click.option(
    "--llama-cpp", metavar="RELEASE", help="Also show what a llama.cpp release, such as b9538, does differently."
)
@click.option("--fix", type=OUTPUT, metavar="PATH", help="Write a mended copy of the file to PATH.")
@click.option("--dry-run", is_flag=True, help="With --fix: show what would change, and write nothing.")
@takes_models
@as_json
def command(models: list[Model], as_json: bool, llama_cpp: str | None, fix: str | None, dry_run: bool) -> int:
    """Check GGUF files for tokenizer problems. Each finding has a severity, a code, and what to do. If a file cannot be
    opened, the first finding says why. The last line is the ggtok edit command that mends what can be mended; --fix
    does the same.

    The exit code is 1 if any finding is an error, which means wrong ids or failing calls. It is 0 if there are only
    warnings (ids are probably wrong, or calls will probably fail) and notes (something may surprise you), and 2 if a
    file cannot be read; the others are still checked. With --fix, only the errors that are left count. For several
    files, the last line counts them by their worst finding.
    """
    if llama_cpp is not None:
        parse(llama_cpp)  # also if no file opens
    if fix is not None:
        [model, *others] = models
        if others or model.path is None or model.overrides:
            raise click.ClickException("--fix takes one file, without --override-kv")
        path = located(model.path)
        return write(Edited(path, repair_of(check_file(path))), None if dry_run else fix, as_json)
    worst: Counter[str] = Counter()
    """How many files have findings of this severity, and none that is worse."""
    for model in models:
        name = str(model.path or model.builtin)
        file = lossless(os.fsencode(name))
        try:
            findings = _findings(model, llama_cpp)
        except (GgtokError, OSError) as error:
            message = str(error) if isinstance(error, GgtokError) else f"{name}: {error.strerror}"
            to_stderr(f"error: {message}")
            if as_json:
                print_json(file=file, error=message)
            worst["unread"] += 1
            continue
        severities = {finding.severity for finding in findings}
        found = next((severity for severity in SEVERITIES if severity in severities), "none")
        worst[found] += 1
        if as_json:
            print_json(file=file, findings=[finding._asdict() for finding in findings])
            continue
        lines = [with_options(str(finding)) for finding in findings] or ["no problems"]
        if any(repair := repair_of(findings)):
            lines.append(f"mend it with: {_command(name, repair)}")
        if not sys.stdout.isatty():
            print("\n".join(f"{printable(name)}: {printable(line)}" for line in lines))
        elif findings:
            print_listed(f"{SIGNS[found]} {name}", lines)
        else:
            print_listed(f"{SIGNS[found]} {name}: {lines[0]}", [])
    if len(models) > 1 and not as_json:
        parts = [f"{worst[severity]} with {severity}s" for severity in SEVERITIES if worst[severity]]
        parts += [f"{worst['unread']} not read"] if worst["unread"] else []
        print(", ".join([f"{len(models)} files", *(parts or ["no problems"])]))
    return 2 if worst["unread"] else int(worst["error"] > 0)


def _findings(model: Model, llama_cpp: str | None) -> list[Finding]:
    """The findings about a file, even if it does not open."""
    try:
        return opened(model).check(llama_cpp=llama_cpp)
    except GgtokError as error:
        if isinstance(error, OSError) or model.path is None or is_url(model.path):
            raise
        return check_file(located(model.path), overrides=model.overrides, llama_cpp=llama_cpp)


def _command(name: str, repair: Edits) -> str:
    """The command that mends a file, unless it is too long to be read."""
    arguments: list[str] = []
    for key, value in (repair.metadata or {}).items():
        written = value if isinstance(value, str) else json.dumps(value)
        arguments += ["--remove", key] if value is None else ["--set", f"{key}={written}"]
    for change in repair.tokens:
        for option, field in (("--rename", "text"), ("--retype", "type")):
            arguments += [option, f"{change['id']}={change[field]}"] if field in change else []
    command = shlex.join(["ggtok", "edit", name, "-o", "PATH", *arguments])
    return command if len(command) <= LONGEST else shlex.join(["ggtok", "check", name, "--fix", "PATH"])


def opened(model: Model) -> Tokenizer:
    """The tokenizer, without the warnings that repeat what its check finds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TokenizerWarning)
        return model.open()
