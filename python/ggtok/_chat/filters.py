"""jinja2's filters with limits, and those that would lose origins written again.

Each gives the same characters as the one of jinja2, or of transformers for `tojson`; that is checked whenever origins
matter, since a conversation is then rendered in both environments.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jinja2 import filters as builtin
from jinja2.utils import pass_eval_context

from . import formatting, notation
from .limits import PADDING, PRODUCT, SLOW_CHARS, Budget, LimitError
from .text import Text, concat

INDENT = 100
"""The deepest indentation of JSON, in characters a level."""


def limited(name: str, function: Any, budget: Callable[[], Budget]) -> Any:
    """A filter that is counted, and checked before it runs if its result or its time could be large.

    It fails while a template is compiled, when there is no budget, so that jinja2 computes nothing then.
    """
    skip = 1 if hasattr(function, "jinja_pass_arg") else 0
    check = _CHECKS.get(name)

    def run(*args: Any, **kwargs: Any) -> Any:
        left = budget()
        left.spend()
        if name in _ITERATING and len(args) > skip and isinstance(args[skip], str):
            left.elements(len(args[skip]))
        if check is not None:
            check(left, *args[skip:], **kwargs)
        return left.made(function(*args, **kwargs))

    if skip:
        run.jinja_pass_arg = function.jinja_pass_arg  # type: ignore[attr-defined]
    return run


_ITERATING = frozenset(("list", "join", "sort", "unique", "map", "select", "reject", "batch", "slice", "min", "max"))
"""Filters that split a string into its characters."""


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
    widths = [len(arg) if isinstance(arg, str) else arg for arg in (*args, *kwargs.values()) if arg is not None]
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
    return str(environment.concat(pieces))


FILTERS: dict[str, Any] = {"join": join, "tojson": notation.tojson}


# Filters of the traced environment


def indent(s: str, width: int | str = 4, first: bool = False, blank: bool = False) -> str:
    """Lines with `width` spaces, or the text `width`, before each but the first."""
    lead: str = width if isinstance(width, str) else " " * width
    lines = Text(s + "\n").splitlines()
    if blank:
        rest = [part for line in lines[1:] for part in ("\n", lead, line)]
    else:
        rest = [part for line in lines[1:] for part in ("\n", lead if line else "", line)]
    return concat([lead if first else "", lines[0], *rest])


TRACED_FILTERS: dict[str, Any] = {
    "e": notation.escaped,
    "escape": notation.escaped,
    "forceescape": notation.forced,
    "format": formatting.format_filter,
    "indent": indent,
    "safe": notation.safe,
    "string": notation.written,
    "tojson": notation.traced_tojson,
}
