"""The command `ggtok chat`: a conversation as the file's chat template writes it, as ids, or their number."""

from __future__ import annotations

import os
from typing import Any

import click

from ...errors import GgtokError
from ..inputs import characters, kind, parse_json, sources, takes_template
from ..options import Model, as_json, takes_model
from ..output import lossless, print_json, print_text


@click.command(short_help="Write a conversation as the model's chat template does.")
@click.argument("file", required=False, type=click.Path(), metavar="[FILE]")
@click.option("-p", "--text", metavar="TEXT", help="A user's message, instead of FILE.")
@click.option("-s", "--system", metavar="TEXT", help="A system message before the others.")
@click.option("--tools", metavar="FILE", type=click.Path(), help="A JSON list of tools.")
@click.option("--no-generation-prompt", is_flag=True, help="Do not end with the beginning of an assistant's message.")
@click.option("--continue", "continues", is_flag=True, help="End inside the last message, for the model to continue.")
@takes_template
@click.option("--raw", is_flag=True, help="Render the messages unchanged, with jinja2, as transformers does.")
@click.option("--trust", is_flag=True, help="Read control tokens in all of the text, as llama-server does.")
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
    variables: dict[str, Any],
    trust: bool,
    ids: bool,
    count: bool,
    view: bool,
    model: Model,
    as_json: bool,
    **template: Any,
) -> None:
    """Write a conversation as the model's chat template does, or as ids.

    The messages are JSON in FILE or standard input: a list of objects with "role" and "content", or the body of a
    request to /v1/chat/completions. Control tokens that a message quotes stay text, except with --trust.
    """
    if ids + count + view + as_json > 1:
        raise click.ClickException("--ids, --count, --view and --json: give only one")
    if file is not None and text is not None:
        raise click.ClickException("a file and -p: give only one")
    tokenizer = model.open()
    body = {"messages": []} if text is not None else _body(file)
    messages = body["messages"]
    if text is not None:
        messages.append({"role": "user", "content": characters(os.fsencode(text), "-p")})
    if system is not None:
        messages.insert(0, {"role": "system", "content": characters(os.fsencode(system), "--system")})
    if tools is not None:
        where, body["tools"] = _json(tools, "a JSON list of tools is expected")
        if not isinstance(body["tools"], list):
            raise click.ClickException(f"{where}: expected a list of tools, found {kind(body['tools'])}")
    if variables:
        body["chat_template_kwargs"] = (body.get("chat_template_kwargs") or {}) | variables
    if no_generation_prompt or continues:
        body["add_generation_prompt"] = False
    if continues:
        body["continue_final_message"] = True
    try:
        if count:
            number = tokenizer.count_messages(body, trust=trust, **template)
        elif ids or view or as_json:
            encoded = tokenizer.encode_chat(body, trust=trust, **template)
        if not (count or ids or view):
            # `encode_chat` has shown the warnings.
            prompt = tokenizer.apply_chat_template(body, warnings=[] if as_json else None, **template)
    except GgtokError as error:
        raise click.ClickException(f"{model.name}: {error}") from None
    if as_json:
        pieces = [lossless(tokenizer.piece(id)) for id in encoded]
        print_json(prompt=prompt, ids=encoded, pieces=pieces)
    elif ids:
        print(" ".join(map(str, encoded)))
    elif count:
        print(number)
    elif view:
        from ..view import View, screen

        tokens = View(tokenizer, screen())
        tokens.add(encoded)
        tokens.end(total=True)
    else:
        print_text(prompt)


def _body(file: str | None) -> dict[str, Any]:
    """The request in a file."""
    where, value = _json(file or "-", "a user's message itself is given with -p")
    body = value if isinstance(value, dict) else {"messages": value}
    messages = body.get("messages")
    if not isinstance(messages, list):
        raise click.ClickException(
            f'{where}: expected a list of messages, or an object with "messages", found {kind(value)}'
        )
    for number, message in enumerate(messages):
        if not isinstance(message, dict):
            raise click.ClickException(f"{where}: message {number} must be an object, not {kind(message)}")
    return body


def _json(path: str, hint: str) -> tuple[str, Any]:
    """The name of a file, and its value."""
    [source] = sources([path], [], hint)
    return source.name, parse_json(source.read(), source.name)
