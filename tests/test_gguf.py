"""Metadata from Python: against the `gguf` package, from every kind of source, and the errors and overrides.

`rust/core/tests/gguf.rs` has the table of damaged files.
"""

from __future__ import annotations

import gzip
import io
import logging
import mmap
import os
import pickle
import struct
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
from conftest import VOCABULARIES, elements, reference_reader, shared_files
from ggtok import GgtokError, GGUFError, TokenAttribute, Tokenizer, UnsupportedError
from ggtok._ggtok import Array, Metadata
from ggtok.tokenizer.keys import Type
from ggtok.tokenizer.metadata import read_metadata
from hypothesis import given
from hypothesis import strategies as st

SCALARS = {
    "t.uint8": (Type.UINT8, 250),
    "t.int8": (Type.INT8, -3),
    "t.uint16": (Type.UINT16, 65000),
    "t.int16": (Type.INT16, -300),
    "t.uint32": (Type.UINT32, 4_000_000_000),
    "t.int32": (Type.INT32, -70_000),
    "t.float32": (Type.FLOAT32, 0.15625),
    "t.bool": (Type.BOOL, True),
    "t.string": (Type.STRING, "Å What is LoRA?"),
    "t.uint64": (Type.UINT64, 2**63 + 1),
    "t.int64": (Type.INT64, -(2**62)),
    "t.float64": (Type.FLOAT64, 1e300),
}
ARRAYS: dict[str, tuple[Type, list[Any]]] = {
    f"a{key[1:]}": (kind, [value] * 3) for key, (kind, value) in SCALARS.items()
}
ARRAYS["a.bytes"] = (Type.UINT8, list(b"charsmap"))
ARRAYS["a.empty"] = (Type.STRING, [])
ARRAYS["a.nested"] = (Type.ARRAY, [[1, 2], [3]])
ARRAYS["a.nested_strings"] = (Type.ARRAY, [["a", ""], ["bc"]])


def packed(value: object, kind: Type, order: str = "<") -> bytes:
    """One value as GGUF has it, without its type."""
    if kind is Type.STRING:
        data = value if isinstance(value, bytes) else str(value).encode()
        return struct.pack(order + "Q", len(data)) + data
    if kind is Type.ARRAY:
        assert isinstance(value, list)
        element: Any = value[0] if value else ""
        kinds = {list: Type.ARRAY, str: Type.STRING, bytes: Type.STRING, int: Type.INT32}
        kind = kinds[type(element)]
        items = b"".join(packed(item, kind, order) for item in value)
        return struct.pack(order + "iQ", kind, len(value)) + items
    return struct.pack(order + "BbHhIif?saQqd"[kind], value)


def pair(key: str | bytes, kind: Type, value: object, order: str = "<") -> bytes:
    """A key and its value."""
    return packed(key, Type.STRING, order) + struct.pack(order + "i", kind) + packed(value, kind, order)


def file(*pairs: bytes, count: int | None = None, version: int = 3, tensors: int = 0, order: str = "<") -> bytes:
    """A whole header."""
    head = struct.pack(order + "IqQ", version, tensors, len(pairs) if count is None else count)
    return b"GGUF" + head + b"".join(pairs)


SMALL = file(
    pair("general.architecture", Type.STRING, "llama"),
    pair("general.alignment", Type.UINT32, 32),
    pair("tokenizer.ggml.tokens", Type.ARRAY, ["a", "", "What is LoRA?"]),
    pair("n", Type.ARRAY, [[1, 2], [3]]),
    pair("tokenizer.ggml.add_bos_token", Type.BOOL, True),
)


SPM = (VOCABULARIES / "spm.gguf").read_bytes()


def contents(metadata: Metadata) -> dict[str, object]:
    entries = metadata.entries().items()
    return {key: elements(value) if isinstance(value, Array) else value for key, (_, value) in entries}


def written(path: Path, endianess: gguf.GGUFEndian) -> Path:
    writer = gguf.GGUFWriter(path, "llama", endianess=endianess)
    for key, (kind, value) in SCALARS.items():
        writer.add_key_value(key, value, gguf.GGUFValueType(kind))
    for key, (kind, values) in ARRAYS.items():
        if key == "a.empty":
            continue
        sub_type = None if kind is Type.ARRAY else gguf.GGUFValueType(kind)
        writer.add_key_value(key, values, gguf.GGUFValueType.ARRAY, sub_type=sub_type)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    return path


