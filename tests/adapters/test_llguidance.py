"""`ggtok.adapters.llguidance` in llguidance itself."""

from __future__ import annotations

import io
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


@pytest.mark.parametrize("kind", ["bpe", "spm"])
def test_markers_are_special(kind: str) -> None:
    """A user-defined token written `<...>`, as a control token: no text has it, and a grammar names it."""
    tok = Tokenizer.builtin(kind).to_gguf(io.BytesIO(), add_tokens=["<think>", "</think>", "<open"])
    made, new = tokenizer(tok), llguidance.LLMatcher
    ids: list[Any] = [tok.vocab.id(text) for text in ("<think>", "</think>", "<open")]
    assert [made.is_special_token(id) for id in ids] == [True, True, False]

    def allowed(grammar: str) -> list[bool]:
        mask = new(made, grammar).compute_bitmask()
        return [bool(mask[id // 8] >> id % 8 & 1) for id in ids]

    assert allowed(new.grammar_from_regex(r"(.|\n)*")) == [False, False, True]
    assert allowed(new.grammar_from_lark(r"start: <think> /(.|\n)*/ </think>")) == [True, False, False]
    written = new(made, new.grammar_from_regex("a<think>b"))
    assert written.try_consume_tokens(made.tokenize_str("a<think>b")) > 2
    assert written.is_accepting()


@pytest.mark.parametrize("kind", ["bpe", "spm"])
def test_the_ids_of_a_text_spell_it(kind: str) -> None:
    """SPM puts a space after a user-defined token, and an id with one would not fit a text that a grammar forces."""
    tok = Tokenizer.builtin(kind).to_gguf(io.BytesIO(), add_tokens=["<open", "<think>", "<open>", "[op"])
    made = tokenizer(tok)
    for text in ("<open]", "a<think>b<open c>", "<open>[op open", "<<open>"):
        ids = made.tokenize_str(text)
        assert made.decode_str(ids) == text
        assert not any(map(made.is_special_token, ids))


def test_settings() -> None:
    tok = Tokenizer.builtin("bpe")
    assert tokenizer(tok, eos_token=12_993, slices=[]).eos_tokens == [12_993]
    assert tokenizer(tok, eos_token=(12_993, 12_991)).eos_tokens == [12_993, 12_991]
