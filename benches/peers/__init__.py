"""The tokenizers that are measured, one adapter per file, behind one small shape.

An adapter module holds
- `REQUIREMENT`: what pip installs ("" for what the driver installs itself),
- `PACKAGE`: the module whose import is timed,
- `CALLS`: the calls that are timed, for the report,
- `load(vocabulary)`: opens the vocabulary with the peer's own loader and returns an `Encoder`. It raises
  `UnsupportedError` if the peer cannot represent the vocabulary.

Peers are imported with `import_module`, inside `load`, so that a module can be looked at without its package and
type-checked without the package's types.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, cast

if TYPE_CHECKING:
    from vocabularies import Vocabulary

NAMES = (
    "ggtok",
    "llama_cpp",
    "gigatoken",
    "fastokens",
    "splintr",
    "tokie",
    "tiktoken",
    "tokenizers",
    "sentencepiece",
    "kitoken",
)
"""Adapter modules, in the order of the tables."""

OURS, REFERENCE = "ggtok", "llama_cpp"


def _ids_of_sequence(answer: Any) -> list[int]:
    return list(answer)


def _unchanged(value: Any) -> Any:
    return value


@dataclass(frozen=True)
class Encoder:
    """One open vocabulary. No special tokens are added or parsed, if the peer can turn that off."""

    encode: Callable[[Any], Any]
    """The fastest call for one document; it may return any object that holds the ids."""
    encode_list: Callable[[Any], Any]
    """The fastest call that returns a list of ints."""
    ids: Callable[[Any], list[int]] = _ids_of_sequence
    """The result of `encode` as ids (never timed)."""
    text: Callable[[str], Any] = _unchanged
    """A text as `encode` takes it (never timed)."""
    decode: Callable[[Any], Any] | None = None
    """The fastest call from ids to text (str or bytes)."""
    decode_input: Callable[[Sequence[int]], Any] = list
    """Ids as `decode` takes them (never timed)."""


class Peer(Protocol):
    """What an adapter module provides."""

    REQUIREMENT: str
    PACKAGE: str
    CALLS: str

    def load(self, vocabulary: Vocabulary) -> Encoder:
        """Opens the vocabulary."""
        ...


def peer(name: str) -> Peer:
    """The adapter module of that name."""
    return cast(Peer, import_module(f"peers.{name}"))
