"""Measures ggtok and its peers in one command, in a separate environment, and writes tables and charts.

    python benches/compare.py --big FOLDER [--rounds 5] [--peers ggtok gigatoken ...] [--shown] [--quick] [--add]

1. Makes a virtual environment and installs the peers and this checkout into it.
2. Writes each vocabulary in the peers' formats, from the same GGUF file.
3. Checks the ids of every document against ours, peer by peer.
4. Measures in a new process each time, on one pinned core; peers take turns within each round.
5. Writes results.json, results.md and the charts.

It refuses to start on a machine that is not idle, and what was disturbed is measured again, or left out of the results.

Needs the folder that GGTOK_SHARED names (default: `../shared` beside the project), and ggtok installed, which writes
the formats. Only `worker.py` imports the peers.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import idle
import report
from peers import OURS, PEERS, REFERENCE
from texts import BIG, CORPORA, RUNS, STARTS
from vocabularies import Vocabulary

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent

COMPARED = ("llama-bpe", "qwen2", "llama-spm", "bert-bge", "nomic-bert-moe")
"""Vocabularies measured against every peer."""
LLAMA_CPP_ONLY = ("gemma-4", "deepseek-llm", "plamo2-small", "rwkv-world")
"""Vocabularies measured against llama.cpp alone."""
RUNS_VOCABULARY = "llama-bpe"
SCALED = {"llama-bpe", "qwen2"}
"""Vocabularies measured on big texts."""
FAST = ("ggtok", "gigatoken", "fastokens", "tokenizers", "splintr", "tiktoken")
"""Peers that are measured on big texts: they encode 100 MB within a minute."""
SHOWN = ("check", "throughput", "startup", "start", "growth")
"""What the README and the page on performance show."""
UNTIMED = ("check", "recorded", "growth")
"""Measurements that other processes do not change."""
ATTEMPTS = 3
"""How often a disturbed measurement is tried."""
REPEATS = {
    "check": 1,
    "recorded": 1,
    "scale": 3,
    "start": 5,
    "growth": 1,
    "imports": 1,
    "single_run": 1,
    "decode": 2,
    "count": 3,
    "batch": 3,
    "startup": 3,
}
"""How many rounds take a measurement, if not all: some repeat internally, some gain little from more rounds.

