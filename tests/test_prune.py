"""`ggtok.prune`: the texts keep their tokens, on made-up and real vocabularies, through files and llama.cpp."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import ggtok
import gguf
import numpy as np
import pytest
from conftest import BUILTIN, TOKENIZERS, VOCABULARIES, every_kind, shared_files
from ggtok import Tokenizer
from ggtok.cli import main
from ggtok.lab.prune import REFUSED
from hypothesis import note
from hypothesis import strategies as st
from oracles import strategies
from oracles.gguf_vocab import Vocab

TEXT = "The quick brown fox isn't lazy, naïve or 3,141 years old:  \n\n\tdef Ωμέγα(你好): 😀 </s> ﬁﬁ"


def assert_same(tok: Tokenizer, texts: list[Any], parse_special: bool = False) -> tuple[Tokenizer, Any]:
    """Prunes, and checks that the texts have the same tokens, and the loader found the same."""
    new, ids = ggtok.prune(tok, texts, parse_special=parse_special, threads=1)
    kept = np.flatnonzero(ids >= 0)
    assert ids.dtype == np.int32
    assert ids.shape == (len(tok.vocab),)
    assert ids[kept].tolist() == list(range(len(new.vocab)))
    for text in texts:
        for add_special in (False, True):
            flags = {"add_special": add_special, "parse_special": parse_special}
            before = np.array(tok.encode(text, **flags), int)
            after = new.encode(text, **flags)
            assert after == np.where(before < 0, before, ids[before]).tolist()
            assert new.decode_bytes([id for id in after if id >= 0]) == tok.decode_bytes(before[before >= 0])
    for old, token in zip(kept.tolist(), new.vocab, strict=True):
        assert token._replace(id=old, attributes=tok.vocab[old].attributes) == tok.vocab[old]
    return new, ids


@every_kind
def test_made_up_vocabularies(kind: str, data: st.DataObject) -> None:
    vocab, tok = strategies.drawn(kind, data)
    if tok.vocab.kind in REFUSED:
        with pytest.raises(ggtok.UnsupportedError, match="cannot be pruned"):
            ggtok.prune(tok, ["a"])
        return
    texts = data.draw(st.lists(strategies.texts(vocab), min_size=1, max_size=4))
    note(repr(texts))
    assert_same(tok, texts, data.draw(st.booleans()))


@pytest.mark.parametrize("path", shared_files("vocabs/*.gguf"))
def test_real_vocabularies(path: Path, shared: Path) -> None:
    tok = Tokenizer.from_gguf(path)
    if tok.vocab.kind in REFUSED:
        return
    corpora = [(shared / "corpora" / f"{name}.txt").read_text("utf-8")[:30_000] for name in ("en", "code", "multi")]
    new, ids = assert_same(tok, [TEXT, *corpora], parse_special=True)
    assert len(new.vocab) < len(tok.vocab) / 2
    assert {new.vocab.id(tok.vocab[id].text) for id in tok.vocab.eog_ids} == new.vocab.eog_ids
    for name in ("bos", "eos", "eot", "unk", "sep", "pad", "mask", "nl", "fim_pre", "fim_mid", "fim_sep"):
        old, id = getattr(tok.vocab, f"{name}_id"), getattr(new.vocab, f"{name}_id")
        assert id == (None if old is None else ids[old]), name
    assert new.vocab.settings == tok.vocab.settings
    assert not [finding for finding in new.check() if finding.severity == "error"]


@pytest.mark.parametrize("name", BUILTIN)
def test_llama_cpp_gives_the_same_ids(name: str, llama_cpp: Any, tmp_path: Path) -> None:
    tok = TOKENIZERS[name]
    new, ids = ggtok.prune(tok, [TEXT, "Another text."])
    new.to_gguf(tmp_path / "pruned.gguf")
    reference = llama_cpp.LlamaReference(str(tmp_path / "pruned.gguf"))
    for text in (TEXT, "Another text.", "Something else: 東京, Ääkkönen"):
        assert reference.tokenize(text.encode(), add_special=True, parse_special=False) == new.encode(text)
    assert new.encode(TEXT) == ids[tok.encode(TEXT)].tolist()


def test_every_token_on_the_way_stays() -> None:
    texts = [b"<unk>", b"<s>", b"</s>", *(text.encode() for text in ("▁", "d", "e", "f", "de", "def", "ef", "xy"))]
    scores = [0.0] * 3 + [-1.0 * place for place in range(8)]
    tok = Tokenizer.from_gguf(Vocab("llama", texts, [2, 3, 3] + [1] * 8, scores).gguf())
    new, _ = assert_same(tok, ["def"])
    # "de" is made and absorbed; "ef" could have been, but was not.
    assert [token.text for token in new.vocab][3:] == ["▁", "d", "e", "f", "de", "def"]


def test_an_unknown_word_stays_unknown() -> None:
    texts = [text.encode() for text in ("[UNK]", "[CLS]", "[SEP]", "▁ab", "cx", "▁abc", "▁abcd")]
    tok = Tokenizer.from_gguf(Vocab("bert", texts, [3] * 3 + [1] * 4, unk=0, bos=1, sep=2).gguf())
    new, ids = assert_same(tok, ["abcx", "ab", "abcx abcx", "abcabcx"])
    assert ids.tolist() == [0, 1, 2, 3, -1, 4, -1]
    new, ids = assert_same(tok, ["abcx", "abcx"])
    assert ids[5] == 3
    assert new.encode("abcx") == [1, 0, 2]


def test_unknown_text_costs_as_much_as_before() -> None:
    texts = [b"<unk>", b"<pad>", b"</s>", b"xy", b"not", b"low"]
    types, scores = [2, 3, 3, 1, 1, 1], [0.0, 0.0, 0.0, -30.0, -1.0, -35.0]
    tok = Tokenizer.from_gguf(Vocab("t5", texts, types, scores, unk=0, eos=2).gguf())
    _new, ids = assert_same(tok, ["xy", "zy"])
    assert ids.tolist() == [0, 1, 2, 3, -1, 4]
    # A character of type unused may score less than an unknown one.
    texts, types, scores = [*texts, "é".encode(), "éy".encode()], [*types, 5, 5], [*scores, -100.0, -90.0]
    tok = Tokenizer.from_gguf(Vocab("t5", texts, types, scores, unk=0, eos=2).gguf())
    _new, ids = assert_same(tok, ["éy"])
    assert ids.tolist() == [0, 1, 2, -1, -1, 3, 4, 5]


def test_the_loader_finds_the_same_roles() -> None:
    """Without ids in the file, and with several texts for one role, of types that say nothing."""
    words = [f"word{number}".encode() for number in range(3000)]
    letters = [bytes([byte]) for byte in range(0x21, 0x7F)]
    roles = [b"<|im_end|>", b"<|endoftext|>", b"<EOT>", b"<fim_prefix>", b"<PRE>", b"<|prefix|>"]
    for texts in ([*letters, *words, *roles], [*roles[::-1], *letters, *words]):
        tok = Tokenizer.from_gguf(Vocab("gpt2", texts, [1] * len(texts), pre="gpt-2", bos=0, eos=0).gguf())
        new, ids = assert_same(tok, ["a <|im_end|>"], parse_special=True)
        assert len(new.vocab) < 110
        for role in ("eot", "fim_pre"):
            old, id = getattr(tok.vocab, f"{role}_id"), getattr(new.vocab, f"{role}_id")
            assert id == (None if old is None else ids[old])
        assert new.vocab.eog_ids == {int(ids[id]) for id in tok.vocab.eog_ids}


def test_all_keys_with_ids_are_mapped(tmp_path: Path) -> None:
    writer = gguf.GGUFWriter(tmp_path / "base.gguf", "llama")
    writer.add_tokenizer_model("llama")
    writer.add_token_list(["<unk>", "▁", "ä", "ç", "dd", "éé", "ff", "ĝ", "hh", "ï", "<s>", "</s>"])
    writer.add_token_scores([0.0] * 12)
    writer.add_token_types([2] + [1] * 9 + [3, 3])
    writer.add_vocab_size(12)
    for key, id in {"bos": 10, "eos": 11, "unknown": 0, "cls": 8, "padding": 99}.items():
        writer.add_uint32(f"tokenizer.ggml.{key}_token_id", id)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    new, ids = assert_same(Tokenizer.from_gguf(tmp_path / "base.gguf"), ["äç"])
    assert ids.tolist() == [0, 1, 2, 3, *[-1] * 4, 4, -1, 5, 6]
    assert [new.metadata[f"tokenizer.ggml.{key}_token_id"] for key in ("bos", "eos", "cls", "padding")] == [5, 6, 4, 99]
    assert new.metadata["llama.vocab_size"] == 7


@pytest.mark.parametrize("name", BUILTIN)
def test_files_threads_and_batches_change_nothing(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shared: Path
) -> None:
    text = (shared / "corpora" / "multi.txt").read_text("utf-8")[:20_000]
    path = tmp_path / "text"
    path.write_text(text, encoding="utf-8", newline="")
    whole = ggtok.prune(TOKENIZERS[name], [text], threads=1)
    monkeypatch.setattr("ggtok.lab.evaluate.READ_SIZE", 999)
    for pruned in (
        ggtok.prune(TOKENIZERS[name], path),
        ggtok.prune(TOKENIZERS[name], files=[path]),
        ggtok.prune(TOKENIZERS[name], [b"", path, text], threads=3),
    ):
        assert pruned.tokenizer == whole.tokenizer
        assert (pruned.ids == whole.ids).all()
    monkeypatch.setattr("ggtok.lab.prune.TEXTS_AT_ONCE", 3)
    lines = text.splitlines()
    few, many = ggtok.prune(TOKENIZERS[name], lines), ggtok.prune(TOKENIZERS[name], iter(lines))
    assert few.tokenizer == many.tokenizer


def test_exports_take_what_is_left(tmp_path: Path) -> None:
    for name, export in (("bpe", "to_tokenizers_json"), ("spm", "to_sentencepiece"), ("bpe", "to_tiktoken")):
        new, _ = ggtok.prune(TOKENIZERS[name], [TEXT])
        getattr(new, export)(tmp_path / "exported")


BAD: list[tuple[Callable[[Tokenizer], object], type[Exception], str]] = [
    (lambda tok: ggtok.prune(tok, []), ggtok.GgtokError, "no texts"),
    (lambda tok: ggtok.prune(tok), TypeError, "texts or files"),
    (lambda tok: ggtok.prune(tok, "text"), TypeError, "single str"),
    (lambda tok: ggtok.prune(tok, ["a", cast("Any", 5)]), TypeError, "text 1: a text must be str"),
    (lambda tok: ggtok.prune(tok, files=["/nowhere"]), OSError, "nowhere"),
    (lambda tok: ggtok.prune(tok, ["a"], threads=0), ggtok.GgtokError, "threads"),
]


@pytest.mark.parametrize(("call", "error", "says"), BAD, ids=[says for _, _, says in BAD])
def test_bad_input(call: Callable[[Tokenizer], object], error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        call(TOKENIZERS["spm"])


def test_what_is_not_pruned() -> None:
    tok = Tokenizer.from_gguf(Vocab("llama", [b"a"], [1]).gguf(), overrides={"tokenizer.ggml.model": "test"})
    with pytest.raises(ggtok.UnsupportedError, match="hashes"):
        ggtok.prune(tok, ["a"])


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = tmp_path / "text.txt"
    text.write_text("The same text.\n" * 9)
    base = str(VOCABULARIES / "bpe.gguf")
    out, ids = tmp_path / "out.gguf", tmp_path / "ids.json"
    assert main(["prune", "-m", base, str(text), "-o", str(out), "--ids", str(ids)]) == 0
    new, expected = ggtok.prune(TOKENIZERS["bpe"], text)
    assert Tokenizer.from_gguf(out) == new
    assert json.loads(ids.read_text()) == expected.tolist()
    printed = capsys.readouterr().out
    assert f"{len(new.vocab):,} of 13,000 tokens" in printed
    assert "embeddings[ids >= 0]" in printed
    for target in (base, str(text)):
        assert main(["prune", "-m", base, str(text), "-o", target]) == 2
    assert main(["prune", "-m", base, str(text), "-o", str(out), "--ids", str(out)]) == 2
