"""The metadata of a GGUF file: everything before the tensors, which are not read.

Source: the GGUF specification (`docs/gguf.md` of ggml), llama.cpp's `ggml/src/gguf.cpp` (`gguf_init_from_reader`) for
what is refused, and its `src/llama-model-loader.cpp` (`GGUFMeta::GKV`, `get_key`) for typed access and overrides.
Complexity: one step per key in Python; one step per string of an array in Rust; arrays of numbers are skipped.
Every declared count and length is checked against the bytes left before anything of that size is allocated.

Deviations: (1) big-endian files are read on every machine. (2) Arrays of arrays are read. (3) The tensor list after
the metadata is not read, so it may be cut or missing. (4) Metadata is at most 4 GiB.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from types import MappingProxyType

from ._ggtok import StringArray, string_array
from ._prefix import MAX_BYTES, Prefix
from .errors import GGUFError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Literal, NoReturn, TypeAlias, overload

    from ._prefix import Source

    Scalar: TypeAlias = str | int | float | bool

MAX_STRING_LENGTH = 1 << 30
MAX_ARRAY_ELEMENTS = 1 << 30
MAX_NESTING = 32
"""Arrays inside arrays: far more than any file needs, far below Python's recursion limit."""


class Type(IntEnum):
    """A GGUF value type, numbered as in the file."""

    UINT8 = 0
    INT8 = 1
    UINT16 = 2
    INT16 = 3
    UINT32 = 4
    INT32 = 5
    FLOAT32 = 6
    BOOL = 7
    STRING = 8
    ARRAY = 9
    UINT64 = 10
    INT64 = 11
    FLOAT64 = 12


_FORMATS = dict(zip(Type, "BbHhIif?saQqd", strict=True))
_SIZES: dict[Type, int] = {
    kind: struct.calcsize(code) for kind, code in _FORMATS.items() if kind not in (Type.STRING, Type.ARRAY)
}
_LEAST_SIZES = _SIZES | {Type.STRING: 8, Type.ARRAY: 12}

_READ_AS: dict[str, tuple[Type, type]] = {
    "str": (Type.STRING, str),
    "u32": (Type.UINT32, int),
    "bool": (Type.BOOL, bool),
    "f32": (Type.FLOAT32, float),
}


class Array:
    """A metadata array: where its elements are, and conversions of them."""

    __slots__ = ("_strings", "big_endian", "buffer", "count", "end", "start", "type")

    def __init__(self, buffer: bytes, big_endian: bool, kind: Type, count: int, start: int) -> None:
        self.buffer, self.big_endian, self.type, self.count, self.start = buffer, big_endian, kind, count, start
        self.end = start
        """`buffer[start:end]` are the elements as in the file."""
        self._strings: StringArray | None = None

    def __len__(self) -> int:
        return self.count

    def __repr__(self) -> str:
        return f"<array of {self.count} {self.type.name.lower()}>"

    def strings(self) -> StringArray:
        """The elements of an array of strings, as bytes."""
        if self.type is not Type.STRING:
            raise TypeError(f"{self!r} does not hold strings")
        if self._strings is None:
            self._strings = string_array(self.buffer, self.start, self.count, self.big_endian)
        return self._strings

    def tobytes(self) -> bytes:
        """The elements of an array of numbers in little-endian byte order."""
        width = _SIZES.get(self.type)
        if width is None:
            raise TypeError(f"{self!r} does not hold numbers")
        raw = self.buffer[self.start : self.end]
        if not self.big_endian or width == 1:
            return raw
        swapped = bytearray(len(raw))
        for i in range(width):
            swapped[i::width] = raw[width - 1 - i :: width]
        return bytes(swapped)

    def tolist(self) -> list[object]:
        """The elements as Python objects: numbers, `str`, or lists."""
        if self.type is Type.STRING:
            return [_text(string) for string in self.strings().tolist()]
        if self.type is Type.ARRAY:
            walk = _Walk(Prefix(self.buffer), self.start, self.big_endian)
            return [walk.array().tolist() for _ in range(self.count)]
        order = ">" if self.big_endian else "<"
        return list(struct.unpack_from(f"{order}{self.count}{_FORMATS[self.type]}", self.buffer, self.start))


