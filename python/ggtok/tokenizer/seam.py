"""The seam: what the parts use of a tokenizer besides its public calls. It is the functions here and these names:

- `arguments`: `file_name`, `items_of`, `mapping`, `one_of`, `without_surrogates`
- `base`: `BaseTokenizer`, `BUILTIN`, `opened`, `READ_SIZE`, `Text`, `Texts`, `TokenizerT`
- `batch`: `Batch`, `Ids`
- `check`: `check`, `CONVERT`, `NOT_IN_UTF8`, `origin_of`, `warn`
- `chunks`: `Chunk`
- `cuts`: `character`, `compare`, `Cuts`, `cuts_of`, `Pair`, `Span`, `stretches`
- `files`: `check_target`, `discard`, `finish`, `lock`, `new_part`, `no_follow`, `read`, `read_pipe`,
  `remove_parts`, `replacing`, `Target`, `write`
- `findings`: `Finding`, `TokenizerWarning`, `warn_of`
- `keys`: `ARRAYS`, `BYTE`, `CHAT_TEMPLATE`, `CONTROL`, `FLAGS`, `FORMATS`, `GGML`, `MODEL`, `NORMAL`, `PRE`,
  `read_types`, `SPECIAL`, `TOKEN_TYPE_COUNT`, `Type`, `UNKNOWN`, `UNUSED`, `USER_DEFINED`
- `metadata`: `BOM`, `MAX_BYTES`, `name_of`, `read_metadata`, `Scalar`, `scalars`, `Source`, `to_bytes`
- `notebook`: `printed`, `table`
- `numbers`: `at_least`, `num_threads`
- `text_or_path`: `either`, `is_file_name`, `Path`, `paths`, `refuse_lone`, `warn_of_name`, `watched`
- `vocab`: `attributes`, `FLAGS_READ`, `ids_with`, `KINDS_OF_LLAMA_CPP`, `scores`, `special_texts`, `Token`,
  `TokenAttribute`, `Vocab`

A part imports nothing else of this folder, and reads no private attribute. `scripts/check_structure.py` reads the list.
"""

from __future__ import annotations

from importlib import import_module

from .._ggtok import Metadata
from .base import BaseTokenizer
from .findings import Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def users_class() -> type[Any]:
    """`ggtok.Tokenizer`, for a part that opens a file by its path without being given a tokenizer or a class. It is
    looked up by its name, as pickle does, because it is above the parts."""
    tokenizer: type[Any] = import_module("ggtok").Tokenizer
    return tokenizer


def metadata_of(tokenizer: BaseTokenizer) -> Metadata:
    """All metadata, arrays and overrides included."""
    return tokenizer._metadata


def path_of(tokenizer: BaseTokenizer) -> str | None:
    """The path of the file that it was made from, if there is one: no call replaces that unasked."""
    return tokenizer._source


def findings_of(tokenizer: BaseTokenizer) -> tuple[Finding, ...]:
    """What it was opened with: what a caller should know about the program that the model was found in."""
    return tokenizer._findings
