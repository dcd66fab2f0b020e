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
from typing import Any, NamedTuple, SupportsIndex

from .._base import BaseTokenizer
from .text import Text, plain

TRUST = ("text", "ids")


class Fixed(NamedTuple):
    """Ids that stand for a range of characters."""

    start: int
    end: int
    ids: list[int]
    ending: int | None
    """The end-of-generation token that the model produced after them."""


class Place(NamedTuple):
    """The characters of a message."""

    start: int
    end: int
    content: tuple[int, int] | None
    """From the first to the last character of its content, if any is written."""


class Sampled(NamedTuple):
    """The ids of a message."""

    ids: list[int]
    """Without an end-of-generation token at their end."""
    ending: int | None
    """That token."""
    texts: tuple[str, ...]
    """Their text as the template may write it: with the texts of control tokens, and without."""
    trusted: bool
    """Whether the text does not matter."""
    prompt: str | None = None
    """The part of the generation prompt that belongs to the message, if the template writes it there again."""

    def agrees(self, content: Any) -> bool:
        """Whether the text is that of the content, except for white space at its ends."""
        return any(text.strip() == text_of(content).strip() for text in self.texts)


def text_of(content: Any) -> str:
    """The text of a message's content."""
    parts = content if isinstance(content, (list, tuple)) else [content]
    texts = [part.get("text") if isinstance(part, dict) else part for part in parts]
    return "\n".join(text for text in texts if isinstance(text, str))


def sampled(tokenizer: BaseTokenizer, before: list[int], ids: Iterable[SupportsIndex], trust: str) -> Sampled:
    """The ids of a message after a prompt that ends with the ids `before`.

    Raises:
        TokenIndexError: An id is not in the vocabulary.
        TypeError: An id is not an integer.
        ValueError: `trust` is something else.
    """
    if trust not in TRUST:
        raise ValueError(f"trust must be 'text' or 'ids', not {trust!r}")
    body = [index(id) for id in ids]
    tokenizer.decode(body)
    ending = body[-1] if body and body[-1] in tokenizer.vocab.eog_ids else None
    if ending is not None:
        body.pop()
    texts = []
    for with_special in (True, False):
        decoder = tokenizer.decoder(unparse_special=with_special)
        decoder.prime(before[-1:])
        texts.append(decoder.push(body) + decoder.flush())
    return Sampled(body, ending, tuple(dict.fromkeys(texts)), trust == "ids")


def places(text: Text, contents: dict[int, range]) -> dict[int, Place]:
    """Where the messages with these numbers are. For each, `contents` has the numbers of its content's strings."""
    found: dict[int, Place] = {}
    for start, end, origin in text.spans():
        message = origin.message
        if message is None or message not in contents:
            continue
        known = found.get(message)
        content = known.content if known else None
        if origin.leaf is not None and origin.leaf in contents[message]:
            content = (content[0] if content else start, end)
        found[message] = Place(known.start if known else start, end, content)
    return found


def located(
    tokenizer: BaseTokenizer, sampled: Sampled, text: Text, place: Place, ending: int | None, *, whole: bool
) -> Fixed | None:
    """What the ids stand for, or `None` if the template does not write the message so. `ending` is where the token
    starts that ends the message. `whole` is for all ids only."""
    value = plain(text)
    start = None
    if sampled.prompt is not None and value.startswith(sampled.prompt, place.start):
        start = place.start + len(sampled.prompt)

    def from_prompt(first: int) -> int:
        """Where the prompt ends, if there is only white space up to `first`."""
        return first if start is None or start > first or value[start:first].strip() else start

    written = _exactly(sampled, value, place, start)
    if written is None and sampled.trusted:
        first = start if start is not None else place.content[0] if place.content else None
        last = ending if ending is not None else place.content[1] if place.content else place.end
        written = (first, last) if first is not None and first <= last else None
    if written is not None:
        return Fixed(from_prompt(written[0]), written[1], sampled.ids, sampled.ending)
    if place.content is None:
        return None
    said = value[slice(*place.content)].strip()
    if any(each.strip() == said for each in sampled.texts):
        return Fixed(from_prompt(place.content[0]), place.content[1], sampled.ids, sampled.ending)
    kept = None if whole else _suffix(tokenizer, sampled, value[slice(*place.content)])
    return None if kept is None else Fixed(*place.content, sampled.ids[kept:], sampled.ending)


def _exactly(sampled: Sampled, value: str, place: Place, start: int | None) -> tuple[int, int] | None:
    """The characters that are the text of the ids, if they include the content."""
    last = place.content[1] if place.content else start
    for text in sampled.texts:
        if start is not None and last is not None and value.startswith(text, start) and start + len(text) >= last:
            return start, start + len(text)
        if last is not None and place.start <= last - len(text) and value.endswith(text, place.start, last):
            first = last - len(text)
            if place.content is None or first <= place.content[0]:
                return first, last
    return None


def _suffix(tokenizer: BaseTokenizer, sampled: Sampled, text: str) -> int | None:
    """The first of the last ids whose text, apart from white space at its ends, is this."""
    if not text.strip() or not any(each.rstrip().endswith(text.strip()) for each in sampled.texts):
        return None
    wanted, rest = text.strip(), b""
    limit = len(text.encode("utf-8", "replace")) + len(sampled.texts[0].encode("utf-8", "replace"))
    for at in range(len(sampled.ids) - 1, -1, -1):
        rest = tokenizer.piece(sampled.ids[at]) + rest
        if len(rest) > limit:
            break
        if len(rest) >= len(wanted) and rest.decode("utf-8", "replace").strip() == wanted:
            return at
    return None
