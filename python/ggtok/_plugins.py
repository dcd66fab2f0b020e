"""Plug-ins: stores and commands, each by the name that an entry point gives it. One that is broken is a warning.

The metadata of distributions is read only for a name that ggtok does not have itself, and to list all names: to import
`importlib.metadata` takes longer than to open a tokenizer.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache, reduce
from importlib import import_module
from typing import Any, NamedTuple

from .tokenizer.findings import Finding, warn_of

NAME = re.compile(r"[a-z][a-z0-9_.-]+")
"""What another distribution may call a plug-in. One letter before a colon is a drive of Windows."""


class Plugin(NamedTuple):
    """A store or a command. As a context it turns what the plug-in raises into a warning."""

    distribution: str
    group: str
    """`ggtok.stores` or `ggtok.commands`."""
    name: str
    value: str
    """Where it is, as in an entry point: `module` or `module:object`."""

    def load(self) -> Any:
        """The object. Raises whatever importing it raises."""
        module, _, names = self.value.partition("[")[0].strip().partition(":")
        return reduce(getattr, filter(None, names.split(".")), import_module(module))

    def warn(self, problem: str) -> None:
        """Says that the plug-in is not used."""
        kind = self.group.removeprefix("ggtok.").removesuffix("s")
        _warn(f"the {kind} {self.name!r} of the distribution {self.distribution} {problem}")

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        if error is None or isinstance(error, (KeyboardInterrupt, GeneratorExit)):
            return False
        self.warn(f"is broken: {type(error).__name__}: {error}")  # also SystemExit, and a panic in Rust
        return True


@lru_cache
def _warn(message: str) -> None:
    """Says it once, and again only after many others."""
    warn_of(Finding("plugin", "warning", message, "everything else works"))


@cache
def added(group: str, taken: tuple[str, ...]) -> dict[str, Plugin]:
    """The plug-ins of other distributions by name, except those with a name that is taken."""
    from importlib.metadata import distributions

    plugins = set()
    for distribution in distributions():
        name = "without a name"
        try:
            if f"[{group}]" in (distribution.read_text("entry_points.txt") or ""):
                name = str(distribution.metadata["Name"])
                points = distribution.entry_points.select(group=group)
                plugins |= {Plugin(name, group, point.name, point.value) for point in points}
        except Exception as error:  # of files that are not in the format
            _warn(f"the entry points of the distribution {name} cannot be read: {error}")
    found: dict[str, Plugin] = {}
    for plugin in sorted(plugins):
        if not NAME.fullmatch(plugin.name):
            plugin.warn(f"is not used: its name does not match {NAME.pattern}")
        elif plugin.name in taken or plugin.name in found:
            owner = found[plugin.name].distribution if plugin.name in found else "ggtok"
            plugin.warn(f"is not used: {owner} has one of this name")
        else:
            found[plugin.name] = plugin
    return found
