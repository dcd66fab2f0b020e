"""Cuts the inputs into tasks. The plan depends on the inputs and settings alone, never on threads or machines.

A task is either one shard, made of ranges of inputs, or a *stream*: an input that can only be read from its start (long
compressed files, standard input), which makes as many shards as it is long.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from itertools import zip_longest

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
    """The number of the row at `start`, counted from 1."""


@dataclass(frozen=True, slots=True)
class Task:
    """What one thread does at a time."""

    name: str
    ranges: tuple[Range, ...]
    is_stream: bool = False

    def shard(self, number: int) -> str:
        """The name of the task's shard, and of its files without their endings."""
        return f"{self.name}-{number:05}" if self.is_stream else self.name


def cut_size(shard_size: int, seed: int | None) -> int:
    """The distance in bytes of the places where inputs are cut."""
    return shard_size if seed is None else max(shard_size // PIECES, LEAST_PIECE)


def plan(inputs: list[Input], surveys: list[Survey | None], shard_size: int, seed: int | None) -> list[Task]:
    """The tasks of a corpus.

    Args:
        inputs: The inputs, in the order of their documents.
        surveys: What is known of each. `None` for standard input.
        shard_size: Bytes of input per shard. An input of less shares its shard with the next ones.
        seed: Shuffles the pieces of the inputs. `None` keeps their order.
    """
    pieces: list[tuple[Range, int]] = []
    streams: list[Range] = []
    for number, (input, survey) in enumerate(zip(inputs, surveys, strict=True)):
        if survey is None or (input.compression is not None and survey.size > shard_size and len(survey.cuts) == 1):
            streams.append(Range(number, 0, None, 1))
            continue
        cuts = survey.cuts
        for cut, after in zip_longest(cuts, cuts[1:]):
            if KINDS[input.format].has_lines and (input.compression is None or len(cuts) == 1):
                size = (survey.size if after is None else after.start) - cut.start
            else:  # a table is cut by row groups, not by bytes, and the size of an unpacked text is not known
                size = cut_size(shard_size, seed) if len(cuts) > 1 else survey.size
            pieces.append((Range(number, cut.start, None if after is None else after.start, cut.row), size))
    if seed is not None:
        order = sorted(range(len(pieces)), key=lambda piece: sha256(b"%d %d" % (seed, piece)).digest())
        pieces = [pieces[piece] for piece in order]
    groups: list[list[Range]] = []
    room = 0
    for piece, size in pieces:
        if not groups or room < size / 2:  # more of it would be too much than would be missing without it
            groups.append([])
            room = shard_size
        groups[-1].append(piece)
        room -= size
    tasks = [(tuple(group), False) for group in groups] + [((stream,), True) for stream in streams]
    if seed is None:
        tasks.sort(key=lambda task: task[0][0].input)  # streams keep their place among the other inputs
    width = max(5, len(str(len(tasks))))  # so that names sort as numbers do
    return [Task(f"{number:0{width}}", ranges, is_stream) for number, (ranges, is_stream) in enumerate(tasks)]
