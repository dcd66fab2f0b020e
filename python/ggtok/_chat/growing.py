"""A conversation that grows: its messages are prepared once, rendered whole, and encoded from the first change on.

1. A new message is copied and adapted to the template once. Everything that does not change is read once.
2. The template renders the whole conversation, since it may write anything anew. Turns of its loops that would write
   what they wrote before are not run (`reuse`).
3. The places of messages with ids of a model are found in the text (`sampled`).
4. What has changed is encoded (`keeping`).

A state is never changed, so a conversation that is forked shares it, and an append that fails leaves no trace.

Complexity: one rendering for each new state, and the encoding of what it changed.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, NamedTuple, SupportsIndex

from .._base import BaseTokenizer
from .._vocab import special_texts
from ..errors import MismatchError
from . import encoding, keeping, openai, sampled, schema, templates, unread
from .capabilities import capabilities
from .conversation import Message, Options, listed
from .encoding import ASSISTANT, ChatEncoding, Encoded
from .inputs import Inputs, Reader, message_of, rows_of
from .keeping import Held, common, controls_of
from .rendering import Memories, Rendered, Request, compiled, traced, typed_errors
from .sampled import Fixed, Place, Sampled
from .text import Text, plain


class Row(NamedTuple):
    """A message as the template gets it."""

    message: dict[str, Any]
    copies: tuple[dict[str, Any], dict[str, Any]]
    """Without and with origins."""
    role: str
    size: int
    leaves: range
    """The numbers of its strings."""
    contents: range
    """The numbers of the strings of its content."""


class State(NamedTuple):
    """A conversation as far as it has grown."""

    given: tuple[dict[str, Any], ...] = ()
    """The messages as the caller passed them."""
    rows: tuple[Row, ...] = ()
    sampled: tuple[tuple[int, Sampled], ...] = ()
    """The ids that messages have, with the numbers of their rows."""
    held: Held | None = None
    """The last rendering and its ids; `None` before the first."""
    memories: Memories = ({}, {})
    """What the turns of the template's loops wrote in it."""
    warned: int = 0
    """How many messages have been looked through for what the template never reads."""


