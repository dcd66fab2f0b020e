"""The command `ggtok edit`: a GGUF file's tokenizer edited in a new file, with its tensors unchanged."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from ... import Tokenizer
from ..._ggtok import Array, Metadata
from ...lab.convert.edits import Edits, key_types
from ...lab.edit import Edited
from ...stores.find import located
from ...tokenizer.keys import ARRAYS, GGML, Type
from ...tokenizer.metadata import read_metadata, to_bytes
from ..completion import MODEL
from ..inputs import parse_json, template_text
from ..options import KINDS, OUTPUT, as_json, name_and_value, repeatable, typed_value
from ..output import finite, print_json, printable
from ..progress import progress

SCALARS = {Type.STRING: "str", Type.BOOL: "bool", Type.FLOAT32: "float", Type.FLOAT64: "float"}
"""How values of these types are written. All others are integers."""

SHOWN = 60
"""Characters of a value that are printed."""


@click.command(short_help="Edit a file's tokenizer, and keep its tensors.")
@click.argument("file", type=MODEL)
@click.option("-o", "--output", type=OUTPUT, metavar="PATH", help="The GGUF file to write.")
@repeatable(
    *("--set", "assignments"),
    metavar="KEY=VALUE",
    help="Set a key, an array with a JSON list. A new key that ggtok does not know needs KEY=TYPE:VALUE",
)
@click.option("--set-template", type=click.Path(), metavar="FILE", help="Set the chat template to a file's text.")
@repeatable("--remove", metavar="KEY", help="Remove a key")
@repeatable("--add-token", "add_tokens", metavar="TEXT", help="Add a token that is read in every text")
@repeatable("--add-control-token", "add_control_tokens", metavar="TEXT", help="Add a token read with --parse-special")
@click.option("--special", multiple=True, metavar="NAME=TOKEN", help="Set a special token: eos='<|end|>', or eos=#7.")
@repeatable("--rename", metavar="ID=TEXT", help="Rename a token: give it another text")
@repeatable("--retype", metavar="ID=TYPE", help="Retype a token: 7=control")
@repeatable("--score", metavar="ID=NUMBER", help="Set a token's score")
@click.option("--tokens", metavar="FILE", type=click.Path(), help="Rename, retype and score the tokens of a JSON list.")
@click.option("--merges-from", metavar="MODEL", type=MODEL, help="Take the merges of another file.")
@click.option("--dry-run", is_flag=True, help="Show what would change, and write nothing.")
@click.option("--force", is_flag=True, help="Replace PATH even if it is a GGUF file with tensors.")
@as_json
def command(
    file: str,
    output: str | None,
    assignments: tuple[str, ...],
    set_template: str | None,
    remove: tuple[str, ...],
    special: tuple[str, ...],
    rename: tuple[str, ...],
    retype: tuple[str, ...],
    score: tuple[str, ...],
    tokens: str | None,
    merges_from: str | None,
    dry_run: bool,
    force: bool,
    as_json: bool,
    **added: Any,
) -> int:
    """Write a copy of FILE with other metadata and the same tensors. FILE may be broken, and is never changed. PATH
    appears once it is complete.

    A token is an id, such as #7, or a text; str:7 is the text 7. --tokens takes a list of objects such as {"id": 7,
    "text": "<begin>", "type": "control", "score": 0}, in which all but the id can be left out. Types are normal,
    unknown, control, user_defined, unused and byte.

    If PATH still has errors, they are listed, and the exit code is 1.
    """
    if output is None and not dry_run:
        raise click.ClickException("-o names the file to write; --dry-run writes none")
    file = located(file)
    metadata = read_metadata(file, flawed=True)
    edits = Edits(
        **added,
        special=_special(metadata, special),
        chat_template=None if set_template is None else template_text(set_template),
        metadata=_metadata(metadata, assignments, remove),
        tokens=_tokens(tokens, {"text": rename, "type": retype, "score": score}),
        merges_from=None if merges_from is None else located(merges_from),
    )
    if not any(edits):
        raise click.ClickException(f"{file}: nothing to change: give --set, --remove or another edit")
    return write(Edited(file, edits), None if dry_run else output, as_json, force)


def write(edited: Edited, output: str | None, as_json: bool, force: bool = False) -> int:
    """Prints the changes, writes the file if it has a name, and prints what errors are left. Returns the exit code."""
    for change in edited.changes():
        if as_json:
            print_json(**finite(change._asdict()))
        else:
            print(f"{printable(change.key)}: {_shown(change.old)} -> {_shown(change.new)}")
    if output is None:
        return 0
    with progress(edited.size, "copying") as bar:
        tokenizer = edited.write(Tokenizer, output, overwrite=force, progress=bar)
    if as_json:
        print_json(file=output, findings=[finding._asdict() for finding in edited.findings])
    else:
        state = "it does not open yet" if edited.findings else "it has no tokenizer"
        print(f"{printable(output)}: {state if tokenizer is None else f'{len(tokenizer.vocab)} tokens'}")
        for finding in edited.findings:
            print(f"{printable(output)}: {printable(str(finding))}")
    return int(bool(edited.findings))


def _special(metadata: Metadata, written: tuple[str, ...]) -> dict[str, int | str]:
    """Special tokens by their ids or texts."""
    found = metadata.get(f"{GGML}tokens") if written else None
    texts = (found.strings() or []) if isinstance(found, Array) else []
    special: dict[str, int | str] = {}
    for name, token in (name_and_value("--special", each) for each in written):
        number = token.removeprefix("#")
        is_number = number.isascii() and number.isdigit()
        if is_number and number == token and to_bytes(token) in texts:
            raise click.ClickException(
                f"--special: {name}={token} can be the token with the id {token} or the one with this text: "
                f"write {name}=#{token} or {name}=str:{token}"
            )
        special[name] = int(number) if is_number else token.removeprefix("str:")
    return special


def _tokens(path: str | None, given: Mapping[str, tuple[str, ...]]) -> list[dict[str, Any]]:
    """Changes of tokens: those of a file, and those of `--rename`, `--retype` and `--score`, together for each id."""
    rows = [] if path is None else parse_json(Path(path).read_bytes(), path)
    if not isinstance(rows, list):
        raise click.ClickException(f"{path}: expected a list of tokens")
    changes: dict[int, dict[str, Any]] = {}
    for field, assignments in given.items():
        for name, value in (name_and_value("a change of a token", each) for each in assignments):
            id = int(typed_value("a change of a token", name, "int", name))
            if field in changes.setdefault(id, {"id": id}):
                raise click.ClickException(f"the {field} of token {id} is given twice")
            changes[id][field] = typed_value("--score", name, "float", value) if field == "score" else value
    return [*rows, *changes.values()]


def _metadata(metadata: Metadata, assignments: tuple[str, ...], removed: tuple[str, ...]) -> dict[str, Any]:
    """The values of `--set` in the types of their keys, and `None` for each key of `--remove`."""
    types = {key: Type(kind) for key, (kind, _) in metadata.entries().items()} | key_types(metadata)
    types |= dict.fromkeys(ARRAYS, Type.ARRAY)
    values: dict[str, Any] = {}
    for key, text in [*(name_and_value("--set", each) for each in assignments), *((key, None) for key in removed)]:
        if key in values:
            raise click.ClickException(f"{key} is given twice")
        values[key] = None if text is None else _value(key, text, types.get(key))
    return values


def _value(key: str, text: str, kind: Type | None) -> Any:
    if kind is Type.ARRAY:
        value = parse_json(text.encode(), f"--set {key}")
        if not isinstance(value, list):
            raise click.ClickException(f"--set: {key} is an array: its value is a JSON list")
        return value
    if kind is not None:
        return typed_value("--set", key, SCALARS.get(kind, "int"), text)
    name, colon, text = text.partition(":")
    if name not in KINDS or not colon:
        raise click.ClickException(
            f"--set: the file has no key {key!r}: a new one is set with a type, KEY=TYPE:VALUE, "
            f"where TYPE is {', '.join(KINDS)}"
        )
    return typed_value("--set", key, name, text)


def _shown(value: object) -> str:
    """A value on one line, not too long."""
    if value is None:
        return "none"
    text = json.dumps(value, ensure_ascii=False) if isinstance(value, str) else str(value)
    return printable(text if len(text) <= SHOWN else f"{text[:SHOWN]}… ({len(str(value))} characters)")
