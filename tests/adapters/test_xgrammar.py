"""`ggtok.adapters.xgrammar` in xgrammar itself."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from ggtok import Tokenizer
from ggtok.adapters.xgrammar import tokenizer_info

xgrammar: Any = pytest.importorskip("xgrammar", reason="xgrammar is not installed; .ci/adapters installs it")

SCHEMA = json.dumps({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]})
ANSWER = '{"name": "Ada, naïve \U0001f600"}'


@pytest.mark.parametrize("kind", ["bpe", "spm"])
def test_a_schema(kind: str) -> None:
    """Each token of an answer is in the mask. Tokens that end it are there at the end only."""
    tok = Tokenizer.builtin(kind)
    info = tokenizer_info(tok)
    assert info.vocab_size == tok.vocab_size
    assert {*info.stop_token_ids} == tok.vocab.eog_ids
    matcher = xgrammar.GrammarMatcher(xgrammar.GrammarCompiler(info).compile_json_schema(SCHEMA))
    mask = xgrammar.allocate_token_bitmask(1, info.vocab_size)

    def allowed() -> set[int]:
        matcher.fill_next_token_bitmask(mask)
        words = mask[0].tolist()
        return {id for id in range(tok.vocab_size) if words[id // 32] >> id % 32 & 1}

    for id in tok.encode(ANSWER, add_special=False, continues=True):
        now = allowed()
        assert id in now
        assert not now & tok.vocab.eog_ids
        assert matcher.accept_token(id)
    assert allowed() == tok.vocab.eog_ids
    assert matcher.accept_token(tok.vocab.eos_id)
    assert matcher.is_terminated()


def test_every_other_token_is_text() -> None:
    """As for xgrammar itself, whose structural tags rely on it: `<|mark|>` may be one control token."""
    tok = Tokenizer.builtin("bpe").to_gguf(io.BytesIO(), add_tokens=["<think>"], add_control_tokens=["<|mark|>"])
    info = tokenizer_info(tok)
    assert info.special_token_ids == []
    for text in ("<think>", "<|mark|>"):
        matcher = xgrammar.GrammarMatcher(xgrammar.GrammarCompiler(info).compile_grammar(f'root ::= "{text}"'))
        assert matcher.accept_token(tok.vocab.id(text))
        assert matcher.is_completed()


def test_other_stops() -> None:
    tok = Tokenizer.builtin("bpe")
    assert tokenizer_info(tok, stop_token_ids=12_993).stop_token_ids == [12_993]
    assert {*tokenizer_info(tok, stop_token_ids=(12_993, 5)).stop_token_ids} == {12_993, 5}
