"""`ggtok.train(kind="unigram")` and its normalization, beside sentencepiece and llama.cpp."""

from __future__ import annotations

import importlib.util
import io
import math
import os
import random
import signal
import sys
import threading
import time
import unicodedata
from collections import Counter
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

import ggtok
import pytest
from ggtok import _ggtok

NAMES = ["nfkc", "nmt_nfkc", "nfkc_cf", "nmt_nfkc_cf"]
LATIN = ["The quick brown fox jumps over the lazy dog.", "A quick brown dog jumps over the lazy fox."] * 5


def corpus(shared: Path, name: str, size: int) -> list[str]:
    """Lines of a corpus, as sentencepiece reads them."""
    text = (shared / "corpora" / f"{name}.txt").read_bytes().decode()[:size]
    return [line.removesuffix("\r") for line in text.split("\n")]


def trained(texts: Iterable[str] = LATIN, size: int = 38, **settings: Any) -> ggtok.Tokenizer:
    return ggtok.train(texts, kind="unigram", vocab_size=size, **settings)


def texts() -> Iterable[str]:
    """Every code point by itself, decomposed characters, and random texts of those."""
    points = [chr(point) for point in range(1, 0x110000) if not 0xD800 <= point < 0xE000]
    yield from points
    decomposed = [unicodedata.normalize(form, point) for point in points for form in ("NFD", "NFKD")]
    decomposed = [text for text in decomposed if len(text) > 1]
    yield from decomposed
    draw = random.Random(7)
    for _ in range(20_000):
        yield "".join(draw.choice(draw.choice((points, decomposed))) for _ in range(draw.randint(1, 6)))


@pytest.mark.parametrize("name", NAMES)
def test_normalization_equals_that_of_sentencepiece(name: str) -> None:
    package = pytest.importorskip("sentencepiece")
    charsmap = _ggtok.compile_charsmap(name=name)
    normalizer = package.SentencePieceNormalizer(
        rule_name=name, add_dummy_prefix=False, escape_whitespaces=False, remove_extra_whitespaces=False
    )
    # A private-use character between texts, which no rule has.
    batch: list[str] = []
    for text in [*texts(), ""]:
        batch.append(text)
        if len(batch) == 4096 or not text:
            joined = "\ue000".join(batch)
            ours, theirs = _ggtok.apply_charsmap(charsmap, joined), normalizer.normalize(joined)
            if ours != theirs:
                rows = zip(batch, ours.split("\ue000"), theirs.split("\ue000"), strict=False)
                raise AssertionError([row for row in rows if row[1] != row[2]][:5])
            batch = []
    assert len(charsmap) < 256_000  # sentencepiece's have up to 247,165 bytes


def objective(pieces: dict[str, float], words: Counter[str]) -> float:
    """Minus the logarithm of the mean probability of a word, over all its segmentations."""
    longest, unknown = max(map(len, pieces)), min(pieces.values()) - 10
    total = 0.0
    for word, count in words.items():
        sums = [1.0] + [0.0] * len(word)
        for start in range(len(word)):
            for end in range(start + 1, min(len(word), start + longest) + 1):
                score = pieces.get(word[start:end], unknown if end == start + 1 else None)
                if score is not None:
                    sums[end] += sums[start] * math.exp(score)
        total -= count * math.log(max(sums[-1], 1e-300))
    return total / sum(words.values())


def seeds(words: Counter[str]) -> dict[str, int]:
    """Stretches of letters, or of others, that occur twice and that a piece may end after, with their counts."""
    counts: Counter[str] = Counter()
    following: dict[str, set[str]] = {}
    for word, count in words.items():
        for start in range(len(word)):
            for end in range(start + 2, min(len(word), start + 16) + 1):
                is_after_space = end - start == 2 and word[start] == "▁"
                if not is_after_space and word[end - 1].isalpha() != word[end - 2].isalpha():
                    break
                text = word[start:end]
                counts[text] += count
                is_end = end == len(word) or len(text) == 16 or word[end].isalpha() != word[end - 1].isalpha()
                following.setdefault(text, set()).update(("", " ") if is_end else word[end])
    return {text: count for text, count in counts.items() if count > 1 and len(following[text]) > 1}


