"""A conversation that grows: the object that users append messages to.

Complexity: see `growing`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, NamedTuple, SupportsIndex

from .conversation import Message
from .encoding import ChatEncoding
from .growing import Growing, State


class Turn(NamedTuple):
    """What `Chat.append` changed. Those ids of before that still hold, and then `new_ids`, are the ids of the chat.

    >>> import ggtok
    >>> chat = ggtok.Tokenizer.builtin("bpe").chat()
    >>> kept, new_ids = chat.append({"role": "user", "content": "Hi"})
    >>> kept, new_ids == chat.ids
    (0, True)
    """

    kept: int
    """How many ids of before still hold. The `ids` of an appended message count as ids of before, since the model that
    produced them has seen them."""
    new_ids: list[int]
    """All ids after those."""


class Chat:
    """A conversation whose ids follow its messages. Made by `Tokenizer.chat`.

    Its ids are those of `encode_chat` for the same messages and settings, except those that messages bring with them.
    They end with the generation prompt unless the last message is the assistant's. The template sees the time at which
    the chat was made.

    `append` encodes only what the template changed. The template runs over the whole conversation. An `append` that
    fails changes nothing. A chat is for one thread at a time; forks are independent.

    >>> import ggtok
    >>> tok = ggtok.Tokenizer.builtin("bpe")
    >>> chat = tok.chat()
    >>> turn = chat.append({"role": "user", "content": "Say hi."})
    >>> answer = tok.encode("hi<|im_end|>", parse_special=True)              # what a model returns for chat.ids
    >>> turn = chat.append({"role": "assistant", "content": "hi"}, ids=answer)
    >>> turn = chat.append({"role": "user", "content": "Thanks!"})
    >>> tok.decode(turn.new_ids, unparse_special=True)
    '<|im_start|>user\\nThanks!<|im_end|>\\n<|im_start|>assistant\\n'
    """

    __slots__ = ("_growing", "_state")

    def __init__(self, growing: Growing, messages: Iterable[Message]) -> None:
        self._growing = growing
        self._state = growing.with_messages(State(), messages)

    def append(
        self, message: Message, ids: Iterable[SupportsIndex] | None = None, *, trust: Literal["text", "ids"] = "text"
    ) -> Turn:
        """Appends a message.

        Args:
            message: A mapping, as in `apply_chat_template`.
            ids: The ids of the message as a model produced them after the generation prompt. They stay as they are, in
                this turn and in all later ones, although the text may have other ids. An end-of-generation token at
                their end may be there or not: the template's is in its place. If a template later writes only the end
                of the message, as some do to drop reasoning, the last ids stand for it, or its text is encoded if no
                token starts there.
            trust: What to do with ids whose text is neither the message's content nor what the template writes for it,
                apart from white space at the ends. "text" raises an error. "ids" takes the ids for everything that the
                template writes between the generation prompt and the token that ends the message, in all turns.

        Returns:
            How many ids of before still hold, and all after them. For most templates and turns those are the ids of the
            new message. A template that rewrites what it wrote before keeps fewer.

        Raises:
            MismatchError: The text of `ids` is another one, or the template does not write it as text.
            ChatTemplateError, ChatRequestError, VocabularyError, TypeError: As `encode_chat`.
            TokenIndexError: An id is not in the vocabulary.
            GgtokError: `trust` is something else.

        Warns as `apply_chat_template`, of new messages only.

        >>> import ggtok
        >>> tok = ggtok.Tokenizer.builtin("bpe")
        >>> chat = tok.chat([{"role": "user", "content": "Say LoRA."}])
        >>> tok.encode("LoRA"), chat.append({"role": "assistant", "content": "LoRA"}, ids=[43, 78, 49, 32]).kept
        ([43, 78, 9612], 20)
        """
        return self._grown([message], ids, trust)

    def extend(self, messages: Iterable[Message]) -> Turn:
        """Appends several messages at once, such as the results of several tools. Raises what `append` does.

        Some templates refuse a system message that no other follows: append it together with the next, or pass it to
        `Tokenizer.chat`, which renders nothing yet.

        >>> import ggtok
        >>> chat = ggtok.Tokenizer.builtin("bpe").chat()
        >>> turn = chat.extend([{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Hi"}])
        >>> len(turn.new_ids) == chat.num_tokens
        True
        """
        return self._grown(messages, None, "text")

    def _grown(self, messages: Iterable[Message], ids: Iterable[SupportsIndex] | None, trust: str) -> Turn:
        self._state, kept = self._growing.grown(self._state, messages, ids, trust)
        return Turn(kept, self._ids()[kept:])

    def count(self, *messages: Message) -> int:
        """The number of ids that the chat would have with these messages too. Raises what `append` does.

        >>> import ggtok
        >>> chat = ggtok.Tokenizer.builtin("bpe").chat([{"role": "user", "content": "Hi"}])
        >>> chat.count(), chat.count({"role": "assistant", "content": "Hello"})
        (12, 17)
        """
        fork = self.fork()
        if messages:
            fork.extend(messages)
        return fork.num_tokens

    def fork(self) -> Chat:
        """A chat that is the same up to here and grows independently. O(1): nothing is copied.

        >>> import ggtok
        >>> chat = ggtok.Tokenizer.builtin("bpe").chat([{"role": "user", "content": "Hi"}])
        >>> other = chat.fork()
        >>> turn = other.append({"role": "assistant", "content": "Hello"})
        >>> len(chat.messages), len(other.messages)
        (1, 2)
        """
        other = Chat.__new__(Chat)
        other._growing, other._state = self._growing, self._state
        return other

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The messages, in a new list. They are copies of what was appended.

        >>> import ggtok
        >>> ggtok.Tokenizer.builtin("bpe").chat([{"role": "user", "content": "Hi"}]).messages
        [{'role': 'user', 'content': 'Hi'}]
        """
        return list(self._state.messages)

    @property
    def ids(self) -> list[int]:
        """All ids, in a new list. Raises what `append` does if the messages passed to `Tokenizer.chat` are at fault.

        >>> import ggtok
        >>> tok = ggtok.Tokenizer.builtin("bpe")
        >>> messages = [{"role": "user", "content": "Hi"}]
        >>> tok.chat(messages).ids == tok.encode_chat(messages)
        True
        """
        return list(self._ids())

    @property
    def num_tokens(self) -> int:
        """The number of ids. Raises what `ids` does.

        >>> import ggtok
        >>> ggtok.Tokenizer.builtin("bpe").chat().num_tokens
        0
        """
        return len(self._ids())

    @property
    def encoding(self) -> ChatEncoding:
        """The ids with the text, the tokens of each message, and the assistant mask, as `encode_chat` returns them.

        The mask has the assistant's turns. Of messages that brought ids with them it has exactly these ids. Takes time
        for all tokens. Raises what `ids` does, and `ChatTemplateError` if it cannot be known what the assistant writes.

        >>> import ggtok
        >>> tok = ggtok.Tokenizer.builtin("bpe")
        >>> chat = tok.chat([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}])
        >>> encoding = chat.encoding
        >>> tok.decode([id for id, own in zip(encoding.ids, encoding.assistant_mask) if own], unparse_special=True)
        'Hello<|im_end|>'
        """
        self._ids()
        return self._growing.encoding(self._state)

    def _ids(self) -> list[int]:
        if self._state.held is None:
            self._state = self._growing.rendered(self._state)
        return self._state.held.ids if self._state.held is not None else []

    def __repr__(self) -> str:
        size = "" if self._state.held is None else f", {len(self._state.held.ids)} tokens"
        return f"<ggtok.Chat of {len(self._state.messages)} messages{size}>"
