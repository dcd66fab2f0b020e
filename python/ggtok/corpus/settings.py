"""How a corpus is read, encoded and written. All of it stands in the manifest, because all of it changes the result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from operator import index as as_int
from typing import Any, Literal, SupportsIndex

from ..errors import CorpusError
from ..tokenizer.arguments import mapping, one_of, without_surrogates

InputFormat = Literal["text", "lines", "jsonl", "parquet", "arrow"]
"""A document per file, per line, per JSON object of a line, or per row of a column."""

Format = Literal["parquet", "arrow", "megatron", "datatrove", "flat"]
"""The formats of shards. Each is a file of this name in `writing`."""

Compression = Literal["zstd", "lz4", "snappy", "none"]

Nulls = Literal["error", "skip", "empty"]

TooLong = Literal["cut", "drop"]

Masks = Literal["turn", "content"]

MOST_PACK = 1 << 24
"""The most tokens of a packed sequence: more than the context of any model."""


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
    too_long: TooLong = "cut"
    tools: str | None = None
    """Of conversations: the column that holds their tools."""
    template_text: str | None = None
    """A template in place of the tokenizer's."""
    variables: tuple[tuple[str, Any], ...] = ()
    """Variables of the template, by name."""
    mask: Masks = "turn"
    """What the assistant mask covers."""


def encoding_of(
    field: str,
    messages: str | None,
    chat: tuple[str | None, str | None, Mapping[str, Any] | None, Masks],
    special: tuple[bool, bool, bool],
    max_length: SupportsIndex | None,
    too_long: TooLong,
) -> Encoding:
    """The settings that arguments are: `chat` has those from `tools` to `mask`, and `special` the flags.

    Raises `CorpusError` if one is out of range, or is for conversations and there are none.
    """
    tools, template_text, variables, mask = chat
    without_surrogates("template_text", template_text)
    named = tuple(mapping("variables", variables or {}).items())
    given = {"tools": tools is not None, "template_text": template_text is not None, "variables": named != ()}
    for name, is_given in (given | {"mask": mask != "turn"}).items():
        if is_given and messages is None:
            raise CorpusError(f"{name} is for conversations: give messages too")
    one_of("mask", mask, Masks, CorpusError)
    one_of("too_long", too_long, TooLong, CorpusError)
    most = None if max_length is None else as_int(max_length)
    if most is not None and most < 1:
        raise CorpusError(f"max_length must be at least 1, not {most}")
    return Encoding(
        messages or field, messages is not None, *special, most, too_long, tools, template_text, named, mask
    )


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
    """Of Parquet and Arrow files. `None` is none."""
    tokenizer_name: str = ""
    """For formats that name the tokenizer (datatrove)."""


@dataclass(frozen=True, slots=True)
class Settings:
    """All of it."""

    reading: Reading
    encoding: Encoding
    writing: Writing
    input_format: InputFormat | None = None
    shard_size: int = 128 << 20
    """Bytes of input per shard."""
    shuffle: Any = None
    """The seed, an int of any size; `None` keeps the order."""
    skip_bad: bool = False
    """Whether bad rows go to a separate file. Otherwise the first one ends the run."""
