"""The documents of a task in their order, cut into shards: one shard for ranges, as many as it takes for a stream."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from hashlib import sha256

from ..errors import CorpusError
from .blocks import ROW, Block, cut_block, last_row, text_sizes
from .manifest import Shard
from .packages import np, pa
from .plan import Task
from .reading import read
from .settings import Settings
from .sources import Input

Watch = Callable[[int, int, int], None]
"""Called with how many more bytes of input, documents and tokens are done. If it raises, the work ends."""


class Documents:
    """Reads a task block by block.

    A shard of a stream ends with the document that fills it, wherever the blocks are cut: so the same stream makes the
    same shards, and a later run finds the next one by its row.
    """

    def __init__(self, inputs: list[Input], task: Task, settings: Settings, watch: Watch) -> None:
        self._inputs, self._task, self._settings, self._watch = inputs, task, settings, watch
        self._blocks = self._read()
        self._next = next(self._blocks, None)

    @property
    def has_more(self) -> bool:
        """Whether a row is left."""
        return self._next is not None

    def _read(self) -> Iterator[tuple[int, Block]]:
        for range in self._task.ranges:
            input = self._inputs[range.input]
            for block in read(input, range.start, range.end, range.first_row, self._settings.reading):
                if block.table.num_rows or block.bad:
                    yield range.input, replace(block, source=input.name)
                else:
                    self._watch(block.num_bytes, 0, 0)

    def of_shard(self, shard: Shard) -> Iterator[tuple[int, Block]]:
        """The documents of the next shard, each block with the number of its input."""
        room, hashes = self._settings.shard_size, _Hashes()
        while self._next is not None and room > 0:
            number, block = self._next
            rest = None
            if self._task.is_stream:
                sizes = np.cumsum(text_sizes(block.table.column(self._settings.reading.field)))
                fits = int(np.searchsorted(sizes, room)) + 1
                if fits <= len(sizes):
                    block, rest = cut_block(block, block.table.column(ROW)[fits - 1].as_py())
                room -= int(sizes[block.table.num_rows - 1]) if block.table.num_rows else 0
                shard.last_row = last_row(block)
                self._hash(number, block, hashes)
            self._next = next(self._blocks, None) if rest is None else (number, rest)
            yield number, block
        shard.is_last, shard.texts = self._next is None, hashes.hex()

    def skip(self, shard: Shard) -> None:
        """Passes the documents of a stream's shard that is done.

        Raises `CorpusError` if they came from standard input and are not the same now.
        """
        hashes = _Hashes()
        is_passed = False
        while self._next is not None and not is_passed:
            number, block = self._next
            is_passed = last_row(block) > shard.last_row
            block, rest = cut_block(block, shard.last_row) if is_passed else (block, None)
            self._hash(number, block, hashes)
            self._watch(block.num_bytes, 0, 0)
            self._next = next(self._blocks, None) if rest is None else (number, rest)
        if hashes.hex() != shard.texts or (shard.texts and shard.is_last is not (self._next is None)):
            problem = f"it is not what the last run read: shard {shard.name}, up to row {shard.last_row}, differs"
            raise CorpusError(problem, source="standard input")

    def _hash(self, number: int, block: Block, hashes: _Hashes) -> None:
        if self._inputs[number].path is None:
            hashes.add(block.table.column(self._settings.reading.field))


class _Hashes:
    """A hash of texts that does not depend on how their blocks are cut."""

    def __init__(self) -> None:
        self._sizes, self._texts, self._is_used = sha256(), sha256(), False

    def add(self, column: pa.ChunkedArray) -> None:
        self._is_used = True
        self._sizes.update(text_sizes(column).data)
        for chunk in column.cast(pa.large_binary()).chunks:
            _, offsets, data = chunk.buffers()
            ends = np.frombuffer(offsets, np.int64)[chunk.offset : chunk.offset + len(chunk) + 1]
            if data is not None and len(chunk):
                self._texts.update(memoryview(data)[ends[0] : ends[-1]])

    def hex(self) -> str:
        """The hash; nothing if there were no texts to hash."""
        return sha256(self._sizes.digest() + self._texts.digest()).hexdigest() if self._is_used else ""