def test_types_are_those_of_the_gguf_package() -> None:
    assert {kind.name: kind.value for kind in Type} == {kind.name: kind.value for kind in gguf.GGUFValueType}


@pytest.mark.parametrize("endianess", list(gguf.GGUFEndian))
def test_everything_the_writer_writes(tmp_path: Path, endianess: gguf.GGUFEndian) -> None:
    path = written(tmp_path / "all.gguf", endianess)
    metadata = read_metadata(path)
    assert metadata.big_endian == (endianess is gguf.GGUFEndian.BIG)
    assert metadata.version == 3
    assert metadata.data == path.read_bytes()
    entries = metadata.entries()
    for key, (kind, value) in SCALARS.items():
        assert entries[key] == (kind, value)
        assert metadata.get(key) == value
        assert type(entries[key][1]) is type(value)
    for key, (kind, values) in ARRAYS.items():
        if key == "a.empty":
            continue
        array = metadata.get(key)
        assert isinstance(array, Array)
        assert len(array) == len(values)
        if kind is not Type.ARRAY:
            assert (array.kind, elements(array)) == (kind, values)
        assert repr(array) == f"<array of {len(values)} {Type(array.kind).name.lower()}>"
        with pytest.raises(GgtokError, match="not numbers") if kind in (Type.ARRAY, Type.STRING) else nullcontext():
            array.tobytes()
    charsmap = metadata.get("a.bytes")
    assert isinstance(charsmap, Array)
    assert charsmap.raw() == charsmap.tobytes() == b"charsmap"
    assert metadata.get("absent") is None
    assert ("absent" in metadata, "t.bool" in metadata) == (False, True)
    with pytest.raises(GgtokError, match="no metadata key is named absent"):
        metadata.raw("absent")


@pytest.mark.parametrize("endianess", list(gguf.GGUFEndian))
def test_the_reference_reader_agrees_on_a_written_file(tmp_path: Path, endianess: gguf.GGUFEndian) -> None:
    agree(written(tmp_path / "all.gguf", endianess))


@pytest.mark.parametrize("path", shared_files("vocabs/*.gguf"))
def test_the_reference_reader_agrees_on_a_shared_file(path: Path) -> None:
    if path.stat().st_size > 800_000:
        metadata = read_metadata(path)
        assert metadata.get("tokenizer.ggml.model")
        assert metadata.get("tokenizer.ggml.tokens")
    else:
        agree(path)


def agree(path: Path) -> None:
    fields = reference_reader(path).fields
    metadata = read_metadata(path)
    assert list(metadata.entries()) == [key for key in fields if not key.startswith("GGUF.")]
    for key, (kind, value) in metadata.entries().items():
        field = fields[key]
        assert kind == int(field.types[0])
        if not isinstance(value, Array):
            assert value == field.contents()
        elif field.types[1] is gguf.GGUFValueType.STRING:
            assert value.strings() == [bytes(field.parts[i]) for i in field.data]
        elif field.types[1] is not gguf.GGUFValueType.ARRAY:
            assert elements(value) == [field.parts[i].tolist()[0] for i in field.data]
        else:
            assert key in ("a.nested", "a.nested_strings")


def test_strings_need_not_be_utf8() -> None:
    metadata = read_metadata(file(pair(b"k\xff", Type.STRING, b"\xff\x00a"), pair("a", Type.ARRAY, [b"\xfe"])))
    assert contents(metadata) == {"k\udcff": "\udcff\0a", "a": ["\udcfe"]}
    assert metadata.get("k\udcff") == "\udcff\0a"


def with_names(**names: bytes) -> bytes:
    """The builtin `spm` vocabulary, with other strings in its file."""
    keys = {"model": "tokenizer.ggml.model", "pre": "tokenizer.ggml.pre"}
    keys |= {"name": "general.name", "architecture": "general.architecture"}
    metadata = read_metadata(SPM)
    kept = [metadata.raw(key) for key in metadata.entries() if key not in [keys[name] for name in names]]
    return file(*kept, *(pair(keys[name], Type.STRING, value) for name, value in names.items()))


