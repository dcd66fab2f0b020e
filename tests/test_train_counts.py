"""`ggtok.train`: sizes as an upper bound, texts with counts, alphabets with a limit, and patterns for names."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ggtok
import pytest
from ggtok import _ggtok
from ggtok.cli import main
from ggtok.lab.convert.vocabulary import CODED
from hypothesis import given
from hypothesis import strategies as st

KINDS: dict[Any, dict[str, Any]] = {
    "bpe": {"vocab_size": 275, "min_frequency": 1},
    "spm": {"vocab_size": 300},
    "unigram": {"vocab_size": 30},
    "wordpiece": {"vocab_size": 40, "min_frequency": 1},
}
TEXTS = {"the cat sat on the mat": 3, "a cat is a cat": 2, "mats and hats": 1, "never seen": 0}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.filterwarnings("ignore::ggtok.TokenizerWarning")
@given(counts=st.lists(st.integers(0, 5), min_size=len(TEXTS), max_size=len(TEXTS)))
def test_counts_are_repetitions(kind: Any, counts: list[int]) -> None:
    counted = dict(zip(TEXTS, [1 + counts[0], *counts[1:]], strict=True))
    repeated = [text for text, count in counted.items() for _ in range(count)]
    assert ggtok.train(counted, kind=kind, **KINDS[kind]) == ggtok.train(repeated, kind=kind, **KINDS[kind])


@pytest.mark.filterwarnings("ignore::ggtok.TokenizerWarning")
def test_counts_of_files_are_weights(tmp_path: Path) -> None:
    paths = [tmp_path / "a", tmp_path / "b"]
    for path, text in zip(paths, TEXTS, strict=False):
        path.write_text(f"{text}\n" * 3)
    for kind, settings in KINDS.items():
        weighted: Any = ggtok.train({paths[0]: 2, paths[1]: 3}, kind=kind, **settings)
        assert weighted == ggtok.train(files=[paths[0]] * 2 + [paths[1]] * 3, kind=kind, **settings)


def test_large_counts(tmp_path: Path) -> None:
    large, small = ({text: factor * count for text, count in TEXTS.items()} for factor in (1 << 40, 1))
    for kind in ("bpe", "spm", "wordpiece"):
        settings = KINDS[kind] | {"vocab_size": KINDS[kind]["vocab_size"] - 10}
        assert ggtok.train(large, kind=kind, **settings) == ggtok.train(small, kind=kind, **settings)
    with pytest.raises(ggtok.TrainingError, match=r"counts must be for at most 2\^56 bytes"):
        ggtok.train(dict.fromkeys(TEXTS, 1 << 54), kind="bpe", vocab_size=300)


@pytest.mark.parametrize("count", [-1, 1 << 56, float("nan"), 2.0, None])
def test_bad_counts(count: Any) -> None:
    counted: Mapping[str, Any] = {"a text": 1, "another": count}
    with pytest.raises(ggtok.TrainingError, match=r"the count of 'another' must be an integer from 0 to .*, not"):
        ggtok.train(counted, kind="bpe", vocab_size=300)


def test_no_counts() -> None:
    for counted in ({}, {"a text": 0}):
        with pytest.raises(ggtok.TrainingError, match="no words"):
            ggtok.train(counted, kind="bpe", vocab_size=300)


@pytest.mark.parametrize("kind", KINDS)
def test_the_size_is_an_upper_bound(kind: Any) -> None:
    with pytest.warns(ggtok.TokenizerWarning, match=r"the texts give (\d+) tokens, fewer than the vocab_size of 5,000"):
        tok = ggtok.train(TEXTS, kind=kind, vocab_size=5000)
    assert len(tok.vocab) < 500
    assert tok.decode(tok.encode("the cat", add_special=False)).strip() == "the cat"


@pytest.mark.parametrize("kind", ["spm", "unigram", "wordpiece"])
@pytest.mark.filterwarnings("ignore::ggtok.TokenizerWarning")
def test_the_alphabet_has_a_limit(kind: Any) -> None:
    def letters(limit: int | None) -> set[str]:
        tok = ggtok.train({"aaaa bbb cc d": 2}, kind=kind, vocab_size=400, limit_alphabet=limit)
        texts = [token.text for token in tok.vocab if ggtok.TokenAttribute.NORMAL in token.attributes]
        return {letter for text in texts for letter in text} - {"\u2581"}

    space = kind != "wordpiece"  # in SPM and Unigram, a space is a character like any other
    assert letters(None) == set("abcd")
    assert letters(2 + space) == set("ab")
    for bad, says in ((0, "limit_alphabet must be at least 1"), (-1, "limit_alphabet: can't convert negative")):
        with pytest.raises(ggtok.TrainingError, match=says):
            letters(bad)


def test_patterns_of_known_names() -> None:
    rows = _ggtok.families()
    for name, row in _ggtok.pretokenizers().items():
        family = rows[row["family"]]
        if family["byte_encode"] and row["family"] not in CODED:
            tok = ggtok.train(TEXTS, kind="bpe", vocab_size=260, pattern=family["patterns"])
            assert tok.vocab.pre is not None
            found = _ggtok.pretokenizers()[tok.vocab.pre]
            assert rows[found["family"]]["patterns"] == family["patterns"], name


def test_a_pattern_as_other_libraries_write_it() -> None:
    llama3 = (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
        r"|\s+(?!\S)|\s+"
    )
    tok = ggtok.train(TEXTS, kind="bpe", vocab_size=260, pattern=llama3)
    assert tok.encode("It'S 1234") == ggtok.train(TEXTS, kind="bpe", vocab_size=260, pre="llama-bpe").encode(
        "It'S 1234"
    )


def test_other_patterns_are_refused() -> None:
    with pytest.raises(ggtok.UnsupportedError, match="holds the name of a pre-tokenizer") as caught:
        ggtok.train(TEXTS, kind="bpe", vocab_size=300, pattern=r"\p{N}{1,2}|\p{L}+")
    assert caught.value.name == r"\p{N}{1,2}|\p{L}+"
    assert len(caught.value.nearest) == 3
    with pytest.raises(ggtok.TrainingError, match="pre and pattern"):
        ggtok.train(TEXTS, kind="bpe", vocab_size=300, pattern="a", pre="qwen2")
    with pytest.raises(TypeError):
        ggtok.train(TEXTS, kind="bpe", vocab_size=300, pattern=5)


def test_the_command_reads_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, output = tmp_path / "counts.tsv", tmp_path / "out.gguf"
    path.write_text(
        "".join(f"{text}\t{count}\n" for text, count in TEXTS.items()) + "tab\there\t2\r\nmats and hats\t1\n"
    )
    arguments = ["train", "--tsv", "-o", str(output), "--vocab-size", "265", "--set", "min_frequency=1"]
    assert main([*arguments, str(path)]) == 0
    counted = {**TEXTS, "mats and hats": 2, "tab\there": 2}
    assert ggtok.Tokenizer.from_gguf(output) == ggtok.train(counted, kind="bpe", vocab_size=265, min_frequency=1)
    for bad in (b"no count\n", b"text\tmany\n", b"\xff\t1\n"):
        path.write_bytes(b"fine\t1\n" + bad)
        capsys.readouterr()
        assert main([*arguments, str(path)]) == 2
        assert "line 2: expected a text in UTF-8, a tab and a count" in capsys.readouterr().err
