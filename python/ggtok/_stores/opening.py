"""A tokenizer by the name of its model: the file is found, and a file without a tokenizer is called what it is."""

from __future__ import annotations

import os
from typing import TypeVar

from .._base import BaseTokenizer
from .._metadata import name_of, read_metadata, scalars
from ..errors import GgtokError, GGUFError
from .find import located

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from .._metadata import Scalar

Opened = TypeVar("Opened", bound=BaseTokenizer)

KINDS = {"adapter": "an adapter (LoRA)", "mmproj": "a projector (mmproj)", "imatrix": "an importance matrix"}
"""What a file is by its `general.type`, if it is not a model."""

ARCHITECTURES = {"clip": KINDS["mmproj"], "controlvector": "a control vector"}
"""The same by its `general.architecture`, for files without a type."""


def opened(
    cls: type[Opened], name: str | os.PathLike[str], overrides: Mapping[str, Scalar] | None, offline: bool | None
) -> Opened:
    """The tokenizer of a model: `Tokenizer.from_model`."""
    path = located(name)
    try:
        return cls.from_gguf(path, overrides=overrides)
    except GgtokError as error:
        raise explained(error, path) from None


def explained(error: GgtokError, path: str) -> GgtokError:
    """What is wrong with a file that did not open: the error itself, unless the file is no model."""
    try:
        metadata = scalars(read_metadata(path))
    except (GgtokError, OSError):
        return error
    if "tokenizer.ggml.model" in metadata:
        return error
    kind = KINDS.get(str(metadata.get("general.type"))) or ARCHITECTURES.get(str(metadata.get("general.architecture")))
    number, count = metadata.get("split.no"), metadata.get("split.count")
    if kind is not None:
        problem = f"this is {kind}, which has no tokenizer: give the model itself"
    elif type(number) is int and number > 0:
        problem = f"this is part {number + 1} of {count} of a split file, and the tokenizer is in part 1"
    else:
        return error
    better = GGUFError(problem, key="tokenizer.ggml.model")
    better.path = name_of(path)
    return better
