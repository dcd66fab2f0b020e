"""The Python API: where a tokenizer comes from, what each call takes and returns, and what it is as an object."""

from __future__ import annotations

import copy
import enum
import inspect
import io
import pickle
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import ggtok
import numpy as np
import pytest
from conftest import BUILTIN
from ggtok import (
    ArgumentTypeError,
    GgtokError,
    GGUFError,
    TokenAttribute,
    Tokenizer,
    UnsupportedError,
    VocabularyError,
    _ggtok,
)
from ggtok.adapters import tokenizers
from oracles import spelling
from oracles.gguf_vocab import TokenType, Vocab, write

TEXT = "Hello world, wie geht's? \u4f60\u597d \U0001f600"
MERGES = [b"l l", b"h e", b"he ll", b"hell o"]
HELLO = 259


def small_vocab() -> Vocab:
    """Byte-level BPE: 256 bytes, the merges up to `hello`, two control tokens, one user-defined."""
    texts = [*spelling.BYTES, b"ll", b"he", b"hell", b"hello"]
    types = [int(TokenType.NORMAL)] * len(texts)
    texts += [b"<s>", b"</s>", b"<user>"]
    types += [int(TokenType.CONTROL)] * 2 + [int(TokenType.USER_DEFINED)]
    return Vocab("gpt2", texts, types, merges=MERGES, pre="gpt-2", bos=260, eos=261, add_bos=True)


GGUF = small_vocab().gguf()


@pytest.fixture(scope="module")
def small() -> Tokenizer:
    return Tokenizer.from_gguf(GGUF)


@pytest.fixture(scope="module", params=BUILTIN)
def builtin(request: pytest.FixtureRequest) -> Tokenizer:
    return Tokenizer.builtin(request.param)


# Sources


@pytest.mark.parametrize("source", [bytes, bytearray, memoryview, io.BytesIO])
def test_from_buffers_and_files(source: Callable[[bytes], Any], small: Tokenizer) -> None:
    """`test_gguf.py` has more sources."""
    assert Tokenizer.from_gguf(source(GGUF)) == small


def test_errors_name_the_file(tmp_path: Path) -> None:
    """A damaged file, a damaged vocabulary and an unknown name, each from a path, a file and bytes."""
    path = tmp_path / "small.gguf"
    vocabulary, unknown = small_vocab().metadata(), small_vocab().metadata() | {"tokenizer.ggml.model": "nonesuch"}
    del vocabulary["tokenizer.ggml.merges"]
    cases: list[tuple[bytes, type[GgtokError]]] = [
        (GGUF[:99], GGUFError),
        (write(vocabulary), VocabularyError),
        (write(unknown), UnsupportedError),
    ]
    for data, kind in cases:
        path.write_bytes(data)
        with path.open("rb") as file:
            for source in (path, str(path), file):
                with pytest.raises(kind) as caught:
                    Tokenizer.from_gguf(source)
                assert caught.value.path == str(path)
                assert str(caught.value).startswith(f"{path}: ")
                again = pickle.loads(pickle.dumps(caught.value))
                assert (str(again), again.path) == (str(caught.value), str(path))
        for nameless in (data, io.BytesIO(data)):
            with pytest.raises(kind) as caught:
                Tokenizer.from_gguf(nameless)
            assert caught.value.path is None


def test_overrides(small: Tokenizer) -> None:
    other = Tokenizer.from_gguf(
        GGUF, overrides={"tokenizer.ggml.add_bos_token": False, "tokenizer.ggml.add_eos_token": True}
    )
    assert (other.vocab.add_bos, other.vocab.add_eos) == (False, True)
    assert other.encode("hello") == [HELLO, 261]
    assert small.encode("hello") == [260, HELLO]
    assert other != small


