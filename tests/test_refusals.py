"""Facts of a file for which nothing is claimed about llama.cpp: a table of small files, each with the reason, and
damaged files beside llama.cpp itself."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import FORMATS
from ggtok import GgtokError, Tokenizer
from ggtok.lab.releases import builds, data
from ggtok.lab.verify.child import Child
from ggtok.lab.verify.comparing import agrees
from ggtok.lab.verify.library import find_library
from ggtok.lab.verify.serve import Query
from ggtok.lab.verify.verify import OURS, REFERENCE
from gguf import GGUFValueType as Type
from oracles.spelling import BYTE_TOKENS

pytestmark = pytest.mark.filterwarnings("ignore::ggtok.TokenizerWarning")

Pair = tuple[str, Type, Any]
"""A key, the type of its value, and the value; that of an array is the type of its elements, and they."""
Tensor = tuple[bytes, tuple[int, ...], int, int]
"""The name of a tensor, its shape, its type, and the place of its data."""

TOKENS = [b"<unk>", b"<s>", b"</s>", *BYTE_TOKENS, "\u2581".encode(), b"a", b"b", b"ab", "\u2581a".encode()]
SCORES = [*[0] * 259, -1, -2, -3, -4, -5]
BASE: list[Pair] = [
    ("general.architecture", Type.STRING, b"llama"),
    ("tokenizer.ggml.model", Type.STRING, b"llama"),
    ("tokenizer.ggml.tokens", Type.ARRAY, (Type.STRING, TOKENS)),
    ("tokenizer.ggml.scores", Type.ARRAY, (Type.FLOAT32, SCORES)),
    ("tokenizer.ggml.token_type", Type.ARRAY, (Type.INT32, [2, 3, 3, *[6] * 256, *[1] * 5])),
    ("tokenizer.ggml.bos_token_id", Type.UINT32, 1),
    ("tokenizer.ggml.add_bos_token", Type.BOOL, True),
]
WORDPIECE: list[Pair] = [
    ("general.architecture", Type.STRING, b"bert"),
    ("tokenizer.ggml.model", Type.STRING, b"bert"),
    ("tokenizer.ggml.tokens", Type.ARRAY, (Type.STRING, [b"[UNK]", b"[CLS]", b"[SEP]", "\u2581a".encode(), b"b"])),
    ("tokenizer.ggml.token_type", Type.ARRAY, (Type.INT32, [2, 3, 3, 1, 1])),
    *((f"tokenizer.ggml.{name}_token_id", Type.UINT32, id) for name, id in {"unknown": 0, "bos": 1, "mask": 0}.items()),
    ("tokenizer.ggml.seperator_token_id", Type.UINT32, 2),
]
F32, Q4_0, GONE = 0, 2, 4
"""Types of tensors."""


def value(kind: Type, content: Any, order: str) -> bytes:
    if kind == Type.STRING:
        return struct.pack(f"{order}Q", len(content)) + bytes(content)
    if kind == Type.ARRAY:
        inner, items = content
        elements = b"".join(value(inner, item, order) for item in items)
        return struct.pack(f"{order}IQ", inner, len(items)) + elements
    return struct.pack(order + FORMATS[kind], content)


def gguf(pairs: list[Pair], tensors: list[Tensor] | None = None, order: str = "<", data: int = 0) -> bytes:
    """A GGUF file with some bytes of data after the list of tensors."""
    file = b"GGUF" + struct.pack(f"{order}IQQ", 3, len(tensors or ()), len(pairs))
    for key, kind, content in pairs:
        file += value(Type.STRING, key.encode(), order) + struct.pack(f"{order}I", kind) + value(kind, content, order)
    for name, shape, number, place in tensors or ():
        file += value(Type.STRING, name, order) + struct.pack(f"{order}I{len(shape)}Q", len(shape), *shape)
        file += struct.pack(f"{order}IQ", number, place)
    return file + bytes(-len(file) % 32) + bytes(data)


def changed(key: str, kind: Type, content: Any, base: list[Pair] = BASE) -> bytes:
    return gguf([*(pair for pair in base if pair[0] != key), (key, kind, content)])


def cut(tensors: list[Tensor], size: int) -> bytes:
    return gguf(BASE, tensors)[: len(gguf(BASE)) + size]


LIST = (Type.INT32, [1])
REFUSED: dict[str, tuple[bytes, str]] = {
    "big-endian": (gguf(BASE, order=">"), "its numbers have their highest byte first"),
    "array of arrays": (changed("x.y", Type.ARRAY, (Type.ARRAY, [LIST])), "x.y is an array of arrays"),
    "empty array of arrays": (changed("x.y", Type.ARRAY, (Type.ARRAY, [])), "x.y is an array of arrays"),
    "no architecture": (gguf(BASE[1:]), "it has no general.architecture"),
    "empty architecture": (changed("general.architecture", Type.STRING, b""), "it has no general.architecture"),
    "architecture": (changed("general.architecture", Type.STRING, b"Llama"), "accepts the architecture Llama"),
    "a NUL in a key": (
        gguf([("tokenizer.ggml.add_bos_token\0x", Type.BOOL, False), *BASE]),
        "the key 'tokenizer.ggml.add_bos_token\\x00x' ends at its NUL for llama.cpp",
    ),
    "file_type": (changed("general.file_type", Type.INT32, 1), "general.file_type is int32, not uint32"),
    "split.count": (changed("split.count", Type.UINT32, 1), "split.count is uint32, not uint16"),
    "a later part": (
        gguf([*BASE, ("split.count", Type.UINT16, 2), ("split.no", Type.UINT16, 1)]),
        "it is not the first part of a split file",
    ),
    "token_type_count": (
        changed("tokenizer.ggml.token_type_count", Type.ARRAY, LIST),
        "tokenizer.ggml.token_type_count is array of int32, not uint32",
    ),
    "suppress_tokens": (
        changed("tokenizer.ggml.suppress_tokens", Type.ARRAY, (Type.UINT32, [1])),
        "tokenizer.ggml.suppress_tokens is array of uint32, not array of int32",
    ),
    "no tokens": (
        gguf([*WORDPIECE[:2], ("tokenizer.ggml.tokens", Type.ARRAY, (Type.STRING, [])), *WORDPIECE[4:]]),
        "its list of tokens is empty",
    ),
    "no list of tensors": (cut([(b"a", (8,), F32, 0)], 0), "the file ends inside the list of tensors"),
    "half a list of tensors": (cut([(b"a", (8,), F32, 0)] * 9, 64), "the file ends inside the list of tensors"),
    "five dimensions": (gguf(BASE, [(b"a", (1,) * 5, F32, 0)], data=32), "a tensor has too many dimensions"),
    "no data": (gguf(BASE, [(b"a", (8,), F32, 0)]), "the file ends before the data of its tensors"),
    "half the data": (gguf(BASE, [(b"a", (64,), F32, 0)], data=128), "the tensor 'a' ends after the file"),
    "negative": (gguf(BASE, [(b"a", (1 << 63,), F32, 0)], data=32), "the tensor 'a' ends after the file"),
    "overflow": (gguf(BASE, [(b"a", (1 << 32, 1 << 32), F32, 0)], data=32), "the tensor 'a' ends after the file"),
    "twice": (gguf(BASE, [(b"a", (8,), F32, at) for at in (0, 32)], data=64), "'a' has the name of another"),
    "a gap": (
        gguf(BASE, [(b"a", (8,), F32, 0), (b"b", (8,), F32, 64)], data=96),
        "the tensor 'b' is at byte 64 of the data, not 32",
    ),
    "a long name": (gguf(BASE, [(b"a" * 64, (8,), F32, 0)], data=32), "has a name of more than 63 bytes"),
    "half a block": (
        gguf(BASE, [(b"a", (8,), Q4_0, 0)], data=32),
        "the tensor 'a' has rows that are not made of blocks of 32 elements",
    ),
    "a type that is gone": (gguf(BASE, [(b"a", (8,), GONE, 0)], data=32), "accepts the tensor type 4"),
    "an unknown type": (gguf(BASE, [(b"a", (8,), 777, 0)], data=32), "accepts the tensor type 777"),
}
SOUND = {
    "no tensors": gguf(BASE),
    "version 2": gguf(BASE).replace(b"GGUF\3", b"GGUF\2", 1),
    "a tensor": gguf(BASE, [(b"a", (32, 2), Q4_0, 0), (b"a" * 63, (), F32, 64)], data=96),
    "a tensor without elements": gguf(BASE, [(b"a", (0,), F32, 0)]),
    "keys that nothing reads": gguf([*BASE, ("general.type", Type.FLOAT64, 1.0), ("split.no", Type.STRING, b"1")]),
    "file_type": changed("general.file_type", Type.UINT32, 1),
    "suppress_tokens": changed("tokenizer.ggml.suppress_tokens", Type.ARRAY, LIST),
    "strings that end at a NUL": changed("general.architecture", Type.STRING, b"llama\0x"),
}
TEXTS = (b"ab a  b", b"a\nb", b"<s>ab</s>", b"x\xff c")


@pytest.mark.parametrize("name", REFUSED)
def test_the_answer_is_the_reason(name: str, tmp_path: Path) -> None:
    data, reason = REFUSED[name]
    path = tmp_path / "a.gguf"
    path.write_bytes(data)
    tokenizer = Tokenizer.from_gguf(path)
    releases = tokenizer.releases
    assert (releases.opens_since, releases.same_since, releases.changes) == (None, None, ())
    assert reason in " ".join(releases.unclaimed)
    assert reason in str(releases)
    for release, severity in ((None, "warning"), ("b11549", "error"), ("b10229", "error")):
        found = [each for each in tokenizer.check(llama_cpp=release) if each.code.startswith(("file-", "llama-cpp-"))]
        assert {(each.code, each.severity) for each in found} == {("file-refused", severity)}
        assert reason in " ".join(each.message for each in found)


@pytest.mark.parametrize("name", SOUND)
def test_a_sound_file_has_a_claim(name: str, tmp_path: Path) -> None:
    path = tmp_path / "a.gguf"
    path.write_bytes(SOUND[name])
    releases = Tokenizer.from_gguf(path).releases
    assert releases.unclaimed == ()
    assert releases.opens_since == "b6301 or older"


def test_scores_stored_as_int32(tmp_path: Path) -> None:
    """Older releases read their bits as float32: other ids."""
    tokenizer = Tokenizer.from_gguf(changed("tokenizer.ggml.scores", Type.ARRAY, (Type.INT32, SCORES)))
    assert [change.code for change in tokenizer.releases.changes][:1] == ["scores-int32"]
    assert tokenizer.releases.same_since == "b10566"
    assert "llama-cpp-differs" in [finding.code for finding in tokenizer.check(llama_cpp="b10229")]
    assert Tokenizer.from_gguf(gguf(BASE)).releases.same_since != "b10566"


def test_a_file_that_is_gone_or_another(tmp_path: Path) -> None:
    path = tmp_path / "a.gguf"
    path.write_bytes(cut([(b"a", (8,), F32, 0)], 0))
    tokenizer = Tokenizer.from_gguf(path)
    assert tokenizer.releases.unclaimed
    path.write_bytes(changed("general.name", Type.STRING, b"other"))
    assert not tokenizer.releases.unclaimed
    path.unlink()
    assert not tokenizer.releases.unclaimed


def test_a_name_that_was_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new pre-tokenizer needs no row: nothing is claimed."""
    monkeypatch.setitem(data(), "pre-tokenizer", {})
    releases = Tokenizer.builtin("bpe").releases
    assert releases.unclaimed == (f"no release up to b{builds()[-1]} accepts the pre-tokenizer qwen2",)


