"""The tables of the notes on llama.cpp's tokenizers, out of traces of the same models.

The score table of Unigram needs a vocabulary made for it: `rust/explain/src/tests.rs` has it.
"""

from __future__ import annotations

import json
import struct
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


# Note 003, SentencePiece in llama.cpp.


def test_003_fragments_and_output(spm: Tokenizer) -> None:
    text = f"<s>{TEXT}</s>"
    trace = explain(spm, text, parse_special=True)
    assert trace["added_before"] == 1
    fragments = [(fragment["token"], fragment["start"], fragment["end"]) for fragment in trace["fragments"]]
    assert fragments == [(1, 0, 3), (None, 3, 3 + 13), (2, 16, 20)]
    assert [token["id"] for token in trace["tokens"]][:3] == [1, 1, 1724]
    assert [token["text"] for token in trace["tokens"]][:3] == ["<s>", "<s>", "▁What"]


def test_003_symbols_and_queue(spm: Tokenizer) -> None:
    """The escaped text, its symbols, the queue, what each of its pairs is made of, and the symbols after all merges."""
    found = steps(explain(spm, TEXT))
    assert (found["space_prefix"], found["escaped"], len(found["escaped"].encode())) == (True, "▁What▁is▁LoRA?", 20)
    merging = found["merging"]
    sizes = [3, 1, 1, 1, 1, 3, 1, 1, 3, 1, 1, 1, 1, 1]
    expected = [(index - 1, index + 1 if index < 13 else -1, n) for index, n in enumerate(sizes)]
    assert [(symbol["prev"], symbol["next"], symbol["n"]) for symbol in merging["symbols"]] == expected
    assert "".join(symbol["text"] for symbol in merging["symbols"]) == "▁What▁is▁LoRA?"

    rev_merge = {entry["text"]: (entry["left"], entry["right"]) for entry in found["rev_merge"]}
    assert [(bigram["text"], bigram["score"], rev_merge[bigram["text"]]) for bigram in merging["queue"]] == [
        ("at", -12, (3, 4)),
        ("is", -16, (6, 7)),
        ("▁L", -106, (8, 9)),
        ("▁W", -140, (0, 1)),
        ("▁i", -215, (5, 6)),
        ("ha", -2091, (2, 3)),
        ("Lo", -3151, (9, 10)),
        ("RA", -4458, (11, 12)),
        ("Wh", -8550, (1, 2)),
    ]
    (first,) = [bigram for bigram in merging["queue"] if bigram["left"] == 0]
    assert first == {"left": 0, "right": 1, "text": "▁W", "size": 4, "score": -140, "rank": None, "token": 399}

    pop = merging["pops"][0]
    assert pop["stale"] is None
    assert [pop["bigram"][name] for name in ("left", "right", "score", "size")] == [3, 4, -12, 2]
    merged = [(symbol["prev"], symbol["next"], symbol["n"]) for symbol in merging["merged"]]
    assert merged == [
        *[(-1, 5, 7), (0, 2, 0), (0, 3, 0), (0, 5, 0), (3, 5, 0), (0, 8, 5), (5, 8, 0), (6, 8, 0), (5, 11, 5)],
        *[(8, 10, 0), (8, 11, 0), (8, 13, 2), (11, 13, 0), (11, -1, 1)],
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


# Notes 000 to 002, Unigram and WordPiece in llama.cpp.


def test_002_wordpiece(shared: Path) -> None:
    """`ÅWhat is LoRA?` with a BERT vocabulary."""
    trace = explain(opened(shared / "vocabs/bert-bge.gguf"), "ÅWhat is LoRA?")
    assert [token["id"] for token in trace["tokens"]] == [101, 22091, 12707, 2003, 8840, 2527, 1029, 102]
    found = steps(trace)
    # `cpts`, and `cpts_nfd` after the accent is gone.
    points = found["code_points"]
    assert points[0]["code_point"] == 0xC5
    assert [point["nfd"] for point in points] == [65, 87, 104, 97, 116, 32, 105, 115, 32, 76, 111, 82, 65, 63]
    # `cpt_flags[65]`, and the letter in lower case.
    assert (points[0]["classes"], points[0]["lowercase"]) == (["letter", "uppercase", "nfd"], ord("a"))
    assert [word["text"] for word in found["words"]] == ["▁awhat", "▁is", "▁lora", "▁?"]
    assert found["max_token_len"] == 21
    attempts = [(attempt["text"], attempt["token"]) for attempt in found["words"][0]["attempts"]]
    assert attempts == [("▁awhat", None), ("▁awha", None), ("▁awh", None), ("▁aw", 22091), ("hat", 12707)]


def test_000_the_charsmap(shared: Path) -> None:
    """The length of the array, and the walk along `Wh`, in a vocabulary that has the same kind of map."""
    found = steps(explain(opened(shared / "vocabs/nomic-bert-moe.gguf"), TEXT))
    assert found["charsmap"]["num_units"] == 44288
    first, second = found["prefixes"][0]["walk"][:2]
    assert found["charsmap"]["root_base"] ^ ord("W") == first["node"] == 118
    assert (first["lcheck"], first["leaf"], first["matched"]) == (ord("W"), False, True)
    assert first["node"] ^ first["base"] ^ ord("h") == second["node"] == 554
    assert (second["lcheck"] != ord("h"), second["matched"]) == (True, False)
    # The text stays as it is, except its spaces.
    assert {prefix["outcome"] for prefix in found["prefixes"]} == {"copied"}
    assert [prefix["appended"] for prefix in found["prefixes"]][:3] == ["▁W", "h", "a"]
    assert found["normalized"] == "▁What▁is▁LoRA?"


def test_000_a_packed_array_reads_as_a_character_map() -> None:
    """A vocabulary has it for its map: each word becomes the replacement that its value points to."""
    words = ["un", "uni", "unique", "que", "quick", "é", "ém"]
    packed = json.loads(_ggtok.explain_trie(words, []))["xcda"]
    units = [0] * packed["num_units"]
    for unit in packed["units"]:
        units[unit["index"]] = unit["unit"]
    array = struct.pack(f"<{len(units)}I", *units)
    # Word n has the value n: the offset of a letter whose text goes on to the end.
    charsmap = struct.pack("<I", len(array)) + array + b"ABCDEFG\0"
    for number, word in enumerate(words):
        assert _ggtok.apply_charsmap(charsmap, f"{word}!") == "ABCDEFG"[number:] + "!"
    assert _ggtok.apply_charsmap(charsmap, "qu") == "qu"
