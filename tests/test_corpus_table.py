"""Tables of texts and conversations to tables of tokens: `encode_table` and what the builder calls."""

from __future__ import annotations

import io
import json
from itertools import pairwise
from typing import Any

import ggtok
import numpy as np
import polars
import pyarrow as pa
import pytest
from conftest import BUILTIN, TOKENIZERS
from ggtok.corpus import lists
from ggtok.corpus.blocks import MASK, ROW, BadRow, Block
from ggtok.corpus.settings import Encoding
from ggtok.corpus.table import encode_block, encode_table, granted_threads
from ggtok.errors import ChatTemplateError, CorpusError
from hypothesis import given
from hypothesis import strategies as st

BPE, SPM = TOKENIZERS["bpe"], TOKENIZERS["spm"]
TEXTS = ["one text", None, "What is LoRA?", "", "知之為知之", "a" * 40]
TYPES = (
    *(pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(), pa.binary_view()),
    *(pa.dictionary(pa.int8(), pa.string()), pa.dictionary(pa.int32(), pa.large_binary())),
)
TEMPLATE = (
    "{% for m in messages %}{% if m.role == 'robot' %}{{ raise_exception('no robots') }}{% endif %}"
    "<|im_start|>{{ m.role }}: {{ m.content }}<|im_end|>{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant:{% endif %}"
)
CHAT = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello, Ann"}]
ROBOT = [{"role": "robot", "content": "Hi"}]


@pytest.fixture(scope="module")
def chatty() -> ggtok.Tokenizer:
    return BPE.to_gguf(io.BytesIO(), chat_template=TEMPLATE)


def expected(tokenizer: ggtok.Tokenizer, **options: Any) -> list[list[int] | None]:
    return [None if text is None else tokenizer.encode(text, **options) for text in TEXTS]


def ids_of(table: pa.Table) -> list[list[int] | None]:
    return table.column("input_ids").to_pylist()  # type: ignore[no-any-return]


# Texts


@pytest.mark.parametrize("type", TYPES, ids=str)
@pytest.mark.parametrize("name", BUILTIN)
def test_every_type_of_column(name: str, type: pa.DataType) -> None:
    tokenizer = TOKENIZERS[name]
    plain = pa.array([None if text is None else text.encode() for text in TEXTS], pa.binary())
    array = plain.cast(type.value_type).dictionary_encode() if pa.types.is_dictionary(type) else plain.cast(type)
    column = pa.chunked_array([array, array.slice(0, 0), array.slice(2, 3)])
    rows = column.length()
    table = pa.table({"n": range(rows), "text": column, "other": pa.nulls(rows)}).replace_schema_metadata({"a": "b"})

    result = encode_table(table, tokenizer)
    ids = expected(tokenizer)
    assert ids_of(result) == ids + ids[2:5]
    assert result.column("input_ids").type == pa.list_(pa.int32())
    assert result.drop_columns("input_ids").equals(table, check_metadata=True)
    result.validate(full=True)


def test_other_tables() -> None:
    batch = pa.RecordBatch.from_pydict({"text": TEXTS})
    frame = polars.DataFrame({"text": TEXTS})
    for table in (batch, frame, pa.RecordBatchReader.from_batches(batch.schema, [batch, batch])):
        assert ids_of(encode_table(table, SPM))[: len(TEXTS)] == expected(SPM)
    assert ids_of(encode_table(batch.slice(2, 2), SPM)) == expected(SPM)[2:4]
    assert encode_table(batch.slice(0, 0), SPM).num_rows == 0
    assert encode_table(pa.schema({"text": pa.string()}).empty_table(), SPM).column("input_ids").num_chunks == 0
    assert ids_of(encode_table(pa.table({"text": pa.nulls(2)}), SPM)) == [None, None]
    with pytest.raises(TypeError, match="expected an Arrow table or record batch, not list"):
        encode_table(TEXTS, SPM)


def test_the_ids_are_not_copied() -> None:
    rows = pa.array(SPM.encode_batch(["a text"] * 100))
    (short,) = lists.short([rows], pa.int32()).chunks
    assert short.type == pa.list_(pa.int32())
    assert short.values.buffers()[1].address == rows.values.buffers()[1].address


