"""Shuffles the documents of a shard within a bounded buffer: the order depends on the seed and the shard alone.

The pieces of the inputs were shuffled before, so the documents that meet in a buffer come from many places. A document
moves to where splitmix64 of its number puts it (Steele, Lea and Flood, "Fast Splittable Pseudorandom Number
Generators", OOPSLA 2014). A library's generator may give other numbers in its next version.
"""

from __future__ import annotations

from hashlib import sha256

from .blocks import IDS, num_tokens, picked
from .grouping import Groups, Write
from .packages import np, npt, pa

BUFFER = 1 << 24
"""Tokens of the buffer, 64 MiB of ids. A document counts `EXTRA` more, so that empty ones fill it too."""

EXTRA = 16


class Shuffler(Groups):
    """Takes tables of documents, and writes them in another order."""

    def __init__(self, seed: int, shard: str, write: Write) -> None:
        super().__init__(BUFFER, lambda table: num_tokens(table[IDS]) + EXTRA, write)
        self._key = int.from_bytes(sha256(f"{seed} {shard}".encode()).digest()[:8], "little")
        self._num_passed = 0

    def finish(self, group: pa.Table) -> None:
        """Shuffles a buffer."""
        numbers = np.arange(self._num_passed, self._num_passed + group.num_rows, dtype=np.uint64)
        self._num_passed += group.num_rows
        order = np.argsort(splitmix64(numbers, self._key), kind="stable")
        self._write(picked(group, order))


def splitmix64(numbers: npt.NDArray[np.uint64], key: int) -> npt.NDArray[np.uint64]:
    """A 64-bit hash of each number. For one key, different numbers have different hashes."""
    mixed = (numbers + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(key)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))
