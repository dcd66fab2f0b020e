"""UTF-8 as llama.cpp reads it (unicode.cpp): by the lead byte's high bits, overlong forms and surrogates included.

Deviation: a code point beyond U+10FFFF, at which llama.cpp's byte-pair and WordPiece code aborts, becomes U+FFFD
unless the caller asks for it unchanged.
"""

from __future__ import annotations

REPLACEMENT = 0xFFFD


def sequence_len(lead: int) -> int:
    """How many bytes the lead byte announces; 1 for a continuation byte."""
    return 1 if lead < 0xC0 else 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4


def decode(text: bytes, at: int) -> tuple[int, int] | None:
    """The code point at `at` and its length, or None if no whole sequence starts there."""
    lead = text[at]
    if lead < 0x80:
        return lead, 1
    length = sequence_len(lead)
    tail = text[at + 1 : at + length]
    if lead < 0xC0 or lead >= 0xF8 or len(tail) != length - 1 or any(byte & 0xC0 != 0x80 for byte in tail):
        return None
    code_point = lead & (0x7F >> length)
    for byte in tail:
        code_point = code_point << 6 | byte & 0x3F
    return code_point, length


def code_points(text: bytes, *, beyond: bool = False) -> list[int]:
    """All code points, U+FFFD for each byte that starts no sequence; `beyond` keeps those above U+10FFFF."""
    result, at = [], 0
    while at < len(text):
        code_point, length = decode(text, at) or (REPLACEMENT, 1)
        result.append(REPLACEMENT if code_point > 0x10FFFF and not beyond else code_point)
        at += length
    return result


def encode(code_point: int) -> bytes:
    return chr(code_point).encode("utf-8", "surrogatepass")


def pieces(text: bytes) -> list[bytes]:
    """The text cut into characters by lead bytes alone; the last one may be cut short."""
    result, at = [], 0
    while at < len(text):
        length = sequence_len(text[at])
        result.append(text[at : at + length])
        at += length
    return result
