"""`ggtok.train(kind="unigram")` and its normalization, beside sentencepiece and llama.cpp."""

from __future__ import annotations

import math
import random
import unicodedata
from collections import Counter
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import ggtok
import pytest
from ggtok import _ggtok
from test_train import corpus, sentencepiece_pieces

NAMES = ["nfkc", "nmt_nfkc", "nfkc_cf", "nmt_nfkc_cf"]
LATIN = ["The quick brown fox jumps over the lazy dog.", "A quick brown dog jumps over the lazy fox."] * 5


def corpus_lines(shared: Path, name: str, size: int) -> list[str]:
    """Lines of a corpus, as sentencepiece reads them."""
    return [line.removesuffix("\r") for line in corpus(shared, name, size).split("\n")]


def theirs(lines: Iterable[str], size: int, **settings: Any) -> dict[str, float]:
    """Pieces of sentencepiece and their scores."""
    return dict(sentencepiece_pieces(lines, size, model_type="unigram", num_threads=1, **settings)[3:])


def trained(texts: Iterable[str] = LATIN, size: int = 38, **settings: Any) -> ggtok.Tokenizer:
    return ggtok.train(texts, kind="unigram", vocab_size=size, **settings)


SEPARATOR = "\ue000"
"""A private-use character, which no rule has."""


@cache
def batches() -> list[list[str]]:
    """Every code point by itself, decomposed characters, and random texts of those."""
    points = [chr(point) for point in range(1, 0x110000) if not 0xD800 <= point < 0xE000]
    decomposed = [unicodedata.normalize(form, point) for point in points for form in ("NFD", "NFKD")]
    decomposed = [text for text in decomposed if len(text) > 1]
    draw, both = random.Random(7), (points, decomposed)
    mixed = ["".join(draw.choice(draw.choice(both)) for _ in range(draw.randint(1, 6))) for _ in range(20_000)]
    every = [*points, *decomposed, *mixed]
    return [every[start : start + 4096] for start in range(0, len(every), 4096)]


@pytest.mark.parametrize("name", NAMES)
def test_normalization_equals_that_of_sentencepiece(name: str) -> None:
    package = pytest.importorskip("sentencepiece")
    charsmap = _ggtok.compile_charsmap(name=name)
    normalizer = package.SentencePieceNormalizer(
        rule_name=name, add_dummy_prefix=False, escape_whitespaces=False, remove_extra_whitespaces=False
    )
    for batch in batches():
        joined = SEPARATOR.join(batch)
        ours, theirs = _ggtok.apply_charsmap(charsmap, joined), normalizer.normalize(joined)
        if ours != theirs:
            rows = zip(batch, ours.split(SEPARATOR), theirs.split(SEPARATOR), strict=False)
            raise AssertionError([row for row in rows if row[1] != row[2]][:5])
    assert len(charsmap) < 256_000  # sentencepiece's have up to 247,165 bytes


def objective(pieces: dict[str, float], words: Counter[str]) -> float:
    """Minus the logarithm of the mean probability of a word, over all its segmentations."""
    longest, unknown = max(map(len, pieces)), min(pieces.values()) - 10
    total = 0.0
    for word, count in words.items():
        sums = [1.0] + [0.0] * len(word)
        for start in range(len(word)):
            for end in range(start + 1, min(len(word), start + longest) + 1):
                score = pieces.get(word[start:end], unknown if end == start + 1 else None)
                if score is not None:
                    sums[end] += sums[start] * math.exp(score)
        total -= count * math.log(max(sums[-1], 1e-300))
    return total / sum(words.values())


def seeds(words: Counter[str]) -> dict[str, int]:
    """Stretches of letters, or of others, that occur twice and that a piece may end after, with their counts."""
    counts: Counter[str] = Counter()
    following: dict[str, set[str]] = {}
    for word, count in words.items():
        for start in range(len(word)):
            for end in range(start + 2, min(len(word), start + 16) + 1):
                is_after_space = end - start == 2 and word[start] == "▁"
                if not is_after_space and word[end - 1].isalpha() != word[end - 2].isalpha():
                    break
                text = word[start:end]
                counts[text] += count
                is_end = end == len(word) or len(text) == 16 or word[end].isalpha() != word[end - 1].isalpha()
                following.setdefault(text, set()).update(("", " ") if is_end else word[end])
    return {text: count for text, count in counts.items() if count > 1 and len(following[text]) > 1}


def test_the_objective_differs_because_of_the_seeds(shared: Path, tmp_path: Path) -> None:
    """Given the seeds that sentencepiece loses, it comes to the same objective."""
    pytest.importorskip("sentencepiece")
    lines = corpus_lines(shared, "en", 300_000)
    words = Counter("▁" + word for line in lines for word in line.split(" ") if word)
    path = tmp_path / "seeds.tsv"
    ordered = sorted(seeds(words).items(), key=lambda seed: (-seed[1] * len(seed[0]), seed[0]))
    path.write_text("".join(f"{text}\t{count}\n" for text, count in ordered if "\t" not in text), "utf-8", newline="\n")

    default, seeded = theirs(lines, 4000), theirs(lines, 4000, seed_sentencepieces_file=str(path))
    ours = {token.text: token.score for token in trained(lines, 4000, normalization="identity").vocab if token.id >= 3}
    known = Counter({word: words[word] for word in words if all(word_is_in(word, v) for v in (default, seeded, ours))})
    objectives = [objective(pieces, known) for pieces in (default, seeded, ours)]
    assert objectives[2] < 0.995 * objectives[0]
    assert abs(objectives[2] / objectives[1] - 1) < 0.005


def word_is_in(word: str, pieces: dict[str, float]) -> bool:
    """Whether all characters of a word are pieces."""
    return all(character in pieces for character in word)


@pytest.mark.parametrize("name", ["en", "multi"])
def test_the_objective_is_that_of_sentencepiece(shared: Path, name: str) -> None:
    pytest.importorskip("sentencepiece")
    lines = corpus_lines(shared, name, 100_000)
    tok = trained(lines, 1500, normalization="identity")
    ours = {token.text: token.score for token in tok.vocab if token.id >= 3}
    words, other = Counter("▁" + word for line in lines for word in line.split(" ") if word), theirs(lines, 1500)
    assert objective(ours, words) < 1.005 * objective(other, words)
    assert len(ours) == len(other)


def test_special_ids_and_normalization() -> None:
    tok = trained()
    assert str(tok.vocab.kind) == "unigram"
    assert (tok.vocab.pad_id, tok.vocab.eos_id, tok.vocab.unk_id) == (0, 1, 2)
    assert tok.decode(tok.encode("the \uff46ox"), remove_special=True) == "the fox"


def test_rules_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "rules.tsv"
    path.write_text("71 75\t6B 77\t# qu => kw\nU+7A\n", "utf-8")
    tok = trained(normalization=path)
    assert tok == trained(normalization={"qu": "kw", "z": ""})
    assert any("kw" in token.text for token in tok.vocab)
    assert tok.decode(tok.encode("quick lazy"), remove_special=True) == "kwick lay"


def test_spm_normalizes_only_the_corpus() -> None:
    with pytest.raises(ggtok.TrainingError, match="SPM does not normalize"):
        ggtok.train(LATIN, kind="spm", vocab_size=320, normalization="nfkc")
    wide = [text.replace("q", "\uff51") for text in LATIN]
    settings: dict[str, Any] = {"normalization": "nfkc", "normalize_corpus_only": True}
    tok = ggtok.train(wide, kind="spm", vocab_size=320, **settings)
    assert tok == ggtok.train(LATIN, kind="spm", vocab_size=320)
