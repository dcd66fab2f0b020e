"""What a folder of a corpus holds, and how it was made: `manifest.json`, and while shards are missing, a journal.

The manifest is written twice: before a shard is made, with those that are there, and with all of them at the end.
Between the two, each finished shard adds a record to the journal, so that a run that is started again knows what is
done. Neither holds a thread or a machine, nor a time but those of the inputs: the same inputs and settings give the
same bytes.

A *run* makes what a list of inputs needs, however often it is stopped. If inputs were added, removed or changed since,
the next run begins. It keeps the shards of the runs before whose inputs are as they were.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from ..errors import CorpusError
from .folder import MANIFEST, Folder
from .packing import COUNTED
from .plan import Part, Range
from .settings import MOST_PACK, Settings
from .sources import Input
from .sums import add
from .typed import typed
from .writing.shard_files import Written

VERSION = 1
"""Of the manifest's own form."""

NAME = re.compile(r"\d{1,18}(-\d{1,18})?(\.[a-z.]+)?")
"""The name of a shard, or of one of its files."""

VALIDATION = "val-"
"""What the names of a shard's files for validation start with."""

VOCABULARY = "vocabulary.gguf"
"""The tokenizer without weights, so that `verify` needs no other file."""


TOTALS = ("documents", "tokens", "text_bytes", "input_bytes", "rejected", "cut", "dropped")
"""The figures of shards whose sums are in a manifest."""


@dataclass(slots=True)
class Shard:
    """What is known of a finished shard."""

    name: str
    run: int = 0
    """The number of the run that made it."""
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
    found: dict[str, tuple[int, str, str]] = field(default_factory=dict)
    """What models do not see of conversations, by code: how many, and the message about the first."""
    lengths: dict[int, int] = field(default_factory=dict)
    """Documents by length: under key k those with k significant bits, that is from 2**(k-1) to 2**k - 1 tokens."""
    sources: dict[int, tuple[int, int, int]] = field(default_factory=dict)
    """Documents, tokens and bytes of text by the input's number."""
    validation: tuple[int, int] = (0, 0)
    """Documents and tokens in its files for validation, which the other figures include."""
    packing: dict[str, int] = field(default_factory=dict)
    last_row: int = 0
    """Of a stream: the number of the last row read."""
    is_last: bool = True
    """Of a stream: whether it ends here."""
    texts: str = ""
    """A hash of the documents as they were read: `Hashes`."""

    def add(self, other: Shard) -> None:
        """Adds the figures of another one."""
        for name in (*TOTALS, "found", "lengths", "sources", "validation", "packing"):
            setattr(self, name, add(getattr(self, name), getattr(other, name)))

    @property
    def task(self) -> str:
        """The name of the task that makes it."""
        return self.name.partition("-")[0]

    @property
    def number(self) -> int:
        """Its place among the shards of its task."""
        return int(self.name.partition("-")[2] or 0)

    def check(self, place: str, manifest: Manifest) -> None:
        """Raises `ValueError` if no run can have made it."""
        numbers = [*self.sources, *(piece.input for piece in self.ranges)]
        if not all(number < len(manifest.inputs) for number in numbers):
            raise ValueError(f"{place} has inputs {numbers}, of {len(manifest.inputs)}")
        if not all(bits < 64 for bits in self.lengths):
            raise ValueError(f"{place}.lengths has keys {[*self.lengths]}")
        names = (self.name, *(file.name.removeprefix(VALIDATION) for file in self.files))
        if not all(map(NAME.fullmatch, names)):
            raise ValueError(f"{place} has a name that no shard has")
        counted = COUNTED if manifest.settings.writing.pack else ()
        if self.packing.keys() != {*counted}:
            raise ValueError(f"{place}.packing has the keys {[*self.packing]}, not {[*counted]}")


@dataclass(slots=True)
class TokenizerEntry:
    """What a manifest says of the tokenizer."""

    digest: str
    name: Any
    kind: str
    pre: str | None
    vocab_size: int
    adds_bos: bool
    adds_eos: bool
    bos_id: int | None
    eos_id: int | None
    chat_template_sha256: str | None = None


