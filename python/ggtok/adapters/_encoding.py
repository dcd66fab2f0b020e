"""An encoding in the form of huggingface/tokenizers: a list of runs, each a slice of a text's tokens or of added ones.

Cutting, padding and joining only makes other runs of the same sources. What nobody asks for is never computed: spans
and texts of tokens are made on first use.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from operator import itemgetter
from typing import Any, Literal, NamedTuple, TypeAlias

from ..errors import GgtokError

Span: TypeAlias = tuple[int, int]
Known: TypeAlias = tuple[list[str], list[Span]]
"""The texts and spans of tokens."""
Direction: TypeAlias = Literal["left", "right"]


class Source:
    """Encoded tokens: their ids, texts and spans."""

    __slots__ = ("_ids", "_known", "_more")

    _known: Known | None

    def __init__(self, ids: Any, more: Callable[[], Known]) -> None:
        """`more` makes the texts and spans of the tokens, when they are asked for."""
        self._ids, self._more, self._known = ids, more, None

    @classmethod
    def known(cls, ids: list[int], tokens: list[str], spans: list[Span]) -> Source:
        """Tokens whose texts and spans are there."""
        return cls(ids, lambda: (tokens, spans))

    @classmethod
    def added(cls, ids: list[int], tokens: list[str]) -> Source:
        """Tokens that come from no text."""
        return cls.known(ids, tokens, [(0, 0)] * len(ids))

    def ids(self, start: int, stop: int) -> list[int]:
        part: Any = self._ids[start:stop]
        return part if isinstance(part, list) else list(part.tolist())

    @property
    def tokens(self) -> list[str]:
        return self._both()[0]

    @property
    def spans(self) -> list[Span]:
        return self._both()[1]

    def _both(self) -> Known:
        if self._known is None:
            self._known = self._more()
        return self._known

    def __len__(self) -> int:
        return len(self._ids)

    def __reduce__(self) -> tuple[object, ...]:
        return Source.known, (self.ids(0, len(self)), *self._both())


class Run(NamedTuple):
    """A slice of a source."""

    source: Source
    start: int
    stop: int
    sequence: int | None
    """Which text of a pair it is from; `None` for tokens that come from no text."""
    type_id: int = 0
    is_padding: bool = False

    @property
    def num_tokens(self) -> int:
        return self.stop - self.start


Runs: TypeAlias = tuple[Run, ...]


def num_tokens(runs: Runs) -> int:
    return sum(run.num_tokens for run in runs)


def cut(runs: Runs, start: int, stop: int) -> Runs:
    """The tokens from `start` to `stop`."""
    found, at = [], 0
    for run in runs:
        first, last = max(run.start, run.start + start - at), min(run.stop, run.start + stop - at)
        if first < last:
            found.append(run._replace(start=first, stop=last))
        at += run.num_tokens
    return tuple(found)


def parts(runs: Runs, max_length: int, stride: int, direction: Direction) -> list[Runs]:
    """The runs cut into parts of at most so many tokens, each of which repeats `stride` tokens of the one before."""
    length = num_tokens(runs)
    if length <= max_length:
        return [runs]
    if max_length == 0:
        return [(), runs]
    if stride >= max_length:
        raise GgtokError(f"stride must be less than the {max_length} tokens of a part, not {stride}")
    num_parts = 1 + -(-(length - max_length) // (max_length - stride))
    starts = [part * (max_length - stride) for part in range(num_parts)]
    if direction == "right":
        return [cut(runs, start, min(start + max_length, length)) for start in starts]
    return [cut(runs, max(length - start - max_length, 0), length - start) for start in starts]


def padded(runs: Runs, length: int, id: int, type_id: int, token: str, direction: Direction) -> Runs:
    """The runs filled up to `length` tokens."""
    missing = length - num_tokens(runs)
    if missing <= 0:
        return runs
    padding = Run(Source.added([id] * missing, [token] * missing), 0, missing, None, type_id, is_padding=True)
    return (padding, *runs) if direction == "left" else (*runs, padding)


def check_direction(direction: str) -> Direction:
    """Raises `GgtokError` for anything but "left" and "right"."""
    if direction not in ("left", "right"):
        raise GgtokError(f"Invalid truncation direction value : {direction}")  # the words of tokenizers
    return direction  # type: ignore[return-value]


class Encoding:
    """The tokens of a text or of a pair of texts, with the attributes of a `tokenizers.Encoding`.

    llama.cpp has no words, so there is no `word_ids`, nor what else asks for words.

    >>> import ggtok
    >>> tokenizer = ggtok.adapters.tokenizers.Tokenizer(ggtok.Tokenizer.builtin("wordpiece"))
    >>> encoding = tokenizer.encode("Hello world")
    >>> encoding.tokens
    ['[CLS]', 'hell', '##o', 'world', '[SEP]']
    >>> encoding.offsets
    [(0, 0), (0, 4), (4, 5), (6, 11), (0, 0)]
    """

    __slots__ = ("_others", "_runs")

    def __init__(self, runs: Runs, others: Callable[[], list[Runs]] = list) -> None:
        """`others` makes the runs of the parts that truncation has cut off."""
        self._runs, self._others = runs, others

    @property
    def ids(self) -> list[int]:
        """The ids."""
        return self._joined(lambda run: run.source.ids(run.start, run.stop))

    @property
    def tokens(self) -> list[str]:
        """The texts of the tokens, as `id_to_token` returns them."""
        return self._joined(lambda run: run.source.tokens[run.start : run.stop])

    @property
    def offsets(self) -> list[Span]:
        """The span of each token in its text, in characters; `(0, 0)` for tokens that come from no text."""
        return self._joined(lambda run: run.source.spans[run.start : run.stop])

    @property
    def type_ids(self) -> list[int]:
        """0 for the first text and 1 for the second, with the tokens added to each."""
        return self._each(lambda run: run.type_id)

    @property
    def attention_mask(self) -> list[int]:
        """0 for padding, otherwise 1."""
        return self._each(lambda run: int(not run.is_padding))

    @property
    def special_tokens_mask(self) -> list[int]:
        """1 for BOS, EOS, SEP and padding that were added, otherwise 0."""
        return self._each(lambda run: int(run.sequence is None))

    @property
    def sequence_ids(self) -> list[int | None]:
        """Which of the two texts each token is from; `None` for those that come from no text."""
        return self._each(lambda run: run.sequence)

    def _each(self, value: Callable[[Run], Any]) -> list[Any]:
        return self._joined(lambda run: [value(run)] * run.num_tokens)

    def _joined(self, values: Callable[[Run], list[Any]]) -> list[Any]:
        joined: list[Any] = []
        for run in self._runs:
            joined += values(run)
        return joined

    @property
    def n_sequences(self) -> int:
        """The number of texts: 1, or 2 for a pair."""
        return max((run.sequence for run in self._runs if run.sequence is not None), default=0) + 1

    @property
    def overflowing(self) -> list[Encoding]:
        """The parts that truncation has cut off."""
        return [Encoding(runs) for runs in self._others()]

    def char_to_token(self, char_pos: int, sequence_index: int = 0) -> int | None:
        """The index of the token that has this character of a text; `None` if there is none. O(log n)."""
        at = 0
        for run in self._runs:
            if run.sequence == sequence_index:
                spans = run.source.spans
                found = bisect_right(spans, char_pos, run.start, run.stop, key=itemgetter(1))
                if found < run.stop and spans[found][0] <= char_pos:
                    return at + found - run.start
            at += run.num_tokens
        return None

    def token_to_chars(self, token_index: int) -> Span | None:
        """The span of a token in its text; `None` for an added token or an index out of range."""
        found = self._find(token_index)
        return None if found is None or found[0].sequence is None else found[0].source.spans[found[1]]

    def token_to_sequence(self, token_index: int) -> int | None:
        """Which text a token is from; `None` for an added token or an index out of range."""
        found = self._find(token_index)
        return None if found is None else found[0].sequence

    def _find(self, index: int) -> tuple[Run, int] | None:
        """The run that has a token, and the token's index in the source."""
        for run in self._runs if index >= 0 else ():
            if index < run.num_tokens:
                return run, run.start + index
            index -= run.num_tokens
        return None

    def truncate(self, max_length: int, stride: int = 0, direction: str = "right") -> None:
        """Cuts this encoding; `overflowing` then has the rest, in parts that repeat `stride` tokens.

        Raises `GgtokError`, a `ValueError`, if `stride` is not less than `max_length`, or `direction` is not "left" or
        "right".
        """
        first, *others = parts(self._runs, max_length, stride, check_direction(direction))
        if others:
            self._runs, self._others = first, lambda: others

    def pad(
        self, length: int, *, direction: str = "right", pad_id: int = 0, pad_type_id: int = 0, pad_token: str = "[PAD]"
    ) -> None:
        """Fills this encoding and the overflowing ones up to `length` tokens.

        Raises `GgtokError`, a `ValueError`, if `direction` is not "left" or "right".
        """
        side = check_direction(direction)

        def full(runs: Runs) -> Runs:
            return padded(runs, length, pad_id, pad_type_id, pad_token, side)

        others = self._others
        self._runs, self._others = full(self._runs), lambda: [full(runs) for runs in others()]

    def __len__(self) -> int:
        return num_tokens(self._runs)

    def __reduce__(self) -> tuple[object, ...]:
        return _unpickled, (self._runs, self._others())

    def __repr__(self) -> str:
        return f"<ggtok.adapters.tokenizers.Encoding of {len(self)} tokens>"


def _unpickled(runs: Runs, others: list[Runs]) -> Encoding:
    return Encoding(runs, lambda: others)
