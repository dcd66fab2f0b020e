"""`evaluate`: the figures are those of counting by hand, in memory and from files in parts."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import ggtok
import pytest
from conftest import BUILTIN, TOKENIZERS
from ggtok import GgtokError, evaluate
from ggtok.cli import main
from hypothesis import given
from hypothesis import strategies as st

TEXTS = {"en": "The end, isn't it?\n", "odd": "Ωμέγα 😀 你好\n\n", "empty": ""}


def by_hand(name: str, texts: list[str]) -> tuple[int, int, int, int]:
    """Tokens, unknown tokens, tokens for parts of characters, and different tokens."""
    tokenizer = TOKENIZERS[name]
    ids = [id for text in texts for id in tokenizer.encode(text, add_special=False)]
    unknown = [id for id in ids if id == tokenizer.vocab.unk_id]
    partial = [
        id
        for id in ids
        if id not in unknown
        and (
            ggtok.TokenAttribute.BYTE in tokenizer.vocab[id].attributes
            or "\ufffd" in tokenizer.piece(id).decode("utf-8", "replace")
        )
    ]
    return len(ids), len(unknown), len(partial), len(set(ids) - set(unknown))


def figures(score: ggtok.Score) -> tuple[int, int, int, int]:
    return score.tokens, score.unknown, score.byte_fallback, score.used


@given(st.lists(st.text(), max_size=4))
def test_figures_are_those_of_counting_by_hand(texts: list[str]) -> None:
    texts = [text for text in texts if "\ufffd" not in text]
    for score in evaluate(TOKENIZERS, texts).scores:
        assert figures(score) == by_hand(score.tokenizer, texts)
        assert (score.bytes, score.characters) == (len("".join(texts).encode()), len("".join(texts)))


def test_rows_rates_and_the_row_of_all() -> None:
    evaluation = evaluate(TOKENIZERS, TEXTS, reference="en")
    rows = {(score.text, score.tokenizer): score for score in evaluation.scores}
    assert list(rows) == [(text, name) for text in (*TEXTS, "all") for name in BUILTIN]
    score = rows["en", "bpe"]
    assert score.bytes_per_token == score.bytes / score.tokens
    assert (score.words, score.tokens_per_word) == (4, score.tokens / 4)
    assert score.vocabulary_use == score.used / score.usable
    assert rows["odd", "bpe"].parity == rows["odd", "bpe"].tokens / score.tokens
    assert (score.parity, rows["all", "bpe"].parity) == (1, None)
    assert rows["odd", "wordpiece"].unknown_rate == rows["odd", "wordpiece"].unknown / rows["odd", "wordpiece"].tokens
    empty = rows["empty", "spm"]
    assert (empty.tokens, empty.bytes_per_token, empty.tokens_per_word, empty.unknown_rate) == (0, 0, 0, 0)
    for name in BUILTIN:
        assert figures(rows["all", name]) == by_hand(name, list(TEXTS.values()))
    assert rows["odd", "spm"].words == 3  # Greek, and each Han character


def test_a_file_is_read_in_parts_as_one_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["The quick brown fox isn't lazy.\n" * 9, "知之為知之,不知為不知,是知也" * 5, "a" * 100, "\n \n" * 30, ""]
    whole = [evaluate(TOKENIZERS, [text]) for text in texts]
    monkeypatch.setattr("ggtok.lab.evaluate.READ_SIZE", 13)
    for text, expected in zip(texts, whole, strict=True):
        path = tmp_path / "text"
        path.write_text(text, encoding="utf-8", newline="")
        found = evaluate(TOKENIZERS, path)
        if " " not in text and "\n" not in text and text:
            # A word without spaces is cut between two parts.
            assert [score._replace(words=0) for score in found.scores] == [s._replace(words=0) for s in expected.scores]
        else:
            assert found == expected


def test_bytes_that_are_not_utf8_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "bytes"
    path.write_bytes(b"a \xff\xfe b")
    (score,) = evaluate(TOKENIZERS["bpe"], path).scores
    assert score.tokens == len(TOKENIZERS["bpe"].encode(b"a \xff\xfe b", add_special=False))
    assert (score.bytes, score.characters, score.words) == (6, 6, 2)


@pytest.mark.parametrize(
    ("tokenizers", "texts", "error", "message"),
    [
        ([TOKENIZERS["bpe"]] * 2, ["a"], GgtokError, "two tokenizers are named 'ggtok bpe': pass a dict"),
        ([], ["a"], GgtokError, "no tokenizers to evaluate"),
        (TOKENIZERS, {}, GgtokError, "no texts to evaluate"),
        (TOKENIZERS, {"en": "a"}, GgtokError, "reference must be one of 'en', not 'de'"),
        (TOKENIZERS, {"all": "a"}, GgtokError, "no text can be named 'all'"),
        (["bpe"], ["a"], TypeError, r"tokenizers must be ggtok.Tokenizer, not str"),
        (TOKENIZERS, [1], TypeError, "the text 'text' must be str, a path or an iterable of str, not of int"),
        (TOKENIZERS, Path("no such file"), FileNotFoundError, "no such file"),
    ],
)
def test_wrong_arguments(tokenizers: Any, texts: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        evaluate(tokenizers, texts, reference="de" if "de" in message else None)


def test_the_chart_is_an_svg_with_a_bar_per_score(tmp_path: Path) -> None:
    evaluation = evaluate({"<b>&": TOKENIZERS["bpe"], "spm": TOKENIZERS["spm"]}, {"a": "a text", "b": "b"})
    evaluation.to_svg(tmp_path / "chart.svg")
    root = ElementTree.parse(tmp_path / "chart.svg").getroot()
    texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert [text for text in texts if text in ("a", "b", "all")] == ["a", "b", "all"]
    assert texts.count("<b>&") == 3
    assert f"{evaluation.scores[0].bytes_per_token:.3g}" in texts
    # Nothing is drawn above the title or below the end.
    rows = [float(element.get("y", 0)) for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert rows[0] == min(rows) < sorted(rows)[1]
    assert max(rows) < float(root.get("height", 0))


def test_the_worst_words_and_unused_tokens() -> None:
    texts = ["Unbelievable! Is it believable? It is. Is it, Ωμέγα?"] * 2
    for name, tok in TOKENIZERS.items():
        evaluation = evaluate({name: tok}, texts, worst=4)
        listed = [(score.word, score.times, score.tokens) for score in evaluation.worst]
        words = {"Unbelievable": 2, "Is": 4, "it": 4, "believable": 2, "It": 2, "is": 2, "Ωμέγα": 2}
        tokens = {w: min(tok.count(form, add_special=False) for form in (w, f" {w}")) for w in words}
        worst = sorted(
            (word for word in words if tokens[word] > 1), key=lambda word: (words[word] * (1 - tokens[word]), word)
        )[:4]
        assert listed == [(word, words[word], tokens[word]) for word in worst]
        assert {score.tokenizer for score in evaluation.worst} == {name}
        (score,) = evaluation.scores
        assert len(evaluation.unused[name]) == score.usable - score.used
        assert not {*evaluation.unused[name]} & {*tok.encode(texts[0], add_special=False)}
    assert evaluate(TOKENIZERS, texts).worst == ()
    with pytest.raises(GgtokError, match="worst must be at least 0"):
        evaluate(TOKENIZERS, texts, worst=-1)


def test_the_command_lists_the_worst_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "text.txt"
    path.write_text("Unbelievable! Is it believable? " * 3)
    arguments = ["evaluate", str(path), "--builtin", "bpe", "--builtin", "unigram", "--worst", "1"]
    assert main(arguments) == 0
    printed = capsys.readouterr().out
    assert re.search(r"^tokenizer +word +times +tokens$", printed, re.MULTILINE)
    assert re.search(r"^bpe +Unbelievable +3 +6$", printed, re.MULTILINE)
    assert re.search(r"^bpe: 12,\d\d\d tokens are in no text$", printed, re.MULTILINE)
    assert main([*arguments, "--json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["word"] for row in rows if "word" in row] == ["Unbelievable"] * 2
