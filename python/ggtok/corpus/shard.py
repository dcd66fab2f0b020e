"""Makes the shards of one task: encodes the documents, shuffles and packs them, and writes the files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ..errors import CorpusError
from ..tokenizer.base import BaseTokenizer
from .blocks import IDS, INPUT, MASK, ROW, SOURCE, BadRow, Block, num_tokens
from .documents import Documents, Watch, parted
from .folder import Folder
from .grouping import Groups, text_sizes
from .lists import in_pieces
from .manifest import VALIDATION, Shard
from .packages import np, pa
from .packing import Packer
from .plan import Part, Task
from .settings import Settings
from .shuffling import Shuffler
from .sources import Input
from .sums import add
from .table import encode_block
from .writing import ShardWriter, writer_of
from .writing.shard_files import ShardFiles

REJECTED = ".rejected.jsonl"
"""The ending of the file with the rows of a shard that are not documents."""


@dataclass(frozen=True)
class Job:
    """What is the same for all tasks."""

    folder: Folder
    inputs: list[Input]
    settings: Settings
    tokenizer: BaseTokenizer
    threads: int
    """Threads that encode, per task."""
    done: dict[str, Shard] = field(default_factory=dict)
    """The finished shards of tasks that have not ended, by their names."""
    run: int = 0
    """The number of this run."""
    part: Part | None = None
    """Which part of all inputs this is."""

    def check_unchanged(self, task: Task) -> None:
        """Raises `CorpusError` if an input has changed since it was surveyed."""
        for input in (self.inputs[number] for number in dict.fromkeys(piece.input for piece in task.ranges)):
            if input.size is not None and input.status() != (input.size, input.time):
                raise CorpusError("it has changed during the run", source=input.name)


def make_shards(job: Job, task: Task, watch: Watch) -> Iterator[Shard]:
    """Makes the shards of a task that are not done, one after the other.

    Raises `CorpusError` for a bad row (unless they are skipped), a damaged input, or a file that cannot be written. The
    files of the shard in progress are deleted then.
    """
    documents = Documents(job.inputs, task, job.settings, watch)
    number = 0
    while number == 0 or documents.has_more:
        name = task.shard(number)
        number += 1
        if (done := job.done.get(name)) is not None:
            if not documents.repeat(done):
                raise documents.changed(done)
            continue
        shard = Shard(name, job.run, list(task.ranges))
        with ShardFiles(job.folder.local, name) as files:
            _write(job, documents.of_shard(shard), shard, files, watch)
            job.check_unchanged(task)
            shard.files = files.commit()
        job.folder.add(shard.files)
        yield shard


def _write(job: Job, blocks: Iterator[Block], shard: Shard, files: ShardFiles, watch: Watch) -> None:
    """Writes the documents of a shard in their final order, and adds up their figures."""
    settings, rejected = job.settings, None
    stages = stages_of(settings, files)
    for block in blocks:
        encoded = encode_block(block, job.tokenizer, settings.encoding, job.threads)
        for bad in encoded.bad:
            if not settings.skip_bad:
                raise CorpusError(bad.reason, source=bad.source, row=bad.row)
            rejected = rejected or files.open(REJECTED)
            rejected.write(_line(bad))
        parts = parted(encoded.table, settings)
        if encoded.table.num_rows or not encoded.bad:
            for stage, table in zip(stages, parts, strict=True):
                stage.push(selected(table, settings, job.inputs))
        more = _figures(encoded, settings)
        for table in parts[1:]:
            more.validation = table.num_rows, int(num_tokens(table.column(IDS)).sum())
        shard.add(more)
        watch((more.input_bytes, more.documents, more.tokens))
    for stage in stages:
        add(shard.packing, stage.flush())
        stage.sink.close()
    shard.lengths = dict(sorted(shard.lengths.items()))


class Stages:
    """What documents pass on the way to a writer: splitting, shuffling and packing, if they are wanted."""

    def __init__(self, settings: Settings, shard: str, sink: ShardWriter) -> None:
        self._encoding, self.sink, self._write = settings.encoding, sink, self._pass
        self.num_rows = 0
        """How many rows have been written."""
        self._packer: Packer | None = None
        self._stages: list[Groups] = []
        if settings.writing.pack is not None and settings.writing.pad_id is not None:
            self._packer = Packer(settings.writing.pack, settings.writing.pad_id, self._write)
            self._stages.append(self._packer)
            self._write = self._packer.push
        if settings.shuffle is not None:
            self._stages.insert(0, Shuffler(settings.shuffle, shard, self._write))
            self._write = self._stages[0].push

    def push(self, table: pa.Table) -> None:
        """Takes documents, and writes those whose place is known."""
        if self._encoding.too_long == "split" and self._encoding.max_length is not None:
            table = in_pieces(table, self._encoding.max_length, self._encoding.overlap)
        self._write(table)

    def flush(self) -> dict[str, int]:
        """Writes the others. Returns what the packer reports, if there is one."""
        for stage in self._stages:
            stage.flush()
        return {} if self._packer is None else self._packer.report

    def _pass(self, table: pa.Table) -> None:
        self.num_rows += table.num_rows
        self.sink.write(table)


def stages_of(settings: Settings, files: ShardFiles) -> list[Stages]:
    """The stages of a shard's documents to train with, and of those for validation if there is a share for it."""
    writer = writer_of(settings.writing.format)
    names = [files.name, VALIDATION + files.name] if settings.validation else [files.name]
    return [Stages(settings, name, writer(files.named(name), settings.writing)) for name in names]