def test_builtin_names() -> None:
    kinds = {name: Tokenizer.builtin(name).vocab.kind for name in BUILTIN}
    assert kinds == {"spm": "spm", "bpe": "bpe", "wordpiece": "wordpiece", "unigram": "unigram"}
    with pytest.raises(GgtokError, match="unigram"):
        Tokenizer.builtin("unigran")


# Encoding


@pytest.mark.parametrize("convert", [bytes, bytearray, memoryview])
def test_encode_takes_any_buffer(builtin: Tokenizer, convert: Callable[[bytes], Any]) -> None:
    ids = builtin.encode(TEXT)
    assert builtin.encode(convert(TEXT.encode())) == ids
    assert type(ids) is list
    assert {type(id) for id in ids} == {int}


@pytest.mark.parametrize("code", ["i1", "u1", "S1"])
def test_arrays_of_single_bytes_are_texts(small: Tokenizer, code: str) -> None:
    array: Any = np.frombuffer(b"hello", code)
    if code == "S1":
        with pytest.raises(TypeError, match='items of format "1s"'):
            small.encode(array)
    else:
        assert small.encode(array, add_special=False) == [HELLO]
        assert small.encode(array[::-1], add_special=False) == small.encode(b"olleh", add_special=False)


@pytest.mark.parametrize(
    "array",
    [
        np.array([1, 2, 3]),
        np.array([104, 105], np.int32),
        np.array([0.5]),
        np.array([True]),
        np.zeros((2, 2), np.uint8),
        np.uint8(104),
        memoryview(b"abcd").cast("I"),
        memoryview(b"abcd").cast("B", (2, 2)),
    ],
)
@pytest.mark.parametrize("call", ["encode", "encode_array", "count"])
def test_arrays_of_numbers_are_not_texts(small: Tokenizer, array: Any, call: str) -> None:
    with pytest.raises(TypeError, match=r"a text must be str or bytes-like, not \w+ with items of .*decode\(\)"):
        getattr(small, call)(array)
    with pytest.raises(TypeError, match="text 1: a text must be str or bytes-like"):
        small.encode_batch([b"a", array])


def test_special_is_safe_by_default(small: Tokenizer) -> None:
    assert small.encode("</s>", add_special=False) == list(b"</s>")
    assert small.encode("</s>", add_special=False, parse_special=True) == [261]
    assert small.encode("<user>", add_special=False) == [262]


def test_encode_array(builtin: Tokenizer) -> None:
    ids = builtin.encode_array(TEXT)
    assert isinstance(ids, np.ndarray)
    assert (ids.dtype.name, ids.tolist()) == ("int32", builtin.encode(TEXT))
    assert builtin.encode_array(TEXT, add_special=False).tolist() == builtin.encode(TEXT, add_special=False)


@pytest.mark.parametrize("call", ["encode", "encode_array", "count", "encode_batch", "decode", "decode_bytes", "piece"])
def test_options_are_keywords(small: Tokenizer, call: str) -> None:
    first: Any = {"encode_batch": ["a"], "decode": [1], "decode_bytes": [1], "piece": 1}.get(call, "a")
    with pytest.raises(TypeError):
        getattr(small, call)(first, True)


# Batches


@pytest.mark.parametrize("threads", [None, 1, 2, 3, 64])
def test_encode_batch(builtin: Tokenizer, threads: int | None) -> None:
    texts = [TEXT * (n % 5) + str(n) for n in range(300)]
    batch = builtin.encode_batch(texts, threads=threads)
    expected = [builtin.encode(text) for text in texts]
    assert batch.ids.dtype == np.int32
    assert batch.offsets.dtype == np.int64
    assert (batch.ids.ndim, batch.offsets.shape) == (1, (len(texts) + 1,))
    assert (batch.offsets[0], batch.offsets[-1]) == (0, len(batch.ids))
    assert batch.tolist() == expected
    assert [ids.tolist() for ids in batch] == expected


