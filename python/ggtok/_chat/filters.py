"""jinja2's filters with limits, and those that would lose origins written again: join, indent, format, JSON, ...

Each gives the same characters as the one of jinja2, or of transformers for `tojson`; that is checked whenever origins
matter, since a conversation is then rendered in both environments.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from jinja2 import filters as builtin
from jinja2.sandbox import SandboxedFormatter
from jinja2.utils import pass_environment, pass_eval_context

from .limits import PADDING, PRODUCT, SLOW_CHARS, LimitError
from .text import Text, concat, merged, plain, runs_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from .limits import Budget

INDENT = 100
"""The deepest indentation of JSON, in characters a level."""


def limited(name: str, function: Any, budget: Callable[[], Budget]) -> Any:
    """A filter that is counted, and checked before it runs where its result or its time could be large.

    It fails while a template is compiled, when there is no budget, so that jinja2 computes nothing then.
    """
    skip = 1 if hasattr(function, "jinja_pass_arg") else 0
    check = _CHECKS.get(name)

    def run(*args: Any, **kwargs: Any) -> Any:
        left = budget()
        left.spend()
        if check is not None:
            check(left, *args[skip:], **kwargs)
        return left.made(function(*args, **kwargs))

    if skip:
        run.jinja_pass_arg = function.jinja_pass_arg  # type: ignore[attr-defined]
    return run


# Checks. Each takes the arguments of its filter.


def _slow(left: Budget, value: Any, *_: Any, **__: Any) -> None:
    """For filters that may take quadratic time."""
    if left.weigh(value) > SLOW_CHARS // 64:
        raise LimitError(f"a filter that may be slow was given more than {SLOW_CHARS} characters")


def _whole(left: Budget, value: Any, *_: Any, **__: Any) -> None:
    """For filters that look at everything inside a value."""
    left.spend(left.weigh(value))


def _padded(left: Budget, value: Any, *args: Any, **kwargs: Any) -> None:
    if any(isinstance(arg, int) and abs(arg) > PADDING for arg in (*args, *kwargs.values())):
        raise LimitError(f"a filter was given a number above {PADDING}")
    widths = [len(arg) if isinstance(arg, str) else arg for arg in (*args, *kwargs.values()) if not arg is None]
    width = max((int(one) for one in widths if isinstance(one, (int, float))), default=0)
    if isinstance(value, str):
        left.length(len(value) + (1 + len(value.splitlines())) * max(4, width))


def _replaced(left: Budget, value: Any, old: Any = "", new: Any = "", *_: Any, **__: Any) -> None:
    left.replacing(str(value), str(old), str(new))


def _trimmed(left: Budget, value: Any, chars: Any = None, *_: Any, **__: Any) -> None:
    if isinstance(value, str) and isinstance(chars, str) and len(value) * len(chars) > PRODUCT:
        raise LimitError("trim would take too many steps")


def _rounded(left: Budget, value: Any, precision: Any = 0, *_: Any, **__: Any) -> None:
    if isinstance(precision, int) and abs(precision) > 400:
        raise LimitError("round takes a precision of at most 400")


def _summed(left: Budget, value: Any, attribute: Any = None, start: Any = 0) -> None:
    if not isinstance(start, (int, float)) and left.weigh(value) > SLOW_CHARS // 64:
        raise LimitError("sum was given too many lists")
    _whole(left, value)


def _written(left: Budget, value: Any, *_: Any, **__: Any) -> None:
    if not isinstance(value, str):
        left.length(left.weigh(value) * 64 if isinstance(value, (list, tuple, dict, set)) else 0)


def _as_json(left: Budget, value: Any, *args: Any, **kwargs: Any) -> None:
    widths = [len(arg) if isinstance(arg, str) else arg for arg in (*args, *kwargs.values())]
    widths = [*widths, *(len(str(part)) for arg in kwargs.values() if isinstance(arg, (list, tuple)) for part in arg)]
    width = max((int(one) for one in widths if isinstance(one, int)), default=0)
    if width > INDENT:
        raise LimitError(f"tojson indents by at most {INDENT}")
    weight = left.weigh(value)
    left.length(weight * (64 + width * (_nesting(value) if width > 1 else 2)))
    left.spend(weight)


def _nesting(value: Any) -> int:
    """How deep containers are nested."""
    if isinstance(value, dict):
        return 1 + max(map(_nesting, value.values()), default=0)
    if isinstance(value, (list, tuple)):
        return 1 + max(map(_nesting, value), default=0)
    return 0


def _printed(left: Budget, value: Any, *args: Any, **kwargs: Any) -> None:
    left.printf(str(value), args or kwargs)


_CHECKS: dict[str, Callable[..., None]] = (
    dict.fromkeys(("striptags", "urlize", "wordwrap", "pprint", "xmlattr", "urlencode"), _slow)
    | dict.fromkeys(("sort", "dictsort", "unique", "groupby", "min", "max"), _whole)
    | dict.fromkeys(("center", "indent", "batch", "slice"), _padded)
    | {"replace": _replaced, "trim": _trimmed, "round": _rounded, "sum": _summed, "string": _written}
    | {"tojson": _as_json, "format": _printed}
)


# Filters of both environments


@pass_eval_context
def join(context: Any, value: Any, d: str = "", attribute: Any = None) -> str:
    """Strings of an iterable with `d` between them."""
    environment = context.environment
    if context.autoescape:
        return str(builtin.sync_do_join(context, list(value), d, attribute))
    if attribute is not None:
        value = map(builtin.make_attrgetter(environment, attribute), value)
    pieces: list[str] = []
    for item in value:
        text = environment._string(item)
        pieces += (str(d), text) if pieces else (text,)
    return str(environment._concat(pieces))


def tojson(
    value: Any, ensure_ascii: bool = False, indent: Any = None, separators: Any = None, sort_keys: bool = False
) -> str:
    """JSON as of `json.dumps`, without HTML escapes."""
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


FILTERS: dict[str, Any] = {"join": join, "tojson": tojson}


# Filters of the traced environment


def traced_tojson(
    value: Any, ensure_ascii: bool = False, indent: Any = None, separators: Any = None, sort_keys: bool = False
) -> str:
    """`tojson` with origins: a string inside the quotes is the caller's or the template's, as it was before."""
    expected = tojson(value, ensure_ascii, indent, separators, sort_keys)
    escape = json.encoder.py_encode_basestring_ascii if ensure_ascii else json.encoder.py_encode_basestring

    # The strings occur in this order, quoted. Everything between them is punctuation and numbers.
    runs, at = [], 0
    for text in map(Text, _strings(value, sort_keys)):
        escaped = [escape(piece)[1:-1] for piece in map(plain, text.pieces())]
        quoted = f'"{"".join(escaped)}"'
        start = expected.find(quoted, at)
        if start < 0:
            return expected
        runs += [*runs_of(expected[at : start + 1])]
        runs += [(len(piece), origin) for piece, (_, origin) in zip(escaped, text.runs, strict=True)]
        at = start + len(quoted) - 1
    return Text(expected, merged([*runs, *runs_of(expected[at:])]))


def _strings(value: Any, sort_keys: bool) -> list[str]:
    """The strings inside a value in the order of its JSON."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        items = sorted(value.items()) if sort_keys else value.items()
        keys = ((key if isinstance(key, str) else json.dumps(key), part) for key, part in items)
        return [text for item in keys for part in item for text in _strings(part, sort_keys)]
    if isinstance(value, (list, tuple)):
        return [text for item in value for text in _strings(item, sort_keys)]
    return []


