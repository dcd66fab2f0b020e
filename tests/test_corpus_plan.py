"""What a corpus is cut into, and in which order its documents come."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from ggtok.corpus import shuffling
from ggtok.corpus.blocks import IDS
from ggtok.corpus.plan import Range, Task, cut_size, plan
from ggtok.corpus.shuffling import Shuffler, splitmix64
from ggtok.corpus.sources import Input
from ggtok.corpus.survey import Survey
from hypothesis import given
from hypothesis import strategies as st

MB = 1 << 20


def lines(name: str, size: int, cut: int, compression: str | None = None) -> tuple[Input, Survey]:
    """An input of lines of 1,000 bytes, cut after every `cut` bytes."""
    starts = range(0, max(size, 1), cut) if compression is None else range(1)
    cuts = tuple((start, start // 1000 + 1) for start in starts)
    input = Input(name, name, "jsonl", compression, size)
    return input, Survey(input, cuts)


def planned(seed: int | None, *files: tuple[Input, Survey], shard_size: int = MB) -> list[Task]:
    return plan([input for input, _ in files], [survey for _, survey in files], shard_size, seed)


def test_a_long_file_is_cut_and_short_ones_share_a_shard() -> None:
    tasks = planned(None, lines("a", 2 * MB + 100, MB), *(lines(f"b{n}", MB // 4, MB) for n in range(5)))
    assert [task.name for task in tasks] == ["00000", "00001", "00002", "00003"]
    assert [piece.input for piece in tasks[2].ranges] == [0, 1, 2, 3, 4]
    assert tasks[0].ranges == (Range(0, 0, MB, 1),)
    assert tasks[2].ranges[0] == Range(0, 2 * MB, None, 2 * MB // 1000 + 1)


def test_long_compressed_files_and_standard_input_are_streams_in_their_place() -> None:
    stream, short = lines("z.gz", 3 * MB, MB, "gzip"), lines("s.gz", 1000, MB, "gzip")
    stdin = Input("-", "-", "jsonl", None, None)
    tasks = planned(None, lines("a", 10, MB), stream, short, (stdin, Survey(stdin)))
    assert [(task.is_stream, [piece.input for piece in task.ranges]) for task in tasks] == [
        (False, [0, 2]),
        (True, [1]),
        (True, [3]),
    ]
    assert [tasks[0].shard(0), tasks[1].shard(0), tasks[1].shard(12)] == ["00000", "00001-00000", "00001-00012"]


@given(
    st.lists(st.integers(0, 5 * MB), min_size=1, max_size=6),
    st.none() | st.integers(-3, 1 << 70),
    st.integers(MB, 3 * MB),
)
def test_every_byte_is_in_exactly_one_range(sizes: list[int], seed: int | None, shard_size: int) -> None:
    cut = cut_size(shard_size, seed)
    files = [lines(str(n), size, cut) for n, size in enumerate(sizes)]
    tasks = planned(seed, *files, shard_size=shard_size)
    pieces = sorted((r.input, r.start, sizes[r.input] if r.end is None else r.end) for t in tasks for r in t.ranges)
    for number, size in enumerate(sizes):
        own = [(start, end) for input, start, end in pieces if input == number]
        assert [own[0][0], *(end for _, end in own)] == [*(start for start, _ in own), size]
    assert len({task.name for task in tasks}) == len(tasks)
    for task in tasks[:-1]:
        held = sum((sizes[r.input] if r.end is None else r.end) - r.start for r in task.ranges)
        assert shard_size / 2 <= held <= shard_size * 3 / 2


def test_pieces_of_nearly_a_shard_are_a_shard_each() -> None:
    input, survey = lines("a", 4 * MB, MB)
    cuts = [(max(0, start - 100 * number), row) for number, (start, row) in enumerate(survey.cuts)]
    tasks = planned(None, (input, Survey(input, tuple(cuts))))
    assert [len(task.ranges) for task in tasks] == [1, 1, 1, 1]


def test_pieces_are_shuffled_by_the_seed_alone() -> None:
    orders = [
        [piece.start for task in planned(seed, lines("a", 80 * MB, MB), shard_size=64 * MB) for piece in task.ranges]
        for seed in (1, 1, 2)
    ]
    assert orders[0] == orders[1] != orders[2]
    assert sorted(orders[0]) == sorted(orders[2]) == [MB * n for n in range(80)] != orders[0]


def test_splitmix64_is_the_published_one() -> None:
    # The first numbers of the reference implementation with the seed 1234567.
    expected = [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]
    assert splitmix64(np.arange(5, dtype=np.uint64), 1234567).tolist() == expected


def table(lengths: list[int], first: int) -> pa.Table:
    ids = [[first + n] * length for n, length in enumerate(lengths)]
    return pa.table({IDS: pa.array(ids, pa.list_(pa.int32())), "n": range(first, first + len(lengths))})


@given(st.lists(st.lists(st.integers(0, 60), max_size=30), max_size=6), st.integers(0, 1 << 64), st.data())
def test_the_order_does_not_depend_on_how_tables_are_cut(
    blocks: list[list[int]], seed: int, data: st.DataObject
) -> None:
    lengths = [length for block in blocks for length in block]
    cuts = sorted(data.draw(st.lists(st.integers(0, len(lengths)), max_size=5)))
    other = [lengths[a:b] for a, b in zip([0, *cuts], [*cuts, len(lengths)], strict=True)]
    buffer, shuffling.BUFFER = shuffling.BUFFER, 300
    try:
        orders = [shuffled(blocks, seed), shuffled(other, seed)]
    finally:
        shuffling.BUFFER = buffer
    assert orders[0] == orders[1]
    assert sorted(number for number, _ in orders[0]) == list(range(len(lengths)))
    assert all(ids == [number] * lengths[number] for number, ids in orders[0])


def shuffled(blocks: list[list[int]], seed: int) -> list[tuple[int, list[int]]]:
    written: list[pa.Table] = []
    shuffler, first = Shuffler(seed, "00000", written.append), 0
    for block in blocks:
        shuffler.push(table(block, first))
        first += len(block)
    shuffler.flush()
    return [(row["n"], row[IDS]) for part in written for row in part.to_pylist()]


def test_a_buffer_of_documents_is_mixed() -> None:
    order = [number for number, _ in shuffled([[5] * 500] * 2, 7)]
    assert order != [number for number, _ in shuffled([[5] * 500] * 2, 8)]
    moved = np.abs(np.array(order) - np.arange(1000))
    assert moved.mean() > 250  # a third of 1,000 is what chance gives
