"""Every recorded answer of llama.cpp: headers, encode and decode cases, and whole corpora.

The files are described in the shared material's README. One test per file; the run's last lines say how many cases of
each passed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import SHARED, shared_files
from ggtok import Tokenizer
from oracles import conformance

SHOWN = 5
FIM_NAMES = [f"fim_{part}" for part in ("pre", "suf", "mid", "pad", "rep", "sep")]
ID_NAMES = ["bos", "eos", "eot", "sep", "nl", "pad", "mask", *FIM_NAMES]
Report = Callable[[str, int], None]


class Summary:
    """Counts cases per file and writes them at the end of the run."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        terminalreporter.section("conformance")
        for line in self.lines:
            terminalreporter.write_line(line)


@pytest.fixture(scope="session")
def summary(request: pytest.FixtureRequest) -> Summary:
    summary = Summary()
    request.config.pluginmanager.register(summary)
    return summary


@pytest.fixture
def report(summary: Summary, record_property: Callable[[str, object], None]) -> Report:
    def passed(name: str, count: int) -> None:
        record_property("cases", count)
        summary.lines.append(f"conformance {name}: {count} cases passed")

    return passed


def open_vocabulary(header: dict[str, Any]) -> Tokenizer:
    return Tokenizer.from_gguf(SHARED / "vocabs" / header["file"], overrides=header["overrides"])


def pieces_sha256(tokenizer: Tokenizer, special: bool) -> str:
    digest = hashlib.sha256()
    for id in range(len(tokenizer.vocab)):
        piece = tokenizer.piece(id, special=special)
        digest.update(len(piece).to_bytes(4, "little") + piece)
    return digest.hexdigest()


def check_header(tokenizer: Tokenizer, header: dict[str, Any]) -> None:
    vocab = tokenizer.vocab
    assert vocab.kind == conformance.KINDS.get(header["type"], header["type"])
    assert len(vocab) == header["n_tokens"]
    assert {name: getattr(vocab, f"{name}_id") for name in ID_NAMES} == {name: header[name] for name in ID_NAMES}
    for flag in ("add_bos", "add_eos", "add_sep"):
        assert getattr(vocab, flag) == header[flag], flag
    assert sorted(vocab.eog_ids) == header["eog"]
    found = [int(vocab[id].attributes) for id in range(len(vocab))]
    wrong = [
        (id, bits, want)
        for id, (bits, want) in enumerate(zip(found, conformance.attributes(header), strict=True))
        if bits != want
    ]
    assert wrong[:SHOWN] == [], "id, attributes, expected"
    assert pieces_sha256(tokenizer, special=True) == header["pieces_sha256"]
    assert pieces_sha256(tokenizer, special=False) == header["pieces_no_special_sha256"]


def answer(tokenizer: Tokenizer, case: dict[str, Any]) -> tuple[object, object]:
    """What is expected and what ggtok says; a valid text is encoded as str too."""
    flags: dict[str, Any] = conformance.flags(case)
    if case["kind"] == "decode":
        return case["out"], tokenizer.decode_bytes(case["ids"], clean_spaces=True, **flags)
    ids = tokenizer.encode(case["text"], **flags)
    try:
        text = case["text"].decode()
    except UnicodeDecodeError:
        return case["ids"], ids
    as_text = tokenizer.encode(text, **flags)
    return case["ids"], ids if as_text == ids else {"bytes": ids, "str": as_text}


@pytest.mark.filterwarnings("ignore::ggtok.TokenizerWarning")
@pytest.mark.parametrize("path", shared_files("conformance/*.jsonl.gz") + shared_files("conformance/pre/*.jsonl.gz"))
def test_cases(path: Path, report: Report) -> None:
    records = conformance.records(path)
    header = next(records)
    tokenizer = open_vocabulary(header)
    check_header(tokenizer, header)
    count, wrong = 0, []
    for count, case in enumerate(records, 1):
        expected, found = answer(tokenizer, case)
        if found != expected:
            shown = {key: value for key, value in case.items() if value is not expected}
            wrong.append(f"{path.name}, case {count}: {shown}\n  expected {expected!r}\n  found    {found!r}")
    assert not wrong, f"{len(wrong)} of {count} cases differ; the first:\n" + "\n".join(wrong[:SHOWN])
    name = path.relative_to(SHARED / "conformance").as_posix()
    report(name.removesuffix(".jsonl.gz"), count)


def bulk_entries() -> dict[str, list[dict[str, Any]]]:
    path = SHARED / "conformance/bulk.json"
    by_vocab: dict[str, list[dict[str, Any]]] = {}
    for entry in json.loads(path.read_text()) if path.is_file() else []:
        by_vocab.setdefault(entry["vocab"], []).append(entry)
    return by_vocab


def documents(entry: dict[str, Any]) -> list[str]:
    text = (SHARED / "corpora" / f"{entry['corpus']}.txt").read_text(encoding="utf-8")[entry["skip_chars"] :]
    return [text[at : at + entry["doc_chars"]] for at in range(0, len(text), entry["doc_chars"])]


@pytest.mark.parametrize("path", shared_files("conformance/bulk.json"))
@pytest.mark.parametrize("vocab", bulk_entries() or ["absent"])
def test_bulk(path: Path, vocab: str, report: Report) -> None:
    tokenizer = Tokenizer.from_gguf(SHARED / "vocabs" / f"{vocab}.gguf")
    entries = bulk_entries()[vocab]
    for entry in entries:
        ids = tokenizer.encode_batch(documents(entry), add_special=False, parse_special=False).ids
        assert len(ids) == entry["tokens"], entry["corpus"]
        digest = hashlib.sha256(np.ascontiguousarray(ids, dtype="<i4").tobytes()).hexdigest()
        assert digest == entry["ids_sha256"], entry["corpus"]
    report(f"bulk {vocab}", len(entries))
