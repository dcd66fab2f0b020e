"""The command `ggtok edit`: a GGUF file's tokenizer edited in a new file, with its tensors unchanged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from ..._convert.edits import Edits, key_types
from ..._edit import Edited
from ..._keys import Type
from ..._stores.find import located
from ..._tokenizer import Tokenizer
from ...errors import GgtokError
from ..completion import MODEL
from ..files import OUTPUT
from ..options import KINDS, as_json, name_and_value, typed_value
from ..output import finite, print_json, printable
from ..progress import progress

SHOWN = 60
"""Characters of a value that are printed."""


@click.command(short_help="Edit a file's tokenizer, and keep its tensors.")
@click.argument("file", type=MODEL)
@click.option("-o", "--output", type=OUTPUT, metavar="PATH", help="The GGUF file to write.")
@click.option(
    "--set",
    "assignments",
    multiple=True,
    metavar="KEY=VALUE",
    help="Set a key. One that is new and that ggtok does not know takes KEY=TYPE:VALUE; repeatable.",
)
@click.option("--set-template", type=click.Path(), metavar="FILE", help="Set the chat template to a file's text.")
@click.option("--remove", multiple=True, metavar="KEY", help="Remove a key; repeatable.")
@click.option("--add-token", multiple=True, metavar="TEXT", help="Add a token that is read in every text; repeatable.")
@click.option(
    "--add-control-token", multiple=True, metavar="TEXT", help="Add a token read with --parse-special; repeatable."
)
@click.option("--special", multiple=True, metavar="NAME=TOKEN", help="Set a special token: eos='<|end|>'; repeatable.")
@click.option("--dry-run", is_flag=True, help="Show what would change, and write nothing.")
@click.option("--force", is_flag=True, help="Replace PATH even if it is a GGUF file with tensors.")
@as_json
def command(
    file: str,
    output: str | None,
    assignments: tuple[str, ...],
    set_template: str | None,
    remove: tuple[str, ...],
    add_token: tuple[str, ...],
    add_control_token: tuple[str, ...],
    special: tuple[str, ...],
    dry_run: bool,
    force: bool,
    as_json: bool,
) -> None:
    """Write a GGUF file that is FILE with other metadata: its tensors are copied as they are. PATH appears when it is
    complete and its tokenizer opens; FILE is never changed."""
    if output is None and not dry_run:
        raise click.ClickException("-o names the file to write; --dry-run writes none")
    file = located(file)
    edits = Edits(
        add_tokens=add_token,
        add_control_tokens=add_control_token,
        special=dict(name_and_value("--special", each) for each in special),
        chat_template=None if set_template is None else _text(set_template),
        metadata=_metadata(file, assignments, remove),
    )
    edited = Edited(file, edits)
    changes = list(edited.changes())
    for change in changes:
        if as_json:
            print_json(**finite(change._asdict()))
        else:
            print(f"{printable(change.key)}: {_shown(change.old)} -> {_shown(change.new)}")
    if not changes:
        raise click.ClickException(f"{file}: nothing to change: give --set, --remove or another edit")
    if dry_run or output is None:
        return
    with progress(edited.size, "copying") as bar:
        tokenizer = edited.write(output, overwrite=force, progress=bar)
    if not as_json:
        print(f"{printable(output)}: {len(tokenizer.vocab)} tokens")


def _metadata(file: str, assignments: tuple[str, ...], removed: tuple[str, ...]) -> dict[str, Any]:
    """The values of `--set` in the types of their keys, and `None` for each key of `--remove`."""
    tokenizer = Tokenizer._opened(file)
    types = {key: Type(kind) for key, (kind, _) in tokenizer._metadata.entries().items()} | key_types(tokenizer)
    values: dict[str, Any] = {}
    for key, text in [*(name_and_value("--set", each) for each in assignments), *((key, None) for key in removed)]:
        if key in values:
            raise click.ClickException(f"{key} is given twice")
        values[key] = None if text is None else _value(key, text, types.get(key))
    return values


def _value(key: str, text: str, kind: Type | None) -> Any:
    match kind:
        case None:
            name, colon, text = text.partition(":")
            if name not in KINDS or not colon:
                raise click.ClickException(
                    f"--set: the file has no key {key!r}: a new one is set with a type, KEY=TYPE:VALUE, "
                    f"where TYPE is {', '.join(KINDS)}"
                )
            return typed_value("--set", key, name, text)
        case Type.STRING:
            return text
        case Type.BOOL:
            return typed_value("--set", key, "bool", text)
        case Type.FLOAT32 | Type.FLOAT64:
            return typed_value("--set", key, "float", text)
        case Type.ARRAY:
            raise click.ClickException(f"--set: {key} is an array: only single values can be set")
    return typed_value("--set", key, "int", text)


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise GgtokError(f"{path} is not UTF-8: byte {error.start}") from None


def _shown(value: object) -> str:
    """A value on one line, not too long."""
    if value is None:
        return "none"
    text = json.dumps(value, ensure_ascii=False) if isinstance(value, str) else str(value)
    return printable(text if len(text) <= SHOWN else f"{text[:SHOWN]}… ({len(str(value))} characters)")
