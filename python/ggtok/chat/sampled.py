"""Messages with the ids that a model produced: where they belong in what the template writes.

1. The ids have a text. An end-of-generation token at their end is not part of it: the template writes its own there.
2. If the template writes that text, from the end of its generation prompt or to the end of the content, the ids stand
   for exactly these characters.
3. Otherwise they stand for the content that it writes, if that differs in white space at its ends only. White space
   between the prompt and the content is part of it.
4. If it writes only the end of the content, as templates that drop earlier reasoning do, the last ids stand for it.

With `trust="ids"` they stand for all that the template writes between its generation prompt and the token that ends the
message, whatever that is.

Complexity: O(n) for a message of n characters, and O(runs) for finding all messages in a text.
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import index
from typing import Any, NamedTuple, SupportsIndex, TypeAlias

from .._ggtok import Rendering
from ..tokenizer.arguments import one_of
from ..tokenizer.base import BaseTokenizer

TRUST = ("text", "ids")

Place: TypeAlias = tuple[int, int, tuple[int, int] | None]
"""Where a message starts and ends, and its content: see `Rendering.places`."""


class Fixed(NamedTuple):
    """Ids that stand for a range of bytes."""

    start: int
    end: int
    ids: list[int]
    ending: int | None
    """The end-of-generation token that the model produced after them."""
    message: int


class Sampled(NamedTuple):
    """The ids of a message."""

    message: int
    ids: list[int]
    """Without an end-of-generation token at their end."""
    ending: int | None
    """That token."""
    texts: tuple[bytes, ...]
    """Their text as the template may write it: with the texts of control tokens, and without."""
    trusted: bool
    """Whether the text does not matter."""
    prompt: bytes | None = None
    """The part of the generation prompt that belongs to the message, if the template writes it there again."""

    def agrees(self, content: Any) -> bool:
        """Whether the text equals the content, except for white space at the ends."""
        said = text_of(content).encode("utf-8", "surrogatepass").strip()
        return any(text.strip() == said for text in self.texts)


def text_of(content: Any) -> str:
    """The text of a message's content."""
    parts = content if isinstance(content, (list, tuple)) else [content]
    texts = [part.get("text") if isinstance(part, dict) else part for part in parts]
    return "\n".join(text for text in texts if isinstance(text, str))


def sampled(
    tokenizer: BaseTokenizer, before: list[int], message: int, ids: Iterable[SupportsIndex], trust: str
) -> Sampled:
    """The ids of a message after a prompt that ends with the ids `before`.

    Raises:
        TokenIndexError: An id is not in the vocabulary.
        TypeError: An id is not an integer.
        GgtokError: `trust` is something else.
    """
    one_of("trust", trust, TRUST)
    body = [index(id) for id in ids]
    tokenizer.decode(body)
    ending = body[-1] if body and body[-1] in tokenizer.vocab.eog_ids else None
    if ending is not None:
        body.pop()
    texts = []
    for with_special in (True, False):
        decoder = tokenizer.decoder(text=False, unparse_special=with_special)
        decoder.prime(before[-1:])
        texts.append(decoder.push(body) + decoder.flush())
    return Sampled(message, body, ending, tuple(dict.fromkeys(texts)), trust == "ids")


def located(
    tokenizer: BaseTokenizer, own: Sampled, rendering: Rendering, data: bytes, place: Place | None, *, whole: bool
) -> Fixed | None:
    """What the ids stand for in a rendering, whose bytes are `data`, or `None` if the template does not write the
    message so. `place` is that of the message. `whole` is for all ids only."""
    if place is None:
        return None
    begin, finish, content = place
    start = None
    if own.prompt is not None and data.startswith(own.prompt, begin):
        start = begin + len(own.prompt)

    def fixed(first: int, last: int) -> Fixed:
        # White space between the prompt and the content is part of it.
        if start is not None and start <= first and not data[start:first].strip():
            first = start
        return Fixed(first, last, own.ids, own.ending, own.message)

    written = _exactly(own, data, begin, content, start)
    if written is None and own.trusted:
        first = start if start is not None else content[0] if content else None
        last = _ending(tokenizer, rendering, data, content[1] if content else begin, finish)
        if last is None:
            last = content[1] if content else finish
        written = (first, last) if first is not None and first <= last else None
    if written is not None:
        return fixed(*written)
    if content is None:
        return None
    said = data[slice(*content)].strip()
    if any(each.strip() == said for each in own.texts):
        return fixed(*content)
    kept = None if whole else _suffix(tokenizer, own, said)
    return None if kept is None else Fixed(*content, own.ids[kept:], own.ending, own.message)


def _ending(tokenizer: BaseTokenizer, rendering: Rendering, data: bytes, first: int, last: int) -> int | None:
    """Where the token starts that ends a message whose content ends at `first`."""
    texts = (tokenizer.piece(id) for id in tokenizer.vocab.eog_ids)
    ends = (data.rfind(text, first, last) for text in texts if text)
    return max((end for end in ends if end >= 0 and rendering.is_template(end)), default=None)


def _exactly(
    own: Sampled, data: bytes, begin: int, content: tuple[int, int] | None, start: int | None
) -> tuple[int, int] | None:
    """The bytes that are the text of the ids, if they include the content."""
    last = content[1] if content else start
    for text in own.texts:
        if start is not None and last is not None and data.startswith(text, start) and start + len(text) >= last:
            return start, start + len(text)
        if last is not None and begin <= last - len(text) and data.endswith(text, begin, last):
            first = last - len(text)
            if content is None or first <= content[0]:
                return first, last
    return None


def _suffix(tokenizer: BaseTokenizer, own: Sampled, wanted: bytes) -> int | None:
    """The first of the last ids whose text, apart from white space at its ends, is this."""
    if not wanted or not any(each.rstrip().endswith(wanted) for each in own.texts):
        return None
    rest = b""
    for at in range(len(own.ids) - 1, -1, -1):
        rest = tokenizer.piece(own.ids[at]) + rest
        if len(rest) >= len(wanted) and rest.strip() == wanted:
            return at
    return None
