"""A reference with known faults, to test the fuzzer itself: it must find and shrink each, and survive it."""

from __future__ import annotations

import os
import re

from ggtok.lab.verify.answerers import Ours, Reference

WRONG_TEXT = b"1a"
"""`WrongIds` loses the last id of any text in which these two bytes occur."""
FATAL_TEXT = b"\x1c"
"""`Crashing` ends its process on any text with this byte."""


class WrongIds(Reference):
    """Returns wrong ids for some texts and wrong bytes for some ids."""

    def encode(self, text: bytes, add_special: bool, parse_special: bool) -> list[int]:
        """Loses the last id where `WRONG_TEXT` occurs."""
        ids = super().encode(text, add_special, parse_special)
        return ids[:-1] if WRONG_TEXT in text else ids

    def decode(self, ids: list[int], remove_special: bool, unparse_special: bool) -> bytes:
        """Changes the case of one letter."""
        return re.sub(b"Z", b"z", super().decode(ids, remove_special, unparse_special))


class Crashing(Reference):
    """Aborts the process on some texts."""

    def encode(self, text: bytes, add_special: bool, parse_special: bool) -> list[int]:
        """Aborts where `FATAL_TEXT` occurs."""
        if FATAL_TEXT in text:
            os.abort()
        return super().encode(text, add_special, parse_special)


class WrongOurs(Ours):
    """ggtok with wrong ids for some texts."""

    def encode(self, text: bytes, add_special: bool, parse_special: bool) -> list[int]:
        """Loses the last id where `WRONG_TEXT` occurs."""
        ids = super().encode(text, add_special, parse_special)
        return ids[:-1] if WRONG_TEXT in text else ids
