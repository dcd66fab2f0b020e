"""`ggtok.train`: equal to the trainers of tokenizers and sentencepiece, loaded by llama.cpp, and all arguments."""

from __future__ import annotations

import io
import json
import os
import time
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

import ggtok
import pytest
from hypothesis import given
from hypothesis import strategies as st

CORPORA = ("en", "code", "multi", "cjk")
WORDS = st.lists(st.text("abcé .\n1", max_size=30), min_size=1, max_size=30)
LATIN = [
    "The quick brown fox jumps over the lazy dog.",
    "A quick brown dog jumps over the lazy fox.",
    "She sells sea shells by the sea shore; the shells she sells are sea shells, I'm sure.",
    "How much wood would a woodchuck chuck if a woodchuck could chuck wood? 1234 5678 12.",
    "    def quick(brown, fox):\n        return brown + fox  # the same, 3 times\n",
] * 5


def corpus(shared: Path, name: str, size: int) -> str:
    """The first characters of a corpus."""
    return (shared / "corpora" / f"{name}.txt").read_bytes().decode()[:size]


def pattern_of(pre: str) -> str:
    """The one pattern of a pre-tokenizer."""
    from ggtok import _ggtok

    (pattern,) = _ggtok.families()[_ggtok.pretokenizers()[pre]["family"]]["patterns"]
    return str(pattern)


def tokenizers_bpe(texts: Iterable[str], size: int, pre: str, **settings: Any) -> tuple[list[tuple[str, str]], int]:
    """The merges of huggingface/tokenizers' trainer, and the size of its vocabulary."""
    hf = import_module("tokenizers")
    tok = hf.Tokenizer(hf.models.BPE())
    parts = hf.pre_tokenizers
    byte_level = parts.ByteLevel(add_prefix_space=False, use_regex=False)
    tok.pre_tokenizer = parts.Sequence([parts.Split(hf.Regex(pattern_of(pre)), "isolated"), byte_level])
    trainer = hf.trainers.BpeTrainer(
        vocab_size=size, initial_alphabet=parts.ByteLevel.alphabet(), show_progress=False, **settings
    )
    tok.train_from_iterator(texts, trainer)
    model = json.loads(tok.to_str())["model"]
    return [(left, right) for left, right in model["merges"]], len(model["vocab"])


def sentencepiece_pieces(lines: Iterable[str], size: int, **settings: Any) -> list[tuple[str, float]]:
    """Pieces and scores of sentencepiece's trainer."""
    model = io.BytesIO()
    package = import_module("sentencepiece")
    package.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=model,
        vocab_size=size,
        **{"model_type": "bpe", "normalization_rule_name": "identity", "max_sentence_length": 1 << 20} | settings,
        minloglevel=2,
    )
    processor = package.SentencePieceProcessor(model_proto=model.getvalue())
    return [(processor.id_to_piece(id), processor.get_score(id)) for id in range(processor.get_piece_size())]


def tokens_of(tok: ggtok.Tokenizer) -> list[tuple[str, float]]:
    return [(token.text, token.score) for token in tok.vocab]


@pytest.mark.parametrize("pre", ["gpt-2", "qwen2", "gpt-4o"])
@given(texts=WORDS)
def test_bpe_equals_tokenizers(pre: str, texts: list[str]) -> None:
    pytest.importorskip("tokenizers")
    merges, size = tokenizers_bpe(texts, 300, pre, min_frequency=2)
    if any(texts):
        tok = ggtok.train(texts, kind="bpe", vocab_size=size + 1, pre=pre)
        assert list(tok.vocab.merges or ()) == merges
    else:
        with pytest.raises(ggtok.TrainingError, match="the corpus has no words"):
            ggtok.train(texts, kind="bpe", vocab_size=size + 1, pre=pre)


def test_bpe_equals_tokenizers_on_the_corpora(shared: Path) -> None:
    pytest.importorskip("tokenizers")
    texts = [line for name in CORPORA for line in corpus(shared, name, 50_000).splitlines(keepends=True)]
    chosen: list[dict[str, Any]] = [{}, {"max_token_length": 6}]
    for settings in chosen:
        # tokenizers makes tokens that are shorter than its limit.
        limit = {name: value + 1 for name, value in settings.items()}
        merges, size = tokenizers_bpe(texts, 4000, "qwen2", min_frequency=2, **limit)
        tok = ggtok.train(texts, kind="bpe", vocab_size=size + 1, **settings)
        assert list(tok.vocab.merges or ()) == merges


