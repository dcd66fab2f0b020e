"""`ggtok.extend` and `ggtok.replaced`: texts without a new token keep their ids, whatever the vocabulary."""

from __future__ import annotations

import re
from base64 import b64encode
from collections import Counter
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import ggtok
import pytest
from conftest import BUILTIN
from ggtok import Tokenizer
from hypothesis import given
from hypothesis import strategies as st
from oracles import strategies
from oracles.gguf_vocab import Vocab

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
    multi, cjk, en = ((shared / f"corpora/{each}.txt").read_text()[:20_000] for each in ("multi", "cjk", "en"))
    tok = ggtok.extend(base, [multi, cjk, en], num_tokens=150)
    tok.to_gguf(tmp_path / "extended.gguf")
    llama = llama_cpp.LlamaReference(tmp_path / "extended.gguf")
    assert llama.n_tokens == tok.vocab_size == base.vocab_size + 150
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
    assert len(used.intersection(replaced)) > 110


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


# Corner cases


def bert(tokens: list[str], **fields: Any) -> Tokenizer:
    texts = [text.encode() for text in ("[UNK]", "[CLS]", "[SEP]", *tokens)]
    ids: dict[str, Any] = {"unk": 0, "bos": 1, "sep": 2} | fields
    return Tokenizer.from_gguf(Vocab("bert", texts, [3, 3, 3, *[1] * len(tokens)], **ids).gguf())


def spm(scores: dict[str, float]) -> Tokenizer:
    texts = [b"<unk>", b"<s>", b"</s>", *(text.encode() for text in scores)]
    types = [2, 3, 3, *[1] * len(scores)]
    return Tokenizer.from_gguf(Vocab("llama", texts, types, [0.0, 0.0, 0.0, *scores.values()], unk=0).gguf())


def shown(tok: Tokenizer, text: str) -> list[str]:
    return [tok.vocab[id].text for id in tok.encode(text, add_special=False)]


def added(base: Tokenizer, tok: Tokenizer) -> list[str]:
    return [token.text for token in tok.vocab[base.vocab_size :]]


def test_a_known_word_stays_known() -> None:
    """Without `d` as a token, `▁abc` would turn `▁ab cd` into an unknown word."""
    base = bert(["▁a", "▁ab", "cd", "c", "▁x", "b"])
    assert shown(base, "abcd abc") == ["▁ab", "cd", "▁ab", "c"]
    tok = ggtok.extend(base, ["abc abc"], num_tokens=2)
    assert added(base, tok) == ["d", "▁abc"]
    assert shown(tok, "abcd abc xcd") == ["▁abc", "d", "▁abc", "▁x", "cd"]
    with pytest.raises(ggtok.TrainingError, match=r"num_tokens must be at least the number of letters .* not 1"):
        ggtok.extend(bert(["▁ab", "cd", "ef"]), ["abcd abcd"], num_tokens=1)
    # A token that no word contains, because a comma is a word by itself, needs no letters.
    base = bert(["▁a", "▁ab", "c", "x,yz", "[unused1]", "b"])
    assert added(base, ggtok.extend(base, ["abc abc"], num_tokens=1)) == ["▁abc"]


def test_no_old_token_of_spm_is_completed() -> None:
    """`abc` is a token that merging does not make: nothing joins `a` and `b`, or `b` and `c`."""
    base = spm({"▁": 0, "a": -1, "b": -2, "c": -3, "d": -4, "abc": -5})
    tok = ggtok.extend(base, ["ab", "bc", "cd"] * 2, num_tokens=9)
    assert not {"ab", "bc"}.intersection(added(base, tok))
    assert shown(base, "abcd") == ["a", "b", "c", "d"]
    assert shown(tok, "abcd") == ["a", "b", "cd"]
    assert shown(tok, "abc") == ["a", "b", "c"]


@pytest.mark.parametrize("lowest", [-3.0, -1e10, -16_777_216.0, -9.9e36])
def test_scores_of_spm_stay_apart(lowest: float) -> None:
    base = spm({"▁": 0, **dict.fromkeys("abcdefgh", lowest)})
    tok = ggtok.extend(base, ["abcdefgh abcdefg abcdef abcde"] * 3, num_tokens=9)
    scores = [token.score for token in tok.vocab]
    assert all(one > other for one, other in pairwise([min(scores[: base.vocab_size]), *scores[base.vocab_size :]]))
    assert shown(tok, " abcde") == ["▁abcde"]


@pytest.mark.parametrize("score", [float("inf"), float("nan"), -3.4e38])
def test_scores_without_room(score: float) -> None:
    with pytest.raises(ggtok.TrainingError, match="base must be a vocabulary whose scores are finite"):
        ggtok.extend(spm({"a": 0, "b": score}), ["ab ab"], num_tokens=1)


