"""Streaming encode: however a text is cut, the ids are those of the whole, and ordinary text does not wait."""

from __future__ import annotations

import io
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from random import Random
from typing import Any

import ggtok
import pytest
from conftest import BUILTIN, every_kind, shared_files
from ggtok import GgtokError, Tokenizer, VocabularyError
from ggtok.tokenizer.vocab import attributes
from hypothesis import given, note
from hypothesis import strategies as st
from oracles import strategies
from oracles.gguf_vocab import Vocab, write

FLAGS = [(False, False), (False, True), (True, False), (True, True)]
BPE = Tokenizer.builtin("bpe")
ATOMS = [
    *("a", "the ", "Hello", " world", "\n", "\n\n", " ", "  ", "\t", "\r\n", ".", ",", "'s", "'re", "?!"),
    *("1", "23", "12345678"),
    *("\u4f60\u597d", "\u3042", "\ud55c", "\u00e9", "e\u0301", "\u0301", "\U0001f600", "\ufb01"),
    *("\u2581", "\u3000", "\u00a0"),
    *("<", "<s>", "</s>", "<|im", "<|im_start|>", "<|endoftext|>", "[MASK]", "[UNK]", "<dna>", "ACGTACG", "</dna>"),
]
BROKEN = [b"\xff", b"\xc3", b"\xe2\x96", b"\xf0\x9f\x98", b"\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xc0\x80"]


COMMON = st.sampled_from([*(atom.encode() for atom in ATOMS), *BROKEN])


def encoded(tok: Tokenizer, parts: Iterable[Any], **flags: bool) -> list[int]:
    encoder = tok.encoder(**flags)
    ids = [id for part in parts for id in encoder.push(part)]
    return ids + encoder.flush()


def counted(tok: Tokenizer, parts: Iterable[Any], **flags: bool) -> int:
    encoder = tok.encoder(**flags)
    return sum(map(encoder.push_count, parts)) + encoder.flush_count()


def check(tok: Tokenizer, parts: list[bytes], **flags: bool) -> None:
    expected = tok.encode(b"".join(parts), **flags)
    assert encoded(tok, parts, **flags) == expected
    assert counted(tok, parts, **flags) == len(expected)


def cut(text: bytes, sizes: list[int]) -> list[bytes]:
    """The text in parts of these sizes, again and again."""
    parts: list[bytes] = []
    at = 0
    while at < len(text):
        size = sizes[len(parts) % len(sizes)]
        parts.append(text[at : at + size])
        at += size
    return parts


TIMES = st.one_of(st.just(1), st.integers(1, 4), st.sampled_from([20, 70]))
SIZES = st.lists(st.one_of(st.integers(1, 9), st.integers(60, 200)), min_size=1, max_size=5)


@lru_cache(8)
def runs(atoms: st.SearchStrategy[bytes]) -> st.SearchStrategy[list[tuple[bytes, int]]]:
    return st.lists(st.tuples(atoms, TIMES), max_size=12)


@st.composite
def texts_in_parts(draw: Any, atoms: st.SearchStrategy[bytes]) -> list[bytes]:
    """Runs of atoms: short and long, so that every stage looks at its text early, late, and several times."""
    text = b"".join(atom * times for atom, times in draw(runs(atoms)))
    return cut(text, draw(SIZES))


def atoms(vocab: Vocab | None) -> st.SearchStrategy[bytes]:
    return COMMON if vocab is None else st.one_of(COMMON, strategies.texts(vocab), st.sampled_from(vocab.texts))


@every_kind
def test_parts_are_encoded_as_the_whole(kind: str, data: st.DataObject) -> None:
    vocab, tok = strategies.drawn(kind, data)
    cuts = texts_in_parts(atoms(vocab))
    for _ in range(4):
        parts = data.draw(cuts)
        for add_special, parse_special in FLAGS:
            note(f"{parts} add_special={add_special} parse_special={parse_special}")
            check(tok, parts, add_special=add_special, parse_special=parse_special)


@pytest.mark.parametrize("name", BUILTIN)
@given(data=st.data())
def test_builtin_vocabularies(name: str, data: st.DataObject) -> None:
    parts = data.draw(texts_in_parts(atoms(None)))
    check(Tokenizer.builtin(name), parts, parse_special=data.draw(st.booleans()))


@pytest.mark.parametrize("name", BUILTIN)
@given(text=st.text(max_size=30), data=st.data())
def test_str_may_be_cut_anywhere(name: str, text: str, data: st.DataObject) -> None:
    text += data.draw(st.sampled_from(["", "\ud83d\ude00", "\ud83d", "\udcff a"]))
    tok = Tokenizer.builtin(name)
    assert encoded(tok, text) == tok.encode(text)


