"""What all tests share: the path to the shared material, and how hard hypothesis tries.

`GGTOK_SHARED` names the folder with vocabularies, recorded answers and corpora (default: `../shared` beside the
project). Tests that need it are skipped if it is absent, and the last lines of the run say how many.
`GGTOK_HYPOTHESIS=thorough` makes property tests try many, and other, examples (default: `fast`, always the same ones).
"""

from __future__ import annotations

import gc
import importlib
import os
import shlex
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import ggtok
import gguf
import numpy as np
import pytest
from ggtok._ggtok import Array
from gguf import GGUFValueType as Type
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from oracles import strategies

SHARED = Path(os.environ.get("GGTOK_SHARED") or Path(__file__).parents[2] / "shared").resolve()
ABSENT = f"no shared material at {SHARED} (set GGTOK_SHARED)"

BUILTIN = ("bpe", "spm", "unigram", "wordpiece")
FORMATS = dict(zip(Type, "BbHhIif?saQqd", strict=True))
"""The codes of GGUF's types in the module `struct`. Strings and arrays also have a length."""

TOKENIZERS = {name: ggtok.Tokenizer.builtin(name) for name in BUILTIN}
VOCABULARIES = Path(ggtok.__file__).parent / "vocabularies"

# A shell that runs the tests in the background lets them ignore Ctrl-C, which some of them send.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Hypothesis takes most of the time of a property test. The weekly workflow is thorough.
settings.register_profile("fast", max_examples=30, deadline=None, derandomize=True, database=None)
settings.register_profile(
    "thorough", max_examples=5000, deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
PROFILE = os.environ.get("GGTOK_HYPOTHESIS") or "fast"
settings.load_profile(PROFILE)


def pytest_collection_finish() -> None:
    """Test functions and parameters live to the end: the garbage collector need not look through them each time."""
    gc.freeze()
    gc.set_threshold(20_000, 50, 50)


def shared_files(pattern: str) -> list[Any]:
    """Parameters for one test per shared file, or a single skipped one."""
    paths = sorted(SHARED.glob(pattern))
    if not paths:
        return [pytest.param(SHARED / pattern, id="absent", marks=pytest.mark.skip(reason=ABSENT))]
    return [pytest.param(path, id=path.name.split(".")[0]) for path in paths]


def every_kind(test: Callable[..., None]) -> Any:
    """Tests with random vocabularies of each kind: `strategies.drawn(kind, data)` is one, with its tokenizer."""
    return pytest.mark.parametrize("kind", strategies.KINDS)(given(data=st.data())(test))


def reference_reader(path: Path) -> gguf.GGUFReader:
    """gguf's own reader, over plain memory: it slices the file for each element, which is three times as fast there."""
    with mock.patch("numpy.memmap", lambda path, mode: np.fromfile(path, np.uint8)):
        return gguf.GGUFReader(path)


def command_in(folder: Path) -> Path:
    """The command `ggtok` of this interpreter, in a folder that a shell can search."""
    command = folder / "ggtok"
    command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m ggtok "$@"\n')
    command.chmod(0o755)
    return command


def elements(array: Array) -> list[Any]:
    """The elements of an array of strings or numbers as Python objects; of an array of arrays their number."""
    strings = array.strings()
    if strings is not None:
        return [text.decode("utf-8", "surrogateescape") for text in strings]
    if array.kind == Type.ARRAY:
        return [len(array)]
    numbers: list[Any] = np.frombuffer(array.tobytes(), f"<{FORMATS[Type(array.kind)]}").tolist()
    return numbers


@pytest.fixture(autouse=True, scope="session")
def _no_waiting_for_the_disk() -> Iterator[None]:
    """No test needs what it wrote after a loss of power, and waiting takes longer than most tests that write."""
    with mock.patch("os.fsync", os.fstat):
        yield


@pytest.fixture(autouse=True, scope="module")
def _cache_limit() -> Iterator[None]:
    """Each module leaves the limit of the caches as it was."""
    limit = ggtok.cache_limit()
    yield
    if ggtok.cache_limit() != limit:
        ggtok.set_cache_limit(limit)


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with the shared material."""
    if not SHARED.is_dir():
        pytest.skip(ABSENT)
    return SHARED


@pytest.fixture(scope="session")
def llama_cpp(shared: Path) -> Any:
    """The binding to llama.cpp itself, whose library comes in the wheel `xllamacpp`."""
    pytest.importorskip("xllamacpp", reason="llama.cpp itself comes in the wheel xllamacpp")
    with mock.patch("sys.path", [str(shared / "tools"), *sys.path]):
        return importlib.import_module("llama_reference")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    skipped = terminalreporter.stats.get("skipped", [])
    count = sum(ABSENT in str(report.longrepr) for report in skipped)
    if count:
        terminalreporter.write_line(f"{count} tests were skipped: {ABSENT}", yellow=True, bold=True)
