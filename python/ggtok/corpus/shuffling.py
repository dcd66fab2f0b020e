"""Shuffles the documents of a shard within a bounded buffer: the order depends on the seed and the shard alone.

The pieces of the inputs were shuffled before, so the documents that meet in a buffer come from many places. A document
moves to where splitmix64 of its number puts it (Steele, Lea and Flood, "Fast Splittable Pseudorandom Number
Generators", OOPSLA 2014). A library's generator may give other numbers in its next version.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256

from .blocks import IDS, num_tokens, picked
from .grouping import Groups
from .packages import np, npt, pa

BUFFER = 1 << 24
"""Tokens of the buffer, 64 MiB of ids. A document counts `EXTRA` more, so that empty ones fill it too."""

EXTRA = 16


class Shuffler:
    """Takes tables of documents, and yields them in another order."""

    def __init__(self, seed: int, shard: str) -> None:
        self._key = int.from_bytes(sha256(f"{seed} {shard}".encode()).digest()[:8], "little")
        self._groups = Groups(BUFFER)
        self._num_passed = 0

    def push(self, table: pa.Table) -> Iterator[pa.Table]:
        """Adds documents."""
        return map(self._shuffled, self._groups.push(table, num_tokens(table.column(IDS)) + EXTRA))

    def flush(self) -> Iterator[pa.Table]:
        """Yields what waits."""
        return map(self._shuffled, self._groups.flush())

    def _shuffled(self, table: pa.Table) -> pa.Table:
        numbers = np.arange(self._num_passed, self._num_passed + table.num_rows, dtype=np.uint64)
        self._num_passed += table.num_rows
        return picked(table, np.argsort(splitmix64(numbers, self._key), kind="stable"))


def splitmix64(numbers: npt.NDArray[np.uint64], key: int) -> npt.NDArray[np.uint64]:
    """A 64-bit hash of each number. For one key, different numbers have different hashes."""
    mixed = (numbers + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(key)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))
