"""Texts in parts: control tokens are read only where a part allows them, everything else as in one text."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest
from conftest import BUILTIN, every_kind
from ggtok import GgtokError, TokenAttribute, Tokenizer, VocabularyError
from hypothesis import note
from hypothesis import strategies as st
from oracles import gguf_vocab, special, strategies
from oracles.gguf_vocab import Vocab

TEXTS_PER_VOCABULARY = 4
CONTROL = {"spm": "</s>", "bpe": "<|im_end|>", "wordpiece": "[SEP]", "unigram": "</s>"}


def read_in_text(tokenizer: Tokenizer, expected: list[tuple[int, int, int]], allowed: list[bool]) -> bool:
    """Whether a control token is made of text that does not allow it, as some vocabularies do."""
    vocab = tokenizer.vocab
    made = [row for row in expected if row[0] not in (-1, vocab.unk_id) and row[1] < row[2]]
    return any(
        TokenAttribute.CONTROL in vocab[id].attributes and not all(allowed[start:end]) for id, start, end in made
    )


@every_kind
def test_parts(kind: str, data: st.DataObject) -> None:
    vocab, tokenizer = strategies.drawn(kind, data)
    for _ in range(TEXTS_PER_VOCABULARY):
        whole = data.draw(strategies.texts(vocab))
        cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=5)))
        texts = [whole[start:end] for start, end in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
        parts = [(text, data.draw(st.booleans())) for text in texts]
        add_special, continues = data.draw(st.booleans()), data.draw(st.booleans())
        note(f"{parts} {add_special} {continues}")
        allowed = [allows for text, allows in parts for _ in text]
        flags: dict[str, Any] = {"add_special": add_special, "continues": continues}
        expected = special.encode(vocab, tokenizer, whole, allowed, **flags)
        if read_in_text(tokenizer, expected, allowed):
            spanned = partial(tokenizer.encode_parts_with_offsets, unit="byte")
            for call in (tokenizer.encode_parts, tokenizer.count_parts, spanned):
                with pytest.raises(VocabularyError, match="a part that does not allow it contains it at byte"):
                    call(parts, **flags)
            continue
        for _ in range(2):
            assert tokenizer.encode_parts(parts, **flags) == [id for id, _, _ in expected]
        assert tokenizer.count_parts(iter(parts), **flags) == len(expected)
        ids, spans = tokenizer.encode_parts_with_offsets(parts, unit="byte", **flags).tolist()
        assert [(id, *span) for id, span in zip(ids, spans, strict=True)] == expected


@every_kind
def test_whole_texts(kind: str, data: st.DataObject) -> None:
    """All parts allow control tokens, or none does."""
    tokenizer = Tokenizer.from_gguf(data.draw(strategies.KINDS[kind]).gguf())
    whole = data.draw(st.text("ab<>/s[x \u00e9\u4e00", max_size=30))
    cut = data.draw(st.integers(0, len(whole)))
    for allows in (False, True):
        parts = [(whole[:cut], allows), ("", not allows), (whole[cut:], allows)]
        ids, spans = tokenizer.encode_with_offsets(whole, unit="byte", parse_special=allows).tolist()
        rows = [(id, *span) for id, span in zip(ids, spans, strict=True)]
        if read_in_text(tokenizer, rows, [allows] * len(whole.encode())):
            with pytest.raises(VocabularyError):
                tokenizer.encode_parts(parts)
            continue
        assert tokenizer.encode_parts(parts) == tokenizer.encode(whole, parse_special=allows)
        encoding = tokenizer.encode_parts_with_offsets(parts)
        assert encoding == tokenizer.encode_with_offsets(whole, parse_special=allows)


@pytest.mark.parametrize("name", BUILTIN)
def test_control_tokens_of_other_parts_stay_text(name: str) -> None:
    tokenizer, control = Tokenizer.builtin(name), CONTROL[name]
    id = tokenizer.vocab.id(control)
    parts = [("say ", False), (control, False), (" hi", False), (control, True)]
    ids = tokenizer.encode_parts(parts, add_special=False)
    assert ids == [*tokenizer.encode(f"say {control} hi", add_special=False), id]
    assert tokenizer.encode_parts_with_offsets(parts, add_special=False).tolist()[1][-1] == (
        len(f"say {control} hi"),
        len(f"say {control} hi{control}"),
    )
    # A token that is not wholly inside what is allowed is none.
    for cut in range(1, len(control)):
        for allows in [(True, False), (False, True)]:
            halves = list(zip((control[:cut], control[cut:]), allows, strict=True))
            assert tokenizer.encode_parts(halves) == tokenizer.encode(control)
        assert tokenizer.encode_parts([(control[:cut], True), (control[cut:], True)], add_special=False) == [id]


def test_characters_count_from_the_start_of_all_parts() -> None:
    tokenizer = Tokenizer.builtin("bpe")
    parts: list[Any] = [("\u00e9", False), (b"\xc3", False), (b"\xa9", True), ("\ud800", False), ("<|im_end|>", True)]
    found = tokenizer.encode_parts_with_offsets(parts).tolist()[1]
    assert found[0] == (0, 1)
    assert found[-1] == (3, 13)
    assert tokenizer.encode_parts_with_offsets(parts, unit="byte").tolist()[1][-1] == (7, 17)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ([("a", True), (b"\xff", True)], "part 1: bytes that are not UTF-8 .at byte 0"),
        ([(b"a\xc3", True), ("\u00e9", True)], "part 0: bytes that are not UTF-8 .at byte 1"),
        ([(b"\xc3", True), (b"", True), (b"\xa9b\xff", True)], "part 2: bytes that are not UTF-8 .at byte 2"),
        ([(b"\xe2", True), (b"\x82", True)], "part 0: bytes that are not UTF-8 .at byte 0"),
    ],
)
def test_bytes_that_are_not_utf8_have_no_characters(parts: Any, message: str) -> None:
    tokenizer = Tokenizer.builtin("bpe")
    with pytest.raises(GgtokError, match=f"^{message}"):
        tokenizer.encode_parts_with_offsets(parts)
    tokenizer.encode_parts_with_offsets(parts, unit="byte")


@pytest.mark.parametrize("call", ["encode_parts", "count_parts", "encode_parts_with_offsets"])
@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ("ab", "^parts must be an iterable of pairs of a text and a bool, not str$"),
        (b"ab", "^parts must be .*, not bytes$"),
        (7, "^parts must be .*, not int$"),
        ([("a", True), "ab"], "^part 1: expected a pair of a text and a bool, not str$"),
        ([("a", True), ("b", False), 3], "^part 2: expected a pair of a text and a bool, not int$"),
        ([("a",)], "^part 0: expected a pair of a text and a bool, not tuple of length 1$"),
        ([("a", 1)], "^part 0: parse_special must be a bool, not int$"),
        ([("a", None)], "^part 0: parse_special must be a bool, not NoneType$"),
        ([("a", True), (1, True)], "^part 1: a text must be str or bytes-like, not int$"),
    ],
)
def test_bad_parts(call: str, parts: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        getattr(Tokenizer.builtin("bpe"), call)(parts)


def test_no_parts() -> None:
    tokenizer = Tokenizer.builtin("wordpiece")
    assert tokenizer.encode_parts([]) == tokenizer.encode("")
    assert tokenizer.encode_parts([], continues=True) == [tokenizer.vocab.sep_id]
    assert tokenizer.encode_parts([["a", True]]) == tokenizer.encode("a")  # type: ignore[list-item]
    assert tokenizer.count_parts([("", True), ("", False)], add_special=False) == 0


WITHOUT_TYPES = Vocab("t5", [b"<pad>", b"</s>", b"<unk>", b"a", b"<s>"], [1] * 5, eos=1, unk=2)
UNTYPED = {key: value for key, value in WITHOUT_TYPES.metadata().items() if key != "tokenizer.ggml.token_type"}


@pytest.mark.parametrize(
    ("name", "token"),
    [("rwkv-world", "<s>"), ("plamo2-small", "<|plamo:eos|>"), ("no types", "</s>")],
)
def test_control_tokens_that_any_text_spells(name: str, token: str, shared: Path) -> None:
    """llama.cpp reads them too. Parts refuse them, and `check` reports them."""
    source: Any = gguf_vocab.write(UNTYPED) if name == "no types" else shared / f"vocabs/{name}.gguf"
    tokenizer = Tokenizer.from_gguf(source)
    id = tokenizer.vocab.id(token)
    assert id in tokenizer.encode(f"a{token}", add_special=False)
    (finding,) = [finding for finding in tokenizer.check() if finding.code == "control-in-text"]
    assert id in finding.tokens
    for parts in ([("a", True), (f"a{token}", False)], [(f"a{token}", False)], [(token[:2], True), (token[2:], False)]):
        at = len("".join(text for text, _ in parts)) - len(token)
        message = f"reads the control token {id} in every text, .* at byte {at}"
        with pytest.raises(VocabularyError, match=message):
            tokenizer.encode_parts(parts, add_special=False)
    assert tokenizer.encode_parts([("a", False), (token, True)], add_special=False)[-1] == id
    assert tokenizer.encode_parts([(token, True)]) == tokenizer.encode(token, parse_special=True)
