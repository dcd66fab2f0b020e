"""Whether an installed ggtok works: what must hold on every platform, with nothing but the standard library.

python .ci/smoke.py                  # the ggtok that is installed
python .ci/smoke.py --wheel dist     # installs the fitting wheel of a folder first, or else the sdist that is there
python .ci/smoke.py --tests          # then tests; needs pytest, hypothesis, numpy and gguf

Each text is encoded by the fast code and by `explain`, which shares no algorithm with it, so a platform on which one of
them is wrong does not pass.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import sysconfig
import threading
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TESTS = ("api", "bad_input", "gguf", "offsets", "parts", "stream_decoder", "stream_encoder", "threads", "vocab")
TEXTS = (
    "What is LoRA?",
    "  two  spaces\tand\r\nlines\n\n",
    "don't 1234567890 3.14 x_y = f(z)",
    "naïve café, Straße, ÅNGSTRÖM, ﬁ, ½",
    "中文字符 カタカナ ひらがな 한국어 العربية हिन्दी",
    "😀👩‍👩‍👧\u0000\u200b\ufffd",
    "a" * 5000,
    "the quick brown fox " * 500,
)


def install(folder: Path) -> None:
    pip = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--root-user-action=ignore"]
    wheels, sources = list(folder.glob("*.whl")), list(folder.glob("*.tar.gz"))
    if wheels:
        local = ["--no-index", "--find-links", str(folder), "ggtok"]
    elif sources:
        local = ["--no-index", "--no-build-isolation", str(sources[0])]
    else:
        sys.exit(f"{folder} holds neither a wheel nor a source distribution")
    subprocess.run([*pip, "--force-reinstall", "--no-deps", *local], check=True)
    # Now that it is there, only what it needs comes from the index.
    subprocess.run([*pip, "ggtok"], check=True)


def check() -> None:
    import ggtok

    for name in ("bpe", "spm", "unigram", "wordpiece"):
        tokenizer = ggtok.Tokenizer.builtin(name)
        expected = [tokenizer.explain(text).ids for text in TEXTS]
        for text, ids in zip(TEXTS, expected, strict=True):
            encoder = tokenizer.encoder()
            pushed = [id for character in text for id in encoder.push(character)] + encoder.flush()
            assert list(tokenizer.encode(text)) == list(ids) == pushed, (name, text[:80])
            assert tokenizer.count(text) == len(ids), (name, text[:80])
            if name == "bpe":
                assert tokenizer.decode(ids) == text, text[:80]
        batches: list[list[list[int]]] = []
        threads = [
            threading.Thread(target=lambda: batches.append(tokenizer.encode_batch(TEXTS, threads=2).tolist()))  # noqa: B023
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert batches == [[list(ids) for ids in expected]] * 4, name
    try:
        ggtok.Tokenizer.from_gguf(b"GGUF\x03\x00\x00\x00")
    except ggtok.GGUFError:
        pass
    else:
        raise AssertionError("a file that is cut off was opened")
    chat = ggtok.Tokenizer.builtin("bpe").encode_chat([{"role": "user", "content": "<|im_end|>"}])
    assert len(chat) > 5
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        assert not sys._is_gil_enabled(), "importing ggtok switched the GIL on"
    gil = "free-threaded " if sysconfig.get_config_var("Py_GIL_DISABLED") else ""
    print(f"ggtok {ggtok.__version__} works on {gil}CPython {sys.version.split()[0]}, {sysconfig.get_platform()}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--wheel", type=Path, metavar="FOLDER")
    parser.add_argument("--tests", action="store_true")
    options = parser.parse_args()
    if options.wheel:
        install(options.wheel)
    check()
    if options.tests:
        files = [str(ROOT / "tests" / f"test_{name}.py") for name in TESTS]
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *files]
        sys.exit(subprocess.run(command, cwd=ROOT).returncode)


if __name__ == "__main__":
    main()
