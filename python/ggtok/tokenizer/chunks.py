"""Chunks of a text, as `Tokenizer.split` and `Tokenizer.split_batch` return them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, AnyStr, Generic, NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing_extensions import TypeVar

    Slice = TypeVar("Slice", bound=str | bytes, default=str)
else:
    Slice = AnyStr


class Chunk(NamedTuple, Generic[Slice]):
    """A slice of a text that fits a budget of tokens.

    >>> import ggtok
    >>> ggtok.Tokenizer.builtin("bpe").split("One sentence. And another.", 5)[0]
    Chunk(text='One sentence. ', start=0, end=14, count=5)
    """

    text: Slice
    """The slice: `text[start:end]` of the text that was split."""
    start: int
    """Where it starts: in characters, or in bytes if the text is bytes."""
    end: int
    """Where it ends."""
    count: int  # type: ignore[assignment]
    """How many tokens it has when it is encoded by itself, with the prefix if there is one. Added ones are included."""

    def to_dict(self) -> dict[str, Any]:
        """The same as a dict, for JSON."""
        return self._asdict()


def stripped(
    chunks: Iterable[Chunk[AnyStr]],
    max_tokens: int,
    count: Callable[[AnyStr], int],
    split: Callable[[AnyStr], list[Chunk[AnyStr]]],
) -> Iterator[Chunk[AnyStr]]:
    """Chunks without white space at their ends. One that has nothing else is left out.

    A text may have more tokens without the space before it. What is over the budget then is cut again.
    """
    for chunk in chunks:
        text = chunk.text.strip()
        if not text:
            continue
        start = chunk.start + chunk.text.index(text)
        number = count(text)
        if number <= max_tokens:
            yield Chunk(text, start, start + len(text), number)
        else:
            for part in stripped(split(text), max_tokens, count, split):
                yield part._replace(start=start + part.start, end=start + part.end)


def split_all(
    texts: list[AnyStr], split: Callable[[AnyStr], list[Chunk[AnyStr]]], threads: int
) -> list[list[Chunk[AnyStr]]]:
    """The chunks of many texts, on several threads, in the order of the texts."""
    from concurrent.futures import ThreadPoolExecutor

    step = min(64, 1 + len(texts) // (16 * threads))  # to hand over a part takes as long as to split a short text

    def part(start: int) -> list[list[Chunk[AnyStr]]]:
        found: list[list[Chunk[AnyStr]]] = []
        try:
            found.extend(map(split, texts[start : start + step]))  # those before an error are in it
        except (TypeError, ValueError) as error:
            error.args = (f"text {start + len(found)}: {error}",)
            raise
        return found

    with ThreadPoolExecutor(threads) as executor:
        return [chunks for found in executor.map(part, range(0, len(texts), step)) for chunks in found]
