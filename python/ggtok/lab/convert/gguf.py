"""GGUF metadata as bytes: a header, then a key, a type and a value for each entry.

Source: the GGUF specification (`docs/gguf.md` of ggml). Complexity: O(bytes written).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from ..._ggtok import Array, Metadata
from ...errors import ArgumentTypeError, GgtokError, GGUFError
from ...tokenizer.keys import FORMATS, Type
from ...tokenizer.metadata import Scalar, to_bytes

Value: TypeAlias = "Typed | Packed | Scalar | bytes | Sequence[str | bytes] | Sequence[int] | Sequence[float]"

VERSION = 3
"""Of the format."""


class Typed(NamedTuple):
    """A scalar with its type in the file."""

    type: Type
    value: Scalar


class Packed(NamedTuple):
    """An array as it is in the file: its elements in little-endian byte order, one after the other."""

    type: Type
    size: int
    data: bytes

    @classmethod
    def of(cls, kind: Type, elements: Sequence[Any]) -> Packed:
        return cls(kind, len(elements), _joined(kind, elements, "<"))

    @classmethod
    def strings(cls, texts: Iterable[str | bytes]) -> Packed:
        return cls.of(Type.STRING, list(texts))

    @classmethod
    def read(cls, metadata: Metadata, key: str, array: Array) -> Packed:
        kind = Type(array.kind)
        if not metadata.big_endian:
            return cls(kind, len(array), array.raw())
        strings = array.strings()
        if strings is not None:
            return cls.strings(strings)
        if kind is Type.ARRAY:
            raise GGUFError("arrays in a big-endian array cannot be written", key=key)
        return cls(kind, len(array), array.tobytes())

    def elements(self) -> list[Any]:
        """The elements of an array of strings, as bytes, or of numbers."""
        if self.type is Type.STRING:
            return list(self._texts())
        return list(struct.unpack(f"<{self.size}{FORMATS[self.type]}", self.data))

    def _texts(self) -> Iterator[bytes]:
        at = 0
        for _ in range(self.size):
            (length,) = struct.unpack_from("<Q", self.data, at)
            at += 8 + length
            yield self.data[at - length : at]

    def replaced(self, new: Mapping[int, Any]) -> Packed:
        """The same array with other elements at some places."""
        elements = self.elements()
        for place, element in new.items():
            elements[place] = element
        return self.of(self.type, elements)


def gguf_bytes(entries: Mapping[str, Value]) -> bytes:
    """The bytes of a GGUF file without tensors.

    Args:
        entries: Values by key, in the order of the file. A `bool` becomes `bool`, an `int` `uint32` (`int64` where it
            does not fit), a `float` `float32`, a `str` a string, `bytes` an array of `uint8`, and a list an array of
            strings, of `int32` or of `float32`, by its first element. `Typed` and `Packed` say the type themselves.

    Raises:
        GgtokError: A number does not fit its type.
        TypeError: A value is of another type, or an empty list, which does not say what it is a list of.
    """
    return header(len(entries)) + b"".join(packed(key, as_typed(key, value)) for key, value in entries.items())


def header(num_keys: int, version: int = VERSION, num_tensors: int = 0, big_endian: bool = False) -> bytes:
    return struct.pack(f"{'>' if big_endian else '<'}4sIQQ", b"GGUF", version, num_tensors, num_keys)


def packed(key: str, value: Typed | Packed, big_endian: bool = False) -> bytes:
    """One key and its value, as they stand in a file. Raises `GgtokError` if a number does not fit its type."""
    order = ">" if big_endian else "<"
    name = _joined(Type.STRING, [key], order)
    try:
        if isinstance(value, Typed):
            return name + struct.pack(f"{order}I", value.type) + _joined(value.type, [value.value], order)
        data = _joined(value.type, value.elements(), order) if big_endian else value.data
    except GgtokError as error:
        raise GgtokError(f"{key}: {error}") from None
    return name + struct.pack(f"{order}IIQ", Type.ARRAY, value.type, value.size) + data


def _joined(kind: Type, elements: Sequence[Any], order: str) -> bytes:
    """Strings with their lengths, or numbers, one after the other."""
    if kind is Type.STRING:
        length = struct.Struct(f"{order}Q").pack
        texts = [to_bytes(text) if isinstance(text, str) else text for text in elements]
        return b"".join([length(len(text)) + text for text in texts])
    try:
        return struct.pack(f"{order}{len(elements)}{FORMATS[kind]}", *elements)
    except (struct.error, OverflowError) as error:
        raise GgtokError(f"a number does not fit the type {kind.name.lower()}: {error}") from None


def as_typed(key: str, value: Any) -> Typed | Packed:
    """A value with the type that `gguf_bytes` gives it."""
    match value:
        case Typed() | Packed():
            return value
        case bool():
            return Typed(Type.BOOL, value)
        case int():
            return Typed(Type.UINT32 if 0 <= value < 1 << 32 else Type.INT64, value)
        case float():
            return Typed(Type.FLOAT32, value)
        case str():
            return Typed(Type.STRING, value)
        case bytes():
            return Packed(Type.UINT8, len(value), value)
        case [str() | bytes(), *_]:
            return Packed.strings(value)
        case [int(), *_]:
            return Packed.of(Type.INT32, value)
        case [float(), *_]:
            return Packed.of(Type.FLOAT32, value)
    raise ArgumentTypeError(
        f"the value of {key} must be str, int, float, bool, bytes or a list of them that is not empty"
    )
