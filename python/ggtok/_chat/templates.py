"""Which template a file has for a conversation, and the special tokens that it is given.

Source: llama.cpp's `common_chat_templates_init` and transformers' `get_chat_template`: with tools the template
`tool_use` is preferred. Complexity: O(keys).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import ChatTemplateError
from .rendering import Source

if TYPE_CHECKING:
    from collections.abc import Mapping

KEY = "tokenizer.chat_template"


def names_of(metadata: Mapping[str, Any]) -> list[str]:
    """The names of a file's templates besides the one without a name."""
    return sorted(key[len(KEY) + 1 :] for key in metadata if key.startswith(f"{KEY}."))


def chosen(metadata: Mapping[str, Any], template: str | None, text: str | None, tools: bool) -> Source:
    """The template to use. Raises `ChatTemplateError` where there is none."""
    for name, value in (("template", template), ("template_text", text)):
        if value is not None and not isinstance(value, str):
            raise TypeError(f"{name} must be str, not {type(value).__name__}")
    if text is not None:
        if template is not None:
            raise TypeError("pass template (a name) or template_text, not both")
        return Source(text, "template_text")
    keys = [f"{KEY}.{template}"] if template is not None else [f"{KEY}.tool_use", KEY] if tools else [KEY]
    if template in ("default", ""):
        keys.append(KEY)
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
    raise ChatTemplateError(f"the file has no chat template ({KEY}): pass {hint}template_text=")


def special_tokens(vocab: Any) -> dict[str, str]:
    """The texts of special tokens by the names that templates use."""
    ids = {name: getattr(vocab, f"{name}_id") for name in ("bos", "eos", "unk", "sep", "pad", "mask")}
    return {f"{name}_token": vocab[id].text for name, id in ids.items() if id is not None}
