"""A file per output format: its class (`FlatWriter` in `flat`) writes the files of a shard, and reads them.

`Format` in `settings` lists the formats by the names of their files.
"""

from __future__ import annotations

from importlib import import_module
from typing import get_args

from ..settings import Format
from .writer import ShardWriter


def writer_of(format: Format) -> type[ShardWriter]:
    """The class of a format."""
    found: type[ShardWriter] = getattr(import_module(f".{format}", __name__), f"{format.title()}Writer")
    return found


def formats_with(trait: str) -> str:
    """The formats whose class has a trait, as part of a sentence."""
    names = [name for name in get_args(Format) if getattr(writer_of(name), trait)]
    return f"format{'s' * (len(names) > 1)} {' and '.join(names)}"
