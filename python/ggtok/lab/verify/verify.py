"""Compares one tokenizer with a llama.cpp that is installed, on texts of the user and on texts that are made up."""

from __future__ import annotations

import os
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

from ...errors import GgtokError, LibraryError
from ...tokenizer.base import BaseTokenizer, Text
from ...tokenizer.seam import metadata_of, path_of
from ...tokenizer.text_or_path import Path as AnyPath
from ...tokenizer.text_or_path import paths, refuse_lone
from ..convert.edits import Edits
from ..convert.formats import to_gguf
from ..evaluate import parts_of
from .binding import STRING, Overrides
from .child import Child
from .comparing import Comparing
from .known import Known, bounded
from .library import Library, find_library
from .report import Difference, unpack
from .result import Comparison

REFERENCE = "ggtok.lab.verify.answerers:Reference"
OURS = "ggtok.lab.verify.answerers:Ours"
SECONDS = 10.0
"""How long to make up texts if the caller has none."""
ROUND = 48
"""Made-up texts between two looks at the clock."""
PART = 1 << 20
"""Bytes of a file that are compared as one text. A part ends after a line, if it contains a whole one."""
BATCH = 256
"""The most texts in one query."""
TIMEOUT = 60.0
"""Seconds for one answer."""
MOST_SHOWN = 10
"""Differences that are cut down and kept."""
SHRINK_SECONDS = 20.0
"""The most time to cut one difference down."""
CALLS = {"encode": (bytes, bool, bool), "decode": (list, bool, bool), "token": (int,), "specials": (list,)}
"""The calls that can be repeated apart from `open`, with the types of their arguments."""

Progress = Callable[[str, int, int], object]
"""Called with what is being compared, how much of it is done, and of how much: seconds, or bytes of a file."""