SPM_SETTINGS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"byte_fallback": True, "split_digits": True, "allow_whitespace_only_pieces": True}, {}),
    ({"byte_fallback": False}, {"byte_fallback": False, "split_digits": False, "allow_whitespace_only_pieces": False}),
    (
        {"byte_fallback": True, "split_by_number": False, "split_by_whitespace": False, "character_coverage": 0.99},
        {
            "split_digits": False,
            "allow_whitespace_only_pieces": False,
            "split_by_number": False,
            "split_by_whitespace": False,
            "character_coverage": 0.99,
        },
    ),
    (
        {"split_by_unicode_script": False, "max_sentencepiece_length": 5, "add_dummy_prefix": False},
        {
            "byte_fallback": False,
            "split_by_unicode_script": False,
            "max_token_length": 5,
            "add_space_prefix": False,
            "split_digits": False,
            "allow_whitespace_only_pieces": False,
        },
    ),
]


@pytest.mark.parametrize("remove", [False, True])
@pytest.mark.parametrize(("theirs", "ours"), SPM_SETTINGS)
def test_spm_equals_sentencepiece_on_the_corpora(
    shared: Path, theirs: dict[str, Any], ours: dict[str, Any], remove: bool
) -> None:
    pytest.importorskip("sentencepiece")
    # sentencepiece takes a carriage return from the end of a line.
    texts = [corpus(shared, name, 40_000) for name in CORPORA]
    lines = [line.removesuffix("\r") for text in texts for line in text.split("\n")]
    pieces = sentencepiece_pieces(lines, 4000, remove_extra_whitespaces=remove, **theirs)
    tok = ggtok.train(lines, kind="spm", vocab_size=4000, remove_extra_whitespaces=remove, **ours)
    assert tokens_of(tok) == pieces


def test_spm_equals_sentencepiece_on_the_note() -> None:
    pytest.importorskip("sentencepiece")
    for size in range(33, 61):
        pieces = sentencepiece_pieces(LATIN[:2], size, byte_fallback=False)
        tok = ggtok.train(LATIN[:2], kind="spm", vocab_size=size, byte_fallback=False)
        assert tokens_of(tok) == pieces
    assert [piece for piece, _ in pieces[3:7]] == ["he", "az", "br", "ck"]


def test_spm_special_tokens_equal_those_of_sentencepiece() -> None:
    pytest.importorskip("sentencepiece")
    lines = [line for text in LATIN for line in text.splitlines()]
    pieces = sentencepiece_pieces(
        lines, 380, byte_fallback=True, control_symbols=["<c>"], user_defined_symbols=["quick", "▁fox"], pad_id=3
    )
    tok = ggtok.train(
        lines,
        kind="spm",
        vocab_size=380,
        special={"unk": "<unk>", "bos": "<s>", "eos": "</s>", "pad": "<pad>"},
        control_tokens=["<c>"],
        user_defined_tokens=["quick", "▁fox"],
        split_digits=False,
        allow_whitespace_only_pieces=False,
        remove_extra_whitespaces=True,
    )
    assert tokens_of(tok) == pieces
    assert tok.vocab.pad_id == 3


def test_wordpiece_by_frequency_equals_tokenizers() -> None:
    """Where no two counts are equal: tokenizers numbers letters inside words by the order of a hash table."""
    hf = pytest.importorskip("tokenizers")
    # A different word for each count; no two share a pair.
    words = {"ab": 90, "cde": 80, "fghi": 70, "jklm": 61, "no": 50, "pqr": 41, "stuv": 31}
    texts = [word for word, count in words.items() for _ in range(count)]
    tok = hf.Tokenizer(hf.models.WordPiece(unk_token="[UNK]"))
    tok.pre_tokenizer = hf.pre_tokenizers.BertPreTokenizer()
    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    trainer = hf.trainers.WordPieceTrainer(vocab_size=1000, special_tokens=names, show_progress=False, min_frequency=2)
    tok.train_from_iterator(texts, trainer)
    theirs = {token if token in names else token.removeprefix("##") if token[:2] == "##" else f"▁{token}"
              for token in tok.get_vocab()}  # fmt: skip
    starts = {f"▁{letter}" for word in words for letter in word}
    ours = ggtok.train(texts, kind="wordpiece", vocab_size=len(theirs - starts) + len(words))
    # tokenizers has a token for each letter at the start of a word, whether or not it occurs there.
    assert {token.text for token in ours.vocab} == theirs - starts | {f"▁{word[0]}" for word in words}