class Growing:
    """A template and its settings: what does not change. `Chat` passes states through its methods."""

    def __init__(
        self, tokenizer: BaseTokenizer, options: Options, add_special: bool, variables: dict[str, Any]
    ) -> None:
        tools = None if options.tools is None else schema.schemas(options.tools)
        self.tokenizer, self._add_special, self._options = tokenizer, add_special, options
        self.source = templates.of_tokenizer(tokenizer, options.template, options.template_text, bool(tools))
        self._compiled = compiled(self.source, True)
        self._can = None if options.raw else capabilities(self.source)
        self._controls = controls_of(tokenizer)
        documents = None if options.documents is None else listed(options.documents)
        self._given = Request((), tools, documents, variables, special_texts(tokenizer.vocab), datetime.now())
        request = self._given if options.raw else openai.settings(self._given)
        with typed_errors():
            readers = self._reader(False), self._reader(True)
            self._variables = [reader.variables(request) for reader in readers]
        self._size, self._num_leaves = readers[0].size, len(readers[1].leaves)

    def _reader(self, traced: bool, first_leaf: int = 0) -> Reader:
        return Reader(traced, self._compiled.names, first_leaf)

    # Messages

    def with_messages(self, state: State, messages: Iterable[Message]) -> State:
        """The state with more messages, not yet rendered. Raises what `encode_chat` does for a message."""
        given, rows = list(state.given), list(state.rows)
        for each in rows_of(messages, "messages"):
            with typed_errors():
                own = Reader(False, frozenset()).copy(each, ("messages", len(given)))
                message = message_of(own, len(given))
                if self._can is not None:
                    message = openai.message(message, self._can, self.source, len(given))
                if self._can is not None and len(rows) == 1:
                    together = openai.joined([rows[0].message, message], self._can)
                    rows, message = rows[: len(together) - 1], together[-1]
                rows.append(self._row(message, len(rows), rows[-1].leaves.stop if rows else self._num_leaves))
            given.append(own)
        return state._replace(given=tuple(given), rows=tuple(rows))

    def _row(self, message: dict[str, Any], index: int, first_leaf: int) -> Row:
        row = message_of(message, index)
        readers = self._reader(False), self._reader(True, first_leaf)
        (copy, role), (traced_copy, _) = (reader.message(row, index) for reader in readers)
        leaves = readers[1].leaves
        contents = [leaf for place, leaf in leaves.items() if place[1] == "content" and place[-1] != "key"]
        content = range(min(contents), max(contents) + 1) if contents else range(0)
        own = range(first_leaf, first_leaf + len(leaves))
        return Row(message, (copy, traced_copy), role, readers[0].size, own, content)

    # Renderings

    def is_prompt(self, state: State) -> bool:
        """Whether the rendering ends with the beginning of an assistant's message."""
        is_answered = bool(state.rows) and state.rows[-1].role in ASSISTANT
        return self._options.add_generation_prompt and not is_answered

    def _inputs(self, state: State) -> list[Inputs]:
        prompt = self.is_prompt(state)
        variables = {"add_generation_prompt": prompt} if prompt or self._options.raw else {}
        size = self._size + 1 + sum(row.size for row in state.rows)
        roles = [row.role for row in state.rows]
        result = []
        for kind, own in enumerate(self._variables):
            copies = [row.copies[kind] for row in state.rows]
            turns = {id(copy): index for index, copy in enumerate(copies)}
            result.append(Inputs({**own, **variables, "messages": copies}, size, turns, roles, {}))
        return result

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
            own = sampled.sampled(self.tokenizer, before, ids, trust)
            given = [*own.ids, *([] if own.ending is None else [own.ending])]
            new = new._replace(sampled=(*new.sampled, (len(new.rows) - 1, own)))
        new = self.rendered(new, is_new=ids is not None)
        if new.held is None:
            return new, 0
        expected = [*before, *given] if self.is_prompt(old) else before
        return new, common(expected, new.held.ids)

    def rendered(self, state: State, is_new: bool = False) -> State:
        """The state with its text and ids. `is_new` is for one whose last message has new ids."""
        if not state.rows:
            return state
        plain_inputs, inputs = self._inputs(state)
        rendered = traced(self.source, inputs, plain_inputs, self._given.now, state.memories)
        text = rendered.text
        self._warn(state, text)
        state = state._replace(warned=len(state.given), memories=rendered.memories or ({}, {}))
        if is_new:
            state = self._checked(state, text)
        fixed = self._fixed(state, text)
        if is_new and (not fixed or fixed[-1][0] != len(state.rows) - 1):
            raise MismatchError(
                f"messages[{len(state.given) - 1}]: the template does not write it, so its ids are lost"
            )
        kept = tuple(each for _, each in fixed)
        args = self.tokenizer, self._controls, text, kept, self.source, self._add_special
        return state._replace(held=keeping.encode(*args, state.held))

    def _warn(self, state: State, text: Text) -> None:
        if not state.warned:
            unread.warn_of_settings(self._given, self.source)
        first = max(0, state.warned - (len(state.given) - len(state.rows)))
        given = ((index, message_of(state.given[index], index)) for index in range(state.warned, len(state.given)))
        rows = ((index, state.rows[index].copies[0]) for index in range(first, len(state.rows)))
        unread.warn_of_messages(given, rows, self.source, text, lambda: text)

    def encoding(self, state: State) -> ChatEncoding:
        """The ids of a rendered state with the tokens of each message. Raises what `encoding.with_spans` does."""
        held = state.held
        if held is None:
            return ChatEncoding([], "", [], [])
        rendered = Rendered(held.text, self._inputs(state)[1], self._compiled.generation)
        return encoding.with_spans(Encoded(list(held.ids), held.spans), rendered, self.source, held.sampled())

    # Ids of a model

    def _place(self, state: State, text: Text, row: int, own: Sampled, place: Place, *, whole: bool) -> Fixed | None:
        ending = None
        if own.trusted:
            first = place.content[1] if place.content else place.start
            for id in self.tokenizer.vocab.eog_ids:
                end = plain(text).rfind(self.tokenizer.vocab[id].text, first, place.end)
                if end >= 0 and text.cut(end, end + 1).runs[0][1].trusted:
                    ending = end if ending is None else max(end, ending)
        return sampled.located(self.tokenizer, own, text, place, ending, whole=whole)

    def _fixed(self, state: State, text: Text) -> list[tuple[int, Fixed]]:
        """Where ids of a model stand in a text, in its order, each with the number of its row."""
        if not state.sampled:
            return []
        found: list[tuple[int, Fixed]] = []
        places = sampled.places(text, {row: state.rows[row].contents for row, _ in state.sampled})
        for row, own in state.sampled:
            place = places.get(row)
            fixed = self._place(state, text, row, own, place, whole=False) if place else None
            if fixed is not None and (not found or found[-1][1].end <= fixed.start):
                found.append((row, fixed))
        return found

    def _checked(self, state: State, text: Text) -> State:
        """The state with what the last message's ids need to know. Raises `MismatchError` if they are not its own."""
        *others, (row, own) = state.sampled
        place = sampled.places(text, {row: state.rows[row].contents}).get(row)
        before = plain(state.held.text) if state.held is not None else ""
        if place and place.start <= len(before) and plain(text).startswith(before):
            own = own._replace(prompt=before[place.start :])
        is_written = place is not None and self._place(state, text, row, own, place, whole=True) is not None
        content = state.rows[row].copies[0].get("content")
        if not is_written and not own.trusted and not own.agrees(content):
            said, found = sampled.text_of(content), own.texts[0]
            problem = f"its content is {said[:200]!r}, but its ids are {found[:200]!r}"
            raise MismatchError(f"messages[{len(state.given) - 1}]: {problem}", expected=said, found=found)
        return state._replace(sampled=(*others, (row, own)))
