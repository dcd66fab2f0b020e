"""What a folder of a corpus holds, for people: sums, lengths, and bytes per token by source."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import CorpusError
from .manifest import MANIFEST, Manifest


class Source(NamedTuple):
    """The documents of one input."""

    name: str
    documents: int
    tokens: int
    text_bytes: int

    @property
    def bytes_per_token(self) -> float:
        """Bytes of text per token; 0 if there are no tokens."""
        return self.text_bytes / self.tokens if self.tokens else 0.0


class Lengths(NamedTuple):
    """The documents whose number of tokens is in a range."""

    least: int
    most: int
    documents: int


class Info:
    """A corpus in a folder, as `build` and `info` return it. Its numbers are those of the finished shards.

    >>> import ggtok, pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "in.jsonl").write_text('{"text": "one text"}\\n{"text": "What is LoRA?"}\\n')
    >>> info = ggtok.corpus.build([folder / "in.jsonl"], folder / "out", tokenizer="bpe", format="parquet")
    >>> info.is_complete, info.documents, info.tokens, info.lengths
    (True, 2, 8, [Lengths(least=2, most=3, documents=1), Lengths(least=4, most=7, documents=1)])
    """

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        self.folder = folder
        self._manifest = manifest
        totals = manifest.totals()
        self.is_complete = manifest.is_complete
        self.format: str = manifest.head["settings"]["writing"]["format"]
        self.tokenizer: dict[str, Any] = manifest.head["tokenizer"]
        """The tokenizer's digest, name, kind and size, and which special tokens were added."""
        self.settings: dict[str, Any] = manifest.head["settings"]
        self.shards = len(manifest.shards)
        """How many are finished."""
        self.documents = totals["documents"]
        self.tokens = totals["tokens"]
        self.text_bytes = totals["text_bytes"]
        """UTF-8 bytes of all texts."""
        self.rejected = totals["rejected"]
        """Rows that are not documents."""
        self.cut = totals["cut"]
        self.dropped = totals["dropped"]
        """Documents over `max_length`."""

    @property
    def files(self) -> list[Path]:
        """The files of all finished shards, in order."""
        return [self.folder / file.name for shard in self._manifest.shards for file in shard.files]

    @property
    def lengths(self) -> list[Lengths]:
        """How many documents have how many tokens: 0, 1, 2 to 3, 4 to 7, and so on by powers of two."""
        sums: dict[int, int] = {}
        for shard in self._manifest.shards:
            for bits, documents in shard.lengths.items():
                sums[bits] = sums.get(bits, 0) + documents
        return [Lengths((1 << bits) >> 1, (1 << bits) - 1, documents) for bits, documents in sorted(sums.items())]

    @property
    def sources(self) -> list[Source]:
        """The inputs in their order, those without documents too."""
        sums = [[0, 0, 0] for _ in self._manifest.head["inputs"]]
        for shard in self._manifest.shards:
            for number, source in shard.sources.items():
                sums[number] = [before + more for before, more in zip(sums[number], source, strict=True)]
        names = [input["name"] for input in self._manifest.head["inputs"]]
        return [Source(name, *each) for name, each in zip(names, sums, strict=True)]

    @property
    def packing(self) -> dict[str, int]:
        """Of packed sequences: sums of what the packer counts. Empty without packing."""
        sums: dict[str, int] = {}
        for shard in self._manifest.shards:
            for name, value in shard.packing.items():
                sums[name] = sums.get(name, 0) + value
        return sums

    def to_dict(self) -> dict[str, Any]:
        """All of it as JSON can hold it."""
        names = ("is_complete", "format", "shards", "documents", "tokens", "text_bytes", "rejected", "cut", "dropped")
        return {
            "folder": str(self.folder),
            **{name: getattr(self, name) for name in names},
            "lengths": [each._asdict() for each in self.lengths],
            "sources": [{**each._asdict(), "bytes_per_token": each.bytes_per_token} for each in self.sources],
            "packing": self.packing,
            "tokenizer": self.tokenizer,
            "settings": self.settings,
        }

    def to_html(self, path: str | os.PathLike[str]) -> None:
        """Writes a page with the numbers and the histogram of lengths. It needs nothing else. Light and dark.

        Raises `OSError` if it cannot be written.
        """
        from ..tokenizer.files import write
        from .page import page

        write(path, page(self).encode("utf-8", "replace"))

    def _repr_html_(self) -> str:
        """For notebooks: the sums, and the largest sources."""
        from .page import fragment

        return fragment(self)

    def __repr__(self) -> str:
        state = "" if self.is_complete else ", not complete"
        sums = f"documents={self.documents}, tokens={self.tokens}, shards={self.shards}"
        return f"<ggtok.corpus.Info format={self.format!r}, {sums}{state}>"


def info(folder: str | os.PathLike[str]) -> Info:
    """What a folder of a corpus holds, complete or not. Reads its manifest alone.

    Raises `CorpusError` if the folder holds no corpus.
    """
    return Info(Path(folder), manifest_of(Path(folder)))


def manifest_of(folder: Path) -> Manifest:
    """The manifest of a corpus. Raises `CorpusError` if there is none."""
    if (manifest := Manifest.read(folder)) is None:
        raise CorpusError(f"there is no corpus here: it has no {MANIFEST}", source=str(folder))
    return manifest
