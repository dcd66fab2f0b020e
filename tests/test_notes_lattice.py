"""The tables of the notes on WordPiece (002) and Unigram (000, 001), out of traces of the same models.

The score table of Unigram needs a vocabulary made for it: `rust/explain/src/tests.rs` has it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ggtok import GgtokError, Tokenizer, _ggtok
from oracles import unigram


def trace(tokenizer: Tokenizer, text: str | bytes, **options: bool) -> Any:
    """The trace of a text, without special tokens if not asked for."""
    flags = {"add_special": False, "parse_special": False, "continues": False} | options
    return json.loads(_ggtok.explain(tokenizer, text, *flags.values()).json())


def steps(tokenizer: Tokenizer, text: str | bytes, **options: bool) -> Any:
    """The steps of a text that is one fragment."""
    (fragment,) = trace(tokenizer, text, **options)["fragments"]
    return fragment["steps"]


def test_note_002_wordpiece(shared: Path) -> None:
    """`ÅWhat is LoRA?` with a BERT vocabulary."""
    tokenizer = Tokenizer.from_gguf(shared / "vocabs/bert-bge.gguf")
    found = trace(tokenizer, "ÅWhat is LoRA?", add_special=True)
    assert [token["id"] for token in found["tokens"]] == [101, 22091, 12707, 2003, 8840, 2527, 1029, 102]

    shown = found["fragments"][0]["steps"]
    # `cpts`, and `cpts_nfd` after the accent is gone.
    assert shown["code_points"][0]["code_point"] == 0xC5
    nfd = [point["nfd"] for point in shown["code_points"]]
    assert nfd == [65, 87, 104, 97, 116, 32, 105, 115, 32, 76, 111, 82, 65, 63]
    # `cpt_flags[65]`, and the letter in lower case.
    assert shown["code_points"][0]["classes"] == ["letter", "uppercase", "nfd"]
    assert shown["code_points"][0]["lowercase"] == ord("a")
    assert [word["text"] for word in shown["words"]] == ["▁awhat", "▁is", "▁lora", "▁?"]
    assert shown["max_token_len"] == 21

    first = shown["words"][0]
    attempts = [(attempt["text"], attempt["token"]) for attempt in first["attempts"]]
    assert attempts == [("▁awhat", None), ("▁awha", None), ("▁awh", None), ("▁aw", 22091), ("hat", 12707)]
    assert first["tokens"] == [22091, 12707]


def test_note_000_the_charsmap(shared: Path) -> None:
    """The length of the array, and the walk along `Wh`, in a vocabulary that has the same kind of map."""
    shown = steps(Tokenizer.from_gguf(shared / "vocabs/nomic-bert-moe.gguf"), "What is LoRA?")
    assert shown["charsmap"]["num_units"] == 44288
    walk = shown["prefixes"][0]["walk"]
    assert shown["charsmap"]["root_base"] ^ ord("W") == walk[0]["node"] == 118
    assert (walk[0]["lcheck"], walk[0]["leaf"], walk[0]["matched"]) == (ord("W"), False, True)
    assert walk[0]["node"] ^ walk[0]["base"] ^ ord("h") == walk[1]["node"] == 554
    assert (walk[1]["lcheck"] != ord("h"), walk[1]["matched"]) == (True, False)
    # The text stays as it is, except its spaces.
    assert {prefix["outcome"] for prefix in shown["prefixes"]} == {"copied"}
    assert [prefix["appended"] for prefix in shown["prefixes"]][:3] == ["▁W", "h", "a"]
    assert shown["normalized"] == "▁What▁is▁LoRA?"


def test_note_000_the_index_of_first_characters() -> None:
    """`'u': [0, 1, 2]`, `'q': [3, 4]`."""
    found = json.loads(_ggtok.explain_trie(["un", "uni", "unique", "que", "quick"], ["unique", "quit"]))
    first = {chr(row["byte"]): row["words"] for row in found["by_first_byte"]}
    assert first == {"u": [0, 1, 2], "q": [3, 4]}
    assert [lookup["value"] for lookup in found["lookups"]] == [2, None]


def test_a_packed_array_reads_as_llama_cpp_reads_it() -> None:
    """By the oracle of the character map; the values are offsets of replacements there, and so the words themselves."""
    words = ["un", "uni", "unique", "que", "quick", "é", "ém"]
    found = json.loads(_ggtok.explain_trie(words, []))["xcda"]
    units = [0] * found["num_units"]
    for unit in found["units"]:
        units[unit["index"]] = unit["unit"]
    array = b"".join(unit.to_bytes(4, "little") for unit in units)
    replacements = bytes(range(1, len(words) + 1)) + b"\0"
    charsmap = len(array).to_bytes(4, "little") + array + replacements
    for word, text in enumerate(words):
        key = text.encode()
        assert unigram.replace(charsmap, key + b"!") == (replacements[word:-1], len(key))
    assert unigram.replace(charsmap, b"qu") is None


def test_words_that_have_no_double_array() -> None:
    with pytest.raises(GgtokError, match="word 1 is empty"):
        _ggtok.explain_trie(["a", ""], [])
    with pytest.raises(GgtokError, match="word 0 has a zero byte at offset 1"):
        _ggtok.explain_trie([b"a\0"], [])
    with pytest.raises(GgtokError, match="more than the 1000000 steps"):
        _ggtok.explain_trie(["a" * 1_000_000], [])
    with pytest.raises(TypeError, match="text 0"):
        _ggtok.explain_trie([1], [])  # type: ignore[list-item]
