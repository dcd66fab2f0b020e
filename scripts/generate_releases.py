"""The lists of docs/releases.md: what changed in llama.cpp, and which names are new in which release. `docs/conf.py`
puts them into the page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ggtok.lab.releases import builds, data

CONDITIONS = {
    **{"kind": "of kind", "pre": "with the pre-tokenizer", "scores": "with scores of type"},
    "found": "with a token of one of these texts, to which the file gives no role:",
    "marked": "in which one of these is not declared as a control token:",
}
NAMES = {
    **{"pre-tokenizer": "pre-tokenizers", "tokenizer": "tokenizers", "architecture": "architectures"},
    "tensor type": "types of tensors",
}
MOST = 6
"""Alternatives that are listed."""


def pages() -> dict[str, str]:
    """The page below its introduction."""
    oldest, *later = builds()
    rows = "\n".join(f"| b{build} | {names} |" for build in reversed(later) if (names := new_in(build)))
    measured = ", ".join(f"b{build}" for build in builds())
    text = f"""\
## What changed

{"".join(map(about, data()["changes"]))}
## Which release opens a file first

These are values of `tokenizer.ggml.pre`, `tokenizer.ggml.model` and `general.architecture`, and ggml's numbers for
types of tensors. All others that any release opens are as old as b{oldest}.

| since | new |
|---|---|
{rows}

Since b{data()["default_ids"]}, the default id of a special token may be outside the vocabulary.

## What was measured

{len(builds())} releases: {measured}.
"""
    return {"releases": text}


def new_in(build: int) -> str:
    """What a release was the first to open."""
    rows = ((noun, data()[table].get(str(build), ())) for table, noun in NAMES.items())
    return "; ".join(f"{noun} {', '.join(f'`{name}`' for name in names)}" for noun, names in rows if names)


def about(row: dict[str, Any]) -> str:
    """One change: when it came, whom it concerns, and an example."""
    numbers = ", ".join(
        f"[#{number}](https://github.com/ggml-org/llama.cpp/pull/{number})" for number in row["pull_requests"]
    )
    last = max(build for build in builds() if build < row["build"])
    return f"""\
### {row["code"]}

Between b{last} and b{row["build"]}{f" ({numbers})" if numbers else ""}: {row["what"]}. It concerns vocabularies
{" ".join(concerns(row["concerns"]))}.

```text
{row["example"]}
```

"""


def concerns(conditions: dict[str, Any]) -> Iterator[str]:
    """Whom a change concerns, in words."""
    for name, wanted in conditions.items():
        if name == "settings":
            yield "with " + " or ".join(f"`{flag}` {str(value).lower()}" for flag, value in wanted)
        else:
            more = f" or {len(wanted) - MOST} more" if len(wanted) > MOST else ""
            yield f"{CONDITIONS[name]} {' or '.join(f'`{value}`' for value in wanted[:MOST])}{more}"
