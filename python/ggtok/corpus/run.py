"""Builds a corpus, or the shards of it that are missing, on several threads or processes.

Shards are independent: a worker makes those of one task after the other, and nothing is shared between workers but the
tokenizer. If there are fewer tasks than threads, each task encodes on several. Python renders chats under the GIL, so
these are made in processes; so is everything on more than `MOST_THREADS` threads.

The main thread alone counts, writes the journal and takes signals: workers send it messages.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from queue import Empty, SimpleQueue
from stat import S_ISREG
from threading import Event, local
from typing import Any, TypeVar

from .._ggtok import __version__
from ..errors import CorpusError
from ..tokenizer.files import lock, no_follow, remove_parts
from ..tokenizer.keys import CHAT_TEMPLATE
from .child import Child
from .manifest import JOURNAL, LOCK, MANIFEST, VERSION, InputEntry, Manifest, Shard, TokenizerEntry
from .plan import Task, cut_size, plan
from .shard import Job, make_shards, stamp
from .sources import Input
from .survey import Survey, fingerprint

POLL = 0.1
"""Seconds after which signals are looked at, even if no worker says anything."""

MOST_THREADS = 16
"""Threads of one process. The GIL is held for about 1.5 of the 40 ms that a block takes: 25 threads would fill it."""

Result = TypeVar("Result")


@dataclass
class State:
    """How far a run is: what `progress` is called with."""

    phase: str = "hashing"
    """"hashing" while the inputs are read for the first time, then "encoding"."""
    total_bytes: int | None = None
    """Bytes of the input files; `None` if standard input is read."""
    bytes: int = 0
    """Bytes of input that are done, in earlier runs too."""
    documents: int = 0
    """Documents encoded by this run."""
    tokens: int = 0
    shards: int = 0
    """Finished shards, those of earlier runs included."""


Progress = Callable[[State], None]
"""Is called from the thread that called `build`."""


class _Stopped(BaseException):
    """Ends the work of a thread after another one failed, or after Ctrl-C."""


def run(job: Job, threads: int, progress: Progress) -> Manifest:
    """Builds what is missing of a corpus.

    Raises `CorpusError` if the folder holds something else, or a corpus of other inputs, settings or another tokenizer;
    or as `make_shards`.
    """
    folder, state = job.folder, State()
    folder.mkdir(parents=True, exist_ok=True)
    with _locked(folder):
        remove_parts(str(folder))
        before = Manifest.read(folder, is_locked=True)
        if before is None and (other := sorted(set(os.listdir(folder)) - {LOCK})):
            raise CorpusError(f"it holds {other[0]}, but no {MANIFEST}: choose an empty folder", source=str(folder))
        job = replace(job, stamps=[stamp(input) for input in job.inputs])
        surveys = _survey(job, threads, state, progress)
        manifest = _begun(job, surveys)
        if before is None:
            manifest.write(folder)
        elif (difference := before.difference(manifest)) is not None:
            advice = "choose another folder, or delete this one"
            raise CorpusError(f"it holds another corpus: {difference}; {advice}", source=str(folder))
        else:
            manifest.shards = _present(folder, before.shards)
            if before.complete:
                if len(manifest.shards) == len(before.shards):
                    (folder / JOURNAL).unlink(missing_ok=True)  # the run was killed just before
                    return before
                manifest.reopen(folder)
        job = replace(job, done={shard.name: shard for shard in manifest.shards})
        tasks = plan(job.inputs, surveys, job.settings.shard_size, job.settings.shuffle)
        _make(job, tasks, threads, manifest, state, progress)
        manifest.complete = True
        manifest.shards.sort(key=lambda shard: shard.name)
        manifest.write(folder)
    return manifest


def _survey(job: Job, threads: int, state: State, progress: Progress) -> list[Survey | None]:
    """Reads every input once: its hash, and where it can be cut. `None` for standard input."""
    size = cut_size(job.settings.shard_size, job.settings.shuffle)
    files = [input for input in job.inputs if input.path is not None]
    state.total_bytes = sum(input.size or 0 for input in files)

    def look(input: Input, send: Callable[[object], None]) -> Survey:
        return fingerprint(input, size, lambda read: send((read, 0, 0)), unpacks=job.settings.shuffle is not None)

    found = iter(_on_threads(look, files, threads, state, progress, lambda _: None))
    surveys = [None if input.path is None else next(found) for input in job.inputs]
    state.phase, state.bytes = "encoding", 0
    if None in surveys:
        state.total_bytes = None
    return surveys


def _make(job: Job, tasks: list[Task], threads: int, manifest: Manifest, state: State, progress: Progress) -> None:
    """Makes the missing shards, and notes each in the journal."""
    ended = _ended(manifest.shards)
    missing = [task for task in tasks if task.name not in ended]
    state.shards = len(manifest.shards)
    # A stream that has not ended is read from its start again.
    state.bytes = sum(shard.input_bytes for shard in manifest.shards if shard.task in ended)
    workers = max(min(threads, len(missing)), 1)
    job = replace(job, threads=threads // workers)
    in_processes = workers > (1 if job.settings.reading.is_chat else MOST_THREADS)
    of_thread = local()
    with ExitStack() as stack:

        def make(task: Task, send: Callable[[object], None]) -> None:
            def watch(*sums: int) -> None:
                send(sums)

            if not in_processes or job.inputs[task.ranges[0].input].path is None:  # standard input is here
                shards = make_shards(job, task, watch)
            else:
                if not hasattr(of_thread, "child"):
                    of_thread.child = Child(job)
                    stack.callback(of_thread.child.end)
                shards = of_thread.child.make_shards(task, watch)
            for shard in shards:
                send(shard)

        def note(shard: Shard) -> None:
            manifest.add(job.folder, shard)
            state.shards += 1

        _on_threads(make, missing, workers, state, progress, note)


def _on_threads(
    function: Callable[[Any, Callable[[object], None]], Result],
    items: list[Any],
    threads: int,
    state: State,
    progress: Progress,
    note: Callable[[Shard], None],
) -> list[Result]:
    """Calls a function for each item, on several threads. What it sends is counted or noted by this thread.

    The first exception, or Ctrl-C, ends all of them: `send` raises in them.
    """
    messages: SimpleQueue[Any] = SimpleQueue()
    stop = Event()

    def send(message: object) -> None:
        messages.put(message)
        if stop.is_set():
            raise _Stopped

    def call(item: Any) -> Result:
        try:
            send((0, 0, 0))
            return function(item, send)
        except BaseException:
            stop.set()
            raise

    def receive(timeout: float) -> bool:
        try:
            message = messages.get(timeout=timeout) if timeout else messages.get_nowait()
        except Empty:
            return False
        if isinstance(message, Shard):
            note(message)
        else:
            num_bytes, documents, tokens = message
            state.bytes += num_bytes
            state.documents += documents
            state.tokens += tokens
        return True

    with ThreadPoolExecutor(max(min(threads, len(items)), 1)) as pool:
        futures = [pool.submit(call, item) for item in items]
        try:
            while not all(future.done() for future in futures):
                receive(POLL)
                progress(state)
        finally:
            stop.set()
            pool.shutdown(cancel_futures=True)
            while receive(0):
                pass
    progress(state)
    errors = (future.exception() for future in futures if not future.cancelled())
    failure = next((error for error in errors if error is not None and not isinstance(error, _Stopped)), None)
    try:
        if failure is not None:
            raise failure
        return [future.result() for future in futures]
    finally:
        # An error whose traceback leads back to it would keep the tokenizer alive until the cycle collector runs.
        del errors, failure, futures


def _begun(job: Job, surveys: list[Survey | None]) -> Manifest:
    """The manifest before any shard is made."""
    vocab, metadata, settings = job.tokenizer.vocab, job.tokenizer.metadata, job.settings
    own = settings.encoding.template_text
    template = metadata.get(CHAT_TEMPLATE) if own is None else own
    hash = None
    if settings.reading.is_chat and isinstance(template, str):
        hash = sha256(template.encode("utf-8", "surrogateescape")).hexdigest()
    tokenizer = TokenizerEntry(
        digest=job.tokenizer.fingerprint,
        name=metadata.get("general.name"),
        kind=vocab.kind,
        pre=vocab.pre,
        vocab_size=len(vocab),
        adds_bos=settings.encoding.add_special and vocab.add_bos,
        adds_eos=settings.encoding.append_eos or (settings.encoding.add_special and vocab.add_eos),
        bos_id=vocab.bos_id,
        eos_id=vocab.eos_id,
        chat_template_sha256=hash,
    )
    inputs = [
        InputEntry(
            input.name, input.format, input.compression, *((survey.size, survey.sha256) if survey else (None, None))
        )
        for input, survey in zip(job.inputs, surveys, strict=True)
    ]
    return Manifest(VERSION, __version__, tokenizer, settings, inputs)


def _present(folder: Path, shards: list[Shard]) -> list[Shard]:
    """The shards whose files exist in their full size; the others are made again."""

    def is_there(name: str, size: int) -> bool:
        path = folder / name
        return path.is_file() and path.stat().st_size == size

    return [shard for shard in shards if all(is_there(file.name, file.size) for file in shard.files)]


def _ended(shards: list[Shard]) -> set[str]:
    """The names of the tasks whose shards are all there: as many as the number of the last one says."""
    count = Counter(shard.task for shard in shards)
    return {last.task for last in shards if last.is_last and count[last.task] == last.number + 1}


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Keeps other runs out of a folder. The lock is an empty file: one with anything in it is not ours.

    Raises `CorpusError` if another run has it.
    """
    path = folder / LOCK
    try:
        descriptor = no_follow(str(path), os.O_WRONLY | os.O_CREAT)
    except OSError as error:
        raise CorpusError(f"{LOCK} cannot be opened: {error.strerror}", source=str(folder)) from error
    with open(descriptor, "wb") as file:
        try:
            lock(file)
            status = os.stat(path)  # the run before deletes it
        except OSError as error:
            raise CorpusError("another run is using this folder", source=str(folder)) from error
        if status.st_size or not S_ISREG(status.st_mode):
            raise CorpusError(f"it holds {LOCK}, which another program made", source=str(folder))
        try:
            yield
        finally:
            if os.name != "nt":  # which deletes no open file
                path.unlink()
