"""Conversations as transformers renders them, with jinja2. The caller vouches for the template: nothing limits it.

Source: transformers' `apply_chat_template` and `render_jinja_template`. Deviations: (1) `{% generation %}` is read and
does nothing. (2) Other media than text are given to the template as they are. Complexity: what the template does.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any

from ..errors import ChatRequestError, ChatTemplateError, DependencyError
from .plain import copied
from .templates import NamedTemplate

REASONING = ("reasoning_content", "thinking", "reasoning")
"""Names of a message's reasoning. Most templates read the first, gpt-oss's the second."""

END = "\ue000end of the last message\ue001"
"""Ends the text that is to be continued."""


@lru_cache(maxsize=64)
def _compiled(text: str) -> Any:
    import jinja2
    from jinja2.ext import Extension, loopcontrols
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    class Generation(Extension):
        tags = {"generation"}  # noqa: RUF012 (as jinja2 has it)

        def parse(self, parser: Any) -> Any:
            line = next(parser.stream).lineno
            body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
            return jinja2.nodes.Scope(body, lineno=line)

    class Environment(ImmutableSandboxedEnvironment):
        def handle_exception(self, source: str | None = None) -> Any:
            # jinja2 rewrites the traceback into a circle, which would keep the tokenizer until the collector runs.
            raise

    def refuse(message: str) -> None:
        raise jinja2.TemplateError(message)

    def tojson(
        value: Any, ensure_ascii: bool = False, indent: Any = None, separators: Any = None, sort_keys: bool = False
    ) -> str:
        return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    environment = Environment(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols])
    environment.filters["tojson"] = tojson
    environment.globals["raise_exception"] = refuse
    environment.globals["strftime_now"] = lambda format: datetime.now().strftime(format)
    return environment.from_string(text)


def render(source: NamedTemplate, body: Mapping[str, Any], special: Mapping[str, str]) -> str:
    """The text of a request with messages, tools and variables as they are.

    Raises:
        DependencyError: jinja2 is not installed.
        ChatTemplateError: The template fails or refuses the messages.
        ChatRequestError: There are no messages, or the last one has no content to continue.
    """
    try:
        import jinja2
    except ImportError:
        raise DependencyError("raw=True needs jinja2, which is not installed: pip install jinja2") from None
    messages = [_message(message, number) for number, message in enumerate(copied(body.get("messages")) or ())]
    if not messages:
        raise ChatRequestError("there are no messages", field="messages")
    continues = body.get("continue_final_message")
    if continues:
        _mark(messages[-1], continues if isinstance(continues, str) else "content")
    variables = {
        "add_generation_prompt": body.get("add_generation_prompt", True),
        **special,
        **(body.get("chat_template_kwargs") or {}),
        **{"messages": messages, "tools": body.get("tools"), "documents": body.get("documents")},
    }
    try:
        text: str = _compiled(source.text).render(variables)
    except jinja2.TemplateSyntaxError as error:
        problem = f"it has a syntax error: {error.message}"
        raise ChatTemplateError(problem, template=source.name, line=error.lineno) from error
    except Exception as error:  # a template may raise anything
        refused = type(error) is jinja2.TemplateError
        problem = f"it refuses these messages: {error}" if refused else f"{type(error).__name__}: {error}"
        raise ChatTemplateError(problem[:1000], template=source.name) from error
    if not continues:
        return text
    text, found, _ = text.rpartition(END)
    if not found:
        raise ChatTemplateError("it does not write the text to continue", template=source.name)
    return text


def _message(message: Any, number: int) -> dict[str, Any]:
    """A message without keys whose value is `None`, and its reasoning under the names that templates read."""
    if not isinstance(message, dict):
        problem = f"a message must be a mapping, not {type(message).__name__}"
        raise ChatRequestError(problem, field=f"messages[{number}]")
    message = {key: value for key, value in message.items() if value is not None}
    reasoning = next((message[name] for name in REASONING if name in message), None)
    return message if reasoning is None else {"thinking": reasoning, **message, "reasoning_content": reasoning}


def _mark(message: dict[str, Any], field: str) -> None:
    """Puts the mark at the end of a message's text."""
    texts = [part for part in message.get(field) or () if isinstance(part, dict) and "text" in part]
    if isinstance(message.get(field), str):
        message |= {name: message[name] + END for name in {field, *REASONING} if message.get(name) == message[field]}
    elif texts:
        texts[-1]["text"] += END
    else:
        raise ChatRequestError("the last message has no text there to continue", field=field)
