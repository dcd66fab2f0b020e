"""Batches: counts and texts back, padding, rows, Arrow, buffers and DLPack, over every kind of vocabulary."""

from __future__ import annotations

import array
import gc
import pickle
import re
from typing import Any

import ggtok
import nanoarrow as na  # type: ignore[import-untyped]
import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from conftest import TOKENIZERS, every_kind
from ggtok import GgtokError, TokenIndexError, Tokenizer
from hypothesis import strategies as st
from oracles import strategies

BPE = Tokenizer.builtin("bpe")
TEXTS = ["one text", None, "and another \u00e9 which is longer", "", "x" * 100, None]
BINARY = [None if text is None else text.encode() for text in TEXTS]
EXPECTED = [None if text is None else BPE.encode(text) for text in TEXTS]
COLUMNS: dict[str, Any] = {
    "utf8": pa.array(TEXTS),
    "large_utf8": pa.array(TEXTS, pa.large_string()),
    "string_view": pa.array(TEXTS, pa.string_view()),
    "binary": pa.array(BINARY, pa.binary()),
    "large_binary": pa.array(BINARY, pa.large_binary()),
    "binary_view": pa.array(BINARY, pa.binary_view()),
    "dictionary": pa.array(TEXTS).dictionary_encode(),
    "dictionary of large_utf8": pa.array(TEXTS, pa.large_string()).dictionary_encode(),
    "dictionary with nulls": pa.DictionaryArray.from_arrays(
        pa.array([0, 1, 2, 3, 4, None], pa.int8()), pa.array(TEXTS[:5], pa.string_view())
    ),
    "chunks": pa.chunked_array([TEXTS[:2], [], TEXTS[2:]], pa.string()),
    "chunks of dictionaries": pa.chunked_array(
        [pa.array(TEXTS[:3]).dictionary_encode(), pa.array(TEXTS[3:]).dictionary_encode()]
    ),
    "polars": pl.Series(TEXTS),
    "polars categorical": pl.Series(TEXTS, dtype=pl.Categorical),
    "polars binary": pl.Series(BINARY),
    "polars column": pl.DataFrame({"text": TEXTS, "n": range(6)})["text"],
    "nanoarrow": na.Array(TEXTS, na.string()),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_columns(name: str) -> None:
    """A null is an empty row and null again; an empty text is neither."""
    column = COLUMNS[name]
    batch = BPE.encode_batch(column)
    assert batch.tolist() == [ids or [] for ids in EXPECTED]
    assert batch.null_count == 2
    assert batch.to_arrow().to_pylist() == EXPECTED
    assert pl.Series(batch).to_list() == EXPECTED
    assert BPE.count_batch(column) == [len(ids or []) for ids in EXPECTED]
    assert batch[1:4].to_arrow().to_pylist() == EXPECTED[1:4]
    assert batch[::-2].to_arrow().to_pylist() == EXPECTED[::-2]
    assert batch[2:4].null_count == 0
    assert BPE.decode_batch(batch) == [text or "" for text in TEXTS]


@pytest.mark.parametrize("name", [name for name in COLUMNS if name != "nanoarrow"])
def test_slices_of_columns(name: str) -> None:
    column = COLUMNS[name]
    for start in range(7):
        for length in range(7 - start):
            part = column.slice(start, length)
            assert BPE.encode_batch(part).to_arrow().to_pylist() == EXPECTED[start : start + length]


def test_a_null_has_no_tokens_where_an_empty_text_has_some() -> None:
    spm = Tokenizer.builtin("spm")
    assert spm.encode("") != []
    batch = spm.encode_batch(pa.array(["", None, "a"]))
    assert batch.tolist() == [spm.encode(""), [], spm.encode("a")]
    assert spm.count_batch(pa.array(["", None, "a"])) == [len(ids) for ids in batch.tolist()]
    assert batch != spm.encode_batch(["", "", "a"])
    assert batch == spm.encode_batch(pl.Series(["", None, "a"]))
    nothing = BPE.encode_batch(pa.nulls(3))
    assert (nothing.null_count, nothing.tolist(), nothing.to_arrow().to_pylist()) == (3, [[]] * 3, [None] * 3)


class Given:
    """An object with the protocols and nothing else."""

    def __init__(self, column: Any) -> None:
        self.column = column

    def __arrow_c_array__(self, requested_schema: object = None) -> Any:
        return self.column.__arrow_c_array__(requested_schema)


def test_control_tokens_are_text_unless_asked_for() -> None:
    text = "a<|im_end|>"
    assert TOKENIZERS["bpe"].encode_batch([text]).tolist() == [TOKENIZERS["bpe"].encode(text)]
    parsed = TOKENIZERS["bpe"].encode_batch([text], parse_special=True).tolist()
    assert parsed == [TOKENIZERS["bpe"].encode(text, parse_special=True)] != [TOKENIZERS["bpe"].encode(text)]


def test_only_the_protocol_is_used() -> None:
    assert BPE.encode_batch(Given(pa.array(["a", "b"]))).tolist() == BPE.encode_batch(["a", "b"]).tolist()


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (pa.array([1, 2]), "integers"),
        (pa.array([1.5]), "floats"),
        (pa.array([True]), "booleans"),
        (pa.array([["a"]]), "decode_batch"),
        (pa.table({"a": ["x"]}), "choose one column"),
        (pl.DataFrame({"a": ["x"]}), "choose one column"),
        (pl.Series([1, 2]), "integers"),
        (pa.array([1, 2]).dictionary_encode(), "integers"),
        (pa.array([b"ab"], pa.binary(2)), "binary of one width"),
        (pa.RunEndEncodedArray.from_arrays([2], ["a"]), "runs"),
    ],
)
def test_columns_of_other_things(column: Any, message: str) -> None:
    for call in (BPE.encode_batch, BPE.count_batch):
        with pytest.raises(TypeError, match=rf"^an Arrow column of texts must hold strings or binary, not .*{message}"):
            call(column)


