"""From files to training data: documents are read, encoded and written in shards.

`sources` lists the inputs, `plan` cuts them into shards, `reading` yields documents, `table` encodes them, `writing`
has a file per output format, `shard` makes one shard, `manifest` knows which are done, and `run` makes the others.
"""

from .build import build as build
from .info import Info as Info
from .info import Lengths as Lengths
from .info import Source as Source
from .info import info as info
from .run import State as State
from .table import encode_table as encode_table
from .verify import Verification as Verification
from .verify import verify as verify
from .worker import TableEncoder as TableEncoder

__all__ = [
    *("Info", "Lengths", "Source", "State", "TableEncoder", "Verification"),
    *("build", "encode_table", "info", "verify"),
]
