"""Writes rust/core/src/text/unicode/tables.rs: page tables of llama.cpp's character classes and character maps.

The facts are those of the Unicode Character Database 15.1 as llama.cpp reads it
(`scripts/gen-unicode-data.py`, `unicode_cpt_flags_array` in `src/unicode.cpp`):

1. A code point's class is the first letter of its general category; `Cn` alone is "undefined".
2. Whitespace is the property `White_Space`.
3. "lowercase" and "uppercase" mark the *targets* of the simple case mappings; a letter without a partner has neither.
4. The map that strips accents sends a code point to the first code point of its canonical decomposition; "nfd" marks
   the targets and U+0000.

Categories and decompositions come from the package `unicodedata2`. It has no case mappings, so those are Python's own,
without the ones whose partner 15.1 does not have: Unicode never removes a mapping. Hangul syllables are not in the map;
`unicode.rs` computes them.

The tables are written for a diff to be readable, and the compiler expands them into indexes of pages of 32 code points:
see `unicode.rs`.

    pip install unicodedata2==15.1.0
    python scripts/generate_unicode.py
"""

from __future__ import annotations

import importlib
import itertools
import sys
import unicodedata
from collections.abc import Iterable, Iterator
from pathlib import Path

UNICODE_VERSION = "15.1.0"
OUTPUT = Path(__file__).parent.parent / "rust/core/src/text/unicode/tables.rs"
CODE_POINTS = range(0x110000)
SURROGATES = range(0xD800, 0xE000)
HANGUL_SYLLABLES = range(0xAC00, 0xD7A4)
WHITE_SPACE = {
    *range(0x09, 0x0E),
    *range(0x2000, 0x200B),
    *(0x20, 0x85, 0xA0, 0x1680, 0x2028, 0x2029, 0x202F, 0x205F, 0x3000),
}

# llama.cpp's bits.
UNDEFINED = 0x001
CLASSES = {"N": 0x002, "L": 0x004, "Z": 0x008, "M": 0x010, "P": 0x020, "S": 0x040, "C": 0x080}
WHITESPACE, LOWERCASE, UPPERCASE, NFD = 0x100, 0x200, 0x400, 0x800

PAGE = 32
# The class table ends here, after the last dense plane; the few ranges beyond are listed one by one.
PAGED_END = 0x40000
# Columns of the written file.
WIDTH = 120

ucd = importlib.import_module("unicodedata2")


def simple_lowercase(char: str) -> str:
    """The simple mapping. Python has full mappings, which differ for lower case in U+0130 only."""
    return "i" if char == "\u0130" else char.lower()


def simple_uppercase(char: str) -> str:
    """The simple mapping: if the full one is a string, the titlecase character or no mapping."""
    return next((upper for upper in (char.upper(), char.title()) if len(upper) == 1), char)


def changes(mapping: Iterable[tuple[str, str]]) -> dict[int, int]:
    """The pairs of different characters that the database both has."""
    return {
        ord(char): ord(other)
        for char, other in mapping
        if char != other and "Cn" not in (ucd.category(char), ucd.category(other))
    }


def paged(values: list[int]) -> tuple[list[int], list[int]]:
    """The page number of each page, and the distinct pages in order of appearance, end to end."""
    numbers: dict[tuple[int, ...], int] = {}
    index = [numbers.setdefault(tuple(values[at : at + PAGE]), len(numbers)) for at in range(0, len(values), PAGE)]
    return index, [value for page in numbers for value in page]


def runs(values: list[int]) -> Iterator[tuple[int, int]]:
    """Each value with how often it follows in a row."""
    return ((value, len(list(run))) for value, run in itertools.groupby(values))


def lines(items: Iterable[str], indent: str, end: str = "") -> str:
    """Items in lines of the source."""
    rows, width = [""], 0
    for item in items:
        columns = sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in item)
        if width + columns > WIDTH - len(indent) - len(end):
            rows.append("")
            width = 0
        rows[-1] += item
        width += columns
    return "".join(f"{indent}{row.rstrip()}{end}\n" for row in rows)


def text(characters: Iterable[str]) -> str:
    """A string literal."""
    return '"\\\n' + lines(characters, "    ", "\\").removesuffix("\\\n") + '"'


def array(name: str, kind: str, values: list[int], doc: str) -> str:
    """A table of numbers as Rust."""
    body = lines((f"{value:#x}, " for value in values), "    ")
    return f"/// {doc}\npub(super) static {name}: [{kind}; {len(values)}] = [\n{body}];\n"


