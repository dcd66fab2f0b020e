"""Makes the shards of one task: encodes the documents, shuffles and packs them, and writes the files."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from ..errors import CorpusError
from ..tokenizer.base import BaseTokenizer
from .blocks import IDS, INPUT, MASK, ROW, SOURCE, BadRow, Block, num_tokens
from .documents import Documents, Watch, parted
from .folder import Folder
from .grouping import text_sizes
from .manifest import VALIDATION, Shard
from .packages import np, pa
from .packing import Packer
from .pieces import in_pieces
from .plan import Part, Task
from .settings import Settings
from .shuffling import Shuffler
from .sources import Input
from .sums import add
from .table import Encoded, encode_block
from .writing import writer_of
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
    """The shards of earlier runs by their names."""
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
    names = prefixes(shard.name, settings)
    writers = [writer_of(settings.writing.format)(files.named(name), settings.writing) for name in names]
    stages = [Stages(settings, name, writer.write) for name, writer in zip(names, writers, strict=True)]
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
        more = _figures(encoded, settings.reading.field)
        more.input_bytes, more.rejected = block.num_bytes, len(encoded.bad)
        for table in parts[1:]:
            more.validation = table.num_rows, int(num_tokens(table.column(IDS)).sum())
        shard.add(more)
        watch((more.input_bytes, more.documents, more.tokens))
    for stage, writer in zip(stages, writers, strict=True):
        add(shard.packing, stage.finish())
        writer.close()
    shard.lengths = dict(sorted(shard.lengths.items()))


def prefixes(shard: str, settings: Settings) -> list[str]:
    """What the names of a shard's files start with: those to train with, and those for validation if there are any."""
    return [shard, VALIDATION + shard] if settings.validation else [shard]


class Stages:
    """What documents pass between encoding and writing: splitting, shuffling and packing, if they are wanted."""

    def __init__(self, settings: Settings, shard: str, write: Callable[[pa.Table], None]) -> None:
        self._write, self._encoding = write, settings.encoding
        length, pad_id = settings.writing.pack, settings.writing.pad_id
        shuffler = None if settings.shuffle is None else Shuffler(settings.shuffle, shard)
        self._packer = None if length is None or pad_id is None else Packer(length, pad_id)
        self._stages = [stage for stage in (shuffler, self._packer) if stage is not None]

    def push(self, table: pa.Table) -> None:
        """Takes documents, and writes those whose place is known."""
        if self._encoding.too_long == "split" and self._encoding.max_length is not None:
            table = in_pieces(table, self._encoding.max_length, self._encoding.overlap)
        self._pass([table], self._stages)

    def _pass(self, tables: Iterable[pa.Table], stages: list[Shuffler | Packer]) -> None:
        for stage in stages:
            tables = chain.from_iterable(map(stage.push, tables))
        for table in tables:
            self._write(table)

    def finish(self) -> dict[str, int]:
        """Writes the others. Returns what the packer reports, if there is one."""
        for number, stage in enumerate(self._stages, 1):
            self._pass(stage.flush(), self._stages[number:])
        return {} if self._packer is None else self._packer.report


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


def _figures(encoded: Encoded, field: str) -> Shard:
    """The figures of documents, like those of a shard with these alone."""
    lengths, sizes = num_tokens(encoded.table.column(IDS)), text_sizes(encoded.table.column(field))
    # The exponent of a float is its number of significant bits.
    of_bits = np.bincount(np.frexp(lengths)[1]).tolist()
    numbers, places = np.unique(encoded.table.column(INPUT).to_numpy(), return_inverse=True)
    of_inputs = (np.bincount(places, weights, len(numbers)).astype(int).tolist() for weights in (None, lengths, sizes))
    sources: Any = zip(numbers.tolist(), zip(*of_inputs, strict=True), strict=True)
    figures = Shard("", documents=len(lengths), tokens=int(lengths.sum()), text_bytes=int(sizes.sum()))
    figures.cut, figures.dropped, figures.found = encoded.num_cut, encoded.num_dropped, encoded.found
    figures.lengths = {bits: documents for bits, documents in enumerate(of_bits) if documents}
    figures.sources = dict(sources)
    return figures


def _line(bad: BadRow) -> bytes:
    """A rejected row as a line of JSON. Bytes that are not UTF-8 are written as `\\xff`."""
    data = bad.data.decode("utf-8", "backslashreplace")
    row = {"source": bad.source, "row": bad.row, "reason": bad.reason, "data": data}
    return json.dumps(row, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n"
