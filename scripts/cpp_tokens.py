"""C++ source as tokens: enough of the language to read llama.cpp's tables, whatever its comments and layout.

Comments and preprocessor lines are dropped, string literals are decoded, adjacent ones joined.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

_SIMPLE_ESCAPES = {"n": 10, "t": 9, "r": 13, "0": 0, "a": 7, "b": 8, "f": 12, "v": 11}
_TOKEN = re.compile(
    r"""
      (?P<skip>   \s+ | //[^\n]* | /\*.*?\*/ | ^[ \t]*\#(?:[^\n\\]|\\\n|\\.)* )
    | (?P<raw>    (?:u8|[uUL])?R"(?P<mark>[^(\s\\]*)\((?P<text>.*?)\)(?P=mark)" )
    | (?P<string> (?:u8|[uUL])?"(?P<body>(?:[^"\\]|\\.)*)" )
    | (?P<char>   [uUL]?'(?:[^'\\]|\\.)*' )
    | (?P<word>   [A-Za-z_]\w* | \d[\w.']* )
    | (?P<mark2>  :: | -> | == | != | <= | >= | && | \|\| | \+= | \|= | \+\+ | -- )
    | (?P<other>  . )
    """,
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
_ESCAPE = re.compile(rb"\\(?:x([0-9A-Fa-f]+)|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|([0-7]{1,3})|(\n)|(.))", re.DOTALL)


class Token(NamedTuple):
    """A word or mark, or the value of a string literal."""

    text: str
    is_string: bool = False


def tokenize(source: str) -> list[Token]:
    """The tokens of a source file."""
    tokens: list[Token] = []
    for match in _TOKEN.finditer(source):
        if match["skip"]:
            continue
        if match["raw"] or match["string"]:
            value = match["text"] if match["raw"] else unescape(match["body"])
            if tokens and tokens[-1].is_string:
                value = tokens.pop().text + value
            tokens.append(Token(value, is_string=True))
        else:
            tokens.append(Token(match[0]))
    return tokens


def unescape(body: str) -> str:
    r"""The value of the text between the quotes; `\xNN` are bytes of UTF-8, other bytes become lone surrogates."""

    def value(match: re.Match[bytes]) -> bytes:
        hexadecimal, short, long, octal, newline, single = match.groups()
        if short or long:
            return chr(int(short or long, 16)).encode("utf-8", "surrogatepass")
        if hexadecimal or octal:
            return bytes([int(hexadecimal, 16) & 0xFF if hexadecimal else int(octal, 8) & 0xFF])
        if newline:
            return b""
        return bytes([_SIMPLE_ESCAPES[single.decode()]]) if single.decode() in _SIMPLE_ESCAPES else bytes(single)

    return _ESCAPE.sub(value, body.encode("utf-8")).decode("utf-8", "surrogateescape")


def block_end(tokens: Sequence[Token], opening: int) -> int:
    """Where the bracket at `opening` is closed (the index of the closing one)."""
    depth = 0
    for at in range(opening, len(tokens)):
        if not tokens[at].is_string:
            depth += (tokens[at].text in ("{", "(", "[")) - (tokens[at].text in ("}", ")", "]"))
            if depth == 0:
                return at
    raise ValueError("a bracket is never closed")


def definitions(tokens: Sequence[Token]) -> Iterator[tuple[str, Sequence[Token]]]:
    """Every definition with a body at the top or in a namespace: its name and all its tokens."""
    start = at = 0
    while at < len(tokens):
        text = "" if tokens[at].is_string else tokens[at].text
        if text == ";":
            start = at + 1
        elif text == "{":
            end = block_end(tokens, at)
            if [token.text for token in tokens[start : start + 1]] in (["namespace"], ["extern"]):
                yield from definitions(tokens[at + 1 : end])
            else:
                yield _name(tokens[start:at]), tokens[start : end + 1]
            at = end
            start = at + 1
        at += 1


def _name(head: Sequence[Token]) -> str:
    """`struct x` and `enum x` by the word after it, `a::b::c(...)` by what is before the bracket."""
    words = [token.text for token in head]
    for keyword in ("struct", "class", "enum"):
        if keyword in words and "(" not in words:
            return words[words.index(keyword) + 1]
    end = next((at for at, word in enumerate(words) if word in ("(", "=", "[")), len(words))
    begin = end - 1
    while begin >= 2 and words[begin - 1] == "::":
        begin -= 2
    return "".join(words[max(begin, 0) : end])
