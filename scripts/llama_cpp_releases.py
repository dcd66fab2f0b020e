"""Which release of llama.cpp answers how: measures releases beside ggtok, and writes a data file of the package.

    python scripts/llama_cpp_releases.py measure --folder target/releases
    python scripts/llama_cpp_releases.py write --folder target/releases

1. `measure` fetches the wheels of xllamacpp, and takes other libraries by `--library PATH`. Every vocabulary is opened
   by every release in a process of its own, which is started again after an abort, and asked what `release_texts`
   makes. One line of `measured.jsonl` has the result for one vocabulary; a second run continues after the last one.
2. `write` finds by bisection which release opens each pre-tokenizer and model first, and between which two releases
   each change of `release_changes` came. More wheels than those that were asked everything are asked this.
3. Each difference must have a change that concerns its vocabulary and came between the same two releases. Otherwise the
   exit code is 1 and the differences are printed, for somebody to read llama.cpp's history and add a row.

Exit code 2: a release cannot be fetched or opened.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import time
import warnings
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import release_texts as texts
from ggtok import TokenAttribute, Tokenizer, TokenizerWarning, _ggtok
from ggtok._verify.answerers import CONTROL_OR_USER_DEFINED, FLAGS, SPECIAL_IDS, Token
from ggtok._verify.binding import Overrides
from ggtok._verify.child import Child
from ggtok._verify.library import Library, find_library
from ggtok._verify.report import pack
from ggtok._verify.serve import Answer, Query
from ggtok._verify.verify import OURS, REFERENCE, reason
from ggtok._vocab import attributes
from ggtok.errors import GgtokError, LibraryError
from release_changes import (
    CHANGES,
    DATA,
    LOWERCASE,
    PLAMO2,
    STRIP,
    Bounds,
    Change,
    Outcome,
    bisect,
    by_text,
    explain,
    written,
)

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))
from differential.paths import ROOT, shared

MEASURED = (
    *("0.2.0", "0.2.6", "0.2.10", "0.2.14", "2026.4.8672", "2026.4.8929", "2026.5.9093", "2026.5.9294"),
    *("2026.6.9538", "2026.6.9713", "2026.7.9873", "2026.7.10068", "2026.8.10229", "2026.8.10566", "2026.9.10809"),
    *("2026.9.11063", "2026.10.11549"),
)
"""Versions of xllamacpp, from the oldest to the newest: each is asked everything."""
BETWEEN = ("0.2.1", "0.2.2", "0.2.3", "0.2.4", "0.2.7", "0.2.8", "0.2.9", "0.2.11", "0.2.12")
"""Further ones, which are asked only what has changed."""
FLAG_PAIRS = ((False, False), (False, True), (True, False), (True, True))
NUM_RANDOM = 150
NUM_SAMPLES = 4
SPARSE = 5
"""Of texts that can hardly differ, one of so many is asked."""
AT_ONCE = 64
MOST_DEATHS = 20
"""A release that aborts on so many texts of a vocabulary is not asked about the others."""
NUM_TOKENS = 64
"""Tokens in one query."""
PRE, MODEL = "tokenizer.ggml.pre", "tokenizer.ggml.model"
TIMEOUT = 120.0
FETCH_SECONDS = 300.0


@dataclass(frozen=True)
class Release:
    """One llama.cpp: its build, and where it is."""

    build: int
    library: Library

    @property
    def name(self) -> str:
        """As llama.cpp writes it."""
        return f"b{self.build}"


@dataclass(frozen=True)
class Target:
    """A vocabulary to compare, by a name that says how it was made."""

    name: str
    path: Path
    overrides: Overrides = field(default_factory=dict)
    pre: str | None = None
    """The pre-tokenizer whose classes are tried."""


def fetched(version: str, folder: Path) -> Path:
    """The library in a wheel of xllamacpp, which is fetched unless the folder has it.

    Raises:
        GgtokError: It is not a version of xllamacpp, cannot be fetched, or is a damaged wheel.
        OSError: The wheel cannot be unpacked.
    """
    if not re.fullmatch(r"\d+(\.\d+)+", version, re.ASCII):
        raise GgtokError(f"{version!r} is neither a version of xllamacpp nor the file of a library")
    place = folder / f"xllamacpp-{version}"
    if not place.is_dir():
        command = [sys.executable, "-m", "pip", "download", "-q", "--retries=1", "--no-deps", "--only-binary=:all:"]
        command += ["-d", str(folder), f"xllamacpp=={version}"]
        try:
            subprocess.run(command, check=True, timeout=FETCH_SECONDS, capture_output=True, text=True)
        except subprocess.CalledProcessError as error:
            raise GgtokError(f"xllamacpp {version} cannot be fetched: {error.stderr.strip()}") from None
        except subprocess.TimeoutExpired:
            raise GgtokError(f"xllamacpp {version} cannot be fetched within {FETCH_SECONDS:g} s") from None
        wheel = next(folder.glob(f"xllamacpp-{version}-*.whl"))
        unfinished = folder / f"unfinished-{version}"
        try:
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(unfinished)
        except zipfile.BadZipFile as error:
            raise GgtokError(f"{wheel}: {error}") from None
        unfinished.rename(place)
    return next(path for path in sorted((place / "xllamacpp").iterdir()) if path.suffix in (".so", ".pyd", ".dylib"))


def releases(versions: Sequence[str], folder: Path, others: Sequence[Path] = ()) -> list[Release]:
    """Those versions of xllamacpp and other libraries, the oldest first. Raises `GgtokError` if one cannot be had."""
    found = []
    for path in chain(others, (fetched(version, folder) for version in versions)):
        library = find_library(path)
        child = Child(REFERENCE, (library.path,), timeout=TIMEOUT)
        ((answer, *rest),) = child.ask([("library",)])
        child.close()
        if answer != "ok":
            raise LibraryError(reason(answer, rest, library.path), path=library.path)
        release = library.release or rest[0]["release"]
        if release is None:
            raise GgtokError(f"{path}: nothing says which release it is")
        library = Library(library.path, library.package, release, rest[0]["ggml"])
        found.append(Release(int(release[1:]), library))
    return sorted(found, key=lambda release: release.build)


def targets(folder: Path) -> list[Target]:
    """The built-in vocabularies, with flags; every pre-tokenizer; and the files of the shared folder."""
    builtin = {path.stem: path for path in (ROOT / "python" / "ggtok" / "vocabularies").glob("*.gguf")}
    found = [Target(f"builtin:{name}", path) for name, path in sorted(builtin.items())]
    found += [
        Target(f"builtin:wordpiece {json.dumps(values)}", builtin["wordpiece"], values)
        for values in ({LOWERCASE: False}, {STRIP: False}, {LOWERCASE: False, STRIP: False})
    ]
    found += [Target(f"model:{model}", builtin["spm"], {MODEL: model}) for model in ("none", "no_vocab", "test")]
    found += [
        Target(f"model:{model}", builtin["bpe"], {MODEL: model}) for model in ("gemma4", "whitespace", "hybriddna")
    ]
    probe = folder / "probe.gguf"
    probe.write_bytes(texts.probe())
    found += [Target(f"probe:{name}", probe, {PRE: name}, name) for name in _ggtok.pretokenizers()]
    found.append(Target(PLAMO2, shared() / "vocabs" / "plamo2-small.gguf", {"tokenizer.ggml.add_bos_token": True}))
    return found + [Target(path.stem, path) for path in sorted((shared() / "vocabs").glob("*.gguf"))]


def queries(target: Target, ours: Child, newest: Child) -> list[Query]:
    """All that is asked about a vocabulary, except what ends the process of the newest release for every text."""
    ((answer, *rest),) = ours.ask([("open", str(target.path), dict(target.overrides))])
    if answer != "ok":
        raise GgtokError(f"{target.name}: {rest[-1]}")
    vocab = opened(target).vocab
    num_tokens, pieces = len(vocab), vocab.pieces
    cut_out = [piece for piece, bits in zip(pieces, attributes(vocab), strict=True) if bits & CONTROL_OR_USER_DEFINED]
    special = texts.special_texts(cut_out if target.pre is None else cut_out[:3], target.pre is None)
    random = texts.random_texts(pieces, cut_out, NUM_RANDOM if target.pre is None else NUM_RANDOM // 3)
    made = texts.pattern_texts(target.pre) if target.pre else texts.normalizer_texts()
    if target.pre is None and vocab.kind not in ("wordpiece", "unigram") and vocab.model != "whitespace":
        made = made[::SPARSE]  # it has no normalizer
    elif target.pre is not None and target.pre not in texts.first_of_family():
        made = made[::SPARSE]  # the same patterns as another name
    asked: list[Query] = [("encode", text, *flags) for text in special for flags in FLAG_PAIRS]
    asked += [("encode", text, *flags) for text in random for flags in FLAG_PAIRS[1:3]]
    asked += [("encode", text.encode(), False, False) for text in made]
    encoded = ours.ask([("encode", text, True, True) for text in [*random, *special][::2]])
    lists = [reply[1] for reply in encoded if reply[0] == "ok" and min(reply[1], default=0) >= 0]
    asked += [("decode", ids, *flags) for ids in lists for flags in FLAG_PAIRS]
    if target.pre is None:
        ids = [*range(0, num_tokens, max(1, num_tokens // 300)), *range(max(0, num_tokens - 40), num_tokens)]
        asked += [("decode", [id], *flags) for id in ids for flags in FLAG_PAIRS[1:3]]
        asked += [("tokens", at, min(at + NUM_TOKENS, num_tokens)) for at in range(0, num_tokens, NUM_TOKENS)]
    asked += [("specials", [name]) for name in (*SPECIAL_IDS, *FLAGS)]
    opening = ("open", str(target.path), dict(target.overrides))
    trial = newest.ask([opening, *(("encode", b"a", *flags) for flags in FLAG_PAIRS)])
    if trial[0][0] != "ok" or vocab.kind in ("none", "test"):
        return []
    deadly = {flags for flags, reply in zip(FLAG_PAIRS, trial[1:], strict=True) if reply[0] == "died"}
    return [query for query in asked if query[0] != "encode" or query[2:] not in deadly]


def compare(target: Target, ours: Child, children: Mapping[int, Child]) -> dict[str, Any]:
    """One line of the measurements: what every release says about a vocabulary."""
    asked = queries(target, ours, children[max(children)])
    mine = ours.ask(asked)
    rows: dict[str, Any] = {}
    differing: dict[int, dict[int, Answer]] = {}
    for build, child in children.items():
        start = time.monotonic()
        ((opened, *_),) = child.ask([("open", str(target.path), dict(target.overrides))])
        theirs: list[Answer] = []
        while opened == "ok" and len(theirs) < len(asked):
            theirs += child.ask(asked[len(theirs) :][:AT_ONCE])
            if sum(answer[0] == "died" for answer in theirs) > MOST_DEATHS:
                break
        differ = [at for at, answer in enumerate(theirs) if not alike(answer, mine[at])]
        for at in differ:
            differing.setdefault(at, {})[build] = theirs[at]
        deaths = sum(answer[0] == "died" for answer in theirs)
        row = {"open": opened, "asked": len(theirs) - deaths, "died": deaths, "differ": len(differ)}
        rows[f"b{build}"] = row | {"seconds": round(time.monotonic() - start, 2)}
    groups: dict[str, Any] = {}
    # The shortest first.
    for at in sorted(differing, key=lambda at: len(repr(asked[at]))):
        where = " ".join(f"b{build}" for build in sorted(differing[at]))
        group = groups.setdefault(f"{asked[at][0]} {where}", {"number": 0, "samples": []})
        group["number"] += 1
        if len(group["samples"]) < NUM_SAMPLES:
            before = {f"b{build}": repr(answer) for build, answer in differing[at].items()}
            query = pack([*asked[at]])
            group["samples"].append({"query": query, "says": repr(asked[at]), "ours": repr(mine[at]), **before})
    return {"target": target.name, "releases": rows, "groups": groups}


def alike(theirs: Answer, mine: Answer) -> bool:
    """Whether two answers are the same. A death, and a getter that a release lacks, are no answers."""
    if theirs[0] == "died" or (theirs[0] == "ok" and isinstance(theirs[1], dict) and None in theirs[1].values()):
        return True
    return theirs == mine if theirs[0] == "ok" else mine[0] == "error"


def measure(folder: Path, others: Sequence[Path], only: str, part: int, parts: int) -> None:
    """Appends a line for each vocabulary that has none: of those whose name `only` matches, each `parts`th."""
    done = {line["target"] for line in measured(folder)}
    found = releases(MEASURED, folder, others)
    children = {release.build: Child(REFERENCE, (release.library.path,), timeout=TIMEOUT) for release in found}
    ours = Child(OURS, timeout=TIMEOUT)
    try:
        for target in targets(folder)[part::parts]:
            if target.name in done or not re.search(only, target.name):
                continue
            start = time.monotonic()
            line = compare(target, ours, children)
            with open(folder / "measured.jsonl", "a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
            differ = {name: row["differ"] for name, row in line["releases"].items() if row["differ"]}
            refused = [name for name, row in line["releases"].items() if row["open"] != "ok"]
            asked = sum(row["asked"] for row in line["releases"].values())
            took = f"{time.monotonic() - start:.1f} s"
            print(f"{target.name}: {asked:,} in {took}, refused {len(refused)}, differ {differ}", flush=True)
    finally:
        for child in (*children.values(), ours):
            child.close()


def measured(folder: Path) -> Iterator[dict[str, Any]]:
    """The lines written so far."""
    path = folder / "measured.jsonl"
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        yield json.loads(line)


class Asked:
    """Every release in a process that is started when it is first asked, with the vocabulary that it has open."""

    def __init__(self, found: Sequence[Release]) -> None:
        self.builds = [release.build for release in found]
        self._children = {
            release.build: Child(REFERENCE, (release.library.path,), timeout=TIMEOUT) for release in found
        }

    def opens(self, build: int, target: Target) -> bool:
        """Whether a release opens a vocabulary."""
        ((answer, *_),) = self._children[build].ask([("open", str(target.path), dict(target.overrides))])
        return bool(answer == "ok")

    def answer(self, build: int, target: Target, query: Query) -> Answer:
        """The answer of a release."""
        return self._children[build].ask([("open", str(target.path), dict(target.overrides)), query])[1]

    def close(self) -> None:
        """Ends the processes."""
        for child in self._children.values():
            child.close()


def write(folder: Path, others: Sequence[Path], to: Path) -> int:
    """Writes the data file; returns how many differences nothing explains."""
    found = releases([*MEASURED, *BETWEEN], folder, others)
    rows = {row["target"]: row for row in measured(folder)}
    everything = {target.name: target for target in targets(folder)}
    vocabs = {name: opened(target).vocab for name, target in everything.items()}
    asked, outcome, examples = Asked(found), Outcome(), dict[str, Any]()
    memory = folder / "opens.json"
    opens: dict[str, Bounds] = json.loads(memory.read_text("utf-8")) if memory.exists() else {}
    try:
        look_for_texts(folder, asked, outcome, examples)
        few = Target("few", folder / "few.gguf")
        few.path.write_bytes(texts.few_tokens())
        outcome.default_ids = bisect(asked.builds, lambda build: not asked.opens(build, few))
        for name, target in everything.items():
            known = outcome.pre if name.startswith("probe:") else outcome.models
            key = name.removeprefix("probe:") if name.startswith("probe:") else vocabs[name].model
            if key not in known:
                if name not in opens:
                    opens[name] = bisect(asked.builds, lambda build: not asked.opens(build, target))  # noqa: B023
                    memory.write_text(json.dumps(opens), encoding="utf-8")
                    print(f"{key}: {opens[name]}", flush=True)
                known[key] = opens[name]
        for change in CHANGES:
            target, vocab = everything[change.target], vocabs[change.target]
            first = max(outcome.models[vocab.model][1], outcome.pre[vocab.pre][1] if vocab.pre else 0)
            builds = [build for build in asked.builds if build >= first]
            after = asked.answer(builds[-1], target, change.query)
            bounds = bisect(builds, lambda build: asked.answer(build, target, change.query) != after)  # noqa: B023
            outcome.changes[change.code] = bounds
            print(f"{change.code}: {bounds}", flush=True)
            before = asked.answer(bounds[0], target, change.query)
            examples[change.code] = example(change, target, before[1], after[1])
    finally:
        asked.close()
    for name, row in rows.items():
        if row["releases"][f"b{found[-1].build}"]["asked"]:
            explain(outcome, row, vocabs[name])
    listed = [
        {"build": release.build, "from": release.library.package or "a library", "ggml": release.library.ggml}
        for release in found
    ]
    to.write_text(written(listed, outcome, examples), encoding="utf-8")
    print("\n".join([*figures(rows.values()), *(f"{code}: {n:,}" for code, n in outcome.explained.items())]))
    print("\n".join(outcome.problems))
    return len(outcome.problems)


def look_for_texts(folder: Path, asked: Asked, outcome: Outcome, examples: dict[str, Any]) -> None:
    """Since when each release finds special tokens by their text, and marks them as today."""
    roles = _ggtok.loader_texts()
    groups: dict[tuple[str, Bounds], list[str]] = {}
    for number, text in enumerate(dict.fromkeys(text for role in roles.values() for text in role)):
        path = folder / f"text-{number}.gguf"
        path.write_bytes(texts.with_special_text(text.encode(), text in roles["user_defined"]))
        target = Target(f"text:{text}", path)
        answers = {build: asked.answer(build, target, ("token", texts.SPECIAL_ID)) for build in asked.builds}
        after = answers[asked.builds[-1]][1]
        role = bisect(asked.builds, lambda build: answers[build][1][1:] != after[1:])  # noqa: B023
        mark = bisect(asked.builds, lambda build: answers[build][1] != after)  # noqa: B023
        for condition, bounds in {"found": role, "marked": mark}.items():
            if bounds[0] and (condition == "found" or mark != role):
                group = groups.setdefault((condition, bounds), [])
                group.append(text)
                if len(group) == 1:
                    before = token_in_words(answers[bounds[0]][1])
                    declared = "control" if text in roles["user_defined"] else "user-defined"
                    vocabulary = f"a vocabulary that declares it as {declared}"
                    examples[by_text(condition, group, bounds[1]).code] = {
                        "token": text,
                        "vocabulary": vocabulary,
                        "before": before,
                        "after": token_in_words(after),
                    }
    for (condition, bounds), found in sorted(groups.items()):
        change = by_text(condition, found, bounds[1])
        outcome.rows.append(change)
        outcome.changes[change.code] = bounds
        print(f"{change.code}: {bounds} {found}", flush=True)


def token_in_words(token: Token) -> str:
    """The attributes of a token, and whether it ends generation."""
    attributes, ends, *_ = token
    names = " and ".join(str(flag.name).lower().replace("_", "-") for flag in TokenAttribute if attributes & flag)
    return f"{names} (ends generation)" if ends else names


def opened(target: Target) -> Tokenizer:
    """The tokenizer of a vocabulary, without its warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TokenizerWarning)
        return Tokenizer.from_gguf(target.path, overrides=dict(target.overrides) or None)