def test_batch_is_a_sequence(small: Tokenizer) -> None:
    batch = small.encode_batch(["hello", b"", "a"], add_special=False)
    assert len(batch) == 3
    assert batch[0].tolist() == batch[-3].tolist() == batch[np.int64(0)].tolist() == [HELLO]
    assert batch[1].tolist() == []
    assert batch[2].dtype == np.int32
    for index in (3, -4):
        with pytest.raises(IndexError):
            batch[index]


def test_batch_slices(small: Tokenizer) -> None:
    batch = small.encode_batch(["hello", b"", "a", "ab", "hello hello"], add_special=False)
    rows = batch.tolist()
    numbers = [None, -9, -5, -2, 0, 1, 3, 5, 9]
    for start in numbers:
        for stop in numbers:
            for step in (None, 1, 2, 7, -1, -3):
                part = batch[start:stop:step]
                assert isinstance(part, ggtok.Batch)
                assert part.tolist() == [ids.tolist() for ids in part] == rows[start:stop:step]
                assert (part.ids.dtype.name, part.offsets.dtype.name, part.offsets[0]) == ("int32", "int64", 0)
                assert len(part.ids) == part.offsets[-1]
    assert batch[1:3].ids.base is not None
    assert np.shares_memory(batch[2:4].ids, batch.ids)
    empty = small.encode_batch([])
    assert empty[:] == empty[::-1] == empty[3:7] == empty


def test_batch_names_the_text_that_fails(small: Tokenizer) -> None:
    with pytest.raises(TypeError, match=r"^text 3: a text must be str or bytes-like, not int$"):
        small.encode_batch(["a", b"b", "c", 4, None])  # type: ignore[list-item]


@pytest.mark.parametrize("error", [ZeroDivisionError("mine"), TypeError("mine"), KeyboardInterrupt("mine")])
@pytest.mark.parametrize(
    ("call", "first"),
    [("encode_batch", "a"), ("encode_parts", ("a", True)), ("decode", HELLO), ("decode_batch", [HELLO])],
)
def test_errors_of_an_iterable_pass_through(small: Tokenizer, call: str, first: Any, error: BaseException) -> None:
    def items() -> Any:
        yield first
        raise error

    with pytest.raises(type(error)) as caught:
        getattr(small, call)(items())
    assert caught.value is error


def test_batch_takes_any_iterable(small: Tokenizer) -> None:
    assert small.encode_batch(text for text in ("hello", "a")) == small.encode_batch(["hello", "a"])
    nothing = small.encode_batch([])
    assert (len(nothing), nothing.ids.tolist(), nothing.offsets.tolist()) == (0, [], [0])


BATCH = Tokenizer.from_gguf(GGUF).encode_batch(["a"])
NO_SOURCE = "^the source must be a path, bytes-like, or a readable binary file, not %s$"
WRONG: list[tuple[str, Any, dict[str, Any], type[Exception], str]] = [
    *(("from_gguf", it, {}, TypeError, NO_SOURCE % type(it).__name__) for it in (None, 7, 1.5, [b"GGUF"], object())),
    *(
        ("from_gguf", GGUF, {"overrides": overrides}, TypeError, "overrides? must be")
        for overrides in (7, "a=1", [("a", 1)], {1: 2})
    ),
    *(("encode", text, {}, TypeError, "must be str or bytes-like") for text in (None, 1, ["a"], 1.5)),
    *(("encode_batch", texts, {}, TypeError, "") for texts in ("hello", b"hello", bytearray(b"a"), ["a", 1], 7, None)),
    *(("encode_batch", ["a"], {"threads": threads}, ValueError, "threads") for threads in (0, -1)),
    *(("encode_batch", ["a"], {"threads": threads}, TypeError, "") for threads in ("2", 2.0, [2])),
    *(("decode", ids, {}, TypeError, "") for ids in ("a", [1.5], [None], 1, np.array([1.5]))),
    *(
        ("vocab.id", it, {}, TypeError, "text of a token must be str or bytes, not")
        for it in (None, 7, bytearray(b"a"))
    ),
    *(("batch", index, {}, TypeError, "must be an integer or a slice, not") for index in ("a", 1.0, None, (0, 1))),
]


