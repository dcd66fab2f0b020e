"""Every table of the notes on SentencePiece (003) and byte-pair encoding (004), out of traces of the same models."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from ggtok import Tokenizer, _ggtok
from oracles.gguf_vocab import TokenType, Vocab

TEXT = "What is LoRA?"
NORMAL, CONTROL, UNKNOWN = TokenType.NORMAL, TokenType.CONTROL, TokenType.UNKNOWN


def explain(tokenizer: Tokenizer, text: str, **flags: bool) -> dict[str, Any]:
    options = {"add_special": True, "parse_special": False, "continues": False} | flags
    raw = _ggtok.explain(tokenizer, text, *options.values())
    trace: dict[str, Any] = json.loads(raw.json())
    return trace


def steps(trace: dict[str, Any]) -> dict[str, Any]:
    """What the algorithm did with the only fragment of text."""
    (found,) = [fragment["steps"] for fragment in trace["fragments"] if fragment["token"] is None]
    result: dict[str, Any] = found
    return result


@cache
def opened(path: Path) -> Tokenizer:
    return Tokenizer.from_gguf(path)


@pytest.fixture
def spm(shared: Path) -> Tokenizer:
    return opened(shared / "vocabs/llama-spm.gguf")


@pytest.fixture
def bpe(shared: Path) -> Tokenizer:
    return opened(shared / "vocabs/llama-bpe.gguf")


def in_heap_order(queue: list[dict[str, Any]]) -> list[tuple[int, int, float, int]]:
    """Bigrams as they stand in llama.cpp's queue: pushed one by one, in the order of their places, into a heap."""
    heap: list[tuple[int, int, float, int]] = []
    for bigram in sorted(queue, key=lambda bigram: int(bigram["left"])):
        heap.append((bigram["left"], bigram["right"], bigram["score"], bigram["size"]))
        at = len(heap) - 1
        while at and heap[(at - 1) // 2][2] < heap[at][2]:
            heap[at], heap[(at - 1) // 2] = heap[(at - 1) // 2], heap[at]
            at = (at - 1) // 2
    return heap


# Note 003, SentencePiece in llama.cpp.


def test_003_fragments_and_output(spm: Tokenizer) -> None:
    text = f"<s>{TEXT}</s>"
    trace = explain(spm, text, parse_special=True)
    assert trace["added_before"] == 1
    fragments = [(fragment["token"], fragment["start"], fragment["end"]) for fragment in trace["fragments"]]
    assert fragments == [(1, 0, 3), (None, 3, 3 + 13), (2, 16, 20)]
    assert [token["id"] for token in trace["tokens"]][:3] == [1, 1, 1724]
    assert [token["text"] for token in trace["tokens"]][:3] == ["<s>", "<s>", "▁What"]


def test_003_escaped_text(spm: Tokenizer) -> None:
    found = steps(explain(spm, TEXT))
    assert (found["space_prefix"], found["escaped"], len(found["escaped"].encode())) == (True, "▁What▁is▁LoRA?", 20)


def test_003_symbols(spm: Tokenizer) -> None:
    symbols = steps(explain(spm, TEXT))["merging"]["symbols"]
    sizes = [3, 1, 1, 1, 1, 3, 1, 1, 3, 1, 1, 1, 1, 1]
    expected = [(index - 1, index + 1 if index < 13 else -1, n) for index, n in enumerate(sizes)]
    assert [(symbol["prev"], symbol["next"], symbol["n"]) for symbol in symbols] == expected
    assert "".join(symbol["text"] for symbol in symbols) == "▁What▁is▁LoRA?"


def test_003_first_bigram(spm: Tokenizer) -> None:
    (first,) = [bigram for bigram in steps(explain(spm, TEXT))["merging"]["queue"] if bigram["left"] == 0]
    assert first == {
        "left": 0,
        "right": 1,
        "text": "▁W",
        "size": 4,
        "score": -140,
        "rank": None,
        "token": 399,
    }


def test_003_queue(spm: Tokenizer) -> None:
    queue = steps(explain(spm, TEXT))["merging"]["queue"]
    assert [(bigram["text"], bigram["score"]) for bigram in queue] == [
        ("at", -12),
        ("is", -16),
        ("▁L", -106),
        ("▁W", -140),
        ("▁i", -215),
        ("ha", -2091),
        ("Lo", -3151),
        ("RA", -4458),
        ("Wh", -8550),
    ]
    assert in_heap_order(queue) == [
        (3, 4, -12, 2),
        (0, 1, -140, 4),
        (6, 7, -16, 2),
        (9, 10, -3151, 2),
        (5, 6, -215, 4),
        (2, 3, -2091, 2),
        (8, 9, -106, 4),
        (1, 2, -8550, 2),
        (11, 12, -4458, 2),
    ]


def test_003_rev_merge(spm: Tokenizer) -> None:
    found = steps(explain(spm, TEXT))
    rev_merge = {entry["text"]: (entry["left"], entry["right"]) for entry in found["rev_merge"]}
    seeded = {bigram["text"]: rev_merge[bigram["text"]] for bigram in found["merging"]["queue"]}
    assert dict(sorted(seeded.items())) == {
        "Lo": (9, 10),
        "RA": (11, 12),
        "Wh": (1, 2),
        "at": (3, 4),
        "ha": (2, 3),
        "is": (6, 7),
        "▁L": (8, 9),
        "▁W": (0, 1),
        "▁i": (5, 6),
    }


def test_003_first_merge_and_symbols_after_the_last(spm: Tokenizer) -> None:
    found = steps(explain(spm, TEXT))
    first = found["merging"]["pops"][0]
    assert first["stale"] is None
    assert [first["bigram"][name] for name in ("left", "right", "score", "size")] == [3, 4, -12, 2]
    merged = [(symbol["prev"], symbol["next"], symbol["n"]) for symbol in found["merging"]["merged"]]
    assert merged == [
        (-1, 5, 7),
        (0, 2, 0),
        (0, 3, 0),
        (0, 5, 0),
        (3, 5, 0),
        (0, 8, 5),
        (5, 8, 0),
        (6, 8, 0),
        (5, 11, 5),
        (8, 10, 0),
        (8, 11, 0),
        (8, 13, 2),
        (11, 13, 0),
        (11, -1, 1),
    ]
    assert (found["symbols"][0]["text"], found["symbols"][0]["token"]) == ("▁What", 1724)


def test_003_byte_fallback(spm: Tokenizer) -> None:
    found = steps(explain(spm, "Hello, こんにちは! 😊"))
    (emoji,) = [symbol for symbol in found["symbols"] if symbol["token"] is None]
    assert emoji["text"] == "😊"
    assert [byte["text"] for byte in emoji["bytes"]] == ["<0xF0>", "<0x9F>", "<0x98>", "<0x8A>"]
    assert [spm.piece(byte["token"]) for byte in emoji["bytes"]] == [b"\xf0", b"\x9f", b"\x98", b"\x8a"]


def test_003_hello() -> None:
    texts = [b"<unk>", b"<s>", b"</s>", b"h", b"e", b"l", b"o", b"lo"]
    types: list[int] = [UNKNOWN, CONTROL, CONTROL, *[NORMAL] * 5]
    vocab = Vocab("llama", texts, types, scores=[0.0] * len(texts), add_space_prefix=False)
    merging = steps(explain(Tokenizer.from_gguf(vocab.gguf()), "hello"))["merging"]
    columns = ("text", "n", "prev", "next")
    before = [[symbol[name] for symbol in merging["symbols"]] for name in columns]
    assert before == [list("hello"), [1, 1, 1, 1, 1], [-1, 0, 1, 2, 3], [1, 2, 3, 4, -1]]
    # The note leaves the last symbol as it was; here, as in llama.cpp, it has no length any more.
    after = [[symbol[name] for symbol in merging["merged"]] for name in columns]
    assert after == [["h", "e", "l", "lo", ""], [1, 1, 1, 2, 0], [-1, 0, 1, 2, 3], [1, 2, 3, -1, -1]]


# Note 004, byte-pair encoding in llama.cpp.


def test_004_pattern_and_pieces(bpe: Tokenizer) -> None:
    found = steps(explain(bpe, TEXT))
    (only,) = found["passes"]
    assert only["pattern"] == (
        r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|"
        r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    )
    assert [(piece["text"], piece["spelled"]) for piece in found["pieces"]] == [
        ("What", "What"),
        (" is", "Ġis"),
        (" LoRA", "ĠLoRA"),
        ("?", "?"),
    ]
    letters = r"[^\r\n\p{L}\p{N}]?\p{L}+"
    matched = [only["alternatives"][cut["alternative"]] for cut in only["cuts"]]
    assert matched == [letters, letters, letters, r" ?[^\s\p{L}\p{N}]+[\r\n]*"]


def test_004_pieces_that_are_tokens_skip_the_merges(bpe: Tokenizer) -> None:
    trace = explain(bpe, TEXT)
    assert [piece["whole"] for piece in steps(trace)["pieces"]] == [3923, 374, None, 30]
    assert [token["id"] for token in trace["tokens"]] == [128000, 3923, 374, 6621, 5726, 30]


def test_004_a_merge_by_rank(bpe: Tokenizer) -> None:
    """The pairs of a piece and their ranks are the places of the rules in the file."""
    rules = [rule.decode() for rule in _ggtok.merges(bpe)]
    merging = steps(explain(bpe, TEXT))["pieces"][2]["merging"]
    assert [symbol["text"] for symbol in merging["symbols"]] == ["Ġ", "L", "o", "R", "A"]
    bigrams = merging["queue"] + [bigram for pop in merging["pops"] for bigram in pop["added"]]
    for bigram in bigrams:
        left, right = rules[bigram["rank"]].split(" ")
        assert (left + right, bigram["size"]) == (bigram["text"], len(bigram["text"].encode()))
    assert merging["queue"] == sorted(merging["queue"], key=lambda bigram: (bigram["rank"], bigram["left"]))
    assert [symbol["text"] for symbol in merging["merged"] if symbol["n"]] == ["ĠLo", "RA"]


def test_004_what_a_merge_adds() -> None:
    """A, B, C, D and E: B and C merge, which makes a pair with A and one with D."""
    texts = [b"A", b"B", b"C", b"D", b"E", b"BC", b"ABC", b"BCD"]
    vocab = Vocab("gpt2", texts, [NORMAL] * len(texts), merges=[b"B C", b"BC D", b"A BC"], pre="gpt-2")
    merging = steps(explain(Tokenizer.from_gguf(vocab.gguf()), "ABCDE", add_special=False))["pieces"][0]["merging"]
    first, second, third = merging["pops"]
    assert (first["bigram"]["left"], first["bigram"]["right"], first["bigram"]["text"]) == (1, 2, "BC")
    assert [(bigram["left"], bigram["right"], bigram["text"]) for bigram in first["added"]] == [
        (0, 1, "ABC"),
        (1, 3, "BCD"),
    ]
    assert (second["bigram"]["text"], second["stale"]) == ("BCD", None)
    assert (third["bigram"]["text"], third["stale"]) == ("ABC", "text_changed")
    assert [symbol["text"] for symbol in merging["merged"] if symbol["n"]] == ["A", "BCD", "E"]
