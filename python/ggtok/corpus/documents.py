"""The documents of a task in their order, cut into shards: one shard for ranges, as many as it takes for a stream."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from ..errors import CorpusError
from .blocks import INPUT, ROW, BadRow, Block, cut_block, last_row, merged, picked
from .grouping import text_sizes
from .hashing import Hashes, draws
from .manifest import Shard
from .packages import np, npt, pa
from .plan import Range, Task
from .reading import read
from .remote import StoreError, explained
from .settings import Settings
from .sources import Input
from .survey import num_lines

Watch = Callable[[tuple[int, int, int]], None]
"""Called with how many more bytes of input, documents and tokens are done. If it raises, the work ends."""


def parted(table: pa.Table, settings: Settings) -> list[pa.Table]:
    """The documents to train with, and, if there is a share for it, those for validation.

    A document's text alone decides, so it is in the same part whatever the inputs, weights and order are.
    """
    if not settings.validation:
        return [table]
    held_out = is_held_out(table, settings)
    return [picked(table, ~held_out), picked(table, held_out)]


def is_held_out(table: pa.Table, settings: Settings) -> npt.NDArray[np.bool_]:
    """Which documents are for validation."""
    return draws(table.column(settings.reading.field), "validation")[:, 0] < settings.validation


def sample_places(table: pa.Table, settings: Settings) -> npt.NDArray[np.float64]:
    """A number from 0 to 1 for each document: those below a weight are read."""
    return draws(table.column(settings.reading.field), f"weight {settings.shuffle or 0}")[:, 0]


class Documents:
    """Reads a task block by block.

    A shard of a stream ends with the document that fills it, wherever the blocks are cut: so the same stream makes the
    same shards, and a later run finds the next one by its row.
    """

    def __init__(self, inputs: list[Input], task: Task, settings: Settings, watch: Watch) -> None:
        self._inputs, self._task, self._settings, self._watch = inputs, task, settings, watch
        is_merged = not (task.is_stream or settings.reading.is_chat)
        self._blocks = merged(self._read()) if is_merged else self._read()
        self._next = next(self._blocks, None)

    @property
    def has_more(self) -> bool:
        """Whether a row is left."""
        return self._next is not None

    def _read(self) -> Iterator[Block]:
        for range in self._task.ranges:
            with explained(self._inputs[range.input].name):
                yield from self._of_range(range)

    def _of_range(self, range: Range) -> Iterator[Block]:
        input = self._inputs[range.input]
        row = range.first_row
        try:
            for block in read(input, range.start, range.end, range.first_row, self._settings.reading):
                if block.bad and not range.first_row:
                    before = 1 + num_lines(input, range.start)
                    block = replace(block, bad=[replace(bad, row=before + bad.row) for bad in block.bad])
                chosen = self._chosen(block, range)
                if chosen.table.num_rows or chosen.bad:
                    yield chosen
                else:
                    self._watch((block.num_bytes, 0, 0))
                row = max(row, last_row(block) + 1)
        except CorpusError as error:  # the rest of the file is a bad row
            if not self._settings.skip_bad or isinstance(error, StoreError):
                raise
            names = (self._settings.reading.field, *self._settings.reading.columns)
            columns = {name: pa.nulls(0) for name in names} | {ROW: pa.array([], pa.int64())}
            yield self._chosen(Block(pa.table(columns), [BadRow(input.name, row, str(error))], 0), range)

    def _chosen(self, block: Block, range: Range) -> Block:
        """The rows that the weight of the input asks for, with its number in each.

        Bad rows and documents for validation are read once, whatever the weight.
        """
        input, table = self._inputs[range.input], block.table
        if input.weight != 1:
            held_out = is_held_out(table, self._settings)
            is_read = sample_places(table, self._settings) < input.weight - range.time
            table = picked(table, is_read & ~held_out if range.time else is_read | held_out)
        table = table.append_column(INPUT, pa.array(np.full(table.num_rows, range.input)))
        return replace(block, table=table, bad=[] if range.time else block.bad, source=input.name)

    def of_shard(self, shard: Shard) -> Iterator[Block]:
        """The documents of the next shard."""
        room, hashes = self._settings.shard_size, Hashes()
        while self._next is not None and room > 0:
            block, rest = self._next, None
            if self._task.is_stream:
                sizes = np.cumsum(text_sizes(block.table.column(self._settings.reading.field)))
                fits = int(np.searchsorted(sizes, room)) + 1
                if fits <= len(sizes):
                    block, rest = cut_block(block, block.table.column(ROW)[fits - 1].as_py())
                room -= int(sizes[block.table.num_rows - 1]) if block.table.num_rows else 0
                shard.last_row = last_row(block)
            hashes.add(block.table)
            self._next = next(self._blocks, None) if rest is None else rest
            yield block
        shard.is_last, shard.texts = self._next is None, hashes.hex()

    def repeat(self, shard: Shard) -> bool:
        """Passes the documents of the next shard. Returns whether they are those of a shard that is done."""
        again = Shard("")
        for block in self.of_shard(again):
            self._watch((block.num_bytes, 0, 0))
        return (again.texts, again.is_last) == (shard.texts, shard.is_last)

    def changed(self, shard: Shard) -> CorpusError:
        """The error for a stream that has not repeated a shard."""
        source = self._inputs[self._task.ranges[0].input]
        problem = f"it is not what the last run read: shard {shard.name}, up to row {shard.last_row}, differs"
        return CorpusError(problem, source="standard input" if source.size is None else source.name)
