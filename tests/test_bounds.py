"""What a file only counts, without bytes for it, takes no memory; long tokens take no quadratic time."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import ggtok
import pytest
from ggtok import GgtokError, TokenIndexError, Tokenizer, VocabularyError
from oracles.gguf_vocab import TokenType, write

NONE = write({"general.architecture": "llama", "tokenizer.ggml.model": "none", "llama.vocab_size": 2**31 - 1})


def test_tokens_without_texts_need_no_table() -> None:
    tok = Tokenizer.from_gguf(NONE)
    assert len(tok.vocab) == 2**31 - 1
    assert (tok.piece(0), tok.piece(2**31 - 2), tok.decode([0, 7]), tok.decoder().push(5)) == (b"", b"", "", "")
    assert tok.decode_batch([[1], [2, 3]]) == ["", ""]
    assert [token.id for token in tok.vocab[3:5]] == [3, 4]
    with pytest.raises(TokenIndexError):
        tok.piece(2**31 - 1)
    small = Tokenizer.from_gguf(NONE, overrides={"llama.vocab_size": 7})
    assert (small.vocab.pieces, len(list(small.vocab)), small.vocab.search("")) == ([b""] * 7, 7, [*range(7)])


@pytest.mark.parametrize(
    "call",
    [
        lambda tok: tok.vocab.pieces,
        lambda tok: tok.vocab.search("a"),
        lambda tok: tok.vocab.search("a", match="prefix"),
        lambda tok: tok.vocab.id_of_piece("a"),
        lambda tok: list(tok.vocab),
        lambda tok: tok.vocab[1:],
        lambda tok: ggtok.diff(tok, Tokenizer.builtin("bpe")),
    ],
)
def test_tokens_without_texts_are_not_listed(call: Callable[[Tokenizer], object]) -> None:
    with pytest.raises(VocabularyError, match="declares 2147483647 tokens and has no texts for them"):
        call(Tokenizer.from_gguf(NONE))


def test_parts_that_a_file_only_counts_are_not_named(tmp_path: Path) -> None:
    path = tmp_path / f"a-00001-of-{2**32 - 1:05}.gguf"
    tokens = {"tokenizer.ggml.model": "llama", "tokenizer.ggml.tokens": ["<unk>", "<s>", "</s>"]}
    path.write_bytes(write({**tokens, "general.architecture": "llama", "split.count": 2**32 - 1}))
    with pytest.raises(GgtokError, match=r"a part of the split file .* is missing: .*-00002-of-"):
        ggtok.edit(path, tmp_path / "b-00001-of-4294967295.gguf", name="b")


def test_a_token_of_the_test_vocabulary_may_be_special_and_start_inside_a_character() -> None:
    """Its ids are hashes of bytes, so a token can be anything."""
    types = [TokenType.NORMAL, *[TokenType.USER_DEFINED] * 9]
    tokens = ["\n", *(f"t{id}" for id in range(9))]
    tok = Tokenizer.from_gguf(
        write({"tokenizer.ggml.model": "test", "tokenizer.ggml.tokens": tokens, "tokenizer.ggml.token_type": types})
    )
    for text in ("a" + "中" * 400, "\U0001f1e9. " * 300):
        for max_tokens in range(2, 30):
            chunks = tok.split(text, max_tokens, overlap=1)
            assert all(tok.count(chunk.text) == chunk.count <= max_tokens for chunk in chunks)


def test_a_long_user_defined_token_is_exported_once(tmp_path: Path) -> None:
    """Each of its characters is looked up in the character map, without a copy of what follows."""
    long = "a" * 1_000_000 + "b"
    vocab = {
        "tokenizer.ggml.model": "t5",
        "tokenizer.ggml.tokens": ["<pad>", "</s>", "<unk>", "\u2581", "a", "b", long],
        "tokenizer.ggml.scores": [0.0, 0.0, 0.0, -1.0, -2.0, -2.0, 0.0],
        "tokenizer.ggml.token_type": [3, 3, 2, 1, 1, 1, 4],
        "tokenizer.ggml.unknown_token_id": 2,
    }
    path = tmp_path / "tokenizer.json"
    Tokenizer.from_gguf(write(vocab)).to_tokenizers_json(path)
    assert long in {token["content"] for token in json.loads(path.read_text())["added_tokens"]}