def visible(code_point: int) -> str:
    """A character inside a literal; escaped if it combines with its neighbour or looks like another character."""
    char = chr(code_point)
    is_plain = ucd.category(char)[0] in "LNS" and ucd.normalize("NFC", char) == char and char not in '"\\'
    return char if is_plain else f"\\u{{{code_point:x}}}"


def code_point_map(name: str, mapping: dict[int, int], doc: str) -> str:
    """A map as Rust: a text of pairs."""
    num_pages = 1 + len({code_point // PAGE for code_point in mapping})
    kind = f"Map<{max(mapping) // PAGE + 1}, {num_pages}>"
    pairs = text(visible(code_point) + visible(target) for code_point, target in sorted(mapping.items()))
    return f"/// {doc}\npub(super) static {name}: {kind} = Map::from_pairs({pairs});\n"


def tables() -> str:
    """The whole file."""
    lowercase = changes((char, simple_lowercase(char)) for char in map(chr, CODE_POINTS))
    uppercase = changes((char, simple_uppercase(char)) for char in map(chr, CODE_POINTS))
    base = changes((chr(c), ucd.normalize("NFD", chr(c))[0]) for c in CODE_POINTS if c not in SURROGATES)

    categories = (ucd.category(chr(code_point)) for code_point in CODE_POINTS)
    flags = [UNDEFINED if category == "Cn" else CLASSES[category[0]] for category in categories]
    for flag, members in (
        (WHITESPACE, WHITE_SPACE),
        (LOWERCASE, set(lowercase.values())),
        (UPPERCASE, set(uppercase.values())),
        (NFD, {0, *base.values()}),
    ):
        for code_point in members:
            flags[code_point] |= flag

    distinct = sorted(set(flags))
    class_index, class_pages = paged([distinct.index(value) for value in flags[:PAGED_END]])
    high: list[list[int]] = []
    for code_point in range(PAGED_END, len(flags)):
        if flags[code_point] == UNDEFINED:
            continue
        if high and high[-1][1:] == [code_point - 1, flags[code_point]]:
            high[-1][1] = code_point
        else:
            high.append([code_point, code_point, flags[code_point]])
    high_rows = "".join(f"    ({first:#x}, {last:#x}, {value:#x}),\n" for first, last, value in high)

    index = lines((f"{page}, " if count == 1 else f"-{count}, {page}, " for page, count in runs(class_index)), "    ")
    letters = text(chr(ord("A") + place) + str(count) * (count > 1) for place, count in runs(class_pages))
    hangul_is_computed = {c: target for c, target in base.items() if c not in HANGUL_SYLLABLES}

    return "\n".join(
        (
            "//! Generated from the Unicode Character Database "
            + f"{UNICODE_VERSION} by `python scripts/generate_unicode.py`. DO NOT EDIT.\n",
            "use super::{Map, PAGE, letters, unrun};\n",
            array("FLAGS", "u16", distinct, "The combinations of flags that occur."),
            array("ASCII_FLAGS", "u16", flags[:0x80], "The flags of ASCII."),
            f"/// The page of each {PAGE} code points below {PAGED_END:#x}. After -n, "
            + "the next number repeats n times.\n"
            + f"pub(super) static CLASS_INDEX: [u16; {len(class_index)}] = unrun(&[\n{index}]);\n",
            f"/// The distinct pages of {PAGE} code points: places in `FLAGS`. "
            + "`A` is place 0, and `B12` is 12 times place 1.\n"
            + f"pub(super) static CLASS_PAGES: [[u8; PAGE]; {len(class_pages) // PAGE}] = letters({letters});\n",
            f"/// First, last and flags of what is defined from {PAGED_END:#x} on.\n"
            + f"pub(super) static HIGH_RANGES: [(u32, u32, u16); {len(high)}] = [\n{high_rows}];\n",
            code_point_map("LOWERCASE", lowercase, "Pairs of a code point and its lowercase partner."),
            code_point_map("BASE", hangul_is_computed, "Pairs of a code point and its base letter."),
        )
    )


def main() -> None:
    """Checks the two databases and writes the file."""
    if ucd.unidata_version != UNICODE_VERSION:
        sys.exit(f"unicodedata2 has Unicode {ucd.unidata_version}; {UNICODE_VERSION} is needed")
    if int(unicodedata.unidata_version.partition(".")[0]) < 14:
        sys.exit("this Python lacks case mappings of Unicode 15.1; 3.11 or newer is needed")
    OUTPUT.write_text(tables(), encoding="utf-8")


if __name__ == "__main__":
    main()