def indent(s: str, width: int | str = 4, first: bool = False, blank: bool = False) -> str:
    """Lines with `width` spaces, or the text `width`, before each but the first."""
    lead: str = width if isinstance(width, str) else " " * width
    lines = Text(s + "\n").splitlines()
    if blank:
        rest = [part for line in lines[1:] for part in ("\n", lead, line)]
    else:
        rest = [part for line in lines[1:] for part in ("\n", lead if line else "", line)]
    return concat([lead if first else "", lines[0], *rest])


def format_filter(value: str, *args: Any, **kwargs: Any) -> str:
    """`value % args`."""
    if args and kwargs:
        raise TypeError("can't handle positional and keyword arguments at the same time")
    return printf(value, kwargs or args)


_CONVERSION = re.compile(r"%(?:\((?P<key>[^()]*)\))?(?P<flags>[-#0 +]*\d*(?:\.\d+)?)[hlL]?(?P<kind>[diouxXeEfFgGcrsa%])")


def printf(template: str, values: Any) -> str:
    """`template % values`, with the origins of strings that `%s` writes and of a template of one origin."""
    result = plain(template) % values
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
            value = self.convert_field(value, conversion)  # type: ignore[arg-type]
            spec = str(self._formatted(spec or "", args, kwargs, numbers, depth - 1))
            pieces.append(value if isinstance(value, str) and not spec else self._field(value, spec))
        return str(self.environment._concat(pieces))

    @staticmethod
    def _numbered(name: str, numbers: list[int]) -> str:
        """The name of a field with a number, which is counted where it is left out. `numbers` is the next, or -1."""
        written = re.match(r"\d*", name)
        digits = written[0] if written else ""
        if (numbers[0] > 0 and digits) or (numbers[0] < 0 and not digits):
            raise ValueError("cannot mix manual field numbers with automatic ones")
        if digits:
            numbers[0] = -1
            return name
        numbers[0] += 1
        return f"{numbers[0] - 1}{name}"

    def _field(self, value: Any, spec: str) -> str:
        self.environment._checked_spec(spec)
        return str(self.format_field(self.environment._string(value) if not spec else value, spec))


TRACED_FILTERS: dict[str, Any] = {
    "tojson": traced_tojson,
    "indent": indent,
    "format": format_filter,
    "safe": lambda value: value if isinstance(value, str) else str(value),
}

__all__ = ["FILTERS", "TRACED_FILTERS", "Formatter", "limited", "pass_environment", "printf"]
