"""Offsets: for every token the span of the original text that it comes from, for every kind of vocabulary."""

from __future__ import annotations

import pickle
import re
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import ggtok
import pytest
from conftest import BUILTIN, every_kind, shared_files
from ggtok import Encoding, GgtokError, Tokenizer
from hypothesis import assume, given, note
from hypothesis import strategies as st
from oracles import strategies
from oracles.gguf_vocab import Vocab

TEXT = (
    "Hello  world,\twie geht's?\n\nCafe\u0301 \u00c9COLE \ufb01ne \u2160 \u4f60\u597d \U0001f600\u200d\U0001f44b "
    "\u2581a <s></s><|im_end|>[SEP] x\u00a0y\u3000z \u00bd \u0130I  "
)
TEXTS_PER_VOCABULARY = 4


def spans(encoding: Encoding) -> list[tuple[int, int]]:
    return encoding.tolist()[1]


def check_order(found: list[tuple[int, int]], length: int) -> None:
    """Spans never decrease and stay inside the text."""
    assert all(0 <= start <= end <= length for start, end in found)
    for before, after in pairwise(found):
        assert before[0] <= after[0]
        assert before[1] <= after[1]


def in_characters(text: str, found: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Spans in bytes as spans of all characters that they touch."""
    lengths = [len(char.encode("utf-8", "surrogatepass")) for char in text]
    owners = [number for number, length in enumerate(lengths) for _ in range(length)] + [len(text)]
    starts = {0, *accumulate(lengths)}
    return [(owners[start], owners[end] + (end not in starts)) for start, end in found]


@every_kind
def test_spans_in_characters_are_those_in_bytes(kind: str, data: st.DataObject) -> None:
    """`test_oracles.py` tests the spans in bytes."""
    vocab, tokenizer = strategies.drawn(kind, data)
    for _ in range(TEXTS_PER_VOCABULARY):
        text = data.draw(strategies.texts(vocab))
        names = ("add_special", "parse_special", "continues")
        flags: dict[str, Any] = {name: data.draw(st.booleans()) for name in names}
        note(f"{text!r} {flags}")
        check_order(spans(tokenizer.encode_with_offsets(text, unit="byte", **flags)), len(text))
        try:
            text.decode()
        except UnicodeDecodeError as error:
            with pytest.raises(GgtokError, match=rf"not UTF-8 \(at byte {error.start}\)"):
                tokenizer.encode_with_offsets(text, **flags)
        decoded = text.decode(errors="replace")
        found = spans(tokenizer.encode_with_offsets(decoded, unit="byte", **flags))
        characters = tokenizer.encode_with_offsets(decoded, **flags)
        assert spans(characters) == in_characters(decoded, found)
        check_order(spans(characters), len(decoded))
        assert characters == tokenizer.encode_with_offsets(decoded.encode(), **flags)


@pytest.mark.parametrize("name", BUILTIN)
@given(
    text=st.text(st.one_of(st.characters(codec="utf-8"), st.sampled_from("ab \n\u00e9\u4e2d\U0001f600")), max_size=60)
)
def test_what_no_span_has_is_white_space_or_dropped(name: str, text: str) -> None:
    """SPM and BPE lose nothing: their spans tile the text."""
    encoding = Tokenizer.builtin(name).encode_with_offsets(text, unit="byte", add_special=False)
    at, raw = 0, text.encode()
    for start, end in spans(encoding):
        missing = raw[at:start].decode(errors="replace")
        assert not missing if name in ("spm", "bpe") else all(not char.isalnum() for char in missing), missing
        at = max(at, end)
    if name in ("spm", "bpe"):
        assert at == len(raw)
        assert all(a[1] == b[0] for a, b in pairwise(spans(encoding)))


@given(
    text=st.text(st.one_of(st.characters(codec="utf-8"), st.sampled_from("ab \n\u00e9\u4e2d\U0001f600")), max_size=60)
)
def test_starts_are_the_characters_decoded_before(text: str) -> None:
    """What tiktoken's users rely on: a token starts after the characters that the tokens before it complete."""
    tokenizer = Tokenizer.builtin("bpe")
    ids, found = tokenizer.encode_with_offsets(text).tolist()
    assert tokenizer.decode(ids) == text
    for number, (start, end) in enumerate(found):
        assert start == len(tokenizer.decode(ids[:number], errors="ignore"))
        piece = tokenizer.piece(ids[number])
        assert piece in text[start:end].encode()


def test_bytes_of_a_character_share_it() -> None:
    tokenizer = Tokenizer.builtin("bpe")
    text = "a\U0001f9ff"
    found = tokenizer.encode_with_offsets(text)
    raw = tokenizer.encode_with_offsets(text, unit="byte")
    assert [tokenizer.piece(id) for id in found.ids[1:]] == [b"\xf0\x9f", b"\xa7", b"\xbf"]
    assert spans(found) == [(0, 1), (1, 2), (1, 2), (1, 2)]
    assert spans(raw) == [(0, 1), (1, 3), (3, 4), (4, 5)]


def test_changed_text_is_traced_back() -> None:
    def shown(name: str, text: str, **flags: Any) -> list[tuple[str, str]]:
        tokenizer = Tokenizer.builtin(name)
        ids, found = tokenizer.encode_with_offsets(text, **flags).tolist()
        return [(tokenizer.piece(id).decode(), text[slice(*span)]) for id, span in zip(ids, found, strict=True)]

    assert shown("wordpiece", "  E\u0301COLE\t caf\u00e9", add_special=False) == [
        (" ec", "E\u0301C"),
        ("ole", "OLE"),
        (" ca", "ca"),
        ("fe", "f\u00e9"),
    ]
    assert "".join(text for _, text in shown("unigram", "\ufb01ne  \u2460 x", add_special=False)).startswith("\ufb01")
    first, *_ = shown("spm", "hello", add_special=False)
    assert first[0].startswith(" ")
    assert first[1] == first[0][1:]


def test_added_tokens_have_empty_spans_at_their_places() -> None:
    tokenizer = Tokenizer.builtin("wordpiece")
    found = spans(tokenizer.encode_with_offsets(" a "))
    assert found == [(0, 0), (1, 2), (3, 3)]
    assert spans(tokenizer.encode_with_offsets("")) == [(0, 0), (0, 0)]


def test_blanks_beside_special_tokens_are_in_no_span() -> None:
    texts = [b"<unk>", b"<s>", b"</s>", b"<|endoftext|>", "\u2581".encode(), b"a"]
    types = [2, 3, 3, 3, 1, 1]
    vocab = Vocab("llama", texts, types, name="Phi-3", bos=1, eos=2, unk=0)
    encoding = Tokenizer.from_gguf(vocab.gguf()).encode_with_offsets("a</s>  a", add_special=False, parse_special=True)
    assert encoding.tolist() == ([5, 2, 5], [(0, 1), (1, 5), (7, 8)])


def test_k_mers() -> None:
    texts = [b"<unk>", b"<s>", b"<dna>", b"</dna>", b"<oov>", b"ACGTAC\xee\x80\x80", b"GTAAAA\xee\x80\x80", b"x"]
    vocab = Vocab("hybriddna", texts, [2, 3, 1, 1, 1, 1, 1, 1], pre="gpt-2", bos=1, eos=1, unk=0)
    encoding = Tokenizer.from_gguf(vocab.gguf()).encode_with_offsets("x<dna>acgtacgt</dna>x", add_special=False)
    assert encoding.tolist() == ([7, 2, 5, 6, 3, 7], [(0, 1), (1, 6), (6, 12), (12, 14), (14, 20), (20, 21)])


def test_surrogates_are_characters() -> None:
    tokenizer = Tokenizer.builtin("bpe")
    ids, found = tokenizer.encode_with_offsets("a\ud83d\ude00b").tolist()
    assert ids == tokenizer.encode("a\ud83d\ude00b")
    assert sorted(set(found)) == [(0, 1), (1, 2), (2, 3), (3, 4)]


# Real vocabularies


@pytest.mark.parametrize("path", shared_files("vocabs/*.gguf"))
def test_real_vocabularies(path: Path, shared: Path) -> None:
    tokenizer = Tokenizer.from_gguf(path)
    kind, is_lossless = tokenizer.vocab.kind, tokenizer.vocab.kind in ("bpe", "rwkv", "plamo2")
    corpora = [(shared / f"corpora/{name}.txt").read_text(encoding="utf-8") for name in ("en", "code", "multi", "cjk")]
    for corpus in corpora:
        text = corpus[100_000:160_000] + TEXT
        encoding = tokenizer.encode_with_offsets(text)
        ids, found = encoding.tolist()
        assert ids == tokenizer.encode(text)
        check_order(found, len(text))
        raw = spans(tokenizer.encode_with_offsets(text, unit="byte"))
        assert in_characters(text, raw) == found
        if is_lossless and tokenizer.vocab.model not in ("whitespace", "hybriddna"):
            data = text.encode()
            for id, (start, end) in zip(ids, raw, strict=True):
                piece = tokenizer.piece(id)
                assert start == end or data[start:end] == piece or b"\xe2\x96\x81" in data[start:end], (kind, id)
        # A text by itself and after another one take different ways through the caches.
        again = tokenizer.encode_with_offsets(text, unit="byte")
        assert spans(again) == raw


# Arguments and results


def test_encoding() -> None:
    tokenizer = Tokenizer.builtin("bpe")
    encoding = tokenizer.encode_with_offsets("What is LoRA?")
    assert (encoding.ids.dtype.name, encoding.ids.shape) == ("int32", (6,))
    assert (encoding.offsets.dtype.name, encoding.offsets.shape) == ("int64", (6, 2))
    assert encoding.tolist() == (encoding.ids.tolist(), [tuple(row) for row in encoding.offsets.tolist()])
    assert {type(number) for pair in spans(encoding) for number in pair} == {int}
    assert len(encoding) == 6
    assert encoding == tokenizer.encode_with_offsets(b"What is LoRA?", unit="byte")
    assert encoding != tokenizer.encode_with_offsets("What is LoRA!")
    assert encoding != [9713]
    assert pickle.loads(pickle.dumps(encoding)) == encoding
    assert repr(encoding) == "<ggtok.Encoding of 6 tokens: 9713 (0, 4), 5981 (4, 7), 6266 (7, 9), ...>"
    with pytest.raises(TypeError):
        hash(encoding)
    with pytest.raises(TypeError):
        Encoding()


def test_nothing_can_be_changed() -> None:
    encoding = Tokenizer.builtin("bpe").encode_with_offsets("What is LoRA?")
    ids, found = encoding.ids, encoding.offsets
    del encoding
    for array in (ids, found):
        with pytest.raises(ValueError, match="read-only"):
            array[:] = 0
        with pytest.raises(ValueError, match="WRITEABLE"):
            array.flags.writeable = True
    assert (ids[0], found[-1].tolist()) == (9713, [12, 13])


def test_empty() -> None:
    encoding = Tokenizer.builtin("bpe").encode_with_offsets("")
    assert (encoding.tolist(), len(encoding)) == (([], []), 0)
    assert (encoding.ids.shape, encoding.offsets.shape) == ((0,), (0, 2))
    assert repr(encoding) == "<ggtok.Encoding of 0 tokens>"


@pytest.mark.parametrize("unit", ["chars", "", "Char", None, 1, b"char", ["char"]])
def test_units(unit: Any) -> None:
    tokenizer = Tokenizer.builtin("bpe")
    calls: list[tuple[Any, Any]] = [(tokenizer.encode_with_offsets, "a"), (tokenizer.encode_parts_with_offsets, [])]
    for call, argument in calls:
        with pytest.raises(ValueError, match="unit must be 'char', 'byte' or 'utf16', not ") as caught:
            call(argument, unit=unit)
        assert str(caught.value).endswith(repr(unit) if isinstance(unit, str) else type(unit).__name__)


def test_bytes_that_are_not_utf8_have_no_characters() -> None:
    tokenizer = Tokenizer.builtin("bpe")
    with pytest.raises(ValueError, match=r"not UTF-8 \(at byte 3\).*unit=\"byte\""):
        tokenizer.encode_with_offsets(b"abc\xff")
    assert spans(tokenizer.encode_with_offsets(b"\xff", unit="byte"))[0] == (0, 1)


# Texts that continue others


@pytest.mark.parametrize("name", BUILTIN)
@given(first=st.text("ab,\u4e2d ", min_size=1, max_size=12), second=st.text("ab,\u4e2d ", max_size=12))
def test_two_texts_in_a_row_are_one(name: str, first: str, second: str) -> None:
    """No merge, token or word crosses the space before a second text."""
    tokenizer = Tokenizer.builtin(name)
    assume(not first.endswith(" ") and not second.startswith("  "))
    whole = tokenizer.encode(f"{first} {second}", add_special=False)
    parts = tokenizer.encode(first, add_special=False)
    parts += tokenizer.encode(f" {second}", add_special=False, continues=True)
    assume(second[:1] not in ("", " "))
    assert parts == whole


@pytest.mark.parametrize("name", BUILTIN)
def test_continuations_have_no_space_before_them(name: str) -> None:
    tokenizer = Tokenizer.builtin(name)
    ids = tokenizer.encode("form", continues=True, add_special=False)
    assert b"".join(tokenizer.piece(id) for id in ids) == b"form"
    added = tokenizer.encode("form", continues=True)
    assert added[: len(ids)] == ids
    assert added[len(ids) :] == ([tokenizer.vocab.sep_id] if name == "wordpiece" else added[len(ids) :])
    assert ggtok.Tokenizer.builtin(name).count("form", continues=True) == len(added)


@every_kind
def test_units_ranges_and_words(kind: str, data: st.DataObject) -> None:
    vocab, tok = strategies.drawn(kind, data)
    text = data.draw(strategies.texts(vocab)).decode(errors="replace")
    flags: dict[str, Any] = {name: data.draw(st.booleans()) for name in ("add_special", "parse_special", "continues")}
    note(f"{text!r} {flags}")
    encoding = tok.encode_with_offsets(text, **flags)
    utf16 = spans(tok.encode_with_offsets(text, unit="utf16", **flags))
    units = [0, *accumulate(len(char.encode("utf-16-le")) // 2 for char in text)]
    assert utf16 == [(units[start], units[end]) for start, end in spans(encoding)]
    check_ranges(encoding, len(text))
    check_words(tok, text, encoding, **flags)


def check_ranges(encoding: Encoding, length: int) -> None:
    """Against a search through all spans."""
    found = spans(encoding)
    for start in range(length + 1):
        for end in range(start, length + 2):
            touched = [at for at, (first, last) in enumerate(found) if first < end and last > start]
            num_before = sum(last <= start for _, last in found)
            first, last = encoding.tokens_of(start, end)
            assert [*range(first, last)] == touched
            assert first == num_before


def check_words(tok: Tokenizer, text: str, encoding: Encoding, **flags: Any) -> None:
    """Words are numbered from 0 in order, and only added tokens have none."""
    words = encoding.word_ids()
    assert len(words) == len(encoding)
    assert pickle.loads(pickle.dumps(encoding)).word_ids() == words
    bare = tok.encode_with_offsets(text, **{**flags, "add_special": False}).word_ids()
    assert [word for word in words if word is not None] == bare
    steps = [after - before for before, after in pairwise([-1, *(word for word in bare if word is not None)])]
    assert set(steps[:1]) <= {1}
    assert set(steps[1:]) <= {0, 1}


@pytest.mark.parametrize("name", BUILTIN)
@given(text=st.text(st.sampled_from("ab' 1\n.,\u00e9\u4e2d\U0001f600\u2581"), max_size=40))
def test_words(name: str, text: str) -> None:
    """Against the pieces of a trace for BPE, the words of a regular expression for WordPiece, and escaped spaces."""
    tok = Tokenizer.builtin(name)
    encoding = tok.encode_with_offsets(text, add_special=False, unit="byte")
    ids, found = encoding.tolist()
    if name == "bpe":
        steps: Any = [fragment.steps for fragment in tok.explain(text).fragments]
        starts = [piece.start for each in steps for piece in each.pieces]
        expected = [sum(start <= place for start in starts) - 1 for place, _ in found]
    elif name == "wordpiece":
        words = [match.start() for match in re.finditer(r"[ab1\u00e9\U0001f600\u2581]+|['.,\u4e2d]", text)]
        starts = [len(text[:word].encode()) for word in words]
        expected = [sum(start <= place for start in starts) - 1 for place, _ in found]
    else:
        begins = [at == 0 or tok.vocab[id].text.startswith("\u2581") for at, id in enumerate(ids)]
        expected = [count - 1 for count in accumulate(begins)]
    assert encoding.word_ids() == expected


def test_words_of_special_tokens() -> None:
    tok = Tokenizer.builtin("bpe")
    encoding = tok.encode_with_offsets("a b<|im_end|>c", parse_special=True)
    assert encoding.word_ids() == [0, 1, 2, 3]
    parts = tok.encode_parts_with_offsets([("a<|im_end|>", False), ("<|im_end|>", True)])
    assert parts.word_ids()[-1] == max(word for word in parts.word_ids()[:-1] if word is not None) + 1


@pytest.mark.parametrize("path", shared_files("vocabs/*.gguf"))
def test_words_and_ranges_of_every_vocabulary(path: Path) -> None:
    tok = Tokenizer.from_gguf(path)
    for flags in ({"parse_special": True}, {"continues": True}):
        encoding = tok.encode_with_offsets(TEXT, **flags)  # type: ignore[arg-type]
        check_ranges(encoding, len(TEXT))
        check_words(tok, TEXT, encoding, **flags)


def test_bad_ranges() -> None:
    encoding = Tokenizer.builtin("bpe").encode_with_offsets("a b")
    assert encoding.tokens_of(0, 2**63 - 1) == (0, 2)
    for start, end, message in ((-1, 2, "start must be at least 0"), (0, 10**400, "end must"), (3, 2, "start is 3")):
        with pytest.raises(GgtokError, match=message):
            encoding.tokens_of(start, end)
    with pytest.raises(TypeError):
        encoding.tokens_of("0", 2)  # type: ignore[arg-type]
