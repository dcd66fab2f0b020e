"""Other ways to cut a text: `sample` and `n_best`, compared with the libraries that have them, and `align`."""

from __future__ import annotations

import io
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import ggtok
import pytest
from conftest import BUILTIN, TOKENIZERS
from ggtok import Tokenizer
from hypothesis import given
from hypothesis import strategies as st

NUM_SAMPLES = 20_000
FEW: dict[str, Any] = {"bpe": {"dropout": 0.3}, "spm": {"dropout": 0.3}, "unigram": {"alpha": 0.3}}


def shares(samples: Any) -> dict[tuple[int, ...], float]:
    counts = Counter(map(tuple, samples))
    return {ids: count / counts.total() for ids, count in counts.items()}


def assert_close(ours: dict[tuple[int, ...], float], theirs: dict[tuple[int, ...], float]) -> None:
    """Two samples of one distribution: each share is within five standard errors."""
    for ids in ours | theirs:
        one, two = ours.get(ids, 0.0), theirs.get(ids, 0.0)
        mean = (one + two) / 2
        assert abs(one - two) <= 5 * (2 * mean * (1 - mean) / NUM_SAMPLES) ** 0.5, (ids, one, two)


def sampled(tok: Tokenizer, text: str, **setting: Any) -> dict[tuple[int, ...], float]:
    return shares(tok.sample(text, seed=seed, add_special=False, **setting) for seed in range(NUM_SAMPLES))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sampling")


@pytest.mark.parametrize(
    ("name", "text", "setting"),
    [
        ("spm", "lower", {"dropout": 0.2}),
        ("spm", "aa lo", {"dropout": 0.5}),
        ("unigram", "unlucky", {"alpha": 0.2}),
        ("unigram", "a bc", {"alpha": 0.0}),
    ],
)
def test_sentencepiece(name: str, text: str, setting: dict[str, float], folder: Path) -> None:
    sentencepiece = pytest.importorskip("sentencepiece")
    path = folder / f"{name}.model"
    TOKENIZERS[name].to_sentencepiece(path)
    sentencepiece.set_random_generator_seed(1)
    theirs = sentencepiece.SentencePieceProcessor(model_file=str(path))
    options = {"enable_sampling": True, "nbest_size": -1, "alpha": next(iter(setting.values()))}
    assert_close(
        sampled(TOKENIZERS[name], text, **setting), shares(theirs.encode(text, **options) for _ in range(NUM_SAMPLES))
    )


@pytest.mark.parametrize(("text", "rate"), [("lower", 0.2), (" strawberry", 0.1), ("aa lo", 0.5)])
def test_tokenizers(text: str, rate: float) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    file = io.BytesIO()
    TOKENIZERS["bpe"].to_tokenizers_json(file)
    theirs = tokenizers.Tokenizer.from_str(file.getvalue().decode())
    theirs.model.dropout = rate
    found = shares(theirs.encode(text, add_special_tokens=False).ids for _ in range(NUM_SAMPLES))
    assert_close(sampled(TOKENIZERS["bpe"], text, dropout=rate), found)


@pytest.mark.parametrize("text", ["unlucky", "What is LoRA?", "a b  c", "\U0001f642 x"])
def test_n_best_of_sentencepiece(text: str, folder: Path) -> None:
    sentencepiece = pytest.importorskip("sentencepiece")
    TOKENIZERS["unigram"].to_sentencepiece(folder / "n-best.model")
    theirs = sentencepiece.SentencePieceProcessor(model_file=str(folder / "n-best.model"))
    found = TOKENIZERS["unigram"].n_best(text, 20, add_special=False)
    expected = theirs.nbest_encode(text, nbest_size=20)
    assert sorted(ids for ids, _ in found) == sorted(expected)
    assert [score for _, score in found] == sorted((score for _, score in found), reverse=True)


