"""`ggtok.adapters.tokenizers` against tokenizers itself, which reads what `to_tokenizers_json` writes."""

from __future__ import annotations

import asyncio
import io
import pickle
import weakref
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import ggtok
import numpy as np
import pytest
import tokenizers
from conftest import VOCABULARIES
from ggtok import GgtokError
from ggtok.adapters.tokenizers import Tokenizer
from hypothesis import given
from hypothesis import strategies as st

KINDS = ("bpe", "spm", "unigram", "wordpiece")
COLUMNS = ("ids", "tokens", "offsets", "type_ids", "attention_mask", "special_tokens_mask", "sequence_ids")
every_kind = pytest.mark.parametrize("kind", KINDS)


def original(kind: str) -> Any:
    """The same vocabulary in tokenizers itself."""
    file = io.BytesIO()
    ggtok.Tokenizer.builtin(kind).to_tokenizers_json(file)
    return tokenizers.Tokenizer.from_str(file.getvalue().decode())


ORIGINALS = {kind: original(kind) for kind in KINDS}
ADAPTERS = {kind: Tokenizer(ggtok.Tokenizer.builtin(kind)) for kind in KINDS}

words = st.sampled_from(["Hello", "world", "tokens,", "ready!", "naïve", "LoRA?", "a", "the"])
texts = st.lists(words, min_size=1, max_size=8).map(" ".join)


def limited(kind: str, truncation: dict[str, Any] | None = None, padding: dict[str, Any] | None = None) -> list[Any]:
    """The adapter and the original, with these settings."""
    both = [ADAPTERS[kind], ORIGINALS[kind]]
    for tokenizer in both:
        tokenizer.no_truncation() if truncation is None else tokenizer.enable_truncation(**truncation)
        tokenizer.no_padding() if padding is None else tokenizer.enable_padding(**padding)
    assert both[0].truncation == both[1].truncation
    assert both[0].padding == both[1].padding
    return both


def columns(encoding: Any, names: Sequence[str]) -> list[Any]:
    """These lists of an encoding, and of those that overflow, whose `sequence_ids` tokenizers does not keep."""
    others = [[getattr(one, name) for name in names if name != "sequence_ids"] for one in encoding.overflowing]
    return [[getattr(encoding, name) for name in names], *others]


@every_kind
@given(text=texts, pair=st.none() | texts, special=st.booleans())
def test_encode(kind: str, text: str, pair: str | None, special: bool) -> None:
    both = limited(kind)
    ours, theirs = (tokenizer.encode(text, pair, add_special_tokens=special) for tokenizer in both)
    assert columns(ours, COLUMNS) == columns(theirs, COLUMNS)
    assert (len(ours), ours.n_sequences) == (len(theirs), theirs.n_sequences)
    for sequence in range(ours.n_sequences):
        for at in range(len(text) + 2):
            assert ours.char_to_token(at, sequence) == theirs.char_to_token(at, sequence)
    for at in range(len(ours)):
        assert ours.token_to_chars(at) == theirs.token_to_chars(at)
        assert ours.token_to_sequence(at) == theirs.token_to_sequence(at)
    assert both[0].decode(ours.ids) == both[1].decode(ours.ids)


lengths = st.integers(8, 12)
truncations = st.fixed_dictionaries(
    {
        "max_length": lengths,
        "stride": st.integers(0, 1),
        "strategy": st.sampled_from(["longest_first", "only_first", "only_second"]),
        "direction": st.sampled_from(["left", "right"]),
    }
).filter(lambda settings: settings["stride"] == 0 or settings["strategy"] == "longest_first")  # others panic
paddings = st.fixed_dictionaries(
    {
        "length": st.none() | lengths,
        "pad_to_multiple_of": st.none() | st.integers(1, 5),
        "pad_id": st.integers(0, 9),
        "pad_token": st.sampled_from(["[PAD]", "<pad>"]),
        "pad_type_id": st.integers(0, 1),
        "direction": st.sampled_from(["left", "right"]),
    }
)
items = st.lists(texts | st.tuples(texts, texts), max_size=4)


@every_kind
@given(items=items, truncation=st.none() | truncations, padding=st.none() | paddings, special=st.booleans())
def test_batches(
    kind: str, items: list[Any], truncation: dict[str, Any] | None, padding: dict[str, Any] | None, special: bool
) -> None:
    """Truncated and padded, with everything that overflows."""
    names = COLUMNS if padding is None else COLUMNS[:-1]  # there padding may have the number of a text
    found: list[Any] = []
    for tokenizer in limited(kind, truncation, padding):
        try:
            batch = tokenizer.encode_batch(items, add_special_tokens=special)
            found.append([columns(encoding, names) for encoding in batch])
        except Exception as error:
            found.append("GgtokError" if tokenizer is ORIGINALS[kind] else type(error).__name__)
    assert found[0] == found[1]