@pytest.mark.parametrize(("call", "argument", "options", "error", "message"), WRONG)
def test_arguments_of_other_types(
    small: Tokenizer, call: str, argument: Any, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    calls: dict[str, Any] = {"vocab.id": small.vocab.id, "batch": BATCH.__getitem__}
    with pytest.raises(error, match=message or None):
        (calls.get(call) or getattr(small, call))(argument, **options)


def test_batch_takes_any_number_of_threads(small: Tokenizer) -> None:
    assert small.encode_batch(["a"], threads=2**70).tolist() == [small.encode("a")]


# Decoding


def test_decode(small: Tokenizer) -> None:
    ids = small.encode("hello <user>", parse_special=True)
    assert small.decode(ids) == "hello <user>"
    assert small.decode(ids, unparse_special=True) == "<s>hello <user>"
    assert small.decode(ids, unparse_special=True, remove_special=True) == "hello <user>"
    assert small.decode_bytes(ids, unparse_special=True) == b"<s>hello <user>"


@pytest.mark.parametrize("ids", [(HELLO,), np.array([HELLO], np.int32), np.array([HELLO], np.int64), range(HELLO, 260)])
def test_decode_takes_any_sequence_of_ids(small: Tokenizer, ids: Any) -> None:
    assert small.decode(ids) == "hello"


def test_decode_errors(small: Tokenizer) -> None:
    half = list(b"a\xc3")
    assert small.decode_bytes(half) == b"a\xc3"
    assert small.decode(half) == "a\ufffd"
    assert small.decode(half, errors="ignore") == "a"
    assert small.decode(half, errors="surrogateescape") == "a\udcc3"
    with pytest.raises(UnicodeDecodeError):
        small.decode(half, errors="strict")
    with pytest.raises(LookupError):
        small.decode(half, errors="no such handler")


ROWS = "decode() takes one row of ids, and decode_batch() several"


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (np.array(1), f"ids must be an array of one dimension, not a scalar: {ROWS}"),
        *((rows, f"a token id must be an integer, not list: {ROWS}") for rows in (np.array([[1]]), [[1]], ([1],))),
        ([1.5], "a token id must be an integer, not float"),
        ({"ids": [1]}, "ids must be an iterable of integers, not dict"),
    ],
)
def test_what_is_not_a_row_of_ids(small: Tokenizer, ids: Any, message: str) -> None:
    for call in (small.decode, small.decode_bytes, small.decoder().prime):
        with pytest.raises(ArgumentTypeError) as caught:
            call(ids)
        assert str(caught.value) == message


def test_a_mapping_is_not_a_list(small: Tokenizer) -> None:
    texts: Any = {"text": "hello"}
    hf = tokenizers.Tokenizer(small)
    for call in (
        *(small.encode_batch, small.count_batch, small.decode_batch, small.encode_parts, hf.encode_batch),
        *(lambda texts: small.split_batch(texts, 9), lambda texts: small.decoder(stop=texts)),
        lambda texts: ggtok.train(files=texts, kind="bpe", vocab_size=300),
        lambda texts: ggtok.corpus.build(texts, "out", tokenizer=small, format="flat"),
    ):
        with pytest.raises(ArgumentTypeError, match=r"must be an iterable of .*, not (one )?dict"):
            call(texts)


def test_a_batch_names_the_text_of_another_type(small: Tokenizer) -> None:
    with pytest.raises(ArgumentTypeError, match=r"^text 1: a text must be str or bytes-like, not NoneType$"):
        small.encode_batch(["a", None])  # type: ignore[list-item]


def test_piece(small: Tokenizer) -> None:
    assert (small.piece(HELLO), small.piece(260), small.piece(260, special=False)) == (b"hello", b"<s>", b"")


