"""One meaning for a `str`: a text. Files are `files=[...]` or paths; what could be either is an error or a warning."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import ggtok
import pytest
from ggtok import TokenizerWarning
from ggtok.tokenizer.text_or_path import NUM_LOOKED_UP

BPE = ggtok.Tokenizer.builtin("bpe")
TEXT = "low lower lowest " * 10


def train(*texts: Any, **options: Any) -> int:
    return len(ggtok.train(*texts, kind="bpe", vocab_size=260, **options).vocab)


def evaluate(*texts: Any, **options: Any) -> int:
    return ggtok.evaluate(BPE, *texts, **options).scores[0].bytes


CALLS = {"train": train, "evaluate": evaluate}


@pytest.fixture(autouse=True)
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.txt").write_text(TEXT)


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_files_are_files(call: Callable[..., int]) -> None:
    expected = call([TEXT])
    for found in (call(Path("a.txt")), call(files=["a.txt"]), call(files=(Path("a.txt"),))):
        assert found == expected
    assert ggtok.train(files=["a.txt"], kind="bpe", vocab_size=260) == ggtok.train([TEXT], kind="bpe", vocab_size=260)
    assert evaluate(files={"en": "a.txt"}) == evaluate({"en": Path("a.txt")}) == len(TEXT)
    assert [score.text for score in ggtok.evaluate(BPE, files=["a.txt"]).scores] == ["a"]


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_lone_str_says_both_ways(call: Callable[..., int]) -> None:
    with pytest.raises(TypeError, match=r"texts is a single str: \['a.txt'\] is a text, files=\['a.txt'\] a file"):
        call("a.txt")
    with pytest.raises(TypeError, match="texts is a single bytes"):
        call(b"a.txt")
    for lone in ("a.txt", Path("a.txt")):
        with pytest.raises(TypeError, match=r"files must be a list of paths, not a single one: files=\['a.txt'\]"):
            call(files=lone)
    with pytest.raises(TypeError, match="takes texts or files, one of them"):
        call()
    with pytest.raises(TypeError, match="takes texts or files, not both"):
        call([TEXT], files=["a.txt"])


def test_a_text_that_names_a_file_is_warned_of() -> None:
    match = r"text 1 is 'a.txt', the name of a file; files=\['a.txt'\] reads it"
    for call in (train, evaluate):
        with pytest.warns(TokenizerWarning, match=match) as caught:
            call([TEXT, "a.txt", "a.txt"])
        assert len(caught) == 1
    with pytest.warns(TokenizerWarning, match="the text 'en' is 'a.txt', the name of a file"):
        assert evaluate({"en": "a.txt"}) == 5
    train([TEXT, "a.txt\n", ".", "", "\0", "x" * 5000])
    evaluate([TEXT] * NUM_LOOKED_UP + ["a.txt"])


def test_two_files_of_one_name() -> None:
    Path("b").mkdir()
    Path("b/a.txt").write_text("b")
    with pytest.raises(ggtok.GgtokError, match="two files are named 'a': pass a dict of paths by name"):
        evaluate(files=["a.txt", "b/a.txt"])


def test_kinds_have_one_name() -> None:
    for name, kind in (("ugm", "unigram"), ("wpm", "wordpiece")):
        assert ggtok.Tokenizer.builtin(kind).vocab.kind == kind
        texts = ["the low lower lowest of the words", "a few more words here"] * 20
        theirs: Any = name
        made: Any = kind
        assert ggtok.train(texts, kind=theirs, vocab_size=26) == ggtok.train(texts, kind=made, vocab_size=26)
