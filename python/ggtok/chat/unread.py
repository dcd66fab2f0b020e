"""What a caller passes and the model does not see: a misspelt keyword, tools, a field of a message, a whole message.

Complexity: O(warnings), each with a look at the names of all variables.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from .._ggtok import ChatTemplate, Rendering
from ..tokenizer.findings import Finding, warn_of

KINDS = {
    **{"unread-variable": "variable", "unread-field": "field", "dropped-field": "field"},
    **{"left-out": "message", "dropped-system": "message"},
}
"""The kind of a finding by the kind of its warning. For `unread` it is the subject, tools or documents."""

ADVICE = {
    "field": "the model does not see it: put it into the content",
    "message": "the model does not see it: use a role that the template knows",
}


def findings(template: ChatTemplate, rendering: Rendering, first: int = 0) -> list[Finding]:
    """The warnings of a rendering. With `first`, only those of messages from this one on."""
    found, rows = [], rendering.warnings
    dropped = [message for code, _, message, _ in rows if code == "dropped-system"]
    for code, subject, message, said in rows:
        is_told = code == "left-out" and message in dropped
        if is_told or (message or 0) < first:
            continue
        kind = KINDS.get(code, subject or code)
        advice = ADVICE.get(kind, f"the model does not see them: describe the {kind} in a message")
        if kind == "variable":
            known = sorted({*template.variables, "add_generation_prompt", "tools", "documents"} - {"messages"})
            near = difflib.get_close_matches(subject or "", known, 1)
            advice = f"did you mean {near[0]}?" if near else f"it reads {', '.join(known)}"
        if subject in ("thinking", "reasoning"):
            advice = "the model does not see it: name it reasoning_content"
        said = said.replace("the template", f"the template {template.name!r}", 1)
        found.append(Finding(f"chat-{kind}-unread", "warning", said, advice))
    return found


def report(found: Iterable[Finding], into: list[Finding] | None) -> None:
    """Appends findings to a list, or issues them as warnings if there is none."""
    for finding in found:
        if into is None:
            warn_of(finding)
        else:
            into.append(finding)
