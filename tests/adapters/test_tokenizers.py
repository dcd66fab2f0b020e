"""`ggtok.adapters.tokenizers` against tokenizers itself, which reads what `to_tokenizers_json` writes."""

from __future__ import annotations

import io
import pickle
import weakref
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
COLUMNS = ("ids", "tokens", "offsets", "type_ids", "attention_mask", "special_tokens_mask")
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
    assert both[0].truncation == truncation
    assert both[0].padding == both[1].padding
    return both


def columns(encoding: Any) -> list[Any]:
    return [getattr(encoding, name) for name in COLUMNS]


@every_kind
@given(text=texts, special=st.booleans())
def test_encode(kind: str, text: str, special: bool) -> None:
    both = limited(kind)
    ours, theirs = (tokenizer.encode(text, add_special_tokens=special) for tokenizer in both)
    assert columns(ours) == columns(theirs)
    assert len(ours) == len(theirs)
    for at in range(len(text) + 2):
        assert ours.char_to_token(at) == theirs.char_to_token(at)
    assert both[0].decode(ours.ids) == both[1].decode(ours.ids)


lengths = st.integers(8, 12)
truncations = st.fixed_dictionaries({"max_length": lengths, "direction": st.sampled_from(["left", "right"])})
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


@every_kind
@given(
    batch=st.lists(texts, max_size=4),
    truncation=st.none() | truncations,
    padding=st.none() | paddings,
    special=st.booleans(),
)
def test_batches(
    kind: str, batch: list[str], truncation: dict[str, Any] | None, padding: dict[str, Any] | None, special: bool
) -> None:
    """Truncated and padded."""
    ours, theirs = (
        tokenizer.encode_batch(batch, add_special_tokens=special) for tokenizer in limited(kind, truncation, padding)
    )
    assert [*map(columns, ours)] == [*map(columns, theirs)]


def test_arrays_of_texts() -> None:
    ours, theirs = limited("wordpiece")
    found = [one.encode_batch(np.array(["Hello", "world"])) for one in (ours, theirs)]
    assert [one.ids for one in found[0]] == [one.ids for one in found[1]]


@pytest.mark.parametrize("batch", ["text", [1], [("a", "b")], [["a", "b"]], [b"a"]])
def test_other_batches_are_refused(batch: Any) -> None:
    with pytest.raises(TypeError):
        ADAPTERS["bpe"].encode_batch(batch)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda one: one.encode("a", "b"), GgtokError),
        (lambda one: one.encode(["a"], None, True), GgtokError),
        (lambda one: one.encode_batch([["a"]], is_pretokenized=True), GgtokError),
        (lambda one: one.encode_batch([("a", "b")]), TypeError),
        (lambda one: one.enable_truncation(9, stride=2), GgtokError),
    ],
)
def test_what_only_tokenizers_does(call: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="to_tokenizers_json"):
        call(ADAPTERS["bpe"])


@every_kind
def test_vocabulary(kind: str) -> None:
    ours, theirs = limited(kind)
    for with_added in (True, False):
        known = theirs.get_vocab(with_added)
        if not with_added:  # tokenizers leaves special tokens in the model
            known = {token: id for token, id in known.items() if id not in theirs.get_added_tokens_decoder()}
        assert ours.get_vocab(with_added) == known
        assert ours.get_vocab_size(with_added) == len(known)
    size = ours.get_vocab_size()
    for id in (0, 1, size // 2, size - 1):
        token = ours.id_to_token(id)
        assert token == theirs.id_to_token(id)
        assert ours.token_to_id(token) == id
    assert (ours.id_to_token(size), ours.id_to_token(-1), ours.token_to_id("nonesuch")) == (None, None, None)
    assert ours.num_special_tokens_to_add() == theirs.num_special_tokens_to_add(False)


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
        assert tokenizer.decode([id]) == ""
        assert tokenizer.encode(text).ids == tok.encode(text, parse_special=True)
        tokenizer.encode_special_tokens = True
        assert tokenizer.encode(text).ids == tok.encode(text)
    assert id in ggtok.adapters.vllm.Tokenizer(tok).all_special_ids


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda one: one.enable_padding(), "has no padding token"),
        (lambda one: one.enable_padding(direction="up", pad_id=0), "direction must be "),
        (lambda one: one.enable_truncation(2, direction="up"), "direction must be "),
        (lambda one: one.enable_truncation(-1), "max_length must be at least 0"),
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


def test_encodings_pickle_without_the_tokenizer() -> None:
    adapter = Tokenizer(ggtok.Tokenizer.builtin("spm"))
    adapter.enable_truncation(6)
    encoding = adapter.encode("What is LoRA?")
    data = pickle.dumps(encoding)
    assert len(data) < 2000
    assert columns(pickle.loads(data)) == columns(encoding)


def test_adapters_pickle_and_are_shared_by_threads() -> None:
    adapter = pickle.loads(pickle.dumps(Tokenizer(ggtok.Tokenizer.builtin("bpe"), threads=1)))
    assert id(weakref.ref(adapter)()) == id(adapter)
    with ThreadPoolExecutor(4) as executor:
        batches = list(executor.map(adapter.encode_batch, [["my name is john " * 50] * 20] * 12))
    assert {tuple(one.ids) for batch in batches for one in batch} == {
        tuple(adapter.encode("my name is john " * 50).ids)
    }


def test_files() -> None:
    path = VOCABULARIES / "spm.gguf"
    expected = ADAPTERS["spm"].encode("the").ids
    assert Tokenizer.from_file(path).encode("the").ids == Tokenizer.from_buffer(path.read_bytes()).encode("the").ids
    assert Tokenizer.from_file(path).encode("the").ids == expected
