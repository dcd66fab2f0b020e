"""The shapes of rows that hold conversations: which fields each has, and how their values become messages.

A new shape is a function and a row of `SHAPES`. A text stands for one message, and a text that is the JSON of a list of
messages for those. What is wrong with a message, the template's rules find, except what would become an empty turn.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import suppress
from itertools import takewhile
from typing import Any, NamedTuple

SHAREGPT = {"human": "user", "gpt": "assistant", "function_response": "tool", "observation": "tool"}
"""The roles that have another name there."""

PAIR = "preference"
"""The shape whose rows are pairs of conversations."""

LIST = re.compile(r"\s*\[\s*\{")
"""How the JSON of a list of messages begins."""


class Shape(NamedTuple):
    """A shape of rows."""

    fields: tuple[str, ...]
    """Their usual names."""
    messages: Callable[..., list[Any]]
    """Makes messages of their values, of a pair several lists. Raises `ValueError` if they are none."""
    optional: tuple[int, ...] = ()
    """The places of those that may be null. If these are the last ones, they need not be named."""


def conversations_of(shape: str, names: tuple[str, ...], values: tuple[Any, ...]) -> list[list[Any]]:
    """The messages of a row; of a pair those of the prompt, and of the prompt with each answer.

    Raises `ValueError` with the reason if there are none.
    """
    _, make, optional = SHAPES[shape]
    for place, value in enumerate(values):
        if value is None and place not in optional:
            raise ValueError(f"{names[place]!r} is missing or null")
    found = make(*values)
    conversations = found if shape == PAIR else [found]
    if not all(conversations):
        raise ValueError("there are no messages")
    return [[_message(number, message) for number, message in enumerate(messages)] for messages in conversations]


def listed(value: Any, name: str, expected: str) -> Any:
    """A list, from JSON text if need be. Raises `ValueError` if that holds something else."""
    if not isinstance(value, (str, bytes)):
        return value
    try:
        value = json.loads(value)
    except RecursionError:
        raise ValueError(f"the JSON of {name} is nested too deeply") from None
    except ValueError as error:
        raise ValueError(f"{name} is not JSON: {error}") from None
    if not isinstance(value, list):
        kind = {dict: "an object", str: "a string", bool: "a boolean", type(None): "null"}.get(type(value), "a number")
        raise ValueError(f"{expected}, not {kind}")
    return value


def _message(number: int, message: Any) -> Any:
    """A message by OpenAI's names. What is wrong with it otherwise is for the template's rules."""
    if not isinstance(message, dict):
        return message
    if "from" in message and "role" not in message:
        rest = dict(message)
        role, content = rest.pop("from"), rest.pop("value", None)
        message = {"role": SHAREGPT.get(str(role), role), "content": content, **rest}
    says = message.get("content") not in (None, []) or message.get("reasoning_content") or message.get("tool_calls")
    if "role" in message and not (says and message["role"] != ""):
        lacked = "a role" if message["role"] == "" else "content"
        raise ValueError(f"messages[{number}]: a message must have {lacked}")
    return message


def _turn(role: str, value: Any) -> list[Any]:
    """The messages that a value is: one with this role if it is a text."""
    value = value.decode() if isinstance(value, bytes) else value
    with suppress(ValueError, RecursionError):
        found = json.loads(value) if isinstance(value, str) and LIST.match(value) else value
        if isinstance(found, list) and all(isinstance(each, dict) and "role" in each for each in found):
            return found
    return [{"role": role, "content": value}]


def _messages(value: Any) -> list[Any]:
    return list(listed(value, "the conversation", "a conversation must be a list of messages"))


def _completion(prompt: Any, completion: Any) -> list[Any]:
    return [*_turn("user", prompt), *_turn("assistant", completion)]


def _alpaca(instruction: Any, input: Any, output: Any) -> list[Any]:
    texts = [each.decode() if isinstance(each, bytes) else each for each in (instruction, input or "", output)]
    if not all(isinstance(each, str) for each in texts):
        raise ValueError("an instruction, its input and output must be texts")
    asked = "\n\n".join(filter(None, texts[:2]))
    return [{"role": "user", "content": asked}, {"role": "assistant", "content": texts[2]}]


def _preference(chosen: Any, rejected: Any, prompt: Any = None) -> list[list[Any]]:
    both = [_turn("assistant", chosen), _turn("assistant", rejected)]
    if prompt is not None and all(map(_is_answer, both)):
        asked = _turn("user", prompt)
        both = [asked + each for each in both]
    else:  # both are whole conversations
        asked = [one for one, other in takewhile(lambda pair: pair[0] == pair[1], zip(*both, strict=False))]
    if not asked or not all(_is_answer(each[len(asked) :]) for each in both):
        raise ValueError("'chosen' and 'rejected' must be two answers, to a prompt or to the messages they begin with")
    return [asked, *both]


def _is_answer(messages: list[Any]) -> bool:
    return bool(messages) and isinstance(messages[0], dict) and messages[0].get("role") == "assistant"


SHAPES = {
    "messages": Shape(("messages",), _messages),
    "sharegpt": Shape(("conversations",), _messages),
    "completion": Shape(("prompt", "completion"), _completion),
    "alpaca": Shape(("instruction", "input", "output"), _alpaca, optional=(1,)),
    PAIR: Shape(("chosen", "rejected", "prompt"), _preference, optional=(2,)),
}
"""`messages` reads the names of `sharegpt` too: they differ in the name of the field alone."""