OUT_OF_RANGE = [-1, 263, 2**31 - 1, 2**31, -(2**31) - 1, 2**63, -(2**70)]


@pytest.mark.parametrize("id", OUT_OF_RANGE)
@pytest.mark.parametrize("call", ["piece", "decode", "decode_bytes", "vocab"])
def test_ids_out_of_range(small: Tokenizer, call: str, id: int) -> None:
    calls: dict[str, Callable[[], object]] = {
        "piece": lambda: small.piece(id),
        "decode": lambda: small.decode([HELLO, id]),
        "decode_bytes": lambda: small.decode_bytes([id]),
        "vocab": lambda: small.vocab[id],
    }
    with pytest.raises(IndexError, match=str(id)) as caught:
        calls[call]()
    assert isinstance(caught.value, GgtokError)


# Vocabulary and metadata


def test_vocab_maps_ids_to_tokens(small: Tokenizer) -> None:
    token = small.vocab[HELLO]
    assert (token.id, token.text, token.score, token.attributes) == (HELLO, "hello", 0.0, TokenAttribute.NORMAL)
    assert len(small.vocab) == 263
    assert [token.id for token in small.vocab] == list(range(263))
    assert small.vocab.id("hello") == small.vocab.id(b"hello") == HELLO
    assert small.vocab.id("no such token") is None


@pytest.mark.parametrize("text", ["surrogate \ud800", "low \udfff", "a\udc7f", "escaped \udcff"])
def test_texts_that_no_token_has(small: Tokenizer, text: str) -> None:
    assert small.vocab.id(text) is None
    assert text not in small.vocab  # type: ignore[comparison-overlap]
    with pytest.raises(IndexError):
        small.vocab.index(text)


def test_vocab_annotates_every_special_id(small: Tokenizer) -> None:
    """The core's table of special tokens, the attributes and their annotations are one list."""
    ids = {f"{name}_id" for name in _ggtok.special_ids(small)}
    assert ids == {name for name in ggtok.Vocab.__annotations__ if name.endswith("_id")}
    assert ids == {name for name in vars(small.vocab) if name.endswith("_id")}
    assert set(_ggtok.special_keys()) - set(_ggtok.special_ids(small)) == {"prefix", "suffix", "middle"}
    assert set(_ggtok.special_ids(small)) - set(_ggtok.special_keys()) == {"nl"}


@pytest.mark.parametrize("name", _ggtok.special_keys())
def test_every_special_key_is_read(name: str) -> None:
    key = f"tokenizer.ggml.{_ggtok.special_keys()[name]}"
    slot = {"prefix": "fim_pre", "suffix": "fim_suf", "middle": "fim_mid"}.get(name, name)
    tokenizer = Tokenizer.from_gguf(GGUF, overrides={key: 77})
    assert getattr(tokenizer.vocab, f"{slot}_id") == 77


def test_vocab_attributes(small: Tokenizer) -> None:
    vocab = small.vocab
    assert (vocab.kind, vocab.pre) == ("bpe", "gpt-2")
    assert (vocab.bos_id, vocab.eos_id, vocab.mask_id) == (260, 261, None)
    assert (vocab.add_bos, vocab.add_eos, vocab.add_sep) == (True, False, False)
    assert set(vocab.eog_ids) == {261}


def test_token_attributes() -> None:
    assert issubclass(TokenAttribute, enum.IntFlag)
    values = {attribute.name: attribute.value for attribute in TokenAttribute}
    assert values == {
        "UNKNOWN": 1,
        "UNUSED": 2,
        "NORMAL": 4,
        "CONTROL": 8,
        "USER_DEFINED": 16,
        "BYTE": 32,
        "NORMALIZED": 64,
        "LSTRIP": 128,
        "RSTRIP": 256,
        "SINGLE_WORD": 512,
    }


