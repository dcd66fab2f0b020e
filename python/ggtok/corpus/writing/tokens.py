"""Files of tokens one after the other: for formats that have an index of the documents."""

from __future__ import annotations

from typing import ClassVar

from ..blocks import IDS, MASK
from ..lists import lists
from ..packages import np, pa
from ..settings import Writing
from . import ShardWriter
from .shard_files import ShardFiles


class TokenWriter(ShardWriter):
    """Writes tokens, and masks in `u8`. The index is for each format. Holds 4 bytes for each document."""

    mask_suffix: ClassVar[str] = ""
    """Of the file with the masks."""
    most_short: ClassVar[int] = 1 << 16
    """The most tokens of a vocabulary for which one has 16 bits."""
    dtypes: ClassVar[tuple[str, str]] = "<u2", "<u4"
    """Of a token, for such vocabularies and for others."""

    def __init__(self, files: ShardFiles, writing: Writing) -> None:
        self._ids = files.open(self.suffixes[0])
        self._mask = files.open(self.mask_suffix) if writing.assistant_mask and self.has_masks else None
        self._dtype = np.dtype(self.dtypes[writing.vocab_size > self.most_short])
        self._lengths = [np.empty(0, np.int32)]

    def write(self, table: pa.Table) -> None:
        for lengths, ids in lists(table[IDS]):
            self._ids.write(ids.astype(self._dtype, copy=False).data)
            self._lengths.append(lengths)
        if self._mask is not None:
            for _, mask in lists(table[MASK]):
                self._mask.write(mask.data)
