"""Which template a file has for a conversation.

Source: llama.cpp's `common_chat_templates_init` and transformers' `get_chat_template`: with tools the template
`tool_use` is preferred. Complexity: O(keys).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._base import BaseTokenizer
from .._findings import warn_of
from .._keys import CHAT_TEMPLATE
from ..errors import ChatTemplateError
from .rendering import Source


def names_of(metadata: Mapping[str, Any]) -> list[str]:
    """The names of a file's templates, without the one that has none."""
    return sorted(key[len(CHAT_TEMPLATE) + 1 :] for key in metadata if key.startswith(f"{CHAT_TEMPLATE}."))


def of_tokenizer(tokenizer: BaseTokenizer, template: str | None, text: str | None, tools: bool) -> Source:
    """As `chosen`. Warns if the program that the model was found in does not use the file's templates as they are."""
    source = chosen(tokenizer.metadata, template, text, tools)
    for finding in () if text is not None else tokenizer._served:
        warn_of(finding)
    return source


def chosen(metadata: Mapping[str, Any], template: str | None, text: str | None, tools: bool) -> Source:
    """The template to use. Raises `ChatTemplateError` if there is none."""
    for name, value in (("template", template), ("template_text", text)):
        if value is not None and not isinstance(value, str):
            raise TypeError(f"{name} must be str, not {type(value).__name__}")
    if text is not None:
        if template is not None:
            raise TypeError("pass template (a name) or template_text, not both")
        return Source(text, "template_text")
    wanted = "tool_use" if template is None and tools else template
    keys = [] if wanted is None else [f"{CHAT_TEMPLATE}.{wanted}"]
    if template in (None, "default", ""):
        keys.append(CHAT_TEMPLATE)
    for key in keys:
        found = metadata.get(key)
        if isinstance(found, str):
            return Source(found, key)
    names = names_of(metadata)
    listed = f"template={names[0]!r}" if len(names) == 1 else f"template= one of {', '.join(map(repr, names))}"
    if template is not None:
        has = f"it has {', '.join(map(repr, names))}" if names else "it names none"
        raise ChatTemplateError(f"the file has no chat template {template!r}: {has}")
    hint = f"{listed} or " if names else ""
    raise ChatTemplateError(f"the file has no chat template ({CHAT_TEMPLATE}): pass {hint}template_text=")