def test_metadata(small: Tokenizer) -> None:
    metadata = small.metadata
    assert isinstance(metadata, Mapping)
    assert metadata["tokenizer.ggml.model"] == "gpt2"
    assert metadata["tokenizer.ggml.add_bos_token"] is True
    assert "tokenizer.ggml.tokens" not in metadata
    with pytest.raises(TypeError):
        metadata["new"] = 1  # type: ignore[index]


# The object


def test_equality_and_hash(small: Tokenizer) -> None:
    same, other = Tokenizer.from_gguf(GGUF), Tokenizer.builtin("bpe")
    assert small == same == copy.copy(small) == copy.deepcopy(small)
    assert hash(small) == hash(same)
    assert {"bpe", "263"} <= set(re.findall(r"\w+", repr(small)))
    assert len({small, same, other}) == 2
    assert small != other
    assert small != "small"


def changed(**changes: Any) -> Tokenizer:
    vocab = small_vocab()
    for name, value in changes.items():
        setattr(vocab, name, value(getattr(vocab, name)) if callable(value) else value)
    return Tokenizer.from_gguf(vocab.gguf())


def test_quantizations_of_a_model_are_equal(small: Tokenizer) -> None:
    """What does not change the tokenizer does not change its identity."""
    metadata = {"general.file_type": 7, "general.quantization_version": 2} | small_vocab().metadata()
    metadata |= {"general.name": "other", "general.architecture": "qwen2", "qwen2.block_count": 3}
    data = bytearray(write(dict(reversed(metadata.items()))))
    data[8] = 1  # it declares a tensor
    other = Tokenizer.from_gguf(bytes(data))
    assert other.metadata != small.metadata
    assert other == small
    assert hash(other) == hash(small)
    overridden = Tokenizer.from_gguf(GGUF, overrides={"tokenizer.ggml.add_bos_token": True, "general.name": "another"})
    assert overridden == small


DIFFERENT: dict[str, Callable[[], Tokenizer]] = {
    "a text": lambda: changed(texts=lambda texts: [*texts[:-1], b"<uses>"]),
    "a score": lambda: changed(scores=lambda scores: [*scores[:-1], 1.0]),
    "a type": lambda: changed(types=lambda types: [*types[:-1], int(TokenType.CONTROL)]),
    "a merge": lambda: changed(merges=[*MERGES[:-1], b"h ello"]),
    "the order of merges": lambda: changed(merges=MERGES[::-1]),
    "no merges": lambda: changed(merges=[]),
    "merges cut elsewhere": lambda: changed(merges=[b"l lh", b" e", *MERGES[2:]]),
    "the pre-tokenizer": lambda: changed(pre="qwen2"),
    "BOS": lambda: changed(bos=261),
    "a flag": lambda: changed(add_eos=True),
    "a model with separate rules": lambda: changed(architecture="jina-bert-v3", texts=with_mask),
}


def with_mask(texts: list[bytes]) -> list[bytes]:
    return [*texts[:-1], b"<mask>"]


@pytest.mark.parametrize("name", DIFFERENT)
def test_other_tokenizers_are_different(small: Tokenizer, name: str) -> None:
    other = DIFFERENT[name]()
    assert other != small
    assert hash(other) != hash(small)
    if "rules" in name:
        assert other != changed(texts=with_mask)


def test_immutable(small: Tokenizer) -> None:
    for thing, name in ((small, "vocab"), (small, "new"), (small.vocab, "bos_id"), (small.vocab[0], "text")):
        with pytest.raises(AttributeError):
            setattr(thing, name, 1)
    # One class without `__slots__` would give it a `__dict__`, and make each of its calls slower.
    assert not hasattr(small, "__dict__")


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_pickle(builtin: Tokenizer, protocol: int) -> None:
    again = pickle.loads(pickle.dumps(builtin, protocol))
    assert again == builtin
    assert again.encode(TEXT) == builtin.encode(TEXT)


