"""The vocabulary as other tools want it: size, pieces, merges, and tokens looked up by their bytes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from conftest import VOCABULARIES, every_kind
from ggtok import GgtokError, Tokenizer
from hypothesis import strategies as st
from oracles import strategies
from oracles.gguf_vocab import TokenType, Vocab
from test_api import GGUF, MERGES

SMALL = Tokenizer.from_gguf(GGUF)


@pytest.mark.filterwarnings("ignore::ggtok.TokenizerWarning")
@every_kind
def test_every_kind(kind: str, data: st.DataObject) -> None:
    vocab, tokenizer = strategies.drawn(kind, data)
    pieces = tokenizer.vocab.pieces
    assert tokenizer.vocab_size == len(tokenizer.vocab) == len(pieces)
    assert pieces == [tokenizer.piece(id) for id in range(len(pieces))]
    merges = [] if not vocab.merges or tokenizer.vocab.kind != "bpe" else vocab.merges
    assert [" ".join(sides).encode("utf-8", "surrogateescape").rstrip(b" ") for sides in tokenizer.vocab.merges] == [
        rule.rstrip(b" ") for rule in merges
    ]
    some = data.draw(st.sampled_from(pieces))
    for piece in (some, some[:1], some[1:], some + b"x", b""):
        first = next((id for id, each in enumerate(pieces) if each == piece), None)
        assert tokenizer.vocab.id_of_piece(piece) == first
        assert tokenizer.vocab.search(piece) == [id for id, each in enumerate(pieces) if piece in each]
        starting = [id for id, each in enumerate(pieces) if each.startswith(piece)]
        assert tokenizer.vocab.search(piece, match="prefix") == starting
        assert tokenizer.vocab.search(re.compile(b"^" + re.escape(piece))) == starting
    tokenizer.check()


def test_merges() -> None:
    assert SMALL.vocab.merges == [tuple(rule.decode().split(" ")) for rule in MERGES]
    assert Tokenizer.builtin("spm").vocab.merges == []


def test_id_of_piece() -> None:
    assert SMALL.vocab.id_of_piece(b"hello") == SMALL.vocab.id_of_piece("hello") == 259
    assert SMALL.vocab.id_of_piece(b"\xff") == 255
    assert SMALL.vocab.id_of_piece("<s>") == 260
    assert SMALL.vocab.id_of_piece(b"nonesuch") is None
    assert SMALL.vocab.id_of_piece("\ud800") is None
    spm = Tokenizer.builtin("spm").vocab
    twice = [id for id, piece in enumerate(spm.pieces) if piece == b"a"]
    assert len(twice) > 1  # a character and a byte
    assert spm.id_of_piece(b"a") == twice[0]


def test_search() -> None:
    assert SMALL.vocab.search("hell") == [258, 259]
    assert SMALL.vocab.search(re.compile("^he.*o$")) == [259]
    assert SMALL.vocab.search(re.compile(rb"^[\xfe\xff]")) == [254, 255]
    assert SMALL.vocab.search(re.compile("^\ufffd$")) == list(range(128, 256))
    assert len(SMALL.vocab.search("")) == 263
    wrong: list[tuple[type[Exception], dict[str, Any]]] = [
        (TypeError, {"query": 7}),
        (TypeError, {"query": None}),
        (TypeError, {"query": bytearray(b"a")}),
        (GgtokError, {"query": "a", "match": "suffix"}),
        (GgtokError, {"query": re.compile("a"), "match": "prefix"}),
    ]
    for kind, arguments in wrong:
        with pytest.raises(kind):
            SMALL.vocab.search(**arguments)
    for wrong_piece in (7, None, bytearray(b"a")):
        with pytest.raises(TypeError):
            SMALL.vocab.id_of_piece(wrong_piece)  # type: ignore[arg-type]


def test_real_vocabulary(shared: Path) -> None:
    tokenizer = Tokenizer.from_gguf(shared / "vocabs/qwen2.gguf")
    before = tokenizer.heap_bytes
    pieces = tokenizer.vocab.pieces
    ids: dict[bytes, int] = {}
    for id, piece in enumerate(pieces):
        ids.setdefault(piece, id)
    assert all(tokenizer.vocab.id_of_piece(piece) == id for piece, id in ids.items())
    assert tokenizer.heap_bytes - before >= 4 * len(pieces)
    assert len(tokenizer.vocab.merges) == 151387


def test_a_token_without_a_text_gets_one_and_a_text_ends_at_nul() -> None:
    texts = [b"a", b"", b"b\0c", *(f"<0x{byte:02X}>".encode() for byte in range(256))]
    types: list[int] = [*[TokenType.NORMAL] * 3, *[TokenType.BYTE] * 256]
    vocab = Vocab("llama", texts, types, [0.0] * 259)
    tokenizer = Tokenizer.from_gguf(vocab.gguf())
    assert [tokenizer.vocab.id(text) for text in ("a", "[EMPTY_1]", "b")] == [0, 1, 2]
    assert tokenizer.vocab.pieces[:3] == [b"a", b"[EMPTY_1]", b"b"]
    assert [repair for repair in tokenizer.repairs if "EMPTY_1" in repair]


def test_a_gemma_4_that_adds_no_bos_is_repaired() -> None:
    overrides: dict[str, Any] = {"tokenizer.ggml.model": "gemma4", "tokenizer.ggml.add_bos_token": False}
    tokenizer = Tokenizer.from_gguf(VOCABULARIES / "bpe.gguf", overrides=overrides)
    assert tokenizer.vocab.add_bos
    assert [repair for repair in tokenizer.repairs if "add_bos" in repair]
