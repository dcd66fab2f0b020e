"""Objects that threads share: the same answers from many threads at once, with and without the GIL.

Without the GIL (free-threaded CPython) the threads really run at the same time, and a race shows. With it they take
turns every tenth of a millisecond, because the switch interval is made short.
"""

from __future__ import annotations

import os
import sys
import sysconfig
import threading
from collections.abc import Callable, Iterator
from typing import Any

import ggtok
import pytest
from conftest import BUILTIN

NUM_THREADS = 6
ROUNDS = 6
TEXTS = [
    "What is LoRA?",
    "don't stop 12345 x_y = f(z)\n\n",
    "naïve café ﬁ ½ 中文字符 カタカナ 한국어 العربية 😀",
    "a" * 3000,
    *(f"document {number}: " + "the quick brown fox " * (number % 20) for number in range(20)),
]
MESSAGES = [{"role": "user", "content": "What is <|im_end|>?"}]


@pytest.fixture(autouse=True)
def _short_turns() -> Iterator[None]:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)
    yield
    sys.setswitchinterval(interval)


def together(*calls: Callable[[], Any]) -> list[Any]:
    """The results of calls that start at the same time, each in its own thread."""
    barrier = threading.Barrier(len(calls))
    results: list[Any] = [None] * len(calls)

    def run(index: int) -> None:
        barrier.wait()
        try:
            results[index] = calls[index]()
        except BaseException as error:
            results[index] = error

    threads = [threading.Thread(target=run, args=(index,)) for index in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def same(expected: Any, call: Callable[[], Any]) -> None:
    assert together(*[call] * NUM_THREADS) == [expected] * NUM_THREADS


def test_importing_does_not_switch_the_gil_on() -> None:
    if not sysconfig.get_config_var("Py_GIL_DISABLED"):
        pytest.skip("this interpreter always has a GIL")
    assert not getattr(sys, "_is_gil_enabled")()  # noqa: B009


@pytest.mark.parametrize("name", BUILTIN)
def test_one_tokenizer_for_all_threads(name: str) -> None:
    expected = [ggtok.Tokenizer.builtin(name).encode(text) for text in TEXTS]
    for _ in range(ROUNDS):
        # A new one each round: its tables are made by the first call that needs them, here by several at once.
        tokenizer = ggtok.Tokenizer.builtin(name)
        same(expected, lambda: [tokenizer.encode(text) for text in TEXTS])  # noqa: B023


@pytest.mark.parametrize("name", BUILTIN)
def test_every_call_at_once(name: str) -> None:
    alone = ggtok.Tokenizer.builtin(name)
    calls: list[Callable[[ggtok.Tokenizer], Any]] = [
        lambda tokenizer: tokenizer.encode_batch(TEXTS, threads=3).tolist(),
        lambda tokenizer: [tokenizer.count(text) for text in TEXTS],
        lambda tokenizer: [tokenizer.encode_with_offsets(text).tolist() for text in TEXTS],
        lambda tokenizer: [tokenizer.decode(tokenizer.encode(text)) for text in TEXTS],
        lambda tokenizer: [chunk.text for chunk in tokenizer.split(TEXTS[-1], 16)],
        lambda tokenizer: [list(tokenizer.explain(text).ids) for text in TEXTS[:3]],
        lambda tokenizer: tokenizer.vocab.search("th"),
        lambda tokenizer: [tokenizer.vocab.id(tokenizer.vocab[id].text) for id in range(300, 400)],
        lambda tokenizer: [issue.message for issue in tokenizer.check()],
        lambda tokenizer: (hash(tokenizer), len(tokenizer.vocab.merges), len(tokenizer.metadata)),
    ]
    if name == "bpe":
        calls.append(lambda tokenizer: tokenizer.encode_chat(MESSAGES))
    expected = [call(alone) for call in calls]
    for _ in range(ROUNDS // 3):
        tokenizer = ggtok.Tokenizer.builtin(name)
        assert together(*[lambda call=call: call(tokenizer) for call in calls]) == expected  # noqa: B023


def test_caches_of_threads_that_use_several_tokenizers() -> None:
    tokenizers = [ggtok.Tokenizer.builtin(BUILTIN[number % 4]) for number in range(6)]
    expected = [[tokenizer.encode(text) for tokenizer in tokenizers] for text in TEXTS]
    limit = ggtok.cache_limit()

    def change_limit() -> None:
        for number in range(200):
            ggtok.set_cache_limit((number % 5) << 20)

    try:
        encode = lambda: [[tokenizer.encode(text) for tokenizer in tokenizers] for text in TEXTS]  # noqa: E731
        results = together(change_limit, *[encode] * (NUM_THREADS - 1))
    finally:
        ggtok.set_cache_limit(limit)
    assert results == [None, *[expected] * (NUM_THREADS - 1)]


def test_each_tokenizer_keeps_its_cache() -> None:
    tokenizers = [ggtok.Tokenizer.builtin(BUILTIN[number % 4]) for number in range(8)]
    for tokenizer in tokenizers:
        tokenizer.encode(TEXTS[1])
    assert all(tokenizer.cache_bytes > 0 for tokenizer in tokenizers)


def test_caches_are_cleared_and_limited_while_threads_encode() -> None:
    tokenizer = ggtok.Tokenizer.builtin("bpe")
    text = " ".join(TEXTS) * 4
    expected, limit = tokenizer.encode(text), ggtok.cache_limit()

    def change() -> None:
        for number in range(100):
            ggtok.set_cache_limit((number % 3) << 20)
            tokenizer.clear_cache()
            assert tokenizer.cache_bytes <= (number % 3) << 20

    try:
        results = together(change, *[lambda: [tokenizer.encode(text) for _ in range(30)]] * (NUM_THREADS - 1))
        assert results == [None, *[[expected] * 30] * (NUM_THREADS - 1)]
        ggtok.set_cache_limit(limit)
        assert tokenizer.encode(text) == expected
        assert tokenizer.cache_bytes > 0
        ggtok.set_cache_limit(0)
        assert tokenizer.cache_bytes == 0
    finally:
        ggtok.set_cache_limit(limit)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_goes_on_while_a_call_was_running() -> None:
    tokenizer = ggtok.Tokenizer.builtin("bpe")
    text = "the quick brown fox " * 50_000
    expected, stop = tokenizer.encode(TEXTS[1]), threading.Event()

    def encode() -> None:
        while not stop.is_set():
            tokenizer.count(text)

    def fork() -> list[int]:
        codes = []
        try:
            for _ in range(5):
                if child := os.fork():
                    codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
                    continue
                code = 1
                try:
                    rows = [tokenizer.encode(TEXTS[1]), *tokenizer.encode_batch([TEXTS[1]], threads=1).tolist()]
                    ggtok.set_cache_limit(0)
                    tokenizer.clear_cache()
                    code = int(rows != [expected, expected] or tokenizer.cache_bytes > 0)
                finally:
                    os._exit(code)
        finally:
            stop.set()
        return codes

    tokenizer.count(text)
    assert together(encode, fork) == [None, [0] * 5]


def test_threads_come_and_go() -> None:
    """Threads end before and after the tokenizer that they use."""
    expected = ggtok.Tokenizer.builtin("spm").encode(TEXTS[1])
    for _ in range(ROUNDS * 4):
        shared = [ggtok.Tokenizer.builtin("spm")]
        same(expected, lambda: shared[0].encode(TEXTS[1]))  # noqa: B023
        shared.clear()


@pytest.mark.parametrize("name", ["bpe", "spm"])
def test_a_stream_in_several_threads_says_so_or_answers(name: str) -> None:
    """A stream is for one thread at a time: a call takes effect as a whole, or raises RuntimeError or ValueError."""
    tokenizer = ggtok.Tokenizer.builtin(name)
    word = " word"
    for _ in range(ROUNDS):
        encoder, decoder = tokenizer.encoder(), tokenizer.decoder()
        id = tokenizer.encode(word, add_special=False)[-1]

        def push() -> int:
            done = 0
            for _ in range(200):
                try:
                    encoder.push(word)  # noqa: B023
                    decoder.push([id] * 3)  # noqa: B023
                    done += 1
                except (RuntimeError, ValueError):
                    pass
            return done

        for result in together(*[push] * NUM_THREADS):
            assert isinstance(result, int), result


def test_copies_of_a_stream_are_independent() -> None:
    tokenizer = ggtok.Tokenizer.builtin("spm")
    ids = [id for text in TEXTS[:3] for id in tokenizer.encode(text, add_special=False)] * 20
    expected = tokenizer.decode([1, *ids])
    decoder = tokenizer.decoder()
    start = decoder.push(1)

    def finish() -> str:
        copy = decoder.copy()
        return start + "".join([copy.push(id) for id in ids]) + copy.flush()

    same(expected, finish)


def test_arguments_that_another_thread_changes() -> None:
    """A list or bytearray that grows and shrinks meanwhile gives the ids of some state of it, or an ordinary error."""
    tokenizer = ggtok.Tokenizer.builtin("bpe")
    texts, ids, letters = ["a text"] * 100, tokenizer.encode("a text") * 100, bytearray(b"a" * 1000)
    running = True

    def change() -> None:
        while running:
            texts.append("another")
            texts.pop()
            ids.append(ids.pop())
            letters.extend(b"aa")
            del letters[:2]

    def read() -> None:
        nonlocal running
        try:
            for _ in range(20):
                assert all(row for row in tokenizer.encode_batch(texts).tolist())
                assert tokenizer.decode(ids)
                assert set(tokenizer.decode(tokenizer.encode(letters))) == {"a"}
        finally:
            running = False

    assert together(change, read) == [None, None]


def test_training_in_several_threads() -> None:
    corpus = [*TEXTS, *TEXTS]
    expected = [bytes(text) for text in ggtok.train(corpus, kind="bpe", vocab_size=300, threads=2).vocab.pieces]
    results = together(
        *[lambda: ggtok.train(corpus, kind="bpe", vocab_size=300, threads=2).vocab.pieces] * (NUM_THREADS // 2)
    )
    assert [[bytes(text) for text in pieces] for pieces in results] == [expected] * (NUM_THREADS // 2)
