"""What is recorded of a text: every step to its tokens. `Trace` adds the ways to show it, which take a `Record`."""

from __future__ import annotations

import json
import sys
from base64 import b64decode
from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from operator import index as as_int
from typing import Any

from ...errors import GgtokError
from ...trace import CodePoint, Fragment, Reason, SpecialMatch, Text, Token
from .utf8 import to_bytes, to_text


def names_of(kind: Any) -> tuple[str, ...]:
    """The fields of a class as JSON names them."""
    return tuple(each.name.rstrip("_") for each in fields(kind) if each.init)


STEPS = {names_of(kind): kind for kind in vars(sys.modules[Token.__module__]).values() if is_dataclass(kind)}
"""The classes of `ggtok.trace` by their fields, which no two share."""


def read(text: str, classes: Mapping[tuple[str, ...], Any]) -> Any:
    """What JSON holds: lists are tuples, and an object is of the class that has its fields. O(n) for n bytes."""

    def made(found: dict[str, Any]) -> Any:
        if "base64" in found:
            return b64decode(found["base64"])
        found.pop("kind", None)  # The class says the same.
        return classes[tuple(found)](*(tuple(each) if type(each) is list else each for each in found.values()))

    return json.loads(text, object_hook=made)


@dataclass(frozen=True, slots=True)
class Why:
    """Why characters did not become one token. `print` shows it as sentences. Positions are in characters."""

    start: int
    """Where the characters start in the text."""
    end: int
    """Where they end."""
    text: Text
    """The characters."""
    tokens: tuple[Token, ...]
    """The tokens that they became."""
    reasons: tuple[Reason, ...]
    """The reasons, the most important first."""

    def __str__(self) -> str:
        became = " ".join(repr(token.piece) for token in self.tokens) or "no token"
        reasons = [f"- {reason.message}" for reason in self.reasons]
        return "\n".join([f"{self.text!r} (characters {self.start} to {self.end}) became {became}.", *reasons])

    def _repr_html_(self) -> str:
        from ...tokenizer.notebook import printed

        return printed(str(self))


@dataclass(frozen=True, slots=True, repr=False)
class Record:
    """The steps, as `Trace` has them. Positions are in bytes unless they are said to be in characters."""

    schema: int
    """The version of this schema; it grows when a field changes its meaning or goes."""
    algorithm: str
    """The algorithm: `spm`, `bpe`, `wordpiece`, `unigram`, `rwkv`, `plamo2` or `test`."""
    text: Text
    """The text."""
    add_special: bool
    """Whether BOS, EOS and SEP were added."""
    parse_special: bool
    """Whether control tokens in the text were read as tokens."""
    continues: bool
    """Whether the text continued an earlier one."""
    code_points: tuple[CodePoint, ...]
    """The text as code points."""
    unread: tuple[SpecialMatch, ...]
    """Special tokens that are written in the text and were not read, because `parse_special` is off."""
    special: tuple[SpecialMatch, ...]
    """The searches for special tokens that found something, in their order: the longest special text first."""
    fragments: tuple[Fragment, ...]
    """What the special tokens leave of the text, and the special tokens, in the order of the text."""
    added_before: int | None
    """The token added before the text."""
    added_after: int | None
    """The token added after the text."""
    tokens: tuple[Token, ...]
    """The result: the ids of `encode`."""

    _raw: Any = field(init=False, compare=False)  # a `_ggtok.RawTrace`
    _tokenizer: Any = field(init=False, compare=False)

    @property
    def ids(self) -> list[int]:
        """The ids of the tokens, as `encode` returns them."""
        return [token.id for token in self.tokens]

    @property
    def offsets(self) -> list[tuple[int, int]]:
        """Where each token starts and ends in the text, in characters, as `encode_with_offsets` returns it.

        >>> import ggtok
        >>> ggtok.Tokenizer.builtin("bpe").explain("naïve").offsets
        [(0, 2), (2, 3), (3, 5)]
        """
        starts = [*(code_point.start for code_point in self.code_points), len(to_bytes(self.text))]
        # If a character is more than one token, each has all of it.
        return [(bisect_right(starts, token.start) - 1, bisect_left(starts, token.end)) for token in self.tokens]

    def why(self, start: int, end: int) -> Why:
        """Why these characters did not become one token, or that they did.

        Args:
            start: Where they start in the text, in characters.
            end: Where they end.

        Raises:
            TypeError: `start` or `end` is not an integer.
            GgtokError: There are no such characters in the text.

        >>> import ggtok
        >>> trace = ggtok.Tokenizer.builtin("bpe").explain("What is LoRA?")
        >>> trace.why(8, 12).reasons[0].kind
        'not_in_vocabulary'
        """
        start, end = as_int(start), as_int(end)
        size = len(self.code_points)
        if not 0 <= start < end <= size:
            raise GgtokError(f"characters {start} to {end} are not a part of a text of {size} characters")
        first, last = self.code_points[start].start, self.code_points[end - 1].end
        why = reasons(self, first, last)
        starts = [code_point.start for code_point in self.code_points]
        for reason in why["reasons"]:
            reason["at"] = None if reason["at"] is None else bisect_left(starts, reason["at"])
        found = tuple(Reason(**reason) for reason in why["reasons"])
        text = to_bytes(self.text)[first:last]
        return Why(start, end, to_text(text), tuple(self.tokens[place] for place in why["tokens"]), found)

    def to_json(self) -> str:
        """The trace as a JSON object. `docs/trace.md` describes it."""
        json: str = self._raw.json()
        return json


def reasons(record: Record, start: int, end: int) -> Any:
    """As `Record.why` for bytes, as JSON has it."""
    return json.loads(record._raw.why(start, end))
