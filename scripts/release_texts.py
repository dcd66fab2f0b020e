"""Texts on which releases of llama.cpp could differ, made from what the tokenizers read and not at random.

For a pre-tokenizer every pair of the characters that its patterns tell apart, and every triple of its own classes; for
a normalizer every mark, every character that decomposes, and both cases of every letter; for special tokens their texts
between words. Several of them share a text: texts are what costs time, and a difference in one unit does not hide one
in the next. `probe` is a vocabulary in which every pair of characters is a token, so that every cut shows.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import product
from pathlib import Path
from random import Random

from ggtok import _ggtok
from ggtok._verify.texts import TextGenerator, code_points_by_category

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))
from oracles.gguf_vocab import CONTROL, NORMAL, TokenType, Vocab
from oracles.spelling import BYTE_TOKENS, BYTES

MOST_CLASSES = 16
"""Members of a pre-tokenizer's classes of which triples are made; the most general ones come first."""
LINE = 24
"""Units in one text."""
ASCII = [*"aZsTl01 \n\r\t", *(chr(code) for code in range(0x21, 0x7F) if not chr(code).isalnum())]
GENERAL = [" ", "\n", "a", "Z", "1", "'s", "."]
"""Members of the classes that nearly all patterns have."""
BY_PROPERTY = {
    "L": "a\u4e2d\u00e9",
    "N": "1\u00b2",
    "P": ".\u3002",
    "S": "~+\u20ac",
    "M": "\u0301\u0903",
    "Lu": "Z\u00c9",
    "Lt": "\u01c5",
    "Lm": "\u02b0",
    "Lo": "\u4e2d\u0e01",
    "Ll": "a\u00e9",
    "Han": "\u4e2d\u3005",
    "AFMoE_digits": "1\u0661",
}
"""Characters of each class that patterns name."""
SPECIAL_TEXTS = (
    "</s>",
    "<s>",
    "<unk>",
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|end|>",
    "<|eot_id|>",
    "<start_of_turn>",
    "<end_of_turn>",
    "<bos>",
    "<eos>",
    "[CLS]",
    "[SEP]",
    "[UNK]",
    "[PAD]",
    "[MASK]",
    "<mask>",
    "<pad>",
    "<|channel|>",
    "<|message|>",
    "<|start|>",
    "<|constrain|>",
    "<0x0A>",
    "<dna>ACGT</dna>",
    "<|fim_prefix|>",
    "<turn|>",
)
"""Texts that some loader looks for, whether the vocabulary has them or not."""
NATURAL = (
    "The quick brown fox, 1234567 times; don't they're I'LL.\n\n\tif (x == 10) { return f(~y, 'a'); }  // done\r\n",
    "\u4eca\u65e5\u306f\u3001\u4e16\u754c\uff01 \u00dcn\u00efc\u00f6d\u00e9 caf\u00e9 \u0645\u0631\u062d\u0628\u0627 "
    "\u0928\u092e\u0938\u094d\u0924\u0947 \u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35 \U0001f468\u200d\U0001f469 \uc548\ub155",
    "def f(a, b=2):\n    return a ** b - ~a  # x@y.z 3.14e-10 https://a.b/~c?d=e&f\n",
)


def class_members(pre: str) -> list[str]:
    """Characters of each class and each literal in the patterns of a pre-tokenizer, without repetitions."""
    found = dict.fromkeys(GENERAL)
    patterns = _ggtok.families()[_ggtok.pretokenizers()[pre]["family"]]["patterns"]
    for name in re.findall(r"\\p\{(\w+)\}", " ".join(patterns)):
        found.update(dict.fromkeys(BY_PROPERTY[name]))
    for pattern in patterns:
        found.update(dict.fromkeys(end for ends in re.findall(r"([^\\\[])-([^\]])", pattern) for end in ends))
        found.update(dict.fromkeys(character for character in pattern if ord(character) > 0x7F))
    return list(found)


