"""A conversation that grows: rendered whole, and encoded from the first change on.

1. A new message is copied once.
2. The template renders the whole conversation, since it may write anything anew.
3. The places of messages with ids of a model are found in the text (`sampled`).
4. What has changed is encoded (`keeping`).

A state is never changed, so a conversation that is forked shares it, and an append that fails leaves no trace.

Complexity: one rendering for each new state, and the encoding of what it changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import eq
from typing import Any, NamedTuple, SupportsIndex

from .._ggtok import Rendering
from ..errors import GgtokError, MismatchError
from . import keeping, sampled
from .conversation import Conversation, Message
from .encoding import ChatEncoding
from .keeping import Held
from .plain import copied, listed
from .sampled import Fixed, Sampled

ASSISTANT = ("assistant", "model", "ai")
"""The roles of messages that the model writes."""


class State(NamedTuple):
    """A conversation so far."""

    messages: tuple[Any, ...] = ()
    sampled: tuple[Sampled, ...] = ()
    """The ids that messages have."""
    held: Held | None = None
    """The last rendering and its ids; `None` before the first."""
    warned: int = 0
    """How many messages have been looked through for what the template never reads."""


class Growing:
    """A template and its settings: what does not change. `Chat` passes states through its methods."""

    def __init__(self, chat: Conversation, add_special: bool) -> None:
        """`chat` has a body without messages to be continued, and closes the assistant's last message."""
        if chat.options.raw:
            raise GgtokError("a chat has to know who wrote what: raw=True does not go with it")
        if chat.body.get("continue_final_message"):
            raise GgtokError("a chat ends with the generation prompt: continue_final_message does not go with it")
        self._chat, self._add_special = chat, add_special
        self._tokenizer = chat.tokenizer
        self._adds_prompt = chat.body.get("add_generation_prompt") is not False

    # Messages

    def with_messages(self, state: State, messages: Iterable[Message]) -> State:
        """The state with more messages, not yet rendered. Raises `ChatRequestError` unless they are a list."""
        added = listed(messages)
        if not isinstance(added, list):
            self._chat.render({"messages": added})  # which says what is wrong with it
        return state._replace(messages=(*state.messages, *map(copied, added)))

    def is_prompt(self, state: State) -> bool:
        """Whether the rendering ends with the beginning of an assistant's message."""
        last = state.messages[-1] if state.messages else None
        is_answered = isinstance(last, dict) and last.get("role") in ASSISTANT
        return self._adds_prompt and not is_answered

    # Renderings

    def grown(
        self, state: State, messages: Iterable[Message], ids: Iterable[SupportsIndex] | None, trust: str
    ) -> tuple[State, int]:
        """The state with more messages, rendered, and how many ids of before still hold. `ids` are those of the last
        message, and count as ids of before.

        Raises what `encode_chat` does, `MismatchError` for ids that are not those of the text, and what
        `sampled.sampled` does.
        """
        old = self.rendered(state) if state.held is None and ids is not None else state
        before = old.held.ids if old.held is not None else []
        new, given = self.with_messages(old, messages), []
        if ids is not None:
            own = sampled.sampled(self._tokenizer, before, len(new.messages) - 1, ids, trust)
            given = [*own.ids, *([] if own.ending is None else [own.ending])]
            new = new._replace(sampled=(*new.sampled, own))
        new = self.rendered(new, is_new=ids is not None)
        if new.held is None:
            return new, 0
        expected = [*before, *given] if self.is_prompt(old) else before
        return new, common(expected, new.held.ids)

    def rendered(self, state: State, is_new: bool = False) -> State:
        """The state with its text and ids. `is_new` is for one whose last message has new ids."""
        if not state.messages:
            return state
        body = {"messages": list(state.messages), "add_generation_prompt": self.is_prompt(state)}
        rendering = self._chat.render(self._chat.body | body)
        data = rendering.data
        self._chat.report(rendering, state.warned)
        state = state._replace(warned=len(state.messages))

        places = rendering.places() if state.sampled else []
        fixed = list[Fixed]()
        for number, own in enumerate(state.sampled, 1):
            if is_new and number == len(state.sampled):
                own = self._checked(state, own, rendering, data, places[own.message])
                state = state._replace(sampled=(*state.sampled[:-1], own))
            place = sampled.located(self._tokenizer, own, rendering, data, places[own.message], whole=False)
            if place is not None and (not fixed or fixed[-1].end <= place.start):
                fixed.append(place)
        if is_new and (not fixed or fixed[-1].message != len(state.messages) - 1):
            problem = "the template does not write it, so its ids are lost"
            raise MismatchError(f"messages[{len(state.messages) - 1}]: {problem}")
        args = self._tokenizer, rendering, data, tuple(fixed), self._add_special, state.held
        return state._replace(held=keeping.encode(*args))

    def _checked(
        self, state: State, own: Sampled, rendering: Rendering, data: bytes, place: sampled.Place | None
    ) -> Sampled:
        """A message's ids with what is to be known of them. Raises `MismatchError` if they are not its own."""
        before = state.held.data if state.held is not None else b""
        if place and place[0] <= len(before) and data.startswith(before):
            own = own._replace(prompt=before[place[0] :])
        is_written = sampled.located(self._tokenizer, own, rendering, data, place, whole=True) is not None
        content = state.messages[own.message].get("content")
        if not is_written and not own.trusted and not own.agrees(content):
            said, found = sampled.text_of(content), own.texts[0].decode("utf-8", "replace")
            problem = f"its content is {said[:200]!r}, but its ids are {found[:200]!r}"
            raise MismatchError(f"messages[{own.message}]: {problem}", expected=said, found=found)
        return own

    def encoding(self, state: State) -> ChatEncoding:
        """The ids of a rendered state with the tokens of each message. Raises what `Rendering.masked` does."""
        held = state.held
        if held is None:
            return ChatEncoding([], "", [], [])
        spans, mask, media = held.rendering.masked(self._tokenizer, held.spans, "turn")
        for message, tokens in held.sampled():
            for start, end in (spans[message] or tokens,):
                mask[start:end] = [False] * (end - start)
        for _, (start, end) in held.sampled():
            mask[start:end] = [True] * (end - start)
        return self._chat.described(list(held.ids), held.rendering, (spans, mask, media))


def common(one: Sequence[Any], other: Sequence[Any]) -> int:
    """How many items at the start of two sequences are equal."""
    return [*map(eq, one, other), False].index(False)
