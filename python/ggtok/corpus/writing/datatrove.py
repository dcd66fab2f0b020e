"""datatrove's tokenized file: the tokens in `.ds`, and the end of each document in `.ds.index`.

The layout is as in datatrove 0.10.1, `TokenizedFile` in `pipeline/tokens/tokenizer.py`, all little-endian:

    .ds            the tokens: u16 if the vocabulary has at most 65,536, else u32 (`utils/tokenization.py`)
    .ds.index      u64 end of each document, in tokens
    .ds.metadata   name of the tokenizer and bytes of a token, as `NAME|2`; number of tokens; the same rounded
    .ds.loss       by choice: u8 for each token, 1 if the assistant wrote it, else 0

- A document without tokens ends where the one before it does, as there.
- `|` and line breaks in the tokenizer's name become `_`: datatrove's merger could not read them.
"""

from __future__ import annotations

from math import floor, log10

from ..packages import np
from ..settings import Writing
from .shard_files import ShardFiles
from .tokens import TokenWriter


class DatatroveWriter(TokenWriter):
    """Holds 12 bytes for each document while it closes."""

    suffixes = (".ds", ".ds.loss", ".ds.index", ".ds.metadata")
    at_end = (".ds.index", ".ds.metadata")
    mask_suffix = ".ds.loss"

    def __init__(self, files: ShardFiles, writing: Writing) -> None:
        super().__init__(files, writing)
        self._index, self._metadata = files.open(".ds.index"), files.open(".ds.metadata")
        self._tokenizer_name = "_".join(writing.tokenizer_name.replace("|", "_").splitlines()) or "Unknown Tokenizer"

    def close(self) -> None:
        ends = np.cumsum(np.concatenate(self._lengths), dtype="<u8")
        self._index.write(ends.data)
        num_tokens = int(ends[-1]) if len(ends) else 0
        lines = f"{self._tokenizer_name}|{self._dtype.itemsize}", str(num_tokens), rounded(num_tokens)
        self._metadata.write("\n".join(lines).encode())


def rounded(number: int) -> str:
    """Three digits and a prefix of SI, as `humanize.metric(number, unit="T")` of 4.17, which datatrove calls.

    >>> rounded(1_234_567)
    '1.23 MT'
    """
    exponent = floor(log10(number)) if number else 0
    if round(number / 10 ** (exponent // 3 * 3), 2 - exponent % 3) >= 10 ** (exponent % 3 + 1):
        exponent += 1  # 9,999 is 10.0 k
    digits = format(number / 10 ** (exponent // 3 * 3), f".{2 - exponent % 3}f")
    return f"{digits} {' kMGTPE'[exponent // 3].strip()}T"