NOT_UTF8 = [b"\xff", b"caf\xe9", b"a\xc3", b"\xed\xa0\x80", b"\x80\x81 phi", bytes(range(1, 256))]


@pytest.mark.parametrize("value", NOT_UTF8)
@pytest.mark.parametrize("name", ["name", "architecture", "pre"])
def test_names_need_not_be_utf8(name: str, value: bytes) -> None:
    """llama.cpp reads bytes. An SPM vocabulary has no pre-tokenizer, so any name will do."""
    tokenizer = Tokenizer.from_gguf(with_names(**{name: value}))
    assert tokenizer == Tokenizer.from_gguf(SPM)
    assert repr(tokenizer)
    again: Tokenizer = pickle.loads(pickle.dumps(tokenizer))
    assert again == tokenizer
    assert again.metadata == tokenizer.metadata
    keys = {"name": "general.name", "architecture": "general.architecture", "pre": "tokenizer.ggml.pre"}
    override = value.decode("utf-8", "surrogateescape")
    assert tokenizer.metadata[keys[name]] == override
    assert Tokenizer.from_gguf(SPM, overrides={keys[name]: override}) == tokenizer


@pytest.mark.parametrize("text", ["\ud800", "a\udfff", "\udcff\ud83d"])
@pytest.mark.parametrize("key", ["general.name", "general.architecture", "tokenizer.ggml.pre", "\ud800"])
def test_overrides_with_any_surrogate(key: str, text: str) -> None:
    tokenizer = Tokenizer.from_gguf(SPM, overrides={key: text})
    assert tokenizer.metadata[key] == text
    again: Tokenizer = pickle.loads(pickle.dumps(tokenizer))
    assert again == tokenizer == Tokenizer.from_gguf(SPM)


@pytest.mark.parametrize("value", [b"llama\xff", b"\xff", b"a\xc3\\"])
def test_unknown_names_are_shown_escaped(value: bytes) -> None:
    shown = "".join(chr(byte) if byte < 128 else f"\\x{byte:02x}" for byte in value)
    for names in ({"model": value}, {"model": b"gpt2", "pre": value}):
        with pytest.raises(UnsupportedError) as caught:
            Tokenizer.from_gguf(with_names(**names))
        assert caught.value.name == shown
        assert f'"{shown}"' in str(caught.value)
        assert caught.value.nearest


@pytest.mark.parametrize("name", [b"Phi-3 \xff", b"\xffPHI3", b"\xe9phi-3"])
def test_rules_by_name_compare_bytes(name: bytes) -> None:
    """Phi-3's tokens take the whitespace after them; upper case and bad bytes make no difference."""
    special = [b"<unk>", b"<s>", b"</s>", b"<|endoftext|>", b"<|user|>"]
    strings = [*special, *(b"<0x%02X>" % byte for byte in range(256)), b"a"]
    types = struct.pack("<260i", *[2, 3, 3, 3, 3], *[6] * 254, 1) + struct.pack("<2i", 6, 1)
    tokens = packed("tokenizer.ggml.tokens", Type.STRING) + struct.pack("<iiQ", 9, 8, len(strings))
    tokens += b"".join(packed(text, Type.STRING) for text in strings)
    kinds = packed("tokenizer.ggml.token_type", Type.STRING) + struct.pack("<iiQ", 9, 5, len(strings)) + types
    model = pair("tokenizer.ggml.model", Type.STRING, "llama")
    plain = Tokenizer.from_gguf(file(model, tokens, kinds))
    phi = Tokenizer.from_gguf(file(model, tokens, kinds, pair("general.name", Type.STRING, name)))
    assert plain.vocab[4].attributes == TokenAttribute.CONTROL
    assert phi.vocab[4].attributes == TokenAttribute.CONTROL | TokenAttribute.RSTRIP
    assert phi != plain


class Dripping(io.RawIOBase):
    """Returns at most three bytes at a time."""

    def __init__(self, data: bytes) -> None:
        self.rest = memoryview(data)

    def read(self, size: int = -1) -> bytes:
        size = min(size, 3) if size >= 0 else 3
        chunk, self.rest = bytes(self.rest[:size]), self.rest[size:]
        return chunk

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        chunk = self.read(len(buffer))
        buffer[: len(chunk)] = chunk
        return len(chunk)


