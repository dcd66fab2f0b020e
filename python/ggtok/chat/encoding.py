"""The ids of a conversation with what belongs to which message: what `encode_chat` returns with spans."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..tokenizer.findings import Finding

MASKS = ("turn", "content")


class ChatMedia(NamedTuple):
    """An image, a sound or a film of a conversation, and the tokens of the marker that stands for it."""

    message: int
    """The message that has it."""
    part: int
    """Which part of that message's content it is."""
    start: int
    """The first token of the marker."""
    end: int
    """The token after its last."""


class ChatEncoding(NamedTuple):
    """The ids of a conversation and which of them belong to which message: what `encode_chat` returns with spans.

    >>> import ggtok
    >>> tok = ggtok.Tokenizer.builtin("bpe")
    >>> chat = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
    >>> encoding = tok.encode_chat(chat, add_generation_prompt=False, return_spans=True)
    >>> encoding.message_spans[1]
    (7, 17)
    >>> own = [id for id, own in zip(encoding.ids, encoding.assistant_mask, strict=True) if own]
    >>> tok.decode(own, unparse_special=True)
    'Hello<|im_end|>'
    """

    ids: list[int]
    text: str
    """The rendered text."""
    message_spans: list[tuple[int, int] | None]
    """For each message the tokens (start, end) from the first to the last that the template writes for it, or `None`
    if it writes none."""
    assistant_mask: list[bool]
    """For each token whether the assistant says it."""
    warnings: tuple[Finding, ...] = ()
    """What the model does not see, such as a message that the template leaves out."""
    media: tuple[ChatMedia, ...] = ()
    """Where the markers of images, sounds and films are, in the order of the text."""

    def to_dict(self) -> dict[str, Any]:
        """The same as a dict, for JSON."""
        rows = {name: [row._asdict() for row in getattr(self, name)] for name in ("warnings", "media")}
        return self._asdict() | rows
