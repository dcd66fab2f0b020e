"""Drops the oldest turns of a conversation until it fits.

1. A *turn* begins with a user's message, or with the system messages just before it, and ends where the next one
   begins: answers, tool calls and their results stay together. System messages at the start belong to no turn. Messages
   between them and the first turn are a turn too.
2. The whole conversation is rendered and encoded once. The tokens of its messages give the size of each turn.
3. From the sizes follows how many turns have to go. What is left is counted, and so is the same with one more turn. A
   template may write a message differently once others are gone: then the sizes are corrected by the difference.
4. A conversation that the template refuses does not fit. If it refuses the whole, or after `NUM_GUESSES` attempts, one
   turn is kept, then two more, four more and so on, until it does not fit. Then the range is halved.

Complexity: three renderings in nearly all cases, O(log turns) in the worst.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Mapping
from itertools import accumulate, pairwise
from typing import Any, SupportsIndex, TypeAlias

from ..errors import ChatTemplateError, GgtokError, VocabularyError
from ..tokenizer.base import BaseTokenizer
from ..tokenizer.findings import Finding
from ..tokenizer.numbers import at_least
from . import unread
from .conversation import Conversation, EncodeSettings, Messages, Options

Keep: TypeAlias = SupportsIndex | Callable[[Any], object]

SYSTEM = ("system", "developer")
"""The roles of messages that stay at the start."""

NUM_GUESSES = 4
"""How often the sizes are trusted."""


def trimmed(
    tokenizer: BaseTokenizer, messages: Messages, max_tokens: SupportsIndex, keep: Keep, rendering: dict[str, Any]
) -> list[Any] | dict[str, Any]:
    """See `Tokenizer.trim_messages`. `rendering` is used up."""
    options = Options(**{name: rendering.pop(name) for name in Options._fields if name in rendering})
    settings = EncodeSettings(**{name: rendering.pop(name) for name in EncodeSettings._fields if name in rendering})
    left = _left(Conversation(tokenizer, messages, options, rendering), settings, max_tokens, keep)
    return {**messages, "messages": left} if isinstance(messages, Mapping) else left


def _left(chat: Conversation, settings: EncodeSettings, max_tokens: SupportsIndex, keep: Keep) -> list[Any]:
    """The messages that stay. Issues warnings about these. `chat` is used up."""
    most = at_least(1, max_tokens, "max_tokens")
    num_last = 1 if callable(keep) else at_least(1, keep, "keep")
    options, found = chat.options, list[Finding]()
    chat.options = options._replace(warnings=found)
    total, sizes = _sizes(chat, settings)
    messages = chat.body["messages"]
    if total <= most:
        unread.report(found, options.warnings)
        return list(messages)

    turns = turns_of([_role(message) for message in messages])
    loose = turns[:-num_last]
    if callable(keep):
        loose = [turn for turn in loose if not any(keep(messages[at]) for at in turn)]
    gone = list(accumulate((sum(sizes[at] for at in turn) for turn in loose), initial=0)) if sizes else []

    def rest(num_dropped: int) -> list[Any]:
        dropped = {at for turn in loose[:num_dropped] for at in turn}
        return [message for at, message in enumerate(messages) if at not in dropped]

    fits, low, high, guesses, step = list[Finding](), 0, len(loose) + 1, NUM_GUESSES, 1
    while high - low > 1:  # without `low` turns it does not fit; without `high` it does, unless that is too many
        if gone and guesses > 0:
            middle = min(max(bisect_left(gone, total - most), low + 1), high - 1)
            guesses -= 1
        elif low == 0:
            middle = max(high - step, 1)
            step *= 2
        else:
            middle = (low + high) // 2
        chat.body["messages"] = rest(middle)
        found.clear()
        try:
            count: float = len(chat.ids(settings))
        except ChatTemplateError:
            count = math.inf
        if count <= most:
            high, fits = middle, found.copy()
        else:
            low = middle
        if gone and count < math.inf:
            total = count + gone[middle]

    if high > len(loose):
        chat.body["messages"] = rest(len(loose))
        problem = f"the messages that must stay take {len(chat.ids(settings))} tokens, which is more than {most}"
        raise GgtokError(problem)
    unread.report(fits, options.warnings)
    return rest(high)


def turns_of(roles: list[object]) -> list[range]:
    """The messages of each turn. O(messages)."""
    first = next((at for at, role in enumerate(roles) if role not in SYSTEM), len(roles))
    starts, start = [], first
    for at in range(first, len(roles)):
        if at > first and roles[at - 1] not in SYSTEM:
            start = at
        if roles[at] == "user":
            starts.append(start)
    starts = sorted({first, *starts})
    return [range(*turn) for turn in pairwise([*starts, len(roles)])] if first < len(roles) else []


def _sizes(chat: Conversation, settings: EncodeSettings) -> tuple[float, list[int]]:
    """The tokens of the conversation, and about how many each message takes; none if that is not known."""
    try:
        if chat.options.raw:
            return len(chat.ids(settings)), []
        rendering = chat.render()
    except ChatTemplateError:
        return math.inf, []
    try:
        ids, (spans, _, _) = rendering.encode(chat.tokenizer, mask="content", **settings.safe)
    except VocabularyError:  # a control token in a message, which may be trusted
        if not settings.trust:
            raise
        return len(chat.ids(settings)), []
    # A template may write one message inside another: each token is counted once.
    sizes, done = [0] * len(spans), 0
    for (start, end), at in sorted((span, at) for at, span in enumerate(spans) if span is not None):
        sizes[at], done = max(end - max(start, done), 0), max(end, done)
    if settings.trust:
        return len(chat.ids(settings)), sizes
    chat.report(rendering)
    return len(ids), sizes


def _role(message: Any) -> object:
    return message.get("role") if isinstance(message, Mapping) else getattr(message, "role", None)