def test_unigram_scores() -> None:
    """An unknown character costs the lowest score less 10, so that score stays; a new token beats its parts."""
    texts = [b"<unk>", b"</s>", "▁".encode(), b"a", b"b", b"c", b"z"]
    scores = [0.0, 0.0, -2.0, -1.0, -1.5, -3.0, -9.0]
    vocab = Vocab("t5", texts, [2, 3, 1, 1, 1, 1, 1], scores, unk=0, eos=1, remove_extra_whitespaces=True)
    base = Tokenizer.from_gguf(vocab.gguf())
    tok = ggtok.extend(base, ["abc ab xx ab"] * 5, num_tokens=4)
    new = {token.text: token.score for token in tok.vocab[base.vocab_size :]}
    assert list(new) == ["x", "ab", "▁ab", "▁x"]
    assert min(new.values()) >= -9.0
    assert new["ab"] > -2.5
    assert shown(tok, "abc zxx") == ["▁ab", "c", "▁", "z", "x", "x"]


def test_a_special_id_is_not_taken_by_a_new_token() -> None:
    """llama.cpp gives BERT's vocabularies `[UNK]` at 100 if their files do not say another id."""
    base = bert([*(f"▁{letter}" for letter in LETTERS), *LETTERS], unk=None)
    assert base.vocab.unk_id is None
    assert ggtok.extend(base, ["abcdefg abcd"] * 2, num_tokens=3).vocab.unk_id is None
    with pytest.raises(ggtok.VocabularyError, match="a special token has an id beyond the last token of the base"):
        ggtok.extend(base, [f"{word} {word}" for word in map(LETTERS[:9].__add__, LETTERS)], num_tokens=60)


LETTERS = "abcdefghijklmnopqrstuvwxyzàáâãäåæçèéêëìíîï"[:36]


def test_bad_input(shared: Path) -> None:
    base = Tokenizer.builtin("bpe")
    for texts, number, error, message in (
        (["a b"], 0, ggtok.GgtokError, "num_tokens must be at least 1"),
        ([], 1, ggtok.TrainingError, "the corpus has no words"),
        (["Eichhörnchen"], 1, ggtok.TrainingError, "the texts add no tokens"),
        ("a b", 1, TypeError, "texts is a single str"),
        ([b"\xff"], 1, ggtok.GgtokError, "text 0 is not UTF-8"),
    ):
        with pytest.raises(error, match=message):
            ggtok.extend(base, cast(Any, texts), num_tokens=number)
    with pytest.warns(ggtok.TokenizerWarning, match="4 tokens were added, not 100"):
        assert ggtok.extend(base, ["Eichhörnchen Eichhörnchen"], num_tokens=100).vocab_size == base.vocab_size + 4
    for name in ("rwkv-world", "plamo2-small"):
        with pytest.raises(ggtok.UnsupportedError, match="cannot be extended: ggtok trains tokens for bpe, spm"):
            ggtok.extend(Tokenizer.from_gguf(shared / f"vocabs/{name}.gguf"), ["a a"], num_tokens=1)
    with pytest.raises(ggtok.GgtokError, match="the first tokens of the extended vocabulary must be those of the base"):
        ggtok.replaced(base, Tokenizer.builtin("spm"))


def test_a_stopped_training_is_silent() -> None:
    def stop(phase: str, done: int, total: int) -> None:
        raise KeyError(phase)

    with pytest.raises(KeyError, match="counting"):
        ggtok.extend(Tokenizer.builtin("bpe"), ["a b"], num_tokens=1, progress=stop)


def test_other_formats(shared: Path, tmp_path: Path) -> None:
    """Where a format can express the base, it expresses the extended vocabulary."""
    trained_on, counted = articles(shared)["Greek"]
    hf, sentencepiece = map(pytest.importorskip, ("tokenizers", "sentencepiece"))
    path = str(tmp_path / "file")
    for name in ("llama-bpe", "llama-spm", "bert-bge", "nomic-bert-moe"):
        tok = ggtok.extend(Tokenizer.from_gguf(shared / f"vocabs/{name}.gguf"), trained_on, num_tokens=200)
        ids = tok.encode_batch(counted, add_special=False).tolist()
        tok.to_tokenizers_json(path)
        theirs = hf.Tokenizer.from_file(path)
        assert [each.ids for each in theirs.encode_batch(counted, add_special_tokens=False)] == ids
        if tok.vocab.kind in ("spm", "unigram"):
            tok.to_sentencepiece(path)
            lines = [line.rstrip("\n") for line in counted]
            ids = tok.encode_batch(lines, add_special=False).tolist()
            assert sentencepiece.SentencePieceProcessor(model_file=path).encode(lines) == ids
        if tok.vocab.kind == "bpe":
            tok.to_tiktoken(path)
            ranks = dict(map(bytes.split, Path(path).read_bytes().splitlines()))
            assert all(int(ranks[b64encode(tok.piece(id))]) == id for id in range(tok.vocab_size - 200, tok.vocab_size))
