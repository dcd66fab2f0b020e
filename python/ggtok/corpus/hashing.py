"""Hashes of documents that do not depend on how their tables are cut, nor on the format of the file they came from.

Of each column, the lengths of its texts (-1 for a null) and their bytes are hashed apart; other values are written as
texts. So documents are hashed while they are encoded, and an input is read once.

XXH3 is no cryptographic hash: it finds what went wrong, not what was forged. SHA-256 would take a tenth of a build's
time on a processor with instructions for it, and as long as encoding on one without.
"""

from __future__ import annotations

from collections import defaultdict
from hashlib import sha256
from typing import Any

from .blocks import INPUT, ROW
from .packages import np, npt, pa, pc, xxhash


class Hashes:
    """Takes tables of documents, in order."""

    def __init__(self) -> None:
        self._of_part: defaultdict[tuple[str, str], Any] = defaultdict(xxhash.xxh3_128)

    def add(self, table: pa.Table) -> None:
        """Adds documents. The numbers of their rows and inputs do not count."""
        for name in table.column_names if table.num_rows else ():
            for array in table.column(name).chunks if name not in (INPUT, ROW) else ():
                if not (pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type)):
                    array = pa.array(map(repr, array.to_pylist()), pa.large_string())
                lengths = pc.fill_null(pc.binary_length(array), -1).to_numpy()
                self._of_part[name, "lengths"].update(lengths.data)
                _, offsets, data = array.buffers()
                ends = np.frombuffer(offsets, np.int64)[array.offset : array.offset + len(array) + 1]
                self._of_part[name, "bytes"].update(memoryview(data or b"")[ends[0] : ends[-1]])

    def hex(self) -> str:
        """The hash; nothing if there were no documents."""
        digests = [digest.digest() for _, digest in sorted(self._of_part.items())]
        return xxhash.xxh3_128(b"".join(digests)).hexdigest() if digests else ""


def draws(documents: pa.ChunkedArray | pa.Array, key: str) -> npt.NDArray[np.float64]:
    """Four numbers from 0 to 1 for each document, independent of each other.

    They depend on its text and the key alone: equal texts have the same.
    """
    texts = (each if isinstance(each, bytes) else str(each).encode() for each in documents.to_pylist())
    digests = b"".join(sha256(key.encode() + text).digest() for text in texts)
    return np.asarray((np.frombuffer(digests, ">u8").reshape(-1, 4) >> 11) * 2.0**-53)  # as many bits as a float has
