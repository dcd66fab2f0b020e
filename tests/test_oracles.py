"""ggtok against the oracles, on random small vocabularies of every kind and random texts.

`explain` is the oracle of the algorithms: each as its source describes it, step by step. `oracles/decode.py` is the one
of decoding, `oracles/gguf_vocab.py` that of the attributes that the loader gives to tokens. docs/architecture.md says
what catches mistakes that ggtok and an oracle share.
"""

from __future__ import annotations

import json
from itertools import product
from typing import Any

import pytest
from conftest import every_kind
from ggtok import Tokenizer, _ggtok
from hypothesis import note
from hypothesis import strategies as st
from oracles import decode, strategies
from oracles.gguf_vocab import Vocab
from oracles.spelling import BYTE_TOKENS

TEXTS_PER_VOCABULARY = 4


def combinations(*names: str) -> list[dict[str, Any]]:
    """Every way to set some flags."""
    return [dict(zip(names, flags, strict=True)) for flags in product((False, True), repeat=len(names))]


@every_kind
def test_encode(kind: str, data: st.DataObject) -> None:
    vocab, tokenizer = strategies.drawn(kind, data)
    for _ in range(TEXTS_PER_VOCABULARY):
        text = data.draw(strategies.texts(vocab))
        for flags in combinations("add_special", "parse_special", "continues"):
            note(f"{text!r} {flags}")
            tokens = json.loads(_ggtok.explain(tokenizer, text, *flags.values()).json())["tokens"]
            ids, spans = [token["id"] for token in tokens], [(token["start"], token["end"]) for token in tokens]
            # Twice, because the second call may find its words cached.
            for _ in range(2):
                assert tokenizer.encode(text, **flags) == ids
                assert tokenizer.encode_with_offsets(text, unit="byte", **flags).tolist() == (ids, spans)
            assert tokenizer.count(text, **flags) == len(ids)
            assert tokenizer.encode_batch([text, text], **flags).tolist() == [ids, ids]


@every_kind
def test_decode(kind: str, data: st.DataObject) -> None:
    vocab, tokenizer = strategies.drawn(kind, data)
    ids = data.draw(st.lists(st.integers(0, len(vocab.texts) - 1), max_size=20))
    for flags in combinations("remove_special", "unparse_special", "clean_spaces"):
        options: dict[str, Any] = flags
        assert tokenizer.decode_bytes(ids, **options) == decode.decode(vocab, ids, **options)


@every_kind
def test_vocabulary(kind: str, data: st.DataObject) -> None:
    vocab, tokenizer = strategies.drawn(kind, data)
    assert len(tokenizer.vocab) == len(vocab.texts)
    for id, attributes in enumerate(vocab.attributes):
        assert tokenizer.vocab[id].attributes == attributes
        for special_too in (False, True):
            assert tokenizer.piece(id, special=special_too) == decode.piece(vocab, id, special_too)


# What random texts seldom reach


@pytest.mark.parametrize(("score", "ids"), [(9.5, [3]), (10.5, [0, 4])])
def test_an_unknown_character_scores_ten_below_the_lowest_token(score: float, ids: list[int]) -> None:
    texts = [b"<unk>", b"<pad>", b"</s>", b"xy", b"y"]
    vocab = Vocab("t5", texts, [2, 3, 3, 1, 1], [0.0, 0.0, 0.0, -1.0, score], unk=0, eos=2)
    assert Tokenizer.from_gguf(vocab.gguf()).encode("xy", add_special=False) == ids


def test_a_byte_order_mark_is_skipped_at_the_start_only() -> None:
    vocab = Vocab(
        "plamo2", [b"<unk>", b"<s>", b"</s>", *BYTE_TOKENS, b"a"], [2, 3, 3, *[6] * 256, 1], unk=0, bos=1, eos=2
    )
    tokenizer, mark = Tokenizer.from_gguf(vocab.gguf()), [3 + byte for byte in "\ufeff".encode()]
    assert tokenizer.encode("\ufeffa\ufeff", add_special=False) == [259, *mark]
    assert tokenizer.encode("\ufeffa", add_special=False, continues=True) == [*mark, 259]
