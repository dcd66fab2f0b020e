"""The command `ggtok chat`: a conversation as the file's chat template writes it, as ids, or their number."""

from __future__ import annotations

import json
import os
import warnings
from typing import Any

import click

from ...errors import GgtokError
from ..inputs import characters, kind, parse_json, sources
from ..options import Model, as_json, name_and_value, takes_model
from ..output import lossless, print_json, print_text

FIXED = ("self", "messages", "return_spans", "add_special")
"""Arguments of `Tokenizer.encode_chat` that are not variables."""


@click.command(short_help="Write a conversation as the model's chat template does.")
@click.argument("file", required=False, type=click.Path(), metavar="[FILE]")
@click.option("-p", "--text", metavar="TEXT", help="A user's message itself, in place of FILE.")
@click.option("-s", "--system", metavar="TEXT", help="A system message before the others.")
@click.option("--tools", metavar="FILE", type=click.Path(), help="A JSON list of tools.")
@click.option("--no-generation-prompt", is_flag=True, help="Do not end with the beginning of an assistant's message.")
@click.option("--continue", "continues", is_flag=True, help="End inside the last message, for the model to continue.")
@click.option("--template", metavar="NAME", help="Which of the model's templates; default: its default one.")
@click.option("--template-file", metavar="FILE", type=click.Path(), help="A Jinja template in place of the model's.")
@click.option("--set", "settings", metavar="NAME=VALUE", multiple=True, help="A variable of the template; repeatable.")
@click.option("--raw", is_flag=True, help="Give the template the messages as they are, not as llama-server would.")
@click.option("--ids", is_flag=True, help="Write the ids.")
@click.option("--count", is_flag=True, help="Write the number of ids.")
@click.option("--view", is_flag=True, help="Show the tokens.")
@takes_model
@as_json
def command(
    file: str | None,
    text: str | None,
    system: str | None,
    tools: str | None,
    no_generation_prompt: bool,
    continues: bool,
    template: str | None,
    template_file: str | None,
    settings: tuple[str, ...],
    raw: bool,
    ids: bool,
    count: bool,
    view: bool,
    model: Model,
    as_json: bool,
) -> None:
    """Write a conversation as the model's chat template does, or as ids.

    The messages are JSON in FILE or standard input: a list of objects with "role" and "content", or an object with
    "messages" and perhaps "tools". Ids are never control tokens that a message only quotes.
    """
    if ids + count + view + as_json > 1:
        raise click.ClickException("--ids, --count, --view and --json: give one of them")
    if file is not None and text is not None:
        raise click.ClickException("a file and -p: give one of the two")
    messages, listed = ([], None) if text is not None else _messages(file)
    if text is not None:
        messages.append({"role": "user", "content": characters(os.fsencode(text), "-p")})
    if system is not None:
        messages.insert(0, {"role": "system", "content": characters(os.fsencode(system), "--system")})
    if tools is not None:
        where, listed = _json(tools, "a JSON list of tools is expected")
        if not isinstance(listed, list):
            raise click.ClickException(f"{where}: expected a list of tools, found {kind(listed)}")
    values = dict(map(_setting, settings))
    if template_file is not None:
        [source] = sources([template_file], [], "a Jinja template is expected")
        values["template_text"] = characters(source.read(), source.name)
    tokenizer = model.open()
    arguments: dict[str, Any] = values | {
        "tools": listed,
        "template": template,
        "add_generation_prompt": not (no_generation_prompt or continues),
        "continue_final_message": continues,
        "raw": raw,
    }
    try:
        if count:
            number = tokenizer.count_messages(messages, **arguments)
        elif ids or view or as_json:
            encoded = tokenizer.encode_chat(messages, **arguments)
        if not (count or ids or view):
            with warnings.catch_warnings():
                if as_json:
                    warnings.simplefilter("ignore")  # encode_chat has shown them
                prompt = tokenizer.apply_chat_template(messages, **arguments)
    except GgtokError as error:
        message = str(error).replace("pass template_text=", "give one with --template-file")
        raise click.ClickException(f"{model.name}: {message}") from None
    if as_json:
        pieces = [lossless(tokenizer.piece(id)) for id in encoded]
        print_json(prompt=prompt, ids=encoded, pieces=pieces, **model.json)
    elif ids:
        print(" ".join(map(str, encoded)) + model.mark)
    elif count:
        print(f"{number}{model.mark}")
    elif view:
        from ..view import View, console

        tokens = View(tokenizer, console())
        tokens.add(encoded)
        tokens.end(total=True, mark=model.mark)
    else:
        print_text(prompt)


def _messages(file: str | None) -> tuple[list[Any], Any]:
    """The messages and tools of a file."""
    where, value = _json(file or "-", "a user's message itself is given with -p")
    tools = value.get("tools") if isinstance(value, dict) else None
    messages = value.get("messages") if isinstance(value, dict) else value
    if not isinstance(messages, list):
        raise click.ClickException(
            f'{where}: expected a list of messages, or an object with "messages", found {kind(value)}'
        )
    for number, message in enumerate(messages):
        if not isinstance(message, dict):
            raise click.ClickException(f"{where}: message {number} must be an object, not {kind(message)}")
    return messages, tools


def _json(path: str, hint: str) -> tuple[str, Any]:
    """The name of a file, and its value."""
    [source] = sources([path], [], hint)
    return source.name, parse_json(source.read(), source.name)


def _setting(written: str) -> tuple[str, Any]:
    """A variable: JSON, or else a text."""
    name, value = name_and_value("--set", written)
    if name in FIXED:
        raise click.ClickException(f"--set: {name!r} is not a variable of a template")
    try:
        return name, json.loads(value)
    except (ValueError, RecursionError):
        return name, value
