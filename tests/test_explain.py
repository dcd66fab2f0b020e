"""Traces: their tokens are those of every recorded case, and every place has reasons. `test_oracles.py` has more."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest
from conftest import PROFILE, SHARED, every_kind, shared_files
from ggtok import GgtokError, Tokenizer, TokenizerWarning, VocabularyError, _ggtok
from hypothesis import note
from hypothesis import strategies as st
from oracles import conformance, strategies
from oracles.gguf_vocab import Vocab

REASONS = {
    *("one_token", "special_not_parsed", "special_boundary", "piece_boundary", "word_boundary", "normalized"),
    *("not_in_vocabulary", "merge_missing", "merge_lost", "score_lost", "longer_match", "unknown_word"),
}


def raw(
    tokenizer: Tokenizer,
    text: str | bytes,
    *,
    add_special: bool = True,
    parse_special: bool = False,
    continues: bool = False,
) -> _ggtok.RawTrace:
    return _ggtok.explain(tokenizer, text, add_special, parse_special, continues)


def encoded(tokenizer: Tokenizer, text: bytes, **flags: bool) -> list[tuple[int, int, int]]:
    ids, spans = tokenizer.encode_with_offsets(text, unit="byte", **flags).tolist()
    return [(id, start, end) for id, (start, end) in zip(ids, spans, strict=True)]


@every_kind
def test_every_place_has_reasons(kind: str, data: st.DataObject) -> None:
    vocab, tokenizer = strategies.drawn(kind, data)
    text = data.draw(strategies.texts(vocab))
    flags: dict[str, Any] = {name: data.draw(st.booleans()) for name in ("add_special", "parse_special", "continues")}
    note(f"{text!r} {flags}")
    trace = raw(tokenizer, text, **flags)
    if not text:
        return
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start + 1, len(text)))
    why = json.loads(trace.why(start, end))
    assert why["start"] <= start < end <= why["end"]
    assert why["reasons"], (start, end)
    for reason in why["reasons"]:
        assert reason["kind"] in REASONS
        assert reason["message"].endswith(".")


@pytest.mark.filterwarnings("ignore::ggtok.TokenizerWarning")
@pytest.mark.parametrize("path", shared_files("conformance/*.jsonl.gz") + shared_files("conformance/pre/*.jsonl.gz"))
def test_traces_end_in_the_recorded_tokens(path: Path) -> None:
    """Of a quarter of the texts, as a trace takes ten times as long as its tokens; in the weekly workflow of all."""
    records = conformance.records(path)
    header = next(records)
    tokenizer = Tokenizer.from_gguf(SHARED / "vocabs" / header["file"], overrides=header["overrides"])
    cases = [case for case in records if case["kind"] == "encode"]
    if PROFILE == "fast":
        cases = Random(path.name).sample(cases, -(-len(cases) // 4))
    wrong = []
    for case in cases:
        flags = conformance.flags(case)
        found = json.loads(raw(tokenizer, case["text"], **flags).json())["tokens"]
        tokens = [(token["id"], token["start"], token["end"]) for token in found]
        if [id for id, _, _ in tokens] != case["ids"] or tokens != encoded(tokenizer, case["text"], **flags):
            wrong.append((case["text"], flags, tokens))
    assert not wrong, f"{len(wrong)} of {len(cases)} differ; the first: {wrong[0]}"


def test_what_cannot_be_explained_is_an_error() -> None:
    tokenizer = Tokenizer.builtin("bpe")
    with pytest.raises(GgtokError, match="a text of 1048577 bytes is longer than the 1048576 that can be explained"):
        raw(tokenizer, "a" * (2**20 + 1))
    with pytest.raises(GgtokError, match="the text takes more than the 1000000 steps that a trace records"):
        raw(tokenizer, "a" * 2**20)
    trace = raw(tokenizer, "What")
    for start, end in [(0, 0), (3, 2), (0, 5)]:
        with pytest.raises(GgtokError, match=rf"bytes {start} to {end} are not a part of a text of 4 bytes"):
            trace.why(start, end)
    with pytest.raises(TypeError):
        raw(tokenizer, 1)  # type: ignore[arg-type]
    vocab = Vocab("bert", [b"[UNK]", b"a"], [2, 1], unk=0)
    with pytest.warns(TokenizerWarning):
        tokenizer = Tokenizer.from_gguf(vocab.gguf())
    with pytest.raises(VocabularyError, match="BOS"):
        raw(tokenizer, "a", add_special=True)


def test_unread_special_tokens_are_reported() -> None:
    tokenizer = Tokenizer.builtin("bpe")
    text = "a <|im_end|>"
    trace = json.loads(raw(tokenizer, text).json())
    (unread,) = trace["unread"]
    assert (unread["token"], unread["attribute"], unread["start"], unread["end"]) == (12993, "control", 2, 12)
    assert not trace["special"]
    (first, *_) = json.loads(raw(tokenizer, text).why(2, 12))["reasons"]
    assert first["kind"] == "special_not_parsed"
    trace = json.loads(raw(tokenizer, text, parse_special=True).json())
    assert not trace["unread"]
    assert [fragment["token"] for fragment in trace["fragments"]] == [None, 12993]