def test_the_objective_differs_because_of_the_seeds(shared: Path, tmp_path: Path) -> None:
    """Given the seeds that sentencepiece loses, it comes to the same objective."""
    package = pytest.importorskip("sentencepiece")
    lines = corpus(shared, "en", 300_000)
    words = Counter("▁" + word for line in lines for word in line.split(" ") if word)
    path = tmp_path / "seeds.tsv"
    ordered = sorted(seeds(words).items(), key=lambda seed: (-seed[1] * len(seed[0]), seed[0]))
    path.write_text("".join(f"{text}\t{count}\n" for text, count in ordered if "\t" not in text), "utf-8", newline="\n")

    def theirs(**settings: Any) -> dict[str, float]:
        model = io.BytesIO()
        fixed = {"normalization_rule_name": "identity", "max_sentence_length": 1 << 20, "minloglevel": 2}
        package.SentencePieceTrainer.train(
            sentence_iterator=iter(lines), model_writer=model, vocab_size=4000, num_threads=1, **fixed, **settings
        )
        processor = package.SentencePieceProcessor(model_proto=model.getvalue())
        return {processor.id_to_piece(id): processor.get_score(id) for id in range(3, processor.get_piece_size())}

    default, seeded = theirs(), theirs(seed_sentencepieces_file=str(path))
    ours = {token.text: token.score for token in trained(lines, 4000, normalization="identity").vocab if token.id >= 3}
    known = Counter({word: words[word] for word in words if all(word_is_in(word, v) for v in (default, seeded, ours))})
    objectives = [objective(pieces, known) for pieces in (default, seeded, ours)]
    assert objectives[2] < 0.995 * objectives[0]
    assert abs(objectives[2] / objectives[1] - 1) < 0.005


def word_is_in(word: str, pieces: dict[str, float]) -> bool:
    """Whether all characters of a word are pieces."""
    return all(character in pieces for character in word)


@pytest.mark.parametrize("name", ["en", "multi"])
def test_the_objective_is_that_of_sentencepiece(shared: Path, name: str) -> None:
    package = pytest.importorskip("sentencepiece")
    lines = corpus(shared, name, 100_000)
    model = io.BytesIO()
    package.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=model,
        vocab_size=1500,
        normalization_rule_name="identity",
        max_sentence_length=1 << 20,
        minloglevel=2,
        num_threads=1,
    )
    processor = package.SentencePieceProcessor(model_proto=model.getvalue())
    theirs = {processor.id_to_piece(id): processor.get_score(id) for id in range(3, processor.get_piece_size())}
    tok = trained(lines, 1500, normalization="identity")
    ours = {token.text: token.score for token in tok.vocab if token.id >= 3}
    words = Counter("▁" + word for line in lines for word in line.split(" ") if word)
    assert objective(ours, words) < 1.005 * objective(theirs, words)
    assert len(ours) == len(theirs)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"normalization": "nfkc_cf", "split_digits": True, "add_bos": True, "special": {"unk": "<unk>", "bos": "<s>"}},
        {"normalization": "identity", "split_by_whitespace": False, "user_defined_tokens": ["the "]},
        {"normalization": {"e": "ee", "ä": "", "th": "þ"}, "remove_extra_whitespaces": False},
    ],
)
def test_llama_cpp_reads_it_alike(shared: Path, tmp_path: Path, settings: dict[str, Any]) -> None:
    if importlib.util.find_spec("xllamacpp") is None:
        pytest.skip("xllamacpp is not installed")
    sys.path.insert(0, str(shared / "tools"))
    reference = import_module("llama_reference")
    sys.path.pop(0)
    names = ("en", "code", "multi", "cjk")
    tok = trained([line for name in names for line in corpus(shared, name, 30_000)], 3000, **settings)
    path = tmp_path / "trained.gguf"
    path.write_bytes(tok._metadata.data)
    llama = reference.LlamaReference(path)
    assert llama.n_tokens == tok.vocab_size == 3000
    for name in names:
        unseen = "\n".join(corpus(shared, name, 64_000)[-100:])
        assert tok.encode(unseen) == llama.tokenize(unseen.encode(), add_special=True, parse_special=False)


