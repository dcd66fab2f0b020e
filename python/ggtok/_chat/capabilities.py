"""What a template can take, found out by rendering it with short conversations that hold marks.

Source: llama.cpp `common/jinja/caps.cpp`, which records in its own runtime what a template looks at. Here the marks
that come out decide. Complexity: four short renderings, once for each of the last templates used.

Deviations: (1) a part of content counts as taken if its mark is written, and not as the notation of a list; llama.cpp
asks whether the template goes through the list. (2) A system message counts as taken if its mark is written; llama.cpp
asks whether it is looked at.
"""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple

from ..errors import ChatTemplateError
from .limits import LimitError
from .rendering import Request, Source

MARK = "7mark7"
"""A word that no template writes by itself."""

NOTATIONS = ("'type'", '"type"', "&#39;type")
"""How the type of a part looks if a template writes the whole list."""

USER = {"role": "user", "content": "User message"}
TOOL = {
    "type": "function",
    "function": {
        "name": "tool1",
        "description": "Tool description",
        "parameters": {
            "type": "object",
            "properties": {"arg": {"type": "string", "description": "Arg description"}},
            "required": ["arg"],
        },
    },
}


class Capabilities(NamedTuple):
    """What a template can take."""

    string_content: bool
    typed_content: bool
    """Lists of parts, such as `{"type": "text", "text": ...}`."""
    system_role: bool
    object_arguments: bool
    """Arguments of tool calls as mappings, rather than as JSON in a string."""


@lru_cache(maxsize=32)
def capabilities(source: Source) -> Capabilities:
    """Renders a template to find out what it takes. One that exceeds a limit is taken for one that takes strings."""
    try:
        return _found(source)
    except LimitError:
        return Capabilities(string_content=True, typed_content=False, system_role=True, object_arguments=False)


def _found(source: Source) -> Capabilities:
    def writes(content: Any) -> str | None:
        return _rendered(source, [{"role": "user", "content": content}])

    string, typed = writes(MARK), writes([{"type": "text", "text": MARK}])
    takes_string = string is not None and MARK in string
    takes_typed = typed is not None and MARK in typed and not any(each in typed for each in NOTATIONS)
    system = _rendered(source, [{"role": "system", "content": MARK}, USER])
    called = _rendered(source, _tool_call({"arg": MARK}), [TOOL])
    return Capabilities(
        string_content=takes_string or not takes_typed,
        typed_content=takes_typed,
        system_role=system is not None and MARK in system,
        object_arguments=called is not None and MARK in called and f"'arg': '{MARK}'" not in called,
    )


def _tool_call(arguments: Any) -> list[dict[str, Any]]:
    call = {"id": "call00001", "type": "function", "function": {"name": "tool1", "arguments": arguments}}
    return [
        USER,
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "content": "Tool response", "tool_call_id": "call00001"},
        {"role": "assistant", "content": "The tool response was 'tool response'"},
        USER,
    ]


def _rendered(source: Source, messages: list[dict[str, Any]], tools: list[Any] | None = None) -> str | None:
    """The text, or `None` if the template refuses."""
    special = {"bos_token": "", "eos_token": ""}
    chat = Request(messages, tools or [], None, {"add_generation_prompt": True}, special, datetime(2024, 7, 26))
    try:
        return chat.render(source)
    except ChatTemplateError as error:
        if isinstance(error.__cause__, LimitError):
            raise error.__cause__ from None
        return None
