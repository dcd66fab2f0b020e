"""Texts that tokenizers disagree on: one small generator per kind of trouble, all driven by one random source.

A text is bytes. `TextGenerator.text` joins the output of one to three generators and now and then damages it.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from functools import cache
from random import Random

WHITESPACE = (
    " \t\n\r\v\f\x1c\x1d\x1e\x1f\x85\u00a0\u1680\u2000\u2003\u2007\u2009\u200a\u200b\u200c\u200d\u2028\u2029\u202f"
    "\u205f\u2060\u3000\ufeff\u180e\u00ad\u2581"
)
SCRIPTS = [
    (0x20, 0x7E), (0xA0, 0xFF), (0x100, 0x24F), (0x300, 0x36F), (0x370, 0x3FF), (0x400, 0x4FF), (0x530, 0x58F),
    (0x590, 0x5FF), (0x600, 0x6FF), (0x900, 0x97F), (0x980, 0x9FF), (0xE00, 0xE7F), (0xE80, 0xEFF), (0x10A0, 0x10FF),
    (0x1000, 0x109F), (0x1100, 0x11FF), (0x1780, 0x17FF), (0x1C80, 0x1CBF), (0x1E00, 0x1FFF), (0x2000, 0x206F),
    (0x2100, 0x218F), (0x2E80, 0x2FDF), (0x3000, 0x303F), (0x3040, 0x30FF), (0x3130, 0x318F), (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF), (0xAC00, 0xD7AF), (0xF900, 0xFAFF), (0xFB00, 0xFB4F), (0xFE30, 0xFE4F), (0xFF00, 0xFFEF),
    (0x10400, 0x1044F), (0x1F300, 0x1FAFF), (0x1E900, 0x1E95F), (0x20000, 0x2FA1F), (0xE0100, 0xE01EF),
]  # fmt: skip
CONTRACTIONS = [
    "'s", "'S", "'t", "'T", "'re", "'rE", "'ve", "'VE", "'m", "'M", "'ll", "'lL", "'Ll", "'d", "'D",
    "\u2019s", "\u2019t", "'x", "'", "''", "'r", "'l", "'sd", "'s\u0301",
]  # fmt: skip
CASES = (
    "aAbBzZ\u00e9\u00c9\u00df\u0130\u0131\u01c5\u01f0\u03a3\u03c2\u1e9e\ufb01\u2160\u24d0\u0410\u0430\u02b0"
    "\u00aa\u4e2d\u0301"
)
DIGITS = "0123456789\u0660\u06f3\u0967\u00b2\u00bc\u2460\u2167\u3007\u4e00\uff11\U0001d7d8"
PUNCTUATION = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c\u00a7\u20ac\u00ab\u2014"
ODDITIES = [
    "<0x0A>", "<0x00>", "\u2581", "\u2581\u2581", "<unk>", "<s>", "</s>", "<|endoftext|>", "[UNK]", "[MASK]", "<mask>",
    "IMGIMGABZ", "<sentinel:12>", "don't", "e\u0301", "\u1112\u1161\u11ab", "1234567890", "1,234.50",
    "\U0001f468\u200d\U0001f469\u200d\U0001f467", "\r\n", "\n\n\n", "    ", "\\n", "\\x41", "http://a.b/c?d=e", "a_b",
    "\ufffd", "\0", "\ue000", "GGTTAA",
]  # fmt: skip
CLASSES = [
    *"azAZ 17!'\"(=`\n\t\0", "'s", "'ll", "Camel", " the", "\u00e9", "\u00c9", "\u0301", "\u00b2", "\u2019",
    "\u3000", "\u3002", "\u3040", "\u3042", "\u3099", "\u309b", "\u30a2", "\u30fb", "\u30fc", "\u4e2d", "\u3005",
    "\u3007", "\ufafe", "\uac00", "\uff08", "\u20ac", "\U0001f600", "\U00010410",
]  # fmt: skip
SOUPS: list[list[str]] = [
    [*WHITESPACE, " ", " ", "\n", "a", "1", "."],
    [*DIGITS, *"0123456789", *" ,.-a"],
    [*CONTRACTIONS, "a", "A", " ", "we", "\u00e9"],
    [*CASES, " ", "'s"],
    [*ODDITIES, *PUNCTUATION, " ", "a"],
]
INVALID = [
    b"\x80", b"\xbf\xbf", b"\xc3", b"\xe4\xb8", b"\xf0\x9f\x98", b"\xc0\x80", b"\xc1\xbf", b"\xe0\x80\x80",
    b"\xed\xa0\x80", b"\xed\xbf\xbf", b"\xf0\x80\x80\x80", b"\xfe", b"\xff", b"\xe4a", b"\xf0\x9fa",
    b"\xc3\xc3\xa9", b"\xf8\x88\x80\x80\x80",
]  # fmt: skip
BEYOND_UNICODE = [b"\xf4\x90\x80\x80", b"\xf5\x80\x80\x80", b"\xf7\xbf\xbf\xbf"]
"""Sequences that decode beyond U+10FFFF: llama.cpp aborts on these with several kinds of vocabulary."""


def overlong(character: int) -> list[bytes]:
    """The forms of an ASCII character in two, three and four bytes, which UTF-8 forbids and llama.cpp reads."""
    middle, last = 0x80 | character >> 6, 0x80 | character & 0x3F
    return [bytes([0xC0 | character >> 6, last]), bytes([0xE0, middle, last]), bytes([0xF0, 0x80, middle, last])]


ODD_UNITS = [
    *(form for character in range(0x80) for form in overlong(character)),
    *overlong(ord(" ")) * 20,
    *(bytes([byte]) for byte in range(0x80, 0x100)),
    *("\u0301".encode(), "\u3099".encode(), "\ufe0f".encode(), "\u200d".encode(), "\u0e33".encode()),
    *(b"\xed\xa0\xbd", b"\xed\xb8\x80", b"\xed\xa0\xbd\xed\xb8\x80", *INVALID),
]
"""Short sequences of bytes that are read in some odd way."""
NEIGHBOURS = [b"", b"", b"", b"\n", b"\n\n", b" ", b"  ", b"a", b"1", b".", "\u00e9".encode(), "\u2581".encode()]


@cache
def code_points_by_category() -> dict[str, list[int]]:
    """All code points by general category, so that rare categories are as likely as common ones."""
    categories: dict[str, list[int]] = {}
    for code_point in range(0x110000):
        categories.setdefault(unicodedata.category(chr(code_point)), []).append(code_point)
    return categories


class TextGenerator:
    """Writes texts for one vocabulary: `pieces` of its tokens, and `cut_out`, the texts of its special ones."""

    def __init__(self, rng: Random, pieces: Sequence[bytes], cut_out: Sequence[bytes]) -> None:
        self.rng = rng
        self.pieces = [piece for piece in pieces if piece] or [b"a"]
        self.cut_out = [text for text in cut_out if text] or [b"<s>"]
        self.letters = sorted({letter for piece in self.pieces[-64:] for letter in _characters(piece)})
        kinds: dict[Callable[[int], bytes], int] = {
            self.odd_units: 2, self.mixed_scripts: 2, self.any_code_points: 3, self.soup: 10, self.invalid_bytes: 2,
            self.random_bytes: 1, self.piece_soup: 4, self.letter_soup: 3, self.special_soup: 3, self.long_run: 2,
            self.dna: 1, self.class_runs: 3,
        }  # fmt: skip
        self.kinds, self.weights = list(kinds), list(kinds.values())

    def text(self) -> bytes:
        """The next text: mostly short, sometimes some thousand characters."""
        rng = self.rng
        size = int(2 ** rng.uniform(0, 11 if rng.random() < 0.15 else 6))
        kinds = rng.choices(self.kinds, self.weights, k=rng.choice([1, 1, 1, 2, 3]))
        text = b"".join(kind(size) for kind in kinds)
        if rng.random() < 0.05:
            at = rng.randint(0, len(text))
            text = text[:at] + rng.choice([rng.randbytes(1), b" ", b"", rng.choice(INVALID)]) + text[at + 1 :]
        return text

    def long_text(self) -> bytes:
        """Hundreds of texts in one, so that the caches fill and forget."""
        return b" ".join(self.text() for _ in range(600))

    def odd_units(self, _: int) -> bytes:
        """A few odd units alone, beside each other, beside special tokens, and between words and line ends."""
        parts = []
        for unit in self.rng.choices(ODD_UNITS, k=self.rng.choice([1, 1, 2, 3])):
            parts += [self.rng.choice(self.cut_out if self.rng.random() < 0.2 else NEIGHBOURS), unit]
        return b"".join([*parts, self.rng.choice(NEIGHBOURS)])

    def mixed_scripts(self, size: int) -> bytes:
        """Words of two or three scripts."""
        scripts = self.rng.sample(SCRIPTS, self.rng.randint(2, 3))
        words = (
            "".join(chr(self.rng.randint(*script)) for _ in range(self.rng.randint(1, 6)))
            for script in self.rng.choices(scripts, k=1 + size // 4)
        )
        return _bytes(self.rng.choice(["", " ", "\u3000"]).join(words))

    def any_code_points(self, size: int) -> bytes:
        """Code points of all categories with equal weight: marks, unassigned, private, surrogates."""
        categories = code_points_by_category()
        names = self.rng.choices(list(categories), k=size)
        return _bytes("".join(chr(self.rng.choice(categories[name])) for name in names))

    def invalid_bytes(self, size: int) -> bytes:
        """Bytes that are not UTF-8, between letters; rarely beyond Unicode."""
        choices = [*INVALID, b"a", b" ", "\u00e9".encode(), "\u4e2d".encode()]
        choices += BEYOND_UNICODE if self.rng.random() < 0.05 else []
        return b"".join(self.rng.choices(choices, k=1 + size // 2))

    def random_bytes(self, size: int) -> bytes:
        """Any bytes; few, because some sequences of four decode beyond Unicode."""
        return self.rng.randbytes(min(size, 16))

    def piece_soup(self, size: int) -> bytes:
        """Token texts in a row."""
        separator = self.rng.choice([b"", b"", b" "])
        return separator.join(self.rng.choices(self.pieces, k=1 + size // 3))

    def letter_soup(self, size: int) -> bytes:
        """The letters of the vocabulary's last tokens: dense in matches for small vocabularies."""
        return b"".join(self.rng.choices(self.letters, k=size))

    def special_soup(self, size: int) -> bytes:
        """Texts of special tokens, whole or cut short, with whitespace and words around them."""
        parts = []
        for special in self.rng.choices(self.cut_out, k=1 + size // 8):
            whole = self.rng.random() < 0.85
            parts += [special if whole else special[: self.rng.randint(0, len(special))]]
            parts += [_bytes(self.rng.choice(["", " ", "  ", "\n", "\t", "\u00a0", "x", " x ", "\u2581", "1"]))]
        self.rng.shuffle(parts)
        return b"".join(parts)

    def long_run(self, size: int) -> bytes:
        """One unit, repeated many times."""
        units = [*"aA1 \n\t.-\u00e9\u4e2d\u0301\u00a0\u2581'", "ab", "a ", " a", "1a", "\r\n", "a\u0301", "  a", "0,"]
        return _bytes(self.rng.choice(units)) * self.rng.choice([size, 4 * size, self.rng.randint(1, 1200)])

    def class_runs(self, size: int) -> bytes:
        """Runs of one character of each class, some as long as a block."""
        runs = (self.rng.choice(CLASSES) * self.rng.choice([1, 1, 1, 2, 3, 30, 70]) for _ in range(1 + size // 4))
        return _bytes("".join(runs))

    def dna(self, size: int) -> bytes:
        """Bases between markers."""
        bases = self._soup("ACGTacgtN"[: self.rng.randint(4, 9)], size)
        return b"<dna>" + bases + self.rng.choice([b"</dna>", b""])

    def soup(self, size: int) -> bytes:
        """White space of every kind, digits of all scripts, contractions, cases, or texts that some rule looks for."""
        return self._soup(self.rng.choice(SOUPS), size)

    def _soup(self, choices: Sequence[str], size: int) -> bytes:
        return _bytes("".join(self.rng.choices(choices, k=size)))


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _characters(piece: bytes) -> list[bytes]:
    return [_bytes(character) for character in piece.decode("utf-8", "replace")]
