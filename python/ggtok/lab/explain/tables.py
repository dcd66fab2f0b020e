"""What all views of a trace share: sections with columns and rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from ...trace import Text
from .utf8 import to_text

Cell: TypeAlias = Text | int | float | tuple[Text, ...] | None
"""A value, `None` if there is none."""

Mark: TypeAlias = Literal["", "won", "lost", "current"]
"""`won` for what was taken, `lost` for what was tried and not taken, `current` for what a reader looks at."""


class Column(NamedTuple):
    """A column of a table."""

    name: str
    kind: str
    """What it holds. `text`: text of the input or of the vocabulary, which is shown in quotes; `texts`: several of
    them; `number`: numbers, aligned to the right; `word`: words in plain English."""


class Row(NamedTuple):
    """A row of a table: one step."""

    cells: tuple[Cell, ...]
    """One value per column."""
    mark: Mark = ""


@dataclass(frozen=True, slots=True)
class Section:
    """A table with what it shows."""

    key: str
    """What kind of section it is, such as `symbols`. Two traces are compared section by section."""
    title: str
    """A few words."""
    about: str
    """What happens in this step, in a sentence."""
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]


def section(key: str, title: str, about: str, names: str, rows: Iterable[Row]) -> Section:
    """A section. `names` are those of its columns with commas between them: `name:kind`, or `name` for numbers."""
    split = (name.partition(":") for name in names.split(", "))
    columns = tuple(Column(name, kind or "number") for name, _, kind in split)
    return Section(key, title, about, columns, tuple(rows))


def part(text: bytes, start: int, end: int, *others: Cell, mark: Mark = "") -> Row:
    """A row about a part of a text: its start, its end, what it is, and other cells."""
    return Row((start, end, to_text(text[start:end]), *others), mark)


def won(taken: bool) -> Mark:
    """The mark of what was taken or not."""
    return "won" if taken else "lost"


def walked(found: int | None, matched: bool) -> Mark:
    """The mark of a step of a walk: whether it found something, and whether it continues."""
    return "won" if found is not None else "" if matched else "lost"


def byte_name(byte: int | None) -> str:
    """A byte as a reader knows it, or the end mark."""
    if byte is None:
        return "end"
    return f"{byte:02x} {chr(byte)}" if 0x20 < byte < 0x7F else f"{byte:02x}"


def yes(flag: bool) -> str:
    return "yes" if flag else "no"
