"""Counts whose ids differ from llama.cpp's, for ggtok and its peers, and writes the proof: numbers, picture and tables.

    python benches/exactness.py             # asks all peers: a quarter of an hour
    python benches/exactness.py --report    # rewrites them from exactness.json and results.json

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

import chart
import compare
from ggtok import Tokenizer, TokenizerWarning
from peers import OURS, PEERS, REFERENCE
from report import CHARTED, FILES, RAW, Run, fill, label, table, with_kind
from vocabularies import kind_of

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))
conformance: Any = import_module("oracles.conformance")
SITE = "https://ggtok.readthedocs.io/en/latest"
RESULTS = ROOT / "benches/results/exactness.json"
SPEEDS = RESULTS.with_name("results.json")
PICTURE = RESULTS.with_name("exactness.svg")
STARTS = ("README.md", "docs/index.md")
"""The pages that begin with the proof."""
TABLES = "docs/deviations.md"
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
    rows = []
    for kind, name in KINDS.items():
        num_files = cases[kind]["files"]
        rows.append((name, f"{num_files} vocabularies" if num_files > 1 else "1 vocabulary", cases[kind]))
    rows.insert(1, ("BPE, by pre-tokenizer", f"{cases['pre']['files']} names, with GPT-2's vocabulary", cases["pre"]))
    rows.append(("all", "", {key: sum(count[key] for count in cases.values()) for key in ("cases", "differing")}))
    cells = [[name, files, f"{count['cases']:,}", f"**{count['differing']:,}**"] for name, files, count in rows]
    return table(["kind", "recorded with", "answers compared", "that differ"], cells)


class Comparison:
    """The documents and recorded texts whose ids differ, for every peer and vocabulary."""

    def __init__(self, results: list[dict[str, Any]]) -> None:
        self._found = {(row["measurement"], row["peer"], row["vocabulary"]): row["answer"] for row in results}
        self._versions = {row["peer"]: row["answer"]["version"] for row in results if row["answer"].get("version")}
        self.vocabularies = list(dict.fromkeys(row["vocabulary"] for row in results))
        self.names = [name for name in PEERS if name != REFERENCE]

    def differing(self, name: str, vocabulary: str) -> tuple[int, int] | str:
        """How many documents and recorded texts differ, or why that is unknown."""
        documents, texts = (self._found.get((which, name, vocabulary), {}) for which in ("check", "recorded"))
        if "unsupported" in documents:
            return "-"
        if "differing" not in documents or "differing" not in texts:
            return "fails"
        return documents["differing"], texts["differing"]

    def compared(self, vocabulary: str) -> tuple[int, int]:
        """How many documents and recorded texts were compared."""
        documents, texts = (self._found[which, OURS, vocabulary] for which in ("check", "recorded"))
        return documents["documents"], texts["texts"]

    def named(self, name: str) -> str:
        """The peer with its version."""
        return "**ggtok**" if name == OURS else f"{label(name)} {self._versions[name]}"


def peers(comparison: Comparison) -> str:
    """The table."""

    def cell(found: tuple[int, int] | str) -> str:
        return found if isinstance(found, str) else f"{found[0]:,} · {found[1]:,}"

    rows = [["*compared*", *(cell(comparison.compared(vocabulary)) for vocabulary in comparison.vocabularies)]]
    for name in comparison.names:
        cells = (cell(comparison.differing(name, vocabulary)) for vocabulary in comparison.vocabularies)
        rows.append([comparison.named(name), *cells])
    return table(["differing documents · recorded texts", *map(with_kind, comparison.vocabularies)], rows)


def sums(comparison: Comparison) -> dict[str, list[int | str]]:
    """For every peer and vocabulary, how many texts of either sort differ."""
    return {
        label(name): [
            found if isinstance(found := comparison.differing(name, vocabulary), str) else sum(found)
            for vocabulary in comparison.vocabularies
        ]
        for name in comparison.names
    }


def picture(comparison: Comparison) -> str:
    """The matrix of dots."""
    head = [(kind_of(name), name, f"{sum(comparison.compared(name)):,} texts") for name in comparison.vocabularies]
    return chart.matrix(head, sums(comparison), OURS)


def matrix(comparison: Comparison) -> str:
    """The picture for a page, with what it shows in words."""
    facts = []
    for name, cells in sums(comparison).items():
        found = list(zip(comparison.vocabularies, cells, strict=True))
        num_same, num_unread = cells.count(0), cells.count("-")
        parts = [f"the same for {num_same}"] if num_same else []
        parts += [f"{cell:,} texts differ for {v}" for v, cell in found if isinstance(cell, int) and cell]
        parts += [f"cannot read {num_unread}"] if num_unread else []
        facts.append(f"{name}: {', '.join(parts)}")
    about = f"{chart.MATRIX_TITLE}, with {len(comparison.vocabularies)} vocabularies"
    return f"![{about}. {'; '.join(facts)}.]({RAW}/{PICTURE.name})\n"


def proof(cases: Cases, run: Run) -> str:
    """The proof in numbers, which a first page begins with."""
    compared, differing = (sum(count[key] for count in cases.values()) for key in ("cases", "differing"))
    loads = {name: run.load(CHARTED[0], name) for name in run.peers_of(CHARTED[0], "startup")}
    others = [load for name, load in loads.items() if name != OURS and isinstance(load, float)]
    return (
        f"| {differing:,} of {compared:,} differ | ready in {loads[OURS] / 1e3:.2f} s | every vocabulary |\n"
        "|:---:|:---:|:---:|\n"
        f"| [recorded answers of llama.cpp]({SITE}/deviations.html#how-exact-it-is), compared "
        f"| from Llama 3's file to the first ids; the others take {min(others) / 1e3:.2f} to "
        f"{max(others) / 1e3:.1f} s ([measured]({FILES}/results.md)) "
        f"| and pre-tokenizer that llama.cpp loads ([list]({SITE}/supported.html)) |\n"
    )


def main() -> None:
    """Measures, unless that is switched off, and writes."""
    if "--report" not in sys.argv[1:]:
        RESULTS.write_text(json.dumps(measure(), separators=(",", ":")) + "\n")
    data = json.loads(RESULTS.read_text())
    comparison = Comparison(data["results"])
    PICTURE.write_text(picture(comparison), encoding="utf-8")
    for page in STARTS:
        fill(ROOT / page, proof(data["cases"], Run(json.loads(SPEEDS.read_text()))), "proof")
    for page in (STARTS[0], TABLES):
        fill(ROOT / page, matrix(comparison), "matrix")
    fill(ROOT / TABLES, kinds(data["cases"]), "exactness")
    fill(ROOT / TABLES, peers(comparison), "peers")


if __name__ == "__main__":
    main()
