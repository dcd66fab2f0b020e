"""CSV and TSV, by pyarrow: records, of which the first names the columns. A value may have line ends within quotes.

Rows are counted with the names and without blank lines.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...errors import CorpusError
from ..blocks import BLOCK_SIZE, Block
from ..packages import pa
from ..settings import Reading
from ..sources import Input
from .columns import Batch, blocks
from .streams import Stream

MOST_RECORD = 4 * BLOCK_SIZE
"""Bytes of a record. A longer one is an error."""


def read(source: Input, start: int, end: int | None, first_row: int, reading: Reading) -> Iterator[Block]:
    """Blocks of all records. See `read`."""
    with Stream(source) as stream:
        yield from blocks(_batches(stream, source, reading), source, 2, reading)


def _batches(stream: Stream, source: Input, reading: Reading) -> Iterator[Batch]:
    """The wanted columns as texts. Raises `CorpusError` for a record with too many or too few values."""
    from pyarrow import csv

    names, position = [reading.field, *reading.columns], 0
    texts = dict.fromkeys(names, pa.large_utf8())
    try:
        for batch in csv.open_csv(
            pa.PythonFile(stream, mode="r"),
            csv.ReadOptions(use_threads=False, block_size=MOST_RECORD),
            csv.ParseOptions(delimiter="\t" if source.format == "tsv" else ",", newlines_in_values=True),
            csv.ConvertOptions(include_columns=names, column_types=texts, check_utf8=False),
        ):
            before, position = position, stream.position
            yield batch, position - before
    except pa.ArrowException as error:
        problem = f"it is not valid {source.format.upper()}: {error}"
        if "straddling" in str(error):
            problem = f"a record has more than {MOST_RECORD:,} bytes"
        raise CorpusError(problem, source=source.name) from error