@pytest.mark.parametrize("name", FEW)
@given(text=st.text(max_size=30), seed=st.integers(0, 2**64 - 1))
def test_samples_are_the_text(name: str, text: str, seed: int) -> None:
    tok = TOKENIZERS[name]
    ids = tok.sample(text, seed=seed, **FEW[name])
    assert ids == tok.sample(text, seed=seed, **FEW[name])
    if name != "unigram":  # which loses what it does not know
        assert tok.decode(ids) == tok.decode(tok.encode(text))
        assert tok.sample(text, dropout=0) == tok.encode(text)
    elif text:
        assert tok.n_best(text, 3)[0][0] == tok.encode(text)


def test_special_tokens_are_never_cut() -> None:
    tok = TOKENIZERS["bpe"]
    text = "a<|im_end|>b"
    assert 12993 in tok.sample(text, dropout=1, parse_special=True)
    assert 12993 not in tok.sample(text, dropout=0.5)
    assert len({tuple(tok.sample("tokenization", dropout=0.5)) for _ in range(100)}) > 1


@pytest.mark.parametrize("first", BUILTIN)
@pytest.mark.parametrize("second", BUILTIN)
@given(data=st.data())
def test_alignment(first: str, second: str, data: st.DataObject) -> None:
    words = st.sampled_from(
        ["What", "is", "LoRA", "low", "er", "\u00e9t\u00e9", "\U0001f642", "\u6771\u4eac", "?", "1"]
    )
    text = data.draw(st.lists(words, max_size=8).map(" ".join))
    a, b = TOKENIZERS[first], TOKENIZERS[second]
    ids_a, ids_b = a.encode(text), b.encode(text)
    pairs = ggtok.align(ids_a, a, ids_b, b)
    assert ggtok.align(ids_b, b, ids_a, a) == [(two, one) for one, two in pairs]
    for ids, tok, ranges in ((ids_a, a, [pair[0] for pair in pairs]), (ids_b, b, [pair[1] for pair in pairs])):
        assert all(start < end for start, end in ranges)
        assert all(one[1] <= two[0] for one, two in pairwise(ranges))
        inside = {at for start, end in ranges for at in range(start, end)}
        assert all(not tok.piece(id, special=False).strip() for at, id in enumerate(ids) if at not in inside)
    if first == second:
        assert all(one == two for one, two in pairs)


def test_what_cannot_be_done() -> None:
    bpe, unigram, wordpiece = (TOKENIZERS[name] for name in ("bpe", "unigram", "wordpiece"))
    half: Any = "0.5"
    calls: list[tuple[Any, str]] = [
        (lambda: bpe.sample("a"), "either alpha"),
        (lambda: bpe.sample("a", alpha=1, dropout=1), "either alpha"),
        (lambda: bpe.sample("a", alpha=1), "alpha is for Unigram"),
        (lambda: unigram.sample("a", dropout=0.5), "dropout is for byte-pair"),
        (lambda: wordpiece.sample("a", dropout=0.5), "dropout is for byte-pair"),
        (lambda: unigram.sample("a", alpha=float("nan")), "alpha must be a finite number"),
        (lambda: bpe.sample("a", dropout=1.5), "dropout must be a number from 0 to 1"),
        (lambda: bpe.sample("a", dropout=0.5, seed=-1), "seed must be"),
        (lambda: bpe.sample("a", dropout=half), "dropout must be a number, not str"),
        (lambda: bpe.n_best("a", 2), "n_best is for Unigram"),
        (lambda: unigram.n_best("a", 0), "n must be at least 1"),
        (lambda: unigram.n_best("lower " * 10_000, 10_000), "16777216 steps"),
        (lambda: ggtok.align([1], bpe, [], bpe), "different texts"),
        (lambda: ggtok.align([], bpe, [13000], bpe), "13000"),
    ]
    for call, message in calls:
        with pytest.raises(ggtok.GgtokError, match=message):
            call()