@given(
    texts=st.lists(st.none() | st.text(max_size=20)),
    cuts=st.sets(st.integers(0, 30)),
    most=st.none() | st.integers(1, 12),
    special=st.booleans(),
    append=st.booleans(),
    too_long=st.sampled_from(["cut", "drop"]),
    name=st.sampled_from(["spm", "bpe"]),
)
def test_against_a_loop(
    texts: list[str | None], cuts: set[int], most: int | None, special: bool, append: bool, too_long: Any, name: str
) -> None:
    tokenizer = TOKENIZERS[name]
    wanted: list[tuple[int, list[int] | None]] = []
    num_long = 0
    for row, text in enumerate(texts, 1):
        end: list[Any] = [tokenizer.vocab.eos_id] * append
        ids = None if text is None else tokenizer.encode(text, add_special=special) + end
        is_long = ids is not None and most is not None and len(ids) > most
        num_long += is_long
        if not is_long or too_long == "cut":
            wanted.append((row, None if ids is None else ids[:most]))

    places = sorted({0, len(texts), *(cut for cut in cuts if cut < len(texts))})
    pieces = [pa.array(texts[a:b], pa.string()) for a, b in pairwise(places)]
    table = pa.table({"text": pa.chunked_array(pieces, pa.string()), ROW: pa.array(range(1, len(texts) + 1))})
    encoding = Encoding("text", False, special, False, append, most, too_long)
    encoded = encode_block(Block(table, [BadRow("x", 99, "bad")], 7), tokenizer, encoding, 1)
    assert list(zip(encoded.table.column(ROW).to_pylist(), ids_of(encoded.table), strict=True)) == wanted
    assert encoded.num_long == num_long
    assert encoded.bad == [BadRow("x", 99, "bad")]


def test_eos_is_appended_once() -> None:
    table, eos = pa.table({"text": TEXTS}), SPM.vocab.eos_id
    adds = SPM.to_gguf(io.BytesIO(), flags={"add_eos": True})
    assert ids_of(encode_table(table, adds, append_eos=True)) == expected(adds)
    for tokenizer, special in ((SPM, True), (SPM, False), (adds, False)):
        ids = [each if each is None else [*each, eos] for each in expected(tokenizer, add_special=special)]
        assert ids_of(encode_table(table, tokenizer, append_eos=True, add_special=special)) == ids
    with pytest.raises(CorpusError, match="append_eos: the vocabulary has no EOS"):
        encode_table(table, TOKENIZERS["wordpiece"], append_eos=True)


@pytest.mark.parametrize("type", TYPES, ids=str)
def test_dropping_rows_of_every_type(type: pa.DataType) -> None:
    texts = pa.array(["a", "b b b b b", None, "b b b b b", "c", "d"], pa.string())
    column = texts.dictionary_encode().cast(type) if pa.types.is_dictionary(type) else texts.cast(type)
    table = pa.table({"text": column, "n": range(6)})
    for most, append, rows in ((1, False, [0, 2, 4, 5]), (9, False, [*range(6)]), (1, True, [2])):
        result = encode_table(table, BPE, max_length=most, too_long="drop", append_eos=append)
        assert result["n"].to_pylist() == rows
        assert result["text"].to_pylist() == [column[row].as_py() for row in rows]


def test_parse_special() -> None:
    table = pa.table({"text": ["<|im_end|>"]})
    assert ids_of(encode_table(table, BPE, parse_special=True)) == [[BPE.vocab.id("<|im_end|>")]]
    assert ids_of(encode_table(table, BPE)) == [BPE.encode("<|im_end|>")]


def test_chunks_for_short_offsets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lists, "MOST_IDS", 7)
    column = encode_table(pa.table({"text": TEXTS[:5] * 3}), BPE).column("input_ids")
    assert column.to_pylist() == expected(BPE)[:5] * 3
    sizes = [len(chunk.values) for chunk in column.chunks]
    assert max(sizes) <= 7 < min(first + second for first, second in pairwise(sizes))
    with pytest.raises(CorpusError, match="a document has 12 tokens, and a list holds at most 7"):
        encode_table(pa.table({"text": ["What is LoRA?" * 2, "What is LoRA? " * 2]}), BPE)


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        ({"texts": ["a"], "id": ["b"]}, "no column is called 'text': the nearest is 'texts'"),
        ({"id": ["a"], "body": ["b"]}, "no column is called 'text': there are 'id', 'body'"),
        ({}, "no column is called 'text'"),
        ({"text": [1]}, "column 'text' must hold strings or binary, not int64"),
        ({"text": [["a"]]}, "column 'text' must hold strings or binary, not list<item: string>"),
        ({"text": ["a"], "input_ids": [[1]]}, "the table has a column 'input_ids' already"),
    ],
)
def test_tables_that_do_not_fit(columns: dict[str, Any], problem: str) -> None:
    with pytest.raises(CorpusError) as caught:
        encode_table(pa.table(columns), BPE)
    assert problem in str(caught.value)


