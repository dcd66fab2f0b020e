"""`encode_pair`: the ids of a whole text, divided where its second half begins."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from conftest import BUILTIN, TOKENIZERS, every_kind, shared_files
from ggtok import Tokenizer
from hypothesis import given, note
from hypothesis import strategies as st
from oracles import strategies


@every_kind
def test_the_halves_are_the_whole(kind: str, data: st.DataObject) -> None:
    vocab, tok = strategies.drawn(kind, data)
    text = data.draw(strategies.texts(vocab))
    names = ("add_special", "parse_special", "continues")
    flags: dict[str, Any] = {name: data.draw(st.booleans()) for name in names}
    note(f"{text!r} {flags}")
    try:
        whole = tok.encode(text, **flags)
    except ValueError as error:
        with pytest.raises(type(error)):
            tok.encode_pair(text, b"", **flags)
        return
    for border in range(len(text) + 1):
        context, continuation = tok.encode_pair(text[:border], text[border:], **flags)
        assert context + continuation == whole
        spans = tok.encode_with_offsets(text, unit="byte", **flags).tolist()[1]
        assert all(end <= border for _, end in spans[: len(context)])
        assert all(end > border or start == end == border for start, end in spans[len(context) : len(context) + 1])


@pytest.mark.parametrize("name", BUILTIN)
@given(
    context=st.text(st.one_of(st.characters(), st.sampled_from("ab e\u0301")), max_size=20),
    continuation=st.text(st.one_of(st.characters(), st.sampled_from("ab \u0301")), max_size=20),
)
def test_texts(name: str, context: str, continuation: str) -> None:
    tok = TOKENIZERS[name]
    first, second = tok.encode_pair(context, continuation)
    assert first + second == tok.encode(context + continuation)
    encoded = [text.encode("utf-8", "surrogatepass") for text in (context, continuation)]
    assert tok.encode_pair(encoded[0], encoded[1]) == (first, second)
    ids, spans = tok.encode_with_offsets(encoded[0] + encoded[1], unit="byte").tolist()
    border, num_bos = len(encoded[0]), name == "wordpiece" or tok.vocab.add_bos
    is_second = [at >= num_bos and (end > border or start == border) for at, (start, end) in enumerate(spans)]
    assert second == [id for id, own in zip(ids, is_second, strict=True) if own]


def test_where_halves_meet() -> None:
    bpe, spm, bert = TOKENIZERS["bpe"], TOKENIZERS["spm"], TOKENIZERS["wordpiece"]
    assert bpe.encode_pair("What is ", "LoRA?") == bpe.encode_pair("What is", " LoRA?")
    # Inside a character, and inside what becomes one.
    emoji = "\U0001f9ff".encode()
    assert [len(half) for half in bpe.encode_pair(emoji[:2], emoji[2:])] == [1, 2]
    assert TOKENIZERS["unigram"].encode_pair("e", "\u0301", add_special=False) == ([3], [203])
    # BOS belongs to the context, SEP to the continuation; so does a space that is put before it.
    assert bert.encode_pair("a", "") == (bert.encode("a")[:-1], bert.encode("a")[-1:])
    assert spm.encode_pair("", "a") == (spm.encode("")[:1], spm.encode("a")[1:])
    assert spm.encode_pair("", "a", continues=True) == ([], spm.encode("a", continues=True))
    assert spm.encode_pair("", "") == (spm.encode(""), [])


@pytest.mark.parametrize("path", shared_files("vocabs/*.gguf"))
def test_every_vocabulary(path: Path) -> None:
    tok = Tokenizer.from_gguf(path)
    text = "Hello  world, cafe\u0301 \u00c9COLE \u4f60\u597d \U0001f600\u200d <s></s><|im_end|>[SEP] \u00bd "
    for parse_special in (False, True):
        whole = tok.encode(text, parse_special=parse_special)
        halves = [tok.encode_pair(text[:at], text[at:], parse_special=parse_special) for at in range(len(text) + 1)]
        assert all(first + second == whole for first, second in halves)
        assert sorted(halves, key=lambda pair: len(pair[0])) == halves
