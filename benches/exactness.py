"""Counts whose ids differ from llama.cpp's, for ggtok and its peers, and writes the tables of the README.

    python benches/exactness.py             # asks all peers: a quarter of an hour
    python benches/exactness.py --report    # rewrites the tables from exactness.json

1. ggtok answers every recorded case of llama.cpp: each vocabulary, and each pre-tokenizer name.
2. Every peer encodes the corpora in documents of 4 KiB, and the recorded texts, with the same vocabularies.

Takes the options of compare.py. Needs the folder that GGTOK_SHARED names, and ggtok installed.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections import Counter
from importlib import import_module
from pathlib import Path
from typing import Any

import compare
from ggtok import Tokenizer, TokenizerWarning, _ggtok
from peers import OURS, PEERS, REFERENCE
from report import fill, label, table, with_kind

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))
conformance: Any = import_module("oracles.conformance")
RESULTS = ROOT / "benches/results/exactness.json"
PAGE = "README.md"
KINDS = {"bpe": "BPE", "spm": "SPM", "wpm": "WordPiece", "ugm": "Unigram", "rwkv": "RWKV", "plamo2": "PLaMo-2"}

Cases = dict[str, dict[str, int]]


def ask(tokenizer: Tokenizer, case: dict[str, Any]) -> bool:
    """Whether ggtok answers a recorded case as llama.cpp did."""
    flags = conformance.flags(case)
    if case["kind"] == "decode":
        return bool(tokenizer.decode_bytes(case["ids"], clean_spaces=True, **flags) == case["out"])
    return bool(tokenizer.encode(case["text"], **flags) == case["ids"])


def recorded_cases(shared: Path) -> Cases:
    """The number of files, cases and differences for each kind, and for the pre-tokenizer names."""
    warnings.simplefilter("ignore", TokenizerWarning)
    counts: dict[str, Counter[str]] = {}
    for path in sorted((shared / "conformance").glob("**/*.jsonl.gz")):
        lines = conformance.records(path)
        header = next(lines)
        tokenizer = Tokenizer.from_gguf(shared / "vocabs" / header["file"], overrides=header["overrides"])
        count = counts.setdefault("pre" if path.parent.name == "pre" else header["type"], Counter())
        count["files"] += 1
        for case in lines:
            count["cases"] += 1
            count["differing"] += not ask(tokenizer, case)
    return {kind: dict(count) for kind, count in counts.items()}


def measure() -> dict[str, Any]:
    """Asks ggtok and all peers."""
    options = compare.arguments()
    options.measurements, options.rounds, options.vocabularies = ["check", "recorded"], 1, list(compare.COMPARED)
    cases = recorded_cases(options.shared)
    (results,) = compare.run(options, compare.install(options), [])
    return {"cases": cases, "results": results}


def kinds(cases: Cases) -> str:
    """ggtok on every recorded case."""
    names = f"{len(_ggtok.pretokenizers())} pre-tokenizer names"
    rows = []
    for kind, name in KINDS.items():
        num_files = cases[kind]["files"]
        rows.append((name, f"{num_files} vocabularies" if num_files > 1 else "1 vocabulary", cases[kind]))
    rows.insert(1, (f"BPE, {names}", f"{cases['pre']['files']} of them, with GPT-2's vocabulary", cases["pre"]))
    rows.append(("all", "", {key: sum(count[key] for count in cases.values()) for key in ("cases", "differing")}))
    cells = [[name, files, f"{count['cases']:,}", f"**{count['differing']:,}**"] for name, files, count in rows]
    return table(["kind", "recorded with", "answers compared", "that differ"], cells)


def peers(results: list[dict[str, Any]]) -> str:
    """Documents and recorded texts whose ids differ, for every peer and vocabulary."""
    found = {(row["measurement"], row["peer"], row["vocabulary"]): row["answer"] for row in results}
    vocabularies = list(dict.fromkeys(row["vocabulary"] for row in results))

    def cell(name: str, vocabulary: str) -> str:
        documents, texts = (found.get((which, name, vocabulary), {}) for which in ("check", "recorded"))
        if "unsupported" in documents:
            return "-"
        if "differing" not in documents or "differing" not in texts:
            return "fails"
        return f"{documents['differing']:,} · {texts['differing']:,}"

    def sizes(vocabulary: str) -> str:
        documents, texts = (found[which, OURS, vocabulary] for which in ("check", "recorded"))
        return f"{documents['documents']:,} · {texts['texts']:,}"

    def named(name: str) -> str:
        versions = (row["answer"].get("version") for row in results if row["peer"] == name)
        return "**ggtok**" if name == OURS else f"{label(name)} {next(filter(None, versions))}"

    names = [name for name in PEERS if name != REFERENCE]
    rows = [[named(name), *(cell(name, vocabulary) for vocabulary in vocabularies)] for name in names]
    head = ["differing documents · recorded texts", *map(with_kind, vocabularies)]
    return table(head, [["*compared*", *map(sizes, vocabularies)], *rows])


def main() -> None:
    """Measures, unless told not to, and writes."""
    if "--report" not in sys.argv[1:]:
        RESULTS.write_text(json.dumps(measure(), separators=(",", ":")) + "\n")
    data = json.loads(RESULTS.read_text())
    fill(ROOT / PAGE, kinds(data["cases"]), "exactness")
    fill(ROOT / PAGE, peers(data["results"]), "peers")


if __name__ == "__main__":
    main()
