"""From a name to a file: a path wins, then a prefix names the store.

No store is imported before its prefix is seen, and nothing is read from the network here.
"""

from __future__ import annotations

import errno
import os
import re
import reprlib
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from .._plugins import NAME, Plugin, added
from ..errors import ArgumentTypeError, ModelNotFoundError
from .model import Model, first_part
from .tools import STORES

GROUP = "ggtok.stores"
URLS = ("https://", "http://")

HUB = re.compile(r"\w[\w.-]*/[\w.-]+(?<!\.gguf)(:[\w.-]+)?", re.ASCII)
"""A path that may be meant as the name of a repository on Hugging Face's Hub, with a quantization."""

NUM_NEAREST = 3

MAX_COMPARED = 1000
"""Characters of a name for which similar ones are looked for: to compare takes time."""


class Store(NamedTuple):
    """A store behind its prefix: one of `tools.py`, or of another distribution. If it fails or returns nonsense, a
    warning names the distribution."""

    plugin: Plugin
    tool: Any
    title: str

    def places(self) -> list[Path]:
        """The folders in which models are looked for."""
        found: list[Path] = []
        with self.plugin:
            found.extend(map(Path, self.tool.places()))
        return found

    def models(self) -> list[Model]:
        """All models, in the order of their names. Of those with one name, the first."""
        found: dict[str, Model] = {}
        with self.plugin:
            for model in map(self._model, self.tool.models()):
                found.setdefault(model.name.lower(), model)
        return sorted(found.values())

    def find(self, name: str) -> Model | None:
        """The model of a name without the prefix."""
        with self.plugin:
            if hasattr(self.tool, "find"):
                found = self.tool.find(name)
                return None if found is None else self._model(found)
        wanted = f"{self.plugin.name}:{name}".lower()
        return next((model for model in self.models() if model.name.lower() == wanted), None)

    def _model(self, row: object) -> Model:
        """A model with the prefix before its name. It comes as a `Model`, `(name, path)`, or `(name, "", why)`."""
        match row:
            case Model():
                model = row
            case [str(name), str() | os.PathLike() as path] if path:
                model = Model(name, os.fsdecode(path))
            case [str(name), "", str(problem)] if problem:
                model = Model(name, "", problem)
            case _:
                raise TypeError(f"a model is a tuple of its name and its path, not {reprlib.repr(row)}")
        return model._replace(name=f"{self.plugin.name}:{model.name}")


def store(prefix: str) -> Store | None:
    """The store of a prefix; `None` if there is none that works."""
    if prefix in STORES:
        return loaded(Plugin("ggtok", GROUP, prefix, STORES[prefix]))
    plugin = added(GROUP, tuple(STORES)).get(prefix) if NAME.fullmatch(prefix) else None
    return loaded(plugin) if plugin else None


@cache
def loaded(plugin: Plugin) -> Store | None:
    """The same of a plug-in."""
    with plugin:
        tool = plugin.load()
        tool = tool() if isinstance(tool, type) else tool
        if not (callable(tool.places) and callable(tool.models)):
            raise TypeError("places and models must be functions")
        return Store(plugin, tool, str(getattr(tool, "TITLE", plugin.name)))
    return None


def stores(prefixes: Iterable[str] | None = None) -> list[Store]:
    """The stores of some prefixes, or all: ours and then those of other distributions."""
    names = [*STORES, *added(GROUP, tuple(STORES))] if prefixes is None else prefixes
    return [found for prefix in names if (found := store(prefix))]


def find(name: str | os.PathLike[str]) -> Path:
    """The GGUF file of a model on this machine. Never uses the network.

    Args:
        name: A path, or a name with the prefix of a store, such as `ollama:llama3.2` or `hf:owner/repo`. Of a split
            file, any part leads to the first one, which has the metadata. docs/open.md lists the stores, the forms of
            names and the folders that are searched.

    Raises:
        ModelNotFoundError: The model is not on this machine or has no GGUF file, or the path does not exist; `nearest`
            and `places` say more.
        TypeError: `name` is neither a str nor a path.

    >>> import ggtok, os
    >>> ggtok.find(os.path.join(os.path.dirname(ggtok.__file__), "vocabularies", "bpe.gguf")).name
    'bpe.gguf'
    """
    return Path(located(name))


