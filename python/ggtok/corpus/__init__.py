"""From files to training data: documents are read, encoded and written in shards.

`sources` lists the inputs, `plan` cuts them into shards, `reading` yields documents, `table` encodes them, `writing`
has a file per output format, `shard` makes one shard, `manifest` knows which are done, and `run` makes the others.

Names are imported when they are used, so that a command that only reads rows does not load what writes shards.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .building import build as build
    from .overview import Info as Info
    from .overview import Lengths as Lengths
    from .overview import Source as Source
    from .overview import info as info
    from .run import State as State
    from .table import encode_table as encode_table
    from .verifying import Verification as Verification
    from .verifying import verify as verify
    from .worker import TableEncoder as TableEncoder

_NAMES = {
    "building": ("build",),
    "overview": ("Info", "Lengths", "Source", "info"),
    "run": ("State",),
    "table": ("encode_table",),
    "verifying": ("Verification", "verify"),
    "worker": ("TableEncoder",),
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names}

__all__ = sorted(_MODULES)


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module 'ggtok.corpus' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f".{_MODULES[name]}", __name__), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
