"""What `tokenizers.Tokenizer` takes: texts and pairs, how they are truncated, and how they are padded."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypedDict

from ..errors import ArgumentTypeError, GgtokError

STRATEGIES = ("longest_first", "only_first", "only_second")


class Truncation(TypedDict):
    """The arguments of `enable_truncation`."""

    max_length: int
    stride: int
    strategy: str
    direction: str


class Padding(TypedDict):
    """The arguments of `enable_padding`."""

    length: int | None
    pad_to_multiple_of: int | None
    pad_id: int
    pad_token: str
    pad_type_id: int
    direction: str


def checked(text: Any, is_pretokenized: bool) -> Any:
    """A text, or the list of its words. Raises `TypeError`, in the words of tokenizers, for anything else."""
    if not is_pretokenized:
        if not isinstance(text, str):
            raise ArgumentTypeError(f"TextInputSequence must be str, not {type(text).__name__}")
        return text
    words = None if isinstance(text, str) or not isinstance(text, Iterable) else list(text)
    if words is None or not all(isinstance(word, str) for word in words):
        raise ArgumentTypeError(
            f"PreTokenizedInputSequence must be Union[List[str], Tuple[str]], not {type(text).__name__}"
        )
    return words


def sequences(item: Any, is_pretokenized: bool) -> list[Any]:
    """The text of an item of a batch, or the two of a pair."""
    try:
        return [checked(item, is_pretokenized)]
    except TypeError:
        if isinstance(item, str) or not isinstance(item, Iterable):
            raise
    pair = list(item)
    if len(pair) != 2:
        raise ArgumentTypeError(f"an item of a batch is a text or a pair of texts, not {len(pair)} of them")
    return [checked(text, is_pretokenized) for text in pair]


def kept_lengths(lengths: list[int], budget: int, strategy: str) -> list[int]:
    """How many tokens truncation keeps of each text, if both together are over the budget.

    Raises `GgtokError` if the text to cut is not there, or too short.
    """
    if strategy == "longest_first":
        if len(lengths) == 1:
            return [budget]
        short, long = sorted(lengths)
        long = short if short > budget else max(short, budget - short)
        if short + long > budget:
            short, long = budget // 2, budget - budget // 2
        return [short, long] if lengths[0] <= lengths[1] else [long, short]
    number = ("only_first", "only_second").index(strategy)
    if number == len(lengths):
        raise GgtokError("strategy only_second needs a pair of texts")
    kept = lengths[number] - (sum(lengths) - budget)
    if kept <= 0:
        raise GgtokError(f"strategy {strategy} has to remove all {lengths[number]} tokens of that text, or more")
    return [kept, *lengths[1:]] if number == 0 else [lengths[0], kept]
