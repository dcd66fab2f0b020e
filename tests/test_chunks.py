"""`split` and `truncate`: exact slices within the budget, near the fewest chunks, and the longest text that fits."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import BUILTIN, TOKENIZERS, shared_files
from ggtok import Chunk, GgtokError, Tokenizer
from ggtok.tokenizer.chunks import split_all
from hypothesis import given, settings
from hypothesis import strategies as st

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
    name: str, side: Any, text: str, max_tokens: int, add_special: bool
) -> None:
    tok = TOKENIZERS[name]
    added = tok.count("", add_special=add_special)
    if max_tokens < added:
        with pytest.raises(GgtokError, match=f"max_tokens is {max_tokens}, but {added} tokens are added"):
            tok.truncate(text, max_tokens, side=side, add_special=add_special)
        return
    found = tok.truncate(text, max_tokens, side=side, add_special=add_special)
    assert found == longest(tok, text, max_tokens, side, add_special)


def longest(tok: Tokenizer, text: str, max_tokens: int, side: Any, add_special: bool) -> str:
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
def test_boundaries(name: str, boundary: Any) -> None:
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
        ("split", {"max_tokens": 4, "boundaries": ["page"]}, GgtokError, "boundaries must be .* of .*, not 'page'"),
        ("split", {"max_tokens": 4, "boundaries": "word"}, TypeError, "not one str"),
        ("split", {"max_tokens": 4, "text": 7}, TypeError, "a text must be str or bytes-like, not int"),
        (
            "split",
            {"max_tokens": 1, "text": "\U0001f9ff"},
            GgtokError,
            "the character at byte 0 has . tokens by itself",
        ),
        ("split", {"max_tokens": "4"}, TypeError, "str"),
        ("truncate", {"max_tokens": 0}, GgtokError, "max_tokens must be at least 1, not 0"),
        ("truncate", {"max_tokens": 4, "side": "top"}, GgtokError, "side must be 'right', 'left' or 'middle', not"),
        ("truncate", {"max_tokens": 4, "text": 7}, TypeError, "a text must be str or bytes-like, not int"),
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


# Characters, as a reader sees them

BPE = Tokenizer.builtin("bpe")
FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466"


@pytest.mark.parametrize("budget", range(4, 40))
def test_a_character_that_fits_is_not_cut(budget: int) -> None:
    """A family of 15 tokens is cut only by smaller budgets, and then between its people."""
    text = f"ab {FAMILY}{FAMILY} cd"
    assert BPE.count(FAMILY) == 15
    chunks = BPE.split(text, budget)
    assert "".join(chunk.text for chunk in chunks) == text
    assert all(chunk.count == BPE.count(chunk.text) <= budget for chunk in chunks)
    families = sum(chunk.text.count(FAMILY) for chunk in chunks)
    assert families == (2 if budget >= 15 else 0)
    if budget < 15:
        # As many people as fit, not one by one.
        assert len(chunks) <= 4 + 2 * -(-15 // (budget - 3))


def test_strip() -> None:
    text = "  One.  \n\n Two three four. \n\n  \n\n" + " " * 50
    chunks = BPE.split(text, 4, strip=True)
    assert [chunk.text for chunk in chunks] == ["One.", "Two three", "four."]
    for chunk in chunks:
        assert text[chunk.start : chunk.end] == chunk.text == chunk.text.strip()
        assert chunk.count == BPE.count(chunk.text) <= 4
    assert BPE.split(" \n ", 5, strip=True) == []


@given(st.text("aLo \n\u00e9R", max_size=60), st.integers(1, 12), st.integers(0, 3))
def test_stripped_chunks_fit_and_keep_all_but_white_space(text: str, budget: int, overlap: int) -> None:
    try:
        chunks = BPE.split(text, budget, overlap=min(overlap, budget - 1), strip=True)
    except GgtokError:
        return
    assert all(text[chunk.start : chunk.end] == chunk.text == chunk.text.strip() != "" for chunk in chunks)
    assert all(chunk.count == BPE.count(chunk.text) <= budget for chunk in chunks)
    covered = {place for chunk in chunks for place in range(chunk.start, chunk.end)}
    assert all(place in covered or text[place].isspace() for place in range(len(text)))


@pytest.mark.parametrize("threads", [1, 3])
def test_split_batch(threads: int) -> None:
    texts = [f"Sentence {number}. And another one. " * number for number in range(20)]
    options: Any = {"overlap": 2, "boundaries": ["sentence"], "strip": True}
    rows = BPE.split_batch(iter(texts), 9, threads=threads, **options)
    assert rows == [BPE.split(text, 9, **options) for text in texts]
    with pytest.raises(GgtokError, match="text 1: the character at byte 0 has 3 tokens"):
        BPE.split_batch(["a", FAMILY, 7], 2, threads=threads)  # type: ignore[type-var]
    with pytest.raises(TypeError, match="text 2: "):
        BPE.split_batch(["a", "b", 7], 2, threads=threads)  # type: ignore[type-var]
    with pytest.raises(TypeError, match="texts must be an iterable of texts, not one str"):
        BPE.split_batch("ab", 2)
    with pytest.raises(GgtokError, match="threads must be at least 1"):
        BPE.split_batch(["ab"], 2, threads=0)
    assert rows[1][0].to_dict() == {
        "text": rows[1][0].text,
        "start": 0,
        "end": rows[1][0].end,
        "count": rows[1][0].count,
    }


def test_a_bad_text_ends_split_batch() -> None:
    """Few of the others are looked at, and not each is handed to a thread."""
    tried = []

    def split(text: str) -> list[Chunk[str]]:
        tried.append(text)
        raise TypeError("not a text")

    with pytest.raises(TypeError, match=r"^text 0: not a text$"):
        split_all(["a"] * 100_000, split, 2)
    assert len(tried) <= 100_000 / 64 + 1


@pytest.mark.parametrize("name", ["bpe", "spm"])
@pytest.mark.parametrize(
    "cluster",
    ["a" + "\u0301" * 20_000, "\U0001f468\u200d" * 8_000, "\u1100" * 20_000, "\U0001f44d" + "\U0001f3fb" * 8_000],
)
def test_a_long_cluster_is_cut_into_few_chunks(name: str, cluster: str) -> None:
    tok = TOKENIZERS[name]
    for max_tokens in (60, 3_000):
        chunks = tok.split(cluster, max_tokens, add_special=False)
        check(tok, cluster, chunks, max_tokens, add_special=False)
        # A chunk may begin with a space, and have no room for three tokens of the four of a code point.
        assert len(chunks) <= tok.count(cluster, add_special=False) / (max_tokens - 4) + 1


@pytest.mark.parametrize("name", BUILTIN)
@pytest.mark.parametrize("side", ["right", "left", "middle"])
def test_only_the_ends_of_a_long_text_are_read(name: str, side: Any) -> None:
    tok, text = TOKENIZERS[name], "naïve café 中文 text. " * 200_000
    size = sys.getsizeof(text)
    assert tok.count(tok.truncate(text, 1_000, side=side)) in range(990, 1_001)
    # A text that is read as a whole keeps its UTF-8.
    assert sys.getsizeof(text) == size