llama.cpp is measured once: it is so slow that its figures hardly vary.
"""
PATIENCE = {"growth": 2, "scale": 3}
"""A factor for the time limit of slow measurements."""
QUICK = {"rounds": 1, "limit_bytes": 400_000, "growth_bytes": 16_000_000}


def arguments(**defaults: Any) -> argparse.Namespace:
    """The command line, with other defaults for some options."""
    parser = argparse.ArgumentParser(description="Measure ggtok and its peers.")
    parser.add_argument("--env", type=Path, default=HERE / ".venv", help="environment and converted vocabularies")
    parser.add_argument("--ggtok", default=str(ROOT), help="what pip installs as ggtok (default: this checkout)")
    parser.add_argument("--ggtok-python", type=Path, help="interpreter that already has ggtok; nothing is installed")
    parser.add_argument("--shared", type=Path, default=Path(os.environ.get("GGTOK_SHARED", ROOT.parent / "shared")))
    parser.add_argument("--out", type=Path, default=HERE / "results")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--core", type=int, default=(os.cpu_count() or 1) - 1, help="core to pin")
    parser.add_argument("--timeout", type=float, default=60, help="seconds for one process")
    parser.add_argument("--peers", nargs="+", choices=PEERS, default=list(PEERS))
    parser.add_argument("--vocabularies", nargs="+", default=[*COMPARED, *LLAMA_CPP_ONLY])
    parser.add_argument("--corpora", nargs="+", choices=CORPORA, default=list(CORPORA))
    parser.add_argument("--measurements", nargs="+", choices=MEASUREMENTS, default=list(MEASUREMENTS))
    parser.add_argument("--limit-bytes", type=int, default=1 << 30, help="use no more of each corpus")
    parser.add_argument(
        "--big", type=Path, help="folder of big-en.txt and so on; without it `scale` and `start` are left out"
    )
    parser.add_argument("--big-bytes", type=int, default=100_000_000, help="use no more of each big text")
    parser.add_argument("--growth-bytes", type=int, default=128_000_000)
    parser.add_argument(
        "--add",
        action="store_true",
        help="add rounds to existing results; those of the same measurements on another machine are replaced",
    )
    parser.add_argument(
        "--shown", action="store_true", help="five rounds of what the README and docs/performance.md show"
    )
    parser.add_argument(
        "--quick", action="store_true", help="one round on a tenth of each corpus, to try it out, on a busy machine too"
    )
    parser.set_defaults(**defaults)
    options = parser.parse_args()
    if options.shown:
        parser.set_defaults(measurements=SHOWN)
    if options.quick:
        parser.set_defaults(**QUICK, out=options.env / "quick")
    options = parser.parse_args()
    if options.quick and options.out.resolve() == HERE / "results":
        parser.error("--quick is only for trying: its results go elsewhere")
    if not (options.shared / "vocabs").is_dir():
        parser.error(f"no vocabularies in {options.shared}: set GGTOK_SHARED or --shared")
    return options


def install(options: argparse.Namespace) -> dict[str, Path]:
    """Installs everything; returns the interpreter of each peer."""
    python = options.env / "bin" / "python"
    if not python.exists():
        venv.create(options.env, with_pip=True)
    wanted = [PEERS[name].requirement for name in options.peers if name != OURS]
    if OURS in options.peers and not options.ggtok_python:
        wanted.append(options.ggtok)
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    if wanted:
        subprocess.run([*pip, "numpy", *wanted], check=True)
    return {name: options.ggtok_python if name == OURS and options.ggtok_python else python for name in PEERS}


# --- what is measured, in rounds --------------------------------------------------------------------------------------

Task = dict[str, Any]
Answer = dict[str, Any]


MEASUREMENTS = (
    *("check", "recorded", "throughput", "scale", "start", "short", "startup", "imports", "single_run", "decode"),
    *("count", "batch", "growth"),
)


def plan(measurement: str, options: argparse.Namespace) -> Iterator[Task]:
    """What one round measures. Peers take turns, so that a slow moment of the machine affects all of them."""
    if measurement == "imports":
        yield from ({"peer": name, "vocabulary": ""} for name in options.peers)
        return
    details: dict[str, list[Task]] = {
        "throughput": [{"corpus": corpus} for corpus in options.corpora],
        "scale": [{"corpus": corpus} for corpus in BIG if options.big],
        "start": [{"bytes": size} for size in STARTS if options.big],
        "single_run": [{"run": name} for name in RUNS],
        "growth": [{"growth_bytes": options.growth_bytes}],
        **{name: [{"corpus": options.corpora[0]}] for name in ("decode", "count", "batch")},
    }
    for detail in details.get(measurement, [{}]):
        for vocabulary in options.vocabularies:
            for name in options.peers:
                if _is_measured(measurement, vocabulary, name):
                    yield {"peer": name, "vocabulary": vocabulary} | detail


def _is_measured(measurement: str, vocabulary: str, name: str) -> bool:
    if measurement in ("count", "batch"):
        return name == OURS
    if measurement == "growth":
        return vocabulary == RUNS_VOCABULARY and name != REFERENCE
    if measurement == "scale":
        return vocabulary in SCALED and name in FAST
    if measurement == "start":
        return vocabulary == RUNS_VOCABULARY
    if measurement == "single_run" and vocabulary != RUNS_VOCABULARY:
        return name == OURS
    return vocabulary in COMPARED or name in (OURS, REFERENCE)


# --- running ----------------------------------------------------------------------------------------------------------


def measure_idle(options: argparse.Namespace, python: Path, task: Task) -> Answer | None:
    """`measure` on an idle machine; `None` if something disturbed every attempt."""
    for _ in range(ATTEMPTS):
        before = idle.now()
        answer = measure(options, python, task)
        disturbed = idle.disturbed(before, idle.now())
        if not disturbed or options.quick or task["measurement"] in UNTIMED:
            return answer
        print(f"disturbed: {task['measurement']} of {task['peer']}, {task['vocabulary']}: {disturbed}", file=sys.stderr)
    print("left out of the results", file=sys.stderr)
    return None


def measure(options: argparse.Namespace, python: Path, task: Task) -> Answer:
    """Returns the worker's answer, or `{"failed": reason}`. `start` is timed here, from outside."""
    command = [str(python), str(HERE / "worker.py"), json.dumps(task)]
    try:
        begin = time.perf_counter()
        timeout = options.timeout * PATIENCE.get(task["measurement"], 1)
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
    except subprocess.TimeoutExpired:
        return {"failed": f"over {timeout:.0f} s"}
    if done.returncode == 0:
        took = time.perf_counter() - begin
        answer: Answer = json.loads(done.stdout.splitlines()[-1])
        return answer | ({"seconds": took} if task["measurement"] == "start" else {})
    words = ("Error", "Exception", "panic")
    telling = [line for line in done.stderr.splitlines() if any(word in line for word in words)]
    return {"failed": telling[-1][:200] if telling else f"exit code {done.returncode}"}


