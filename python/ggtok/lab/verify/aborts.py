"""Why llama.cpp ends its process, or never answers, on some texts and files: the rows of docs/deviations.md about that,
each with the message by which it is recognized."""

from __future__ import annotations

import re
from typing import NamedTuple

from .serve import Query

LONG_TEXT = 100_000
"""Bytes from which a text may overflow the stack of `std::regex`."""

BY_MESSAGE = (
    (r"invalid codepoint", None, "bytes that decode to a code point beyond U+10FFFF"),
    (r"token_(left|right)\.find\(' '\)", None, "a merge meets a space"),
    (r"_Map_base::at|unordered_map::at", "spm", "a byte that has no token"),
    (r"(special_\w+_id|token_\w+\(\)) != LLAMA_TOKEN_NULL", None, "a special token that must be added and is missing"),
    (r"id_to_token\.size\(\) == token_to_id\.size\(\)", None, "two tokens with the same text"),
    (r"Tokenizer not initialized|type != LLAMA_VOCAB_TYPE_NONE", None, "a file without a vocabulary"),
)
"""For each deviation whose abort has a message: a pattern for that, the kind of vocabulary if it is only one, and what
llama.cpp cannot do."""

PLACE = re.compile(r"^.*?([\w.-]+\.(?:c|cc|cpp|cu|h|hpp)):\d+: ")
"""Where a message was written, with the folder that llama.cpp was built in."""


class Abort(NamedTuple):
    """A call on which llama.cpp gave no answer."""

    call: str
    """The kind of call: `encode`, `decode`, `open`, …"""
    how: str
    """How its process ended: the name of a signal, an exit code, or `no answer in 20 s`."""
    message: str
    """What it wrote last, without line numbers."""
    deviation: str | None
    """Which of the listed deviations it is; `None` if it is none of them."""

    def __str__(self) -> str:
        message = f": {self.message}" if self.message else ""
        return f"{self.call}, {self.how}{message} ({self.deviation or 'not a listed deviation'})"


def abort(query: Query, how: str, message: str, kind: str | None) -> Abort:
    """What is known about the end of llama.cpp's process. `kind` is the vocabulary's kind, if it is open."""
    said = last_words(message)
    return Abort(query[0], how, said, _deviation(query, how, said, kind))


def last_words(message: str) -> str:
    """The line of a message in which the reason is."""
    lines = [PLACE.sub(r"\1: ", line.strip()) for line in message.splitlines()]
    said = [line for line in lines if re.search(r"GGML_ASSERT|GGML_ABORT|what\(\):|\.cpp: ", line)] or lines[-1:]
    return said[-1].removeprefix("what():").strip() if said else ""


def _deviation(query: Query, how: str, message: str, kind: str | None) -> str | None:
    for pattern, only_kind, deviation in BY_MESSAGE:
        if re.search(pattern, message) and only_kind in (None, kind):
            return deviation
    if query[0] == "decode" and min(query[1], default=0) < 0 and "vector::_M_range_check" in message:
        return "an id that does not exist"
    if query[0] == "open" and kind is None and message.endswith("fatal error"):
        return "a byte token in a WordPiece vocabulary"
    if how.startswith("no answer") and kind == "rwkv":
        return "a byte that begins tokens but is not one"
    if how == "SIGSEGV" and query[0] == "encode" and len(query[1]) >= LONG_TEXT:
        return "std::regex overflows the stack on a long text"
    return None