def verify(
    tokenizer: BaseTokenizer,
    texts: Iterable[Text] | None = None,
    *,
    files: Iterable[AnyPath] | None = None,
    seconds: float | None = None,
    library: str | os.PathLike[str] | None = None,
    seed: int | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """Compares a tokenizer with a llama.cpp that is installed on this machine: the ids of texts with and without
    `add_special` and `parse_special`, the bytes of ids with and without `remove_special` and `unparse_special`, and
    the attributes and pieces of every token. llama.cpp runs in another process, and opens the same file.

    Args:
        tokenizer: What to compare. One that was not opened from a GGUF file is written to a temporary one.
        texts: Texts to compare.
        files: Files to compare: as a whole, in parts of 1 MiB, and line by line.
        seconds: How long to compare made-up texts, of the kinds that tokenizers disagree on. Default: 10 without
            `texts` and `files`, otherwise not at all.
        library: The path of a shared library of llama.cpp, of any release since 2025. Default: that of the package
            xllamacpp, or of llama-cpp-python.
        seed: Repeats the made-up texts of another run. Default: new ones each time.
        progress: Called with what is being compared, how much of it is done, and of how much.

    Raises:
        DependencyError: No library is given, and no package is installed.
        LibraryError: The library does not load, is not llama.cpp, or has parameters of an unknown layout.
        GgtokError: `seconds` is negative or not a number.
        TypeError: A text is neither `str` nor bytes-like.
        OSError: A file cannot be read.
    """
    refuse_lone(texts)
    if seconds is None:
        seconds = SECONDS if texts is None and files is None else 0.0
    if not 0 <= seconds < float("inf"):
        raise GgtokError(f"seconds must be a number that is not negative, not {seconds}")
    if seed is None:
        seed = time.time_ns() % 1_000_000_000
    start, counts = time.monotonic(), Counter[str]()
    tell = progress or (lambda *_: None)
    with _opened(tokenizer, library) as (found, comparing):
        if comparing.num_tokens is not None:
            comparing.origin = "the vocabulary"
            comparing.compare_specials()
            comparing.compare_tokens()
            for kind, batch in _batches(_named(texts, [] if files is None else paths(files), tell)):
                comparing.origin = kind
                counts[kind] += len(batch)
                comparing.compare_ids(comparing.compare_texts(batch))
            end = (began := time.monotonic()) + seconds
            number = 0
            while (now := time.monotonic()) < end:
                tell("made-up texts", int(now - began), int(seconds))
                comparing.origin = f"seed {seed}, round {number}"
                counts["made up"] += comparing.compare_made_up(Random(f"{seed}/{number}"), ROUND)
                number += 1
        differences = [*comparing.smallest(MOST_SHOWN)]
        return _result(comparing, found, tokenizer, seed, time.monotonic() - start, counts, differences)


def repeat(tokenizer: BaseTokenizer, token: str, library: str | os.PathLike[str] | None = None) -> Comparison:
    """Repeats the call of one difference. Raises as `verify`, and `GgtokError` if the word is not a call."""
    kind, *arguments = query = tuple(unpack(token))
    types = CALLS.get(kind) if isinstance(kind, str) else None
    if kind != "open" and (types is None or [*map(type, arguments)] != [*types]):
        raise GgtokError(f"{token[:40]!r} is not the call of a difference")
    start = time.monotonic()
    with _opened(tokenizer, library) as (found, comparing):
        if kind != "open" and comparing.num_tokens is not None:
            comparing.forget()
            comparing.origin = "repeated"
            comparing.compare([query])
        differences = [*comparing.differences, *comparing.examples.values()]
        return _result(comparing, found, tokenizer, 0, time.monotonic() - start, {}, differences)


def _result(
    comparing: Comparing,
    library: Library,
    tokenizer: BaseTokenizer,
    seed: int,
    seconds: float,
    counts: dict[str, int],
    differences: list[Difference],
) -> Comparison:
    model, overrides = _file_of(tokenizer)
    outcome = (dict(comparing.calls), dict(comparing.aborts.most_common()), comparing.num_differences, differences)
    changes = comparing.known.changes if comparing.known else {}
    known = {changes[code]: count for code, count in comparing.by_change.items()}
    unknown = comparing.num_differences - comparing.num_known
    return Comparison(library, model, overrides, seed, seconds, dict(counts), *outcome, known, unknown)


@contextmanager
def _opened(tokenizer: BaseTokenizer, path: str | os.PathLike[str] | None) -> Iterator[tuple[Library, Comparing]]:
    """The library, and both sides with the vocabulary open."""
    library = find_library(path)
    reference = Child(REFERENCE, (library.path,), timeout=TIMEOUT)
    ours = Child(OURS, timeout=TIMEOUT)
    try:
        answer, *rest = reference.ask([("library",)])[0]
        if answer != "ok":
            raise LibraryError(reason(answer, rest, library.path), path=library.path)
        says: dict[str, str | None] = rest[0]
        library = bounded(replace(library, release=library.release or says["release"], ggml=says["ggml"]))
        with tempfile.TemporaryDirectory(prefix="ggtok-") as folder:
            model, overrides = _file_of(tokenizer)
            if model is None:
                model = os.path.join(folder, "vocabulary.gguf")
                to_gguf(tokenizer, model, Edits(), overwrite=False)
            comparing = Comparing(reference, ours, shrink_seconds=SHRINK_SECONDS)
            comparing.known = Known(library, tokenizer)
            comparing.origin = "the file"
            comparing.open(model, overrides)
            yield library, comparing
    finally:
        reference.close()
        ours.close()


def reason(answer: str, rest: list[Any], path: str) -> str:
    """Why a library cannot be used."""
    if answer == "died":
        how, message = rest
        return f"it may be damaged: loading it ended the process ({how}{f': {message}' if message else ''})"
    return str(rest[-1]).removeprefix(f"{path}: ")


def _file_of(tokenizer: BaseTokenizer) -> tuple[str | None, Overrides]:
    """The GGUF file that a tokenizer was opened from, if llama.cpp can open it with the same overrides."""
    path, overrides = path_of(tokenizer), dict(metadata_of(tokenizer).overrides)
    strings = [text for item in overrides.items() for text in item if isinstance(text, str)]
    if path is None or any(len(text.encode("utf-8", "replace")) >= STRING for text in strings):
        return None, {}
    try:
        with open(path, "rb") as file:
            is_gguf = file.read(4) == b"GGUF"
    except OSError:
        is_gguf = False
    return (path, overrides) if is_gguf else (None, {})


def _named(
    texts: Iterable[Text] | None, files: Iterable[os.PathLike[str]], tell: Progress
) -> Iterator[tuple[str, bytes]]:
    """Every text with its kind."""
    for text in texts or ():
        yield "texts", text.encode("utf-8", "surrogatepass") if isinstance(text, str) else bytes(memoryview(text))
    for path in files:
        size, done = Path(path).stat().st_size, 0
        for part in parts_of(path):
            tell(os.fspath(path), done, size)
            yield "files", part
            yield from (("lines", line.removesuffix(b"\r")) for line in part.split(b"\n") if line)
            done += len(part)


def _batches(texts: Iterable[tuple[str, bytes]]) -> Iterator[tuple[str, list[bytes]]]:
    """Consecutive texts of one kind, as many as one query has."""
    kind, batch, size = "", list[bytes](), 0
    for next_kind, text in texts:
        if batch and (next_kind != kind or len(batch) == BATCH or size + len(text) > PART):
            yield kind, batch
            batch, size = [], 0
        kind = next_kind
        batch.append(text)
        size += len(text)
    if batch:
        yield kind, batch
