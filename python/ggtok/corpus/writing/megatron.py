"""Megatron's indexed dataset: the tokens in `.bin`, and where each document is in `.idx`.

The layout is as in megatron-core 0.16.1, `core/datasets/indexed_dataset.py`. All numbers are little-endian:

    .idx    9 bytes `MMIDIDX\\0\\0`, u64 version 1, u8 type of a token (8 is uint16, 4 is int32),
            u64 number of sequences, u64 number of documents + 1,
            i32 length of each sequence, i64 start of each in `.bin` in bytes,
            i64 first sequence of each document, and the number of sequences

- Tokens are uint16 if the vocabulary has fewer than 65,500, else int32 (`DType.optimal_dtype`).
- A document is one sequence, as with `preprocess_data` without `--split-sentences`. A document without tokens is in the
  index without a sequence, as there. (Megatron's script for fast tokenizing writes EOD for it.)
- If no document of a shard has tokens, `.bin` is empty, and Megatron cannot open it, whoever wrote it.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

from ...errors import CorpusError
from ..packages import np, npt
from ..settings import Writing
from .shard_files import ShardFiles
from .tokens import TokenWriter, mapped

MAGIC = b"MMIDIDX\0\0"
HEADER = struct.Struct("<9sQBQQ")
TYPES = {8: "<u2", 4: "<i4"}


class MegatronWriter(TokenWriter):
    """Holds 20 bytes for each document while it closes."""

    suffixes = (".bin", ".idx")
    has_masks = False
    most_short, dtypes = 65_499, ("<u2", "<i4")

    def __init__(self, files: ShardFiles, writing: Writing) -> None:
        super().__init__(files, writing)
        self._idx = files.open(".idx")

    def close(self) -> None:
        lengths = np.concatenate(self._lengths)
        documents = np.zeros(len(lengths) + 1, "<i8")
        np.cumsum(lengths > 0, out=documents[1:])
        lengths = lengths[lengths > 0]
        starts = np.zeros(len(lengths) + 1, "<i8")
        np.cumsum(lengths, out=starts[1:])
        starts *= self._dtype.itemsize
        code = 8 if self._dtype == TYPES[8] else 4
        self._idx.write(HEADER.pack(MAGIC, 1, code, len(lengths), len(documents)))
        self._idx.write(lengths.astype("<i4", copy=False).data)
        self._idx.write(starts[:-1].data)
        self._idx.write(documents.data)

    @classmethod
    def layout(cls, prefix: Path) -> tuple[str, npt.NDArray[Any]]:
        """As in `TokenWriter`."""
        index = mapped(prefix, ".idx", "u1")
        header = index[: HEADER.size].tobytes()
        if len(header) < HEADER.size:
            raise CorpusError("this file ends in its header", source=f"{prefix.name}.idx")
        magic, version, code, num_sequences, num_bounds = HEADER.unpack(header)
        if magic != MAGIC or version != 1 or code not in TYPES or num_bounds < 1:
            raise CorpusError("this is not a Megatron index written by ggtok", source=f"{prefix.name}.idx")
        if len(index) != HEADER.size + 12 * num_sequences + 8 * num_bounds:
            raise CorpusError("this file has more or fewer bytes than its header says", source=f"{prefix.name}.idx")
        lengths, starts, documents = np.split(index[HEADER.size :], [4 * num_sequences, 12 * num_sequences])
        bounds = np.insert(np.cumsum(lengths.view("<i4"), dtype=np.int64), 0, 0)
        documents, itemsize = documents.view("<i8"), np.dtype(TYPES[code]).itemsize
        if documents[-1] != num_sequences or not np.array_equal(starts.view("<i8"), bounds[:-1] * itemsize):
            raise CorpusError("this file contradicts itself", source=f"{prefix.name}.idx")
        return TYPES[code], bounds[documents]
