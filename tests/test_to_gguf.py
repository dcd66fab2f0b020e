"""Files that `Tokenizer.to_gguf` writes: they open as what was written, here and in llama.cpp."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

import gguf
import pytest
from conftest import BUILTIN, VOCABULARIES, elements, shared_files
from ggtok import ChatTemplateError, GgtokError, GGUFError, TokenIndexError, Tokenizer, VocabularyError
from ggtok._ggtok import Array
from ggtok.lab.convert.gguf import Packed, Typed, gguf_bytes
from ggtok.tokenizer.keys import Type
from ggtok.tokenizer.metadata import read_metadata
from hypothesis import given, settings
from hypothesis import strategies as st

EVERY = [pytest.param(name, id=name) for name in BUILTIN] + shared_files("vocabs/*.gguf")
TEXTS = ["", "What is LoRA?", " a  b\n\n\tc ", "<my note>é 1234<|my tool|> x", "大模型 🦙 \u200d", "x" * 300]

pytestmark = pytest.mark.filterwarnings("ignore::ggtok.TokenizerWarning")


def opened(source: Any) -> Tokenizer:
    return Tokenizer.builtin(source) if isinstance(source, str) else Tokenizer.from_gguf(source)


def written(tokenizer: Tokenizer, **edits: Any) -> bytes:
    file = io.BytesIO()
    tokenizer.to_gguf(file, **edits)
    return file.getvalue()


def contents(data: bytes) -> dict[str, object]:
    entries = read_metadata(data).entries().items()
    return {
        key: (value.kind, elements(value)) if isinstance(value, Array) else (kind, value)
        for key, (kind, value) in entries
    }


@pytest.mark.parametrize("source", EVERY)
def test_round_trip(source: Any, tmp_path: Path) -> None:
    tokenizer = opened(source)
    path = tmp_path / "copy.gguf"
    assert tokenizer.to_gguf(path) == tokenizer
    again = Tokenizer.from_gguf(path)
    assert again == tokenizer
    assert os.listdir(tmp_path) == ["copy.gguf"]
    old, new = contents(tokenizer._metadata.data), contents(path.read_bytes())
    assert new == {key: value for key, value in old.items() if key in new}
    assert {key for key in old if key.startswith(("tokenizer.", "general."))} <= set(new)
    assert written(again) == path.read_bytes()


@pytest.mark.parametrize("source", EVERY)
def test_llama_cpp_reads_edited_files(source: Any, tmp_path: Path, llama_cpp: Any) -> None:
    path = tmp_path / "edited.gguf"
    tokenizer = opened(source).to_gguf(
        path,
        add_tokens=["<my note>"],
        add_control_tokens=["<|my tool|>"],
        special={"eot": "<|my tool|>", "pad": 1},
        flags={"add_eos": False},
        chat_template="{{ messages }}",
        name="edited",
    )
    size = len(tokenizer.vocab)
    assert [token.text for token in tokenizer.vocab[size - 2 :]] == ["<my note>", "<|my tool|>"]
    assert (tokenizer.vocab.eot_id, tokenizer.vocab.pad_id) == (size - 1, 1)
    assert tokenizer.metadata["general.name"] == "edited"
    llama = llama_cpp.LlamaReference(path)
    assert llama.n_tokens == size
    for text in TEXTS:
        for flags in ((False, False), (True, False), (True, True)):
            ids = tokenizer.encode(text, add_special=flags[0], parse_special=flags[1])
            assert llama.tokenize(text.encode(), *flags) == ids, text
            assert llama.detokenize(ids, False, True) == tokenizer.decode_bytes(
                ids, unparse_special=True, clean_spaces=True
            )
    for id in (0, 1, size // 2, size - 2, size - 1):
        assert llama.piece(id) == tokenizer.piece(id)
        assert llama.attr(id) == tokenizer.vocab[id].attributes
        assert llama.is_eog(id) == (id in tokenizer.vocab.eog_ids)
    llama.close()


def test_overrides_are_written() -> None:
    """Those that had an effect, in the type that they were read as."""
    overrides: dict[str, Any] = {"tokenizer.ggml.add_bos_token": False, "tokenizer.ggml.eos_token_id": -1}
    overrides |= {"general.name": "other", "tokenizer.ggml.bos_token_id": "text", "unrelated": 1, "general.new": 1.5}
    overrides |= {"tokenizer.ggml.tokens": "array", "general.large": 1 << 32, "general.max": (1 << 32) - 1}
    tokenizer = Tokenizer.from_gguf(VOCABULARIES / "spm.gguf", overrides=overrides)
    data = written(tokenizer)
    assert Tokenizer.from_gguf(data) == tokenizer
    new = contents(data)
    assert new["tokenizer.ggml.eos_token_id"] == (Type.UINT32, 0xFFFFFFFF)
    assert new["tokenizer.ggml.bos_token_id"] == (Type.UINT32, 1)
    assert (new["general.new"], new["general.large"]) == ((Type.FLOAT32, 1.5), (Type.INT64, 1 << 32))
    assert new["general.max"] == (Type.UINT32, (1 << 32) - 1)
    assert "unrelated" not in new


def test_big_endian_source(tmp_path: Path) -> None:
    path = tmp_path / "big.gguf"
    writer = gguf.GGUFWriter(path, "llama", endianess=gguf.GGUFEndian.BIG)
    writer.add_tokenizer_model("llama")
    writer.add_token_list(["<unk>", "<s>", "</s>", "a", *(f"<0x{byte:02X}>" for byte in range(256))])
    writer.add_token_scores([0.5] * 260)
    writer.add_token_types([2, 3, 3, 1] + [6] * 256)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    tokenizer = Tokenizer.from_gguf(path)
    assert Tokenizer.from_gguf(written(tokenizer)) == tokenizer


NAMES = {
    "general.architecture": "llama",
    "tokenizer.ggml.model": "gpt2",
    "tokenizer.ggml.pre": "gpt-2",
    "tokenizer.ggml.tokens": ["a", b"\xff"],
}


def test_values_of_every_type() -> None:
    """Among them what the writer of the `gguf` package cannot write: empty arrays, and strings that are not UTF-8."""
    entries = NAMES | {"tokenizer.ggml.merges": Packed.strings([]), "b": True, "i": 7, "l": -7, "f": 0.5, "x": b"\1\2"}
    entries |= {"ints": [1, -2], "floats": [0.5], "typed": Typed(Type.INT8, -3), "k\udcff": "v\udcfe"}
    data = gguf_bytes(entries)  # type: ignore[arg-type]
    read = contents(data)
    assert list(read) == list(entries)
    assert (read["tokenizer.ggml.tokens"], read["tokenizer.ggml.merges"]) == (
        (Type.STRING, ["a", "\udcff"]),
        (Type.STRING, []),
    )
    kinds = {key: read[key] for key in ("b", "i", "l", "f", "x", "ints", "floats", "typed", "k\udcff")}
    assert kinds == {
        "b": (Type.BOOL, True),
        "i": (Type.UINT32, 7),
        "l": (Type.INT64, -7),
        "f": (Type.FLOAT32, 0.5),
        "x": (Type.UINT8, [1, 2]),
        "ints": (Type.INT32, [1, -2]),
        "floats": (Type.FLOAT32, [0.5]),
        "typed": (Type.INT8, -3),
        "k\udcff": (Type.STRING, "v\udcfe"),
    }
    tokenizer = Tokenizer.from_gguf(data)
    assert len(tokenizer.vocab) == 2
    assert Tokenizer.from_gguf(written(tokenizer)) == tokenizer
    with pytest.raises(TypeError, match="the value of a must be"):
        gguf_bytes({"a": []})
    with pytest.raises(GgtokError, match="does not fit"):
        gguf_bytes({"a": Typed(Type.INT8, 300)})


texts = st.text(st.characters(exclude_characters="\0"), min_size=1, max_size=6)


@settings(max_examples=20)
@given(st.sampled_from(BUILTIN), st.lists(texts, unique=True, max_size=4), st.lists(texts, unique=True, max_size=4))
def test_added_tokens_are_read(builtin: str, plain: list[str], control: list[str]) -> None:
    tokenizer = Tokenizer.builtin(builtin)
    plain = [text for text in plain if tokenizer.vocab.id(text) is None]
    control = [text for text in control if tokenizer.vocab.id(text) is None and text not in plain]
    new = tokenizer.to_gguf(io.BytesIO(), add_tokens=plain, add_control_tokens=control)
    size = len(tokenizer.vocab)
    assert [token.text for token in new.vocab[size:]] == [*plain, *control]
    assert new.vocab[:size] == tokenizer.vocab[:size]
    for id, text in enumerate(plain + control, size):
        if not any(text != other and other in text for other in plain + control):
            assert id in new.encode(text, parse_special=True)
            assert new.piece(id) == text.encode()


def test_edits() -> None:
    tokenizer = Tokenizer.builtin("bpe")
    data = written(
        tokenizer,
        special={"fim_pre": 5, "eot": None},
        flags={"add_bos": True, "add_eos": None},
        metadata={"general.license": None, "general.url": "there", "tokenizer.chat_template": None, "general.count": 3},
    )
    new = contents(data)
    assert new["tokenizer.ggml.fim_pre_token_id"] == (Type.UINT32, 5)
    assert new["tokenizer.ggml.add_bos_token"] == (Type.BOOL, True)
    assert (new["general.url"], new["general.count"]) == ((Type.STRING, "there"), (Type.UINT32, 3))
    gone = {"tokenizer.ggml.eot_token_id", "tokenizer.ggml.add_eos_token", "general.license", "tokenizer.chat_template"}
    assert not gone & set(new)


def test_a_deprecated_name_is_replaced() -> None:
    data = written(Tokenizer.builtin("bpe"), metadata={"tokenizer.ggml.prefix_token_id": 7})
    tokenizer = Tokenizer.from_gguf(data)
    assert tokenizer.vocab.fim_pre_id == 7
    assert tokenizer.to_gguf(io.BytesIO(), special={"fim_pre": 8}).vocab.fim_pre_id == 8


@pytest.mark.parametrize(
    ("edits", "error", "message"),
    [
        ({"add_tokens": ["<|im_end|>"]}, VocabularyError, "token 12993 has this text"),
        ({"add_tokens": ["x y"], "add_control_tokens": ["x y"]}, VocabularyError, "cannot be added twice"),
        ({"add_tokens": [""]}, VocabularyError, "empty or has a NUL"),
        ({"add_tokens": ["a\0b"]}, VocabularyError, "empty or has a NUL"),
        ({"add_tokens": "ab"}, TypeError, "not one str"),
        ({"add_tokens": [b"ab"]}, TypeError, "must be str, not bytes"),
        ({"special": {"boss": 1}}, GgtokError, "no special token is called 'boss': the nearest are bos"),
        ({"special": {"prefix": 1}}, GgtokError, "no special token is called 'prefix'"),
        ({"special": {"bos": 13000}}, TokenIndexError, "bos_token_id is 13000: there are 13000 tokens"),
        ({"special": {"bos": -1}}, TokenIndexError, "bos_token_id is -1"),
        ({"special": {"bos": True}}, TypeError, "not bool"),
        ({"special": {"bos": "nonesuch"}}, VocabularyError, "'nonesuch', and the vocabulary has no such token"),
        ({"flags": {"add_boss": True}}, GgtokError, "no flag is called 'add_boss': the nearest are add_bos"),
        ({"flags": {"add_bos": 1}}, TypeError, "True, False or None"),
        ({"metadata": {"tokenizer.ggml.bos_tokn_id": 1}}, GgtokError, "the nearest are tokenizer.ggml.bos_token_id"),
        ({"metadata": {"tokenizer.ggml.tokens": "a"}}, GgtokError, "tokens is an array"),
        ({"metadata": {"tokenizer.ggml.bos_token_id": "a"}}, GgtokError, "bos_token_id is uint32: 'a' does not fit"),
        ({"metadata": {"tokenizer.ggml.bos_token_id": -1}}, GgtokError, "bos_token_id is uint32: -1 does not fit"),
        ({"metadata": {"general.name": "a"}, "name": "b"}, GgtokError, "general.name is given twice"),
        ({"metadata": {"general.x": {1}}}, TypeError, "must be str, int, float, bool, a list or None, not set"),
        ({"metadata": {"general.x": []}}, TypeError, "a list of them that is not empty"),
        ({"metadata": {"tokenizer.ggml.scores": ["a"]}}, GgtokError, "scores is an array of float32"),
        ({"metadata": {"tokenizer.ggml.bos_token_id": [1]}}, GgtokError, "is uint32, not an array"),
        ({"chat_template": "{% if %}"}, ChatTemplateError, "line 1, column"),
        ({"metadata": {"tokenizer.chat_template.tool_use": "{{ x"}}, ChatTemplateError, "line 1, column"),
        ({"metadata": {"general.x": 1 << 70}}, GgtokError, "does not fit"),
        ({"metadata": {"tokenizer.ggml.model": None}}, GGUFError, "names no tokenizer"),
    ],
)
def test_conflicts(edits: dict[str, Any], error: type[Exception], message: str, tmp_path: Path) -> None:
    path = tmp_path / "file.gguf"
    with pytest.raises(error, match=message):
        Tokenizer.builtin("bpe").to_gguf(path, **edits)
    assert os.listdir(tmp_path) == []


def test_no_vocabulary_takes_no_tokens() -> None:
    none = Tokenizer.from_gguf(gguf_bytes({"tokenizer.ggml.model": "none"}))
    assert none.to_gguf(io.BytesIO()) == none
    with pytest.raises(VocabularyError, match="a file without a list of tokens"):
        none.to_gguf(io.BytesIO(), add_tokens=["a"])


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_a_write_that_fails_changes_nothing(
    error: type[BaseException], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file.gguf"
    path.write_bytes(b"before")

    def fail(*_: object) -> None:
        assert len(os.listdir(tmp_path)) == 2
        raise error

    monkeypatch.setattr("ggtok.tokenizer.files.os.replace", fail)
    with pytest.raises(error):
        Tokenizer.builtin("bpe").to_gguf(path)
    assert os.listdir(tmp_path) == ["file.gguf"]
    assert path.read_bytes() == b"before"


def test_targets(tmp_path: Path) -> None:
    tokenizer = Tokenizer.builtin("bpe")
    real, link = tmp_path / "real.gguf", tmp_path / "link.gguf"
    real.write_bytes(b"before")
    link.symlink_to(real)
    tokenizer.to_gguf(str(link))
    assert link.is_symlink()
    assert Tokenizer.from_gguf(real) == tokenizer
    tokenizer.to_gguf("/dev/null")
    assert not os.path.isfile("/dev/null")
    for target in (None, 7, b"path"):
        with pytest.raises(TypeError, match="a path or a binary file"):
            tokenizer.to_gguf(target)  # type: ignore[arg-type]
    with pytest.raises(FileNotFoundError):
        tokenizer.to_gguf(tmp_path / "nonesuch" / "file.gguf")
