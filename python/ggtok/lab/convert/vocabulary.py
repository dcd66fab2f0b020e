"""A vocabulary as other formats want it: texts, types, scores, and the patterns that cut texts into pieces."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cached_property
from typing import NamedTuple, NoReturn

from ..._ggtok import apply_charsmap, charsmap, families, pretokenizers, texts
from ...errors import ConversionError
from ...tokenizer.base import BaseTokenizer
from ...tokenizer.check import NOT_IN_UTF8
from ...tokenizer.vocab import TokenAttribute, attributes, scores

UNKNOWN, UNUSED, NORMAL, CONTROL, USER_DEFINED, BYTE, _, LSTRIP, RSTRIP, _ = map(int, TokenAttribute)

SPACE = "\u2581"
"""What SentencePiece writes for a space."""

NUM_BYTES = 256

CODED = ("afmoe", "kimi-k2", "tiny-aya")
"""Families that llama.cpp cuts with hand-written code, not as their patterns say."""

CASELESS = ("youtu",)
"""Families for whose classes of letters, such as capital ones, llama.cpp takes all letters."""


def _stand_ins() -> dict[str, int]:
    """GPT-2's printable characters, one for each byte: most of Latin 1 stands for itself, the rest follows U+00FF."""
    itself = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(NUM_BYTES) if byte not in itself]
    return {chr(byte): byte for byte in itself} | {chr(NUM_BYTES + at): byte for at, byte in enumerate(others)}


BYTE_OF = _stand_ins()
"""The byte of each of GPT-2's stand-ins."""

_TO_LATIN_1 = dict.fromkeys(range(NUM_BYTES), NUM_BYTES) | {ord(spelled): byte for spelled, byte in BYTE_OF.items()}
"""From stand-ins to the characters of Latin 1 that have the same bytes, and from others to one that has none."""

STAND_INS = sorted(BYTE_OF, key=BYTE_OF.__getitem__)
BYTE_TOKENS = [f"<0x{byte:02X}>" for byte in range(NUM_BYTES)]
"""What stands for each byte in byte-level BPE, and in vocabularies with byte fallback."""


class Special(NamedTuple):
    """A token that is found by its text before anything else."""

    id: int
    text: str
    is_control: bool
    lstrip: bool
    rstrip: bool


class Vocabulary:
    """What all exports read. `refuse` ends one and says why."""

    def __init__(self, tokenizer: BaseTokenizer, format: str) -> None:
        self.tokenizer, self.vocab, self.format = tokenizer, tokenizer.vocab, format

    def refuse(self, reason: str) -> NoReturn:
        raise ConversionError(self.format, reason)

    def need_kind(self, *kinds: str) -> None:
        """Ends the export of any other kind."""
        if self.vocab.kind not in kinds:
            self.refuse(f"a vocabulary of kind {self.vocab.kind!r} has no counterpart there")

    @cached_property
    def texts(self) -> list[str]:
        raw = texts(self.tokenizer)
        try:
            return [text.decode() for text in raw]
        except UnicodeDecodeError as error:
            self.refuse(f"the text of token {raw.index(error.object)} is not UTF-8: {error.object!r}")

    @cached_property
    def by_text(self) -> dict[str, int]:
        return {text: id for id, text in enumerate(self.texts)}

    @cached_property
    def attributes(self) -> list[int]:
        return attributes(self.vocab)

    @cached_property
    def scores(self) -> list[float]:
        found = scores(self.vocab)
        for id, score in enumerate(found):
            if not float("-inf") < score < float("inf"):
                self.refuse(f"the score of token {id} {self.texts[id]!r} is {score}")
        return found or [0.0] * len(self.vocab)

    @cached_property
    def special(self) -> list[Special]:
        """Control, unknown and user-defined tokens. One that is user-defined and ends generation is control."""
        control = CONTROL | UNKNOWN
        return [
            Special(id, self.texts[id], bool(bits & control), bool(bits & LSTRIP), bool(bits & RSTRIP))
            for id, bits in enumerate(self.attributes)
            if bits & (control | USER_DEFINED)
        ]

    @property
    def unigram_scores(self) -> list[float]:
        """The scores, and the lowest one for tokens that llama.cpp does not look for in words.

        They would be found where their text occurs, and the score of unknown characters follows from the lowest of all.
        """
        pairs = list(zip(self.scores, self.attributes, strict=True))
        lowest = min((score for score, bits in pairs if bits & NORMAL), default=0.0)
        return [max(score, lowest) if bits & (NORMAL | UNUSED) else lowest for score, bits in pairs]

    @property
    def charsmap(self) -> bytes:
        """The character map. Ends the export if other libraries would apply it where llama.cpp does not.

        llama.cpp leaves a text that starts like a user-defined token as it is, even if the token is not complete.
        """
        found = charsmap(self.tokenizer)
        for token in self.special:
            start, is_kept = token.text[:-1], self.attributes[token.id] & USER_DEFINED
            if is_kept and (" " in start or SPACE in start or apply_charsmap(found, start) != start):
                why = "llama.cpp does not normalize what begins like the user-defined token"
                self.refuse(f"{why} {token.text!r}, which it would")
        return found

    @property
    def patterns(self) -> list[str]:
        if self.family in CODED:
            self.refuse(f"no pattern describes what the pre-tokenizer {self.vocab.pre!r} does")
        patterns = list(families()[self.family]["patterns"])
        if self.family in CASELESS:
            patterns = [re.sub(r"\\p\{L[a-z]\}", r"\\p{L}", pattern) for pattern in patterns]
        return patterns

    @property
    def family(self) -> str:
        assert self.vocab.pre is not None
        return pretokenizers()[self.vocab.pre]["family"]

    @property
    def is_byte_level(self) -> bool:
        """Whether this is byte-level BPE: tokens are spelled with GPT-2's stand-ins."""
        is_plain = self.vocab.model == "gpt2" and not self.vocab.settings["escape_whitespaces"]
        return is_plain and families()[self.family]["byte_encode"]

    def need_bytes(self, tokens: Iterable[str | None]) -> None:
        """Ends the export of a vocabulary without a token for each byte of UTF-8, given the token of each byte."""
        for byte, token in enumerate(tokens):
            if byte not in NOT_IN_UTF8 and (token is None or self.vocab.id(token) is None):
                self.refuse(f"every byte must have a token, and 0x{byte:02X} has none")

    def spelled(self, text: str) -> bytes | None:
        """The bytes of a byte-level token, or `None` if a character does not stand for a byte."""
        try:
            return text.translate(_TO_LATIN_1).encode("latin-1")
        except UnicodeEncodeError:
            return None