def test_words_and_arrays() -> None:
    """Texts that are cut into words, and batches in other containers."""
    ours, theirs = limited("wordpiece")
    for pair in (None, ["tokens"]):
        found = [one.encode(["naïve", "world"], pair, is_pretokenized=True) for one in (ours, theirs)]
        assert columns(found[0], COLUMNS) == columns(found[1], COLUMNS)
    rows: list[Any] = [np.array(["Hello", "world"]), (("a", "the"), ("the", "a")), np.array([["a", "the"]]), []]
    for batch in rows:
        assert [one.ids for one in ours.encode_batch(batch)] == [one.ids for one in theirs.encode_batch(batch)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((["a"],), "TextInputSequence must be str"),
        (("a", ["b"]), "TextInputSequence must be str"),
        (("a", None, True), r"PreTokenizedInputSequence must be Union\[List\[str\]"),
        ((["a"], "b", True), r"PreTokenizedInputSequence must be Union\[List\[str\]"),
        (([1], None, True), r"PreTokenizedInputSequence must be Union\[List\[str\]"),
    ],
)
def test_other_types_are_refused(arguments: tuple[Any, ...], message: str) -> None:
    for tokenizer in limited("bpe"):
        with pytest.raises(TypeError, match=message):
            tokenizer.encode(*arguments)


@pytest.mark.parametrize("batch", ["text", [1], [("a", "b", "c")], [(1, 2)], [["a", 1]]])
def test_other_batches_are_refused(batch: Any) -> None:
    with pytest.raises(TypeError):
        ADAPTERS["bpe"].encode_batch(batch)


@every_kind
def test_vocabulary(kind: str) -> None:
    ours, theirs = limited(kind)
    for with_added in (True, False):
        known = theirs.get_vocab(with_added)
        if not with_added:  # tokenizers leaves special tokens in the model
            known = {token: id for token, id in known.items() if id not in theirs.get_added_tokens_decoder()}
        assert ours.get_vocab(with_added) == known
        assert ours.get_vocab_size(with_added) == len(known)
    assert ours.get_added_tokens_decoder() == theirs.get_added_tokens_decoder()
    size = ours.get_vocab_size()
    for id in (0, 1, size // 2, size - 1):
        token = ours.id_to_token(id)
        assert token == theirs.id_to_token(id)
        assert ours.token_to_id(token) == id
    assert (ours.id_to_token(size), ours.id_to_token(-1), ours.token_to_id("nonesuch")) == (None, None, None)
    assert [ours.num_special_tokens_to_add(pair) for pair in (False, True)] == [
        theirs.num_special_tokens_to_add(pair) for pair in (False, True)
    ]


def test_control_tokens_in_texts() -> None:
    """They are read as in tokenizers, unless both are told not to."""
    tok = ggtok.Tokenizer.builtin("bpe")
    text = "<|im_end|>a"
    assert Tokenizer(tok).encode(text).ids == original("bpe").encode(text).ids == tok.encode(text, parse_special=True)
    safe, theirs = Tokenizer(tok, encode_special_tokens=True), original("bpe")
    theirs.encode_special_tokens = True
    assert safe.encode(text).ids == theirs.encode(text).ids == tok.encode(text)
    assert safe.encode_batch([text])[0].tokens == theirs.encode(text).tokens
    ids = tok.encode(text, parse_special=True)
    assert [one.decode(ids) for one in (safe, theirs)] == ["a", "a"]
    assert [one.decode(ids, skip_special_tokens=False) for one in (safe, theirs)] == [text, text]
    assert safe.decode_batch([ids, []], skip_special_tokens=False) == [text, ""]


@every_kind
def test_a_user_defined_token_that_ends_a_text(kind: str) -> None:
    """llama.cpp makes it a control token, so it is special, and stays text where control tokens do."""
    tok = ggtok.Tokenizer.builtin(kind).to_gguf(io.BytesIO(), add_tokens=["<end_of_turn>"])
    id, text = tok.vocab.id("<end_of_turn>"), "a<end_of_turn>b"
    file = io.BytesIO()
    tok.to_tokenizers_json(file)
    both: list[Any] = [Tokenizer(tok), tokenizers.Tokenizer.from_str(file.getvalue().decode())]
    for tokenizer in both:
        assert tokenizer.get_added_tokens_decoder()[id].special
        assert tokenizer.decode([id]) == ""
        assert tokenizer.encode(text).ids == tok.encode(text, parse_special=True)
        tokenizer.encode_special_tokens = True
        assert tokenizer.encode(text).ids == tok.encode(text)
    assert id in ggtok.adapters.vllm.Tokenizer(tok).all_special_ids


def test_added_tokens() -> None:
    adapter, theirs = Tokenizer(ggtok.Tokenizer.builtin("bpe")), original("bpe")
    added = ["<a>", tokenizers.AddedToken("<b>", special=True), "<c>", "<a>", "", "the"]
    assert (adapter.add_tokens(added), adapter.add_tokens(["<a>"])) == (3, 0)
    assert adapter.add_special_tokens(["<d>", tokenizers.AddedToken("<e>", special=True, normalized=False)]) == 2
    theirs.add_tokens(["<a>", tokenizers.AddedToken("<b>", special=True, normalized=False), "<c>"])
    theirs.add_special_tokens(["<d>", "<e>"])
    text = "a<a>b<b>c<c>d<d>e<e>"
    assert columns(adapter.encode(text), COLUMNS) == columns(theirs.encode(text), COLUMNS)
    ids = adapter.encode(text).ids
    assert adapter.decode(ids) == theirs.decode(ids) == "a<a>bc<c>de"
    assert ggtok.Tokenizer.builtin("bpe").vocab_size + 5 == adapter.get_vocab_size() == adapter.ggtok.vocab_size
    for flag in ("lstrip", "rstrip", "single_word"):
        with pytest.raises(GgtokError, match=f"'<f>' has {flag}"):
            adapter.add_tokens([tokenizers.AddedToken("<f>", **{flag: True})])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda one: one.enable_padding(), "has no padding token"),
        (lambda one: one.enable_padding(direction="up", pad_id=0), "direction value : up"),
        (lambda one: one.enable_truncation(2, direction="up"), "direction value : up"),
        (lambda one: one.enable_truncation(2, strategy="last"), "strategy must be "),
        (lambda one: one.enable_truncation(-1), "must not be negative"),
        (lambda one: one.encode("a b c").truncate(2, 2), "stride must be less than the 2 tokens"),
    ],
)
def test_settings_that_make_no_sense(call: Any, message: str) -> None:
    adapter = Tokenizer(ggtok.Tokenizer.builtin("spm"))
    with pytest.raises(GgtokError, match=message):
        call(adapter)