@pytest.mark.parametrize("path", shared_files("vocabs/*.gguf"))
def test_real_vocabularies(path: Path, shared: Path) -> None:
    tok, rng = Tokenizer.from_gguf(path), Random(path.name)
    ids = [id for id, bits in enumerate(attributes(tok.vocab)) if bits & 24][:200]
    specials = [tok.vocab[id].text.encode("utf-8", "surrogateescape") for id in ids] or [b"<s>"]
    for name in ("en", "code", "multi", "cjk"):
        text = (shared / f"corpora/{name}.txt").read_bytes()[:30_000]
        check(tok, [text])
        check(tok, cut(text, [rng.randint(1, 99) for _ in range(50)]))
        pieces = cut(text, [rng.randint(1, 400) for _ in range(50)])
        with_specials = b"".join(
            piece + rng.choice([rng.choice(specials), rng.choice(BROKEN), b"  \n "]) for piece in pieces
        )
        for parse_special in (False, True):
            parts = cut(with_specials, [rng.randint(1, 300) for _ in range(50)])
            check(tok, parts, parse_special=parse_special)
            for _ in range(20):
                at = rng.randrange(len(with_specials))
                short = with_specials[at : at + rng.randint(1, 300)]
                check(tok, cut(short, [rng.randint(1, 120)]), parse_special=parse_special)


@pytest.mark.parametrize("path", shared_files("vocabs/*.gguf"))
def test_ordinary_text_does_not_wait(path: Path, shared: Path) -> None:
    tok = Tokenizer.from_gguf(path)
    for name in ("en", "multi", "cjk", "code"):
        encoder, most = tok.encoder(parse_special=True), 0
        for part in cut((shared / f"corpora/{name}.txt").read_bytes()[:100_000], [97]):
            encoder.push_count(part)
            most = max(most, encoder.num_waiting)
        # In the vocabulary for words between whitespace a word is long where there is none.
        assert most < (20_000 if path.stem == "whitespace-lower-small" else 2_000), name


@pytest.mark.parametrize("name", BUILTIN)
@pytest.mark.parametrize(
    "unit", ["a", " ", "\n", "1", ".", "ab", "\u4f60", "\U0001f600", "\xff", "<", "a ", "<|im_start|>"]
)
def test_long_runs_take_linear_time(name: str, unit: str) -> None:
    """A run that stays undecided is looked at again only when it has doubled."""
    text = unit.encode("latin-1" if unit == "\xff" else "utf-8") * 20_000
    check(Tokenizer.builtin(name), cut(text, [7]), parse_special=True)


def test_bos_comes_first_and_eos_last() -> None:
    tok = Tokenizer.builtin("wordpiece")
    encoder = tok.encoder()
    assert encoder.push("") == [2]
    assert encoder.push("What is ") == tok.encode("What is", add_special=False)
    assert encoder.flush() == [3]
    assert tok.encoder().flush() == tok.encode("")


def test_after_the_end() -> None:
    encoder = BPE.encoder()
    assert encoder.push("What") == []
    assert encoder.num_waiting == 4
    assert encoder.flush() == [9713]
    assert (encoder.flush(), encoder.flush_count(), encoder.num_waiting) == ([], 0, 0)
    for push in (encoder.push, encoder.push_count):
        with pytest.raises(ValueError, match="the stream has ended"):
            push("a")


@pytest.mark.parametrize("wrong", [None, 7, ["a"], 1.5])
def test_wrong_types_change_nothing(wrong: Any) -> None:
    encoder = BPE.encoder()
    ids = encoder.push("Wha")
    with pytest.raises(TypeError):
        encoder.push(wrong)
    assert ids + encoder.push(bytearray(b"t")) + encoder.flush() == [9713]


def test_what_cannot_be_encoded() -> None:
    none = Tokenizer.from_gguf(write({"tokenizer.ggml.model": "no_vocab"}))
    with pytest.raises(VocabularyError):
        none.encoder()


def test_count_file(tmp_path: Path) -> None:
    text = "What is LoRA? \u4f60\u597d\n" * 100_000
    path = tmp_path / "text.txt"
    path.write_bytes(text.encode())
    expected = BPE.count(text)
    assert BPE.count_file(path) == BPE.count_file(str(path)) == expected
    with path.open("rb") as file:
        assert BPE.count_file(file) == expected
        assert BPE.count_file(file) == 0
    with path.open(encoding="utf-8", newline="") as lines:
        assert BPE.count_file(lines) == expected
    assert BPE.count_file(io.BytesIO(b"<|im_end|>"), parse_special=True) == 1
    wrongs: list[Any] = [7.5, 1, True, None]
    for wrong in wrongs:
        with pytest.raises(TypeError):
            BPE.count_file(wrong)
    with pytest.raises(FileNotFoundError):
        BPE.count_file(tmp_path / "none.txt")
    assert issubclass(GgtokError, ValueError)
    assert isinstance(BPE.encoder(), ggtok.StreamEncoder)