def damaged(base: list[Pair]) -> Iterator[tuple[str, bytes]]:
    """Each key of a file and some others with a value of each type, without it, and with a NUL."""
    tokens = base[2][2][1]
    sample: dict[Type, Any] = dict.fromkeys(Type, 1) | {Type.STRING: b"x", Type.ARRAY: LIST}
    others = ["general.file_type", "split.count", "split.no", "tokenizer.ggml.suppress_tokens", "tokenizer.ggml.pre"]
    others += ["tokenizer.ggml.token_type_count", "tokenizer.ggml.merges", "llama.context_length", "general.name"]
    for key in (*(pair[0] for pair in base), *others):
        yield f"no {key}", gguf([pair for pair in base if pair[0] != key])
        for kind in Type:
            yield f"{key} {kind.name}", changed(key, kind, sample[kind], base)
            yield f"{key} of {kind.name}", changed(key, Type.ARRAY, (kind, [sample[kind]] * len(tokens)), base)
            yield f"{key} of no {kind.name}", changed(key, Type.ARRAY, (kind, []), base)
    for key, kind, content in base:
        yield f"{key} and a NUL", gguf([(f"{key}\0x", kind, content), *base])
        yield f"{key} twice", gguf([(key, kind, content), *base])


@pytest.fixture(scope="module")
def sides() -> Iterator[tuple[Child, Child]]:
    """llama.cpp and ggtok."""
    pytest.importorskip("xllamacpp", reason="llama.cpp itself comes in the wheel xllamacpp")
    sides = (Child(REFERENCE, (find_library().path,), timeout=60), Child(OURS, timeout=60))
    yield sides
    for side in sides:
        side.close()


