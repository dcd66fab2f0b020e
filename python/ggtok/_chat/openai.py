"""Conversations in the shape of OpenAI's API, given to a template as llama-server gives them.

1. Content that is `None` or missing is empty. Lists of text parts are joined by line ends if the template takes strings
   only; a string is a list of one part if it takes lists only.
2. The role `developer` is `system`, and a system message that the template does not take is joined with the next one.
3. Arguments of tool calls that are JSON in a string are read if the template takes mappings. Otherwise mappings are
   written as JSON.
4. Tools have a name, a description and parameters.
5. The variables `enable_thinking`, `date_string` and `datetime` are set, and those without a value are undefined.

Source: llama.cpp `common/chat.cpp`, `common_chat_msgs_parse_oaicompat`, `common_chat_templates_apply_jinja` and the
functions of its namespace `workaround`. Complexity: O(n), besides `capabilities`.

Deviations: (1) keys of messages that OpenAI's API does not have are kept. (2) A tool of another shape stays as it is.
"""

from __future__ import annotations

import json
from typing import Any

from ..errors import GgtokError
from .capabilities import Capabilities, capabilities
from .rendering import Request, Source

KEEPS_DEVELOPER = "<|channel|>"
"""What the templates of gpt-oss contain, which know the role `developer`."""


def adapted(request: Request, source: Source) -> Request:
    """A conversation as a template gets it from llama-server.

    Raises `GgtokError` if the arguments of a tool call are not JSON, and the template takes mappings; and what reading
    the messages raises.
    """
    can = capabilities(source)
    rows = [message(row, can, source, index) for index, row in enumerate(request.plain_messages())]
    return settings(request)._replace(messages=joined(rows, can))


def settings(request: Request) -> Request:
    """The same for everything except the messages."""
    dates = {"date_string": request.now.strftime("%d %b %Y"), "datetime": request.now.strftime("%b %d %Y")}
    variables = {"enable_thinking": True, **dates, **request.variables}
    return request._replace(
        tools=[_tool(tool) for tool in request.tools] if request.tools else None,
        variables={
            name: value for name, value in variables.items() if (name, value) != ("add_generation_prompt", False)
        },
        undefined=("tools", "documents"),
    )


def message(row: dict[str, Any], can: Capabilities, source: Source, index: int) -> dict[str, Any]:
    """The same for the message with this number. Raises `GgtokError` as `adapted`."""
    result = _message(row, can, index)
    if result.get("role") == "developer" and KEEPS_DEVELOPER not in source.text:
        result["role"] = "system"
    return result


def joined(rows: list[dict[str, Any]], can: Capabilities) -> list[dict[str, Any]]:
    """Messages from `message`, the first one joined with the next if the template takes no system message."""
    if can.system_role or len(rows) < 2 or rows[0].get("role") != "system":
        return rows
    first, second, *rest = rows
    return [second | {"content": _joined(first["content"], second["content"])}, *rest]


def _message(message: dict[str, Any], can: Capabilities, index: int) -> dict[str, Any]:
    message = {"role": message.get("role"), "content": _content(message.get("content"), can)} | {
        key: value for key, value in message.items() if key not in ("role", "content")
    }
    if message["role"] is None:
        del message["role"]
    calls = message.get("tool_calls")
    if isinstance(calls, (list, tuple)):
        message["tool_calls"] = [
            _call(call, can, f"messages[{index}]['tool_calls'][{at}]") for at, call in enumerate(calls)
        ]
    return message


def _content(content: Any, can: Capabilities) -> Any:
    if content is None:
        content = ""
    if isinstance(content, (list, tuple)) and not can.typed_content:
        texts = [_text(part) for part in content]
        return "\n".join(texts) if None not in texts else content  # type: ignore[arg-type]
    if isinstance(content, str) and not can.string_content:
        return [{"type": "text", "text": content}]
    return content


def _text(part: Any) -> str | None:
    text = part.get("text") if isinstance(part, dict) and part.get("type") == "text" else None
    return text if isinstance(text, str) else None


def _joined(first: Any, second: Any) -> Any:
    if isinstance(first, str) and isinstance(second, str):
        return f"{first}\n{second}"
    return [
        part
        for each in (first, second)
        for part in ([{"type": "text", "text": each}] if isinstance(each, str) else each)
    ]


def _call(call: Any, can: Capabilities, where: str) -> Any:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict) or "arguments" not in function:
        return call
    arguments = function["arguments"]
    if isinstance(arguments, str) and can.object_arguments:
        try:
            arguments = json.loads(arguments)
        except ValueError as error:
            raise GgtokError(f"{where}['function']['arguments'] is not JSON: {error}") from None
    elif not isinstance(arguments, str) and not can.object_arguments:
        arguments = json.dumps(arguments, ensure_ascii=False, separators=(",", ":"))
    return call | {"function": function | {"arguments": arguments}}


def _tool(tool: Any) -> Any:
    function = tool.get("function") if isinstance(tool, dict) and tool.get("type") == "function" else None
    if not isinstance(function, dict) or "name" not in function:
        return tool
    defaults = {"description": "", "parameters": {}}
    return {
        "type": "function",
        "function": {"name": function["name"]} | {k: function.get(k, v) for k, v in defaults.items()},
    }
