"""`ggtok.adapters.chonkie` in chonkie's chunkers."""

from __future__ import annotations

import pickle
from typing import Any

import ggtok
import pytest
from ggtok.adapters.chonkie import Tokenizer

chonkie: Any = pytest.importorskip("chonkie", reason="chonkie is not installed: pip install chonkie")

TEXT = "One sentence about LoRA, and then another one. \U0001f600\n\nA new paragraph, isn't it? " * 20


@pytest.mark.parametrize("kind", ["bpe", "spm"])
@pytest.mark.parametrize("overlap", [0, 8])
def test_chunks_of_tokens(kind: str, overlap: int) -> None:
    """Chunks are slices of the text at the places that they name, and have as many tokens as they say."""
    tok = ggtok.Tokenizer.builtin(kind)
    text = TEXT.replace(" \U0001f600", "")  # no character is cut
    chunks = chonkie.TokenChunker(tokenizer=Tokenizer(tok), chunk_size=40, chunk_overlap=overlap).chunk(text)
    assert len(chunks) > 5
    assert all(chunk.text == text[chunk.start_index : chunk.end_index] for chunk in chunks)
    ids = tok.encode(text, add_special=False, continues=True)
    assert [chunk.token_count for chunk in chunks[:-1]] == [40] * (len(chunks) - 1)
    assert sum(chunk.token_count for chunk in chunks) - overlap * (len(chunks) - 1) == len(ids)


@pytest.mark.parametrize("kind", ["bpe", "spm", "unigram", "wordpiece"])
@pytest.mark.parametrize("name", ["SentenceChunker", "RecursiveChunker"])
def test_other_chunkers(kind: str, name: str) -> None:
    tok = ggtok.Tokenizer.builtin(kind)
    chunks = getattr(chonkie, name)(tokenizer=Tokenizer(tok), chunk_size=40).chunk(TEXT)
    assert "".join(chunk.text for chunk in chunks) == TEXT
    assert max(chunk.token_count for chunk in chunks) <= 40
    for chunk in chunks if name == "RecursiveChunker" else []:
        assert chunk.token_count == tok.count(chunk.text, add_special=False, continues=True)


@pytest.mark.parametrize("kind", ["bpe", "spm", "unigram", "wordpiece"])
def test_calls(kind: str) -> None:
    tok = ggtok.Tokenizer.builtin(kind)
    adapter = Tokenizer(tok)
    assert isinstance(adapter, chonkie.tokenizer.Tokenizer)
    ids = adapter.encode(TEXT)
    assert (len(ids), len(adapter.tokenize(TEXT))) == (adapter.count_tokens(TEXT), adapter.count_tokens(TEXT))
    assert adapter.encode_batch([TEXT, ""]) == [ids, []]
    assert adapter.count_tokens_batch([TEXT, ""]) == [len(ids), 0]
    assert adapter.decode_batch([ids, []]) == [adapter.decode(ids), ""]
    if kind in ("bpe", "spm"):
        assert adapter.decode(ids) == TEXT
        assert "".join(map(adapter.decode, (ids[:7], ids[7:]))) == TEXT
    assert adapter.get_token2id()[adapter.get_vocab()[100]] == 100
    again = pickle.loads(pickle.dumps(adapter))
    assert again.encode(TEXT) == ids
    assert isinstance(again, chonkie.tokenizer.Tokenizer)


def test_the_view_of_tokenizers_is_taken_too() -> None:
    adapter = ggtok.adapters.tokenizers.Tokenizer(ggtok.Tokenizer.builtin("bpe"))
    chunks = chonkie.TokenChunker(tokenizer=adapter, chunk_size=40, chunk_overlap=0).chunk(TEXT)
    assert len(chunks) > 5