def is_same(sides: tuple[Child, Child], path: Path) -> bool:
    """Whether both open a file, and answer the same."""
    theirs, ours = (side.ask([("open", str(path), {})])[0] for side in sides)
    if theirs != ours or theirs[0] != "ok":
        return False
    asked: list[Query] = [("encode", text, *flags) for text in TEXTS for flags in ((False, False), (True, True))]
    asked += [("token", id) for id in range(theirs[1])]
    return all(map(agrees, *(side.ask(asked) for side in sides)))


@pytest.mark.parametrize("base", [BASE, WORDPIECE], ids=["spm", "wordpiece"])
def test_beside_llama_cpp(base: list[Pair], sides: tuple[Child, Child], tmp_path: Path) -> None:
    """What opens without a reason, llama.cpp opens with the same ids."""
    path = tmp_path / "a.gguf"
    files = [*damaged(base), *((name, data) for name, (data, _) in REFUSED.items()), *SOUND.items()]
    opened = claimed = 0
    for name, content in files:
        path.write_bytes(content)
        try:
            tokenizer = Tokenizer.from_gguf(path)
        except GgtokError:
            continue
        opened += 1
        if tokenizer.releases.unclaimed:
            continue
        claimed += 1
        assert is_same(sides, path), name
    assert opened > claimed > 50


@pytest.mark.parametrize("name", REFUSED)
def test_the_reason_is_true(sides: tuple[Child, Child], name: str, tmp_path: Path) -> None:
    path = tmp_path / "a.gguf"
    path.write_bytes(REFUSED[name][0])
    Tokenizer.from_gguf(path)
    assert not is_same(sides, path)
