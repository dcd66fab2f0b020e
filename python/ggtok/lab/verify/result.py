"""What a comparison found, for people and for programs."""

from __future__ import annotations

import csv
import io
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field

from ..releases import ReleaseChange
from .aborts import Abort
from .binding import Overrides
from .library import Library
from .report import Difference

MAX_ARGUMENT = 100_000
"""Characters of an argument: systems take at most 128 KiB."""


@dataclass(frozen=True)
class Comparison:
    """What `ggtok.verify` compared, and what differs.

    `print` shows a summary, `to_dict` returns everything for JSON.
    """

    library: Library
    """The llama.cpp that ggtok was compared with."""
    model: str | None
    """The path of the GGUF file; `None` if the tokenizer was not opened from one."""
    overrides: Overrides
    """The overrides with which both opened it."""
    seed: int
    """The seed of the made-up texts."""
    seconds: float
    """How long it took."""
    texts: Mapping[str, int]
    """How many texts were compared: `texts` that were given, `files`, `lines` of files, `made up`."""
    calls: Mapping[str, int]
    """How many answers were compared, by kind of call: `encode`, `decode`, `token`, …"""
    aborts: Mapping[Abort, int]
    """Why and how often llama.cpp ended its process; ggtok answered then, or raised a typed error."""
    num_differences: int
    """How many answers differ, and how many times llama.cpp ended for a reason that is not listed."""
    differences: list[Difference] = field(default_factory=list)
    """The first unexplained ones, and an example of the others, each with the smallest text that shows it."""
    known: Mapping[ReleaseChange, int] = field(default_factory=dict)
    """The changes of llama.cpp that explain differences, with how many. If two are about a call, it counts for both."""
    num_unknown: int = 0
    """How many differences no known change explains."""

    @property
    def agrees(self) -> bool:
        """Whether no answer differs."""
        return self.num_differences == 0

    def command(self, difference: Difference) -> str | None:
        """The command that repeats the call of a difference; `None` if it is too long for one."""
        if len(difference.token) > MAX_ARGUMENT:
            return None
        command = ["ggtok", "verify", "-m", self.model or "MODEL"]
        for key, value in self.overrides.items():
            command += ["--override-kv", _override(key, value)]
        return shlex.join([*command, "--libllama", self.library.path, "--repeat", difference.token])

    def lines(self) -> Iterator[str]:
        """The summary, line by line."""
        yield f"library      {self.library.path}"
        yield f"             {self.library}"
        yield f"model        {self.model or 'not a file'}{' with overrides' if self.overrides else ''}"
        yield f"texts        {_counts(self.texts)}{f' (seed {self.seed})' if self.texts.get('made up') else ''}"
        yield f"compared     {_counts(self.calls)}"
        for abort, count in self.aborts.items():
            yield f"aborted      {count:,} of llama.cpp: {abort}"
        for difference in self.differences:
            yield "known difference" if difference.changes else "difference"
            yield from (f"    {line}" for line in difference.lines())
            yield f"    repeat     {self.command(difference) or 'the text is too long for a command'}"
        yield self.verdict
        yield from (f"    {count:,} by {change.code}: {change}" for change, count in self.known.items())

    @property
    def verdict(self) -> str:
        """What it comes to, in a line."""
        number, texts = sum(self.calls.values()), sum(self.texts.values())
        answers = f"{number:,} answer{'s' * (number != 1)}"
        compared = f"{answers} · {texts:,} texts" if texts else answers
        release = self.library.release or "of an unknown release"
        if self.agrees:
            return f"✓ identical to llama.cpp {release} · {compared} · 0 differences"
        known, unknown = self.num_differences - self.num_unknown, self.num_unknown
        explained = f"{known:,} explained by known changes of llama.cpp, {unknown:,} unexplained"
        return f"✗ {self.num_differences:,} of {answers} differ from llama.cpp {release}: {explained}"

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def to_dict(self) -> dict[str, object]:
        """For JSON."""
        library = asdict(self.library)
        aborts = [{**abort._asdict(), "count": count} for abort, count in self.aborts.items()]
        known = [{**asdict(change), "count": count} for change, count in self.known.items()]
        differences = [{**difference.to_dict(), "command": self.command(difference)} for difference in self.differences]
        return {
            **{"library": library, "model": self.model, "overrides": dict(self.overrides), "seed": self.seed},
            **{"seconds": round(self.seconds, 3), "texts": dict(self.texts), "calls": dict(self.calls)},
            **{"aborts": aborts, "num_differences": self.num_differences, "num_unknown": self.num_unknown},
            **{"known": known, "differences": differences},
        }


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in counts.items() if count) or "none"


def _override(key: str, value: str | int | float | bool) -> str:
    """An override as `--override-kv` takes it."""
    written = str(value).lower() if isinstance(value, bool) else str(value)
    row = io.StringIO()
    csv.writer(row, lineterminator="").writerow([f"{key}={type(value).__name__}:{written}"])
    return row.getvalue()
