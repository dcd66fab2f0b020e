"""Counts instructions, cache misses and page faults per byte of text: figures that a busy machine does not change.

    python benches/counts.py [--peers ggtok gigatoken] [--vocabularies llama-bpe] [--corpora en]

It takes the options of `compare.py`, whose environment it uses. A worker encodes about 1 MB of documents, spread evenly
over a corpus, twice. valgrind's callgrind, with caches of a fixed size, writes its counts whenever the worker calls
`getloadavg`: before the first pass and after each one. Page faults are counted by the system, in another run. Prints
Markdown: for each figure, the first pass and the second one.

Needs valgrind, and takes about a minute for each line and corpus: peers load slowly in it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from compare import HERE, arguments, install
from peers import PEERS
from vocabularies import Vocabulary

DEFAULT_PEERS = ("ggtok", "gigatoken", "fastokens")
DEFAULT_VOCABULARIES = ("llama-bpe", "qwen2")
LIMIT_BYTES = 1_000_000
CALLGRIND = (
    *("valgrind", "--tool=callgrind", "--dump-before=getloadavg", "--cache-sim=yes"),
    *("--I1=32768,8,64", "--D1=49152,12,64", "--LL=33554432,16,64"),
)
"""Caches like those of a server: 48 KiB of the first level and 32 MiB of the last."""
FIGURES = {
    "instructions": ("a byte", ("Ir",), 1),
    "D1 misses": ("a byte", ("D1mr", "D1mw"), 1),
    "LL misses": ("a kilobyte", ("DLmr", "DLmw"), 1000),
    "page faults": ("in all", ("faults",), 0),
}
"""What is shown: per how much text, the sum of which events, and for how many bytes."""


def count(command: list[str]) -> list[dict[str, float]]:
    """The events of each pass."""
    answer = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[-1])
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "counts"
        subprocess.run([*CALLGRIND, f"--callgrind-out-file={out}", *command], capture_output=True, check=True)
        passes = [_totals(out.with_suffix(f".{part}")) for part in (2, 3)]
    both = zip(passes, answer["faults"], strict=True)
    return [events | {"faults": faults, "bytes": answer["bytes"]} for events, faults in both]


def _totals(part: Path) -> dict[str, float]:
    lines = (line.partition(": ") for line in part.read_text().splitlines())
    fields = {name: rest.split() for name, _, rest in lines if name in ("events", "totals")}
    # Zeros at the end are left out.
    totals = [float(total) for total in fields["totals"]]
    return dict.fromkeys(fields["events"], 0.0) | dict(zip(fields["events"], totals, strict=False))


def cell(passes: list[dict[str, float]], figure: str) -> str:
    """A figure of the first and the second pass."""
    _, events, size = FIGURES[figure]
    sums = [(sum(counted[event] for event in events), counted["bytes"]) for counted in passes]
    return " / ".join(f"{total * size / text:.3g}" if size else f"{total:,}" for total, text in sums)


def main() -> None:
    """Counts everything, and prints a table for each vocabulary and figure."""
    options = arguments(peers=DEFAULT_PEERS, vocabularies=DEFAULT_VOCABULARIES, limit_bytes=LIMIT_BYTES)
    pythons, cache = install(options), options.env.resolve() / "vocabularies"
    for name in options.vocabularies:
        Vocabulary(options.shared / "vocabs" / f"{name}.gguf", cache).convert()
        counted: dict[tuple[str, str], list[dict[str, float]]] = {}
        for corpus in options.corpora:
            for peer in options.peers:
                task: dict[str, Any] = {"measurement": "passes", "peer": peer, "vocabulary": name, "corpus": corpus}
                task |= {"shared": str(options.shared.resolve()), "cache": str(cache), "core": options.core}
                request = json.dumps(task | {"limit_bytes": options.limit_bytes})
                counted[peer, corpus] = count([str(pythons[peer]), str(HERE / "worker.py"), request])
                figures = ", ".join(f"{figure} {cell(counted[peer, corpus], figure)}" for figure in FIGURES)
                print(f"{name}, {corpus}, {peer}: {figures}", file=sys.stderr, flush=True)
        for figure, (per, *_) in FIGURES.items():
            print(f"\n| {name}: {figure} {per} | {' | '.join(options.corpora)} |")
            print(f"|---|{'---:|' * len(options.corpora)}")
            for peer in (peer for peer in PEERS if peer in options.peers):
                print(f"| {peer} | {' | '.join(cell(counted[peer, corpus], figure) for corpus in options.corpora)} |")


if __name__ == "__main__":
    main()
