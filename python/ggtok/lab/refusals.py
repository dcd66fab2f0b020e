"""Why llama.cpp refuses a file that ggtok opens, or reads it differently: facts that the tokenizer does not show.

Source: llama.cpp's `ggml/src/gguf.cpp` (`gguf_init_from_reader`, `gguf_find_key`), and what its
`src/llama-model-loader.cpp` and `src/llama-vocab.cpp` read besides the keys that ggtok reads. Complexity: one step per
key and tensor.

Deviations: (1) These files open, because their tokenizers are sound. (2) A key may contain a NUL.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from math import prod

from .._ggtok import Array, Metadata
from ..errors import GGUFError
from ..tokenizer.keys import GGML, TOKEN_TYPE_COUNT, Type
from ..tokenizer.metadata import scalars
from .convert.tensors import Tensors, aligned

READ = {
    **{"general.file_type": (Type.UINT32,), "split.count": (Type.UINT16,), TOKEN_TYPE_COUNT: (Type.UINT32,)},
    GGML + "suppress_tokens": (Type.ARRAY, Type.INT32),
}
"""Keys that llama.cpp reads whatever the tokenizer is, and ggtok never, with their types."""

MAX_NAME = 63
"""Bytes of a tensor's name."""


def tensors_of(metadata: Metadata, path: str | None) -> Tensors | str | None:
    """The tensors of the file that metadata was read from, or what is wrong with their list. `None` if that file is not
    at the path, or no longer."""
    if path is None or not os.path.isfile(path):
        return None
    try:
        with open(path, "rb") as file:
            return Tensors.of(file, metadata) if file.read(metadata.size) == metadata.data else None
    except (GGUFError, OSError) as error:
        return str(error) if isinstance(error, GGUFError) else None


def architecture_of(metadata: Metadata) -> str:
    """The name of the model's architecture, which is empty if there is none."""
    return str(scalars(metadata).get("general.architecture", "")).partition("\0")[0]


def refused(metadata: Metadata, tensors: Tensors | str | None, blocks: Mapping[int, Sequence[int]]) -> Iterator[str]:
    """The reasons, one clause each.

    Args:
        metadata: Of the file.
        tensors: As `tensors_of` returns them.
        blocks: For each known type of tensors the number of elements in a block, and its bytes.
    """
    values, tokens = scalars(metadata), metadata.get(GGML + "tokens")
    facts = {
        "its numbers have their highest byte first": metadata.big_endian,
        "it has no general.architecture": not architecture_of(metadata),
        "it is not the first part of a split file": "split.count" in values and values.get("split.no"),
        "its list of tokens is empty": isinstance(tokens, Array) and not len(tokens),
    }
    yield from (fact for fact, holds in facts.items() if holds)
    for key, (kind, value) in metadata.entries().items():
        types = (kind, value.kind) if isinstance(value, Array) else (kind,)
        if "\0" in key:
            yield f"the key {key!r} ends at its NUL for llama.cpp"
        if types == (Type.ARRAY, Type.ARRAY):
            yield f"{key} is an array of arrays"
        elif types != READ.get(key, types):
            expected, found = (" of ".join(Type(each).name.lower() for each in some) for some in (READ[key], types))
            yield f"{key} is {found}, not {expected}"
    if isinstance(tensors, Tensors):
        yield from islice(_misplaced(tensors, metadata, blocks), 1)
    elif tensors is not None:
        yield tensors


def _misplaced(tensors: Tensors, metadata: Metadata, blocks: Mapping[int, Sequence[int]]) -> Iterator[str]:
    """What is wrong with tensors, up to the first one whose type is not known."""
    names, place = set[bytes](), 0
    for name, shape, kind, given in tensors.rows:
        if kind not in blocks:
            return
        elements, size = blocks[kind]
        end = place + prod(shape) // elements * size
        problems = {
            "has the name of another": name in names,
            f"has a name of more than {MAX_NAME} bytes": len(name) > MAX_NAME,
            f"has rows that are not made of blocks of {elements} elements": (*shape, 1)[0] % elements,
            f"is at byte {given} of the data, not {place}": given != place,
            "ends after the file": tensors.start + end > tensors.end,
        }
        shown = repr(name.decode(errors="replace"))
        yield from (f"the tensor {shown} {problem}" for problem, is_there in problems.items() if is_there)
        names.add(name)
        place = aligned(end, metadata)