class Entry:
    """One key's value, its type, and the byte offset of the value in the file."""

    __slots__ = ("offset", "type", "value")

    def __init__(self, kind: Type, offset: int, value: Scalar | Array) -> None:
        self.type, self.offset, self.value = kind, offset, value


class Metadata:
    """All keys and values of a GGUF file, with llama.cpp's rules for reading them."""

    def __init__(
        self, buffer: bytes, size: int, big_endian: bool, version: int, tensor_count: int, entries: dict[str, Entry]
    ) -> None:
        self._buffer = buffer
        self.size = size
        """Bytes from the start of the file to the end of the last value."""
        self.big_endian = big_endian
        self.version = version
        self.tensor_count = tensor_count
        self.entries = entries
        self.overrides: dict[str, Scalar] = {}
        self._spans: dict[str, tuple[int, int]] = {}

    @classmethod
    def from_source(cls, source: Source, overrides: Mapping[str, Scalar] | None = None) -> Metadata:
        """Reads a path, the bytes of a file, or a readable binary file from its current position.

        Raises `GGUFError` if it is not sound GGUF, `OSError` if it cannot be read, and `TypeError` for an argument of
        another type.
        """
        checked = {} if overrides is None else _checked_overrides(overrides)
        with Prefix.open(source) as prefix:
            metadata = _read(prefix)
        metadata.overrides = checked
        return metadata

    @property
    def data(self) -> bytes:
        """The file from its first byte to the end of the last value: a source of equal metadata."""
        return self._buffer[: self.size]

    def raw(self, key: str) -> bytes:
        """A key and its value as they stand in the file."""
        if not self._spans:
            starts = [entry.offset - 12 - len(to_bytes(key)) for key, entry in self.entries.items()]
            self._spans = dict(zip(self.entries, zip(starts, [*starts[1:], self.size], strict=True), strict=True))
        start, end = self._spans[key]
        return self._buffer[start:end]

    @property
    def scalars(self) -> Mapping[str, Scalar]:
        """All values except arrays, with overrides."""
        scalars = {key: entry.value for key, entry in self.entries.items() if not isinstance(entry.value, Array)}
        return MappingProxyType(scalars | self.overrides)

    if TYPE_CHECKING:

        @overload
        def read(self, key: str, kind: Literal["str"]) -> str | None: ...
        @overload
        def read(self, key: str, kind: Literal["u32"]) -> int | None: ...
        @overload
        def read(self, key: str, kind: Literal["bool"]) -> bool | None: ...
        @overload
        def read(self, key: str, kind: Literal["f32"]) -> float | None: ...

    def read(self, key: str, kind: str) -> Scalar | None:
        """The value of a key as llama.cpp's `get_key` reads it, or `None` where there is none.

        An override of the right type wins over the file, one of another type is ignored with a warning. A string ends
        at its first NUL. Raises `GGUFError` if the file's value has another type.
        """
        gguf_type, python_type = _READ_AS[kind]
        override = self.overrides.get(key)
        if override is not None:
            if type(override) is python_type:
                return _as_c(override, kind)
            import logging

            message = "the override of %s is ignored: expected %s, found %s %r"
            found = type(override).__name__
            logging.getLogger("ggtok").warning(message, key, python_type.__name__, found, override)
        entry = self.entries.get(key)
        if entry is None:
            return None
        if entry.type is not gguf_type or isinstance(entry.value, Array):
            raise _wrong_type(key, entry, gguf_type.name.lower())
        return _as_c(entry.value, kind)

    def read_array(self, key: str, *types: Type) -> Array | None:
        """The array of a key, or `None` where there is none.

        Raises `GGUFError` if the value is no array, or its elements are of none of the given types.
        """
        entry = self.entries.get(key)
        if entry is None:
            return None
        if not isinstance(entry.value, Array) or entry.value.type not in types:
            raise _wrong_type(key, entry, f"array of {' or '.join(kind.name.lower() for kind in types)}")
        return entry.value


