"""`%` and `str.format` with origins and limits.

A string that is written as it is keeps its origin, and so does a format of one origin. Widths of more than four digits
are refused. Complexity: O(n) for n characters of the result.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from jinja2.sandbox import SandboxedFormatter

from .text import Text, concat, plain, runs_of


def format_filter(value: str, *args: Any, **kwargs: Any) -> str:
    """`value % args`."""
    if args and kwargs:
        raise TypeError("can't handle positional and keyword arguments at the same time")
    return printf(value, kwargs or args)


_CONVERSION = re.compile(
    r"%(?:\((?P<key>[^()]*)\))?(?P<flags>[-#0 +]*\d*(?:\.\d+)?)[hlL]?(?P<kind>[diouxXeEfFgGcrsa%])"
)


def printf(template: str, values: Any) -> str:
    """`template % values`, with the origins of strings that `%s` writes and of a template of one origin."""
    result: str = plain(template) % values
    if not isinstance(template, Text) or len(template.runs) != 1:
        return result
    rest = iter(values if isinstance(values, tuple) else (values,))
    pieces: list[str] = []
    at = 0
    for match in _CONVERSION.finditer(template):
        pieces.append(template.cut(at, match.start()))
        at = match.end()
        if match["kind"] == "%":
            pieces.append(template.cut(at - 1, at))
            continue
        value = values[match["key"]] if match["key"] is not None else next(rest, "")
        text = isinstance(value, str) and match["kind"] == "s" and not match["flags"]
        pieces.append(value if text else plain(match[0]) % (values if match["key"] is not None else (value,)))
    traced = concat([*pieces, template.cut(at, len(template))])
    return traced if traced == result else result


class Formatter(SandboxedFormatter):
    """`str.format` inside the sandbox, with origins and limits."""

    def __init__(self, environment: Any) -> None:
        super().__init__(environment)
        self.environment = environment

    def vformat(self, format_string: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
        return self._formatted(format_string, args, kwargs, [0], 2)

    def _formatted(self, template: str, args: Any, kwargs: Any, numbers: list[int], depth: int) -> str:
        if depth < 0:
            raise ValueError("Max string recursion exceeded")
        runs = runs_of(template)
        pieces: list[str] = []
        for literal, name, spec, conversion in self.parse(plain(template)):
            pieces.append(Text.of(literal, runs[0][1]) if isinstance(template, Text) and len(runs) == 1 else literal)
            if name is None:
                continue
            if re.match(r"(\d*)(?=[.\[]|$)", name):
                name = self._numbered(name, numbers)
            value, _ = self.get_field(name, args, kwargs)
            value = self.convert_field(value, conversion)
            spec = str(self._formatted(spec or "", args, kwargs, numbers, depth - 1))
            pieces.append(value if isinstance(value, str) and not spec else self._field(value, spec))
        return str(self.environment.concat(pieces))

    @staticmethod
    def _numbered(name: str, numbers: list[int]) -> str:
        """The name of a field with a number, which is counted if it is left out. `numbers` is the next, or -1."""
        digits = name[:1].isdigit()
        if (numbers[0] > 0 and digits) or (numbers[0] < 0 and not digits):
            raise ValueError("cannot mix manual field numbers with automatic ones")
        if digits:
            numbers[0] = -1
            return name
        numbers[0] += 1
        return f"{numbers[0] - 1}{name}"

    def _field(self, value: Any, spec: str) -> str:
        self.environment.state.budget.numbers(spec)
        return str(self.format_field(self.environment._string(value) if not spec else value, spec))
