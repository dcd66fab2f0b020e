"""`ggtok.adapters.llguidance` in llguidance itself."""

from __future__ import annotations

import json
from typing import Any

import pytest
from ggtok import Tokenizer
from ggtok.adapters.llguidance import tokenizer

llguidance: Any = pytest.importorskip("llguidance", reason="llguidance is not installed: pip install llguidance")

SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
ANSWER = json.dumps({"name": "Ada Lovelace, naïve \U0001f600"}, ensure_ascii=False)


def matcher(made: Any) -> Any:
    matcher = llguidance.LLMatcher(made, llguidance.LLMatcher.grammar_from_json_schema(SCHEMA))
    assert not matcher.is_error(), matcher.get_error()
    return matcher


@pytest.mark.parametrize("kind", ["bpe", "spm"])
def test_a_schema_accepts_an_answer(kind: str) -> None:
    """Token by token, each of which the mask allows. An SPM text has no space before its first word."""
    tok = Tokenizer.builtin(kind)
    made = tokenizer(tok)
    assert made.vocab_size == tok.vocab_size
    assert made.eos_token == tok.vocab.eos_id
    assert set(made.eos_tokens) == tok.vocab.eog_ids
    assert made.is_canonical
    constraint = matcher(made)
    ids = tok.encode(ANSWER, add_special=False, continues=True)
    for id in ids:
        mask = constraint.compute_bitmask()
        assert mask[id // 8] >> id % 8 & 1
        assert constraint.consume_token(id)
    assert constraint.is_accepting()
    assert made.decode_str(ids) == ANSWER


@pytest.mark.parametrize("kind", ["bpe", "spm"])
def test_a_schema_rejects_other_tokens(kind: str) -> None:
    tok = Tokenizer.builtin(kind)
    constraint = matcher(tokenizer(tok))
    (wrong,) = tok.encode("the", add_special=False, continues=True)
    mask = constraint.compute_bitmask()
    assert not mask[wrong // 8] >> wrong % 8 & 1
    assert not constraint.consume_token(wrong)


@pytest.mark.parametrize("kind", ["bpe", "spm", "unigram", "wordpiece"])
def test_texts_and_special_tokens(kind: str) -> None:
    """Ids as the tokenizer gives them, and control tokens that no text can contain."""
    tok = Tokenizer.builtin(kind)
    made = tokenizer(tok)
    for text in ("Hello world", " a", "", "naïve \U0001f600", "</s><|im_end|>"):
        assert made.tokenize_str(text) == tok.encode(text, add_special=False, continues=True)
    ends = tok.vocab.eog_ids - ({0} if kind == "wordpiece" else set())
    assert all(made.is_special_token(id) for id in ends)
    assert not made.is_special_token(tok.vocab_size // 2)


def test_settings() -> None:
    tok = Tokenizer.builtin("bpe")
    assert tokenizer(tok, eos_token=12_993, slices=[]).eos_tokens == [12_993]
    assert tokenizer(tok, eos_token=(12_993, 12_991)).eos_tokens == [12_993, 12_991]