def test_the_padding_token_of_the_vocabulary() -> None:
    adapter = Tokenizer(ggtok.Tokenizer.builtin("unigram"))
    adapter.enable_padding(length=4)
    assert adapter.encode("the").tokens == ["▁the", "</s>", "<pad>", "<pad>"]
    assert adapter.padding == {
        "length": 4,
        "pad_to_multiple_of": None,
        "pad_id": 0,
        "pad_token": "<pad>",
        "pad_type_id": 0,
        "direction": "right",
    }


@pytest.mark.parametrize("count", [1, 2])
def test_post_process(count: int) -> None:
    found = []
    for tokenizer in limited("wordpiece"):
        bodies = [tokenizer.encode(text, add_special_tokens=False) for text in ("Hello world", "the")]
        tokenizer.enable_truncation(5)
        tokenizer.enable_padding(length=7, pad_id=0, pad_token="[PAD]")
        found.append(columns(tokenizer.post_process(*bodies[:count]), COLUMNS[:-1]))
    assert found[0] == found[1]


def test_encodings_pickle_without_the_tokenizer() -> None:
    adapter = Tokenizer(ggtok.Tokenizer.builtin("spm"))
    adapter.enable_truncation(6, stride=1)
    encoding = adapter.encode("What is LoRA?", "the world")
    data = pickle.dumps(encoding)
    assert len(data) < 2000
    again = pickle.loads(data)
    assert columns(again, COLUMNS) == columns(encoding, COLUMNS)
    assert again.char_to_token(1) == encoding.char_to_token(1)


def test_adapters_pickle_and_are_shared_by_threads() -> None:
    adapter = pickle.loads(pickle.dumps(Tokenizer(ggtok.Tokenizer.builtin("bpe"), threads=1)))
    assert id(weakref.ref(adapter)()) == id(adapter)
    with ThreadPoolExecutor(4) as executor:
        batches = list(executor.map(adapter.encode_batch, [["my name is john " * 50] * 20] * 12))
    assert {tuple(one.ids) for batch in batches for one in batch} == {
        tuple(adapter.encode("my name is john " * 50).ids)
    }


def test_async_calls() -> None:
    adapter = ADAPTERS["bpe"]
    limited("bpe")

    async def calls() -> list[Any]:
        batch = await adapter.async_encode_batch(["a", "the"])
        one = await adapter.async_encode("a")
        return [one.ids, *(encoding.ids for encoding in batch), await adapter.async_decode_batch([one.ids])]

    assert asyncio.run(calls()) == [*(adapter.encode(text).ids for text in ("a", "a", "the")), ["a"]]


def test_files() -> None:
    path = VOCABULARIES / "spm.gguf"
    expected = ADAPTERS["spm"].encode("the").ids
    assert Tokenizer.from_file(path).encode("the").ids == Tokenizer.from_buffer(path.read_bytes()).encode("the").ids
    assert Tokenizer.from_file(path).encode("the").ids == expected
