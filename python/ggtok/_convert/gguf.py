"""GGUF metadata in memory, through the writer of the `gguf` package.

Deviations from that writer: (1) arrays are handed to it as bytes, because it packs one element at a time, which takes a
second for a large vocabulary. (2) An array may be empty. (3) A file without an architecture stays without one.
"""

from __future__ import annotations

import io
import struct
from typing import NamedTuple

from .._keys import FORMATS, Type
from .._metadata import to_bytes
from ..errors import DependencyError, GgtokError, GGUFError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from types import ModuleType
    from typing import Any, TypeAlias

    from .._ggtok import Array, Metadata
    from .._metadata import Scalar

    Value: TypeAlias = "Typed | Packed | Scalar | bytes | Sequence[str | bytes] | Sequence[int] | Sequence[float]"

_NUMBERS = {Type.FLOAT32: "f", Type.INT32: "i"}


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
    def of(cls, metadata: Metadata, key: str, array: Array) -> Packed:
        """An array that was read."""
        kind = Type(array.kind)
        if not metadata.big_endian:
            return cls(kind, len(array), array.raw())
        strings = array.strings()
        if strings is not None:
            return cls.strings(strings)
        if kind is Type.ARRAY:
            raise GGUFError("arrays in a big-endian array cannot be written", key=key)
        return cls(kind, len(array), array.tobytes())

    @classmethod
    def strings(cls, texts: Iterable[str | bytes]) -> Packed:
        """An array of strings."""
        raw = [to_bytes(text) if isinstance(text, str) else text for text in texts]
        return cls(Type.STRING, len(raw), b"".join(struct.pack("<Q", len(text)) + text for text in raw))

    @classmethod
    def numbers(cls, kind: Type, values: Sequence[int] | Sequence[float]) -> Packed:
        """An array of `INT32` or `FLOAT32`."""
        try:
            return cls(kind, len(values), struct.pack(f"<{len(values)}{_NUMBERS[kind]}", *values))
        except (struct.error, OverflowError) as error:
            raise GgtokError(f"a number does not fit an array of {kind.name.lower()}: {error}") from None

    def elements(self) -> list[bytes] | list[int] | list[float]:
        """The elements of an array of strings or numbers."""
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
        elements: list[Any] = list(self.elements())
        for place, element in new.items():
            elements[place] = element
        if self.type is Type.STRING:
            return self.strings(elements)
        return Packed(self.type, self.size, struct.pack(f"<{self.size}{FORMATS[self.type]}", *elements))

    def __add__(self, other: Packed) -> Packed:  # type: ignore[override]
        return Packed(self.type, self.size + other.size, self.data + other.data)


def packed(key: str, value: Typed | Packed, big_endian: bool) -> bytes:
    """One key and its value, as they stand in a file."""
    order = ">" if big_endian else "<"
    name = to_bytes(key)
    head = struct.pack(
        f"{order}Q{len(name)}sI", len(name), name, value.type if isinstance(value, Typed) else Type.ARRAY
    )
    if isinstance(value, Typed):
        if value.type is Type.STRING:
            text = to_bytes(str(value.value))
            return head + struct.pack(f"{order}Q", len(text)) + text
        return head + struct.pack(order + FORMATS[value.type], value.value)
    head += struct.pack(f"{order}IQ", value.type, value.size)
    if not big_endian:
        return head + value.data
    if value.type is Type.STRING:
        texts = [bytes(element) for element in value.elements()]  # type: ignore[arg-type]
        return head + b"".join(struct.pack(">Q", len(text)) + text for text in texts)
    return head + struct.pack(f">{value.size}{FORMATS[value.type]}", *value.elements())


def gguf_bytes(entries: Mapping[str, Value]) -> bytes:
    """The bytes of a GGUF file without tensors.

    Args:
        entries: Values by key, in the order of the file. A `bool` becomes `bool`, an `int` `uint32` (`int64` where it
            does not fit), a `float` `float32`, a `str` a string, `bytes` an array of `uint8`, and a list an array of
            strings, of `int32` or of `float32`, by its first element. `Typed` and `Packed` say the type themselves.

    Raises:
        DependencyError: The package `gguf` is not installed.
        GgtokError: A number does not fit its type.
        TypeError: A value is of another type, or an empty list, which does not say what it is a list of.
    """
    gguf = import_gguf()
    types, states = gguf.GGUFValueType, gguf.gguf_writer.WriterState

    class Writer(gguf.GGUFWriter):  # type: ignore[misc,name-defined]
        def _pack_val(self, val: Any, vtype: Any, add_vtype: bool, sub_type: Any = None) -> Any:
            if not isinstance(val, Packed):
                return super()._pack_val(val, vtype, add_vtype, sub_type)
            return struct.pack("<IIQ", types.ARRAY, val.type, val.size) + val.data

    writer, file = Writer(None, ""), io.BytesIO()
    writer.kv_data[0].clear()
    for key, value in entries.items():
        typed = _typed(key, value)
        if isinstance(typed, Packed):
            writer.add_key_value(to_bytes(key), typed, types.ARRAY)
        else:
            plain = to_bytes(typed.value) if isinstance(typed.value, str) else typed.value
            writer.add_key_value(to_bytes(key), plain, types(typed.type))
    writer.fout, writer.state = [file], states.EMPTY
    writer.write_header_to_file()
    try:
        writer.write_kv_data_to_file()
    except (struct.error, OverflowError) as error:
        raise GgtokError(f"a number does not fit its type: {error}") from None
    return file.getvalue()


def _typed(key: str, value: Any) -> Typed | Packed:
    """A value with its type."""
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
            return Packed.numbers(Type.INT32, value)
        case [float(), *_]:
            return Packed.numbers(Type.FLOAT32, value)
    raise TypeError(f"the value of {key} must be str, int, float, bool, bytes or a list of them that is not empty")


def import_gguf() -> ModuleType:
    """The package `gguf`, which is optional."""
    try:
        import gguf
        import gguf.gguf_writer
    except ImportError:
        raise DependencyError("GGUF files are written by the package gguf: pip install 'ggtok[gguf]'") from None
    return gguf
