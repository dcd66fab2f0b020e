"""Which template a file has for a conversation.

Source: llama.cpp's `common_chat_templates_init`: with tools the template `tool_use` is preferred. Deviations: (1) a
file without a template has none; llama-server takes ChatML, which `template="chatml"` asks for. Complexity: O(keys).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from .._ggtok import CHATML, ChatTemplate
from ..errors import ArgumentTypeError, ChatTemplateError
from ..tokenizer.keys import CHAT_TEMPLATE

DEFAULT = "chatml"
"""The name of llama.cpp's built-in template; a file's own template may have the same name."""


class NamedTemplate(NamedTuple):
    """A template's text, and its name for messages."""

    text: str
    name: str


@lru_cache(maxsize=64)
def compiled(source: NamedTemplate) -> ChatTemplate:
    """A template ready for use. Raises `ChatTemplateError` if it has a syntax error."""
    return ChatTemplate(source.text, source.name)


def names_of(metadata: Mapping[str, Any]) -> list[str]:
    """The names of a file's templates, without the unnamed one."""
    return sorted(key[len(CHAT_TEMPLATE) + 1 :] for key in metadata if key.startswith(f"{CHAT_TEMPLATE}."))


def chosen(metadata: Mapping[str, Any], template: str | None, text: str | None, tools: bool) -> NamedTemplate:
    """The template to use. Raises `ChatTemplateError` if there is none."""
    for name, value in (("template", template), ("template_text", text)):
        if value is not None and not isinstance(value, str):
            raise ArgumentTypeError(f"{name} must be str, not {type(value).__name__}")
    if text is not None:
        if template is not None:
            raise ArgumentTypeError("pass template (a name) or template_text, not both")
        return NamedTemplate(text, "template_text")
    wanted = "tool_use" if template is None and tools else template
    keys = [] if wanted is None else [f"{CHAT_TEMPLATE}.{wanted}"]
    if template in (None, "default", ""):
        keys += [CHAT_TEMPLATE, f"{CHAT_TEMPLATE}.tool_use"]
    for key in keys:
        found = metadata.get(key)
        if isinstance(found, str):
            return NamedTemplate(CHATML, DEFAULT) if found == DEFAULT else NamedTemplate(found, key)
    if template == DEFAULT:
        return NamedTemplate(CHATML, DEFAULT)

    names = names_of(metadata)
    if template is not None:
        has = f"it has {', '.join(map(repr, names))}" if names else "it names none"
        raise ChatTemplateError(f"the file has no chat template {template!r}: {has}")
    listed = f"template= one of {', '.join(map(repr, names))}, " if len(names) > 1 else ""
    listed = f"template={names[0]!r}, " if len(names) == 1 else listed
    server = f"template={DEFAULT!r} to do as llama-server, which takes ChatML"
    raise ChatTemplateError(
        f"the file has no chat template ({CHAT_TEMPLATE}): pass {listed}template_text=, or {server}"
    )