def _wrong_type(key: str, entry: Entry, expected: str) -> GGUFError:
    found = f"array of {entry.value.type.name.lower()}" if isinstance(entry.value, Array) else entry.type.name.lower()
    return GGUFError("the value has a wrong type", key=key, offset=entry.offset, expected=expected, found=found)


def _checked_overrides(overrides: object) -> dict[str, Scalar]:
    from collections.abc import Mapping

    if not isinstance(overrides, Mapping):
        raise TypeError(f"overrides must be a mapping of keys to values, not {type(overrides).__name__}")
    return {_checked_key(key): _checked_override(key, value) for key, value in overrides.items()}


def _checked_key(key: object) -> str:
    if not isinstance(key, str):
        raise TypeError(f"the key of an override must be str, not {type(key).__name__}")
    return str(key)


def _checked_override(key: str, value: object) -> Scalar:
    """Strips subclasses, so that the type of an override is one of four."""
    for python_type in (bool, int, float, str):
        if isinstance(value, python_type):
            return python_type(value)
    raise TypeError(f"the override of {key} must be str, int, float or bool, not {type(value).__name__}")


def _as_c(value: Scalar, kind: str) -> Scalar:
    """A value after llama.cpp's conversion into its C++ variable."""
    if kind == "str":
        return str(value).partition("\0")[0]
    if kind == "u32":
        return int(value) & 0xFFFFFFFF
    if kind == "f32":
        try:
            return float(struct.unpack("<f", struct.pack("<f", value))[0])
        except OverflowError:
            return float("inf") if float(value) > 0 else float("-inf")
    return value


def _text(string: bytes) -> str:
    """Strings need not be UTF-8: a surrogate stands for each byte that is not."""
    return string.decode("utf-8", "surrogateescape")


