"""Turns of loops that are reused from the last rendering, so that a longer conversation costs what is new.

A template has to be run from its start, since it may write anything. But what one turn of its loop over messages writes
depends on little, and that is known before the turn runs:

1. The syntax tree of the loop's body says what it reads: variables from outside, attributes of `loop`, expressions such
   as `messages[loop.index0 - 1].role != "tool"`. These are the *parts* of a turn. Macros add what they read.
2. Before a turn runs, its parts are evaluated. If each has the value that it had when the same message had its turn in
   the last rendering, the turn would write the same text again, and that text is taken.
3. Namespaces are variables that a turn can change. Their values before the turn are a part, and their values after it
   are restored.

Only loops outside other loops and macros take part, without `break`, `continue`, blocks, macros, random choices, or
`loop` as a value. A turn is run if a part is neither a plain value, nor a container that is the same object, nor a
function of the environment. Strings are equal if their origins are too.

Complexity: O(parts) for a turn that is reused. The texts of the last rendering are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

from jinja2 import Undefined, nodes
from jinja2.runtime import Macro
from jinja2.utils import Namespace

from .text import Text

CALL = "state.turns.reused"
"""What a marked loop calls with the number of the loop, the parts, and its body."""

LOOP = frozenset(("index", "index0", "first", "last", "length", "previtem", "nextitem", "revindex", "revindex0"))
"""Attributes of `loop` that are values."""

_NOT_ALONE = (nodes.Break, nodes.Continue, nodes.Block, nodes.Macro, nodes.Import, nodes.FromImport, nodes.Include)
_COMPARED = {"eq": "==", "ne": "!=", "gt": ">", "gteq": ">=", "lt": "<", "lteq": "<="}


def mark(template: nodes.Template) -> None:
    """Puts a call around the body of each loop whose turns can be reused."""
    macros = [node for node in template.body if isinstance(node, nodes.Macro)]
    if len(macros) != len(list(template.find_all(nodes.Macro))):
        return
    read = {name.name for macro in macros for name in macro.find_all(nodes.Name) if name.ctx == "load"}
    read -= {arg.name for macro in macros for arg in macro.args}
    written = {each.name for macro in macros for each in macro.find_all(nodes.NSRef)}
    for number, loop in enumerate(_loops(template.body)):
        parts = _parts(loop, read)
        if parts is not None:
            spaces = sorted(written.union(each.name for node in loop.body for each in node.find_all(nodes.NSRef)))
            lists = nodes.List(parts), nodes.List([nodes.Name(name, "load") for name in spaces])
            call = nodes.Call(nodes.EnvironmentAttribute(CALL), [nodes.Const(number), *lists], [], None, None)
            block = nodes.CallBlock(call, [], [], loop.body)
            loop.body = [block.set_lineno(loop.lineno)]


def _loops(body: Iterable[nodes.Node]) -> Iterator[nodes.For]:
    """The loops that are in no other one."""
    for node in body:
        if isinstance(node, nodes.For):
            yield node
        elif isinstance(node, nodes.If):
            yield from _loops([*node.body, *node.elif_, *node.else_])


def _parts(loop: nodes.For, of_macros: set[str]) -> list[nodes.Expr] | None:
    """What a turn depends on, or `None` if that is unknown."""
    body = nodes.Template(loop.body, lineno=loop.lineno)
    targets = {loop.target.name} if isinstance(loop.target, nodes.Name) else set()
    targets |= {name.name for name in loop.target.find_all(nodes.Name)}
    names = {name.name for name in body.find_all(nodes.Name)}
    if loop.recursive or targets & of_macros or names & {"caller", "kwargs", "varargs", "self"}:
        return None
    if any(True for _ in body.find_all(_NOT_ALONE)) or any(
        each.name == "random" for each in body.find_all(nodes.Filter)
    ):
        return None
    stored = {name.name for name in body.find_all(nodes.Name) if name.ctx != "load"}
    found: list[nodes.Expr] = []
    if not _collect(body, stored | targets, found):
        return None
    found += [nodes.Name(name, "load") for name in sorted((of_macros | stored | targets) - {"loop"})]
    result: list[nodes.Expr] = []
    for part in found:
        if part not in result:
            result.append(part)
    return result


def _collect(node: nodes.Node, own: set[str], found: list[nodes.Expr]) -> bool:
    """Appends the largest expressions that can be evaluated before a turn. `own` are the variables of the turn.

    Returns `False` if `loop` is used as a value.
    """
    if isinstance(node, nodes.Expr) and not isinstance(node, nodes.Const) and python(node, own) is not None:
        found.append(node)
        return True
    if isinstance(node, nodes.Name):
        return node.name != "loop"
    children = [_collect(child, own, found) for child in node.iter_child_nodes()]
    return all(children)


def python(node: nodes.Node, own: set[str], name: Callable[[nodes.Name], str] | None = None) -> str | None:
    """An expression in Python that has the value of this one, or fails; `None` if there is none.

    `name` writes a variable. The expression calls the functions of this module as attributes of `reuse`.
    """

    def of(node: nodes.Node | None) -> str | None:
        return None if node is None else python(node, own, name)

    def calling(function: str, *args: str | None) -> str | None:
        return None if None in args else f"environment.reuse.{function}({', '.join(map(str, args))})"

    match node:
        case nodes.Const(value=value) if value is None or isinstance(value, (bool, int, str)):
            return repr(value)
        case nodes.Name(ctx="load"):
            if node.name == "loop" or node.name in own:
                return None
            return name(node) if name else node.name
        case nodes.Getattr(node=nodes.Name(name="loop") as loop, attr=attr):
            return f"{name(loop) if name else 'loop'}.{attr}" if attr in LOOP else None
        case nodes.Getattr(node=inner, attr=attr):
            return calling("attribute", of(inner), repr(attr))
        case nodes.Getitem(node=inner, arg=arg):
            return calling("item", of(inner), of(arg))
        case nodes.Add() | nodes.Sub() if _is_number(node.left) or _is_number(node.right):
            return calling("added", of(node.left), of(node.right), "1" if isinstance(node, nodes.Add) else "-1")
        case nodes.Filter(node=inner, name="length" | "count", args=[], kwargs=[], dyn_args=None, dyn_kwargs=None):
            return calling("size", of(inner))
        case nodes.Not(node=inner):
            value = of(inner)
            return value and f"(not {value})"
        case nodes.And() | nodes.Or():
            values, word = (of(node.left), of(node.right)), "and" if isinstance(node, nodes.And) else "or"
            return None if None in values else f"({values[0]} {word} {values[1]})"
        case nodes.Compare(expr=left, ops=[nodes.Operand(op=op, expr=right)]) if op in _COMPARED:
            values = of(left), of(right)
            return None if None in values else f"({values[0]} {_COMPARED[op]} {values[1]})"
    return None


def _is_number(node: nodes.Node) -> bool:
    """Whether an expression is certainly an integer, if it is a value at all."""
    match node:
        case nodes.Const(value=value):
            return type(value) is int
        case nodes.Getattr(node=nodes.Name(name="loop"), attr=attr):
            return attr in ("index", "index0", "length", "revindex", "revindex0")
        case nodes.Add() | nodes.Sub():
            return _is_number(node.left) or _is_number(node.right)
    return isinstance(node, nodes.Filter) and node.name in ("length", "count")


# What these expressions call. They fail for whatever a template might see otherwise.


def attribute(value: Any, name: str) -> Any:
    if isinstance(value, Namespace):
        return _attributes(value)[name]
    if type(value) is dict and not hasattr(dict, name):
        return value[name]
    raise TypeError


def item(value: Any, key: Any) -> Any:
    if type(value) in (list, tuple) and type(key) is int:
        return value[key]
    if type(value) is dict and not hasattr(dict, key):
        return value[key]
    raise TypeError


def added(left: Any, right: Any, sign: int) -> int:
    if type(left) is int and type(right) is int:
        return left + sign * right
    raise TypeError


def size(value: Any) -> int:
    if isinstance(value, (str, list, tuple, dict)):
        return len(value)
    raise TypeError


class Turn(NamedTuple):
    """What one turn wrote."""

    key: list[Any]
    text: str
    written: list[dict[str, Any]]
    """What it wrote into each namespace."""


class _Logged(dict[str, Any]):
    """The values of a namespace, which knows those that are written."""

    def __init__(self, values: dict[str, Any]) -> None:
        super().__init__(values)
        self.written: dict[str, Any] = {}

    def __setitem__(self, name: str, value: Any) -> None:
        super().__setitem__(name, value)
        self.written[name] = value


Memory: TypeAlias = dict[tuple[int, int | None, int], Turn]
"""The turns of a rendering by the numbers of their loop and message, and how many turns that message had before."""


class Turns:
    """The turns of one rendering, and those of the last one."""

    def __init__(self, last: Memory, functions: Iterable[object]) -> None:
        self.memory: Memory = {}
        self._last = last
        self._functions = frozenset(map(id, functions))
        self._counts: dict[tuple[int, int | None], int] = {}

    def reused(
        self, loop: int, message: int | None, parts: Callable[[], tuple[list[Any], list[Any]]], body: Callable[[], str]
    ) -> str:
        """What `body` writes. `message` is the one in whose turn it is; `parts` evaluates those, and the namespaces
        that it may write into."""
        place = loop, message
        number = self._counts[place] = self._counts.get(place, -1) + 1
        try:
            values, spaces = parts()
        except Exception:  # the turn may not get as far as to evaluate it
            return body()
        known = self._last.get((loop, message, number))
        if known is None or not all(map(self._holds, known.key, values)):
            known, is_reusable = self._run(values, spaces, body)
            if not is_reusable:
                return known.text
        else:
            for space, written in zip(spaces, known.written, strict=True):
                _attributes(space).update(written)
        self.memory[loop, message, number] = known
        return known.text

    def _holds(self, old: Any, new: Any) -> bool:
        return old is new or _same(old, self._frozen(new))

    def _run(self, values: list[Any], spaces: list[Any], body: Callable[[], str]) -> tuple[Turn, bool]:
        """Runs a turn, and whether it can be reused."""
        key = [*map(self._frozen, values)]
        if any(value is _UNKNOWN for value in key) or not all(isinstance(space, Namespace) for space in spaces):
            return Turn(key, body(), []), False
        logs = [_Logged(_attributes(space)) for space in spaces]
        for space, log in zip(spaces, logs, strict=True):
            space._Namespace__attrs = log
        text = body()
        for space, log in zip(spaces, logs, strict=True):
            space._Namespace__attrs = dict(log)
        is_reusable = all(_is_plain(value) for log in logs for value in log.written.values())
        return Turn(key, text, [log.written for log in logs]), is_reusable

    def _frozen(self, value: Any) -> Any:
        """A value for a key: of namespaces their values, of macros that they are macros."""
        if _is_plain(value) or type(value) in (dict, list, tuple) or id(value) in self._functions:
            return value
        if isinstance(value, Undefined):
            return Undefined
        if isinstance(value, Macro):
            return Macro
        if isinstance(value, Namespace):
            attributes = {name: self._frozen(each) for name, each in _attributes(value).items()}
            is_unknown = any(each is _UNKNOWN or isinstance(each, Frozen) for each in attributes.values())
            return _UNKNOWN if is_unknown else Frozen(attributes)
        return _UNKNOWN


class Frozen(NamedTuple):
    """The values of a namespace."""

    values: Mapping[str, Any]


_UNKNOWN = object()
"""A value of which it is not known whether it changes."""


def _attributes(space: Namespace) -> dict[str, Any]:
    found: dict[str, Any] = space._Namespace__attrs
    return found


def _is_plain(value: object) -> bool:
    return value is None or isinstance(value, (bool, int, float, str))


def _same(one: Any, other: Any) -> bool:
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    if isinstance(one, Text):
        return str.__eq__(one, other) and one.runs == other.runs
    if isinstance(one, Frozen):
        mine, yours = one.values, other.values
        return mine.keys() == yours.keys() and all(_same(value, yours[name]) for name, value in mine.items())
    return _is_plain(one) and bool(one == other)