def int32s(*numbers: int) -> bytes:
    return array.array("i", numbers).tobytes()


def with_offsets(*offsets: int) -> Any:
    return na.c_array_from_buffers(
        na.string(), len(offsets) - 1, [None, int32s(*offsets), b"abc"], validation_level="none"
    )


def with_views(*views: tuple[int, int, int, int]) -> Any:
    """A column of views into one buffer of 20 bytes; they are sound until the column is made."""
    memory = bytearray(16 * len(views))
    column = pa.Array.from_buffers(pa.string_view(), len(views), [None, pa.py_buffer(memory), pa.py_buffer(b"x" * 20)])
    memory[:] = b"".join(int32s(*view) for view in views)
    return column


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: with_offsets(0, 2, 1, 3), "text 1: .*offsets descend"),
        (lambda: with_offsets(-1, 2, 3), "text 0: .*offsets descend"),
        (lambda: with_offsets(0, 1, -3), "text 1: .*offsets descend"),
        (lambda: with_views((1, 97, 0, 0), (99, 0, 0, 0)), "text 1: .*view is outside"),
        (lambda: with_views((20, 0, 0, 1)), "text 0: .*view is outside"),
        (lambda: with_views((20, 0, 1, 0)), "text 0: .*view is outside"),
        (lambda: with_views((20, 0, 0, -1)), "text 0: .*view is outside"),
        (lambda: with_views((-1, 0, 0, 0)), "text 0: .*view is outside"),
    ],
)
def test_damaged_columns(make: Any, message: str) -> None:
    with pytest.raises(GgtokError, match=message):
        BPE.encode_batch(Given(make()))


def test_sound_columns_made_like_the_damaged_ones() -> None:
    assert BPE.encode_batch(with_offsets(0, 1, 1, 3)).tolist() == [BPE.encode("a"), [], BPE.encode("bc")]
    assert BPE.encode_batch(with_views((1, 97, 0, 0), (20, 0, 0, 0))).tolist() == [[64], BPE.encode("x" * 20)]


def test_damaged_dictionaries() -> None:
    column = pa.DictionaryArray.from_arrays(pa.array([0, 9], pa.int32()), pa.array(["a"]), safe=False)
    with pytest.raises(GgtokError, match=r"text 1: .*index is outside the dictionary"):
        BPE.encode_batch(column)


def test_a_column_beyond_memory() -> None:
    with pytest.raises(MemoryError, match=r"a column of 1125899906842624 rows does not fit"):
        BPE.encode_batch(na.c_array_from_buffers(na.null(), 2**50, [], validation_level="none"))


