"""From messages to text: compiles a template, renders it within limits, and says where it failed.

Complexity: compiling is O(template), once for each of the last templates used; rendering is what the template does.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import cache, lru_cache
from typing import Any, NamedTuple, TypeAlias

import jinja2
from jinja2 import meta, nodes

from ..errors import ChatTemplateError, GgtokError
from .environment import ChatEnvironment, State, TracedEnvironment, render
from .inputs import Given, Inputs, messages_of, read
from .limits import LimitError
from .reuse import Memory, Turns
from .text import Text

MAX_TEMPLATE = 1 << 19
"""Characters of a template: thirty times the longest known."""

_PROBLEMS: dict[type[Exception], str] = {
    LimitError: "{}",
    jinja2.UndefinedError: "a value is missing: {0.message}",
    jinja2.TemplateError: "it refuses these messages: {0.message}",
    RecursionError: "macros call each other too deeply",
    MemoryError: "rendering needs too much memory",
    Exception: "{0.__class__.__name__}: {0}",
}
"""What a failure means, by the first class that fits."""

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,31}")


class Source(NamedTuple):
    """A template's text, and its name for messages."""

    text: str
    name: str


class Compiled(NamedTuple):
    """A template ready for use."""

    template: jinja2.Template
    names: frozenset[str]
    """String constants that could be names of roles."""
    generation: bool
    """Whether it marks what the assistant says with `{% generation %}`."""
    variables: frozenset[str]
    """The names of variables that it reads."""


class Rendered(NamedTuple):
    """A text with origins, and the inputs it was made from."""

    text: Text
    inputs: Inputs
    generation: bool
    memories: tuple[Memory, Memory] | None = None


@cache
def _environment(traced: bool, reuses: bool) -> ChatEnvironment:
    return TracedEnvironment(reuses) if traced else ChatEnvironment(reuses)


@lru_cache(maxsize=64)
def compiled(source: Source, traced: bool, reuses: bool = False) -> Compiled:
    """Compiles a template, if `reuses` for `Memory`. Raises `ChatTemplateError` if it is not sound."""
    if len(source.text) > MAX_TEMPLATE:
        problem = f"it has {len(source.text)} characters, more than {MAX_TEMPLATE}"
        raise ChatTemplateError(problem, template=source.name)
    environment = _environment(traced, reuses)
    try:
        tree = environment.parse(source.text)
        names = {node.value for node in tree.find_all(nodes.Const) if isinstance(node.value, str)}
        names = {name for name in names if _NAME.fullmatch(name)}
        generation = any(call.call.node.name == "_generated" for call in _extension_calls(tree))
        variables = frozenset(meta.find_undeclared_variables(tree))
        template = environment.from_string(tree)
    except jinja2.TemplateSyntaxError as error:
        problem = f"it is not a sound template: {error.message}"
        raise ChatTemplateError(problem, template=source.name, line=error.lineno) from error
    except RecursionError as error:
        raise ChatTemplateError("it is nested too deeply", template=source.name) from error
    except Exception as error:
        problem = f"it is not a sound template: {type(error).__name__}: {error}"
        raise ChatTemplateError(problem, template=source.name, line=getattr(error, "lineno", None)) from error
    return Compiled(template, frozenset(names), generation, variables)


def _extension_calls(tree: nodes.Template) -> list[Any]:
    blocks = tree.find_all(nodes.CallBlock)
    return [block for block in blocks if isinstance(block.call.node, nodes.ExtensionAttribute)]


def run(source: Source, compiled: Compiled, inputs: Inputs, now: datetime, turns: Turns | None = None) -> str:
    """Renders a template. Raises `ChatTemplateError` with the line that failed."""
    try:
        return render(compiled.template, inputs.variables, State(inputs.size, inputs.turns, now, turns))
    except Exception as error:
        problem = next(text.format(error) for kind, text in _PROBLEMS.items() if isinstance(error, kind))
        line = None
        for frame, at in traceback.walk_tb(error.__traceback__):
            is_root = frame.f_code is compiled.template.root_render_func.__code__
            template = frame.f_globals.get("__jinja_template__") or (compiled.template if is_root else None)
            if template is not None:
                line = template.get_corresponding_lineno(at)
        raise ChatTemplateError(problem[:1000], template=source.name, line=line) from error


@contextmanager
def typed_errors() -> Iterator[None]:
    """Raises `GgtokError` for values that cannot be read."""
    try:
        yield
    except (RecursionError, ValueError) as error:
        raise GgtokError(str(error)) from error


class Request(Given):
    """A conversation that can be rendered."""

    __slots__ = ()

    def inputs(self, traced: bool, names: frozenset[str] = frozenset()) -> Inputs:
        with typed_errors():
            return read(self, traced, names)

    def plain_messages(self) -> list[dict[str, Any]]:
        with typed_errors():
            return messages_of(self.messages)

    def render(self, source: Source) -> str:
        return run(source, compiled(source, False), self.inputs(False), self.now)

    def trace(self, source: Source) -> Rendered:
        """The text with origins.

        Renders twice, with origins and without. Raises `ChatTemplateError` if the two differ.
        """
        return traced(source, self.inputs(True, compiled(source, True).names), self.inputs(False), self.now)


Memories: TypeAlias = tuple[Memory, Memory]
"""What turns of loops wrote, without origins and with them."""


def traced(
    source: Source, inputs: Inputs, plain_inputs: Inputs, now: datetime, last: Memories | None = None
) -> Rendered:
    """The text with origins of inputs with and without them. Raises `ChatTemplateError` if the two texts differ.

    `last` is of the last rendering with these inputs' messages; `Rendered.memories` is for the next one.
    """
    reuses = last is not None
    turns: list[Turns | None] = [None, None]
    templates = compiled(source, False, reuses), compiled(source, True, reuses)
    if last is not None:
        turns = [
            Turns(memory, template.template.environment.globals.values())
            for memory, template in zip(last, templates, strict=True)
        ]
    text = Text(run(source, templates[1], inputs, now, turns[1]))
    if run(source, templates[0], plain_inputs, now, turns[0]) != text:
        problem = "it gives another text when the origins of its strings are followed"
        raise ChatTemplateError(problem, template=source.name)
    memories = None if turns[0] is None or turns[1] is None else (turns[0].memory, turns[1].memory)
    return Rendered(text, inputs, templates[1].generation, memories)
