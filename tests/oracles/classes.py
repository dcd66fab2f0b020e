"""llama.cpp's character classes, lowercase and accent-stripping maps.

Source: `reference/unicode-*.tsv` under `GGTOK_SHARED`, which cover every code point. Without them the classes come from
Python's own Unicode database, which agrees for characters that all supported Python versions have assigned; `ALPHABET`
holds only such characters.
"""

from __future__ import annotations

import os
import unicodedata
from functools import cache
from pathlib import Path

UNDEFINED, NUMBER, LETTER, SEPARATOR, MARK, PUNCTUATION, SYMBOL, CONTROL, WHITESPACE = (1 << bit for bit in range(9))
CATEGORIES = {
    "N": NUMBER,
    "L": LETTER,
    "Z": SEPARATOR,
    "M": MARK,
    "P": PUNCTUATION,
    "S": SYMBOL,
    "C": CONTROL,
}
SPACES = {*range(0x9, 0xE), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000}
ALPHABET = (
    "abcxyzABCLXZ stdmrelv'STREVMLD0123789 \t\r\n.,!?-_<>|[]{}()$+=^~`\"/\\#@:;%&*\x00\x01\x1c\x7f\x85\xa0\xad"
    "\u00aa\u00b2\u00b5\u00df\u00c5\u00e9\u00e0\u00d1\u0130\u0131\u017f\u0301\u030a\u0308\u0345\u0391\u03c9\u0416\u0436"
    "\u05d0\u05b0\u0627\u064b\u0664\u0915\u093f\u0966\u0e01\u0e31\u1100\u1161\uac00\u1e9e\u1ea5\u2000\u2028\u200b\u200d"
    "\u2014\u2019\u2026\u20ac\u2160\u2460\u2581\u2c00\u3000\u3002\u3042\u30ab\u3400\u4e00\u9fa5\uf900\ufb01\ufeff\uff01"
    "\uff21\uff10\ufffd\ufe0f\ue000\U00010400\U0001d400\U0001d7ce\U0001f600\U0001f3fd\U00020000\U0002f800\U000e0001"
)


def table_dir() -> Path:
    """The folder of the tables, which may not exist."""
    default = Path(__file__).resolve().parents[2] / "../shared"
    return Path(os.environ.get("GGTOK_SHARED", default)) / "reference"


@cache
def _ranges(name: str) -> dict[int, int]:
    """A table of `first last value` or `first value` lines as one entry per code point."""
    table: dict[int, int] = {}
    for line in (table_dir() / name).read_text().splitlines():
        if line and not line.startswith("#"):
            first, *last, value = (int(column, 16) for column in line.split("\t"))
            table.update(dict.fromkeys(range(first, (last[0] if last else first) + 1), value))
    return table


@cache
def _complete() -> bool:
    return (table_dir() / "unicode-flags.tsv").is_file()


@cache
def flags(code_point: int) -> int:
    if _complete():
        return _ranges("unicode-flags.tsv").get(code_point, UNDEFINED)
    category = unicodedata.category(chr(code_point))
    space = WHITESPACE if code_point in SPACES else 0
    return space | (UNDEFINED if category == "Cn" else CATEGORIES[category[0]])


@cache
def lowercase(code_point: int) -> int:
    if _complete():
        return _ranges("unicode-tolower.tsv").get(code_point, code_point)
    return ord(chr(code_point).lower()[0])


@cache
def base_letter(code_point: int) -> int:
    if _complete():
        return _ranges("unicode-nfd.tsv").get(code_point, code_point)
    return ord(unicodedata.normalize("NFD", chr(code_point))[0])


HAN = (
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2EBEF),
    (0x2F800, 0x2FA1F),
)


def is_han(code_point: int) -> bool:
    return any(first <= code_point <= last for first, last in HAN)
