"""Checks a corpus against its manifest, and against the documents that it was made from.

1. Every file of every shard is there, with its size and hash.
2. The tokenizer is the one that the corpus was made with.
3. The documents are read and encoded again, and written again into a temporary folder; what comes out is compared with
   the files. Their tokens are decoded and compared with the texts, too: a vocabulary that changes texts (lower case,
   spaces) does not give all of them back.
4. Conversations are rendered again, with the template and the settings of the manifest. Their masks are compared too.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ..errors import CorpusError
from ..tokenizer.base import BaseTokenizer
from ..tokenizer.numbers import at_least, num_threads
from .blocks import IDS, Block
from .building import TokenizerOrPath, opened
from .continuing import task_of
from .documents import Documents, parted
from .folder import MANIFEST, Folder, folder_of
from .lists import rows
from .manifest import VOCABULARY, Manifest, Shard
from .overview import manifest_of
from .packages import check_packages, np, pa, xxhash
from .settings import Settings, Writing
from .shard import Job, selected, stages_of
from .sources import Input, path_at
from .table import encode_block
from .writing import writer_of
from .writing.shard_files import ShardFiles

CHUNK = 1 << 20
"""Bytes of a file that are compared at once."""

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

    The files of one shard after the other are made again, in the temporary folder.

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
            _compare(job, shard, blocks, limit, found)
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


def _compare(job: Job, shard: Shard, blocks: Iterator[Block], limit: int | None, found: Verification) -> None:
    """Makes the files of a shard again, and compares their hashes, and if these differ the files.

    With a limit, they are made from about as many documents as it takes until some are written, and compared with the
    start of the files. Raises `CorpusError` if one of them is different or damaged.
    """
    settings, hashes = job.settings, {file.xxh128 for file in shard.files}
    writer = writer_of(settings.writing.format)
    compared, is_whole = 0, False
    with TemporaryDirectory(prefix="ggtok-") as made, ShardFiles(Path(made), shard.name) as files:
        stages = stages_of(settings, files)
        for block in blocks:
            table = encode_block(block, job.tokenizer, settings.encoding, job.threads).table
            wanted = table.slice(0, None if limit is None else limit - compared)
            _decode(wanted, settings, job.tokenizer, found)
            compared += wanted.num_rows
            for stage, rows in zip(stages, parted(table, settings), strict=True):
                stage.push(selected(rows, settings, job.inputs))
            if compared == limit and any(stage.num_rows for stage in stages):
                break
        else:
            is_whole = True
        for stage in stages:
            if is_whole:
                stage.flush()
            stage.sink.close()
        for part in files.parts:
            part.flush()
            if part.digest.hexdigest() in hashes if is_whole else part.final.endswith(writer.at_end):
                continue
            try:
                with job.folder.fetched([part.final]) as local:
                    is_same = _holds(local / part.final, Path(part.name), settings.writing, is_whole)
            except (pa.ArrowException, OSError, EOFError, zlib.error) as error:
                raise CorpusError(f"this cannot be read: {error}", source=part.final) from error
            if not is_same:
                raise CorpusError(f"{part.final} does not have the tokens or masks of its documents")
    found.documents += compared
    if settings.writing.assistant_mask and writer.has_masks:
        found.masks += compared


def _holds(file: Path, made: Path, writing: Writing, is_whole: bool) -> bool:
    """Whether a file has what was made again, and nothing else if that is all.

    Of tables the rows are compared, and of gzip the text: their bytes depend on the version of pyarrow and of zlib.
    """
    if not writer_of(writing.format).is_table:
        opened = gzip.open if file.suffix == ".gz" else open
        with opened(file, "rb") as old_bytes, opened(made, "rb") as new_bytes:
            while data := new_bytes.read(CHUNK):
                if old_bytes.read(len(data)) != data:
                    return False
            return not (is_whole and old_bytes.read(1))
    from pyarrow.dataset import dataset

    old, new = dataset(file, format=writing.format), dataset(made, format=writing.format)
    names = {*new.schema.names} - {*writing.columns}
    num_old, num_new = old.count_rows(), new.count_rows()
    if num_old < num_new or (is_whole and num_old > num_new) or not names <= {*old.schema.names}:
        return False
    return all(
        np.array_equal(*both) for name in names for both in zip(_rows(old, name), _rows(new, name), strict=False)
    )


def _rows(data: Any, name: str) -> Iterator[Any]:
    """The lists of a column of a dataset."""
    for batch in data.to_batches(columns=[name], batch_readahead=1, fragment_readahead=1, use_threads=False):
        yield from rows(pa.chunked_array(batch.columns))


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