def example(change: Change, target: Target, before: Any, after: Any) -> dict[str, Any]:
    """The call of a change with its answers: ids, or pieces if nobody else has the vocabulary."""
    scheme, _, name = target.name.partition(":")
    _, text, add_special, parse_special = change.query
    call = (
        f"encode({text.decode()!r}{', add_special=False' * (not add_special)}{', parse_special=True' * parse_special})"
    )
    if scheme != "builtin":
        piece = opened(target).piece
        before, after = ([piece(id).decode("utf-8", "replace") for id in ids] for ids in (before, after))
    if scheme == "probe":
        vocabulary, settings = f"a vocabulary with the pre-tokenizer {name}", list[str]()
    else:
        vocabulary = f"the {'built-in ' * (scheme == 'builtin')}vocabulary {name.partition(' ')[0]}"
        settings = [f"{key}={json.dumps(value)}" for key, value in target.overrides.items()]
    return {"call": call, "vocabulary": vocabulary, "settings": settings, "before": before, "after": after}


def figures(rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """What was compared, release by release."""
    totals: dict[str, list[float]] = {}
    for row in rows:
        for name, release in row["releases"].items():
            total = totals.setdefault(name, [0] * 5)
            numbers = (
                release["asked"],
                release["differ"],
                release["died"],
                release["open"] != "ok",
                release["seconds"],
            )
            totals[name] = [a + b for a, b in zip(total, numbers, strict=True)]
    yield f"{'release':10}{'compared':>14}{'differ':>10}{'aborted':>9}{'refused':>9}{'seconds':>9}"
    for name, total in totals.items():
        yield f"{name:10}{total[0]:14,}{total[1]:10,}{total[2]:9,}{total[3]:9,}{total[4]:9.0f}"
    yield f"{'all':10}{sum(total[0] for total in totals.values()):14,}{sum(t[1] for t in totals.values()):10,}"


def main() -> int:
    """Measures, or writes what was measured."""
    parser = argparse.ArgumentParser(description="which release of llama.cpp answers how")
    parser.add_argument("action", choices=("measure", "write"))
    parser.add_argument("--folder", type=Path, default=ROOT / "target" / "releases", help="for wheels and results")
    parser.add_argument("--library", type=Path, action="append", default=[], help="another llama.cpp to measure")
    parser.add_argument("--only", default="", help="vocabularies whose name this pattern matches")
    parser.add_argument("--part", default="0/1", help="1/3 is the second third, for several processes")
    parser.add_argument("--to", type=Path, default=DATA, help="the file to write (default: %(default)s)")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    try:
        if options.action == "measure":
            part, _, parts = options.part.partition("/")
            measure(options.folder, options.library, options.only, int(part), int(parts))
            return 0
        return 1 if write(options.folder, options.library, options.to) else 0
    except (GgtokError, OSError) as error:
        print(error, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