def run(
    options: argparse.Namespace, pythons: dict[str, Path], results: list[dict[str, Any]]
) -> Iterator[list[dict[str, Any]]]:
    """Yields the old and new results after each measurement. A measurement that failed is not repeated."""
    cache = options.env.resolve() / "vocabularies"
    for name in options.vocabularies:
        Vocabulary(options.shared / "vocabs" / f"{name}.gguf", cache).convert()
    common = {
        "shared": str(options.shared.resolve()),
        "cache": str(cache),
        "core": options.core,
        "limit_bytes": options.limit_bytes,
        "corpora": options.corpora,
        "big": str(options.big.resolve()) if options.big else "",
        "big_bytes": options.big_bytes,
    }
    impossible: dict[tuple[str, str], dict[str, Any]] = {
        (row["peer"], row["vocabulary"]): row["answer"]
        for row in results
        if row["measurement"] == "check" and row["answer"].keys() & {"unsupported", "failed"}
    }
    finished: set[str] = set()
    first = max((row["round"] + 1 for row in results), default=0)
    last = first + options.rounds
    for round_number in range(first, last):
        for measurement in options.measurements:
            if round_number - first >= REPEATS.get(measurement, options.rounds):
                continue
            started = time.monotonic()
            for task in plan(measurement, options):
                named = {"measurement": measurement} | task
                key, pair = json.dumps(named), (task["peer"], task["vocabulary"])
                if key in finished or (pair in impossible and measurement != "check"):
                    continue
                if task["peer"] == REFERENCE and round_number > first:
                    continue
                if _is_endless(named, results, options.timeout):
                    answer: Answer | None = {"failed": f"over {options.timeout:.0f} s"}
                else:
                    answer = measure_idle(options, pythons[task["peer"]], named | common)
                if answer is None:
                    continue
                results.append(named | {"round": round_number, "answer": answer})
                if "unsupported" in answer or "failed" in answer:
                    finished.add(key)
                    if measurement == "check":
                        impossible[pair] = answer
            took = time.monotonic() - started
            print(f"round {round_number + 1}/{last} {measurement}: {took:.0f} s", file=sys.stderr, flush=True)
            _compare_digests(results)
            yield results


def _is_endless(task: Task, results: list[dict[str, Any]], limit: float) -> bool:
    """Whether less text, a tenth or less, took the peer over a fifth of the limit from its start."""
    rows = (row for row in results if row["measurement"] == task["measurement"] == "start")
    less = (row["answer"] for row in rows if row["peer"] == task["peer"] and row["bytes"] < task["bytes"])
    return any(answer.get("seconds", limit) > limit / 5 for answer in less)


def _compare_digests(results: list[dict[str, Any]]) -> None:
    """Replaces digests with the number of documents whose ids differ from ours, or from llama.cpp's without ours."""
    checks = {(r["peer"], r["vocabulary"]): r["answer"] for r in results if r["measurement"] == "check"}
    digests = {pair: answer.pop("digests") for pair, answer in checks.items() if "digests" in answer}
    for (name, vocabulary), theirs in digests.items():
        base = digests.get((OURS, vocabulary)) or digests.get((REFERENCE, vocabulary))
        if base:
            pairs = [pair for corpus in base for pair in zip(base[corpus], theirs[corpus], strict=True)]
            counts = {"documents": len(pairs), "differing": sum(ours != other for ours, other in pairs)}
            checks[name, vocabulary].update(counts)


def machine() -> dict[str, Any]:
    """The machine that the figures come from."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [line for line in cpuinfo.read_text().splitlines() if line.startswith("model name")]
        model = names[0].partition(":")[2].strip() if names else model
    return {
        "processor": model,
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "system": platform.system(),
        "load": os.getloadavg()[0],
    }


def main() -> None:
    """Installs, measures, writes."""
    options = arguments()
    if not options.big:
        print("no --big: nothing is measured at scale", file=sys.stderr)
    if not options.quick and (reason := idle.busy()):
        sys.exit(f"nothing is measured: {reason}")
    pythons = install(options)
    where = machine()
    settings = {"limit_bytes": options.limit_bytes, "date": time.strftime("%Y-%m-%d")}
    there = options.out / "results.json"
    nothing: dict[str, Any] = {"measured": {}, "results": []}
    before = json.loads(there.read_text()) if options.add and there.exists() else nothing
    measured = before["measured"]
    elsewhere = {name for name, own in measured.items() if own["machine"] | {"load": where["load"]} != where}
    replaced = elsewhere.intersection(options.measurements)
    before["results"] = [row for row in before["results"] if row["measurement"] not in replaced]
    for results in run(options, pythons, before["results"]):
        for name in options.measurements:
            rounds = len({row["round"] for row in results if row["measurement"] == name})
            measured[name] = {"machine": where, "settings": settings | {"rounds": rounds}}
        report.write({"measured": measured, "results": results}, options.out)


if __name__ == "__main__":
    main()