@cache
def alphabet() -> list[str]:
    """ASCII's letters by class and all its signs, two characters of each category, and the first and last ones of the
    ranges in any pattern."""
    found = dict.fromkeys(ASCII)
    for name, codes in code_points_by_category().items():
        if name not in ("Cs", "Cn", "Co"):
            beyond = [code for code in codes if code > 0x7F]
            found.update(dict.fromkeys(map(chr, beyond[:1] + beyond[len(beyond) // 2 :][:1])))
    for pre in _ggtok.pretokenizers():
        if _ggtok.pretokenizers()[pre]["family"] != "deepseek-llm":  # its many ranges are all letters of Unicode
            found.update(dict.fromkeys(member for member in class_members(pre) if len(member) == 1))
    return list(found)


def probe() -> bytes:
    """A byte-level vocabulary of `alphabet`: every character is a token, and so is every pair of them."""
    spelled = [b"".join(BYTES[byte] for byte in character.encode()) for character in alphabet()]
    texts, merges = dict.fromkeys(BYTES), []
    for word in spelled:
        parts = [character.encode() for character in word.decode()]
        for at in range(1, len(parts)):
            left, right = b"".join(parts[:at]), parts[at]
            if left + right not in texts:
                texts[left + right] = None
                merges.append(left + b" " + right)
    for left, right in product(spelled, repeat=2):
        if left + right not in texts:
            texts[left + right] = None
            merges.append(left + b" " + right)
    special = [b"<s>", b"</s>", b"<|im_end|>"]
    types = [int(TokenType.NORMAL)] * len(texts) + [int(TokenType.CONTROL)] * len(special)
    ids = {"bos": len(texts), "eos": len(texts) + 1}
    names = [*texts, *special]
    attributes = [NORMAL] * len(texts) + [CONTROL] * len(special)
    return Vocab("gpt2", names, types, merges=merges, pre="gpt-2", attributes=attributes, **ids).gguf()  # type: ignore[arg-type]


SPECIAL_ID = 1
"""The token of `with_special_text` that has the text."""


def with_special_text(text: bytes, is_control: bool) -> bytes:
    """A small vocabulary in which a token with this text is declared as control or user-defined, and has no role."""
    declared = TokenType.CONTROL if is_control else TokenType.USER_DEFINED
    types = [TokenType.UNKNOWN, declared, *[TokenType.NORMAL] * 2, *[TokenType.BYTE] * 256]
    names = [b"<unk!>", text, b"<other!>", b"a", *BYTE_TOKENS]
    return Vocab("llama", names, [int(kind) for kind in types], unk=0, bos=2, eos=2).gguf()


def few_tokens() -> bytes:
    """A vocabulary of WordPiece that lacks the tokens which are special by default."""
    return Vocab("bert", [b"a", b"b"], [int(TokenType.NORMAL)] * 2).gguf()


def packed(units: Iterable[str], glue: str) -> Iterator[str]:
    """The units, so many to a text."""
    line: list[str] = []
    for unit in units:
        line.append(unit)
        if len(line) == LINE:
            yield glue.join(line)
            line = []
    if line:
        yield glue.join(line)


def pattern_texts(pre: str) -> list[str]:
    """Every pair of the alphabet with one of ASCII, and every triple of the own classes, with a space before it and
    without."""
    pairs = ["".join(pair) for pair in product(alphabet(), repeat=2) if not {*ASCII}.isdisjoint(pair)]
    triples = ["".join(triple) for triple in product(class_members(pre)[:MOST_CLASSES], repeat=3)]
    units = [form for unit in [*triples, *pairs] for form in (unit, f" {unit}")]
    return [*packed(units, "\n"), *packed(triples, "a")]


@cache
def normalizer_texts() -> list[str]:
    """Every mark after a letter of its script and after `a`, every character that decomposes, every letter with two
    cases, and white space and control characters of every kind; as words, three to a text."""
    units = []
    previous = "a"
    for code in (code for codes in sorted(code_points_by_category().values()) for code in codes):
        character, category = chr(code), unicodedata.category(chr(code))
        if category[0] == "M":
            near = next((chr(c) for c in range(code, max(code - 128, 0), -1) if chr(c).isalpha()), "a")
            units += [f"a{character}b", near + character]
        elif category[0] == "Z" or category in ("Cc", "Cf"):
            units.append(f"a{character}b")
        elif unicodedata.decomposition(character) and not 0xAC00 < code < 0xD7A0:
            units += [character, f"x{character}y"]
        elif character.lower() != character or character.upper() != character:
            units.append(f"{character}{previous}")
        previous = character if category[0] == "L" else previous
    return [" ".join(units[at : at + 3]) for at in range(0, len(units), 3)]


@cache
def first_of_family() -> frozenset[str]:
    """One name for each family of patterns."""
    rows = _ggtok.pretokenizers()
    return frozenset({row["family"]: name for name, row in reversed(rows.items())}.values())


def special_texts(cut_out: Sequence[bytes], absent: bool) -> list[bytes]:
    """Texts of special tokens, also of those that are absent, alone, twice, and between words, spaces and line ends."""
    looked_for = [text.encode() for text in SPECIAL_TEXTS[:: 1 if absent else 4]]
    texts = dict.fromkeys([*[text for text in cut_out if text][:40], *looked_for])
    forms = (b"%s", b" %s", b"a%s b", b"a %s\n b", b"%s%s", b"x %s %s y")
    return [form.replace(b"%s", text) for text in texts for form in forms]


def random_texts(pieces: Sequence[bytes], cut_out: Sequence[bytes], num: int) -> list[bytes]:
    """Texts of the fuzzer, and natural ones, without those that every release aborts on."""
    generator = TextGenerator(Random(f"releases {num}"), [text.encode() for text in NATURAL], pieces, cut_out)
    texts = [text.encode() for text in NATURAL]
    while len(texts) < num:
        text = generator.text()
        if not re.search(rb"\xf4[\x90-\xbf]|[\xf5-\xf7]|[\xc0\xe0\xf0][\x80-\x9f]?", text):
            texts.append(text)
    return texts