@pytest.mark.parametrize("pair", [None, 7, (), (1, 2), "ab", (None, None, None)])
def test_lying_protocols(pair: Any) -> None:
    lying = type("Lying", (), {"__arrow_c_array__": lambda self: pair})()
    with pytest.raises((TypeError, IndexError)):
        BPE.encode_batch(lying)
    lying = type("Lying", (), {"__arrow_c_stream__": lambda self: pair})()
    with pytest.raises(TypeError):
        BPE.encode_batch(lying)


def test_a_capsule_is_taken_once() -> None:
    pair = pa.array(["a"]).__arrow_c_array__()
    given = type("Given", (), {"__arrow_c_array__": lambda self: pair})()
    assert BPE.encode_batch(given).tolist() == [[64]]
    with pytest.raises(GgtokError, match=r"was taken before"):
        BPE.encode_batch(given)


def test_a_stream_that_fails() -> None:
    def parts() -> Any:
        yield pa.record_batch({"a": ["x"]})
        raise RuntimeError("mine")

    class Failing:
        def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
            schema = pa.schema({"a": pa.string()})
            return pa.RecordBatchReader.from_batches(schema, parts()).__arrow_c_stream__()

    with pytest.raises(GgtokError, match=r"the Arrow stream of the texts failed: .*mine"):
        BPE.encode_batch(Failing())


def test_errors_of_the_protocol_pass_through() -> None:
    def fail(self: object) -> Any:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        BPE.encode_batch(type("Failing", (), {"__arrow_c_array__": fail})())


def test_without_its_dependency_an_object_is_iterated() -> None:
    """As pandas without pyarrow."""

    class Column(list[str]):
        def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
            raise ImportError("pyarrow")

    assert BPE.encode_batch(Column(["a", "b"])).tolist() == [[64], [65]]


def test_memory_is_freed() -> None:
    """Of columns that were read and of batches that were given away, also by parts."""
    pa.default_memory_pool().release_unused()
    before = pa.total_allocated_bytes()
    column = pa.array(["some text"] * 1000, pa.string_view())
    table = BPE.encode_batch(column).to_arrow()
    child = table.values
    expected = child.to_pylist()
    del table, column
    gc.collect()
    assert child.to_pylist() == expected
    del child
    gc.collect()
    assert pa.total_allocated_bytes() == before
    BPE.encode_batch(["a"]).__arrow_c_array__()  # these capsules are dropped
    BPE.encode_batch(["a"]).buffers()[0].__dlpack__()
    BPE.encode_batch(["a"]).buffers()[0].__dlpack__(max_version=(1, 0))


def test_arrow_types() -> None:
    batch = BPE.encode_batch(["a b", "c"])
    assert batch.to_arrow().type == pa.large_list(pa.int32())
    assert pa.array(batch, pa.list_(pa.int32())).type == pa.list_(pa.int32())
    assert pa.array(batch, pa.list_(pa.int32())).to_pylist() == batch.tolist()
    assert pa.DataType._import_from_c_capsule(batch.__arrow_c_schema__()) == pa.large_list(pa.int32())
    assert na.Array(batch).to_pylist() == batch.tolist()
    batch.to_arrow().validate(full=True)
    BPE.encode_batch([]).to_arrow().validate(full=True)
    ids = np.asarray(batch.to_arrow().values)
    assert np.shares_memory(ids, batch.ids)
    with pytest.raises((TypeError, ValueError)):
        batch.__arrow_c_array__(7)


# Rows


def test_numpy_texts() -> None:
    for texts in (np.array(["a", "bc"]), np.array(["a", "bc"], object), np.array([b"a", b"bc"])):
        assert BPE.encode_batch(texts).tolist() == [BPE.encode("a"), BPE.encode("bc")]
        assert BPE.count_batch(texts) == [1, 1]
    with pytest.raises(TypeError, match=r"^text 1: a text must be str or bytes-like, not float$"):
        BPE.encode_batch(np.array(["a", float("nan")], object))
    with pytest.raises(TypeError):
        BPE.encode_batch(np.array("a"))


def test_pickle() -> None:
    batch = BPE.encode_batch(pa.array(TEXTS))
    for part in (batch, batch[1:5], batch[::-1], batch[:0]):
        again = pickle.loads(pickle.dumps(part))
        assert again == part
        assert again.to_arrow().to_pylist() == part.to_arrow().to_pylist()
        assert again.pad()[0].tolist() == part.pad()[0].tolist()


