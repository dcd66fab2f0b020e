"""`ggtok.adapters.llama_index` in LlamaIndex."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from ggtok import Tokenizer
from ggtok.adapters.llama_index import counting_handler, tokenizer

core: Any = pytest.importorskip("llama_index.core", reason="LlamaIndex is not installed; .ci/adapters installs it")

TEXT = "One sentence about LoRA, and then another one. A new one, longer than that. " * 20
KINDS = ("bpe", "spm", "unigram", "wordpiece")


@pytest.fixture(autouse=True)
def reset() -> Iterator[None]:
    yield
    core.global_tokenizer = None
    core.Settings._tokenizer = None


@pytest.mark.parametrize("kind", KINDS)
def test_the_global_tokenizer(kind: str) -> None:
    """It counts no BOS, and a splitter's chunks fit."""
    from llama_index.core.node_parser import SentenceSplitter  # type: ignore[import-not-found,unused-ignore]
    from llama_index.core.utils import get_tokenizer  # type: ignore[import-not-found,unused-ignore]

    tok = Tokenizer.builtin(kind)
    core.set_global_tokenizer(tokenizer(tok))
    assert get_tokenizer()("the") == tok.encode("the", add_special=False)
    chunks = SentenceSplitter(chunk_size=50, chunk_overlap=0).split_text(TEXT)
    counts = tok.count_batch(chunks, add_special=False)
    assert len(counts) > 5
    assert max(counts) <= 50


def test_the_handler_counts() -> None:
    """What a run of LlamaIndex's own embedding and answering mocks sends."""
    from llama_index.core.base.embeddings.base import BaseEmbedding  # type: ignore[import-not-found,unused-ignore]
    from llama_index.core.callbacks import CallbackManager  # type: ignore[import-not-found,unused-ignore]
    from llama_index.core.embeddings import MockEmbedding  # type: ignore[import-not-found,unused-ignore]
    from llama_index.core.llms.mock import MockLLM  # type: ignore[import-not-found,unused-ignore]

    tok = Tokenizer.builtin("spm")
    handler = counting_handler(tok, verbose=False)
    manager = CallbackManager([handler])
    embedding: BaseEmbedding = MockEmbedding(embed_dim=3, callback_manager=manager)
    embedding.get_text_embedding_batch(["the world", "What is LoRA?"])
    assert handler.total_embedding_token_count == sum(
        tok.count(text, add_special=False) for text in ("the world", "What is LoRA?")
    )
    MockLLM(callback_manager=manager).complete("What is LoRA?")
    assert handler.prompt_llm_token_count == tok.count("What is LoRA?", add_special=False)
    assert handler.completion_llm_token_count == handler.prompt_llm_token_count
