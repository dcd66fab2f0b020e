"""Small things that readers stumbled over, each with the place where it is right now."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from ggtok import Tokenizer
from test_cli import call

ROOT = Path(__file__).parents[1]


def test_where_the_loader_texts_are() -> None:
    source = (ROOT / "rust/core/src/vocabulary/slots.rs").read_text(encoding="utf-8")
    assert "<|eot_id|>" in source
    for page in ("scripts/watch_llama_cpp.py", "docs/maintaining.md"):
        assert re.search(r"loader texts.*vocabulary/slots\.rs", (ROOT / page).read_text(encoding="utf-8"))


def test_reasons_show_patterns_as_they_are() -> None:
    (reason, *_) = Tokenizer.builtin("bpe").explain("ab  ab").why(0, 4).reasons
    assert "\\\\" not in reason.message
    assert "\\" in reason.message


def test_a_word_that_is_listed_and_looked_up_is_walked_once() -> None:
    shown = call("explain", "--trie", "un", "unit", "-p", "un", "-p", "x").out.decode()
    assert len(re.findall(r"(?i)^.*look-?up of 'un'.*$", shown, re.M)) <= 1
    assert (
        call("explain", "--trie", "un", "unit", "-p", "un", "-p", "x", "--json").json
        == call("explain", "--trie", "un", "unit", "-p", "x", "--json").json
    )


@pytest.mark.parametrize(
    ("name", "shown", "hidden"),
    [
        ("bpe", {"add_bos", "add_eos"}, {"lowercase", "strip_accents", "add_space_prefix"}),
        ("spm", {"add_bos", "add_eos", "add_space_prefix"}, {"lowercase", "ignore_merges", "add_sep"}),
        ("unigram", {"add_bos", "add_eos", "remove_extra_whitespaces"}, {"lowercase", "strip_accents"}),
        ("wordpiece", {"clean_spaces", "lowercase", "strip_accents"}, {"escape_whitespaces", "ignore_merges"}),
    ],
)
def test_inspect_lists_flags_of_the_kind(name: str, shown: set[str], hidden: set[str]) -> None:
    printed = set(re.findall(r"\w+", call("inspect", "--builtin", name).out.decode()))
    assert shown <= printed
    assert not hidden & printed
