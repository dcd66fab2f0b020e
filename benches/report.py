"""Writes results.json, results.md and the charts from the results of a run.

`python benches/report.py RESULTS.json [PAGE.md...]` rewrites the Markdown and the charts from earlier measurements, and
puts a summary between the markers of pages, a short one into a README. Everything shown is the median over the rounds.
MB is 10^6 bytes.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any

import chart
from ggtok.lab.chart import Panel
from peers import OURS, PEERS, REFERENCE
from texts import BIG, CORPORA, RUNS, SHORT, STARTS
from vocabularies import kind_of

LABELS = {"llama_cpp": "llama.cpp"}
FILES = "https://github.com/ggtok/ggtok/blob/main/benches/results"
RAW = "https://raw.githubusercontent.com/ggtok/ggtok/main/benches/results"
CHARTED = ("llama-bpe", "llama-spm", "bert-bge", "nomic-bert-moe")
"""One vocabulary of each kind, for the charts and the README."""
Key = tuple[str, ...]


class Run:
    """The medians of one run, by measurement, vocabulary, peer and any other detail of a task."""

    def __init__(self, data: dict[str, Any]) -> None:
        self._measured: dict[str, dict[str, Any]] = data["measured"]
        answers: dict[Key, list[dict[str, Any]]] = defaultdict(list)
        for row in data["results"]:
            by_corpus = row["measurement"] in ("throughput", "scale")
            detail = row.get("run") or str(row.get("bytes", "")) or (row.get("corpus", "") if by_corpus else "")
            answers[row["measurement"], row["vocabulary"], row["peer"], detail].append(row["answer"])
        self._answers = answers
        self.failures: list[str] = []
        self.vocabularies = list(dict.fromkeys(row["vocabulary"] for row in data["results"] if row["vocabulary"]))
        found = {row["peer"] for row in data["results"]}
        self.peers = [name for name in PEERS if name in found]
        corpora = {row.get("corpus") for row in data["results"] if row["measurement"] == "throughput"}
        self.corpora = [corpus for corpus in CORPORA if corpus in corpora]

    def peers_of(self, vocabulary: str, measurement: str) -> list[str]:
        """Peers for which the measurement was tried."""
        return [n for n in self.peers if any(k[:3] == (measurement, vocabulary, n) for k in self._answers)]

    def reason(self, vocabulary: str, name: str) -> str | None:
        """Why the peer has no numbers for the vocabulary."""
        for answer in self._answers.get(("check", vocabulary, name, ""), []):
            if "unsupported" in answer:
                return str(answer["unsupported"])
            if "failed" in answer:
                return f"it fails ({answer['failed']})"
        return None

    def value(
        self, measurement: str, vocabulary: str, name: str, read: Callable[[Any], float], detail: str = ""
    ) -> Any:
        """The median of what `read` returns for each answer; a text if none succeeded; None if untried."""
        answers = self._answers.get((measurement, vocabulary, name, detail), [])
        if good := [answer for answer in answers if not answer.keys() & {"unsupported", "failed"}]:
            return statistics.median(map(read, good))
        if any("unsupported" in answer for answer in answers):
            return "n/a"
        for reason in (answer["failed"] for answer in answers if "failed" in answer):
            if reason.startswith("over "):
                return str(reason)
            self.failures.append(f"- {label(name)}, {vocabulary}, {measurement} {detail}: `{reason}`")
            return "fails"
        return None

    def spread(self, measurement: str, vocabulary: str, name: str, detail: str) -> tuple[float, float] | None:
        """The least and the most seconds of several rounds."""
        answers = self._answers.get((measurement, vocabulary, name, detail), [])
        seconds = [answer["seconds"] for answer in answers if "seconds" in answer]
        return (min(seconds), max(seconds)) if len(seconds) > 1 else None

    def where(self, measurement: str) -> tuple[dict[str, Any], dict[str, Any]]:
        """The machine and the settings of a measurement, or of the first one if it was not made.

        Others may have been made later, on another machine.
        """
        own = self._measured.get(measurement) or next(iter(self._measured.values()))
        return own["machine"], own["settings"]

    def version(self, name: str) -> str:
        """The version of the peer's package."""
        found = [a[0].get("version") for k, a in self._answers.items() if k[0] == "check" and k[2] == name]
        return next((version for version in found if version), "?")

    def differing(self, vocabulary: str, name: str) -> str:
        """How many documents have ids that differ from ours, or from llama.cpp's without ours."""
        answer = self._answers.get(("check", vocabulary, name, ""), [{}])[0]
        return f"{answer['differing']:,} of {answer['documents']:,}" if "differing" in answer else "?"

    def digest(self, vocabulary: str, name: str, text: str) -> str | None:
        """The digest of the ids of a single run."""
        digest: str | None = self._answers.get(("single_run", vocabulary, name, text), [{}])[0].get("digest")
        return digest

    def load(self, vocabulary: str, name: str) -> Any:
        """Milliseconds from the load call to the first ids."""
        return self.value("startup", vocabulary, name, lambda a: a["load"] * 1e3)

    def speed(self, vocabulary: str, name: str, corpus: str, which: str) -> Any:
        """MB/s of the pass `first` or `second`."""
        return self.value("throughput", vocabulary, name, lambda a: float(a["bytes"] / a[which] / 1e6), corpus)


