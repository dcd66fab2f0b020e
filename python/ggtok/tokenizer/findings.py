"""Findings about a file, a conversation or a corpus, and how they become warnings."""

from __future__ import annotations

import reprlib
import sys
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

PACKAGE = __name__.partition(".")[0]
"""The first part of the names of all our modules."""


class Finding(NamedTuple):
    """A problem with a file's tokenizer, as `Tokenizer.check` returns it.

    >>> import ggtok
    >>> tok = ggtok.Tokenizer.builtin("spm")
    >>> [finding.code for finding in tok.check() if finding.severity == "error"]
    []
    """

    code: str
    """The kind of finding: a name that stays the same from version to version."""
    severity: Literal["error", "warning", "note"]
    """error: ids are wrong or calls fail. warning: they probably are or will. note: it can surprise you."""
    message: str
    """What was found."""
    advice: str
    """What to do about it."""
    key: str | None = None
    """The metadata key concerned."""
    tokens: tuple[int, ...] = ()
    """The ids of the tokens concerned."""
    repair: Mapping[str, Any] | None = None
    """What mends it: arguments of `ggtok.edit`. `None` if the file does not say what would be right."""

    def __str__(self) -> str:
        return f"{self.severity}: {self.message}; {self.advice} [{self.code}]"

    def __repr__(self) -> str:
        """All fields, with the first of the tokens: there can be thousands."""
        fields = {name: repr(value) for name, value in self._asdict().items()}
        fields |= {"tokens": reprlib.repr(self.tokens), "repair": reprlib.repr(self.repair)}
        return f"Finding({', '.join(f'{name}={value}' for name, value in fields.items())})"


class TokenizerWarning(UserWarning):
    """A warning when a file is opened: its tokenizer gives ids that the model was not trained with, or calls fail.
    Also if a store or a command of another distribution is broken.

    `finding` is the `Finding`, as `Tokenizer.check` returns it.
    """

    def __init__(self, finding: Finding) -> None:
        self.finding = finding
        super().__init__(f"{finding.message}; {finding.advice} [{finding.code}]")


def warn_of(finding: Finding) -> None:
    """Issues a `TokenizerWarning` for the line of the caller's code that called ggtok."""
    import warnings

    frame, level = sys._getframe(), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == PACKAGE:
        frame, level = frame.f_back, level + 1
    warnings.warn(TokenizerWarning(finding), stacklevel=level)