SOURCES: dict[str, Callable[[bytes], Any]] = {
    "bytes": lambda data: data,
    "bytearray": bytearray,
    "memoryview": memoryview,
    "strided": lambda data: memoryview(bytes(byte for pair in zip(data, data, strict=True) for byte in pair))[::2],
    "numpy": lambda data: np.frombuffer(data, np.uint8),
    "BytesIO": io.BytesIO,
    "buffered": lambda data: io.BufferedReader(Dripping(data)),
    "dripping": Dripping,
    "gzip": lambda data: gzip.GzipFile(fileobj=io.BytesIO(gzip.compress(data))),
}


@pytest.mark.parametrize("first_read", [1, 100, 1 << 24])
@pytest.mark.parametrize("tail", [0, 5_000_000])
@pytest.mark.parametrize("source", SOURCES)
def test_sources(monkeypatch: pytest.MonkeyPatch, source: str, tail: int, first_read: int) -> None:
    monkeypatch.setattr("ggtok.tokenizer.metadata.FIRST_READ", first_read)
    data = SMALL + bytes(min(tail, 50_000) if source in ("dripping", "buffered", "strided") else tail)
    metadata = read_metadata(SOURCES[source](data))
    assert metadata.data == SMALL
    assert contents(metadata) == contents(read_metadata(SMALL))