def is_url(name: str | os.PathLike[str]) -> bool:
    """Whether a name is a URL, and not a path that exists."""
    return isinstance(name, str) and name.lower().startswith(URLS) and not os.path.exists(name)


def located(name: str | os.PathLike[str]) -> str:
    """As `find`, as a str."""
    return located_model(name).path


def located_model(name: str | os.PathLike[str]) -> Model:
    """As `find`, with what else the store says. A path is a model without a name."""
    if not isinstance(name, (str, os.PathLike)):
        raise ArgumentTypeError(f"the name of a model must be str or a path, not {type(name).__name__}")
    path = os.fsdecode(name)
    if os.path.exists(path):
        return Model("", first_part(path))
    if is_url(path):
        raise ModelNotFoundError(f"{path!r} is a URL, not a file on this machine", name=path)
    prefix, colon, rest = path.partition(":")
    if colon and (found := store(prefix.lower())):
        model = found.find(rest)
        if model is None:
            raise unknown(path, rest, [found])
        if model.problem:
            raise ModelNotFoundError(f"{path!r} cannot be opened: {model.problem}", name=path)
        return model._replace(path=first_part(model.path))
    if any(separator in path for separator in (os.sep, os.altsep or os.sep)) or path.lower().endswith(".gguf"):
        hint = f"; a repository on Hugging Face is named hf:{path}" if HUB.fullmatch(path) else ""
        raise ModelNotFoundError(f"{path}: {os.strerror(errno.ENOENT)}{hint}", name=path)
    raise unknown(path, path, stores())


def names_from(start: str) -> list[str]:
    """The names of models that begin like this and can be opened. Only stores whose names can fit are read."""
    prefix, colon, _ = start.partition(":")
    prefix = prefix.lower()
    fitting = stores([prefix]) if colon else [each for each in stores() if each.plugin.name.startswith(prefix)]
    found = (model for each in fitting for model in each.models() if not model.problem)
    return [model.name for model in found if model.name.startswith(start)]


def unknown(name: str, bare: str, looked: Sequence[Store]) -> ModelNotFoundError:
    """The error for a name that some stores do not have: the nearest names that they do, and where was looked. `bare`
    is the name without the prefix of the store."""
    near = nearest(bare, [model.name for each in looked for model in each.models()])
    places = [place for each in looked for place in each.places()]
    if len(looked) == 1:
        problem = f"{looked[0].title} has no model {name!r}"
        advice = f"looked in {', '.join(f'{place}{_state(place)}' for place in places)}"
    else:
        problem = f"no such file {name!r}, and the name of a model starts with its store"
        advice = f"{', '.join(f'{each.plugin.name}:' for each in looked)}; ggtok models lists all models"
    meant = f"; did you mean {' or '.join(near)}?" if near else ""
    return ModelNotFoundError(f"{problem}{meant} ({advice})", name=name, nearest=near, places=tuple(map(str, places)))


def nearest(bare: str, known: Iterable[str]) -> tuple[str, ...]:
    """The known names that were probably meant: those that contain a name, and those spelled similarly."""
    from difflib import get_close_matches

    bare = bare[:MAX_COMPARED].lower()
    ends = {name: name.partition(":")[2].lower() for name in known}
    inside = [name for name, end in ends.items() if bare and bare in end]
    by_end = {end: name for name, end in ends.items()}
    close = [by_end[end] for end in get_close_matches(bare, by_end, NUM_NEAREST)]
    return tuple(dict.fromkeys([*inside, *close]))[:NUM_NEAREST]


def _state(place: Path) -> str:
    try:
        with os.scandir(place):
            return ""
    except FileNotFoundError:
        return " (not there)"
    except (OSError, ValueError) as error:  # ValueError: the path that a file names is not one
        return f" ({getattr(error, 'strerror', None) or 'not readable'})"