@pytest.mark.parametrize(
    "state",
    [(b"", b"", None), (b"1234", bytes(8), None), (b"", bytes(16), b""), (bytes(4), bytes(8) + b"\xff" * 8, None)],
)
def test_damaged_pickles(state: Any) -> None:
    with pytest.raises(ValueError, match=r"do not fit the ids"):
        ggtok._ggtok.FlatBatch(*state)


def test_the_memory_is_shared_and_read_only() -> None:
    batch = BPE.encode_batch(["a b c", "d e"])
    ids, offsets = batch.buffers()
    for view in (np.asarray(ids), np.from_dlpack(ids), batch[0], batch[1:].ids):
        assert np.shares_memory(view, batch.ids)
        assert not view.flags.writeable
    assert (memoryview(ids).format, memoryview(ids).readonly) == ("i", True)
    assert np.asarray(offsets).dtype == batch.offsets.dtype == np.int64
    assert list(ids) == ids.tolist() == batch.ids.tolist()
    assert (len(ids), ids[0], ids[-1], repr(ids)) == (5, *batch.ids[[0, -1]].tolist(), "<ggtok.Buffer of 5 int32>")
    assert bytes(ids) == batch.ids.tobytes()
    with pytest.raises(IndexError):
        ids[5]
    first = batch[0]
    expected = first.tolist()
    del batch, ids, offsets, view
    gc.collect()
    assert first.tolist() == expected


def test_dlpack() -> None:
    ids, _ = BPE.encode_batch(["a b c"]).buffers()
    assert ids.__dlpack_device__() == (1, 0)
    assert "dltensor_versioned" in repr(ids.__dlpack__(max_version=(1, 0)))
    assert '"dltensor"' in repr(ids.__dlpack__())
    copied = np.from_dlpack(ids, copy=True)
    assert copied.flags.writeable
    assert not np.shares_memory(copied, np.asarray(ids))
    assert copied.tolist() == memoryview(ids).tolist()
    wrong: list[dict[str, Any]] = [{"stream": 1}, {"dl_device": (2, 0)}, {"copy": False}]
    for arguments in wrong:
        with pytest.raises((BufferError, RuntimeError)):
            ids.__dlpack__(**arguments)


def test_dlpack_of_an_old_reader() -> None:
    """A reader that knows no read-only memory is given a copy, which it may write to."""

    class Old:
        def __init__(self, buffer: Any) -> None:
            self.buffer = buffer

        def __dlpack__(self, **_: object) -> Any:
            return self.buffer.__dlpack__()

        def __dlpack_device__(self) -> Any:
            return self.buffer.__dlpack_device__()

    batch = BPE.encode_batch(["a b c"])
    for buffer in batch.buffers():
        taken = np.from_dlpack(Old(buffer))
        assert taken.tolist() == memoryview(buffer).tolist()
        assert not np.shares_memory(taken, np.asarray(buffer))


# Padding


def test_padding() -> None:
    batch = BPE.encode_batch(["one text", "What is LoRA?", ""])
    ids, mask = batch.pad()
    assert (ids.dtype.name, mask.dtype.name, ids.shape, mask.shape) == ("int32", "bool", (3, 6), (3, 6))
    assert (ids[mask] == batch.ids).all()
    assert set(ids[~mask].tolist()) == {BPE.vocab.pad_id}
    assert (batch.attention_mask == mask).all()
    assert ids.flags.writeable
    assert mask.flags.writeable
    assert batch.pad(10)[0].shape == (3, 10)
    assert batch.pad(multiple_of=8)[0].shape == (3, 8)
    assert batch.pad(9, multiple_of=8)[0].shape == (3, 16)
    assert batch.pad(value=-100)[0][2].tolist() == [-100] * 6
    assert batch.pad(np.int64(7))[0].shape == (3, 7)
    assert BPE.encode_batch([]).pad()[0].shape == (0, 0)
    assert BPE.encode_batch([]).pad(5)[0].shape == (0, 5)