def to_bytes(text: str) -> bytes:
    """The bytes of a string from a file, or of one from an override, which may hold any surrogate."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


class _Walk:
    """A cursor that moves through the metadata value by value."""

    def __init__(self, prefix: Prefix, at: int = 0, big_endian: bool = False) -> None:
        self.prefix, self.at, self.big_endian = prefix, at, big_endian
        self.key: str | None = None

    def fail(self, problem: str, offset: int, expected: str, found: object) -> NoReturn:
        raise GGUFError(problem, key=self.key, offset=offset, expected=expected, found=str(found))

    def need(self, size: int, what: str) -> None:
        """Checks that `size` bytes follow."""
        prefix, end = self.prefix, self.at + size
        if end > MAX_BYTES and (prefix.total is None or prefix.total >= end):
            self.fail("the metadata is too large", self.at, f"at most {MAX_BYTES} bytes", f"{end} bytes")
        if not prefix.reaches(end):
            left = max(0, (prefix.total or 0) - self.at)
            self.fail(f"the file ends inside {what}", self.at, f"{size} bytes", f"{left} bytes")

    def number(self, code: str, what: str) -> int | float | bool:
        size = struct.calcsize(code)
        self.need(size, what)
        (value,) = struct.unpack_from((">" if self.big_endian else "<") + code, self.prefix.data, self.at)
        self.at += size
        return value  # type: ignore[no-any-return]

    def count(self, what: str) -> int:
        """A 64-bit count of something."""
        return int(self.number("Q", what))

    def string(self, what: str) -> str:
        start = self.at
        size = self.count(f"the length of {what}")
        if size > MAX_STRING_LENGTH:
            self.fail(f"{what} is too long", start, f"at most {MAX_STRING_LENGTH} bytes", size)
        self.need(size, what)
        self.at += size
        return _text(self.prefix.data[self.at - size : self.at])

    def type(self, what: str) -> Type:
        number = int(self.number("i", what))
        if not 0 <= number < len(Type):
            self.fail(f"{what} is unknown", self.at - 4, f"0 to {len(Type) - 1}", number)
        return Type(number)

    def array(self, nesting: int = 0) -> Array:
        """Skips an array, from its element type to the end of its last element."""
        if nesting == MAX_NESTING:
            self.fail("arrays are nested too deeply", self.at, f"at most {MAX_NESTING} levels", "more")
        kind = self.type("the element type of an array")
        count = self.count("the length of an array")
        if count > MAX_ARRAY_ELEMENTS:
            self.fail("the array is too long", self.at - 8, f"at most {MAX_ARRAY_ELEMENTS} elements", count)
        self.need(count * _LEAST_SIZES[kind], "an array")
        array = Array(self.prefix.data, self.big_endian, kind, count, self.at)
        if kind is Type.STRING:
            array._strings = self.strings(count)
            self.at = array._strings.end
        elif kind is Type.ARRAY:
            for _ in range(count):
                self.array(nesting + 1)
        else:
            self.at += count * _SIZES[kind]
        array.end = self.at
        return array

    def strings(self, count: int) -> StringArray:
        start = self.at
        while True:
            try:
                return string_array(self.prefix.data, start, count, self.big_endian)
            except EOFError as error:
                index, self.at, size, _ = error.args
            except OverflowError as error:
                index, self.at, size = error.args
            if size > MAX_STRING_LENGTH:
                self.fail(f"string {index} is too long", self.at, f"at most {MAX_STRING_LENGTH} bytes", size)
            self.need(size, f"string {index} of an array")

    def entry(self) -> tuple[str, Entry]:
        """Reads one key and its value; skips the elements of an array."""
        self.key = None
        start = self.at
        key = self.string("a key")
        self.key = key
        if not key:
            self.fail("a key is empty", start, "at least 1 byte", "0 bytes")
        kind = self.type("the value type")
        offset = self.at
        value: Scalar | Array
        if kind is Type.ARRAY:
            value = self.array()
        elif kind is Type.STRING:
            value = self.string("a string")
        else:
            value = self.number(_FORMATS[kind], "a value")
        return key, Entry(kind, offset, value)


def _read(prefix: Prefix) -> Metadata:
    """Walks a whole header."""
    walk = _Walk(prefix)
    walk.need(4, "the magic bytes")
    if prefix.data[:4] != b"GGUF":
        walk.fail("this is not a GGUF file", 0, repr(b"GGUF"), repr(prefix.data[:4]))
    walk.at = 4
    version = int(walk.number("I", "the version"))
    if version & 0xFFFF == 0:
        walk.big_endian, walk.at = True, 4
        version = int(walk.number("I", "the version"))
    if version not in (2, 3):
        walk.fail("the GGUF version is not supported", 4, "2 or 3", version)
    tensor_count = walk.count("the number of tensors")
    if tensor_count >= 1 << 63:
        walk.fail("the number of tensors is negative", 8, "0 or more", tensor_count - (1 << 64))
    count = walk.count("the number of keys")
    if prefix.total is not None and count * 14 > prefix.total - walk.at:
        walk.fail("the file is too short for its keys", 16, f"{count} keys", f"{prefix.total - walk.at} bytes")

    entries: dict[str, Entry] = {}
    for _ in range(count):
        start = walk.at
        key, entry = walk.entry()
        if key in entries:
            walk.fail("a key occurs twice", start, "each key once", f"the first value at byte {entries[key].offset}")
        entries[key] = entry
    alignment = entries.get("general.alignment")
    if alignment is not None:
        walk.key, value = "general.alignment", alignment.value
        if alignment.type is not Type.UINT32 or isinstance(value, Array):
            raise _wrong_type(walk.key, alignment, "uint32")
        if int(value).bit_count() != 1:
            walk.fail("the alignment is wrong", alignment.offset, "a power of two", value)
    return _trimmed(prefix.data, Metadata(prefix.data, walk.at, walk.big_endian, version, tensor_count, entries))


def _trimmed(buffer: bytes, metadata: Metadata) -> Metadata:
    """Frees what was read after the metadata, where that is worth a copy."""
    if len(buffer) - metadata.size > 1 << 20:
        buffer = metadata._buffer = buffer[: metadata.size]
    for entry in metadata.entries.values():
        if isinstance(entry.value, Array) and entry.value.buffer is not buffer:
            entry.value.buffer, entry.value._strings = buffer, None
    return metadata
