"""From the measurements of `llama_cpp_releases.py` to the data file of the package: every difference needs a change.

A row of `CHANGES` says what changed in llama.cpp, and whom it concerns. Between which two releases is measured: the
row's example is asked by bisection. Then each group of answers that differ must have a row that concerns its vocabulary
and ends where the group ends; and each vocabulary that a row concerns must have such a group.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ggtok._releases import meets
from ggtok._verify.serve import Query
from ggtok._vocab import Vocab

DATA = Path(__file__).resolve().parents[1] / "python" / "ggtok" / "llama_cpp_releases.json"
LOWERCASE, STRIP = "tokenizer.ggml.normalizer.lowercase", "tokenizer.ggml.normalizer.strip_accents"
PLAMO2 = 'shared:plamo2-small {"tokenizer.ggml.add_bos_token": true}'
Bounds = tuple[int, int]
"""The last release before and the first one after; 0 before the first that was measured."""


@dataclass(frozen=True)
class Change:
    """A change in llama.cpp, without its releases."""

    code: str
    what: str
    """A sentence without its full stop, for the page, `check` and `Releases`."""
    concerns: Mapping[str, Any]
    """All conditions that a vocabulary meets: alternatives of `kind`, `model` or `pre`, `settings`, what it adds to a
    text (`adds`), and texts of which one is a token with a role that the file does not give it (`found`), or is marked
    so (`marked`)."""
    answers: tuple[str, ...]
    """The kinds of queries that are answered differently."""
    target: str
    """The vocabulary of the example."""
    query: Query
    pull_requests: tuple[int, ...] = ()


CHANGES: tuple[Change, ...] = (
    Change(
        "plamo2-added",
        "BOS and EOS are added if the file asks for them",
        {"kind": ["plamo2"], "adds": ["bos", "eos"]},
        ("encode", "decode"),
        PLAMO2,
        ("encode", b"a", True, False),
    ),
    Change(
        "collapsed-tilde",
        "`~` counts as a symbol (`\\p{S}`), so it is not cut from the signs and the space beside it",
        {"pre": ["afmoe", "deepseek-v3", "hunyuan-dense", "joyai-llm"]},
        ("encode", "decode"),
        "probe:deepseek-v3",
        ("encode", b" ~/", False, False),
        (26972,),
    ),
    Change(
        "wordpiece-marks",
        "accents are stripped only if the file says so, and then marks of every script, and Hangul is decomposed",
        {"kind": ["wordpiece"]},
        ("encode", "decode"),
        "builtin:wordpiece",
        ("encode", "e\u0301!".encode(), False, False),
        (24371,),
    ),
    Change(
        "wordpiece-lowercase",
        "text is lowercased only if the file says so",
        {"kind": ["wordpiece"], "settings": {"lowercase": False}},
        ("encode", "decode"),
        f'builtin:wordpiece {{"{LOWERCASE}": false}}',
        ("encode", b"[CLS]", False, False),
        (23899,),
    ),
    Change(
        "gemma4",
        "BOS is added whatever the file says, text without a token becomes byte tokens, which decode to their bytes, "
        "and `</s>` is ordinary text",
        {"pre": ["gemma4"]},
        ("encode", "decode", "tokens", "specials"),
        "probe:gemma4",
        ("encode", b"a", True, False),
        (21488, 21492, 21500),
    ),
)
PULL_REQUESTS = {
    "</s>": 18825,
    "<|tool_response>": 21418,
    **dict.fromkeys(("<|prefix|>", "<|suffix|>", "<|middle|>"), 19249),
}
"""What is known to have made control tokens of these texts."""


def by_text(condition: str, texts: Sequence[str], new: int) -> Change:
    """The change of a release that treats tokens with these texts otherwise, if they meet the condition."""
    answers: tuple[str, ...]
    if condition == "found":
        listed = ", ".join(f"`{text}`" for text in texts)
        what = f"a token counts as special by its text, and may end generation: {listed}"
        code, answers = f"special-texts-b{new}", ("encode", "decode", "tokens", "specials")
        numbers = tuple(dict.fromkeys(PULL_REQUESTS[text] for text in texts if text in PULL_REQUESTS))
    else:
        what = "a token that counts as a control token by its text keeps its declared attributes too; no id changes"
        code, answers, numbers = f"special-attributes-b{new}", ("tokens",), (18541,)
    return Change(code, what, {condition: [*texts]}, answers, f"text:{texts[0]}", ("token", 0), numbers)


@dataclass
class Outcome:
    """What the measurements say, and what they leave open."""

    pre: dict[str, Bounds] = field(default_factory=dict)
    models: dict[str, Bounds] = field(default_factory=dict)
    default_ids: Bounds = (0, 0)
    """Since when a special id may have a default that is outside the vocabulary."""
    rows: list[Change] = field(default_factory=lambda: [*CHANGES])
    changes: dict[str, Bounds] = field(default_factory=dict)
    """Between which releases each of `rows` came."""
    explained: Counter[str] = field(default_factory=Counter)
    """Answers that differ, by change."""
    problems: list[str] = field(default_factory=list)


def opening(row: Mapping[str, Any]) -> list[int]:
    """The releases that open a vocabulary."""
    return [int(name[1:]) for name, release in row["releases"].items() if release["open"] == "ok"]


def bounds_of_group(name: str, builds: Sequence[int]) -> tuple[str, Bounds | None]:
    """The kind of query of a group, and where its answers change; `None` if they change more than once."""
    kind, *where = name.split()
    old = [int(build[1:]) for build in where]
    if old != list(builds[: len(old)]) or len(old) == len(builds):
        return kind, None
    return kind, (old[-1], builds[len(old)])


def explain(outcome: Outcome, row: Mapping[str, Any], vocab: Vocab) -> None:
    """Finds the change behind each group of a vocabulary, and a group for each change that concerns it."""
    builds = opening(row)
    shown = set()
    for name, group in row["groups"].items():
        kind, bounds = bounds_of_group(name, builds)
        codes = [
            change.code
            for change in outcome.rows
            if meets(vocab, change.concerns) and kind in change.answers and bounds is not None
            and encloses(bounds, outcome.changes[change.code])
        ]  # fmt: skip
        shown.update(codes)
        for code in codes[:1]:
            outcome.explained[code] += group["number"]
        if not codes:
            sample = {key: str(value)[:200] for key, value in group["samples"][0].items()}
            outcome.problems.append(f"{row['target']}: {name}: {group['number']} not explained: {sample}")
    for change in outcome.rows:
        old, _ = outcome.changes[change.code]
        if meets(vocab, change.concerns) and change.code not in shown and min(builds) <= old:
            outcome.problems.append(f"{row['target']}: {change.code} concerns it, and nothing differs")


def encloses(wide: Bounds, narrow: Bounds) -> bool:
    """Whether both are the same place, of which one is known better."""
    return wide[0] <= narrow[0] and narrow[1] <= wide[1]


def bisect(builds: Sequence[int], is_old: Callable[[int], bool]) -> Bounds:
    """The last of the releases that `is_old`, 0 if there is none, and the next one."""
    low, high = -1, len(builds)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if is_old(builds[middle]) else (low, middle)
    return (builds[low] if low >= 0 else 0), builds[high]


def written(releases: Iterable[Mapping[str, Any]], outcome: Outcome, examples: Mapping[str, Any]) -> str:
    """The data file: a row of a table is a line."""
    rows: list[dict[str, Any]] = []
    for change in outcome.rows:
        old, new = outcome.changes[change.code]
        about: dict[str, Any] = {
            "code": change.code,
            "what": change.what,
            "old": old,
            "new": new,
            "concerns": dict(change.concerns),
        }
        rows.append(about | {"pull_requests": change.pull_requests, "example": examples[change.code]})
    parts = [
        '"note": "DO NOT EDIT: made by scripts/llama_cpp_releases.py, which says what this means"',
        _lines('"releases": [', map(_compact, releases), "]"),
        _lines('"models": {', (f"{_compact(name)}: {_compact(value)}" for name, value in outcome.models.items()), "}"),
        _lines('"pre": {', (f"{_compact(name)}: {_compact(value)}" for name, value in outcome.pre.items()), "}"),
        f'"default_ids": {_compact(outcome.default_ids)}',
        _lines('"changes": [', map(_compact, sorted(rows, key=lambda row: -row["new"])), "]"),
    ]
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _lines(head: str, rows: Iterable[str], end: str) -> str:
    return head + "\n" + ",\n".join(rows) + "\n" + end


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
