"""What a caller passes and the template never reads: a misspelt keyword, tools, a field of a message, a whole message.

Complexity: O(n) for messages of n characters; the names that a template reads are found when it is compiled.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from typing import Any

from .._findings import Finding, warn_of
from ..errors import ChatTemplateError
from .rendering import Chat, Source, compiled
from .text import Text

BOOKKEEPING = frozenset(("role", "content", "name", "id", "tool_call_id", "thinking", "reasoning", "refusal", "type"))
"""Fields of a message that many templates can do without."""

OWN = frozenset(("messages", "tools", "documents", "add_generation_prompt"))
"""Variables that are arguments of the calls."""


def warn(given: Chat, adapted: Chat, source: Source, text: str) -> None:
    """Warns of what the template left out of `text`. `given` is the conversation as the caller passed it.

    A text with origins says which messages it has. Of another one that is found out only if a content is not in it.
    """
    for finding in _findings(given, adapted, source, text):
        warn_of(finding)


def _findings(given: Chat, adapted: Chat, source: Source, text: str) -> Iterator[Finding]:
    reads = compiled(source, False).variables
    for name in given.variables.keys() - OWN - reads:
        known = sorted({*reads, "add_generation_prompt", "tools", "documents"} - {"messages"})
        near = difflib.get_close_matches(name, known, 1)
        advice = f"did you mean {near[0]}?" if near else f"it reads {', '.join(known)}"
        yield _finding("variable", f"the template {source.name!r} never reads the variable {name!r}", advice)
    for name, given_value in (("tools", given.tools), ("documents", given.documents)):
        if given_value and name not in reads:
            problem = f"the template {source.name!r} never reads {name}"
            yield _finding(name, problem, f"the model does not see them: describe the {name} in a message")
    told: set[str] = set()
    for index, message in enumerate(given.plain_messages()):
        for key, said in message.items():
            if key in BOOKKEEPING or key in told or not said:
                continue
            if not re.search(rf"\b{re.escape(str(key))}\b", source.text):
                told.add(key)
                problem = f"the template {source.name!r} never reads the field {key!r}, which messages[{index}] has"
                yield _finding("field", problem, "the model does not see it: put it into the content")
    messages = adapted.plain_messages()
    unseen = [index for index, message in enumerate(messages) if not _is_seen(message, text)]
    for index in unseen and _left_out(adapted, source, unseen, text):
        role = messages[index].get("role")
        problem = f"the template {source.name!r} leaves out messages[{index}], whose role is {role!r}"
        yield _finding("message", problem, "the model does not see it: use a role that the template knows")


def _finding(what: str, message: str, advice: str) -> Finding:
    return Finding(f"chat-{what}-unread", "warning", message, advice)


def _is_seen(message: dict[str, Any], text: str) -> bool:
    """Whether a message has nothing to show, or the text has it."""
    content = message.get("content")
    parts = content if isinstance(content, (list, tuple)) else [{"text": content}]
    texts = [part.get("text") for part in parts if isinstance(part, dict)]
    return all(not isinstance(each, str) or each.strip() in text for each in texts)


def _left_out(chat: Chat, source: Source, unseen: list[int], text: str) -> list[int]:
    """Those of some messages of which no character is in the text, also not changed."""
    try:
        traced = text if isinstance(text, Text) else chat.trace(source).text
    except ChatTemplateError:  # it cannot be found out
        return []
    shown = {origin.message for _, origin in traced.runs if origin.trusted is not True}
    return [index for index in unseen if index not in shown]
