"""Makes the lists of stores and adapters for the site, from the modules themselves.

`docs/conf.py` puts them into the pages.

A store's row is made of the docstrings of its `models` (names, a colon, and what they are) and of its `places`. An
adapter's row and its part of the reference are made of its public names and the first sentence of its module.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from ggtok import adapters
from ggtok.stores.find import stores
from ggtok.stores.tools import STORES

DOCS = Path(__file__).resolve().parent.parent / "docs"


def pages() -> dict[str, str]:
    """The generated part of each page."""
    return {"open": store_tables(), "adapters": adapter_table(), "api/adapters": reference()}


def store_tables() -> str:
    """The names of models in each store, and the folders that are searched."""
    found = stores(STORES)
    names = ((each.title, *names_of(each.plugin.name, each.tool.models)) for each in found)
    folders = ((each.title, joined(each.tool.places).rstrip(".")) for each in found)
    heads = ("store", "names", "which are"), ("store", "folders, the first that is set")
    return table(heads[0], names) + "\nThe files are looked for in these folders:\n\n" + table(heads[1], folders)


def names_of(prefix: str, models: Any) -> tuple[str, str]:
    """The names that a docstring begins with, each with its prefix, and what they are.

    Raises:
        ValueError: The docstring has another form.
    """
    parts = re.fullmatch(r"(`[^`]+`(?:, `[^`]+`)*): (.+)\.", joined(models))
    if parts is None:
        raise ValueError(f"{prefix}: the docstring of models must be `name`, `name`: what they are.")
    return re.sub(r"`([^`]+)`", rf"`{prefix}:\1`", parts[1]), parts[2]


def joined(function: Any) -> str:
    """The first paragraph of a docstring, in one line."""
    return " ".join((inspect.getdoc(function) or "").partition("\n\n")[0].split())


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    head = tuple(head)
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def modules() -> Iterator[tuple[str, ModuleType]]:
    """The adapters."""
    return ((name, getattr(adapters, name)) for name in adapters.__all__)


def entries(module: ModuleType) -> list[tuple[str, Any]]:
    """The public names of a module, in the order of the file."""
    own = [(name, value) for name, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__]
    public = getattr(module, "__all__", [name for name, _ in own if not name.startswith("_")])
    return [(name, value) for name, value in own if name in public and callable(value)]


def adapter_table() -> str:
    rows = (
        (f"`{name}`", joined(module), ", ".join(f"`{name}.{entry}`" for entry, _ in entries(module)))
        for name, module in modules()
    )
    return table(("module", "what it has", "names"), rows)


def reference() -> str:
    """A heading for each adapter, except for those that have a page, and directives of Sphinx for its names."""
    parts = []
    for name, module in modules():
        if not (DOCS / f"api/adapters-{name}.md").exists():
            directives = "\n".join(directive(f"{module.__name__}.{entry}", value) for entry, value in entries(module))
            parts.append(f"## ggtok.adapters.{name}\n\n```{{eval-rst}}\n{directives}```\n")
    return "\n".join(parts)


def directive(name: str, value: object) -> str:
    if not isinstance(value, type):
        return f".. autofunction:: {name}\n"
    special = "   :special-members: __call__\n" if "__call__" in vars(value) else ""
    return f".. autoclass:: {name}\n   :members:\n{special}"


if __name__ == "__main__":
    print("\n".join(pages().values()))
