"""ggtok against the oracles on random small vocabularies of every kind and random texts."""

from __future__ import annotations

from typing import Any

import pytest
from ggtok import Tokenizer
from hypothesis import given, note
from hypothesis import strategies as st
from oracles import decode, special, strategies
from oracles.gguf_vocab import Vocab

TEXTS_PER_VOCABULARY = 4
FLAGS = [(False, False), (False, True), (True, False), (True, True)]


def drawn(kind: str, data: st.DataObject) -> tuple[Vocab, Tokenizer]:
    vocab = data.draw(strategies.KINDS[kind])
    return vocab, Tokenizer.from_gguf(vocab.gguf())


@pytest.mark.parametrize("kind", strategies.KINDS)
@given(data=st.data())
def test_encode(kind: str, data: st.DataObject) -> None:
    vocab, tokenizer = drawn(kind, data)
    for _ in range(TEXTS_PER_VOCABULARY):
        text = data.draw(strategies.texts(vocab))
        for add_special, parse_special in FLAGS:
            expected = special.encode(vocab, text, add_special, parse_special)
            note(f"{text!r} add_special={add_special} parse_special={parse_special}")
            # Twice, because the second call may find its words cached.
            for _ in range(2):
                assert tokenizer.encode(text, add_special=add_special, parse_special=parse_special) == expected
            assert tokenizer.count(text, add_special=add_special, parse_special=parse_special) == len(expected)


@pytest.mark.parametrize("kind", strategies.KINDS)
@given(data=st.data())
def test_decode(kind: str, data: st.DataObject) -> None:
    vocab, tokenizer = drawn(kind, data)
    ids = data.draw(st.lists(st.integers(0, len(vocab.texts) - 1), max_size=20))
    for remove_special, unparse_special in FLAGS:
        for clean_spaces in (False, True):
            flags: Any = {
                "remove_special": remove_special,
                "unparse_special": unparse_special,
                "clean_spaces": clean_spaces,
            }
            assert tokenizer.decode_bytes(ids, **flags) == decode.decode(vocab, ids, **flags)


@pytest.mark.parametrize("kind", strategies.KINDS)
@given(data=st.data())
def test_vocabulary(kind: str, data: st.DataObject) -> None:
    vocab, tokenizer = drawn(kind, data)
    assert len(tokenizer.vocab) == len(vocab.texts)
    for id, attributes in enumerate(vocab.attributes):
        assert tokenizer.vocab[id].attributes == attributes
        for special_too in (False, True):
            assert tokenizer.piece(id, special=special_too) == decode.piece(vocab, id, special_too)
