"""Ctrl-C: it stops a call, raises `KeyboardInterrupt` and nothing else, and leaves the tokenizer as it was."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from conftest import BUILTIN
from ggtok import Tokenizer

PRELUDE = """
    import os, signal, sys, threading, time
    import ggtok
    tok = ggtok.Tokenizer.builtin("bpe")

    def interrupted(work, after=0.02):
        # Sends Ctrl-C at the third tick of a timer that is heard during the call. Ticks that nothing hears are one,
        # so a call that does not listen comes to its end first.
        tok.encode_array("a")  # the import of numpy is not interrupted
        ticks = 0

        def tick(*_):
            nonlocal ticks
            ticks += 1
            if ticks == 3:
                signal.raise_signal(signal.SIGINT)

        # The kernel sends it, so it comes while the GIL is released or held.
        signal.signal(signal.SIGALRM, tick)
        signal.setitimer(signal.ITIMER_REAL, after, 0.01)
        try:
            work()
        except KeyboardInterrupt:
            return
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        sys.exit("the work came to its end")

    def check():
        ids = tok.encode("What is LoRA?")
        assert ids == [9713, 5981, 6266, 78, 9612, 30], ids
        assert tok.encode_batch(["What is LoRA?"] * 3, threads=2).tolist() == [ids] * 3
        assert tok.decode(ids) == "What is LoRA?"
