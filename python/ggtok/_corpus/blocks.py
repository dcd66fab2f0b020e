"""What flows from the readers to the writers: Arrow tables of documents, a few megabytes at a time."""

from __future__ import annotations

from dataclasses import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]

BLOCK_SIZE = 4 << 20
"""Bytes of input that a block aims at. One document longer than this is a block of its own."""

ROW = "ggtok:row"
"""The column with the number of each document's row in its input: int64, counted from 1. Line formats count lines."""

SOURCE = "ggtok:source"
"""The column with the name of each document's input: string. The writers need it, the readers leave it out."""

IDS = "input_ids"
"""The column with the tokens: `list<int32>`."""

MASK = "assistant_mask"
"""The column that marks the tokens that the assistant wrote: `list<int8>`, 1 or 0 per token."""

BOUNDARIES = "cu_seqlens"
"""The column with the boundaries of documents in a packed sequence: `list<int32>`, 0 and then the end of each document.

The name and the convention are those of flash-attention's functions for sequences of different lengths.
"""


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row of an input that is not a document."""

    source: str
    """The name of the input."""
    row: int
    """Counted from 1."""
    reason: str
    data: bytes = b""
    """The row itself as far as it is text, at most `MOST_DATA` bytes of it."""

    MOST_DATA = 1 << 16

    def __str__(self) -> str:
        return f"{self.source}, row {self.row}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Block:
    """Consecutive documents of one input."""

    table: pa.Table
    """The column of the texts (or of the messages), the columns that are kept, and `ROW`."""
    bad: list[BadRow]
    """The rows between them that are not documents."""
    num_bytes: int
    """How many bytes of the file this took: for a compressed file, of the compressed ones."""
    source: str = ""
    """The name of the input."""
