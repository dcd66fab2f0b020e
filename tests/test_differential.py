"""The differential fuzzer: its parts on known faults, then a short run of ggtok beside llama.cpp.

GGTOK_FUZZ_SECONDS sets how long the run takes (default 2; the weekly workflow takes hours), GGTOK_FUZZ_SEED where it
begins. A third as long, it runs beside an older release, which differs only where a change of llama.cpp is known, if
GGTOK_LLAMA_CPP_RELEASES names a folder with one (`*.so`, at any depth). Rounds that once found something are repeated.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from differential.report import read_replay_token, replay_token
from differential.vocabularies import Target
from ggtok.lab.verify.shrink import ddmin, shrink_text

ROOT = Path(__file__).resolve().parents[1]


def fuzz(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.differential", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("items", "needed", "smallest"),
    [
        (list(range(100)), {37}, [37]),
        (list(range(100)), {3, 50, 99}, [3, 50, 99]),
        (list(range(7)), set(range(7)), list(range(7))),
        ([1], set(), []),
        ([], set(), []),
    ],
)
def test_ddmin_finds_the_smallest_list(items: list[int], needed: set[int], smallest: list[int]) -> None:
    assert ddmin(items, lambda some: needed <= set(some)) == smallest


@pytest.mark.parametrize(
    ("text", "fails", "smallest"),
    [
        ("a long text with é in it".encode(), lambda t: "é".encode() in t, "é".encode()),
        ("a long text with é in it".encode(), lambda t: b"\xa9" in t, b"\xa9"),
        (b"before \xff\xfe after", lambda t: b"\xfe" in t, b"\xfe"),
        (b"xyzzy and more", lambda t: len(t) >= 3, b"aaa"),
        (b"any", lambda t: True, b""),
    ],
)
def test_shrink_text_by_characters_then_bytes(text: bytes, fails: Callable[[bytes], bool], smallest: bytes) -> None:
    assert shrink_text(text, fails) == smallest


def test_replay_token_holds_everything() -> None:
    target = Target("pre:qwen2", {"tokenizer.ggml.add_bos_token": True})
    for query in [("encode", b"\xff a", True, False), ("decode", [1, 2], False, True), ("specials",)]:
        assert read_replay_token(replay_token(target, query)) == (target, query)


def test_a_pre_tokenizer_is_compared_without_the_shared_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GGTOK_SHARED", str(tmp_path))
    assert Target("pre:qwen2").path(tmp_path).exists()


@cache
def known_faults(ours: str) -> subprocess.CompletedProcess[str]:
    """Three rounds, however long they take: a slow machine finds the same."""
    return fuzz("--rounds=3", "--seconds=3600", "--shrink-seconds=600", "--seed=5", "--vocab=spm-small", ours)


@pytest.mark.usefixtures("llama_cpp")
@pytest.mark.parametrize(
    ("mutant", "finding"), [("WrongIds", "encode(b'1a', "), ("WrongIds", "decode(["), ("Crashing", r"encode(b'\x1c', ")]
)
def test_a_known_fault_is_found_shrunk_and_replayed(mutant: str, finding: str) -> None:
    ours = f"--ours=tests.differential.mutant:{mutant}"
    run = known_faults(ours)
    assert run.returncode == 1, run.stderr
    assert finding in run.stdout
    token = re.findall(r"call       " + re.escape(finding) + r".*?--replay (\S+)", run.stdout, re.DOTALL)[0]
    assert fuzz("--replay", token, ours).returncode == 1
    assert fuzz("--replay", token, "--ours=ggtok.lab.verify.answerers:Reference").returncode == 0


@pytest.mark.usefixtures("llama_cpp")
def test_ggtok_answers_as_llama_cpp_does(record_property: Callable[[str, object], None]) -> None:
    pytest.importorskip("ggtok")
    seconds = os.environ.get("GGTOK_FUZZ_SECONDS", "2")
    run = fuzz(f"--seconds={seconds}", f"--seed={os.environ.get('GGTOK_FUZZ_SEED', '1')}")
    assert run.returncode == 0, run.stdout + run.stderr
    record_property("summary", run.stdout.splitlines()[-1])


def test_an_older_release_differs_only_by_known_changes() -> None:
    folder = os.environ.get("GGTOK_LLAMA_CPP_RELEASES")
    libraries = sorted(Path(folder).rglob("*.so")) if folder else []
    if not libraries:
        pytest.skip("GGTOK_LLAMA_CPP_RELEASES names no folder with libraries of older releases")
    pytest.importorskip("ggtok")
    seconds = float(os.environ.get("GGTOK_FUZZ_SECONDS", "2")) / 3
    run = fuzz(f"--seconds={seconds}", "--seed=10566", f"--libllama={libraries[0]}")
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.usefixtures("llama_cpp")
@pytest.mark.parametrize(
    ("vocab", "override", "death"),
    [
        # Ids of -1, which a vocabulary without an unknown token gives to words.
        ("small:wordpiece:310926", "tokenizer.ggml.unknown_token_id=93", "an id that does not exist"),
    ],
)
def test_what_a_run_once_found_is_mended(vocab: str, override: str, death: str) -> None:
    """llama.cpp still dies in this way, which is known."""
    run = fuzz(f"--vocab={vocab}", f"--override={override}", "--seed=20261123", "--rounds=1", "--seconds=3600")
    assert run.returncode == 0, run.stdout + run.stderr
    assert f"({death})" in run.stdout