def label(name: str) -> str:
    """The peer's name as shown."""
    return LABELS.get(name, name)


def with_kind(vocabulary: str) -> str:
    """A vocabulary's name with its algorithm, as pages show it."""
    return f"{vocabulary} ({kind_of(vocabulary)})"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table with numbers aligned right; a sentence if there are no rows."""
    lines = [head, ["---"] + ["---:"] * (len(head) - 1), *rows]
    if len(lines) == 2:
        return "Not measured in this run.\n"
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def number(value: Any, form: str = "{:.3g}") -> str:
    """A number with three digits; text (a reason) is unchanged."""
    if value is None:
        return "-"
    if isinstance(value, str):
        return value
    return f"{value:,.0f}" if form == "{:.3g}" and value >= 100 else form.format(value)


def throughput(run: Run) -> str:
    """Per vocabulary: the time to load, MB/s of the first and the second pass per corpus, and ratios."""
    parts = []
    columns = [(corpus, which) for which in ("first", "second") for corpus in run.corpora]
    for vocabulary in run.vocabularies:
        names = run.peers_of(vocabulary, "check") or run.peers_of(vocabulary, "throughput")
        reasons = {name: reason for name in names if (reason := run.reason(vocabulary, name))}
        speeds = {
            name: [run.speed(vocabulary, name, corpus, which) for corpus, which in columns]
            for name in names
            if name not in reasons
        }
        rows = [
            [label(name), number(run.load(vocabulary, name)), *map(number, cells), run.differing(vocabulary, name)]
            for name, cells in speeds.items()
        ]
        for title, others in (("best peer", set(speeds) - {OURS}), ("llama.cpp", {REFERENCE} & set(speeds))):
            if OURS in speeds and others and (title == "llama.cpp" or others != {REFERENCE}):
                cells = [_ratio(speeds[OURS][n], [speeds[name][n] for name in others]) for n in range(len(columns))]
                rows.append([f"**ggtok / {title}**", "", *cells, ""])
        again = [f"{corpus}{' again' * (which == 'second')}" for corpus, which in columns]
        parts.append(
            f"### {with_kind(vocabulary)}\n\n{table(['', 'load, ms', *again, 'documents with other ids'], rows)}"
        )
        if reasons:
            listed = "; ".join(_named(label(name), reason) for name, reason in reasons.items())
            parts.append(f"Not measured: {listed}.\n")
    return "\n".join(parts)


def _named(name: str, reason: str) -> str:
    return reason if reason.startswith(name) else f"{name}: {reason}"


def scale(run: Run) -> str:
    """MB/s on big texts, and the ratio to the best peer."""
    parts = []
    columns = [(corpus, which) for which in ("first", "second") for corpus in BIG]
    for vocabulary in run.vocabularies:
        speeds = {
            name: [run.value("scale", vocabulary, name, itemgetter(which), corpus) for corpus, which in columns]
            for name in run.peers_of(vocabulary, "scale")
        }
        rows = [[label(name), *map(number, cells)] for name, cells in speeds.items()]
        others = [cells for name, cells in speeds.items() if name != OURS]
        if OURS in speeds and others:
            cells = [_ratio(ours, best) for ours, *best in zip(speeds[OURS], *others, strict=True)]
            rows.append(["**ggtok / best peer**", *cells])
        if rows:
            parts.append(
                f"{vocabulary}\n\n{table(['MB/s', *(f'{corpus}, {which}' for corpus, which in columns)], rows)}"
            )
    return "\n".join(parts) or table([""], [])


def start(run: Run, vocabulary: str = "llama-bpe") -> dict[str, list[Any]]:
    """Each peer's seconds from the start of a process to each number of bytes."""
    return {
        label(name): [run.value("start", vocabulary, name, itemgetter("seconds"), str(size)) for size in STARTS]
        for name in run.peers_of(vocabulary, "start")
    }


