"""`Tokenizer.fingerprint`: the same in every process and version, and another for other ids."""

from __future__ import annotations

import pickle

import pytest
from conftest import VOCABULARIES
from ggtok import Tokenizer


@pytest.mark.parametrize(
    ("name", "fingerprint"),
    [
        ("bpe", "bd097245736723840d0a56ba51afa156"),
        ("spm", "4f84adeb9a5d23f23da4e8dae6cc18d4"),
        ("unigram", "9d7ab9f981f342bd326bdabc5bc74bad"),
        ("wordpiece", "16c667d098c5ecc357e13d025c24c11e"),
    ],
)
def test_fingerprint(name: str, fingerprint: str) -> None:
    """As in the manifests of earlier versions, in every process, and other for other ids."""
    tok = Tokenizer.builtin(name)
    assert tok.fingerprint == fingerprint == pickle.loads(pickle.dumps(tok)).fingerprint
    path = VOCABULARIES / f"{name}.gguf"
    assert Tokenizer.from_gguf(path, overrides={"general.name": "other"}).fingerprint == fingerprint
    other = Tokenizer.from_gguf(path, overrides={"tokenizer.ggml.eos_token_id": 5})
    assert other.fingerprint != fingerprint