def test_padding_refuses() -> None:
    batch = BPE.encode_batch(["a", "What is LoRA?"])
    cases: list[tuple[type[Exception], str, dict[str, Any]]] = [
        (GgtokError, "^text 1 has 6 tokens, which is more than the length 5$", {"length": 5}),
        (GgtokError, "^length must be at least 0, not -1$", {"length": -1}),
        (GgtokError, "^multiple_of must be at least 1, not 0$", {"multiple_of": 0}),
        (GgtokError, '^side must be "left" or "right", not \'up\'$', {"side": "up"}),
        (GgtokError, "^value must fit into 32 bits", {"value": 2**31}),
        (GgtokError, "ids each are too large$", {"length": 2**70}),
        (GgtokError, "ids each are too large$", {"multiple_of": 2**31}),
        (TypeError, "", {"length": "5"}),
        (TypeError, "", {"value": 1.5}),
        (TypeError, "", {"multiple_of": 2.0}),
    ]
    for kind, message, arguments in cases:
        with pytest.raises(kind, match=message or None):
            batch.pad(**arguments)
    with pytest.raises(GgtokError, match=r"^the vocabulary has no padding token: pass the id to fill with as value=$"):
        Tokenizer.builtin("spm").encode_batch(["a"]).pad()


# Every kind of vocabulary, against one text at a time


@pytest.mark.filterwarnings("ignore::ggtok.TokenizerWarning")
@every_kind
def test_batches_are_their_texts(kind: str, data: st.DataObject) -> None:
    vocab, tokenizer = strategies.drawn(kind, data)
    rows = data.draw(st.lists(st.none() | strategies.texts(vocab), max_size=6))
    options: Any = {"add_special": data.draw(st.booleans()), "parse_special": data.draw(st.booleans())}
    expected = [None if text is None else tokenizer.encode(text, **options) for text in rows]
    full = [ids or [] for ids in expected]

    column = pa.array(rows, data.draw(st.sampled_from([pa.binary(), pa.large_binary(), pa.binary_view()])))
    if data.draw(st.booleans()):
        column = column.dictionary_encode() if column.type != pa.binary_view() else column
    start = data.draw(st.integers(0, len(rows)))
    batch = tokenizer.encode_batch(column, **options, threads=2)
    assert batch.to_arrow().to_pylist() == expected
    assert tokenizer.encode_batch(column.slice(start), **options).to_arrow().to_pylist() == expected[start:]
    assert tokenizer.count_batch(column, **options) == [len(ids) for ids in full]
    texts = [text for text in rows if text is not None]
    assert tokenizer.encode_batch(iter(texts), **options).tolist() == [ids for ids in expected if ids is not None]
    assert tokenizer.count_batch(texts, **options) == [len(ids) for ids in expected if ids is not None]

    if any(id < 0 for ids in full for id in ids):
        return  # unknown text without an unknown token
    names = ("remove_special", "unparse_special", "clean_spaces")
    decoding: dict[str, Any] = {name: data.draw(st.booleans()) for name in names}
    back = [tokenizer.decode(ids, **decoding) for ids in full]
    for given_rows in (batch, full, map(tuple, full), [np.array(ids, np.int32) for ids in full]):
        assert tokenizer.decode_batch(given_rows, **decoding) == back


# Decoding


def test_decode_batch() -> None:
    assert BPE.decode_batch([]) == []
    assert BPE.decode_batch(np.array([[9713, 5981], [78, 30]])) == ["What is", "o?"]
    half = [BPE.vocab.index("\u00c3")]
    assert BPE.decode_batch([[9713], half]) == ["What", "\ufffd"]
    assert BPE.decode_batch([half], errors="ignore") == [""]


def test_decode_batch_on_several_threads() -> None:
    rows = [list(range(start, start + start % 40)) for start in range(3000)]
    texts = [BPE.decode(row) for row in rows]
    unknown = [len(BPE.vocab)]
    for threads in (1, 2, 5, None):
        assert BPE.decode_batch(rows, threads=threads) == texts
        with pytest.raises(IndexError, match="row 2000: "):
            BPE.decode_batch([*rows[:2000], unknown, *rows[2001:2900], unknown], threads=threads)