def test_the_same_for_every_source_thread_and_memory(tmp_path: Path) -> None:
    tok = trained()
    path = tmp_path / "corpus.txt"
    path.write_text("\n".join(LATIN), "utf-8")
    assert trained(threads=3) == trained(iter(LATIN), threads=1) == trained(path, memory=5_000) == tok  # type: ignore[arg-type]
    assert str(tok.vocab.kind) == "unigram"
    assert (tok.vocab.pad_id, tok.vocab.eos_id, tok.vocab.unk_id) == (0, 1, 2)
    assert tok.decode(tok.encode("the \uff46ox"), remove_special=True) == "the fox"


def test_rules_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "rules.tsv"
    path.write_text("71 75\t6B 77\t# qu => kw\nU+7A\n", "utf-8")
    tok = trained(normalization=path)
    assert tok == trained(normalization={"qu": "kw", "z": ""})
    assert any("kw" in token.text for token in tok.vocab)
    assert tok.decode(tok.encode("quick lazy"), remove_special=True) == "kwick lay"


def test_spm_normalizes_only_the_corpus() -> None:
    with pytest.raises(ggtok.TrainingError, match="SPM does not normalize"):
        ggtok.train(LATIN, kind="spm", vocab_size=320, normalization="nfkc")
    wide = [text.replace("q", "\uff51") for text in LATIN]
    settings: dict[str, Any] = {"normalization": "nfkc", "normalize_corpus_only": True}
    tok = ggtok.train(wide, kind="spm", vocab_size=320, **settings)
    assert tok == ggtok.train(LATIN, kind="spm", vocab_size=320)


BAD: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"normalization": "nfd"}, ggtok.TrainingError, "unknown normalization .*nmt_nfkc"),
    ({"normalization": {"": "a"}}, ggtok.TrainingError, "line 1 of the rules has no code points"),
    ({"normalization": {"a\0": "a"}}, ggtok.TrainingError, 'line 1 of the rules: "0" is not a code point'),
    ({"normalization": Path("/no/such/file")}, FileNotFoundError, "/no/such/file"),
    ({"shrinking_factor": 1.5}, ggtok.TrainingError, "shrinking_factor must be"),
    ({"seed_size": 0}, ggtok.TrainingError, "seed_size must be"),
    ({"num_sub_iterations": 0}, ggtok.TrainingError, "num_sub_iterations must be"),
    ({"size": 10}, ggtok.TrainingError, "vocab_size 10 is too small"),
    ({"size": 5000}, ggtok.TrainingError, "vocab_size 5000 is too large"),
    ({"texts": []}, ggtok.TrainingError, "the corpus has no words"),
    ({"control_tokens": ["</s>"]}, ggtok.TrainingError, "would share the text"),
    ({"min_frequency": 2}, TypeError, "no setting of kind 'unigram'"),
]


@pytest.mark.parametrize(("settings", "error", "message"), BAD)
def test_bad_input(settings: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        trained(**settings)


def test_progress_is_reported_and_stops() -> None:
    phases = set()

    def hear(phase: str, done: int, total: int) -> None:
        phases.add(phase)
        time.sleep(0.11)

    trained(progress=hear)
    assert phases == {"counting", "dropping"}

    def stop(phase: str, done: int, total: int) -> None:
        if phase == "dropping":
            raise KeyError(phase)
        time.sleep(0.11)

    with pytest.raises(KeyError, match="dropping"):
        trained(progress=stop)


@pytest.mark.skipif(sys.platform == "win32", reason="no signals")
def test_ctrl_c_stops_training() -> None:
    draw = random.Random(1)
    lines = [" ".join("".join(draw.choices("abcdefgh", k=9)) for _ in range(9)) for _ in range(20_000)]
    sent = 0.0

    def interrupt() -> None:
        nonlocal sent
        sent = time.perf_counter()
        os.kill(os.getpid(), signal.SIGINT)

    timer = None

    def progress(phase: str, done: int, total: int) -> None:
        nonlocal timer
        if timer is None:
            timer = threading.Timer(1.0, interrupt)
            timer.start()

    with pytest.raises(KeyboardInterrupt):
        trained(lines, 2000, progress=progress)
    assert time.perf_counter() - sent < 0.8
