"""Packs documents into sequences of one length: best-fit decreasing, within a window of documents.

After "Fewer Truncations Improve Language Modeling" (Ding et al. 2024, arXiv 2404.10830):

1. A document that is longer than a sequence is cut into pieces of its length. What is left is a piece as well.
2. The pieces of a window are placed from the longest to the shortest, each into the sequence with the least space that
   it fits into. Pieces of one length are placed together.
3. Padding fills what is left.

The window ends with the document that makes it `window(length)` tokens, so memory is bounded, and the result does not
depend on how documents are cut into tables. Within it, sequences are in the order of their first documents, and the
documents of a sequence in their own order: placed in order of length, training would go from long to short.

Complexity: O(n log n) for n pieces in a window, and O(tokens). Finding the least space is a search in a sorted list of
the different spaces. Those are at most the smaller of the length and the number of sequences, about 3,000, so that
keeping the list sorted costs little.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import Any

from .blocks import BOUNDARIES, IDS, MASK, num_tokens
from .grouping import Groups, Write
from .lists import Numbers, cut, flat, gathered
from .packages import np, npt, pa
from .sums import add

TABLE_TOKENS = 1 << 20
"""About how many tokens a table of packed sequences has."""


def window(length: int) -> int:
    """How many tokens are packed together: 256 sequences or more, so that a last one with few tokens matters little."""
    return max(4 << 20, 256 * length)


COUNTED = ("num_documents", "num_empty", "num_cut", "num_sequences", "num_tokens", "num_padding")
"""What is counted: documents; those without tokens, which are in no sequence; those longer than a sequence; sequences;
tokens of documents; and tokens of padding. Together, these tokens fill the sequences."""


class Packer(Groups):
    """Takes tables of documents, and writes tables of sequences.

    The columns `input_ids` and, if present, `assistant_mask` are packed. The sequences have these columns and
    `cu_seqlens`. Raises `CorpusError` if a list is null.
    """

    def __init__(self, length: int, pad_id: int, write: Write) -> None:
        super().__init__(window(length), lambda table: num_tokens(table[IDS]), write)
        self.length, self.pad_id = length, pad_id
        self.report = dict.fromkeys(COUNTED, 0)

    def finish(self, group: pa.Table) -> None:
        """Packs a window."""
        lengths = num_tokens(group[IDS])
        values = {
            name: np.concatenate([flat(group[name]), np.full(self.length, fill, dtype)])
            for name, fill, dtype in ((IDS, self.pad_id, np.int32), (MASK, 0, np.int8))
            if name in group.column_names
        }
        _, starts, sizes = cut(lengths[lengths > 0], self.length)
        sequences = in_order(best_fit_decreasing(sizes, self.length))
        order = np.argsort(sequences, kind="stable")
        num_sequences = int(sequences.max()) + 1 if len(sequences) else 0

        total, num_empty, num_long = lengths.sum(), (lengths == 0).sum(), (lengths > self.length).sum()
        counts = len(lengths), num_empty, num_long, num_sequences, total, num_sequences * self.length - total
        add(self.report, dict(zip(COUNTED, map(int, counts), strict=True)))

        starts, sizes, sequences = starts[order], sizes[order], sequences[order]
        step = max(1, TABLE_TOKENS // self.length)
        for first in range(0, num_sequences, step):
            count = min(step, num_sequences - first)
            begin, end = np.searchsorted(sequences, [first, first + count])
            pieces = starts[begin:end], sizes[begin:end], sequences[begin:end] - first
            self._write(self._table(*pieces, count, values))

    def _table(
        self, starts: Numbers, sizes: Numbers, sequences: Numbers, count: int, values: dict[str, npt.NDArray[Any]]
    ) -> pa.Table:
        """Some sequences of a window, from their pieces in order. The values end with a sequence of padding."""
        fills = np.bincount(sequences, sizes, count).astype(np.int64)
        places = np.arange(len(sizes)) + sequences  # each sequence has one more piece, which is its padding

        # The padding comes last in each sequence: in the gaps that the pieces leave.
        all_sizes, all_starts = np.zeros(len(sizes) + count, np.int64), np.empty(len(sizes) + count, np.int64)
        pads = np.cumsum(np.bincount(sequences, minlength=count) + 1) - 1
        all_sizes[places], all_sizes[pads] = sizes, self.length - fills
        all_starts[places], all_starts[pads] = starts, len(values[IDS]) - self.length

        # A boundary before the first piece and one after each: in the same places, moved by one.
        bounds = np.zeros(len(sizes) + count, np.int32)
        bounds[places + 1] = np.cumsum(sizes) - (np.cumsum(fills) - fills)[sequences]
        offsets = np.concatenate([[0], pads + 1]).astype(np.int32)

        rows = np.arange(count + 1, dtype=np.int32) * self.length
        pieces = all_starts, all_sizes
        columns = {name: pa.ListArray.from_arrays(rows, gathered(flat, *pieces)) for name, flat in values.items()}
        return pa.table(columns | {BOUNDARIES: pa.ListArray.from_arrays(offsets, bounds)})


def in_order(sequences: Numbers) -> Numbers:
    """The sequence of each piece, with the sequences numbered in the order of their first pieces."""
    _, firsts = np.unique(sequences, return_index=True)
    numbers = np.empty(len(firsts), np.int64)
    numbers[np.argsort(firsts)] = np.arange(len(firsts))
    return numbers[sequences]


def best_fit_decreasing(sizes: Numbers, capacity: int) -> Numbers:
    """The sequence of each piece. Sizes are from 1 to the capacity, and sequences are counted from 0."""
    order = np.argsort(-sizes, kind="stable")
    different, counts = np.unique(sizes, return_counts=True)
    placed: list[int] = []
    open_sequences: dict[int, list[int]] = {}
    spaces: list[int] = []  # the keys of `open_sequences`, sorted
    num_sequences = 0

    for size, count in zip(different[::-1].tolist(), counts[::-1].tolist(), strict=True):
        while count:
            place = bisect_left(spaces, size)
            is_open = place < len(spaces)
            space = spaces[place] if is_open else capacity
            each = space // size  # the next piece of this size fits best into the same sequence
            needed = -(-count // each)
            if is_open:
                candidates = open_sequences[space]
                chosen = candidates[-needed:]
                del candidates[-len(chosen) :]
                if not candidates:
                    del open_sequences[space], spaces[place]
            else:
                chosen = list(range(num_sequences, num_sequences + needed))
                num_sequences += needed
            for number in chosen:
                taken = min(each, count)
                placed += [number] * taken
                count -= taken
                if left := space - taken * size:
                    if left not in open_sequences:
                        insort(spaces, left)
                    open_sequences.setdefault(left, []).append(number)

    sequences = np.empty(len(sizes), np.int64)
    sequences[order] = placed
    return sequences
