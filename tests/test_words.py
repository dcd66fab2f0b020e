"""The sentences that the terminal and the page share."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from ggtok.lab.explain.verdict import said, words

ROOT = Path(__file__).resolve().parents[1]
STORY = json.loads((ROOT / "rust/explain/src/story/words.json").read_text(encoding="utf-8"))


def test_a_sentence_takes_values_as_they_are() -> None:
    """Marks and braces in a value have no meaning."""
    parts = said("differ", character="**{b}**", a="x", b="y")
    assert parts[:2] == [("Cuts first differ at character **{b}**: ", False), ("x", True)]
    assert said("counts", a=1, b=2) == [("1 and 2 tokens.", False)]


def test_a_sentence_that_is_missing_is_an_error() -> None:
    with pytest.raises(KeyError):
        said("there_is_none")
    with pytest.raises(KeyError):
        said("counts", a="a")


def test_sentences_are_well_formed() -> None:
    for group in (words(), *STORY.values()):
        for sentence in group.values():
            assert sentence.count("**") % 2 == 0
            assert not re.search(r"[{}]", re.sub(r"\{\w+\}", "", sentence))


def test_plural_forms_are_complete() -> None:
    captions = STORY["captions"]
    assert {key.removesuffix("_one") for key in captions if key.endswith("_one")} <= set(captions)