def train(corpus: Any, kind: Any, size: int, **settings: Any) -> ggtok.Tokenizer:
    return ggtok.train(corpus, kind=kind, vocab_size=size, **settings)


MEMORY = 5_000
"""Enough for the different words of small corpora, and too little for any table of them, so they go to a file."""

UNK_AND_BOS = {"unk": "<unk>", "bos": "<s>"}
SIZES = {"bpe": 300, "spm": 360, "wordpiece": 90, "unigram": 90}


def trained(kind: str, corpus: Any = LATIN, **settings: Any) -> ggtok.Tokenizer:
    return train(corpus, kind, SIZES[kind], **settings)


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("bpe", {}),
        ("bpe", {"pre": "superbpe", "transition": 1500, "special_first": True}),
        ("bpe", {"pre": "llama-bpe", "add_bos": True}),
        ("spm", {}),
        ("spm", {"split_by_whitespace": False, "add_space_prefix": False}),
        ("wordpiece", {}),
        ("wordpiece", {"by": "likelihood", "lowercase": False}),
        ("unigram", {}),
        ("unigram", {"normalization": "nfkc_cf", "split_digits": True, "add_bos": True, "special": UNK_AND_BOS}),
        ("unigram", {"normalization": "identity", "split_by_whitespace": False, "user_defined_tokens": ["the "]}),
        ("unigram", {"normalization": {"e": "ee", "ä": "", "th": "þ"}, "remove_extra_whitespaces": False}),
    ],
)
def test_llama_cpp_reads_it_alike(
    shared: Path, tmp_path: Path, llama_cpp: Any, kind: str, settings: dict[str, Any]
) -> None:
    size = {"bpe": 2000, "spm": 3000, "wordpiece": 2500, "unigram": 3000}[kind]
    tok = train([corpus(shared, name, 30_000) for name in CORPORA], kind, size, **settings)
    path = tmp_path / "trained.gguf"
    tok.to_gguf(path)
    llama = llama_cpp.LlamaReference(path)
    assert llama.n_tokens == tok.vocab_size == size
    for name in CORPORA:
        unseen = corpus(shared, name, 120_000)[60_000:62_000]
        for add_special in (True, False):
            assert tok.encode(unseen, add_special=add_special) == llama.tokenize(
                unseen.encode(), add_special=add_special, parse_special=False
            )


@pytest.mark.parametrize("kind", SIZES)
def test_the_same_for_every_source_thread_and_memory(kind: str, tmp_path: Path) -> None:
    tok = trained(kind)
    pa = pytest.importorskip("pyarrow")

    def again(corpus: Any, **settings: Any) -> ggtok.Tokenizer:
        return trained(kind, corpus, **settings)

    assert again(LATIN, threads=3) == again(iter(LATIN), threads=1) == again(pa.array([*LATIN, None])) == tok
    assert again(LATIN, memory=MEMORY) == tok
    assert again([text.encode() for text in LATIN]) == tok
    lines = [line for text in LATIN for line in text.split("\n")]
    path = tmp_path / "corpus.txt"
    path.write_bytes(b"\xef\xbb\xbf" + "\r\n".join(lines).encode())
    assert again(path) == again([path]) == again(path, threads=2, memory=MEMORY)
    if kind == "spm":
        assert again(path) == again(lines)