@pytest.mark.parametrize("first_read", [1, 1 << 24])
def test_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, first_read: int) -> None:
    monkeypatch.setattr("ggtok.tokenizer.metadata.FIRST_READ", first_read)
    path = tmp_path / "små.gguf"
    path.write_bytes(b"ahead" + SMALL + b"behind")
    with path.open("rb") as buffered, path.open("rb", buffering=0) as raw:
        for stream in (buffered, raw):
            stream.seek(5)
            assert read_metadata(stream).data == SMALL
        with mmap.mmap(raw.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
            mapped.seek(5)
            assert read_metadata(mapped).data == SMALL
    path.write_bytes(SMALL)
    assert read_metadata(path).data == read_metadata(str(path)).data == SMALL
    reading, writing = os.pipe()
    os.write(writing, SMALL)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        assert read_metadata(pipe).data == SMALL


def test_wrong_sources(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_metadata(tmp_path / "absent")
    with pytest.raises(IsADirectoryError):
        read_metadata(tmp_path)
    with pytest.raises(TypeError, match="binary file"):
        read_metadata(io.StringIO("GGUF"))  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        read_metadata(5)  # type: ignore[arg-type]


def test_tensors_are_never_read(tmp_path: Path) -> None:
    path = tmp_path / "large.gguf"
    path.write_bytes(SMALL)
    os.truncate(path, 5 << 30)
    assert read_metadata(path).data == SMALL


@pytest.mark.parametrize("drip", [False, True])
def test_every_cut(drip: bool) -> None:
    for size in range(len(SMALL)):
        cut = SMALL[:size]
        with pytest.raises(GGUFError, match=r"expected .*, found ") as caught:
            read_metadata(Dripping(cut) if drip else cut)
        error = caught.value
        assert error.offset is not None
        assert error.offset <= size
        assert (error.key is not None) == (f"key {error.key!r}" in str(error))
        restored = pickle.loads(pickle.dumps(error))
        assert (str(restored), restored.key, restored.offset) == (str(error), error.key, error.offset)


BAD: dict[str, tuple[bytes, str | None, int, str, str]] = {
    "magic": (b"GGML" + SMALL[4:], None, 0, "b'GGUF'", "b'GGML'"),
    "version": (file(version=4, order=">"), None, 4, "2 or 3", "4"),
    "keys": (file(count=2**64 - 1), None, 16, "18446744073709551615 keys", "0 bytes"),
    "key length": (file(struct.pack("<Q", 2**62) + bytes(9)), None, 24, "at most 1073741824 bytes", str(2**62)),
    "type": (file(packed("k", Type.STRING) + struct.pack("<iB", 13, 1)), "k", 33, "0 to 12", "13"),
    "twice": (file(*[pair("k", Type.UINT8, 1)] * 2), "k", 38, "each key once", "the first value at byte 37"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_refused_has_key_and_offset(name: str) -> None:
    data, key, offset, expected, found = BAD[name]
    with pytest.raises(GGUFError) as caught:
        read_metadata(data)
    error = caught.value
    assert (error.key, error.offset, error.expected, error.found) == (key, offset, expected, found)


def test_metadata_beyond_4_gib() -> None:
    data = file(packed("k", Type.STRING) + struct.pack("<iiQ", 9, Type.UINT64, 2**30))

    class Endless(Dripping):
        def read(self, size: int = -1) -> bytes:
            return super().read(size) or bytes(3)

    with pytest.raises(GGUFError, match="too large") as caught:
        read_metadata(Endless(data))
    assert caught.value.offset == 49


BASES = [SMALL, file(*(pair(k, kind, value, ">") for k, (kind, value) in SCALARS.items()), order=">")]
BASES.append(file(*(pair(k, Type.ARRAY, v, "<") for k, (t, v) in ARRAYS.items() if t in (Type.STRING, Type.ARRAY))))


def outcome(source: Any) -> str:
    try:
        return repr(contents(read_metadata(source)))
    except GGUFError as error:
        return f"refused: {error.expected is not None and error.found is not None}"


@given(st.sampled_from(BASES), st.integers(0, 2000), st.binary(max_size=9), st.integers(0, 9))
def test_a_damaged_file_reads_the_same_from_every_source(base: bytes, at: int, new: bytes, gone: int) -> None:
    at %= len(base) + 1
    data = base[:at] + new + base[at + gone :]
    outcomes = [outcome(data), outcome(Dripping(data))]
    assert outcomes[0] == outcomes[1] != "refused: False"


def test_values_are_read_as_in_c() -> None:
    """A string ends at its first NUL, and an integer that replaces one keeps its lowest 32 bits."""
    assert Tokenizer.from_gguf(SPM, overrides={"tokenizer.ggml.model": "llama\0junk"}).vocab.kind == "spm"
    for value, id in ((5, 5), (2**32 + 7, 7), (-(2**32) + 9, 9), (10**40 * 2**32 + 3, 3)):
        tokenizer = Tokenizer.from_gguf(SPM, overrides={"tokenizer.ggml.bos_token_id": value})
        assert tokenizer.vocab.bos_id == id
        assert tokenizer.metadata["tokenizer.ggml.bos_token_id"] == value


@pytest.mark.parametrize(
    ("name", "kind", "value", "expected", "found"),
    [
        ("tokenizer.ggml.bos_token_id", Type.INT32, 7, "uint32", "int32"),
        ("tokenizer.ggml.add_bos_token", Type.UINT32, 1, "bool", "uint32"),
        ("tokenizer.ggml.model", Type.ARRAY, ["llama"], "string", "array of string"),
        ("tokenizer.ggml.scores", Type.ARRAY, ["1"], "array of float32 or int32", "array of string"),
        ("tokenizer.ggml.tokens", Type.UINT32, 1, "array of string", "uint32"),
    ],
)
def test_wrong_types(name: str, kind: Type, value: object, expected: str, found: str) -> None:
    metadata = read_metadata(SPM)
    kept = [metadata.raw(key) for key in metadata.entries() if key != name]
    with pytest.raises(GGUFError, match="wrong type") as caught:
        Tokenizer.from_gguf(file(*kept, pair(name, kind, value)))
    error = caught.value
    assert (error.key, error.expected, error.found) == (name, expected, found)
    assert error.offset == len(file(*kept)) + 12 + len(name)


@pytest.mark.parametrize(
    ("key", "value", "found"),
    [
        ("tokenizer.ggml.bos_token_id", True, "bool, not int"),
        ("tokenizer.ggml.add_bos_token", 0, "int, not bool"),
        ("tokenizer.ggml.model", 1, "int, not str"),
        ("tokenizer.ggml.eos_token_id", "1", "str, not int"),
    ],
)
def test_overrides_of_another_type(caplog: pytest.LogCaptureFixture, key: str, value: Any, found: str) -> None:
    with caplog.at_level(logging.WARNING, "ggtok"):
        assert Tokenizer.from_gguf(SPM, overrides={key: value}) == Tokenizer.from_gguf(SPM)
    assert f"the override of {key} has no effect: it is {found}" in caplog.text


def test_wrong_overrides() -> None:
    with pytest.raises(TypeError, match="the override of s must be"):
        read_metadata(SMALL, {"s": b"bytes"})  # type: ignore[dict-item]
