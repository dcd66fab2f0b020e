"""What is in the files of a shard, read as simply as each format allows: an oracle for the writers."""

from __future__ import annotations

import csv
import gzip
import struct
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from ggtok.corpus.blocks import BOUNDARIES, IDS


def rows_of(prefix: Path, format: str, column: str = IDS) -> list[list[int]]:
    """The tokens of each document, or with `MASK` their masks; of packed sequences those of each document in them."""
    if format in ("parquet", "arrow"):
        path = f"{prefix}.{format}"
        rows = (pq.read_table(path) if format == "parquet" else pa.ipc.open_file(path).read_all()).to_pydict()
        if BOUNDARIES not in rows:
            return list(rows[column])
        both = zip(rows[column], rows[BOUNDARIES], strict=True)
        return [row[start:end] for row, bounds in both for start, end in pairwise(bounds)]
    suffix, bounds, dtype = {"megatron": _megatron, "datatrove": _datatrove, "flat": _flat}[format](prefix)
    if column != IDS:
        suffix, dtype = {"datatrove": ".ds.loss", "flat": ".mask"}[format], "u1"
    values = np.fromfile(f"{prefix}{suffix}", dtype)
    assert len(values) == bounds[-1]
    return [values[start:end].tolist() for start, end in pairwise(bounds)]


def _megatron(prefix: Path) -> tuple[str, list[int], str]:
    index = Path(f"{prefix}.idx").read_bytes()
    magic, version, code, num_sequences, num_bounds = struct.unpack_from("<9sQBQQ", index)
    assert (magic, version) == (b"MMIDIDX\0\0", 1)
    numbers: Any = struct.unpack(f"<{num_sequences}i{num_sequences}q{num_bounds}q", index[34:])
    ends = [0, *accumulate(numbers[:num_sequences])]
    return ".bin", [ends[number] for number in numbers[2 * num_sequences :]], {8: "<u2", 4: "<i4"}[code]


def _datatrove(prefix: Path) -> tuple[str, list[int], str]:
    itemsize = Path(f"{prefix}.ds.metadata").read_text().split("\n")[0].rpartition("|")[2]
    return ".ds", [0, *np.fromfile(f"{prefix}.ds.index", "<u8").tolist()], f"<u{itemsize}"


def _flat(prefix: Path) -> tuple[str, list[int], str]:
    with gzip.open(f"{prefix}.csv.gz", "rt", encoding="utf-8", newline="") as file:
        bounds = [(int(row[0]), int(row[1])) for row in csv.reader(file)]
    ends = [0, *(end for _, end in bounds)]
    assert [start for start, _ in bounds] == ends[:-1]
    is_short = Path(f"{prefix}.npy").stat().st_size == 2 * ends[-1]
    return ".npy", ends, "<u2" if is_short else "<u4"
