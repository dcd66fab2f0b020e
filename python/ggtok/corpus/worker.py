"""What an engine sends to its workers: a tokenizer by its path, opened once per process.

A pickled `TableEncoder` is a path and settings, so it can travel with every task. The open tokenizers belong to the
process: `opened` keeps one per path, and opens a file again only if its size or time has changed.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable, Iterator, Mapping
from threading import Lock
from typing import Any

from ..errors import ArgumentTypeError, CorpusError
from ..tokenizer.base import BUILTIN, BaseTokenizer
from ..tokenizer.seam import users_class
from . import lists
from .blocks import IDS
from .packages import pa
from .settings import Masks, Names, TooLong, encoding_of
from .table import encode_rows, granted_threads, table_of

_OPENED: dict[str, tuple[int, int, BaseTokenizer]] = {}
"""The open tokenizers by path, each with the size of its file and the time of its last change."""

_LOCK = Lock()


def _after_fork() -> None:
    """Another thread of the parent may have held the lock."""
    global _LOCK
    _LOCK = Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def opened(model: str) -> BaseTokenizer:
    """The tokenizer of a file, or the embedded vocabulary of this name, open since the first call in this process.

    Raises `CorpusError` if the file is not on this machine, and otherwise what `Tokenizer.from_gguf` raises.
    """
    path = "" if model in BUILTIN else os.path.abspath(model)
    try:
        status = os.stat(path) if path else None
    except (FileNotFoundError, NotADirectoryError):
        problem = f"no such file on the machine {socket.gethostname()}: every worker needs the tokenizer"
        raise CorpusError(f"{problem} under the same path", source=path) from None
    version = (status.st_size, status.st_mtime_ns) if status else (0, 0)
    with _LOCK:  # held while the file is read: other threads need it too
        known = _OPENED.get(path or model)
        if known is None or known[:2] != version:
            cls = users_class()
            known = (*version, cls.from_gguf(path) if path else cls.builtin(model))
            _OPENED[path or model] = known
        return known[2]


class TableEncoder:
    """Adds a column with the tokens of each text to the tables that it is called with: `encode_table` for workers.

    It has the tokenizer by its path. A worker opens it once, however many tables and tasks it gets; the pickled encoder
    is some hundred bytes. docs/corpus-engines.md shows it in Ray Data, Spark, datatrove, datasets, Polars and Daft.

    Args:
        model: The path of a GGUF file that every worker can read, or the name of an embedded vocabulary (`bpe`, `spm`,
            `unigram` or `wordpiece`). A relative path is looked up in the folder of the worker.
        field: As in `encode_table`, as are all arguments that are not listed here.
        threads: The number of threads. Default: what the engine grants to a worker, `OMP_NUM_THREADS`; 1 if it is not
            set. Engines run as many workers as there are cores, so they never take all cores each.

    Raises:
        CorpusError: An argument is out of range.
        TypeError: `model` is not a path.

    Calls raise what `encode_table` does, and `CorpusError` if the machine has no such file.

    >>> import ggtok, pyarrow
    >>> encoder = ggtok.corpus.TableEncoder("bpe", append_eos=True)
    >>> encoder(pyarrow.table({"text": ["one text", "What is LoRA?"]}))["input_ids"].to_pylist()
    [[6053, 7301, 12991], [9713, 5981, 6266, 78, 9612, 30, 12991]]
    """

    __slots__ = ("_encoding", "_ids", "_model", "_threads")

    def __init__(
        self,
        model: str | os.PathLike[str],
        field: str = "text",
        *,
        messages: Names | None = None,
        tools: str | None = None,
        template: str | None = None,
        template_text: str | None = None,
        variables: Mapping[str, Any] | None = None,
        mask: Masks = "turn",
        shape: str | None = None,
        date: str | None = None,
        threads: int | None = None,
        add_special: bool = True,
        parse_special: bool = False,
        append_eos: bool = False,
        max_length: int | None = None,
        too_long: TooLong = "cut",
        ids: str = IDS,
    ) -> None:
        if not isinstance(model, (str, os.PathLike)):
            raise ArgumentTypeError(f"model must be a path or the name of a vocabulary, not {type(model).__name__}")
        self._model = os.fsdecode(model)
        if isinstance(model, os.PathLike) and self._model in BUILTIN:
            self._model = os.path.join(os.curdir, self._model)
        chat = tools, template, template_text, variables, mask, shape, date
        special = add_special, parse_special, append_eos
        self._encoding = encoding_of(field, messages, chat, special, max_length, too_long)
        self._threads, self._ids = threads, ids

    @property
    def tokenizer(self) -> BaseTokenizer:
        """The tokenizer, open since the first use in this process.

        Raises `CorpusError` if the machine has no such file, and otherwise what `Tokenizer.from_gguf` raises.

        >>> import ggtok
        >>> ggtok.corpus.TableEncoder("bpe").tokenizer.vocab_size
        13000
        """
        return opened(self._model)

    def __call__(self, table: Any) -> Any:
        """The table with the tokens of its texts, as the type that it came as.

        A pyarrow table, a record batch or a polars DataFrame stays one; other Arrow tables become pyarrow tables.
        """
        result = self._encoded(table_of(table))
        if isinstance(table, pa.RecordBatch):
            if sum(len(chunk.flatten()) for chunk in result.columns[-1].chunks) > lists.MOST_IDS:
                raise CorpusError("a record batch cannot hold that many tokens: make it smaller, or pass a table")
            batches = result.combine_chunks().to_batches()
            return batches[0] if batches else pa.RecordBatch.from_pylist([], result.schema)
        if type(table).__module__.startswith("polars."):
            import polars

            return polars.from_arrow(result)
        return result

    def each(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The record batches with the tokens of their texts, one after the other, as Spark's `mapInArrow` wants them.

        >>> import ggtok, pyarrow
        >>> batches = pyarrow.table({"text": ["one text"] * 4}).to_batches(2)
        >>> [batch.num_rows for batch in ggtok.corpus.TableEncoder("bpe").each(batches)]
        [2, 2]
        """
        for batch in batches:
            yield from self._encoded(table_of(batch)).to_batches()

    def _encoded(self, table: pa.Table) -> pa.Table:
        threads = granted_threads(self._threads)
        return encode_rows(table, self.tokenizer, self._encoding, threads, self._ids)

    def __repr__(self) -> str:
        return f"<ggtok.corpus.TableEncoder {self._model!r}, column {self._encoding.field!r}>"
