"""A headerless array of tokens, as nanoGPT, dolma and OLMo-core read it, with an index of the documents.

    .npy      the tokens, little-endian: u16 if the vocabulary has at most 65,536, else u32
    .csv.gz   a line for each document: start and end in tokens, id, source, row
    .mask     by choice: u8 for each token, 1 if the assistant wrote it, else 0

- The ending `.npy` is dolma's (`tokenizer/memmap_writer.py` of 1.2.1), although this is not numpy's own format and is
  read with `numpy.memmap` or `numpy.fromfile`. OLMo-core finds the index by that ending, and nanoGPT maps any file. The
  masks have another one, so that `*.npy` names the tokens only.
- nanoGPT and dolma take u16 unless told otherwise. OLMo-core takes the smallest type for the vocabulary (3.0,
  `NumpyDatasetConfig.get_dtype`), which is u8 for at most 256 tokens: give it the type then.
- The index is what `csv.writer` writes. Without a column for it, the id is dolma's: SHA-256 of the source's name, `-`,
  row.
- A document without tokens has no line. dolma leaves out empty documents as well, and OLMo-core fails if there are any.
"""

from __future__ import annotations

import csv
import gzip
import io
from hashlib import sha256
from typing import Any

from ...errors import CorpusError
from ..blocks import IDS, ROW, SOURCE, num_tokens, picked
from ..packages import np, npt, pa, pc
from ..settings import Writing
from .shard_files import ShardFiles
from .tokens import TokenWriter


class FlatWriter(TokenWriter):
    """Writes the index while documents come."""

    suffixes = (".npy", ".csv.gz", ".mask")
    mask_suffix = ".mask"
    has_index = True

    def __init__(self, files: ShardFiles, writing: Writing) -> None:
        super().__init__(files, writing)
        # Without a time and a name, so that the same documents are the same bytes.
        self._index = gzip.GzipFile("", "wb", 4, files.open(".csv.gz"), 0)
        self._id_column, self._num_tokens = writing.id_column, 0

    def write(self, table: pa.Table) -> None:
        super().write(table)
        sizes = num_tokens(table[IDS])
        ends = np.cumsum(sizes) + self._num_tokens
        self._num_tokens += int(sizes.sum())
        names = table.select([ROW, SOURCE, *([self._id_column] if self._id_column else [])])
        has_tokens = sizes > 0
        self._index.write(self._lines(picked(names, has_tokens), (ends - sizes)[has_tokens], ends[has_tokens]))

    def close(self) -> None:
        self._index.close()

    def _lines(self, table: pa.Table, starts: npt.NDArray[Any], ends: npt.NDArray[Any]) -> bytes:
        """The lines of the index for documents, whose tokens start and end there."""
        rows, sources = table[ROW].to_pylist(), _fields(table, SOURCE)
        if self._id_column is None:
            hashes = {name: sha256(name.encode()).hexdigest() for name in {*sources}}
            ids = [f"{hashes[name]}-{row}" for name, row in zip(sources, rows, strict=True)]
        else:
            ids = _fields(table, self._id_column)
        lines = io.StringIO()
        csv.writer(lines).writerows(zip(starts.tolist(), ends.tolist(), ids, sources, rows, strict=True))
        return lines.getvalue().encode()


def _fields(table: pa.Table, name: str) -> list[str]:
    """The fields of a column in the index.

    Raises `CorpusError` if the column is not text or numbers, or has line breaks: OLMo-core goes by lines.
    """
    try:
        column = table[name].cast(pa.large_string()).fill_null("")
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise CorpusError(f"column {name!r} is {table[name].type}, which cannot be an id in the index") from error
    broken = pc.index(pc.match_substring_regex(column, "[\r\n]"), True).as_py()
    if broken >= 0:
        problem = f"column {name!r} has a line break, which would break the index"
        raise CorpusError(problem, source=table[SOURCE][broken].as_py(), row=table[ROW][broken].as_py())
    fields: list[str] = column.to_pylist()
    return fields
