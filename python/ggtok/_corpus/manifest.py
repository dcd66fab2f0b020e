"""What a folder of a corpus holds, and how it was made: `manifest.json`, and while shards are missing, a journal.

The manifest is written twice: without shards before the first one is made, and with all of them at the end. Between the
two, each finished shard adds a line to `journal.jsonl`, so that a run that is started again knows what is done. Neither
holds a time, a thread or a machine: the same inputs and settings give the same bytes.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from .._files import replacing
from ..errors import CorpusError
from .plan import Range
from .writing.files import Written, explained, sync_folder

VERSION = 1
"""Of the manifest's own form."""

MANIFEST, JOURNAL, LOCK = "manifest.json", "journal.jsonl", ".lock"


@dataclass(slots=True)
class Shard:
    """What is known of a finished shard."""

    name: str
    ranges: list[Range] = field(default_factory=list)
    """What it was made from. A stream's shards all have the whole stream."""
    files: list[Written] = field(default_factory=list)
    documents: int = 0
    tokens: int = 0
    text_bytes: int = 0
    """UTF-8 bytes of the texts."""
    input_bytes: int = 0
    """Bytes of the input files that were read for it."""
    rejected: int = 0
    """Rows that are not documents."""
    cut: int = 0
    dropped: int = 0
    """Documents longer than the greatest length."""
    found: dict[str, list[Any]] = field(default_factory=dict)
    """What models do not see of conversations, by its code: how many, and what is said of the first."""
    lengths: dict[int, int] = field(default_factory=dict)
    """Documents by length: under key k those with k significant bits, that is from 2**(k-1) to 2**k - 1 tokens."""
    sources: dict[int, list[int]] = field(default_factory=dict)
    """Documents, tokens and bytes of text by the input's number."""
    packing: dict[str, int] = field(default_factory=dict)
    last_row: int = 0
    """Of a stream: the number of the last row read."""
    is_last: bool = True
    """Of a stream: whether it ends here."""
    texts: str = ""
    """SHA-256 of the texts, if they came from standard input, which has no hash of its own."""

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Shard:
        shard = cls(**data)
        shard.ranges = [Range(**piece) for piece in data["ranges"]]
        shard.files = [Written(**file) for file in data["files"]]
        for name in ("lengths", "sources"):  # JSON has no integer keys
            setattr(shard, name, {int(key): value for key, value in data[name].items()})
        return shard


@dataclass(slots=True)
class Manifest:
    """A corpus: what it is made from, by which settings, and its shards."""

    head: dict[str, Any]
    """The version, the tokenizer, the settings and the inputs: what must not change."""
    shards: list[Shard] = field(default_factory=list)
    is_complete: bool = False

    @classmethod
    def read(cls, folder: Path) -> Manifest | None:
        """The manifest of a folder with the shards of its journal. `None` if there is none.

        Raises `CorpusError` if it is damaged, or written by a later version.
        """
        path = folder / MANIFEST
        try:
            head = json.loads(path.read_bytes())
            if head.get("manifest", 0) > VERSION:
                raise CorpusError("it was written by a later version of ggtok", source=str(path))
            shards = [Shard.from_json(shard) for shard in head.pop("shards")]
            is_complete = head.pop("complete")
            head.pop("totals")
        except FileNotFoundError:
            return None
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            if isinstance(error, CorpusError):
                raise
            raise CorpusError(f"this is not the manifest of a corpus: {error!r}", source=str(path)) from error
        return cls(head, shards if is_complete else _journal(folder / JOURNAL), is_complete)

    def write(self, folder: Path) -> None:
        """Writes it, complete or not, over the one that is there."""
        shards = [asdict(shard) for shard in self.shards] if self.is_complete else []
        totals = self.totals() if self.is_complete else {}
        document = {**self.head, "complete": self.is_complete, "totals": totals, "shards": shards}
        with explained(MANIFEST), replacing(str(folder / MANIFEST)) as file:
            file.write(json.dumps(document, indent=1, ensure_ascii=False).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        sync_folder(folder)
        if self.is_complete:
            (folder / JOURNAL).unlink(missing_ok=True)

    def add(self, folder: Path, shard: Shard) -> None:
        """Notes a finished shard, whose files have their names already."""
        self.shards.append(shard)
        _append(folder, [shard])

    def reopen(self, folder: Path) -> None:
        """Makes a complete manifest one of the shards that are still there."""
        _append(folder, self.shards)
        self.write(folder)

    def totals(self) -> dict[str, int]:
        """Sums over all shards."""
        names = ("documents", "tokens", "text_bytes", "input_bytes", "rejected", "cut", "dropped")
        return {name: sum(getattr(shard, name) for shard in self.shards) for name in names}

    def difference(self, head: dict[str, Any]) -> str | None:
        """The first thing in which another run differs from this one, as people name it. `None` if nothing does."""
        if self.head["ggtok"] != head["ggtok"]:
            return f"it was begun by ggtok {self.head['ggtok']}, and this is {head['ggtok']}"
        for key, what in (("digest", "tokenizer"), ("chat_template_sha256", "chat template")):
            if self.head["tokenizer"].get(key) != head["tokenizer"].get(key):
                return f"the {what} has changed since"
        before, after = ({input["name"]: input for input in each["inputs"]} for each in (self.head, head))
        for name, input in before.items():
            if name not in after:
                return f"the input {name} is missing now"
            if input != after[name]:
                return f"the input {name} has changed since"
        for name in after:
            if name not in before:
                return f"the input {name} was not there then"
        if list(before) != list(after):
            return "the inputs are in another order now"
        was, now = dict(_flat(self.head["settings"])), dict(_flat(head["settings"]))
        for place in now:
            if (then := was.get(place)) != now[place]:
                return f"the setting {place[-1]} has changed: it was {then!r}, and now it is {now[place]!r}"
        return None


def _flat(settings: dict[str, Any], *groups: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Settings by their groups and names."""
    for key, value in settings.items():
        if isinstance(value, dict):
            yield from _flat(value, *groups, key)
        else:
            yield (*groups, key), value


def _append(folder: Path, shards: list[Shard]) -> None:
    """Adds shards to the journal."""
    with explained(JOURNAL), open(folder / JOURNAL, "ab") as file:
        file.writelines(json.dumps(asdict(shard), ensure_ascii=False).encode() + b"\n" for shard in shards)
        file.flush()
        os.fsync(file.fileno())


def _journal(path: Path) -> list[Shard]:
    """The shards of a journal. A last line that was cut short counts as absent, and is removed."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return []
    whole = data[: data.rfind(b"\n") + 1]
    if len(whole) < len(data):
        os.truncate(path, len(whole))
    try:
        shards = [Shard.from_json(json.loads(line)) for line in whole.splitlines()]
    except (ValueError, TypeError, KeyError) as error:
        raise CorpusError(f"the journal is damaged: {error!r}", source=str(path)) from error
    return list({shard.name: shard for shard in shards}.values())  # one is made again if its files are gone
