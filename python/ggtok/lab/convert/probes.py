"""Texts on which llama.cpp and a file's own library may give different ids, and the warning if they do.

Where a text is cut matters only if a token goes over the cut. So the texts are the vocabulary's own tokens, one for
each sequence of kinds of characters, alone, twice, and beside others.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from itertools import islice

from ...tokenizer.base import BaseTokenizer
from ...tokenizer.findings import Finding, warn_of
from .library import Library

ADVICE = "compare ids for texts in which it matters"
TEXTS = (
    "we'Ve I'LL",
    "1234567 \u0663\u00bd",
    "e\u0301 \u01c5a\u017b",
    "\u4e2d\u30c6\u30b9 \u0e44\u0e17",
    "a  b\tc \r\n\n d\n",
    "x_y!= \u20ac",
)
BESIDE = ("{}", "{}{}", "x{}", "{}x", "{}3", "{}!", "{}'s")
"""What a token is tried beside."""
MAX_TOKEN, MAX_SHAPES, MAX_MERGES = 12, 400, 20
"""The longest token that is tried, in characters, and how many shapes and merges are."""
BETWEEN = "\x01"
"""What is put between texts that are tried together."""
RARE = "\U00010380qwxz"
"""Letters, of which a vocabulary may lack some."""


def warn_of_differences(tokenizer: BaseTokenizer, library: Library) -> None:
    """Warns if the file's own library gives other ids. O(n) for n tokens."""

    def differs(text: str) -> bool:
        return library.ids(text) != tokenizer.encode(text, add_special=False)

    try:
        # Together, texts take less time.
        found = next((texts for texts in _texts(tokenizer, library) if differs(BETWEEN.join(texts))), None)
        text = found and repr(next(filter(differs, found), BETWEEN.join(found)))
    except ValueError as error:
        text = f"a text that needs {error}"
    if text is not None:
        message = f"the file's patterns or normalizers are not llama.cpp's: ids differ, for example of {text}"
        warn_of(Finding("conversion-differs", "warning", message, ADVICE))


def _texts(tokenizer: BaseTokenizer, library: Library) -> Iterator[list[str]]:
    """Lists of texts, each to be tried together."""
    yield from ([text] for text in TEXTS)
    # Characters that are not tokens go before the merges in tokenizers, and after them in llama.cpp.
    rules = islice((rule for rule in library.merges if library.vocab.keys() >= {*rule}), MAX_MERGES)
    sides = [[tokenizer.piece(library.vocab[side]) for side in rule] for rule in rules]
    for unknown in (char for char in RARE if not library.ids(char)):
        yield [unknown.join(side.decode("utf-8", "replace") for side in rule) for rule in sides]
    shapes: dict[str, str] = {}
    for piece in tokenizer.vocab.pieces:
        text = piece.decode("utf-8", "replace")
        if 1 < len(text) <= MAX_TOKEN and text not in library.added and len(shapes) < MAX_SHAPES:
            shapes.setdefault(_shape(text), text)
    for text in shapes.values():
        yield [beside.replace("{}", text) for beside in BESIDE]


def _shape(text: str) -> str:
    """The kinds of its characters; what goes on like that for three characters may go on."""
    kinds = "".join(char if char in "\r\n\t '" else unicodedata.category(char)[0] for char in text)
    return re.sub(r"(.)\1{2,}", r"\1\1\1", kinds, flags=re.DOTALL)
