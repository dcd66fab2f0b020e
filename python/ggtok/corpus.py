"""From text to training data: folders of shards, and Arrow tables, also on the workers of an engine."""

from ._corpus.build import build as build
from ._corpus.info import Info as Info
from ._corpus.info import Lengths as Lengths
from ._corpus.info import Source as Source
from ._corpus.info import info as info
from ._corpus.run import State as State
from ._corpus.table import encode_table as encode_table
from ._corpus.verify import Verification as Verification
from ._corpus.verify import verify as verify
from ._corpus.worker import TableEncoder as TableEncoder

__all__ = [
    *("Info", "Lengths", "Source", "State", "TableEncoder", "Verification"),
    *("build", "encode_table", "info", "verify"),
]