@pytest.mark.parametrize("kind", ["bpe", "spm", "wordpiece", "unigram"])
@pytest.mark.parametrize("threads", [1, 2])
def test_rare_words_are_left_out_where_memory_is_short(
    kind: str, threads: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if they were not in the corpus; words that occur equally often stay together or go."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    counts = {"lowest": 9, "lower": 8, "newest": 7, "newer": 7, "slow": 3, "tower": 2, "lost": 2}
    texts = [word for word, count in counts.items() for _ in range(count)]
    size = {"bpe": 260, "spm": 272, "wordpiece": 20, "unigram": 14}[kind]

    def again(kept: int, **settings: Any) -> ggtok.Tokenizer:
        return train([text for text in texts if counts[text] >= kept], kind, size, threads=threads, **settings)

    # A word takes its bytes, the mark of a space before it, and 16 more.
    mark = 0 if kind == "bpe" else 3
    need = {kept: sum(len(word) + mark + 16 for word in counts if counts[word] >= kept) for kept in (2, 3, 7)}
    assert again(2, memory=need[2]) == again(2)
    for memory, kept, left_out in [(need[2] - 1, 3, "2 that"), (need[3] - 1, 7, "3 that"), (need[7], 7, "3 that")]:
        with pytest.warns(ggtok.TokenizerWarning, match=rf"may take {memory}, so {left_out} .* less than {kept} times"):
            tok = again(2, memory=memory)
        assert tok == again(kept)
    with pytest.raises(ggtok.TrainingError, match="1 bytes of memory have no room for the most frequent words"):
        again(2, memory=1)
    assert os.listdir(tmp_path) == []


def test_special_tokens_and_flags() -> None:
    tok = trained(
        "bpe",
        special={"bos": "<s>", "eos": "</s>", "fim_pre": "<pre>"},
        control_tokens=["<c>"],
        user_defined_tokens=["fox"],
        unused_tokens=["<0>", "<1>"],
        name="mine",
        chat_template="{{ messages[0]['content'] }}",
        add_bos=True,
    )
    assert (tok.vocab.bos_id, tok.vocab.eos_id, tok.vocab.fim_pre_id) == (293, 294, 295)
    assert tok.encode("a fox <c>")[:1] == [293]
    assert 297 in tok.encode("a fox <c>")
    assert 296 in tok.encode("<c>", parse_special=True)
    assert 296 not in tok.encode("<c>")
    assert tok.metadata["general.name"] == "mine"
    assert tok.apply_chat_template([{"role": "user", "content": "x"}]) == "x"
    assert trained("bpe", special_first=True).vocab.bos_id == 0
    first = trained("bpe", special={})
    assert first.vocab_size == 300


def test_a_trained_tokenizer_is_one_like_any_other() -> None:
    import pickle

    for kind in SIZES:
        tok = trained(kind)
        assert pickle.loads(pickle.dumps(tok)) == tok
        assert tok.check() is not None
        assert tok.decode(tok.encode("the fox"), remove_special=True).strip() == "the fox"


BAD: list[tuple[Any, str, int, dict[str, Any], type[Exception], str]] = [
    ([], "bpe", 300, {}, ggtok.TrainingError, "the corpus has no words"),
    (["", " "], "wordpiece", 300, {}, ggtok.TrainingError, "the corpus has no words"),
    (["ab"], "spm", 260, {}, ggtok.TrainingError, "260 is too small: .* 259 of the alphabet need 262"),
    (["ab"], "bpe", 300, {"control_tokens": ["<|endoftext|>"]}, ggtok.TrainingError, "would share the text"),
    (["ab"], "bpe", 300, {"control_tokens": ["a\0b"]}, ggtok.TrainingError, "have no NUL byte"),
    (["ab"], "bpe", 300, {"min_frequency": -1}, ggtok.TrainingError, "min_frequency: can.t convert negative int"),
    (["ab"], "bpe", 258, {"control_tokens": ["a"]}, ggtok.TrainingError, 'would share the text "a"'),
    (["ab"], "spm", 900, {"control_tokens": ["<0x41>"]}, ggtok.TrainingError, "would share the text"),
    (["ab"], "spm", 900, {"character_coverage": 2.0}, ggtok.TrainingError, "character_coverage must be above 0"),
    (["ab"], "xyz", 300, {}, ggtok.TrainingError, "kind must be 'bpe', 'spm', 'unigram' or 'wordpiece', not"),
    (["ab"], "bpe", 300, {"special": {"boss": "x"}}, ggtok.TrainingError, "unknown role 'boss'"),
    (["ab"], "bpe", 300, {"lowercase": True}, TypeError, "not a setting of kind 'bpe'"),
    (["ab"], "bpe", 300, {"control_tokens": "<c>"}, TypeError, "not one str"),
    (["ab"], "bpe", 300, {"pre": "qwen3"}, ggtok.UnsupportedError, "qwen2"),
    (["ab"], "bpe", 300, {"pre": "gemma4"}, ggtok.TrainingError, "pre must be"),
    (["ab"], "bpe", 300, {"transition": 20}, ggtok.TrainingError, "transition must be"),
    (["ab"], "wordpiece", 300, {"by": "chance"}, ggtok.TrainingError, "by must be"),
    (["a", b"b\xff"], "bpe", 300, {}, ggtok.GgtokError, "text 1 is not UTF-8 at byte 1"),
    (["a", 1], "bpe", 300, {}, TypeError, "text"),
    (b"a", "bpe", 300, {}, TypeError, "texts is a single bytes"),
    ("a", "bpe", 300, {}, TypeError, "texts is a single str"),
    (["a"], "bpe", 0, {}, ggtok.GgtokError, "vocab_size must be at least 1"),
    (["a"], "bpe", 300, {"threads": 0}, ggtok.GgtokError, "threads"),
    ([Path("/no/such/file")], "bpe", 300, {}, FileNotFoundError, "/no/such/file"),
    ([], "unigram", 38, {}, ggtok.TrainingError, "the corpus has no words"),
    (LATIN, "unigram", 10, {}, ggtok.TrainingError, "vocab_size 10 is too small"),
    (LATIN, "unigram", 60, {"normalization": "nfd"}, ggtok.TrainingError, "normalization must be .*'nmt_nfkc'"),
    (LATIN, "unigram", 60, {"normalization": {"": "a"}}, ggtok.TrainingError, "line 1 of the rules has no code points"),
    (LATIN, "unigram", 60, {"normalization": {"a\0": "a"}}, ggtok.TrainingError, '"0" is not a code point'),
    (LATIN, "unigram", 60, {"normalization": Path("/no/such/file")}, FileNotFoundError, "/no/such/file"),
    (LATIN, "unigram", 60, {"shrinking_factor": 1.5}, ggtok.TrainingError, "shrinking_factor must be"),
    (LATIN, "unigram", 60, {"seed_size": 0}, ggtok.TrainingError, "seed_size must be"),
    (LATIN, "unigram", 60, {"num_sub_iterations": 0}, ggtok.TrainingError, "num_sub_iterations must be"),
    (LATIN, "unigram", 60, {"control_tokens": ["</s>"]}, ggtok.TrainingError, "would share the text"),
    (LATIN, "unigram", 60, {"min_frequency": 2}, TypeError, "not a setting of kind 'unigram'"),
]


@pytest.mark.parametrize(("corpus", "kind", "size", "settings", "error", "message"), BAD)
def test_bad_input(
    corpus: Any, kind: Any, size: int, settings: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        ggtok.train(corpus, kind=kind, vocab_size=size, **settings)


def test_a_file_that_is_not_utf8(tmp_path: Path) -> None:
    path = tmp_path / "corpus.txt"
    for text, offset in ((b"abc\xff", 3), (b"a\n" * 5_000_000 + b"\xc3", 10_000_000), (b"\xef\xbb\xbfa\xc3", 4)):
        path.write_bytes(text)
        with pytest.raises(ggtok.GgtokError, match=f"corpus.txt is not UTF-8 at byte {offset}"):
            ggtok.train(path, kind="bpe", vocab_size=300)


@pytest.mark.parametrize(
    ("kind", "last"), [("bpe", "merging"), ("spm", "merging"), ("wordpiece", "merging"), ("unigram", "dropping")]
)
def test_progress_is_reported_and_stops(kind: str, last: str) -> None:
    phases = set()

    def hear(phase: str, done: int, total: int) -> None:
        phases.add(phase)
        if last not in phases:
            time.sleep(0.11)  # what is reported sooner after this is left out

    trained(kind, progress=hear)
    assert phases == {"counting", last}

    def stop(phase: str, done: int, total: int) -> None:
        raise KeyError(phase)

    with pytest.raises(KeyError, match="counting"):
        trained(kind, progress=stop)
