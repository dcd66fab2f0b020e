"""A `str` that knows, for every character, where it comes from, through the operations that chat templates use.

A text is divided into *runs*, each with an `Origin`. Whatever an operation cannot follow becomes a plain `str`, and a
plain `str` has the origin `UNKNOWN`: losing track never turns what a caller wrote into text of the template.

Complexity: each operation takes the time of the one of `str`, and O(runs) for the origins of its result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, SupportsIndex, TypeAlias, cast

Run: TypeAlias = tuple[int, "Origin"]


class Origin(NamedTuple):
    """Where characters come from."""

    trusted: bool | None = None
    """`True` for the template, `False` for a string of the caller, `None` if it is unknown."""
    message: int | None = None
    """The message whose string it is, or in whose turn of the loop over messages the template wrote it."""
    leaf: int | None = None
    """The number of the caller's string."""
    generated: bool = False
    """Whether it lies inside `{% generation %}`."""


UNKNOWN = Origin()


MANY = 100_000
"""More pieces than this are not followed one by one."""


class Text(str):
    """A string with the origin of each of its characters."""

    __slots__ = ("runs",)

    runs: tuple[Run, ...]
    """Lengths, in characters and at least 1, and origins, in order; the lengths add up to that of the text."""

    def __new__(cls, value: object = "", runs: Iterable[Run] | None = None) -> Text:
        """A text of these runs. Without runs the origin is that of `value` if it is a `Text`, and unknown otherwise."""
        if runs is None and isinstance(value, Text):
            return value
        self = str.__new__(cls, value)
        self.runs = tuple(runs) if runs is not None else ((len(self), UNKNOWN),) if self else ()
        return self

    @classmethod
    def of(cls, value: str, origin: Origin) -> Text:
        """A text of a single origin."""
        return cls(value, ((len(value), origin),) if value else ())

    def __str__(self) -> str:
        return self

    def __getnewargs__(self) -> tuple[str]:
        return (plain(self),)

    # Parts of a text

    def spans(self) -> Iterator[tuple[int, int, Origin]]:
        """Where each run starts and ends, and its origin."""
        at = 0
        for length, origin in self.runs:
            yield at, at + length, origin
            at += length

    def cut(self, start: int, end: int) -> Text:
        """The text from character `start` to character `end`, which lie inside it."""
        if start == 0 and end == len(self):
            return self
        runs, at = [], 0
        for length, origin in self.runs:
            low, high = max(start, at), min(end, at + length)
            if low < high:
                runs.append((high - low, origin))
            at += length
            if at >= end:
                break
        return Text(str.__getitem__(self, slice(start, end)), runs)

    def __getitem__(self, index: SupportsIndex | slice) -> str:
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            if step == 1:
                return self.cut(start, max(start, stop))
            value, origins = str.__getitem__(self, index), self.origins()[index]
            return Text(value, merged((1, origin) for origin in origins))
        place = range(len(self))[index]
        return self.cut(place, place + 1)

    def __iter__(self) -> Iterator[str]:
        for start, end, origin in self.spans():
            for place in range(start, end):
                yield Text(str.__getitem__(self, place), ((1, origin),))

    def origins(self) -> list[Origin]:
        return [origin for length, origin in self.runs for _ in range(length)]

    def marked(self, change: Callable[[Origin], Origin]) -> Text:
        """The same characters with other origins."""
        return Text(plain(self), merged((length, change(origin)) for length, origin in self.runs))

    def strip(self, chars: str | None = None, /) -> str:
        end = len(str.rstrip(self, chars))
        return self.cut(min(len(self) - len(str.lstrip(self, chars)), end), end)

    def lstrip(self, chars: str | None = None, /) -> str:
        return self.cut(len(self) - len(str.lstrip(self, chars)), len(self))

    def rstrip(self, chars: str | None = None, /) -> str:
        return self.cut(0, len(str.rstrip(self, chars)))

    def removeprefix(self, prefix: str, /) -> str:
        return self.cut(len(self) - len(str.removeprefix(self, prefix)), len(self))

    def removesuffix(self, suffix: str, /) -> str:
        return self.cut(0, len(str.removesuffix(self, suffix)))

    def split(self, sep: str | None = None, maxsplit: SupportsIndex = -1) -> list[str]:
        parts, found, at = str.split(self, sep, maxsplit), [], 0
        for part in parts:
            at = str.find(self, part, at) if sep is None else at
            found.append(self.cut(at, at + len(part)))
            at += len(part) + (0 if sep is None else len(sep))
        return cast("list[str]", found)

    def rsplit(self, sep: str | None = None, maxsplit: SupportsIndex = -1) -> list[str]:
        parts, found, end = str.rsplit(self, sep, maxsplit), [], len(self)
        for part in reversed(parts):
            end = str.rfind(self, part, 0, end) + len(part) if sep is None else end
            found.append(self.cut(end - len(part), end))
            end -= len(part) + (0 if sep is None else len(sep))
        return cast("list[str]", found[::-1])

    def splitlines(self, keepends: bool = False) -> list[str]:
        found, at = [], 0
        for whole, part in zip(str.splitlines(self, True), str.splitlines(self, keepends), strict=True):
            found.append(self.cut(at, at + len(part)))
            at += len(whole)
        return cast("list[str]", found)

    def partition(self, sep: str, /) -> tuple[str, str, str]:
        return self._three(str.partition(self, sep))

    def rpartition(self, sep: str, /) -> tuple[str, str, str]:
        return self._three(str.rpartition(self, sep))

    def _three(self, parts: tuple[str, str, str]) -> tuple[str, str, str]:
        """Three texts that together are this one."""
        one, two = len(parts[0]), len(parts[0]) + len(parts[1])
        return self.cut(0, one), self.cut(one, two), self.cut(two, len(self))

    # Texts made of several

    def __add__(self, other: str, /) -> str:
        return concat((self, other)) if isinstance(other, str) else NotImplemented

    def __radd__(self, other: str, /) -> str:
        return concat((other, self)) if isinstance(other, str) else NotImplemented

    def __mul__(self, times: SupportsIndex, /) -> str:
        value = str.__mul__(self, times)
        if len(self.runs) <= 1:
            return Text(value, ((len(value), origin) for _, origin in self.runs if value))
        return Text(value, self.runs * max(0, times.__index__())) if len(value) < MANY else value

    __rmul__ = __mul__

    def join(self, parts: Iterable[str], /) -> str:
        pieces: list[str] = []
        for part in parts:
            pieces += (self, part) if pieces else (part,)
        return concat(pieces)

    def replace(self, old: str, new: str, count: SupportsIndex = -1, /) -> str:
        if not old or str.count(self, old) > MANY:
            return plain(self).replace(old, plain(new), count)
        return Text(new).join(self.split(old, count))

    def ljust(self, width: SupportsIndex, fill: str = " ", /) -> str:
        return concat((self, str.ljust(self, width, fill)[len(self) :]))

    def rjust(self, width: SupportsIndex, fill: str = " ", /) -> str:
        return concat((str.rjust(self, width, fill)[: -len(self) or None], self))

    # Texts of the same length, as far as the change of each character is known

    @staticmethod
    def _cased(change: Callable[[str], str], by_run: bool = True) -> Any:
        """A method with `change`: run by run, or of the text as a whole if every character stays one character."""

        def method(self: Text) -> str:
            changed = change(self)
            changes = [change(plain(run)) for run in self.pieces()] if by_run else []
            if by_run and "".join(changes) == changed:
                return Text(changed, zip(map(len, changes), (origin for _, origin in self.runs), strict=True))
            if len(changed) == len(self) and all(len(char.upper()) == len(char.lower()) == 1 for char in plain(self)):
                return Text(changed, self.runs)
            return changed

        return method

    lower, upper, casefold, swapcase = map(_cased, (str.lower, str.upper, str.casefold, str.swapcase))
    capitalize, title = _cased(str.capitalize, False), _cased(str.title, False)

    def pieces(self) -> Iterator[Text]:
        value = plain(self)
        return (Text.of(value[start:end], origin) for start, end, origin in self.spans())


def plain(text: str) -> str:
    """The same characters as a `str` of no subclass."""
    return str.__str__(text) if type(text) is Text else text


def runs_of(text: str) -> tuple[Run, ...]:
    if isinstance(text, Text):
        return text.runs
    return ((len(text), UNKNOWN),) if text else ()


def merged(runs: Iterable[Run]) -> tuple[Run, ...]:
    """The same runs with neighbours of the same origin made one."""
    result: list[Run] = []
    for length, origin in runs:
        if result and result[-1][1] == origin:
            result[-1] = (result[-1][0] + length, origin)
        else:
            result.append((length, origin))
    return tuple(result)


def concat(parts: Iterable[Any]) -> Text:
    """`"".join(parts)` with origins."""
    parts = parts if isinstance(parts, (list, tuple)) else list(parts)
    return Text("".join(parts), merged(run for part in parts for run in runs_of(part)))