def test_two_columns_of_one_name() -> None:
    with pytest.raises(CorpusError, match="2 columns are called 'text'"):
        encode_table(pa.Table.from_arrays([pa.array(["a"])] * 2, ["text", "text"]), BPE)


@pytest.mark.parametrize("options", [{"max_length": 0}, {"max_length": -1}, {"too_long": "wrap"}])
def test_bad_options(options: dict[str, Any]) -> None:
    with pytest.raises(CorpusError, match=next(iter(options))):
        encode_table(pa.table({"text": ["a"]}), BPE, **options)


@pytest.mark.parametrize("bad", range(9))
def test_text_that_is_not_utf8(bad: int) -> None:
    """The first damaged row is named, wherever it is; bytes are encoded as they are."""
    rows = [b"fine"] * 10
    rows[bad], rows[9] = b"caf\xe9", b"\xff"
    binary = pa.chunked_array([pa.array(rows[:4]), pa.array(rows[4:])])
    assert ids_of(encode_table(pa.table({"text": binary}), BPE)) == [BPE.encode(row) for row in rows]
    for raw, type in ((pa.binary(), pa.string()), (pa.large_binary(), pa.large_string())):
        text = pa.chunked_array([chunk.cast(raw).view(type) for chunk in binary.chunks])
        with pytest.raises(CorpusError, match="the text is not UTF-8") as caught:
            encode_table(pa.table({"text": text}), BPE)
        assert (caught.value.source, caught.value.row) == ("column 'text'", bad + 1)


def test_dictionary_with_an_unused_entry_that_is_not_utf8() -> None:
    entries = pa.array([b"fine", b"\xff"]).view(pa.string())
    fine = pa.DictionaryArray.from_arrays(pa.array([0, 0], pa.int8()), entries)
    assert ids_of(encode_table(pa.table({"text": fine}), BPE)) == [BPE.encode("fine")] * 2
    damaged = pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int8()), entries)
    with pytest.raises(CorpusError, match="row 2: the text is not UTF-8"):
        encode_table(pa.table({"text": damaged}), BPE)


# Conversations


@pytest.mark.parametrize("kind", ["json", "bytes", "structs", "large"])
def test_conversations(chatty: ggtok.Tokenizer, kind: str) -> None:
    messages: list[Any] = [CHAT, None, CHAT[:1]]
    columns = {
        "json": pa.array([each and json.dumps(each) for each in messages]),
        "bytes": pa.array([each and json.dumps(each).encode() for each in messages]),
        "structs": pa.array(messages),
        "large": pa.array(messages).cast(pa.large_list(pa.array(messages).type.value_type)),
    }
    result = encode_table(pa.table({"text": columns[kind]}), chatty, messages="text")
    encodings = [each and chatty.encode_chat(each, return_spans=True, add_generation_prompt=False) for each in messages]
    assert ids_of(result) == [each and each.ids for each in encodings]
    assert result.column(MASK).to_pylist() == [each and each.assistant_mask for each in encodings]
    assert result.column(MASK).type == pa.list_(pa.int8())
    own = np.array(ids_of(result)[0])[np.array(result.column(MASK)[0].as_py(), bool)]
    assert chatty.decode(own, unparse_special=True) == " Hello, Ann<|im_end|>"


def test_fields_of_structs_that_are_null_are_absent() -> None:
    template = "{% for m in messages %}{{ m | tojson }}{{ m.tool_calls }}{% endfor %}"
    tokenizer = BPE.to_gguf(io.BytesIO(), chat_template=template)
    function = {"name": "f", "arguments": {"x": 1}}
    calls: Any = [{"type": "function", "function": function, "id": None}]
    messages: list[Any] = [{"role": "user", "content": "Hi"}, {"role": "user", "content": "a", "tool_calls": calls}]
    arguments = pa.map_(pa.string(), pa.int64())
    call = pa.struct(
        {"function": pa.struct({"name": pa.string(), "arguments": arguments}), "id": pa.string(), "type": pa.string()}
    )
    fields = {"role": pa.string(), "content": pa.string(), "name": pa.string(), "tool_calls": pa.list_(call)}
    mapped = [
        CHAT[0],
        {**messages[1], "tool_calls": [{"type": "function", "function": {"name": "f", "arguments": [("x", 1)]}}]},
    ]
    table = pa.table({"text": pa.array([mapped], pa.list_(pa.struct(fields)))})
    plain = [messages[0], {**messages[1], "tool_calls": [{"type": "function", "function": function}]}]
    assert ids_of(encode_table(table, tokenizer, messages="text")) == [
        tokenizer.encode_chat(plain, add_generation_prompt=False)
    ]


