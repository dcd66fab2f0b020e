r"""Pre-tokens: llama.cpp's lists of patterns, run with Python's `re`.

Source: llama.cpp, unicode.cpp, `unicode_regex_split`, and the lists in llama-vocab.cpp, `llm_tokenizer_bpe`. Each
pattern splits the pieces left by the one before; what it does not match stays a piece. A pattern with a `\p{..}` class
runs over collapsed text: one character per code point, ASCII as it is, everything else one letter per class. One
without runs over the code points, with every non-ASCII space replaced by U+000B. `\s`, `\d` and `\b` know ASCII only.

Where llama.cpp has hand-written code for a pattern, the pattern says the same, except for two: Kimi-K2's Han
pattern stands for a whole list, and afmoe's digits are glued to what precedes them.
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from . import classes, utf8

CONTRACTIONS = "(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])"
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)"
SPACES_AND_REST = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
LLAMA3 = CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}" + SPACES_AND_REST
KIMI = (
    r"[\xD6\xD7]+|[^\r\n\p{L}\p{N}\xD6]?\p{L}+"
    + CONTRACTIONS
    + r"?|\p{N}{1,3}"
    + SPACES_AND_REST.replace(r"\p{L}", r"\p{L}\xD6")
)
DIGIT_GROUPS = (r"\p{AFMoE_digits}", r"\d{1,3}(?=(?:\d{3})*\b)")


@dataclass(frozen=True)
class Family:
    """One list of patterns and the flags it sets; without `byte_encode` the words stay UTF-8."""

    name: str
    patterns: tuple[str, ...]
    byte_encode: bool = True
    clean_spaces: bool = True
    ignore_merges: bool = False
    escape_whitespaces: bool = False


@cache
def families() -> dict[str, Family]:
    """By the name in `tokenizer.ggml.pre`: every one with `reference/pretokenizers.json`, a few without."""
    qwen2 = LLAMA3.replace("{1,3}", "")
    newlines = r"[^\n]+|[\n]+"
    known = {
        "default": Family("default", (r"[\p{P}\$\+<=>\^~\|]+", GPT2, r"\p{N}+", "[0-9][0-9][0-9]")),
        "gemma4": Family("gemma4", (newlines,), byte_encode=False, escape_whitespaces=True),
        "gpt-2": Family("gpt2", (GPT2,)),
        "llama-bpe": Family("llama3", (LLAMA3,), ignore_merges=True),
        "qwen2": Family("qwen2", (qwen2,), clean_spaces=False),
        "whitespace": Family("whitespace", (r"\S+",), byte_encode=False, clean_spaces=False),
    }
    path = classes.table_dir() / "pretokenizers.json"
    if path.is_file():
        tables = json.loads(path.read_text())
        for name, entry in tables["pre"].items():
            family = tables["families"][entry["family"]]
            known[name] = Family(
                entry["family"],
                tuple(family["patterns"]),
                family["byte_encode"],
                entry["clean_spaces"],
                entry["ignore_merges"],
                entry["escape_whitespaces"],
            )
    return known


def family(name: str) -> Family:
    return families()[name]


def split(text: bytes, patterns: tuple[str, ...]) -> list[bytes]:
    """The pre-tokens as UTF-8, U+FFFD for bytes that are none."""
    code_points = utf8.code_points(text)
    collapsed = "".join(map(collapse, code_points))
    wide = "".join(map(widen, code_points))
    spans = [(0, len(code_points))]
    for pattern in patterns:
        subject = collapsed if r"\p{" in pattern else wide
        spans = [
            (start + first, start + last)
            for start, end in spans
            for first, last in (
                digit_groups(code_points[start:end])
                if pattern in DIGIT_GROUPS
                else matches(pattern, subject[start:end])
            )
        ]
    return [b"".join(map(utf8.encode, code_points[start:end])) for start, end in spans]


def matches(pattern: str, subject: str) -> Iterator[tuple[int, int]]:
    """The spans of the matches and of the text between them."""
    at = 0
    for match in compiled(pattern).finditer(subject):
        if match.start() > at:
            yield at, match.start()
        yield match.span()
        at = match.end()
    if at < len(subject):
        yield at, len(subject)


def collapse(code_point: int) -> str:
    if code_point < 0x80:
        return chr(code_point)
    flags = classes.flags(code_point)
    if flags & classes.WHITESPACE:
        return "\v"
    if classes.is_han(code_point):
        return "\xd6" if flags & classes.LETTER else "\xd7"
    for flag, letter in CLASS_LETTERS:
        if flags & flag:
            return letter
    return "\xd0"


CLASS_LETTERS = (
    (classes.NUMBER, "\xd1"),
    (classes.LETTER, "\xd2"),
    (classes.PUNCTUATION, "\xd3"),
    (classes.MARK, "\xd4"),
    (classes.SYMBOL, "\xd5"),
)
LETTER = "A-Za-z\xd2"
CLASS_MEMBERS = {
    "N": "0-9\xd1",
    "L": LETTER,
    "P": r"!-#%-*,-/:-;?-@\[-\]_{}" + "\xd3",
    "M": "\xd4",
    "S": r"$+<->\^`|~" + "\xd5",
    "Lu": LETTER,
    "Ll": LETTER,
    "Lt": LETTER,
    "Lm": LETTER,
    "Lo": LETTER,
}


def widen(code_point: int) -> str:
    return "\v" if code_point >= 0x80 and classes.flags(code_point) & classes.WHITESPACE else chr(code_point)


@cache
def compiled(pattern: str) -> re.Pattern[str]:
    # Han is a class of its own in the collapsed text for Kimi-K2's sake; elsewhere its letters are letters.
    han_letters = re.sub(r"\\p\{L[a-z]?\}", lambda match: match[0] + "\xd6", pattern)
    pattern = KIMI if pattern == r"\p{Han}+" else han_letters
    bracketed = ""
    inside = False
    at = 0
    while at < len(pattern):
        match = re.compile(r"\\p\{(\w+)\}(\xd6?)").match(pattern, at)
        if match:
            members = CLASS_MEMBERS[match[1]] + match[2]
            bracketed += members if inside else f"[{members}]"
            at = match.end()
            continue
        character = pattern[at : at + 2] if pattern[at] == "\\" else pattern[at]
        inside = character == "[" or (inside and character != "]")
        bracketed += character
        at += len(character)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        return re.compile(bracketed.replace("$", r"\Z") if bracketed.endswith("+$") else bracketed, re.ASCII)


def digit_groups(code_points: list[int]) -> Iterator[tuple[int, int]]:
    """Runs of digits in groups of three from the right; a run's first group takes in all text before it."""
    numbers = "".join("1" if classes.flags(code_point) & classes.NUMBER else " " for code_point in code_points)
    at = 0
    for run in re.finditer("1+", numbers):
        first = run.start() + (len(run[0]) % 3 or 3)
        for end in range(first, run.end() + 1, 3):
            yield at, end
            at = end
    if at < len(code_points):
        yield at, len(code_points)
