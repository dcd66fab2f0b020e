"""The sentences that the terminal and the page share."""

from __future__ import annotations

import re

import pytest
from ggtok.lab.explain.words import said, say, words


def test_a_sentence_takes_values_as_they_are() -> None:
    """Marks and braces in a value have no meaning."""
    parts = said("captions.token", text="**{token}**", token=7)
    assert parts == [("**{token}**", True), (" is token ", False), ("7", False), (".", False)]
    assert say("captions.token", text="a", token=7) == "a is token 7."


@pytest.mark.parametrize("key", ["captions.there_is_none", "ideas.none_such"])
def test_a_sentence_that_is_missing_is_an_error(key: str) -> None:
    with pytest.raises(KeyError):
        say(key)
    with pytest.raises(KeyError):
        say("captions.token", text="a")


def test_sentences_are_well_formed() -> None:
    for group in words().values():
        for sentence in group.values():
            assert sentence.count("**") % 2 == 0
            assert not re.search(r"[{}]", re.sub(r"\{\w+\}", "", sentence))


def test_plural_forms_are_complete() -> None:
    captions = words()["captions"]
    assert {key.removesuffix("_one") for key in captions if key.endswith("_one")} <= set(captions)
