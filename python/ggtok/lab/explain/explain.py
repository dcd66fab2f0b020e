"""What `Tokenizer.explain` returns: every step from a text to its tokens."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Literal

from ..._ggtok import explain as recorded
from ...errors import ArgumentTypeError
from ...tokenizer.base import BaseTokenizer
from ...tokenizer.base import Text as AnyText
from .record import STEPS, Record, names_of, read


class Trace(Record):
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

    __slots__ = ()

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
                it shows no table but the idea of the algorithm, the text cut into its tokens, and a line for each piece
                or word that says how it became them.
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
        from . import brief, terminal_tables

        if isinstance(tables, str) and tables != "all":
            raise ArgumentTypeError('tables must be "all" or an iterable of names, not one str')
        width, max_rows = terminal_tables.checked(width, max_rows)
        if tables is None:
            return brief.render(self, width, bool(colors))
        wanted = None if tables == "all" else tables
        return terminal_tables.render(self, wanted, width=width, max_rows=max_rows, colors=bool(colors))

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


CLASSES = {**STEPS, names_of(Trace): Trace}


def explain(tokenizer: BaseTokenizer, text: AnyText, add_special: bool, parse_special: bool, continues: bool) -> Trace:
    """What `Tokenizer.explain` does."""
    raw = recorded(tokenizer, text, add_special, parse_special, continues)
    trace: Trace = read(raw.json(), CLASSES)
    object.__setattr__(trace, "_raw", raw)
    object.__setattr__(trace, "_tokenizer", tokenizer)
    return trace