def test_bad_conversations_are_bad_rows(chatty: ggtok.Tokenizer) -> None:
    texts = [
        json.dumps(CHAT),
        "[",
        json.dumps(ROBOT),
        "[]",
        '{"role": "user"}',
        "null",
        '["Hi"]',
        "[" * 100_000,
        json.dumps([{"role": "user", "content": {}}]),
        json.dumps(CHAT[:1]),
    ]
    table = pa.table({"text": texts, ROW: pa.array(range(11, 11 + len(texts)))})
    encoded = encode_block(Block(table, [], 0, "chats.jsonl"), chatty, Encoding("text", True), 1)
    assert encoded.table.column(ROW).to_pylist() == [11, 20]
    reasons = {bad.row: bad.reason for bad in encoded.bad}
    assert sorted(reasons) == list(range(12, 20))
    assert "the conversation is not JSON" in reasons[12]
    assert "no robots" in reasons[13]
    assert "no messages" in reasons[14]
    assert reasons[15] == "a conversation must be a list of messages, not an object"
    assert reasons[16] == "a conversation must be a list of messages, not null"
    assert "nested too deeply" in reasons[18]
    assert reasons[19].startswith("messages[0].content: expected a string or an array")
    assert (encoded.bad[0].source, encoded.bad[0].row) == ("chats.jsonl", 12)
    assert [bad.data for bad in encoded.bad if bad.row < 18] == [text.encode() for text in texts[1:7]]
    assert max(len(bad.data) for bad in encoded.bad) == BadRow.MOST_DATA
    with pytest.raises(CorpusError, match="column 'text', row 12: the conversation is not JSON"):
        encode_table(table, chatty, messages="text")


def test_conversations_cut_dropped_and_ended(chatty: ggtok.Tokenizer) -> None:
    table = pa.table({"text": [CHAT, CHAT[:1]]})
    whole = encode_table(table, chatty, messages="text", append_eos=True)
    assert [ids and ids[-1] for ids in ids_of(whole)] == [BPE.vocab.eos_id] * 2
    cut = encode_table(table, chatty, messages="text", max_length=13)
    for name in ("input_ids", MASK):
        assert cut.column(name).to_pylist() == [
            row.as_py()[:13] for row in encode_table(table, chatty, messages="text")[name]
        ]
    assert encode_table(table, chatty, messages="text", max_length=13, too_long="drop").num_rows == 1


def test_without_a_template() -> None:
    with pytest.raises(ChatTemplateError, match="the file has no chat template"):
        encode_table(
            pa.table({"text": [CHAT]}),
            SPM.to_gguf(io.BytesIO(), metadata={"tokenizer.chat_template": None}),
            messages="text",
        )


def test_columns_that_hold_no_conversations(chatty: ggtok.Tokenizer) -> None:
    for values in ([1], [["a"]]):
        with pytest.raises(CorpusError, match="column 'text' must hold lists of messages or their JSON text, not"):
            encode_table(pa.table({"text": values}), chatty, messages="text")
    with pytest.raises(CorpusError, match="the table has a column 'assistant_mask' already"):
        encode_table(pa.table({"text": [CHAT], MASK: [1]}), chatty, messages="text")


# Threads


@pytest.mark.parametrize(
    ("granted", "asked", "threads"),
    [(None, None, 1), (None, 3, 3), ("2", None, 2), ("2", 3, 3), ("4,2", None, 4), ("", None, 1), (" 5 ", None, 5)],
)
def test_granted_threads(granted: str | None, asked: int | None, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if granted is not None:
        monkeypatch.setenv("OMP_NUM_THREADS", granted)
    assert granted_threads(asked) == threads


@pytest.mark.parametrize("granted", ["0", "-1", "all", "2.5"])
def test_threads_that_are_not_a_number(granted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", granted)
    with pytest.raises(CorpusError, match="OMP_NUM_THREADS must be a number of threads, not"):
        encode_table(pa.table({"text": ["a"]}), BPE)
