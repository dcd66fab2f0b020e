"""Checks a corpus against its manifest, and against the documents that it was made from.

1. Every file of every shard is there, with its size and hash.
2. The tokenizer is the one that the corpus was made with.
3. The documents are read and encoded again, and go through the same stages as when they were written; what comes out is
   compared with what the package that the format belongs to would read. Their tokens are decoded and compared with the
   texts, too: a vocabulary that changes texts (lower case, spaces) does not give all of them back.
4. Conversations are rendered again, with the template and the settings of the manifest. Their masks are compared too.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..errors import CorpusError
from ..tokenizer.base import BaseTokenizer
from ..tokenizer.numbers import at_least, num_threads
from .blocks import IDS, MASK, Block
from .building import TokenizerOrPath, opened
from .continuing import task_of
from .documents import Documents, parted
from .folder import MANIFEST, Folder, folder_of
from .lists import documents
from .manifest import VOCABULARY, Manifest, Shard
from .overview import manifest_of
from .packages import check_packages, np, pa, xxhash
from .settings import Settings
from .shard import Job, Stages, prefixes, selected
from .sources import Input, path_at
from .table import encode_block
from .writing import writer_of

SAMPLE = 1000
"""Documents of each shard that are encoded again, unless all of them are wanted."""


@dataclass
class Verification:
    """What `verify` found."""

    problems: list[str] = field(default_factory=list)
    """What is wrong: empty if the corpus is what its manifest says."""
    notes: list[str] = field(default_factory=list)
    """What could not be compared, and why."""
    files: int = 0
    """Files whose hash is right."""
    documents: int = 0
    """Documents that were encoded again, with the same tokens."""
    decoded: int = 0
    """Those of them whose tokens decode to their text, byte for byte."""
    masks: int = field(default=0, repr=False)
    """Conversations among them that have the same assistant mask."""
    changed: str | None = None
    """The first text that does not come back, and what comes instead."""

    @property
    def is_right(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems


Progress = Callable[[int, int], None]
"""Called with how many bytes are done, and of how many."""


def verify(
    folder: str | os.PathLike[str],
    *,
    tokenizer: TokenizerOrPath | None = None,
    sample: int | None = SAMPLE,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Verification:
    """Checks that a corpus is what its manifest says, and that its tokens are those of its documents.

    Args:
        folder: The folder that `build` wrote, or its URL.
        tokenizer: As in `build`. Default: the vocabulary that is kept in the folder.
        sample: How many documents of each shard are read and encoded again, from its start. `None`: all of them.
        threads: Files that are hashed at once. Default: the number of cores that this process may use.
        progress: Called with the bytes that are done, and with all that there are.

    Returns:
        What is wrong, and what was compared. Inputs that are gone or that came from standard input are not compared,
        and a note says so. It is wrong if that leaves nothing to compare.

    Raises:
        CorpusError: The folder holds no corpus, or a store fails.
        DependencyError: pyarrow, numpy or xxhash is not installed.
        GgtokError: The tokenizer cannot be opened.

    >>> import ggtok, pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "in.jsonl").write_text('{"text": "one text"}\\n{"text": "What is LoRA?"}\\n')
    >>> info = ggtok.corpus.build([folder / "in.jsonl"], folder / "out", tokenizer="bpe", format="megatron")
    >>> ggtok.corpus.verify(folder / "out", tokenizer="bpe")
    Verification(problems=[], notes=[], files=2, documents=2, decoded=2, changed=None)
    """
    check_packages("xxhash")
    place = folder_of(os.fspath(folder))
    limit = None if sample is None else at_least(0, sample, "sample")
    manifest = manifest_of(place)
    if tokenizer is None:
        if VOCABULARY not in place.sizes():
            raise CorpusError(f"it has no {VOCABULARY}: give the tokenizer", source=str(folder))
        with place.fetched([VOCABULARY]) as local:
            tokenizer = opened(local / VOCABULARY)
    model = opened(tokenizer)
    found = Verification()
    if not manifest.complete:
        found.problems.append("it is not complete: the command that began it continues")
    _check_files(place, manifest, found, num_threads(threads), progress)
    if (was := manifest.tokenizer.digest) != (now := model.fingerprint):
        found.problems.append(f"it was made with another tokenizer: its digest is {was}, and this one's is {now}")
    elif limit != 0:
        inputs = [replace(each, path=path_at(place.at(), each.path)) for each in manifest.inputs]
        _check_documents(Job(place, inputs, manifest.settings, model, 1), manifest.shards, limit, found)
        if not found.problems and not found.documents and manifest.sums().documents:
            found.problems.append("no document could be compared, because no input can be read")
    return found


def _check_files(
    folder: Folder, manifest: Manifest, found: Verification, threads: int, progress: Progress | None
) -> None:
    """Compares sizes and hashes."""
    files = [file for shard in manifest.shards for file in shard.files]
    total, done, sizes = sum(file.size for file in files), 0, folder.sizes()

    def hashed(name: str) -> str | None:
        if name not in sizes:
            return None
        with folder.fetched([name]) as local, open(local / name, "rb") as file:
            return hashlib.file_digest(file, xxhash.xxh3_128).hexdigest()

    with ThreadPoolExecutor(threads) as pool:
        for file, hash in zip(files, pool.map(hashed, [file.name for file in files]), strict=True):
            if hash is None:
                found.problems.append(f"{file.name} is missing")
            elif hash != file.xxh128:
                size = sizes[file.name]
                detail = "" if size == file.size else f": it has {size:,} bytes instead of {file.size:,}"
                found.problems.append(f"{file.name} is not what was written{detail}")
            else:
                found.files += 1
            done += file.size
            if progress is not None:
                progress(done, total)


def _check_documents(job: Job, shards: list[Shard], limit: int | None, found: Verification) -> None:
    """Encodes documents again, shard by shard."""
    settings, inputs = job.settings, job.inputs
    gone = {number: reason for number, input in enumerate(inputs) if (reason := _gone(input)) is not None}
    if settings.reading.is_chat:
        own = "the corpus's own template" if settings.encoding.template_text is not None else "the tokenizer's template"
        note = f"conversations were rendered again by {own}, and their texts have nothing to be compared with"
        found.notes.append(note)
    for number, reason in gone.items():
        found.notes.append(f"{inputs[number].name} {reason}: its documents are not compared")
    streams: dict[str, Documents] = {}
    """The stream of the previous shard, which continues where that ended."""
    for shard in shards:
        if any(piece.input in gone for piece in shard.ranges):
            continue
        task = task_of(shard)
        blocks: Iterator[Block] = iter(())
        try:
            if task.name not in streams:
                streams = {task.name: Documents(inputs, task, settings, lambda *_: None)}
            blocks = streams[task.name].of_shard(Shard(shard.name))
            with job.folder.fetched(file.name for file in shard.files) as local:
                _compare(job, shard.name, blocks, local, limit, found)
        except CorpusError as error:
            found.problems.append(f"shard {shard.name}: {error}")
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            found.problems.append(f"shard {shard.name}: the settings in {MANIFEST} contradict each other: {error!r}")
        for _ in blocks if task.is_stream else ():
            pass  # the documents that were not compared


def _gone(input: Input) -> str | None:
    """Why an input cannot be read again, if it cannot."""
    if input.size is None:
        return "is over"
    try:
        size = input.status()[0]
    except CorpusError as error:
        return f"cannot be read ({error})"
    return None if size == input.size else f"has {size:,} bytes now instead of {input.size:,}"


def _compare(
    job: Job, shard: str, blocks: Iterator[Block], folder: Path, limit: int | None, found: Verification
) -> None:
    """Compares the documents of a shard with its files, which are in a local folder.

    Raises `CorpusError` at the first difference, or if a file of the shard is damaged.
    """
    settings, names = job.settings, prefixes(shard, job.settings)
    parts = [_Part(folder / name, settings) for name in names]
    stages = [Stages(settings, name, part) for name, part in zip(names, parts, strict=True)]
    compared = 0
    for block in blocks:
        table = encode_block(block, job.tokenizer, settings.encoding, job.threads).table
        wanted = table.slice(0, None if limit is None else limit - compared)
        _decode(wanted, settings, job.tokenizer, found)
        compared += wanted.num_rows
        for stage, rows in zip(stages, parted(table, settings), strict=True):
            stage.push(selected(rows, settings, job.inputs))
        if limit is not None and sum(part.number for part in parts) >= limit:
            break
    else:
        for stage in stages:
            stage.finish()
    found.documents += compared
    found.masks += compared * (MASK in parts[0].columns)


class _Part:
    """The files of a shard to train with, or for validation, read along with the tables that they were made from."""

    def __init__(self, prefix: Path, settings: Settings) -> None:
        format = writer_of(settings.writing.format)
        self.columns = (IDS, MASK) if settings.writing.assistant_mask and format.has_masks else (IDS,)
        self.number = 0
        self._has_empty = format.has_empty
        self._rows = zip(*(format.read(prefix, name) for name in self.columns), strict=False)

    def write(self, table: pa.Table) -> None:
        """Raises `CorpusError` if the next rows are not those of a table."""
        for new in zip(*(documents(table, name) for name in self.columns), strict=True):
            if not (len(new[0]) or self._has_empty):
                continue
            self.number += 1
            old = next(self._rows, None)
            if old is None or not np.array_equal(old[0], new[0]):
                raise CorpusError(f"row {self.number} does not have the tokens of its documents")
            if not np.array_equal(old[-1], new[-1]):
                raise CorpusError(f"row {self.number} does not have the mask of its conversations")

    def close(self) -> None:
        """Raises `CorpusError` if there are more rows."""
        if next(self._rows, None) is not None:
            raise CorpusError(f"it has rows after row {self.number}, which belong to no document")


def _decode(table: pa.Table, settings: Settings, tokenizer: BaseTokenizer, found: Verification) -> None:
    """Counts the documents whose tokens decode to their text. Rendered chats have no original text to compare with."""
    if settings.reading.is_chat:
        return
    ids = table.column(IDS).to_pylist()
    for text, row in zip(table.column(settings.reading.field).to_pylist(), ids, strict=True):
        if settings.encoding.fim and tokenizer.vocab.fim_mid_id in row:
            continue  # its text is in another order
        before = (text or "").encode() if not isinstance(text, bytes) else text
        after = tokenizer.decode_bytes(row, remove_special=True)
        if after == before:
            found.decoded += 1
        elif found.changed is None and len(row) != settings.encoding.max_length:
            same = [a == b for a, b in zip(before, after, strict=False)]
            place = same.index(False) if False in same else len(same)
            cut = slice(max(place - 20, 0), place + 20)
            found.changed = f"{before[cut]!r} comes back as {after[cut]!r}"