def test_pickle_needs_no_file(tmp_path: Path, small: Tokenizer) -> None:
    path = tmp_path / "gone.gguf"
    path.write_bytes(GGUF)
    pickled = pickle.dumps(Tokenizer.from_gguf(path, overrides={"tokenizer.ggml.add_bos_token": False}))
    path.unlink()
    code = "import pickle, sys; print(pickle.load(sys.stdin.buffer).encode('hello'))"
    result = subprocess.run([sys.executable, "-c", code], input=pickled, capture_output=True, check=True)
    assert result.stdout.split() == [b"[%d]" % HELLO]


@pytest.mark.parametrize("limit", [0, 1, 1 << 14, 1 << 20, 2**63 - 1])
def test_ids_are_the_same_with_any_cache_limit(builtin: Tokenizer, limit: int) -> None:
    texts = [" ".join(f"{TEXT[at:]}{n}" for at in range(len(TEXT))) for n in range(20)]
    expected = [builtin.encode(text) for text in texts]
    default = ggtok.cache_limit()
    try:
        ggtok.set_cache_limit(limit)
        assert ggtok.cache_limit() == limit
        for _ in range(2):
            assert [builtin.encode(text) for text in texts] == expected
            assert builtin.encode_batch(texts, threads=2).tolist() == expected
    finally:
        ggtok.set_cache_limit(default)


def test_cache_limit_refuses_other_values() -> None:
    for number in (-1, 2**64, -(10**30)):
        with pytest.raises(GgtokError, match="num_bytes must be at least 0"):
            ggtok.set_cache_limit(number)
    with pytest.raises(TypeError):
        ggtok.set_cache_limit("1 MiB")  # type: ignore[arg-type]


@pytest.mark.parametrize("call", ["encode_array", "count", "encode_batch"])
def test_the_interpreter_runs_on_meanwhile(small: Tokenizer, call: str) -> None:
    text = TEXT * 500_000
    argument: Any = [text] if call == "encode_batch" else text
    worker = threading.Thread(target=getattr(small, call), args=(argument,))
    steps = 0
    worker.start()
    while worker.is_alive():
        steps += 1
    worker.join()
    # With the lock held this thread would come to a handful of steps before and after the call.
    assert steps > 1_000


def test_import_is_light() -> None:
    code = "import sys, ggtok; print(sorted({'numpy', 'jinja2', 'gguf', 'argparse'} & sys.modules.keys()))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_opening_and_encoding_load_no_part() -> None:
    code = "import sys, ggtok; ggtok.Tokenizer.builtin('bpe').encode('a'); print(*(name for name in sys.modules))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    names = result.stdout.split()
    loaded = {name.split(".")[1] for name in names if name.startswith("ggtok.")}
    assert loaded == {"_chat_calls", "_facade", "_ggtok", "errors", "tokenizer"}
    assert not {"logging", "difflib", "traceback"} & {*names}


def test_train_and_edit_make_tokenizers(tmp_path: Path) -> None:
    trained = ggtok.train(["low lower"] * 9, kind="bpe", vocab_size=260)
    trained.to_gguf(tmp_path / "a.gguf")
    edited = ggtok.edit(tmp_path / "a.gguf", tmp_path / "b.gguf", name="b")
    assert type(trained) is type(edited) is type(ggtok.corpus.TableEncoder("bpe").tokenizer) is Tokenizer
    assert next(iter(inspect.signature(ggtok.train).parameters)) == "texts"


def test_everything_public_is_there() -> None:
    for name in ggtok.__all__:
        assert getattr(ggtok, name) is not None
    assert issubclass(GgtokError, ValueError)
    errors = {name for name, value in vars(ggtok.errors).items() if isinstance(value, type)}
    assert {name for name in errors if getattr(ggtok, name) is getattr(ggtok.errors, name)} == errors


def test_errors_are_there_after_the_import() -> None:
    subprocess.run([sys.executable, "-c", "import ggtok; ggtok.errors.GgtokError; ggtok.CorpusError"], check=True)