"""


def run(code: str, *options: str) -> str:
    """What a process prints on standard output; it must end well and print nothing on standard error."""
    code = textwrap.dedent(PRELUDE) + textwrap.dedent(code)
    compile(code, "<test>", "exec")
    command = [sys.executable, *options, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.parametrize("threads", [1, 3])
def test_a_long_batch_stops(threads: int) -> None:
    """It would encode 1.5 GB."""
    code = f"""
        texts = ["%x " % (number * 0x9E3779B97F4A7C15 % 2**61) * 30 for number in range(10_000)] * 300
        interrupted(lambda: tok.encode_batch(texts, threads={threads}))
        check()
    """
    run(code)


@pytest.mark.parametrize("text", ["hex(' ', 8)", "hex()"], ids=["words", "one word"])
@pytest.mark.parametrize("name", BUILTIN)
def test_a_long_text_stops(name: str, text: str) -> None:
    """Inside one fragment: among short words, and inside a single piece, segment or lattice."""
    code = f"""
        import random
        text = random.Random(7).randbytes(10_000_000).{text}
        other = ggtok.Tokenizer.builtin("{name}")
        expected = other.count(text[:1000])
        interrupted(lambda: other.count(text), after=0.02)
        interrupted(lambda: other.encode_with_offsets(text), after=0.02)
        interrupted(lambda: other.count_parts([(text, True)]), after=0.02)
        assert other.count(text[:1000]) == expected
        check()
    """
    run(code)


def test_streams_stop() -> None:
    """A decoder is as it was before the call; an encoder cannot be used any more."""
    code = """
        import random
        encoder = tok.encoder()
        text = random.Random(7).randbytes(50_000_000).hex(" ", 8)
        interrupted(lambda: encoder.push_count(text), after=0.02)
        try:
            encoder.push("a")
        except ValueError as error:
            assert "failed" in str(error), error
        decoder = tok.decoder(stop="no")
        decoder.push(9713)
        ids = [5981, 6266] * 20_000_000
        interrupted(lambda: decoder.push(ids), after=0.02)
        assert decoder.push(5981) == " is"
        check()
    """
    run(code)


@pytest.mark.parametrize(
    "call", ["count_batch(column)", "encode_batch(column)", "decode_batch(rows)", "encode_batch(texts)"]
)
def test_other_batches_stop(call: str) -> None:
    code = f"""
        import nanoarrow as na
        texts = ["%x " % (number * 0x9E3779B97F4A7C15 % 2**61) * 30 for number in range(10_000)] * 100
        column = na.Array(texts, na.large_string())
        rows = [list(range(1, 500))] * 1_000_000
        interrupted(lambda: tok.{call}, after=0.1)
        check()
    """
    run(code)


def test_padding_stops() -> None:
    code = """
        batch = tok.encode_batch(["a"] * 1_000_000)
        interrupted(lambda: [batch.pad(200) for _ in range(1000)], after=0.1)
        interrupted(lambda: [batch.tolist() for _ in range(1000)], after=0.1)
        check()
    """
    run(code)


def test_a_batch_stops_while_its_texts_are_read() -> None:
    code = """
        import itertools
        interrupted(lambda: tok.encode_batch(itertools.repeat("a")))
        interrupted(lambda: tok.decode(itertools.repeat(7)))
        interrupted(lambda: tok.encode_parts(itertools.repeat(("a", True))))
        interrupted(lambda: tok.decode_batch(itertools.repeat([7])))
        interrupted(lambda: tok.count_batch(itertools.repeat("a")))
        check()
    """
    run(code)


def test_handlers_of_other_signals_run_and_may_encode() -> None:
    """A handler that does not raise lets the work go on, even if it encodes with the same tokenizer."""
    code = """
        texts = ["%x " % (number * 0x9E3779B97F4A7C15 % 2**61) * 30 for number in range(10_000)] * 5
        expected = tok.encode_batch(texts, threads=1)
        seen = []
        def handler(*_):
            seen.append(tok.encode_batch(texts[:1000], threads=2) == expected[:1000])
        signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, 0.01)
        again = tok.encode_batch(texts, threads=2)
        assert (again.ids == expected.ids).all() and (again.offsets == expected.offsets).all()
        assert seen == [True]
        check()
    """
    run(code)


def test_other_threads_encode_meanwhile() -> None:
    code = """
        texts = ["%x " % (number * 0x9E3779B97F4A7C15 % 2**61) * 30 for number in range(1000)]
        expected = tok.encode_batch(texts).tolist()
        results = []
        target = lambda: results.append(tok.encode_batch(texts * 5).tolist())
        threads = [threading.Thread(target=target) for _ in range(2)]
        for thread in threads:
            thread.start()
        interrupted(lambda: tok.encode_batch(texts * 3000))
        for thread in threads:
            thread.join()
        assert results == [expected * 5] * 2
        check()
    """
    run(code)


@pytest.mark.parametrize(
    ("call", "module"),
    [
        *(("encode_array('a')", module) for module in ("numpy", "numpy._core", "numpy.lib", "numpy.linalg")),
        *((call, "numpy") for call in ("encode_batch(['a']).ids", "encode_batch(['a'])[0]")),
    ],
)
def test_ctrl_c_while_numpy_is_imported(call: str, module: str) -> None:
    """It is raised once the import is done: half imported, numpy could not be imported again."""
    code = f"""
        class Interrupting:
            def find_spec(self, name, *_):
                if name == "{module}":
                    os.kill(os.getpid(), signal.SIGINT)
                    time.sleep(0.02)
        sys.meta_path.insert(0, Interrupting())
        try:
            tok.{call}
        except KeyboardInterrupt:
            print("interrupted")
        tok.{call}
        check()
    """
    assert run(code) == "interrupted\n"


@pytest.mark.parametrize(
    ("kind", "last", "settings"),
    [
        ("bpe", "merging", {"vocab_size": 30_000}),
        ("bpe", "merging", {"vocab_size": 30_000, "pre": "superbpe", "transition": 600}),
        ("spm", "merging", {"vocab_size": 30_000, "split_digits": False, "split_by_unicode_script": False}),
        ("wordpiece", "merging", {"vocab_size": 30_000, "by": "likelihood"}),
        ("unigram", "dropping", {"vocab_size": 8000, "split_by_unicode_script": False, "num_sub_iterations": 20}),
    ],
    ids=["bpe", "superbpe", "spm", "wordpiece", "unigram"],
)
def test_training_stops(kind: str, last: str, settings: dict[str, object], tmp_path: Path) -> None:
    """In every phase, before the next one; and neither the temporary file nor the result is left behind."""
    pytest.importorskip("gguf")
    code = f"""
        import random, tempfile
        draw = random.Random(7)
        letters = str.maketrans("0123456789", "ghijklmnop")
        texts = [draw.randbytes(3_000_000).hex(" ", 5).translate(letters) for _ in range(4)]
        tempfile.tempdir = {str(tmp_path)!r}
        path = os.path.join(tempfile.tempdir, "new.gguf")
        ggtok.train(["a b"] * 9, kind="spm", vocab_size=262)
        def stops(texts, phase, begins, memory=None):
            heard = []
            def hear(name, done, total):
                heard.append(name)
                if begins(name):
                    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.01)
            train = lambda: ggtok.train(texts, kind={kind!r}, memory=memory, threads=2, progress=hear, **{settings!r})
            interrupted(lambda: train().to_gguf(path), after=0)
            assert os.listdir(tempfile.tempdir) == []
            assert heard[-1] == phase, heard

        stops(texts, "counting", lambda name: True)
        # All words do not fit, so some are in a file.
        stops(texts, "counting", lambda name: os.listdir(tempfile.tempdir), memory=75 << 20)
        some = [text[: 1_000_000 if {last!r} == "merging" else 200_000] for text in texts]
        stops(some, {last!r}, lambda name: name == {last!r})
        # Before the last phase begins, if there is much to do before it.
        interrupted(lambda: ggtok.train(texts, kind={kind!r}, **{settings!r}), after=0.7)
        check()
    """
    run(code)


def test_a_text_is_encoded_after_another_was_interrupted() -> None:
    """In one process, so that the scratch spaces of this thread are those of other tests."""
    tokenizer = Tokenizer.builtin("spm")
    expected = tokenizer.encode("What is LoRA?")

    class Interrupting:
        def __iter__(self) -> object:
            yield "What is LoRA?"
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tokenizer.encode_batch(Interrupting())  # type: ignore[arg-type]
    assert tokenizer.encode("What is LoRA?") == expected