def _ratio(ours: Any, others: Sequence[Any]) -> str:
    best = [other for other in others if isinstance(other, float)]
    return f"**{number(ours / max(best))}**" if best and isinstance(ours, float) else "-"


def summary(run: Run, short: bool) -> str:
    """The summary for a page: the time from the start of a process, then throughput with the time to load beside it.

    The short form says it in a sentence, the long form in a table with a row per peer and one per vocabulary.
    """
    machine, settings = run.where("throughput")
    figures = f"{machine['processor']}, medians of up to {settings['rounds']} rounds; [all]({FILES}/results.md)"
    if short:
        parts = [f"![{chart.READY_TITLE}]({RAW}/ready.svg)\n", _in_a_sentence(run)]
    else:
        parts = [
            f"![{chart.CURVES_TITLE}]({RAW}/start.svg)\n",
            _from_start(run),
            caches(run),
            f"## Documents of 4 KiB\n\n![{chart.TITLE}]({RAW}/throughput.svg)\n",
            "MB/s on one core for documents of 4 KiB never seen before (geometric mean of English, code, 17 languages, "
            f"and Chinese with Japanese and Korean), and the time to load {', '.join(CHARTED)} ({figures}):\n",
            _by_kind(run),
            "Each kind of text, and the same documents again in the same process:\n",
            throughput(run),
        ]
    return "\n".join(filter(None, parts))


def _from_start(run: Run) -> str:
    """What the curves show."""
    size = run.value("start", CHARTED[0], OURS, lambda a: a.get("text_bytes", 0) / 1e6, str(STARTS[-1]))
    again = f" After {number(size)} MB, the text starts over." if isinstance(size, float) and size else ""
    return (
        f"From the start of a process until it has imported the package, loaded {CHARTED[0]} and encoded N bytes: "
        f"English, then code, then other languages.{again} A line ends where more text would take over a minute. "
        f"{_described(*run.where('start'))}"
    )


def _in_a_sentence(run: Run) -> str:
    """The throughput of ggtok, of the fastest peer and of llama.cpp, for one vocabulary of each kind."""
    means = {kind_of(vocabulary): _means(run, vocabulary) for vocabulary in CHARTED if vocabulary in run.vocabularies}
    ours, best, reference = [], [], []
    for kind, mean in means.items():
        if OURS in mean:
            ours.append(f"{number(mean[OURS])} with {kind}")
        if others := {name: speed for name, speed in mean.items() if name not in (OURS, REFERENCE)}:
            fastest = max(others, key=others.__getitem__)
            best.append(f"{number(others[fastest])} ({label(fastest)})")
        if REFERENCE in mean:
            reference.append(number(mean[REFERENCE]))
    if not (ours and best and reference):
        return ""
    return (
        "On one core, documents of 4 KiB never seen before are encoded at these MB/s: ggtok reaches "
        f"{_listed(ours)}; the fastest other library {_listed(best)}; and llama.cpp {_listed(reference)}.\n"
    )