def test_decode_batch_names_the_row() -> None:
    half = [BPE.vocab.index("\u00c3")]
    cases: list[tuple[type[Exception], str, Any]] = [
        (TokenIndexError, "^row 1: token id 13000 is outside", [[1], [13000]]),
        (TokenIndexError, "^row 2: token id -1 is outside", [[1], [2], (-1,)]),
        (TypeError, "^row 1: ", [[1], ["a"]]),
        (TypeError, "^row 1: ", [[1], 7]),
        (TypeError, "^row 0: a row must be an iterable of ids, not str$", ["ab"]),
        (TypeError, "^row 0: a row must be an iterable of ids, not bytes$", [b"ab"]),
        (TypeError, "", 7),
        (TypeError, "", None),
    ]
    for kind, message, rows in cases:
        with pytest.raises(kind, match=message or None):
            BPE.decode_batch(rows)
    with pytest.raises(UnicodeDecodeError, match=r"\(row 1\)"):
        BPE.decode_batch([[1], half], errors="strict")
    with pytest.raises(LookupError):
        BPE.decode_batch([half], errors="no such handler")
    batch = BPE.encode_batch(["one text"])
    with pytest.raises(TokenIndexError, match=r"^row 0: token id 6053 is outside the vocabulary of 4 tokens$"):
        tiny().decode_batch(batch)


def tiny() -> Tokenizer:
    from oracles.gguf_vocab import Vocab

    return Tokenizer.from_gguf(Vocab("llama", [b"<unk>", b"<s>", b"</s>", b"a"], [2, 3, 3, 1], [0.0] * 4).gguf())


def test_version() -> None:
    from importlib.metadata import version

    assert ggtok.__version__ == version("ggtok")


# Truncated rows


@every_kind
def test_rows_are_those_of_truncated_texts(kind: str, data: st.DataObject) -> None:
    vocab, tok = strategies.drawn(kind, data)
    texts = data.draw(st.lists(strategies.texts(vocab), max_size=5))
    flags: dict[str, Any] = {name: data.draw(st.booleans()) for name in ("add_special", "parse_special")}
    side: Any = data.draw(st.sampled_from(["right", "left", "middle"]))
    max_tokens = data.draw(st.integers(1, 20))
    try:
        expected = [tok.encode(tok.truncate(text, max_tokens, side=side, **flags), **flags) for text in [*texts, b""]]
    except GgtokError as error:
        with pytest.raises(GgtokError, match=re.escape(str(error))):
            tok.encode_batch(texts, max_tokens=max_tokens, side=side, **flags)
        return
    assert all(len(row) <= max_tokens for row in expected)
    batch = tok.encode_batch(texts, max_tokens=max_tokens, side=side, **flags)
    assert batch.tolist() == expected[:-1]
    assert tok.encode_batch([], max_tokens=max_tokens, side=side, **flags).tolist() == []


@pytest.mark.parametrize("side", ["right", "left", "middle"])
@pytest.mark.parametrize("name", ["bpe", "spm", "unigram", "wordpiece"])
def test_truncated_rows_of_long_texts(name: str, side: Any) -> None:
    """On several threads, in all forms, and with texts of which only the ends are read."""
    tok = Tokenizer.builtin(name)
    texts = [f"{number} na\u00efve caf\u00e9 \u4e2d\u6587 text. " * (number**2 % 700) for number in range(300)]
    expected = [tok.encode(tok.truncate(text, 30, side=side)) for text in texts]
    for threads in (1, 3):
        batch = tok.encode_batch(texts, max_tokens=30, side=side, threads=threads)
        assert batch.tolist() == expected
        assert [row.tolist() for row in batch] == expected
        assert batch.to_arrow().to_pylist() == expected
        assert len(memoryview(batch.buffers()[0])) == sum(map(len, expected))
    column = pa.array([*texts, None])
    assert tok.encode_batch(column, max_tokens=30, side=side).to_arrow().to_pylist() == [*expected, None]
    assert tok.encode_batch(texts, max_tokens=2**70, side=side) == tok.encode_batch(texts)


def test_bad_truncation() -> None:
    for arguments, message in (
        ({"side": "top"}, "side must be 'right', 'left' or 'middle', not 'top'"),
        ({"max_tokens": 0}, "max_tokens must be at least 1, not 0"),
        ({"max_tokens": 1}, "^max_tokens is 1, but 2 tokens are added to every text"),
    ):
        with pytest.raises(GgtokError, match=message):
            Tokenizer.builtin("wordpiece").encode_batch(["a"], **arguments)
    with pytest.raises(TypeError):
        BPE.encode_batch(["a"], max_tokens="3")  # type: ignore[arg-type]
