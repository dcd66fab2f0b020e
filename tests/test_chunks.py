"""`split` and `truncate`: exact slices within the budget, near the fewest chunks, and the longest text that fits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from conftest import shared_files
from ggtok import Chunk, GgtokError, Tokenizer
from hypothesis import given, settings
from hypothesis import strategies as st

BUILTIN = ("bpe", "spm", "unigram", "wordpiece")
TOKENIZERS = {name: Tokenizer.builtin(name) for name in BUILTIN}
PROSE = (
    "Title\n\nThe first sentence is short. The second one, however, goes on for quite a while, as sentences do!\n"
    "A line.\n\n\nИ ещё немного текста. 中文没有空格。但是有句号。还有一句。 naïve café \U0001f1e9\U0001f1ea e\u0301 "
) * 3

texts = st.one_of(
    st.text(max_size=60),
    st.text("ab .\n", max_size=80),
    st.lists(
        st.sampled_from(["word ", "Another. ", "\n\n", "中文", "é", "\u0301", "\U0001f600", "<|im_end|>", "  "])
    ).map("".join),
)


@pytest.mark.parametrize("name", BUILTIN)
@given(text=texts, max_tokens=st.integers(3, 40), overlap=st.integers(0, 5), add_special=st.booleans())
def test_chunks_are_slices_within_the_budget(
    name: str, text: str, max_tokens: int, overlap: int, add_special: bool
) -> None:
    tok = TOKENIZERS[name]
    room = max_tokens - tok.count("", add_special=add_special)
    if overlap >= room or any(tok.count(char, add_special=add_special) > max_tokens for char in text):
        with pytest.raises(GgtokError, match=r"overlap is|max_tokens"):
            tok.split(text, max_tokens, overlap=overlap, add_special=add_special)
        return
    chunks = tok.split(text, max_tokens, overlap=overlap, add_special=add_special)
    check(tok, text, chunks, max_tokens, overlap, add_special=add_special)


def check(
    tok: Tokenizer, text: str, chunks: list[Chunk], max_tokens: int, overlap: int = 0, add_special: bool = True
) -> None:
    end = 0
    for before, chunk in zip([None, *chunks], chunks, strict=False):
        assert chunk.text == text[chunk.start : chunk.end] != ""
        assert chunk.count == tok.count(chunk.text, add_special=add_special) <= max_tokens
        assert chunk.start <= end < chunk.end
        assert chunk.start > before.start if before else chunk.start == 0
        assert tok.count(text[chunk.start : end], add_special=False) <= overlap or chunk.start == end
        end = chunk.end
    assert end == len(text)


@pytest.mark.parametrize("name", BUILTIN)
@pytest.mark.parametrize("side", ["right", "left", "middle"])
@given(text=texts, max_tokens=st.integers(1, 30), add_special=st.booleans())
def test_truncated_is_the_longest_that_fits(
    name: str, side: str, text: str, max_tokens: int, add_special: bool
) -> None:
    tok = TOKENIZERS[name]
    added = tok.count("", add_special=add_special)
    if max_tokens < added:
        with pytest.raises(GgtokError, match=f"max_tokens is {max_tokens}, but .* are {added} already"):
            tok.truncate(text, max_tokens, side=side, add_special=add_special)
        return
    found = tok.truncate(text, max_tokens, side=side, add_special=add_special)
    assert found == longest(tok, text, max_tokens, side, add_special)


def longest(tok: Tokenizer, text: str, max_tokens: int, side: str, add_special: bool) -> str:
    """Tries all, longest first."""

    def first(candidates: list[str], limit: int = max_tokens) -> str:
        return next(c for c in candidates if tok.count(c, add_special=add_special) <= limit)

    starts = [text[:at] for at in range(len(text), -1, -1)]
    if side == "right":
        return first(starts)
    if side == "left":
        return first([text[at:] for at in range(len(text) + 1)])
    if tok.count(text, add_special=add_special) <= max_tokens:
        return text
    added = tok.count("", add_special=add_special)
    start = first(starts, added + -(-(max_tokens - added) // 2))
    return first([start + text[at:] for at in range(len(start), len(text) + 1)])


@pytest.mark.parametrize("name", BUILTIN)
@pytest.mark.parametrize("boundary", ["paragraph", "line", "sentence", "word", "character"])
def test_boundaries(name: str, boundary: str) -> None:
    tok = TOKENIZERS[name]
    for max_tokens in (9, 20, 100):
        chunks = tok.split(PROSE, max_tokens, boundaries=[boundary])
        check(tok, PROSE, chunks, max_tokens)
        assert chunks == tok.split(PROSE, max_tokens, boundaries=(b for b in [boundary, boundary]))


def test_coarse_boundaries_come_first() -> None:
    tok = TOKENIZERS["bpe"]
    text = "One two three. Four five six.\n\nSeven eight nine. Ten eleven.\nTwelve thirteen."
    assert [chunk.text for chunk in tok.split(text, 12)] == [
        "One two three. Four five six.\n\n",
        "Seven eight nine. Ten eleven.\n",
        "Twelve thirteen.",
    ]


def test_no_chunk_ends_inside_a_special_token() -> None:
    tok = TOKENIZERS["bpe"]
    text = "<|im_start|>" * 20
    for chunk in tok.split(text, 3, parse_special=True, boundaries=["word", "character"]):
        assert chunk.text == "<|im_start|>" * chunk.count


@pytest.mark.parametrize("name", BUILTIN)
def test_lone_surrogates_stay(name: str) -> None:
    tok, text = TOKENIZERS[name], "a \ud800b. \udfff" * 20
    check(tok, text, tok.split(text, 12), 12)
    assert text.startswith(tok.truncate(text, 12))
    assert text.endswith(tok.truncate(text, 12, side="left"))


@pytest.mark.parametrize(
    ("call", "arguments", "error", "message"),
    [
        ("split", {"max_tokens": 0}, GgtokError, "max_tokens must be at least 1, not 0"),
        ("split", {"max_tokens": -3}, GgtokError, "max_tokens must be at least 1, not -3"),
        ("split", {"max_tokens": 4, "overlap": -1}, GgtokError, "overlap must be at least 0, not -1"),
        ("split", {"max_tokens": 4, "overlap": 4}, GgtokError, "overlap is 4, but must be less than the 4 tokens"),
        ("split", {"max_tokens": 4, "boundaries": ["page"]}, GgtokError, 'boundaries must be of .*, not "page"'),
        ("split", {"max_tokens": 4, "boundaries": "word"}, TypeError, "not one str"),
        ("split", {"max_tokens": 4, "text": b"a"}, TypeError, "text must be str, not bytes"),
        (
            "split",
            {"max_tokens": 1, "text": "\U0001f9ff"},
            GgtokError,
            "the character at byte 0 has . tokens by itself",
        ),
        ("split", {"max_tokens": "4"}, TypeError, "str"),
        ("truncate", {"max_tokens": 0}, GgtokError, "max_tokens must be at least 1, not 0"),
        ("truncate", {"max_tokens": 4, "side": "top"}, GgtokError, "side must be 'right', 'left' or 'middle', not"),
        ("truncate", {"max_tokens": 4, "text": 7}, TypeError, "text must be str, not int"),
    ],
)
def test_bad_arguments(call: str, arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        getattr(TOKENIZERS["bpe"], call)(**{"text": "some text"} | arguments)


def test_budgets_of_any_size() -> None:
    tok = TOKENIZERS["spm"]
    assert tok.split("a b", 2**70) == [Chunk("a b", 0, 3, tok.count("a b"))]
    assert tok.truncate("a b", 2**70) == "a b"
    assert tok.split("", 5) == []
    assert tok.truncate("", 5) == ""


@pytest.mark.parametrize("unit", ["a", " ", "\n", "中", "\u0301", "\U0001f1e9", "ab ", "a.\n\n", "<|im_end|>"])
@pytest.mark.parametrize("name", BUILTIN)
def test_long_runs(name: str, unit: str) -> None:
    tok, text = TOKENIZERS[name], unit * 20_000
    check(tok, text, tok.split(text, 200, overlap=20), 200, 20)
    for side in ("right", "left", "middle"):
        assert tok.count(tok.truncate(text, 200, side=side)) <= 200


@pytest.mark.parametrize("path", shared_files("vocabs/*.gguf"))
def test_every_kind(path: Path) -> None:
    tok = Tokenizer.from_gguf(path)
    for max_tokens, overlap in ((8, 0), (50, 10), (400, 50)):
        check(tok, PROSE, tok.split(PROSE, max_tokens, overlap=overlap), max_tokens, overlap)
    for side in ("right", "left", "middle"):
        for max_tokens in (4, 30):
            assert tok.truncate(PROSE, max_tokens, side=side) == longest(tok, PROSE, max_tokens, side, True)


@settings(max_examples=20)
@given(max_tokens=st.integers(8, 300))
def test_not_more_chunks_than_semantic_text_splitter(max_tokens: int) -> None:
    splitter = pytest.importorskip("semantic_text_splitter")
    tok = TOKENIZERS["bpe"]
    theirs = splitter.TextSplitter.from_callback(tok.count, max_tokens, trim=False).chunks(PROSE)
    assert len(tok.split(PROSE, max_tokens)) <= 1.05 * len(theirs) + 1
