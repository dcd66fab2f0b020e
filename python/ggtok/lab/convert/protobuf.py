"""Protocol buffers, as far as sentencepiece's models use them: fields of numbers, floats and bytes.

Source: the encoding page of protobuf.dev. A message is a row of fields, a field is a number, a wire type and a value.
Every length is checked against the bytes left, so reading takes O(n) time and no more memory than the message.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import TypeAlias

FieldValue: TypeAlias = int | float | bytes

VARINT, FIXED64, BYTES, _GROUP, _END_GROUP, FIXED32 = range(6)
"""Wire types. Groups, which are deprecated, are not read."""


class MessageError(Exception):
    """A message is damaged: at which byte, and how."""


def field(number: int, value: FieldValue | str | bool) -> bytes:
    """One field: an `int` or `bool` as a varint, a `float` as float32, a text as UTF-8."""
    if isinstance(value, float):
        return _varint(number << 3 | FIXED32) + struct.pack("<f", value)
    if isinstance(value, int):
        return _varint(number << 3 | VARINT) + _varint(value & (1 << 64) - 1)
    data = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | BYTES) + _varint(len(data)) + data


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def fields(data: bytes, start: int = 0, end: int | None = None) -> Iterator[tuple[int, FieldValue, int]]:
    """The number, the value and the place of each field in `data[start:end]`.

    An `int` is an unsigned varint. A value of four bytes is a float, one of eight is left out. A nested message is its
    bytes; the position is that of the value's first byte.
    """
    at, end = start, len(data) if end is None else end
    while at < end:
        tag, at = _read_varint(data, at, end)
        number, wire = tag >> 3, tag & 7
        if wire == VARINT:
            begin = at
            value, at = _read_varint(data, at, end)
            yield number, value, begin
            continue
        size = {FIXED64: 8, FIXED32: 4}.get(wire)
        if wire == BYTES:
            size, at = _read_varint(data, at, end)
        if size is None or number == 0:
            raise MessageError(f"byte {at}: a field has the number {number} and the wire type {wire}")
        if size > end - at:
            raise MessageError(f"byte {at}: a field has {size} bytes, and {end - at} are left")
        at += size
        if wire == FIXED32:
            yield number, struct.unpack_from("<f", data, at - size)[0], at - size
        elif wire == BYTES:
            yield number, data[at - size : at], at - size


def _read_varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    """A varint and the place after it."""
    value = 0
    for shift in range(0, 70, 7):
        if at >= end:
            raise MessageError(f"byte {at}: the message ends inside a number")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & (1 << 64) - 1, at
    raise MessageError(f"byte {at}: a number is longer than 64 bits")
