"""What the recipes' processes do with tokenizers, written to the file `GGTOK_PROBE`: Python imports this at its start.

A line is the number of the process and `open`, or `batch` and the number of threads. With `GGTOK_FAIL_AFTER`, encoding
fails after so many batches of all processes.
"""

import os
from typing import Any

import ggtok
from ggtok import _ggtok


def log(*words: object) -> int:
    """Adds a line, and returns how many lines with batches there are."""
    with open(os.environ["GGTOK_PROBE"], "a+", encoding="utf-8") as file:
        file.write(" ".join(map(str, (os.getpid(), *words))) + "\n")
        file.flush()
        file.seek(0)
        return file.read().count("batch")


def watch() -> None:
    """Wraps what opens a tokenizer, and what encodes a batch or, before `ggtok.corpus` is imported, a table."""
    from_gguf, of_batch, of_table = ggtok.Tokenizer.from_gguf, ggtok.Tokenizer.encode_batch, _ggtok.encode_batch

    def opening(source: Any, **options: Any) -> ggtok.Tokenizer:
        log("open")
        return from_gguf(source, **options)

    def heard(threads: int | None) -> None:
        if log("batch", threads) > int(os.environ.get("GGTOK_FAIL_AFTER", "1000000")):
            raise RuntimeError("the power is out")

    def batch(self: ggtok.Tokenizer, texts: Any, *, threads: int | None = None, **options: Any) -> Any:
        heard(threads)
        return of_batch(self, texts, threads=threads, **options)

    def table(tokenizer: Any, texts: Any, threads: int, *options: Any) -> Any:
        heard(threads)
        return of_table(tokenizer, texts, threads, *options)

    type.__setattr__(ggtok.Tokenizer, "from_gguf", staticmethod(opening))
    type.__setattr__(ggtok.Tokenizer, "encode_batch", batch)
    _ggtok.encode_batch = table  # type: ignore[assignment]


if "GGTOK_PROBE" in os.environ:
    watch()
