"""Ends a conversation with the last character of its last message, for a model to continue.

Complexity: O(runs) of the text.
"""

from __future__ import annotations

from ..errors import ChatTemplateError
from .rendering import Rendered, Source


def cut(rendered: Rendered, source: Source) -> Rendered:
    """The text up to the last character of the last message's content.

    Raises `ChatTemplateError` if that content has no text, or does not occur in what the template writes.
    """
    last = len(rendered.inputs.roles) - 1
    content = rendered.inputs.variables["messages"][last].get("content")
    place: tuple[object, ...] = (last, "content")
    if isinstance(content, list):
        texts = [index for index, part in enumerate(content) if isinstance(part, dict) and part.get("text")]
        place = (last, "content", texts[-1], "text") if texts else ()
    leaf = rendered.inputs.leaves.get(place)

    ends = (end for _, end, origin in rendered.text.spans() if leaf is not None and origin.leaf == leaf)
    end = max(ends, default=0)
    if not end:
        problem = "the last message has no content that it writes, so there is nothing to continue"
        raise ChatTemplateError(problem, template=source.name)
    return rendered._replace(text=rendered.text.cut(0, end))
