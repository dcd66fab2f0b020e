"""Bad texts, files and vocabularies: a typed error that says what and where, or llama.cpp's answer."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import json
import lzma
import os
import pickle
import struct
import warnings
import zipfile
from pathlib import Path
from typing import Any

import pytest
from conftest import BUILTIN, every_kind
from ggtok import (
    GgtokError,
    GGUFError,
    ModelNotFoundError,
    Tokenizer,
    TokenizerWarning,
    UnsupportedError,
    VocabularyError,
)
from hypothesis import strategies as st
from oracles import charsmap as maps
from oracles import strategies
from oracles.gguf_vocab import TokenType, Vocab, write
from oracles.spelling import BYTE_TOKENS, BYTES

LARGE = 100_000_000 if os.environ.get("GGTOK_SLOW") else 20_000_000


@pytest.fixture(scope="module", params=BUILTIN)
def builtin(request: pytest.FixtureRequest) -> Tokenizer:
    return Tokenizer.builtin(request.param)


def spm_vocab(**changes: Any) -> Vocab:
    texts = [b"<unk>", b"<s>", b"</s>", *BYTE_TOKENS, b"a", b"b", b"ab", "\u2581".encode()]
    types = [2, 3, 3] + [int(TokenType.BYTE)] * 256 + [int(TokenType.NORMAL)] * 4
    fields: dict[str, Any] = {"scores": [0.0] * len(texts), "bos": 1, "eos": 2, "unk": 0} | changes
    return Vocab("llama", texts, types, **fields)


def bpe_vocab(merges: list[bytes]) -> Vocab:
    texts = [*BYTES, b"ab", b"abc"]
    types = [int(TokenType.NORMAL)] * len(texts)
    return Vocab("gpt2", texts, types, merges=merges, pre="gpt-2", escape_whitespaces=False)


def ugm_vocab(charsmap: bytes) -> Vocab:
    texts = [b"<pad>", b"</s>", b"<unk>", b"a", b"b", "\u2581".encode()]
    return Vocab("t5", texts, [3, 3, 2, 1, 1, 1], [0.0, 0.0, 0.0, -1.0, -2.0, -3.0], eos=1, unk=2, charsmap=charsmap)


# Texts


def test_empty_text(builtin: Tokenizer) -> None:
    assert builtin.encode("", add_special=False) == builtin.encode(b"", add_special=False) == []
    assert builtin.count("", add_special=False) == 0


@pytest.mark.parametrize("text", ["\ud800", "a\udfffb", "\ud83d\ude00", "\udc80 \ud800\ud800"])
def test_lone_surrogates_are_three_bytes(builtin: Tokenizer, text: str) -> None:
    expected = builtin.encode(text.encode("utf-8", "surrogatepass"))
    assert builtin.encode(text) == builtin.encode_array(text).tolist() == expected
    assert builtin.encode_batch([text])[0].tolist() == expected
    assert builtin.count(text) == len(expected)


@pytest.mark.parametrize(
    "text",
    [b"\xff", b"\x80\x80", b"a\xc3", b"\xe4\xb8", b"\xf4\x90\x80\x80", b"\xf7\xbf\xbf\xbf", b"\0", bytes(range(256))],
)
def test_any_bytes(builtin: Tokenizer, text: bytes) -> None:
    builtin.decode(builtin.encode(text))


def test_large_text(builtin: Tokenizer) -> None:
    text = "The quick brown fox jumps over the lazy dog. \u00e9\u4e00 1234\n"
    copies = LARGE // len(text.encode())
    one = builtin.count(text, add_special=False)
    assert builtin.count(text * copies, add_special=False) == pytest.approx(copies * one, rel=0.1)


# Files


def without(key: str) -> bytes:
    metadata = spm_vocab().metadata()
    del metadata[f"tokenizer.ggml.{key}"]
    return write(metadata)


def changed(key: str, value: object) -> bytes:
    return write(spm_vocab().metadata() | {f"tokenizer.ggml.{key}": value})


@pytest.mark.parametrize(
    ("data", "error", "said"),
    [
        (without("model"), GgtokError, "tokenizer.ggml.model"),
        (without("tokens"), VocabularyError, "tokens"),
        (changed("model", "nonesuch"), UnsupportedError, "nonesuch"),
        (changed("model", 7), GGUFError, "tokenizer.ggml.model"),
        (changed("tokens", 7), GgtokError, "tokens"),
        (changed("tokens", [1, 2, 3]), GgtokError, "tokens"),
        (changed("scores", [1.0, 2.0]), VocabularyError, "scores"),
        (changed("scores", [b"1.0"] * 263), GgtokError, "scores"),
        (changed("token_type", [1, 1]), VocabularyError, "type"),
        (changed("token_type", [1.0] * 263), GgtokError, "token_type"),
        (changed("tokens", [b"<unk>", b"<s>", b"</s>", b"twice", b"twice"]), VocabularyError, "twice"),
        (
            write({key: value for key, value in bpe_vocab([]).metadata().items() if "merges" not in key}),
            VocabularyError,
            "tokenizer.ggml.merges",
        ),
        (changed("bos_token_id", "one"), GGUFError, "bos_token_id"),
        (changed("add_bos_token", 1), GGUFError, "add_bos_token"),
    ],
)
def test_damaged_vocabularies(data: bytes, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        Tokenizer.from_gguf(data)


def exported(name: str, call: str) -> bytes:
    target = io.BytesIO()
    getattr(Tokenizer.builtin(name), call)(target)
    return target.getvalue()


def zipped(name: str) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as file:
        file.writestr(name, "x")
    return target.getvalue()


def safetensors() -> bytes:
    head = json.dumps({"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
    return struct.pack("<Q", len(head)) + head + bytes(4)


def no_tokenizer(**metadata: Any) -> bytes:
    return write({key.replace("_", ".", 1): value for key, value in metadata.items()})


POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"
OTHERS = {
    "a Git LFS pointer: `git lfs pull`": POINTER,
    "a web page": b"<!DOCTYPE html><html><head><title>Sign in",
    "safetensors": safetensors(),
    "a tokenizer.json: Tokenizer.from_tokenizers_json": exported("bpe", "to_tokenizers_json"),
    "JSON": b'[\n  {"role": "user"}]',
    "a model of sentencepiece: Tokenizer.from_sentencepiece": exported("spm", "to_sentencepiece"),
    "compressed with gzip": gzip.compress(spm_vocab().gguf()),
    "compressed:": bz2.compress(b"a"),
    "compressed: unpack": lzma.compress(b"a"),
    "a zip archive": zipped("model.gguf"),
    "a pickle of PyTorch": zipped("archive/data.pkl"),
    "pickle": pickle.dumps({"weight": [1.0]}),
    "GGML, the format before GGUF": b"tjgg\3\0\0\0",
    "an importance matrix": struct.pack("<ii", 1, 18) + b"blk.0.attn_q.weight",
    "zeros": bytes(1000),
    "an adapter (LoRA), which has no tokenizer": no_tokenizer(general_architecture="llama", general_type="adapter"),
    "a projector (mmproj), which has no tokenizer": no_tokenizer(general_architecture="clip"),
    "an importance matrix, which has no tokenizer": no_tokenizer(general_type="imatrix"),
    "a control vector, which has no tokenizer": no_tokenizer(general_architecture="controlvector"),
    "part 3 of 4 of a split file, and the tokenizer is in part 1": no_tokenizer(split_no=2, split_count=4),
}


@pytest.mark.parametrize("said", OTHERS)
def test_what_is_not_a_model_is_called_what_it_is(said: str, tmp_path: Path) -> None:
    """Whatever the name, and however it is opened."""
    path = tmp_path / "model.gguf"
    path.write_bytes(OTHERS[said])
    for source in (OTHERS[said], io.BytesIO(OTHERS[said]), path):
        with pytest.raises(GGUFError) as caught:
            Tokenizer.from_gguf(source)
        assert said in str(caught.value)
    with pytest.raises(GGUFError) as caught:
        Tokenizer.from_model(path)
    assert said in str(caught.value)
    assert caught.value.path == str(path)


def test_a_later_part_names_the_first(tmp_path: Path) -> None:
    path = tmp_path / "Model-Q4-00002-of-00004.gguf"
    path.write_bytes(no_tokenizer(split_no=1, split_count=4))
    with pytest.raises(GGUFError, match=r"part 2 of 4 .* in part 1, Model-Q4-00001-of-00004.gguf"):
        Tokenizer.from_gguf(path)


def test_texts_that_end_at_a_nul() -> None:
    vocab = bpe_vocab([])
    vocab.texts[-1] = b"ab\0c"
    with pytest.raises(VocabularyError, match=r'share the text "ab": llama.cpp ends a token\'s text at its first NUL'):
        Tokenizer.from_gguf(vocab.gguf())


def test_the_name_of_a_repository_is_not_a_path() -> None:
    with pytest.raises(ModelNotFoundError, match=r"No such file .* named hf:Qwen/Qwen2.5-7B$") as caught:
        Tokenizer.from_model("Qwen/Qwen2.5-7B")
    assert isinstance(caught.value, FileNotFoundError)
    for path in ("./nope", "/a/b", "a/b/c", "a/b.gguf"):
        with pytest.raises(ModelNotFoundError, match=r"No such file or directory$"):
            Tokenizer.from_model(path)


def test_unknown_pre_tokenizer() -> None:
    with pytest.raises(UnsupportedError, match="llama-bpee") as caught:
        Tokenizer.from_gguf(bpe_vocab([]).gguf(), overrides={"tokenizer.ggml.pre": "llama-bpee"})
    assert "llama-bpe" in caught.value.nearest


@pytest.mark.parametrize("merges", [[b"ab"], [b""], [b" "], [b" ab"], [b"a  b"], [b"a b c"], [b"a b "], []])
def test_odd_merges(merges: list[bytes]) -> None:
    """llama.cpp takes the first space after the first byte; these rules name texts that no symbol has."""
    for rules, ids in ((merges, b"ab abc"), ([b"ab c", b"a b", b"a b", *merges], [256, 32, 257])):
        tokenizer = Tokenizer.from_gguf(bpe_vocab(rules).gguf())
        assert tokenizer.encode("ab abc", add_special=False) == list(ids)


def charsmap(units: list[int], replacements: bytes = b"x\0") -> bytes:
    return struct.pack(f"<I{len(units)}I", 4 * len(units), *units) + replacements


VALID_CHARSMAP = maps.build({b"a": b"b", b"ab": b"a"})


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"\x01", id="shorter than its length field"),
        pytest.param(struct.pack("<I", 1 << 30) + bytes(64), id="array longer than the map"),
        pytest.param(struct.pack("<I", 0xFFFFFFFC) + bytes(64), id="array length overflows"),
        pytest.param(struct.pack("<I", 60) + bytes(60), id="nothing after the array"),
    ],
)
def test_charsmap_refused(data: bytes) -> None:
    with pytest.raises(VocabularyError, match="map"):
        Tokenizer.from_gguf(ugm_vocab(data).gguf())


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(struct.pack("<I", 0) + b"x\0", id="empty array"),
        pytest.param(charsmap([1 << 30]), id="root points outside"),
        pytest.param(
            charsmap([0] * ord("a") + [0xFFFFF << 10 | 1 << 8 | ord("a")] + [0] * 200), id="node points outside"
        ),
        pytest.param(VALID_CHARSMAP[:-3] + b"xxx", id="replacement without an end"),
        pytest.param(struct.pack("<I", len(VALID_CHARSMAP) - 8) + VALID_CHARSMAP[4:], id="array cut short"),
    ],
)
def test_charsmap_that_points_outside(data: bytes) -> None:
    """Either the file or the text is refused, or the damage is never met."""
    with contextlib.suppress(GgtokError):
        tokenizer = Tokenizer.from_gguf(ugm_vocab(data).gguf())
        tokenizer.encode("a ab abc \u00e9")


def test_missing_special_token() -> None:
    """llama.cpp stops the process where a token must be added that is not there."""
    with pytest.warns(TokenizerWarning, match=r"BOS is added to every text .*\[added-missing\]"):
        tokenizer = Tokenizer.from_gguf(ugm_vocab(b"").gguf(), overrides={"tokenizer.ggml.add_bos_token": True})
    assert tokenizer.encode("a", add_special=False)
    with pytest.raises(VocabularyError, match="BOS"):
        tokenizer.encode("a")
    with pytest.raises(VocabularyError, match=r"^text 0: .*BOS"):
        tokenizer.encode_batch(["a", "b"])


DAMAGE = st.lists(
    st.tuples(
        st.sampled_from(["set", "cut", "insert", "delete"]), st.integers(0, 1 << 16), st.binary(min_size=1, max_size=9)
    ),
    min_size=1,
    max_size=4,
)


def damaged(data: bytes, damage: list[tuple[str, int, bytes]]) -> bytes:
    for kind, place, put in damage:
        at = place % (len(data) + 1)
        if kind == "set":
            data = data[:at] + put + data[at + len(put) :]
        elif kind == "cut":
            data = data[:at]
        elif kind == "insert":
            data = data[:at] + put + data[at:]
        else:
            data = data[:at] + data[at + len(put) :]
    return data


@every_kind
def test_damaged_files(kind: str, data: st.DataObject) -> None:
    """A damaged file opens or raises a GgtokError, and what opens encodes and decodes, or raises one."""
    file = damaged(data.draw(strategies.KINDS[kind]).gguf(), data.draw(DAMAGE))
    text = data.draw(st.sampled_from([b"abc <s>a 1.\n", b"\xff\xc3a", "\u00e9\u4e00".encode()]))
    with warnings.catch_warnings(), contextlib.suppress(GgtokError):
        warnings.simplefilter("ignore")
        tokenizer = Tokenizer.from_gguf(file)
        tokenizer.decode(tokenizer.encode(text, parse_special=True))
