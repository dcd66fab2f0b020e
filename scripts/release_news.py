"""What changed in a release of llama.cpp since the newest one that was measured, with all vocabularies and texts of
`llama_cpp_releases.py`. `watch_llama_cpp.py --release` is the command.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from ggtok._releases import data
from ggtok._verify.child import Child
from ggtok._verify.library import described, installed
from ggtok._verify.report import call
from ggtok._verify.serve import Answer, Query
from ggtok._verify.verify import OURS, REFERENCE
from llama_cpp_releases import TIMEOUT, Target, alike, queries, releases, targets

MOST_SHOWN = 200
"""Characters of an answer."""


def news(release: str, folder: Path, only: str) -> Iterator[str]:
    """What is new, line by line, about the vocabularies whose name `only` matches.

    Args:
        release: A version of xllamacpp, or the path of a library.
        folder: For the wheels.
        only: A pattern.

    Raises:
        GgtokError: The release cannot be fetched or opened, or does not say which one it is.
        OSError: Its wheel cannot be unpacked.
    """
    folder.mkdir(parents=True, exist_ok=True)
    newest = data()["releases"][-1]
    at_hand = [file for file in installed() if described(str(file)).release == f"b{newest['build']}"]
    (before,) = releases([] if at_hand else [newest["from"].split()[-1]], folder, at_hand[:1])
    is_file = Path(release).is_file()
    (after,) = releases([] if is_file else [release], folder, [Path(release)] * is_file)
    old, new = (Child(REFERENCE, (found.library.path,), timeout=TIMEOUT) for found in (before, after))
    ours = Child(OURS, timeout=TIMEOUT)
    try:
        for target in targets(folder):
            if re.search(only, target.name):
                changes = changed(target, old, new, ours)
                yield from (f"{target.name}: {after.name} {change.format(before.name)}" for change in changes)
    finally:
        for child in (old, new, ours):
            child.close()


def changed(target: Target, old: Child, new: Child, ours: Child) -> Iterator[str]:
    """What two releases say differently about a vocabulary; `{}` stands for the older one."""
    opening: Query = ("open", str(target.path), dict(target.overrides))
    opened = [child.ask([opening])[0][0] == "ok" for child in (old, new)]
    if opened != [True, True]:
        if any(opened):
            yield "opens it, {} does not" if opened[1] else "does not open it, {} does"
        return
    asked = queries(target, ours, new)
    theirs, before, mine = new.ask(asked), old.ask(asked), ours.ask(asked)
    found: dict[tuple[int, ...], list[str]] = {}
    for name, others in (("{}", before), ("ggtok", mine)):
        differ = tuple(at for at, answer in enumerate(theirs) if not alike(answer, others[at]))
        found.setdefault(differ, []).append(name)
    for differ, names in found.items():
        if differ:
            shortest = min(differ, key=lambda at: len(repr(asked[at])))
            shown = _example(asked[shortest], theirs[shortest], (mine if "ggtok" in names else before)[shortest])
            yield f"differs from {' and '.join(names)} in {len(differ):,} of {len(asked):,} answers: {shown}"
    if died := sum(now[0] == "died" != was[0] for now, was in zip(theirs, before, strict=True)):
        yield f"aborts in {died:,} of {len(asked):,} calls that {{}} answers"


def _example(query: Query, now: Answer, other: Answer) -> str:
    said = f"{call(query)[:MOST_SHOWN]} is {_value(now)} and not {_value(other)}"
    return said.replace("{", "{{").replace("}", "}}")


def _value(answer: Sequence[object]) -> str:
    return repr(answer[1] if answer[0] == "ok" else answer[-1])[:MOST_SHOWN]