def selected(table: pa.Table, settings: Settings, inputs: list[Input]) -> pa.Table:
    """The columns that a writer needs. Texts are left behind unless they are carried over."""
    writing = settings.writing
    wanted = {IDS, MASK, *writing.columns, writing.id_column}
    if writer_of(writing.format).has_index:
        numbers = table.column(INPUT).combine_chunks().dictionary_encode()
        names = pa.array([inputs[number].name for number in numbers.dictionary.to_pylist()], pa.string())
        table = table.append_column(SOURCE, names.take(numbers.indices))
        wanted |= {ROW, SOURCE}
    return table.select([name for name in table.column_names if name in wanted])


def _figures(encoded: Block, settings: Settings) -> Shard:
    """The figures of documents, like those of a shard with these alone."""
    lengths = num_tokens(encoded.table.column(IDS))
    sizes = text_sizes(encoded.table.column(settings.reading.field))
    # The exponent of a float is its number of significant bits.
    of_bits = np.bincount(np.frexp(lengths)[1]).tolist()
    numbers, places = np.unique(encoded.table.column(INPUT).to_numpy(), return_inverse=True)
    of_inputs = (np.bincount(places, weights, len(numbers)).astype(int).tolist() for weights in (None, lengths, sizes))
    sources: Any = zip(numbers.tolist(), zip(*of_inputs, strict=True), strict=True)
    figures = Shard("", documents=len(lengths), tokens=int(lengths.sum()), text_bytes=int(sizes.sum()))
    figures.input_bytes, figures.rejected, figures.found = encoded.num_bytes, len(encoded.bad), encoded.found
    counts = (0, encoded.num_long) if settings.encoding.too_long == "drop" else (encoded.num_long, 0)
    figures.cut, figures.dropped = counts
    figures.lengths = {bits: documents for bits, documents in enumerate(of_bits) if documents}
    figures.sources = dict(sources)
    return figures


def _line(bad: BadRow) -> bytes:
    """A rejected row as a line of JSON. Bytes that are not UTF-8 are written as `\\xff`."""
    data = bad.data.decode("utf-8", "backslashreplace")
    row = {"source": bad.source, "row": bad.row, "reason": bad.reason, "data": data}
    return json.dumps(row, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n"
