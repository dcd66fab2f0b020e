"""Cuts the inputs into tasks. The plan depends on the inputs and settings alone, never on threads or machines.

A task is either one shard, made of ranges of inputs, or a *stream*: an input that can only be read from its start (long
compressed files, standard input), which makes as many shards as it is long.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from hashlib import sha256
from itertools import product, zip_longest
from math import ceil

from .sources import KINDS, Input
from .survey import Survey

PIECES = 64
"""How many pieces of a shard's size are shuffled separately: many places of the inputs meet in a shard."""

LEAST_PIECE = 1 << 20
"""Bytes of the smallest piece: reading a few of them at random costs no more than reading them in order."""


@dataclass(frozen=True, slots=True)
class Range:
    """Rows of one input, from `start` to `end`: bytes of a file of lines, row groups or record batches of a table."""

    input: int
    start: int
    end: int | None
    """`None` is the end of the input."""
    first_row: int
    """The number of the row at `start`, counted from 1; 0 if the lines before it were not counted."""
    time: int = 0
    """How often it was read before: inputs with a weight of more than 1 are read several times."""


@dataclass(frozen=True, slots=True)
class Task:
    """What one thread does at a time."""

    name: str
    ranges: tuple[Range, ...]
    is_stream: bool = False

    def shard(self, number: int) -> str:
        """The name of the task's shard, and of its files without their endings."""
        return f"{self.name}-{number:05}" if self.is_stream else self.name


@dataclass(frozen=True, slots=True)
class Part:
    """Which part of all inputs a corpus has."""

    number: int
    """From 1."""
    of: int
    inputs: int
    """How many inputs there are in all parts."""
    sha256: str
    """A hash of their names."""

    def __str__(self) -> str:
        return f"part {self.number} of {self.of}"


def cut_size(shard_size: int, seed: int | None) -> int:
    """The distance in bytes of the places where inputs are cut."""
    return shard_size if seed is None else max(shard_size // PIECES, LEAST_PIECE)


def is_in_part(part: Part | None, name: str, start: int = 0) -> bool:
    """Whether what starts there in an input is in this part of all inputs.

    It depends on the name and the place alone, so that more inputs change nothing for those that were there.
    """
    if part is None:
        return True
    hash = sha256(f"{name}\0{start}".encode()).digest()
    return int.from_bytes(hash[:8], "big") % part.of == part.number - 1


def is_whole(input: Input, shard_size: int) -> bool:
    """Whether an input is not cut: it is short, or can only be read from its start."""
    return input.size is None or input.size <= shard_size or input.compression is not None or input.format == "text"


def plan(
    inputs: list[Input],
    surveys: list[Survey],
    shard_size: int,
    seed: int | None,
    part: Part | None = None,
    done: Collection[Task] = (),
) -> list[Task]:
    """The tasks of a corpus.

    Args:
        inputs: The inputs, in the order of their documents.
        surveys: What is known of each.
        shard_size: Bytes of input per shard. An input of less shares its shard with the next ones.
        seed: Shuffles the pieces of the inputs. `None` keeps their order.
        part: Only what is in this part of all inputs.
        done: Tasks of earlier runs. What they made is left out, and the names follow theirs.
    """
    made = {(piece.input, piece.start, piece.time) for task in done for piece in task.ranges}
    pieces: list[tuple[Range, float]] = []
    streams: list[Range] = []
    most = ceil(max((input.weight for input in inputs), default=0))
    for time, (number, (input, survey)) in product(range(most), enumerate(zip(inputs, surveys, strict=True))):
        if (share := min(input.weight - time, 1)) <= 0:
            continue
        cuts, length, whole = survey.cuts, input.size, is_whole(input, shard_size)
        for (start, row), end in zip_longest(cuts, [start for start, _ in cuts[1:]]):
            if (number, start, time) in made or not is_in_part(part, input.name, 0 if whole else start):
                continue
            piece = Range(number, start, end, row, time)
            if length is None or (input.compression is not None and length > shard_size and len(cuts) == 1):
                streams.append(piece)
            elif KINDS[input.format].has_lines and (input.compression is None or len(cuts) == 1):
                pieces.append((piece, share * ((length if end is None else end) - start)))
            else:  # a table is cut by row groups, not by bytes, and the size of an unpacked text is not known
                pieces.append((piece, share * (cut_size(shard_size, seed) if len(cuts) > 1 else length)))
    if seed is not None:
        order = sorted(range(len(pieces)), key=lambda place: sha256(b"%d %d" % (seed, place)).digest())
        pieces = [pieces[place] for place in order]
    groups: list[list[Range]] = []
    room = 0.0
    for piece, size in pieces:
        if not groups or room < size / 2:  # more of it would be too much than would be missing without it
            groups.append([])
            room = shard_size
        groups[-1].append(piece)
        room -= size
    tasks = [(tuple(group), False) for group in groups] + [((stream,), True) for stream in streams]
    if seed is None:
        # Streams keep their place among the other inputs.
        tasks.sort(key=lambda task: (task[0][0].time, task[0][0].input))
    first = max((int(task.name) for task in done), default=-1) + 1
    width = max(5, len(str(first + len(tasks))))  # so that names sort as numbers do
    return [Task(f"{number:0{width}}", ranges, is_stream) for number, (ranges, is_stream) in enumerate(tasks, first)]
