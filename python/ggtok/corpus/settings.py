"""How a corpus is read, encoded and written. All of it stands in the manifest, because all of it changes the result."""

from __future__ import annotations

from calendar import timegm
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from operator import index as as_int
from time import strptime
from typing import Any, Literal, SupportsIndex

from ..errors import ArgumentTypeError, CorpusError
from ..tokenizer.arguments import items_of, mapping, one_of, without_surrogates
from .shapes import PAIR, SHAPES

InputFormat = Literal["text", "lines", "jsonl", "json", "csv", "tsv", "parquet", "arrow"]
"""A document per file, per line, per JSON object of a line or of an array, per record, or per row of a column."""

Format = Literal["parquet", "arrow", "megatron", "datatrove", "flat"]
"""The formats of shards. Each is a file of this name in `writing`."""

Compression = Literal["zstd", "lz4", "snappy", "none"]

Nulls = Literal["error", "skip", "empty"]

TooLong = Literal["cut", "drop"]
TooLongOrSplit = Literal["cut", "drop", "split"]
"""Of a corpus. A table that is encoded keeps its rows."""

Masks = Literal["turn", "content"]

Names = str | Iterable[str]
"""A column or field, or several."""

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
    others: tuple[str, ...] = ()
    """Further texts of a row, which follow the first one in its document; with `is_chat`, those of a conversation."""


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
    too_long: TooLongOrSplit = "cut"
    overlap: int = 0
    """The tokens that a piece of a split document repeats from the one before."""
    tools: str | None = None
    """Of conversations: the column that holds their tools."""
    template: str | None = None
    """The name of one of the tokenizer's templates, or of the built-in one."""
    template_text: str | None = None
    """A template in place of the tokenizer's."""
    variables: tuple[tuple[str, Any], ...] = ()
    """Variables of the template, by name."""
    mask: Masks = "turn"
    """What the assistant mask covers."""
    shape: str = "messages"
    """Of rows with conversations: a row of `SHAPES`."""
    others: tuple[str, ...] = ()
    """The columns of a conversation after the first."""
    date: str | None = None
    """The day that a template is told, such as 2026-11-30. `None` is today."""
    fim: float = 0.0
    """The share of documents whose middle is to be filled in."""
    fim_spm: float = 0.5
    """The share of those that begin with the suffix."""
    fim_seed: Any = 0
    """Decides with the text which these are, and where they are cut."""

    @property
    def is_pair(self) -> bool:
        """Whether a row is a prompt with two answers."""
        return self.shape == PAIR


def encoding_of(
    field: str,
    messages: Names | None,
    chat: tuple[str | None, str | None, str | None, Mapping[str, Any] | None, Masks, str | None, str | None],
    special: tuple[bool, bool, bool],
    max_length: SupportsIndex | None,
    too_long: TooLongOrSplit,
    overlap: SupportsIndex | None = None,
) -> Encoding:
    """The settings that arguments are: `chat` has those from `tools` to `date`, and `special` the flags.
    Without an `overlap`, documents cannot be split.

    Raises `CorpusError` if one is out of range, or is for conversations and there are none.
    """
    tools, template, template_text, variables, mask, shape, date = chat
    without_surrogates("template_text", template_text)
    named = tuple(mapping("variables", variables or {}).items())
    given = {"tools": tools, "template": template, "template_text": template_text, "variables": named or None}
    given |= {"mask": None if mask == "turn" else mask, "date": date}
    is_chat = messages is not None or shape is not None
    if wrong := next((name for name, value in given.items() if value is not None and not is_chat), None):
        raise CorpusError(f"{wrong} is for conversations: give messages too")
    one_of("shape", shape, (None, *SHAPES), CorpusError)
    usual, _, optional = SHAPES[shape or "messages"]
    names = usual if messages is None else names_of("messages", messages)
    if not len(usual) - (len(usual) - 1 in optional) <= len(names) <= len(usual):
        raise CorpusError(f"messages must name {len(usual)} fields, such as {', '.join(usual)}: {len(names)} given")
    if not is_chat:
        names = (field,)
    if date is not None:
        day(date)
    one_of("mask", mask, Masks, CorpusError)
    one_of("too_long", too_long, TooLong if overlap is None else TooLongOrSplit, CorpusError)
    most = None if max_length is None else as_int(max_length)
    if most is not None and most < 1:
        raise CorpusError(f"max_length must be at least 1, not {most}")
    if too_long == "split" and most is None:
        raise CorpusError("split needs a length: give max_length too")
    shared = as_int(overlap or 0)
    if not 0 <= shared <= ((most or 0) // 2 if too_long == "split" else 0):
        raise CorpusError(f"overlap must be from 0 to half of max_length, and is for too_long='split': {shared} given")
    shaped: Any = tools, template, template_text, named, mask, shape or "messages", names[1:], date
    return Encoding(names[0], is_chat, *special, most, too_long, shared, *shaped)


def names_of(argument: str, names: Names) -> tuple[str, ...]:
    """One name, or several."""
    found = (names,) if isinstance(names, str) else tuple(items_of(argument, names, "names"))
    if not found or not all(isinstance(name, str) for name in found):
        raise ArgumentTypeError(f"{argument} must be a name or several")
    return found


def day(date: str) -> int:
    """The seconds from 1970 to the start of a day. Raises `CorpusError` if it is no date."""
    try:
        return timegm(strptime(date, "%Y-%m-%d"))
    except (TypeError, ValueError):
        raise CorpusError(f"date must be a day such as 2026-11-30, not {date!r}") from None


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
    trainer: str | None = None
    """Whose names the columns have (Parquet and Arrow): a row of `TRAINERS`."""
    is_pair: bool = False
    """Whether rows are pairs, with a column of tokens for each part (Parquet and Arrow)."""


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
    validation: float = 0.0
    """The share of documents that go to shards for validation."""
    budget: int | None = None
    """The tokens after which the corpus ends, with the shard that reaches them; of `shares`, how many there are."""
    shares: tuple[tuple[str, float], ...] = ()
    """The sources with their shares of the tokens, if these decide on the weights of the inputs."""

    @property
    def spans_inputs(self) -> bool:
        """Whether the place of a document depends on all inputs, so that none can be added or changed later."""
        return self.shuffle is not None or self.budget is not None or self.shares != ()