@dataclass(slots=True)
class Manifest:
    """A corpus: its inputs, its settings and its shards. The fields are those of the file."""

    manifest: int
    """`VERSION`."""
    ggtok: str
    tokenizer: TokenizerEntry
    settings: Settings
    inputs: list[Input]
    part: Part | None = None
    run: int = 0
    """The number of the latest run."""
    complete: bool = False
    totals: dict[str, int] = field(default_factory=dict)
    """Sums over all shards, once it is complete."""
    shards: list[Shard] = field(default_factory=list)

    @classmethod
    def read(cls, folder: Folder) -> Manifest | None:
        """The manifest of a folder with the shards of its journal. `None` if there is none.

        Raises `CorpusError` if it is damaged, or written by a later version.
        """
        if (data := folder.read(MANIFEST)) is None:
            return None
        try:
            document = typed(json.loads(data), dict[str, Any], "the manifest")
            if typed(document.get("manifest"), int, "manifest") > VERSION:
                raise ValueError("it was written by a later version of ggtok")
            manifest: Manifest = typed(document, cls, "the manifest")
            if (manifest.settings.writing.pack or 0) > MOST_PACK:
                raise ValueError(f"settings.writing.pack is more than {MOST_PACK}")
            for at, shard in enumerate(manifest.shards):
                shard.check(f"shards[{at}]", manifest)
        except (ValueError, RecursionError) as error:
            problem = f"this cannot be read as the manifest of a corpus: {error}"
            raise CorpusError(problem, source=str(folder.at(MANIFEST))) from error
        if not manifest.complete:
            _add_journal(folder, manifest)
        return manifest

    def write(self, folder: Folder) -> None:
        """Writes it, complete or not, over an existing one. The journal is for what comes after it."""
        folder.write(MANIFEST, self._lines())
        folder.clear_journal()

    def _lines(self) -> Iterator[bytes]:
        sums = self.sums()
        document = replace(self, totals={name: getattr(sums, name) for name in TOTALS if self.complete})
        yield _bytes(document, ("inputs", "shards"), indent=1).rpartition(b"\n}")[0]
        for name in ("inputs", "shards"):  # a line each
            yield f',\n "{name}": ['.encode()
            for at, entry in enumerate(getattr(self, name)):
                yield b",\n"[2 * (not at) :] + _bytes(entry, ("source",))[:-1]
            yield b"]"
        yield b"\n}\n"

    def add(self, folder: Folder, shard: Shard) -> None:
        """Notes a finished shard, whose files have their names already."""
        self.shards.append(shard)
        folder.record(shard.name, _bytes(shard))

    def sums(self) -> Shard:
        """The figures of all shards, added up."""
        sums = Shard("")
        for shard in self.shards:
            sums.add(shard)
        return sums

    def difference(self, other: Manifest) -> str | None:
        """The first thing besides inputs in which another run differs, as people name it. `None` if nothing does."""
        if self.ggtok != other.ggtok:
            return f"it was begun by ggtok {self.ggtok}, and this is {other.ggtok}"
        for key, what in (("digest", "tokenizer"), ("chat_template_sha256", "chat template")):
            if getattr(self.tokenizer, key) != getattr(other.tokenizer, key):
                return f"the {what} has changed since"
        if str(self.part) != str(other.part):
            return f"it is {self.part or 'all'} of the inputs, and this is {other.part or 'all'}"
        for name, was, now in _differences(plain(self.settings), plain(other.settings)):
            return f"the setting {name} has changed: it was {was!r}, and now it is {now!r}"
        return None


def plain(value: Any) -> Any:
    """A dataclass of this module as JSON has it: without tuples."""
    return json.loads(json.dumps(asdict(value)))


def _differences(before: dict[str, Any], after: dict[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """The settings that another run may not change, each as it was and as it is now."""
    for name, now in after.items():
        if isinstance(now, dict):
            yield from _differences(before[name], now)
        elif before[name] != now and name != "skip_bad":
            yield name, before[name], now


def _bytes(value: Manifest | Input | Shard, without: tuple[str, ...] = (), indent: int | None = None) -> bytes:
    """JSON, and a line end. Names may have bytes that are not UTF-8, which Python has as surrogates."""
    data = {name: getattr(value, name) for name in value.__slots__ if name not in without}
    return json.dumps(data, indent=indent, ensure_ascii=False, default=asdict).encode("utf-8", "surrogatepass") + b"\n"


def _add_journal(folder: Folder, manifest: Manifest) -> None:
    """Adds the shards of a journal to its manifest. Those of an earlier run are not in it any more."""
    shards, place = {shard.name: shard for shard in manifest.shards}, ""
    try:
        for place, data in folder.records():
            shard: Shard = typed(json.loads(data), Shard, place)
            shard.check(place, manifest)
            if shard.run == manifest.run:
                shards[shard.name] = shard  # one is made again if its files are gone
    except (ValueError, RecursionError) as error:
        problem = f"the journal is damaged ({place}): {error}"
        raise CorpusError(problem, source=str(folder.at(folder.journal))) from error
    manifest.shards = list(shards.values())
