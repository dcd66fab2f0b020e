"""`ggtok.adapters.langchain` in LangChain's text splitters."""

from __future__ import annotations

from typing import Any

import pytest
from ggtok import Tokenizer
from ggtok.adapters.langchain import length_function, tokenizer

splitters: Any = pytest.importorskip(
    "langchain_text_splitters", reason="LangChain is not installed: pip install langchain-text-splitters"
)

TEXT = "One sentence about LoRA, and then another one.\n\nA new paragraph. " * 20
KINDS = ("bpe", "spm", "unigram", "wordpiece")


@pytest.mark.parametrize("kind", KINDS)
def test_length_function(kind: str) -> None:
    """No chunk has more tokens than it may, and nearly all are nearly full."""
    count = length_function(Tokenizer.builtin(kind))
    splitter = splitters.RecursiveCharacterTextSplitter(chunk_size=50, chunk_overlap=0, length_function=count)
    lengths = [count(chunk) for chunk in splitter.split_text(TEXT)]
    assert len(lengths) > 3
    assert max(lengths) <= 50
    assert min(lengths[:-1]) > 10


@pytest.mark.parametrize("kind", ["bpe", "spm"])
def test_tokens(kind: str) -> None:
    """The chunks, joined, are the text; each but the last has all the tokens that it may have."""
    tok = Tokenizer.builtin(kind)
    chunks = splitters.split_text_on_tokens(text=TEXT, tokenizer=tokenizer(tok, chunk_overlap=0, tokens_per_chunk=40))
    assert "".join(chunks) == TEXT
    assert len(chunks) == -(-tok.count(TEXT, add_special=False, continues=True) // 40)


@pytest.mark.parametrize("kind", KINDS)
def test_overlapping_tokens(kind: str) -> None:
    """A chunk starts with the tokens that end the one before."""
    tok = Tokenizer.builtin(kind)
    ids = tok.encode(TEXT, add_special=False, continues=True)
    chunks = splitters.split_text_on_tokens(text=TEXT, tokenizer=tokenizer(tok, chunk_overlap=5, tokens_per_chunk=40))
    starts = range(0, len(ids) - 5, 35)
    assert [chunk.strip() for chunk in chunks] == [tok.decode(ids[start : start + 40]).strip() for start in starts]
