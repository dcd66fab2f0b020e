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

from ..packages import np
from ..settings import Writing
from .shard_files import ShardFiles
from .tokens import TokenWriter


class MegatronWriter(TokenWriter):
    """Holds 28 bytes for each document while it closes."""

    suffixes, at_end = (".bin", ".idx"), (".idx",)
    has_masks = False
    most_short, dtypes = 65_499, ("<u2", "<i4")

    def __init__(self, files: ShardFiles, writing: Writing) -> None:
        super().__init__(files, writing)
        self._idx = files.open(".idx")

    def close(self) -> None:
        lengths = np.concatenate(self._lengths)
        documents = np.cumsum(np.append(0, lengths > 0), dtype="<i8")
        lengths = lengths[lengths > 0]
        starts = (np.cumsum(lengths, dtype=np.int64) - lengths) * self._dtype.itemsize
        code = 8 if self._dtype.itemsize == 2 else 4
        self._idx.write(struct.pack("<9sQBQQ", b"MMIDIDX", 1, code, len(lengths), len(documents)))
        self._idx.write(lengths.astype("<i4", copy=False).data)
        self._idx.write(starts.astype("<i8", copy=False).data)
        self._idx.write(documents.data)
