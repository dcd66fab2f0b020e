"""What a folder of a corpus holds, for people: sums, lengths, and bytes per token by source."""

from __future__ import annotations

import os
from collections import Counter
from typing import Any, NamedTuple

from ..errors import CorpusError
from ..tokenizer.notebook import table
from .folder import MANIFEST, Folder, folder_of
from .manifest import Manifest, plain
from .sources import path_at

WIDTH = 24
"""Characters of the longest bar."""

LENGTH_HEAD = ("tokens", "documents", "")
SOURCE_HEAD = ("source", "documents", "tokens", "% of tokens", "bytes per token")


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

    def __init__(self, folder: Folder, manifest: Manifest) -> None:
        self.folder = folder.at()
        """Its path, or a URL."""
        self._folder, self._manifest = folder, manifest
        sums = self._sums = manifest.sums()
        self.is_complete = manifest.complete
        self.part = manifest.part
        """Which part of all inputs it is; `None` if it is all."""
        self.format: str = manifest.settings.writing.format
        self.tokenizer: dict[str, Any] = plain(manifest.tokenizer)
        """The tokenizer's digest, name, kind and size, and which special tokens were added."""
        self.settings: dict[str, Any] = plain(manifest.settings)
        self.shards = len(manifest.shards)
        """How many are finished."""
        self.documents = sums.documents
        self.tokens = sums.tokens
        self.text_bytes = sums.text_bytes
        """UTF-8 bytes of all texts."""
        self.rejected = sums.rejected
        """Rows that are not documents."""
        self.cut = sums.cut
        self.validation = dict(zip(("documents", "tokens"), sums.validation, strict=True))
        """Documents and tokens in the files for validation, `val-*`, which are among all."""
        self.dropped = sums.dropped
        """Documents over `max_length`."""

    @property
    def files(self) -> list[Any]:
        """The files of all finished shards, in order: paths, or URLs."""
        return [self._folder.at(file.name) for shard in self._manifest.shards for file in shard.files]

    @property
    def inputs(self) -> list[str]:
        """The paths of all inputs."""
        return [path_at(self.folder, input.path) for input in self._manifest.inputs]

    @property
    def lengths(self) -> list[Lengths]:
        """How many documents have how many tokens: 0, 1, 2 to 3, 4 to 7, and so on by powers of two."""
        lengths = sorted(self._sums.lengths.items())
        return [Lengths((1 << bits) >> 1, (1 << bits) - 1, documents) for bits, documents in lengths]

    @property
    def sources(self) -> list[Source]:
        """The inputs in their order, those without documents too."""
        sums = self._sums.sources
        return [Source(input.name, *sums.get(at, (0, 0, 0))) for at, input in enumerate(self._manifest.inputs)]

    @property
    def packing(self) -> dict[str, int]:
        """Of packed sequences: sums of what the packer counts. Empty without packing."""
        return dict(self._sums.packing)

    def to_dict(self) -> dict[str, Any]:
        """All of it as JSON can hold it."""
        names = ("is_complete", "format", "shards", "documents", "tokens", "text_bytes", "rejected", "cut", "dropped")
        return {
            "folder": str(self.folder),
            **{name: getattr(self, name) for name in names},
            "lengths": [each._asdict() for each in self.lengths],
            "sources": [{**each._asdict(), "bytes_per_token": each.bytes_per_token} for each in self.sources],
            "packing": self.packing,
            "validation": self.validation,
            "tokenizer": self.tokenizer,
            "settings": self.settings,
        }

    def _repr_html_(self) -> str:
        """For notebooks: the sums, and the largest sources."""
        return table(("corpus", ""), summary(self), texts=2) + table(SOURCE_HEAD, source_rows(self, 10), texts=1)

    def __repr__(self) -> str:
        state = "" if self.is_complete else ", not complete"
        sums = f"documents={self.documents}, tokens={self.tokens}, shards={self.shards}"
        return f"<ggtok.corpus.Info format={self.format!r}, {sums}{state}>"


