"""A conversation and a template: the text that the template writes, and its ids."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, TypeAlias

from .._base import BaseTokenizer
from .._vocab import special_texts
from . import continuing, encoding, openai, schema, templates, unread
from .encoding import ChatEncoding
from .rendering import Rendered, Request

Message: TypeAlias = Mapping[str, Any]
Tool: TypeAlias = Mapping[str, Any] | Callable[..., Any]


class Options(NamedTuple):
    """Arguments of `Tokenizer.apply_chat_template`."""

    tools: Iterable[Tool] | None
    documents: Iterable[Message] | None
    add_generation_prompt: bool
    continue_final_message: bool
    template: str | None
    template_text: str | None
    raw: bool


class Conversation:
    """What `Tokenizer.apply_chat_template` is given."""

    def __init__(
        self, tokenizer: BaseTokenizer, messages: Iterable[Message], options: Options, variables: dict[str, Any]
    ) -> None:
        tools, documents, add_generation_prompt, self.continued, template, template_text, raw = options
        if self.continued and add_generation_prompt:
            raise ValueError("continue_final_message needs add_generation_prompt=False")
        tool_list = None if tools is None else schema.schemas(tools)
        self.tokenizer = tokenizer
        self.source = templates.of_tokenizer(tokenizer, template, template_text, bool(tool_list))
        self.given = Request(
            messages=messages if isinstance(messages, (str, bytes)) else listed(messages),
            tools=tool_list,
            documents=None if documents is None else listed(documents),
            variables=variables | {"add_generation_prompt": bool(add_generation_prompt)},
            special=special_texts(tokenizer.vocab),
            now=datetime.now(),
        )
        self.chat = self.given if raw else openai.adapted(self.given, self.source)
        """The conversation as the template gets it."""

    def text(self) -> str:
        if self.continued:
            return str.__str__(self._traced().text)
        text = self.chat.render(self.source)
        unread.warn(self.given, self.chat, self.source, text)
        return text

    def ids(self, add_special: bool) -> list[int]:
        return encoding.encode(self.tokenizer, self._traced(), self.source, add_special).ids

    def encoding(self, add_special: bool) -> ChatEncoding:
        """The ids with the tokens of each message."""
        rendered = self._traced()
        encoded = encoding.encode(self.tokenizer, rendered, self.source, add_special)
        return encoding.with_spans(encoded, rendered, self.source)

    def _traced(self) -> Rendered:
        rendered = self.chat.trace(self.source)
        unread.warn(self.given, self.chat, self.source, rendered.text)
        return continuing.cut(rendered, self.source) if self.continued else rendered


def listed(values: Iterable[Any]) -> Sequence[Any]:
    """The values, to be read more than once. Anything that cannot be iterated over is refused later, by name."""
    if not isinstance(values, Iterable) or isinstance(values, Mapping):
        return values  # type: ignore[return-value]
    return [value for value in values]  # noqa: C416 (list() would believe a wrong length hint)
