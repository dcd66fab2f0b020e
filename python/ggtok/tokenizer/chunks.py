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
    texts: Iterable[AnyStr], split: Callable[[AnyStr], list[Chunk[AnyStr]]], threads: int
) -> list[list[Chunk[AnyStr]]]:
    """The chunks of many texts, on several threads, in the order of the texts."""
    from concurrent.futures import ThreadPoolExecutor

    def numbered(item: tuple[int, AnyStr]) -> list[Chunk[AnyStr]]:
        number, text = item
        try:
            return split(text)
        except (TypeError, ValueError) as error:
            error.args = (f"text {number}: {error}",)
            raise

    if threads == 1:
        return list(map(numbered, enumerate(texts)))
    with ThreadPoolExecutor(threads) as executor:
        return list(executor.map(numbered, list(enumerate(texts))))
