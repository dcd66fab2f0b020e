"""What `Tokenizer.explain` returns: every step from a text to its tokens."""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from operator import index as as_int
from typing import Any, Literal

from ... import trace as steps
from ..._ggtok import explain as recorded
from ...errors import ArgumentTypeError, GgtokError
from ...trace import CodePoint, Fragment, Reason, SpecialMatch, Text, Token
from .texts import to_bytes, to_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Iterable

    from ...tokenizer.base import BaseTokenizer
    from ...tokenizer.base import Text as AnyText


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
        from ...tokenizer.notebook import outline

        return outline(str(self))


@dataclass(frozen=True, slots=True, repr=False)
class Trace:
    """Every step from a text to its tokens: what `Tokenizer.explain` returns. Immutable.

    `print` shows it in short, and `to_text("all")` as tables. Positions are in bytes unless they are said to be in
    characters. A trace is equal to another with the same steps. It pickles as its tokenizer and text, and is made again
    from them.

    >>> import ggtok
    >>> trace = ggtok.Tokenizer.builtin("bpe").explain("What is LoRA?")
    >>> trace
    <ggtok.Trace of 'What is LoRA?': bpe, 6 tokens>
    >>> trace.ids
    [9713, 5981, 6266, 78, 9612, 30]
    >>> [token.piece for token in trace.tokens]
    ['What', ' is', ' L', 'o', 'RA', '?']
    """

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
        why = json.loads(self._raw.why(first, last))
        starts = [code_point.start for code_point in self.code_points]
        for reason in why["reasons"]:
            reason["at"] = None if reason["at"] is None else bisect_left(starts, reason["at"])
        reasons = tuple(Reason(**reason) for reason in why["reasons"])
        text = to_bytes(self.text)[first:last]
        return Why(start, end, to_text(text), tuple(self.tokens[place] for place in why["tokens"]), reasons)

    def to_json(self) -> str:
        """The trace as a JSON object. `docs/trace.md` describes it."""
        json: str = self._raw.json()
        return json

    def to_text(
        self,
        tables: Iterable[str] | Literal["all"] | None = None,
        *,
        width: int | None = None,
        max_rows: int = 40,
        colors: bool = False,
    ) -> str:
        """The trace in short, as `print` shows it, or as tables.

        Args:
            tables: `"all"`, or the names of some, such as `["queue", "merges"]`; docs/explain.md lists them. By default
                there is no table, but the idea of the algorithm, the text cut into its tokens, and a line for each
                piece or word that says how it became them.
            width: Columns of the terminal: those of this one by default, 80 if there is none.
            max_rows: The most rows of a table. A longer one is shortened in the middle.
            colors: Whether to use the terminal's colours.

        Raises:
            TypeError: An argument has the wrong type.
            GgtokError: The trace has no such table, `width` is less than 20, or `max_rows` less than 2.

        >>> import ggtok
        >>> trace = ggtok.Tokenizer.builtin("bpe").explain("LoRA")
        >>> print(trace.to_text(["queue"], width=80))
        Queue of 'LoRA'
        Neighbours that can merge wait in a queue: the lowest rank comes first, the
        leftmost of equal ones.
        rank  size  text  left  right  token
        9356     2  'RA'     2      3   9612
        """
        from . import brief, text

        if isinstance(tables, str) and tables != "all":
            raise ArgumentTypeError('tables must be "all" or an iterable of names, not one str')
        width, max_rows = text.checked(width, max_rows)
        if tables is None:
            return brief.render(self, width, bool(colors))
        wanted = None if tables == "all" else tables
        return text.render(self, wanted, width=width, max_rows=max_rows, colors=bool(colors))

    def to_html(self, path: str | os.PathLike[str]) -> None:
        """Writes the trace as one self-contained page that needs no network.

        Raises:
            OSError: The file cannot be written.
        """
        from ...tokenizer.files import write
        from .html import page

        write(path, page(self).encode())

    def _repr_html_(self) -> str:
        from .html import fragment

        return fragment(self)

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        start, rest = self.text[:40], "..." if len(self.text) > 40 else ""
        return f"<ggtok.Trace of {start!r}{rest}: {self.algorithm}, {len(self.tokens)} tokens>"

    def __reduce__(self) -> tuple[object, ...]:
        settings = (self.add_special, self.parse_special, self.continues)
        return explain, (self._tokenizer, self.text, *settings)


def explain(tokenizer: BaseTokenizer, text: AnyText, add_special: bool, parse_special: bool, continues: bool) -> Trace:
    """What `Tokenizer.explain` does."""
    raw = recorded(tokenizer, text, add_special, parse_special, continues)
    trace: Trace = raw.objects({**vars(steps), "Trace": Trace})
    object.__setattr__(trace, "_raw", raw)
    object.__setattr__(trace, "_tokenizer", tokenizer)
    return trace
