"""The sandbox in which chat templates run: jinja2 set up as transformers does, with limits, and with origins.

As in transformers' `apply_chat_template` (`utils/chat_template_utils.py`): the immutable sandbox, `trim_blocks` and
`lstrip_blocks`, loop controls, `{% generation %}`, `tojson` without HTML escapes, `raise_exception`, `strftime_now`,
and namespaces without underscored names.

A template is compiled in one of two environments. `PLAIN` renders strings. `TRACED` renders `Text`: its constants and
the text between tags have the template's origin, and joining, formatting and JSON keep origins. Both count every turn
of a loop, call, filter and new container (see `limits`). Code is changed in the syntax tree, before jinja2 compiles it:
a loop first says that it begins, each turn says what its variables are, and the end says that the loop is over. So a
text that the template writes knows in whose message's turn it was written.

Deviations from transformers: (1) the limits. (2) `lipsum` is absent; the text of a namespace does not show its values.
(3) The optimizer of jinja2 is off, which changes no output. (4) `import`, `include` and `extends` fail, as there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from datetime import datetime
from functools import partial
from io import StringIO
from typing import Any

import jinja2
from jinja2 import nodes
from jinja2.compiler import CodeGenerator
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Namespace
from jinja2.visitor import NodeTransformer

from . import filters, formatting, notation, reuse
from .limits import Budget, LimitError
from .text import Origin, Text, concat


class State:
    """What changes during one rendering."""

    def __init__(self, size: int, messages: Mapping[int, int], now: datetime, turns: reuse.Turns | None = None) -> None:
        self.budget = Budget(size)
        self.now = now
        self.turns = turns
        """For templates whose turns of loops are reused."""
        self._messages = messages
        """The number of each message by the id of its mapping."""
        self._turns: list[int | None] = []
        """For each loop that runs, outermost first, the message before it began."""
        self.message: int | None = None
        self._literals: dict[str, Text] = {}

    def literal(self, text: str) -> Text:
        """A text that the template writes now."""
        found = self._literals.get(text)
        if found is None:
            found = self._literals[text] = Text.of(text, Origin(True, self.message))
        return found

    def begin(self) -> None:
        self.budget.spend()
        self._turns.append(self.message)

    def turn(self, *values: object) -> bool:
        """Begins a turn of a loop with these variables."""
        self.budget.spend()
        for value in values:
            message = self._messages.get(id(value)) if isinstance(value, dict) else None
            if message is not None:
                self._to(message)
        return True

    def end(self) -> None:
        self._to(self._turns.pop())

    def _to(self, message: int | None) -> None:
        if message != self.message:
            self.message, self._literals = message, {}


STATE: ContextVar[State] = ContextVar("ggtok chat rendering")


class _LoopMarks(NodeTransformer):
    """Puts calls around loops, and into them: `begin()`, `turn(x)` and `end()` of the state."""

    def visit_For(self, node: nodes.For) -> Any:  # noqa: N802
        self.generic_visit(node)
        names = [nodes.Name(name.name, "load") for name in node.target.find_all(nodes.Name)]
        if isinstance(node.target, nodes.Name):
            names = [nodes.Name(node.target.name, "load")]
        node.body.insert(0, _call("turn", names, node.lineno))
        if node.test is not None:
            node.test = nodes.And(_call("turn", [], node.lineno).node, node.test)
        return [_call("begin", [], node.lineno), node, _call("end", [], node.lineno)]


def _call(method: str, args: list[nodes.Name], line: int) -> Any:
    function = nodes.EnvironmentAttribute(f"state.{method}")
    return nodes.ExprStmt(nodes.Call(function, args, [], None, None)).set_lineno(line)


class _Generator(CodeGenerator):
    """Compiles new lists, tuples and mappings to ones that are counted."""

    def visit_List(self, node: Any, frame: Any) -> None:  # noqa: N802
        is_target = getattr(node, "ctx", "load") != "load"
        self.write("" if is_target else "environment.state.budget.made(")
        getattr(super(), f"visit_{type(node).__name__}")(node, frame)
        self.write("" if is_target else ")")

    visit_Dict = visit_Tuple = visit_List  # noqa: N815

    def visit_Call(self, node: nodes.Call, frame: Any, forward_caller: bool = False) -> None:  # noqa: N802
        if isinstance(node.node, nodes.EnvironmentAttribute) and forward_caller:  # a body whose turns are reused
            number, *lists = node.args
            parts = (list(each.iter_child_nodes()) for each in lists)
            self.write(f"environment.{node.node.name}(")
            self.visit(number, frame)
            self.write(", environment.state.message, lambda: (")
            for each in parts:
                values = (reuse.python(part, set(), lambda name: self._written(name, frame)) for part in each)
                self.write(f"[{', '.join(map(str, values))}], ")
            self.write("), caller)")
        elif isinstance(node.node, nodes.EnvironmentAttribute):  # only the marks around loops
            self.write(f"environment.{node.node.name}(")
            for arg in node.args:
                self.visit(arg, frame)
                self.write(", ")
            self.write(")")
        else:
            super().visit_Call(node, frame, forward_caller=forward_caller)

    def _written(self, node: nodes.Name, frame: Any) -> str:
        """What is compiled for a variable."""
        stream, self.stream = self.stream, StringIO()
        self.visit(node, frame)
        text = self.stream.getvalue()
        self.stream = stream
        return text

    def visit_Concat(self, node: nodes.Concat, frame: Any) -> None:  # noqa: N802
        self.write("environment.concat(map(environment._string, (")
        for arg in node.nodes:
            self.visit(arg, frame)
            self.write(", ")
        self.write(")))")


class _TracedGenerator(_Generator):
    """Compiles string constants and the text between tags to literals of the template."""

    def visit_Const(self, node: nodes.Const, frame: Any) -> None:  # noqa: N802
        if isinstance(node.value, str):
            self.write(f"environment.state.literal({node.value!r})")
        else:
            super().visit_Const(node, frame)

    def visit_TemplateData(self, node: nodes.TemplateData, frame: Any) -> None:  # noqa: N802
        self.write(f"environment.state.literal({node.data!r})")

    def _output_const_repr(self, group: Iterable[Any]) -> str:
        return f"environment.state.literal({''.join(map(str, group))!r})"


class _Generation(Extension):
    """`{% generation %} ... {% endgeneration %}`: what the assistant says."""

    tags = {"generation"}  # noqa: RUF012

    def parse(self, parser: Parser) -> nodes.Node:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.CallBlock(self.call_method("_generated"), [], [], body).set_lineno(line)

    def _generated(self, caller: Callable[[], str]) -> str:
        text = caller()
        return text.marked(lambda origin: origin._replace(generated=True)) if isinstance(text, Text) else text


class _Namespace(Namespace):
    """A namespace that neither takes nor shows internals."""

    def __init__(*args: Any, **kwargs: Any) -> None:
        self, *rest = args
        values = dict(*rest, **kwargs)
        for name in values:
            _check_name(name)
        Namespace.__init__(self, values)

    def __setitem__(self, name: str, value: Any) -> None:
        _check_name(name)
        super().__setitem__(name, value)

    def __repr__(self) -> str:
        return "<Namespace>"


def _check_name(name: object) -> None:
    if isinstance(name, str) and name.startswith("_"):
        raise jinja2.exceptions.SecurityError(f"a namespace takes no name that starts with an underscore: {name!r}")


class _Dict:
    """`dict(...)` without the attributes of the class."""

    def __call__(self, *args: Any, **kwargs: Any) -> dict[Any, Any]:
        return dict(*args, **kwargs)

    def fromkeys(self, keys: Iterable[Any], value: Any = None) -> dict[Any, Any]:
        return dict.fromkeys(keys, value)


class ChatEnvironment(ImmutableSandboxedEnvironment):
    """See the module."""

    intercepted_binops = frozenset(("+", "-", "*", "/", "//", "**", "%"))
    code_generator_class = _Generator
    reuse = reuse
    _own_filters = filters.FILTERS

    def __init__(self, reuses: bool = False) -> None:
        """With `reuses`, what a turn of a loop wrote in the last rendering is taken from `State.turns`."""
        self._reuses = reuses
        super().__init__(
            trim_blocks=True,
            lstrip_blocks=True,
            extensions=[_Generation, loopcontrols],
            optimized=False,
            finalize=self._finalize,
        )
        del self.globals["lipsum"]
        self.globals.update(
            raise_exception=_raise_exception, strftime_now=self._now, dict=_Dict(), namespace=_Namespace
        )
        own = self.filters | self._own_filters
        self.filters = {
            name: filters.limited(name, function, lambda: self.state.budget) for name, function in own.items()
        }

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        template = super()._parse(source, name, filename)
        if self._reuses:
            reuse.mark(template)
        _LoopMarks().visit(template)
        template.set_environment(self)
        return template

    # What compiled templates call

    @property
    def state(self) -> State:
        return STATE.get()

    _join: Callable[[list[Any]], str] = staticmethod("".join)

    def concat(self, parts: Iterable[str]) -> str:
        pieces = list(parts)
        self.state.budget.length(sum(map(len, pieces)))
        return self._join(pieces)

    def _string(self, value: Any) -> str:
        """`str(value)` of something that is written."""
        if not isinstance(value, str):
            budget = self.state.budget
            budget.length(budget.weigh(value) * 64 if isinstance(value, (list, tuple, dict, set)) else 0)
            return self._written(value)
        return str(value)

    _written: Callable[[Any], str] = staticmethod(str)

    def _finalize(self, value: Any) -> Any:
        """Counts what an output writes. Fails while a template is compiled, so that nothing is computed then."""
        text = self._string(value)
        self.state.budget.length(len(text))
        return text

    def _now(self, format: str) -> str:
        return self.state.now.strftime(format)

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        budget = self.state.budget
        budget.binary(operator, left, right)
        if operator == "%" and isinstance(left, str):
            return formatting.printf(left, right)
        return budget.made(super().call_binop(context, operator, left, right))

    def call(self, context: Context, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        budget = self.state.budget
        budget.enter()
        try:
            owner, name = getattr(function, "__self__", None), getattr(function, "__name__", "")
            if isinstance(owner, (str, bytes)):
                if name == "join" and args and not isinstance(args[0], (list, tuple, dict, str)):
                    args = (list(args[0]), *args[1:])
                budget.method(owner, name, args, kwargs)
            elif args or kwargs:
                budget.weigh(args)
                budget.weigh(kwargs)
                if isinstance(owner, (int, float)) and any(isinstance(arg, int) and arg > 10_000 for arg in args):
                    raise LimitError(f"{name} would make more than 10000 digits")
            budget.spend()
            return budget.made(super().call(context, function, *args, **kwargs))
        finally:
            budget.depth -= 1

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        wrapped = super().wrap_str_format(value)
        return wrapped and partial(self._format, value.__self__, value.__name__ == "format_map")

    def _format(self, template: str, is_map: bool, /, *args: Any, **kwargs: Any) -> str:
        budget = self.state.budget
        budget.length(len(template) + budget.weigh(args) * 64 + budget.weigh(kwargs) * 64)
        if is_map:
            if kwargs or len(args) != 1:
                raise TypeError("format_map() takes exactly one argument")
            (kwargs,), args = args, ()
        return formatting.Formatter(self).vformat(template, args, kwargs)


class TracedEnvironment(ChatEnvironment):
    """Renders `Text`."""

    code_generator_class = _TracedGenerator
    _own_filters = filters.FILTERS | filters.TRACED_FILTERS
    _join = staticmethod(concat)
    _written = staticmethod(notation.written)

    def _now(self, format: str) -> str:
        return self.state.literal(super()._now(format))


def _raise_exception(message: object) -> None:
    raise jinja2.TemplateError(str(message))


def render(template: jinja2.Template, variables: Mapping[str, Any], state: State) -> str:
    """What a template writes. Exceptions keep the frames of the template, from which `errors` reads the line."""
    token = STATE.set(state)
    try:
        pieces, size = [], 0
        for piece in template.root_render_func(template.new_context(dict(variables))):
            size += len(piece)
            state.budget.length(len(piece))
            if size > state.budget.chars:
                raise LimitError(f"the text would have more than {state.budget.chars} characters")
            pieces.append(piece)
        return template.environment.concat(pieces)
    finally:
        STATE.reset(token)
