"""`ggtok.adapters.outlines` in outlines and its core."""

from __future__ import annotations

import io
import pickle
from typing import Any

import numpy as np
import pytest
from ggtok import Tokenizer
from ggtok.adapters.outlines import OutlinesTokenizer, tokenizer, vocabulary

core: Any = pytest.importorskip("outlines_core", reason="outlines-core is not installed: pip install outlines-core")

KINDS = ("bpe", "spm", "unigram")
PATTERN = r'\{"name": "[A-Zé\x{1F600}]+[a-zé]*"\}'


def follow(guide: Any, ids: list[int]) -> bool:
    """Whether a guide allows these ids, one after the other."""
    for id in ids:
        if id not in guide.get_tokens():
            return False
        guide.advance(id)
    return bool(guide.is_finished())


@pytest.mark.parametrize("kind", KINDS)
def test_a_pattern(kind: str) -> None:
    """It accepts an answer whose characters are cut into bytes, and nothing else."""
    tok = Tokenizer.builtin(kind)
    index = core.Index(PATTERN, vocabulary(tok))

    def accepts(text: str) -> bool:
        return follow(core.Guide(index), tok.encode(text, add_special=False, continues=True))

    assert accepts('{"name": "Adéa"}')
    assert not accepts('{"name": "adéa"}')
    assert not accepts('{"names": "Adéa"}')
    if kind != "unigram":  # which has no bytes
        assert accepts('{"name": "\U0001f600a"}')


@pytest.mark.parametrize("kind", KINDS)
def test_every_token_is_text_unless_it_ends_one(kind: str) -> None:
    """As in outlines, control tokens are. Of the ends EOS alone is a token there."""
    tok = Tokenizer.builtin(kind).to_gguf(io.BytesIO(), add_tokens=["<end_of_turn>"], add_control_tokens=["<|mark|>"])
    assert len(tok.vocab.eog_ids) > 1
    tokens = {*core.Guide(core.Index(".*", vocabulary(tok))).get_tokens()}
    assert tok.vocab.id("<|mark|>") in tokens
    assert tokens & tok.vocab.eog_ids == {tok.vocab.eos_id}
    assert {*tokenizer(tok).vocabulary.values()} == {*range(tok.vocab_size)} - tok.vocab.eog_ids | {tok.vocab.eos_id}


@pytest.mark.parametrize("kind", KINDS)
def test_the_protocol(kind: str) -> None:
    tok = Tokenizer.builtin(kind)
    made = tokenizer(tok)
    assert (made.eos_token_id, made.eos_token) == (tok.vocab.eos_id, tok.vocab[made.eos_token_id].text)
    assert made.special_tokens == {token.text for token in tok.vocab if token.attributes & (8 | 1)}
    assert made.get_vocab() == made.vocabulary
    ids, mask = made.encode(["the", "the world"])
    assert (ids.dtype, ids.shape) == (np.int64, mask.shape)
    assert [row[keep == 1].tolist() for row, keep in zip(ids, mask, strict=True)] == [
        tok.encode("the"),
        tok.encode("the world"),
    ]
    assert made.encode("the")[0].tolist() == [tok.encode("the")]
    assert made.decode(ids) == ["the", "the world"] or kind == "unigram"
    assert made.decode(tok.encode("the world")) == ["the world"]
    (space,) = tok.encode(" the", add_special=False, continues=True)
    assert made.convert_token_to_string(tok.vocab[space].text) == " the"
    again = pickle.loads(pickle.dumps(made))
    assert (again, hash(again)) == (made, hash(made))
    assert made != tok


@pytest.mark.parametrize("kind", ["bpe", "spm"])
def test_in_outlines(kind: str) -> None:
    """The vocabulary that its own backend makes of the protocol."""
    backend: Any = pytest.importorskip("outlines.backends.outlines_core", reason="outlines is not installed")
    protocol: Any = pytest.importorskip("outlines.models.tokenizer")
    tok = Tokenizer.builtin(kind)
    made = tokenizer(tok)
    assert {*protocol.Tokenizer.__annotations__} <= {*dir(made), *vars(made)}
    assert all(hasattr(made, name) for name in ("encode", "decode", "convert_token_to_string"))
    found = backend.OutlinesCoreBackend.create_outlines_core_vocabulary(
        made.vocabulary, made.eos_token_id, made.eos_token, made.convert_token_to_string
    )
    guide = core.Guide(core.Index("[a-z ]+", found))
    assert follow(guide, tok.encode("hello world", add_special=False, continues=True))


def test_control_tokens_in_prompts() -> None:
    tok = Tokenizer.builtin("bpe")
    assert OutlinesTokenizer(tok).encode("<|im_end|>")[0].tolist() == [[12_993]]
