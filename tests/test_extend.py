"""`ggtok.extend` and `ggtok.replaced`: texts without a new token keep their ids, whatever the vocabulary."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any, cast

import ggtok
import pytest
from conftest import BUILTIN
from ggtok import Tokenizer
from hypothesis import given
from hypothesis import strategies as st
from oracles import strategies

KINDS = ("spm", "bpe", "wordpiece", "unigram")
pytestmark = pytest.mark.filterwarnings("ignore::ggtok.TokenizerWarning")


def check(base: Tokenizer, tok: Tokenizer, text: Any, replaced: dict[int, list[int]]) -> None:
    """What the docstrings of `extend` and `replaced` say about every text."""
    old, new = (each.encode(text, add_special=False) for each in (base, tok))
    if max(new, default=0) < base.vocab_size:
        assert old == new
    if base.vocab.kind == "wordpiece":
        assert new.count(base.vocab.unk_id or 0) <= old.count(base.vocab.unk_id or 0)
    if base.vocab.kind in ("bpe", "spm"):
        assert [id for each in new for id in replaced.get(each, [each])] == old


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_texts_without_a_new_token_keep_their_ids(kind: str, data: st.DataObject) -> None:
    vocab, base = strategies.drawn(kind, data)
    texts = strategies.texts(vocab)
    corpus = [text.decode(errors="ignore") for text in data.draw(st.lists(texts, min_size=1, max_size=6))]
    try:
        tok = ggtok.extend(base, corpus * 2, num_tokens=data.draw(st.integers(1, 12)))
    except (ggtok.TrainingError, ggtok.VocabularyError):  # nothing to add, or no room in this vocabulary
        return
    assert tok.vocab[: base.vocab_size] == base.vocab[:]
    assert tok.vocab.eog_ids == base.vocab.eog_ids
    replaced = ggtok.replaced(base, tok)
    for text in [*corpus, *data.draw(st.lists(texts, max_size=9))]:
        check(base, tok, text, replaced)


@pytest.mark.parametrize("kind", BUILTIN)
@given(corpus=st.lists(st.text("abcdeéЖ家 .1▁", max_size=20), min_size=1, max_size=20), data=st.data())
def test_small_trained_vocabularies_keep_their_promises(kind: str, corpus: list[str], data: st.DataObject) -> None:
    """Closer to real ones than random vocabularies: most tokens are made, and words are often known."""
    base = small(kind)
    try:
        tok = ggtok.extend(base, corpus * 3, num_tokens=data.draw(st.integers(1, 30)))
    except ggtok.TrainingError:
        return
    replaced = ggtok.replaced(base, tok)
    for text in [*corpus, *data.draw(st.lists(st.text("abcdeéЖ家 .1", max_size=30), max_size=9))]:
        check(base, tok, text, replaced)


@cache
def small(kind: str) -> Tokenizer:
    sizes: dict[Any, int] = {"bpe": 270, "spm": 275, "wordpiece": 24, "unigram": 18}
    return ggtok.train(["abc abd bcd cab dab acd bad cadb ab ad"] * 3, kind=cast(Any, kind), vocab_size=sizes[kind])


REAL = {
    **{"llama-bpe": "bpe", "qwen2": "bpe", "deepseek-llm": "bpe", "gemma-4": "bpe", "whitespace-lower-small": "bpe"},
    **{"llama-spm": "spm", "phi-3": "spm", "spm-small": "spm", "bert-bge": "wordpiece", "bert-bge-l1-s0": "wordpiece"},
    **{"nomic-bert-moe": "unigram", "ugm-nfkc-small": "unigram", "ugm-keepws-small": "unigram"},
}


@pytest.mark.parametrize("name", REAL)
def test_llama_cpp_reads_it_alike(shared: Path, tmp_path: Path, llama_cpp: Any, name: str) -> None:
    base = Tokenizer.from_gguf(shared / f"vocabs/{name}.gguf")
    multi, cjk, en = ((shared / f"corpora/{each}.txt").read_text()[:60_000] for each in ("multi", "cjk", "en"))
    tok = ggtok.extend(base, [multi, cjk, en], num_tokens=400)
    tok.to_gguf(tmp_path / "extended.gguf")
    llama = llama_cpp.LlamaReference(tmp_path / "extended.gguf")
    assert llama.n_tokens == tok.vocab_size == base.vocab_size + 400
    replaced = ggtok.replaced(base, tok)
    used = set()
    for text in (multi, cjk, en):
        for start in range(0, len(text), 2000):
            part = text[start : start + 2000]
            ids = tok.encode(part)
            assert ids == llama.tokenize(part.encode(), add_special=True, parse_special=False)
            used.update(ids)
        check(base, tok, text, replaced)
    # Nearly all new tokens are used; some are only steps to longer ones.
    assert len(used.intersection(replaced)) > 300


@pytest.mark.parametrize("kind", BUILTIN)
def test_the_same_for_every_source_and_number_of_threads(kind: str, tmp_path: Path) -> None:
    base, lines = Tokenizer.builtin(cast(Any, kind)), GERMAN.splitlines()
    tok = ggtok.extend(base, lines * 3, num_tokens=40, threads=1)
    assert ggtok.extend(base, iter(lines * 3), num_tokens=40, threads=3) == tok
    path = tmp_path / "german.txt"
    path.write_text("\n".join(lines) + "\n")
    assert ggtok.extend(base, files=[path] * 3, num_tokens=40) == ggtok.extend(base, [path] * 3, num_tokens=40)
    assert tok.metadata == base.metadata
    before, after = (sum(each.count_batch(lines)) for each in (base, tok))
    assert after < before
    again = ggtok.extend(tok, lines * 3, num_tokens=10)
    assert again.vocab[: tok.vocab_size] == tok.vocab[:]


GERMAN = """\
Wer reitet so spät durch Nacht und Wind?
Es ist der Vater mit seinem Kind;
Er hat den Knaben wohl in dem Arm,
Er faßt ihn sicher, er hält ihn warm.
Mein Sohn, was birgst du so bang dein Gesicht?
Siehst, Vater, du den Erlkönig nicht?
Den Erlenkönig mit Kron und Schweif?
Mein Sohn, es ist ein Nebelstreif.
"""


def articles(shared: Path) -> dict[str, tuple[list[str], list[str]]]:
    """The lines of Wikipedia articles about Mars that are trained on, and those that are counted."""
    text = (shared / "corpora/multi.txt").read_bytes().decode()
    heads = {"Greek": "# Άρης", "Hindi": "# मंगल", "Czech": "# Mars (planeta)"}
    found = {}
    for language, head in heads.items():
        start = text.index(head)
        lines = text[start : text.index("\n# ", start)].splitlines(keepends=True)
        found[language] = lines[::2], lines[1::2]
    return found


def test_the_numbers_on_the_page(shared: Path, tmp_path: Path) -> None:
    page = (Path(__file__).parents[1] / "docs/adapt.md").read_text(encoding="utf-8")
    rows = {row[0]: row[1:] for row in re.findall(r"^\| (\w+) \| (.*) \| (.*) \| (.*) \| (.*) \|$", page, re.MULTILINE)}
    for column, name in enumerate(("llama-bpe", "llama-spm", "nomic-bert-moe", "bert-bge")):
        base = Tokenizer.from_gguf(shared / f"vocabs/{name}.gguf")
        for language, (trained_on, counted) in articles(shared).items():
            tok = ggtok.extend(base, trained_on, num_tokens=1000)
            before, after = (sum(each.count_batch(counted, add_special=False)) for each in (base, tok))
            assert rows[language][column] == f"{before:,} → {after:,}", (language, name)

    hf = pytest.importorskip("tokenizers")
    base = Tokenizer.from_gguf(shared / "vocabs/llama-bpe.gguf")
    base.to_tokenizers_json(tmp_path / "tokenizer.json")
    theirs = hf.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    trained_on, counted = articles(shared)["Greek"]
    words = Counter(word for line in trained_on for word in re.findall(r"\w+", line))
    saved = {word: count * (base.count(" " + word, add_special=False) - 1) for word, count in words.items()}
    theirs.add_tokens(sorted(saved, key=lambda word: -saved[word])[:1000])
    added = sum(len(theirs.encode(line, add_special_tokens=False).ids) for line in counted)
    assert f"from {rows['Greek'][0].split()[0]} to {added:,} tokens" in " ".join(page.split())
