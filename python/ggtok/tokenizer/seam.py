"""What the parts use of a tokenizer besides its public calls: the functions here, and the names in this list.

A part imports nothing else of this folder, and reads no private attribute. `scripts/check_structure.py` reads the list.
"""

from __future__ import annotations

from importlib import import_module

from .._ggtok import Metadata
from .base import BaseTokenizer
from .findings import Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def users_class() -> type[Any]:
    """`ggtok.Tokenizer`, for a part that opens a file by its path without being given a tokenizer or a class. It is
    looked up by its name, as pickle does, because it is above the parts."""
    tokenizer: type[Any] = import_module("ggtok").Tokenizer
    return tokenizer


def metadata_of(tokenizer: BaseTokenizer) -> Metadata:
    """All metadata, arrays and overrides included."""
    return tokenizer._metadata


def path_of(tokenizer: BaseTokenizer) -> str | None:
    """The path of the file that it was made from, if there is one: no call replaces that unasked."""
    return tokenizer._source


def findings_of(tokenizer: BaseTokenizer) -> tuple[Finding, ...]:
    """What it was opened with: what a caller should know about the program that the model was found in."""
    return tokenizer._findings


def digest_of(tokenizer: BaseTokenizer) -> str:
    """The digest of vocabulary, settings and merges, in hexadecimal."""
    return tokenizer.vocab._identity().hex()
