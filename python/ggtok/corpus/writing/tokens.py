"""Files of tokens one after the other, and how they are read: for formats that have an index of the documents."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from ...errors import CorpusError
from ..blocks import IDS, MASK
from ..lists import Lengths, lists
from ..packages import np, npt, pa
from ..settings import Writing
from . import ShardWriter
from .shard_files import ShardFiles


class TokenWriter(ShardWriter):
    """Writes tokens of the type `dtype`, and masks in `u8`. The index is for each format."""

    mask_suffix: ClassVar[str] = ""
    """Of the file with the masks."""

    def __init__(self, files: ShardFiles, writing: Writing, dtype: str) -> None:
        self._ids = files.open(self.suffixes[0])
        self._mask = files.open(self.mask_suffix) if writing.assistant_mask and self.has_masks else None
        self._vocab_size, self._dtype = writing.vocab_size, np.dtype(dtype)

    def write_tokens(self, table: pa.Table) -> list[Lengths]:
        """Adds the tokens and masks of documents. Returns the number of tokens of each, by chunks.

        Raises `CorpusError` if there is a token that the vocabulary does not have, which might not fit.
        """
        found = []
        for lengths, ids in lists(table[IDS]):
            if len(ids) and ids.view(np.uint32).max() >= self._vocab_size:  # of this type, negative ones are large
                wrong = ids[(ids < 0) | (ids >= self._vocab_size)][0]
                raise CorpusError(f"token {wrong} is outside the vocabulary of {self._vocab_size} tokens")
            self._ids.write(ids.astype(self._dtype, copy=False).data)
            found.append(lengths)
        if self._mask is not None:
            for _, mask in lists(table[MASK]):
                self._mask.write(mask.data)
        return found


def mapped(prefix: Path, suffix: str, dtype: str) -> npt.NDArray[Any]:
    """The numbers in the file `PREFIX` + suffix, mapped into memory. An empty file, which cannot be, is an empty array.

    Raises `CorpusError` if the file cannot be read, or ends within a number.
    """
    path = prefix.with_name(prefix.name + suffix)
    try:
        size = path.stat().st_size
        if size % np.dtype(dtype).itemsize:
            raise CorpusError(f"this file of {size} bytes ends within a number", source=path.name)
        return np.asarray(np.memmap(path, dtype, "r")) if size else np.empty(0, dtype)
    except OSError as error:
        raise CorpusError(f"this cannot be read: {error.strerror or error}", source=path.name) from error