def summary(info: Info) -> list[tuple[str, str]]:
    """The sums of a corpus, by name."""
    tokenizer, packing = info.tokenizer, info.packing
    added = [name for name, is_added in (("BOS", tokenizer["adds_bos"]), ("EOS", tokenizer["adds_eos"])) if is_added]
    name = tokenizer["name"] or "without a name"
    rows = [
        ("format", info.format),
        ("tokenizer", f"{name} ({tokenizer['kind']}, {tokenizer['vocab_size']:,} tokens)"),
        ("added", " and ".join(added) or "neither BOS nor EOS"),
        ("shards", f"{info.shards:,}" + ("" if info.is_complete else ", not complete")),
        ("documents", f"{info.documents:,}"),
        ("tokens", f"{info.tokens:,}"),
        ("bytes of text", f"{info.text_bytes:,}"),
        ("bytes per token", _ratio(info.text_bytes, info.tokens)),
        ("tokens per document", _ratio(info.tokens, info.documents)),
    ]
    lost = {"rejected rows": info.rejected, "cut": info.cut, "dropped as too long": info.dropped}
    rows += [(label, f"{number:,}") for label, number in lost.items() if number]
    if info.settings["validation"]:
        rows.append(("for validation", "{documents:,} documents, {tokens:,} tokens".format(**info.validation)))
    if packing:
        size = packing["num_tokens"] + packing["num_padding"]
        rows.append(("sequences", f"{packing['num_sequences']:,} of {info.settings['writing']['pack']:,} tokens"))
        rows.append(("padding", f"{packing['num_padding']:,} tokens, {packing['num_padding'] / max(size, 1):.2%}"))
        rows.append(("cut into sequences", f"{packing['num_cut']:,} documents"))
    return rows


def _ratio(a: int, b: int) -> str:
    return f"{a / b:,.2f}" if b else "-"


def length_rows(info: Info) -> list[tuple[str, str, str]]:
    """The histogram of lengths: ranges of tokens, documents, and bars."""
    most = max((each.documents for each in info.lengths), default=1)
    return [
        (
            f"{each.least:,}" if each.least == each.most else f"{each.least:,} to {each.most:,}",
            f"{each.documents:,}",
            "\u2588" * round(WIDTH * each.documents / most),
        )
        for each in info.lengths
    ]


def source_rows(info: Info, most: int) -> list[tuple[str, ...]]:
    """The sources with most text: name, documents, tokens, their share of all, and bytes per token."""
    ordered = sorted(info.sources, key=lambda source: -source.text_bytes)
    rows, others = ordered[:most], ordered[most:]
    if others:
        rows.append(Source(f"and {len(others):,} more", *map(sum, zip(*(each[1:] for each in others), strict=True))))
    return [
        (name, f"{n:,}", f"{num:,}", _ratio(100 * num, info.tokens), _ratio(size, num)) for name, n, num, size in rows
    ]


def info(folder: str | os.PathLike[str]) -> Info:
    """What a folder of a corpus holds, complete or not, by its path or URL. Reads its manifest alone.

    Raises `CorpusError` if the folder holds no corpus.
    """
    place = folder_of(os.fspath(folder))
    return Info(place, manifest_of(place))


def manifest_of(folder: Folder) -> Manifest:
    """The manifest of a corpus. Raises `CorpusError` if there is none."""
    if (manifest := Manifest.read(folder)) is None:
        raise CorpusError(f"this is not a corpus: it has no {MANIFEST}", source=str(folder.at()))
    return manifest


def gaps(found: list[Info]) -> list[str]:
    """Why several folders are not one corpus: what is missing, there twice, or different.

    The parts of a whole lack nothing if they are all there, are complete, and saw the same names of inputs.
    """
    first, parts = found[0], [each.part for each in found if each.part is not None]
    problems = [f"{each.folder} is not complete" for each in found if not each.is_complete]
    for each in found:
        same = each.settings if parts else each.settings | {"shard_size": first.settings["shard_size"]}
        if (each.tokenizer, same) != (first.tokenizer, first.settings):
            problems.append(f"{each.folder} has another tokenizer or other settings than {first.folder}")
    if len({(part.of, part.inputs, part.sha256) for part in parts}) > 1 or 0 < len(parts) < len(found):
        problems.append("the folders are not parts of the same number of parts of the same inputs")
    missing = {*range(1, parts[0].of + 1 if parts else 0)} - {part.number for part in parts}
    problems += [f"part {number} of {parts[0].of} is missing" for number in sorted(missing)]
    of_folders = [[str(each.part)] if parts else map(os.path.normpath, each.inputs) for each in found]
    names = Counter(name for names in of_folders for name in names)
    return problems + [f"{name} is in {count} folders" for name, count in names.items() if count > 1]
