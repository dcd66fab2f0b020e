"""How a corpus is read, encoded and written. All of it stands in the manifest, because all of it changes the result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

InputFormat = Literal["text", "lines", "jsonl", "parquet", "arrow"]
"""A document per file, per line, per JSON object of a line, or per row of a column."""

Format = Literal["parquet", "arrow", "megatron", "datatrove", "flat"]

Compression = Literal["zstd", "lz4", "snappy", "none"]

Nulls = Literal["error", "skip", "empty"]


@dataclass(frozen=True, slots=True)
class Reading:
    """What is read of each input."""

    field: str = "text"
    """The column, or the field of a JSON object, that holds the text; with `is_chat`, the list of messages."""
    is_chat: bool = False
    columns: tuple[str, ...] = ()
    """Other columns or fields to carry along, in this order."""
    nulls: Nulls = "error"
    """Whether a null is a bad row, no document, or an empty document."""


@dataclass(frozen=True, slots=True)
class Encoding:
    """How a document becomes tokens."""

    field: str = "text"
    is_chat: bool = False
    add_special: bool = True
    parse_special: bool = False
    append_eos: bool = False
    """End every document with EOS, if the vocabulary's own rule has not added it."""
    max_length: int | None = None
    """The most tokens of a document."""
    too_long: Literal["cut", "drop"] = "cut"


@dataclass(frozen=True, slots=True)
class Writing:
    """What the files of a shard are."""

    format: Format
    vocab_size: int
    """Decides between 16 and 32 bits per id, by each format's own rule."""
    attention_mask: bool = False
    assistant_mask: bool = False
    columns: tuple[str, ...] = ()
    """Columns to carry over (Parquet and Arrow)."""
    id_column: str | None = None
    """The column with the name of each document (`flat` writes it into its index)."""
    pack: int | None = None
    """The length of packed sequences (Parquet and Arrow)."""
    pad_id: int | None = None
    compression: Compression | None = None
    """Of Parquet and Arrow files. `None` is zstd for Parquet, and none for Arrow, so that it can be memory-mapped."""
    tokenizer_name: str = ""
    """For formats that name the tokenizer (datatrove)."""
