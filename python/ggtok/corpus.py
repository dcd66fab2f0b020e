"""From text to training data: encodes Arrow tables, in one process and on the workers of an engine."""

from ._corpus.table import encode_table as encode_table
from ._corpus.worker import TableEncoder as TableEncoder

__all__ = ["TableEncoder", "encode_table"]
