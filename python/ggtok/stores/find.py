"""From a name to a file: a path wins, then a prefix names the store.

No store is asked before its prefix is seen, and nothing is read from the network here.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Protocol, cast

from ..errors import ArgumentTypeError, ModelNotFoundError
from .model import Model, first_part

STORES = {
    "ollama": "ollama",
    "hf": "huggingface",
    "lmstudio": "lmstudio",
    "docker": "docker",
    "ramalama": "ramalama",
    "jan": "jan",
    "gpt4all": "gpt4all",
}
"""The module of each prefix."""

URLS = ("https://", "http://")

HUB = re.compile(r"\w[\w.-]*/[\w.-]+(?<!\.gguf)(:[\w.-]+)?", re.ASCII)
"""A path that may be meant as the name of a repository on Hugging Face's Hub, with a quantization."""

NUM_NEAREST = 3

MAX_COMPARED = 1000
"""Characters of a name for which similar ones are looked for: to compare takes time."""


class Store(Protocol):
    """What the module of a store has."""

    PREFIX: str
    TITLE: str

    def places(self) -> list[Path]: ...
    def models(self) -> Iterator[Model]: ...
    def find(self, name: str, /) -> Model | None: ...


def store(prefix: str) -> Store:
    """The store of a prefix."""
    return cast(Store, import_module(f".{STORES[prefix]}", __package__))


def find(name: str | os.PathLike[str]) -> Path:
    """The GGUF file of a model on this machine. Never uses the network.

    Args:
        name: A path, or a name with a prefix: `ollama:`, `hf:`, `lmstudio:`, `docker:`, `ramalama:`, `jan:` or
            `gpt4all:`. Of a split file, any part leads to the first one, which has the metadata. docs/open.md lists
            the forms of names and the folders that are searched.

    Raises:
        ModelNotFoundError: There is no such model, or it has no GGUF file, or there is no file at the path; `nearest`
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
    prefix, colon, rest = path.partition(":")
    prefix = prefix.lower()
    if is_url(path):
        raise ModelNotFoundError(f"{path!r} is a URL, and no file on this machine", name=path)
    if colon and prefix in STORES:
        model = store(prefix).find(rest)
        if model is None:
            raise unknown(path, [prefix])
        if model.problem:
            raise ModelNotFoundError(f"{path!r} cannot be opened: {model.problem}", name=path)
        return model._replace(path=first_part(model.path))
    if any(separator in path for separator in (os.sep, os.altsep or os.sep)) or path.lower().endswith(".gguf"):
        hint = f"; a repository on Hugging Face is named hf:{path}" if HUB.fullmatch(path) else ""
        raise ModelNotFoundError(f"{path}: {os.strerror(errno.ENOENT)}{hint}", name=path)
    raise unknown(path, STORES)


def all_models(prefixes: Iterable[str] = STORES) -> Iterator[Model]:
    """All models of the stores, in the order of the stores and then of names."""
    for prefix in prefixes:
        yield from sorted(store(prefix).models())


def names_from(start: str) -> list[str]:
    """The names of models that begin like this and can be opened. Only stores whose names can fit are read."""
    prefix, colon, _ = start.partition(":")
    prefixes = [each for each in STORES if (each == prefix.lower() if colon else each.startswith(prefix.lower()))]
    found = (model for model in all_models(prefixes) if not model.problem)
    return [model.name for model in found if model.name.startswith(start)]


def unknown(name: str, prefixes: Iterable[str]) -> ModelNotFoundError:
    """The error for a name that some stores do not have: the nearest names that they do, and where was looked."""
    stores = [store(prefix) for prefix in prefixes]
    known = [model.name for prefix in prefixes for model in store(prefix).models()]
    places = [place for each in stores for place in each.places()]
    near = nearest(name, known)
    if len(stores) == 1:
        problem = f"{stores[0].TITLE} has no model {name!r}"
        looked = ", ".join(f"{place}{_state(place)}" for place in places)
        advice = f"looked in {looked}"
    else:
        problem = f"there is no file {name!r}, and the name of a model starts with its store"
        advice = f"{', '.join(f'{prefix}:' for prefix in STORES)}; ggtok models lists all models"
    meant = f"; did you mean {' or '.join(near)}?" if near else ""
    return ModelNotFoundError(f"{problem}{meant} ({advice})", name=name, nearest=near, places=tuple(map(str, places)))


def nearest(name: str, known: Iterable[str]) -> tuple[str, ...]:
    """The known names that a name was probably meant to be: those that contain it, and those written similarly."""
    from difflib import get_close_matches

    name = name[:MAX_COMPARED]
    unique = {other.lower(): other for other in known}
    bare = name.lower().partition(":")[2] if name.partition(":")[0].lower() in STORES else name.lower()
    inside = [other for other in unique if bare and bare in other.partition(":")[2]]
    by_end = {other.partition(":")[2]: other for other in unique}
    close = [by_end[end] for end in get_close_matches(bare, by_end, NUM_NEAREST)]
    return tuple(unique[other] for other in list(dict.fromkeys([*inside, *close]))[:NUM_NEAREST])


def _state(place: Path) -> str:
    try:
        with os.scandir(place):
            return ""
    except FileNotFoundError:
        return " (not there)"
    except (OSError, ValueError) as error:  # ValueError: the path that a file names is not one
        return f" ({getattr(error, 'strerror', None) or 'not readable'})"
