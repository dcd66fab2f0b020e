"""What flows from the readers to the writers: Arrow tables of documents, a few megabytes at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from .packages import np, npt, pa, pc

BLOCK_SIZE = 4 << 20
"""Bytes of input that a block aims at. A document longer than this is one block."""

MERGED, MOST_MERGED = 2 << 20, 1024
"""Bytes of a block that is not merged with others, and the most blocks that become one."""

ROW = "ggtok:row"
"""The column with the number of each document's row in its input: int64, counted from 1. Line formats count lines."""

SOURCE = "ggtok:source"
"""The column with the name of each document's input: string. The writers need it, the readers leave it out."""

INPUT = "ggtok:input"
"""The column with the number of each document's input: int64."""

IDS = "input_ids"
"""The column with the tokens: `list<int32>`."""

MASK = "assistant_mask"
"""The column that marks the tokens that the assistant wrote: `list<int8>`, 1 or 0 per token."""

BOUNDARIES = "cu_seqlens"
"""The column with the boundaries of documents in a packed sequence: `list<int32>`, 0 and then the end of each document.

The name and the convention are those of flash-attention's functions for sequences of different lengths.
"""


Found: TypeAlias = "dict[str, tuple[int, str, str]]"
"""By its code, what the model does not see: in how many conversations, and the message and the advice of the first."""


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row of an input that is not a document."""

    source: str
    """The name of the input."""
    row: int
    """Counted from 1."""
    reason: str
    data: bytes = b""
    """The text of the row, at most `MOST_DATA` bytes of it."""

    MOST_DATA = 1 << 16


@dataclass(frozen=True, slots=True)
class Block:
    """Consecutive documents of one input."""

    table: pa.Table
    """The column of the texts (or of the messages), the columns that are kept, and `ROW`. Once they are encoded, also
    `IDS`, and for conversations `MASK`."""
    bad: list[BadRow]
    """The rows between them that are not documents."""
    num_bytes: int
    """How many bytes of the file this took: for a compressed file, of the compressed ones."""
    source: str = ""
    """The name of the input."""
    num_long: int = 0
    """How many documents were longer than `max_length`. They are cut or dropped."""
    found: Found = field(default_factory=dict)
    """What the model does not see of conversations."""


def merged(blocks: Iterable[Block]) -> Iterator[Block]:
    """Makes one of small blocks that follow each other, since a block costs half a millisecond, however small it is."""
    held: list[Block] = []
    size = 0
    for block in blocks:
        num_bytes = max(block.num_bytes, block.table.nbytes)
        is_enough = max(size, num_bytes) >= MERGED or len(held) == MOST_MERGED
        if held and (is_enough or block.table.schema != held[0].table.schema):
            yield _one(held)
            held, size = [], 0
        held.append(block)
        size += num_bytes
    if held:
        yield _one(held)


def _one(blocks: list[Block]) -> Block:
    if len(blocks) == 1:
        return blocks[0]
    table = pa.concat_tables([block.table for block in blocks]).combine_chunks()
    return Block(table, [bad for block in blocks for bad in block.bad], sum(block.num_bytes for block in blocks))


def last_row(block: Block) -> int:
    """The number of a block's last row, document or not."""
    bad = block.bad[-1].row if block.bad else 0
    rows = block.table.column(ROW)
    return max(bad, rows[-1].as_py() if len(rows) else 0)


def cut_block(block: Block, row: int) -> tuple[Block, Block | None]:
    """The block up to a row with it, and the rest if there is any. The first part takes the bytes."""
    size = int(np.searchsorted(block.table.column(ROW).to_numpy(), row, side="right"))
    head = replace(block, table=block.table.slice(0, size), bad=[bad for bad in block.bad if bad.row <= row])
    rest = replace(block, table=block.table.slice(size), bad=[bad for bad in block.bad if bad.row > row], num_bytes=0)
    return head, rest if rest.table.num_rows or rest.bad else None


def picked(table: pa.Table, rows: npt.NDArray[Any]) -> pa.Table:
    """The rows of a table that a mask keeps, or that are at some places, in any order."""
    is_mask = rows.dtype == bool
    try:
        return table.filter(pa.array(rows)) if is_mask else table.take(rows)
    except pa.ArrowNotImplementedError:  # pyarrow does not move views, which polars uses for strings, but slices them
        places = np.flatnonzero(rows) if is_mask else rows
        starts = np.flatnonzero(np.diff(places, prepend=-2) != 1)
        runs = zip(places[starts].tolist(), np.diff(starts, append=len(places)).tolist(), strict=True)
        parts = pa.concat_tables([table.slice(0, 0), *(table.slice(place, count) for place, count in runs)])
        return parts if is_mask else parts.combine_chunks()


def num_tokens(column: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    """The length of each list of a column; 0 for a null."""
    return np.asarray(pc.fill_null(pc.list_value_length(column), 0), np.int64)