def _listed(words: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


def _by_kind(run: Run) -> str:
    """Per peer: MB/s and the time to load, for one vocabulary of each kind."""
    means = {vocabulary: _means(run, vocabulary) for vocabulary in CHARTED if vocabulary in run.vocabularies}
    rows = []
    for name in run.peers:
        found = [(v, mean.get(name)) for v, mean in means.items()]
        cells = [cell for v, mean in found for cell in (mean, mean and run.load(v, name))]
        rows.append([label(name), *map(number, cells)])
    return table(["", *(cell for v in means for cell in (f"{kind_of(v)}, MB/s", "load, ms"))], rows)


def caches(run: Run) -> str:
    """How much each peer's process grows while it encodes unique words, and whose cache has no bound.

    The other caches are full after half of 128 MB.
    """
    reads = (lambda a: a["resident"][3] / 1e6, lambda a: a["resident"][7] / 1e6, lambda a: a["bytes"] / 1e6)
    grown, small, total = [], [], 0.0
    for name in run.peers:
        half, end, size = (run.value("growth", CHARTED[0], name, read) for read in reads)
        if isinstance(size, float):
            endless = f", {number(end - half)} of them in the second half: **no bound**" * (end - half > size / 4 > 25)
            total = size
            if end < 1:
                small.append(label(name))
            else:
                grown.append(f"{label(name)} {end:.0f} MB{endless}")
    if small:
        grown.append(f"{' and '.join(filter(None, (', '.join(small[:-1]), small[-1])))} under 1 MB")
    return f"Memory growth on {number(total)} MB of unique words: {'; '.join(grown)}.\n" if grown else ""


def fill(page: Path, text: str, name: str = "benchmark") -> None:
    """Replaces the text between the markers of that name."""
    begin, end = f"<!-- {name}:begin -->\n", f"<!-- {name}:end -->"
    before, _, rest = page.read_text(encoding="utf-8").partition(begin)
    _, found, after = rest.partition(end)
    if not found:
        raise SystemExit(f"{page} has no markers named {name}")
    page.write_text(f"{before}{begin}{text}{end}{after}", encoding="utf-8")


def by_vocabulary(run: Run, measurement: str, read: Callable[[Any], float], factor: float = 1) -> str:
    """Peers down, vocabularies across."""
    vocabularies = [v for v in run.vocabularies if run.peers_of(v, measurement)]
    rows = []
    for name in run.peers:
        cells = [
            "n/a" if run.reason(vocabulary, name) else run.value(measurement, vocabulary, name, read)
            for vocabulary in vocabularies
        ]
        if any(cell is not None for cell in cells):
            cells = [cell * factor if isinstance(cell, float) else cell for cell in cells]
            rows.append([label(name), *map(number, cells)])
    return table(["", *vocabularies], rows)


def single_runs(run: Run) -> str:
    """Milliseconds for one megabyte of one repeated character; `!` marks ids that differ from ours."""
    parts = []
    for vocabulary in run.vocabularies:
        rows = []
        for name in run.peers_of(vocabulary, "single_run"):
            cells = []
            for text in RUNS:
                cell = run.value("single_run", vocabulary, name, lambda a: a["seconds"] * 1e3, text)
                base = run.digest(vocabulary, OURS, text) or run.digest(vocabulary, REFERENCE, text)
                theirs = run.digest(vocabulary, name, text)
                cells.append(number(cell) + (" !" if base and theirs and base != theirs else ""))
            rows.append([label(name), *cells])
        if rows:
            parts.append(f"{vocabulary}\n\n{table(['ms', *RUNS], rows)}")
    return "\n".join(parts)


def own(run: Run) -> str:
    """ggtok alone: `count`, two threads."""
    rows = []
    for vocabulary in run.vocabularies:
        cells = [
            run.value("count", vocabulary, OURS, lambda a: a["encode_array"] / a["count"]),
            run.value("batch", vocabulary, OURS, lambda a: a["one"] / a["two"]),
        ]
        if any(cell is not None for cell in cells):
            rows.append([vocabulary, *map(number, cells)])
    return table(["", "`count` / `encode_array`", "two threads / one"], rows)


def _described(machine: dict[str, Any], settings: dict[str, Any]) -> str:
    """Where and when something was measured."""
    return (
        f"{machine['processor']}, one of {machine['cores']} cores, {machine['system']}, CPython {machine['python']}, "
        f"{settings['date']}; load average {machine['load']:.1f} at the start; medians of up to "
        f"{settings['rounds']} rounds.\n"
    )


def markdown(run: Run) -> str:
    """The whole page."""
    peers = [[label(name), run.version(name), PEERS[name].calls] for name in run.peers]
    sections = [
        "# ggtok and its peers\n\nWritten by `python benches/compare.py`; docs/performance.md says how.\n",
        _described(*run.where("throughput")),
        table(["peer", "version", "calls measured"], peers),
        f"## Documents of 4 KiB\n\n{throughput(run)}",
        f"## Big texts, medians of stretches of 10 MB\n\n{scale(run)}",
        f"## From the start of the interpreter to N bytes encoded, s (llama-bpe)\n\n{_described(*run.where('start'))}\n"
        + table(["N", *(f"{size:.0e}" for size in STARTS)], ([n, *map(number, row)] for n, row in start(run).items())),
    ]
    sections += [
        f"## One short call that returns a list: {text}, ns\n\n{by_vocabulary(run, 'short', itemgetter(text))}"
        for text in SHORT
    ]
    more: list[tuple[str, str, Callable[[Any], float], float]] = [
        ("From the load call to the first ids in a new process, ms", "startup", lambda a: a["load"], 1e3),
        ("Resident after load and first call, over the interpreter before import, MB", "startup",
         lambda a: float(a["resident"]), 1e-6),
        ("Decoding documents, MB/s of text", "decode", lambda a: a["bytes"] / a["seconds"], 1e-6),
        ("Decoding 4,096 ids in one call, microseconds", "decode", lambda a: a["block"], 1e6),
    ]  # fmt: skip
    sections += [f"## {title}\n\n{by_vocabulary(run, name, read, factor)}" for title, name, read, factor in more]
    sections.append(f"## One megabyte that is a single run, ms (`!`: other ids than ours)\n\n{single_runs(run)}")
    imports = [[label(n), number(run.value("imports", "", n, lambda a: a["seconds"] * 1e3))] for n in run.peers]
    sections.append(f"## Import in a bare interpreter, ms\n\n{table(['', 'ms'], imports)}")
    sections.append(f"## Memory\n\n{caches(run) or table([''], [])}")
    sections.append(f"## ggtok alone\n\n{own(run)}")
    if run.failures:
        sections.append("## What failed\n\n" + "\n".join(dict.fromkeys(run.failures)) + "\n")
    return "\n".join(sections)


def write(data: dict[str, Any], out: Path) -> None:
    """Writes the figures, the tables and the charts."""
    out.mkdir(parents=True, exist_ok=True)
    run = Run(data)
    (out / "results.json").write_text(json.dumps(data, indent=None, separators=(",", ":")) + "\n")
    (out / "results.md").write_text(markdown(run))
    panels = [
        Panel(with_kind(vocabulary), {label(n): mean for n, mean in _means(run, vocabulary).items()})
        for vocabulary in CHARTED
        if vocabulary in run.vocabularies
    ]
    (out / "throughput.svg").write_text(chart.throughput(panels, OURS))
    curves = {
        name: [(n, s) for n, s in zip(STARTS, row, strict=True) if isinstance(s, float)]
        for name, row in start(run).items()
    }
    if curves:
        (out / "start.svg").write_text(chart.curves(curves, OURS))
        (out / "ready.svg").write_text(ready(run))


def ready(run: Run) -> str:
    """The chart of the time until two texts are encoded, with what was measured where and when."""
    seconds = start(run)
    panels = []
    for title, size in (("to open Llama 3's vocabulary and encode 1 MB", 10**6), ("the same with 100 MB", 10**8)):
        found = {label(name): run.spread("start", "llama-bpe", name, str(size)) for name in run.peers}
        spread = {name: ends for name, ends in found.items() if ends}
        at = STARTS.index(size)
        panels.append(Panel(title, {n: row[at] for n, row in seconds.items() if isinstance(row[at], float)}, spread))
    known = [f"{label(name)} {run.version(name)}" for name in run.peers if label(name) in seconds]
    machine, settings = run.where("start")
    notes = [
        f"{machine['processor']}, {machine['cores']} cores, Python {machine['python']}, {settings['date']}; "
        f"medians of {settings['rounds']} rounds",
        "Thin lines: from the fastest round to the slowest. llama.cpp has one round.",
        *(", ".join(known[at : at + 4]) for at in range(0, len(known), 4)),
    ]
    return chart.ready(panels, OURS, notes)


def _means(run: Run, vocabulary: str) -> dict[str, float]:
    """Each peer's first-pass MB/s: the geometric mean over the corpora."""
    means = {}
    for name in run.peers:
        speeds = [run.speed(vocabulary, name, corpus, "first") for corpus in run.corpora]
        if speeds and all(isinstance(speed, float) for speed in speeds):
            means[name] = statistics.geometric_mean(speeds)
    return means


if __name__ == "__main__":
    source = Path(sys.argv[1])
    data = json.loads(source.read_text())
    write(data, source.parent)
    for page in map(Path, sys.argv[2:]):
        fill(page, summary(Run(data), short=page.name == "README.md"))
