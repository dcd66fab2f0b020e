"""Text that quotes other text, with origins: JSON, Python's notation of lists and mappings, HTML escapes.

What stands inside the quotes keeps its origin, escapes included. Punctuation and numbers have none. The characters are
those of `json.dumps`, `repr` and `markupsafe.escape`, which write them; the origins are put on top.

Complexity: O(n) for n characters.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from markupsafe import escape

from .text import Run, Text, concat, merged, plain, runs_of


def tojson(
    value: Any, ensure_ascii: bool = False, indent: Any = None, separators: Any = None, sort_keys: bool = False
) -> str:
    """JSON as of `json.dumps`, without HTML escapes."""
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def traced_tojson(
    value: Any, ensure_ascii: bool = False, indent: Any = None, separators: Any = None, sort_keys: bool = False
) -> str:
    written = tojson(value, ensure_ascii, indent, separators, sort_keys)
    encode = json.encoder.py_encode_basestring_ascii if ensure_ascii else json.encoder.py_encode_basestring

    def inside(text: Text) -> list[str]:
        return [encode(str(piece))[1:-1] for piece in map(plain, text.pieces())]

    return _quoted(written, _strings(value, sort_keys, json.dumps), inside, lambda _: '"')


def traced_repr(value: Any) -> str:
    def inside(text: Text) -> list[str]:
        quote = repr(plain(text))[0]
        return ["".join(_python_char(char, quote) for char in plain(piece)) for piece in text.pieces()]

    return _quoted(repr(value), _strings(value, False, lambda _: ""), inside, lambda text: repr(plain(text))[0])


def written(value: Any) -> str:
    """`str(value)` with origins."""
    if isinstance(value, str):
        return value
    return traced_repr(value) if type(value) in (list, tuple, dict) else str(value)


def _python_char(char: str, quote: str) -> str:
    if char in "'\"":
        return f"\\{char}" if char == quote else char
    return repr(char)[1:-1]


def _quoted(
    written: str, strings: Iterable[str], inside: Callable[[Text], list[str]], quote: Callable[[Text], str]
) -> str:
    """Puts the origins of strings on a text in which they occur in this order, in quotes.

    `inside` gives what stands for each run of a string. Everything between the strings is punctuation and numbers.
    """
    runs: list[Run] = []
    at = 0
    for text in map(Text, strings):
        pieces = inside(text)
        whole = "".join(pieces).join((quote(text), quote(text)))
        start = written.find(whole, at)
        if start < 0:
            return written
        runs += runs_of(written[at : start + 1])
        runs += [(len(piece), origin) for piece, (_, origin) in zip(pieces, text.runs, strict=True)]
        at = start + len(whole) - 1
    return Text(written, merged([*runs, *runs_of(written[at:])]))


def _strings(value: Any, sort_keys: bool, key_text: Callable[[Any], str]) -> list[str]:
    """The strings inside a value in the order in which they are written. `key_text` is for other keys than strings."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        found = []
        for key, item in sorted(value.items()) if sort_keys else value.items():
            name = key if isinstance(key, str) else key_text(key)
            found += [name] if name or isinstance(key, str) else []
            found += _strings(item, sort_keys, key_text)
        return found
    if isinstance(value, (list, tuple)):
        return [text for item in value for text in _strings(item, sort_keys, key_text)]
    return []


class Safe(Text):
    """A text that counts as HTML: `+` escapes what is joined to it, as markupsafe's `Markup` does."""

    __slots__ = ()

    def __html__(self) -> str:
        return self

    def __add__(self, other: str, /) -> str:
        return safe(concat((self, escaped(other)))) if isinstance(other, str) else NotImplemented

    def __radd__(self, other: str, /) -> str:
        return safe(concat((escaped(other), self))) if isinstance(other, str) else NotImplemented


def safe(value: Any) -> str:
    """The filter `safe`."""
    text = Text(value if isinstance(value, str) else str(value))
    return Safe(plain(text), text.runs)


def escaped(value: Any) -> str:
    """The filter `escape`."""
    return value if isinstance(value, Safe) else forced(value)


def forced(value: Any) -> str:
    """The filter `forceescape`."""
    text = Text(value if isinstance(value, str) else str(value))
    pieces = [str(escape(plain(piece))) for piece in text.pieces()]
    runs = ((len(piece), origin) for piece, (_, origin) in zip(pieces, text.runs, strict=True))
    return Safe("".join(pieces), runs)
