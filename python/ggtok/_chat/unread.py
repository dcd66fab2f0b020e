"""What a caller passes and the template never reads: a misspelt keyword, tools, a field of a message, a whole message.

Complexity: O(n) for messages of n characters; the names that a template reads are found when it is compiled.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias

from .._findings import Finding, warn_of
from ..errors import ChatTemplateError
from .rendering import Request, Source, compiled
from .text import Text

BOOKKEEPING = frozenset(("role", "content", "name", "id", "tool_call_id", "thinking", "reasoning", "refusal", "type"))
"""Fields of a message that many templates can do without."""

OWN = frozenset(("messages", "tools", "documents", "add_generation_prompt"))
"""Variables that are arguments of the calls."""


Rows: TypeAlias = Iterable[tuple[int, dict[str, Any]]]
"""Messages with their numbers."""


def warn(given: Request, adapted: Request, source: Source, text: str) -> None:
    """Warns of what the template left out of `text`. `given` is the conversation as the caller passed it.

    A text with origins says which messages it has. Of another one that is found out only if a content is not in it.
    """

    def trace() -> Text | None:
        try:
            return text if isinstance(text, Text) else adapted.trace(source).text
        except ChatTemplateError:  # it cannot be found out
            return None

    warn_of_settings(given, source)
    warn_of_messages(enumerate(given.plain_messages()), enumerate(adapted.plain_messages()), source, text, trace)


def warn_of_settings(given: Request, source: Source) -> None:
    """Warns of tools, documents and variables that the template never reads."""
    for finding in _settings(given, source):
        warn_of(finding)


def warn_of_messages(given: Rows, adapted: Rows, source: Source, text: str, trace: Callable[[], Text | None]) -> None:
    """Warns of messages, as passed and as the template got them, that are not in `text`, and of their fields.

    `trace` gives the text with origins.
    """
    for finding in (*_fields(given, source), *_left_out(adapted, source, text, trace)):
        warn_of(finding)


def _settings(given: Request, source: Source) -> Iterator[Finding]:
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


def _fields(given: Rows, source: Source) -> Iterator[Finding]:
    told: set[str] = set()
    for index, message in given:
        for key, said in message.items():
            if key in BOOKKEEPING or key in told or not said:
                continue
            if not re.search(rf"\b{re.escape(str(key))}\b", source.text):
                told.add(key)
                problem = f"the template {source.name!r} never reads the field {key!r}, which messages[{index}] has"
                yield _finding("field", problem, "the model does not see it: put it into the content")


def _left_out(adapted: Rows, source: Source, text: str, trace: Callable[[], Text | None]) -> Iterator[Finding]:
    unseen = [(index, message) for index, message in adapted if not _is_seen(message, text)]
    traced = trace() if unseen else None
    if traced is None:
        return
    shown = {origin.message for _, origin in traced.runs if origin.trusted is not True}
    for index, message in unseen:
        if index not in shown:  # not even changed
            problem = (
                f"the template {source.name!r} leaves out messages[{index}], whose role is {message.get('role')!r}"
            )
            yield _finding("message", problem, "the model does not see it: use a role that the template knows")


def _finding(what: str, message: str, advice: str) -> Finding:
    return Finding(f"chat-{what}-unread", "warning", message, advice)


def _is_seen(message: dict[str, Any], text: str) -> bool:
    """Whether a message has nothing to show, or the text has it."""
    content = message.get("content")
    parts = content if isinstance(content, (list, tuple)) else [{"text": content}]
    texts = [part.get("text") for part in parts if isinstance(part, dict)]
    return all(not isinstance(each, str) or each.strip() in text for each in texts)
