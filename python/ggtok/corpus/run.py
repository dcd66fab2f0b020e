"""Builds a corpus, or the shards of it that are missing, on several threads or processes.

Shards are independent: a worker makes those of one task after the other, and nothing is shared between workers but the
tokenizer. If there are fewer tasks than threads, each task encodes on several. Python renders chats and opens files
under the GIL, so chats and short inputs are made in processes; so is everything on more than `MOST_THREADS` threads.

The main thread shows the progress and takes signals. Workers add to the counts, and write the journal one at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256
from itertools import chain
from math import ceil, inf
from threading import Event, Lock, local
from typing import Any

from .._ggtok import __version__
from ..chat.templates import chosen
from ..errors import CorpusError
from ..tokenizer.seam import metadata_of
from .blocks import IDS, num_tokens
from .child import Child
from .continuing import Budget, Call, Options, carry_over, ended, is_present, remove_unlisted, task_of
from .documents import Documents, Watch, parted, sample_places
from .folder import LOCK, MANIFEST
from .manifest import VERSION, VOCABULARY, Manifest, Shard, TokenizerEntry
from .packages import np
from .plan import Range, Task, cut_size, is_in_part, is_whole, plan
from .reading.streams import READER
from .shard import REJECTED, Job, make_shards
from .sources import MOST_PASSES, Input, path_from
from .survey import Survey, surveyed
from .table import encode_block
from .writing import writer_of

POLL = 0.1
"""Seconds after which the progress is shown and signals are looked at."""

BATCH = 64
"""Files that are surveyed as one piece of work."""

MOST_THREADS = 16
"""Threads of one process. The GIL is held for about 1.5 of the 40 ms that a block takes: 25 threads would fill it."""

SHORT = 1 << 16
"""Bytes of an input for which the GIL is held about as long as it takes to encode them."""

BINS = 1 << 16
"""Parts of a source by the hashes of its documents, whose tokens are counted."""


@dataclass
class State:
    """How far a run is: what `progress` is called with."""

    phase: str = "surveying"
    """"surveying" while the inputs are looked at, and those that may have changed compared, then "encoding"."""
    total_bytes: int | None = None
    """Bytes of the input files; `None` if standard input is read."""
    bytes: int = 0
    """Bytes of input that are done, in earlier runs too."""
    documents: int = 0
    """Documents encoded by this run."""
    tokens: int = 0
    shards: int = 0
    """Finished shards, those of earlier runs included."""
    finished: list[dict[str, Any]] = field(default_factory=list)
    """The shards that were finished since the last call: the name, documents, tokens and bad rows of each."""


Progress = Callable[[State], None]
"""Is called from the thread that called `build`."""


class _Stopped(BaseException):
    """Ends the work of a thread after another one failed, after Ctrl-C, or once the budget is reached."""


def run(job: Job, threads: int, progress: Progress, options: Options) -> Manifest:
    """Builds what is missing of a corpus.

    Raises `CorpusError` if the folder holds something else, or a corpus that this one does not continue; if there are
    more bad rows than allowed, or no others; or as `make_shards`.
    """
    folder, state = job.folder, State()
    call = partial(_on_threads, threads=threads, state=state, progress=progress)
    with folder.locked():
        before = Manifest.read(folder)
        if before is None and (other := sorted(folder.sizes().keys() - {LOCK})):
            problem = f"it holds {other[0]}, but no {MANIFEST}: choose an empty folder"
            raise CorpusError(problem, source=str(folder.at()))
        if before is not None and before.shards and options.keeps_shard_size and not options.rebuild:
            job = replace(job, settings=replace(job.settings, shard_size=before.settings.shard_size))
        size, part = job.settings.shard_size, job.part
        mine = [each for each in job.inputs if not is_whole(each, size) or is_in_part(part, each.name)]
        job = replace(job, inputs=mine)
        if job.settings.shares:
            job = replace(job, inputs=_weighed(job, None if options.rebuild else before, call))
        surveys = _survey(job, state, call, counts_rows=isinstance(options.max_bad, float))
        job = replace(job, inputs=[each.input for each in surveys])
        manifest = _begun(job)

        if before is not None:
            carry_over(before, manifest, job, options, call)
            remove_unlisted(folder, replace(before, shards=manifest.shards))
        all_done = ended(manifest.shards)
        # A stream that has not ended is read from its start again.
        state.phase = "encoding"
        state.bytes = sum(shard.input_bytes for shard in manifest.shards if shard.task in all_done)
        begun = {shard.name: shard for shard in manifest.shards if shard.task not in all_done}
        inputs = [replace(each, name=entry.name) for each, entry in zip(job.inputs, manifest.inputs, strict=True)]
        job = replace(job, inputs=inputs, done=begun, run=manifest.run)
        done = {shard.task: task_of(shard) for shard in manifest.shards if shard.run < manifest.run}
        tasks = [*done.values(), *plan(inputs, surveys, size, job.settings.shuffle, part, done.values())]
        budget = Budget(manifest)
        missing = [] if budget.is_reached else [task for task in tasks if task.name not in all_done]
        manifest.complete = before is not None and before.complete and not missing
        if before is None or not manifest.complete or replace(manifest, totals=before.totals) != before:
            manifest.write(folder)
        most = sum((inf if each.rows is None else each.rows) * ceil(each.input.weight) for each in surveys)
        state.shards, sums, guard = len(manifest.shards), manifest.sums(), Lock()

        def note(shard: Shard) -> None:
            with guard:
                manifest.add(folder, shard)
                state.shards += 1
                shown = ("name", "documents", "tokens", "rejected")
                state.finished.append({name: getattr(shard, name) for name in shown})
                budget.add(shard)
                if budget.is_reached:
                    raise _Stopped
                sums.add(shard)
                _check_bad(sums, options.max_bad, most)

        if not manifest.complete:
            _keep_vocabulary(job)
        _make(job, missing, threads, note, call)
        if budget.is_reached:
            manifest.shards = budget.shards
            remove_unlisted(folder, manifest)
        _check_bad(manifest.sums(), options.max_bad)
        sizes = folder.sizes()
        if gone := next((shard.name for shard in manifest.shards if not is_present(shard, sizes)), None):
            raise CorpusError(f"files of shard {gone} have gone: run it again", source=str(folder.at()))
        if not manifest.complete or folder.journal in sizes:  # else the last run was killed just before
            manifest.complete = True
            manifest.shards.sort(key=lambda shard: (int(shard.task), shard.number))
            manifest.write(folder)
    return manifest


def _weighed(job: Job, before: Manifest | None, call: Call) -> list[Input]:
    """The inputs with weights by which each source has its share of the tokens, which are counted for that.

    Without a budget, there are as many as there can be if no document is read twice. A weight is exact to a `BINS`th of
    its source. Weights stay if the same inputs were weighed before.
    """
    settings, paths = job.settings, [path_from(job.folder.at(), each) for each in job.inputs]
    is_same = before is not None and bool(before.shards) and before.settings.shares == settings.shares
    was = {each.path: each.weight for each in before.inputs} if before is not None and is_same else {}
    if [*was] == paths:
        return [replace(each, weight=was[path]) for each, path in zip(job.inputs, paths, strict=True)]
    counts, guard = {name: np.zeros(BINS, np.int64) for name, _ in settings.shares}, Lock()
    inputs = [replace(each, weight=1.0) for each in job.inputs]

    def count(number: int, send: Watch) -> None:
        task = Task("", (Range(number, 0, None, 1),))
        for block in Documents(inputs, task, settings, send).of_shard(Shard("")):
            table = parted(encode_block(block, job.tokenizer, settings.encoding, 1).table, settings)[0]
            bins = (sample_places(table, settings) * BINS).astype(np.int64)
            with guard:
                np.add.at(counts[inputs[number].source], bins, num_tokens(table.column(IDS)))
            send((block.num_bytes, 0, 0))

    call(count, [*range(len(inputs))])
    sums = {name: int(each.sum()) for name, each in counts.items()}
    if empty := [name for name, tokens in sums.items() if not tokens]:
        raise CorpusError("it has no tokens, so it cannot have a share of them", source=empty[0])
    total, found = settings.budget or min(sums[name] / share for name, share in settings.shares), dict[str, float]()
    for name, share in settings.shares:
        passes, rest = divmod(round(total * share), sums[name])
        found[name] = passes + (rest > 0) * (int(np.searchsorted(np.cumsum(counts[name]), rest)) + 1) / BINS
        if found[name] > MOST_PASSES:
            raise CorpusError(f"it has too few tokens: all would be read {found[name]:,.0f} times", source=name)
    return [replace(each, weight=found[each.source]) for each in inputs]


def _survey(job: Job, state: State, call: Call, counts_rows: bool) -> list[Survey]:
    """Looks at every input."""
    settings = job.settings
    size = cut_size(settings.shard_size, settings.shuffle)
    counts = settings.skip_bad or settings.reading.is_chat or writer_of(settings.writing.format).has_index
    options = settings.skip_bad, settings.shuffle is not None, counts_rows
    if not any(input.size is None for input in job.inputs):
        state.total_bytes = sum((input.size or 0) * ceil(input.weight) for input in job.inputs)

    def look(batch: list[Input], send: Watch) -> list[Survey]:
        return [surveyed(each, size, lambda done: send((done, 0, 0)), counts, *options) for each in batch]

    batches = [job.inputs[start : start + BATCH] for start in range(0, len(job.inputs), BATCH)]
    return [*chain.from_iterable(call(look, batches))]


def _keep_vocabulary(job: Job) -> None:
    """Writes the vocabulary into the folder."""
    from ..lab.convert.edits import Edits, entries
    from ..lab.convert.gguf import gguf_bytes

    job.folder.write(VOCABULARY, [gguf_bytes(entries(metadata_of(job.tokenizer), Edits()))])


def _check_bad(sums: Shard, max_bad: float | None, most: float = 0) -> None:
    """Raises `CorpusError` if there are only bad rows, or more than allowed; a `float` is a share.

    As long as shards are missing, `most` is how many rows there can be.
    """
    is_share = isinstance(max_bad, float)
    bad, rows = sums.rejected, sums.rejected + sums.documents + sums.dropped
    if bad == rows > 0 and not most:
        raise CorpusError(f"all {bad:,} rows are bad: {REJECTED} files say why")
    if max_bad is not None and bad > (max_bad * max(rows, most) if is_share else max_bad):
        bound = f"{max_bad * 100:g} %" if is_share else f"{max_bad:,}"
        raise CorpusError(f"{bad:,} of {rows:,} rows are bad, more than {bound}; all shards are kept for another bound")


def _make(job: Job, missing: list[Task], threads: int, note: Callable[[Shard], None], call: Call) -> None:
    """Makes the missing shards, and passes each to `note`."""
    workers = max(min(threads, len(missing)), 1)
    job = replace(job, threads=threads // workers)
    is_short = job.settings.shard_size * len(missing) < SHORT * sum(len(task.ranges) for task in missing)
    in_processes = workers > (1 if job.settings.reading.is_chat or is_short else MOST_THREADS)
    of_thread = local()
    with ExitStack() as stack:

        def make(task: Task, send: Watch) -> None:
            if not in_processes or job.inputs[task.ranges[0].input].size is None:  # standard input is here
                shards = make_shards(job, task, send)
            else:
                if not hasattr(of_thread, "child"):
                    of_thread.child = Child(job)
                    stack.callback(of_thread.child.end)
                shards = of_thread.child.make_shards(task, send)
            for shard in shards:
                note(shard)

        call(make, missing)


def _on_threads(
    function: Callable[[Any, Watch], Any], items: list[Any], threads: int, state: State, progress: Progress
) -> list[Any]:
    """Calls a function for each item, on several threads. What it sends is added to the state, which this thread shows.

    The first exception, or Ctrl-C, ends all of them: `send` raises in them. So does `_Stopped`, which is no failure.
    """
    guard, stop, shown = Lock(), Event(), replace(state)

    def send(done: tuple[int, int, int]) -> None:
        with guard:
            state.bytes += done[0]
            state.documents += done[1]
            state.tokens += done[2]
        if stop.is_set():
            raise _Stopped

    def call(item: Any) -> Any:
        READER.watch = partial(send, (0, 0, 0))
        try:
            READER.watch()
            return function(item, send)
        except BaseException as error:
            stop.set()
            if not isinstance(error, _Stopped):
                raise

    def update() -> None:
        finished = [*state.finished]
        del state.finished[: len(finished)]  # others may have been added
        vars(shown).update(vars(state), finished=finished)

    with ThreadPoolExecutor(max(min(threads, len(items)), 1)) as pool:
        futures = [pool.submit(call, item) for item in items]
        try:
            for number in range(len(futures)):
                while not futures[number].done():
                    update()
                    progress(shown)
                    wait([futures[number]], POLL)
        finally:
            stop.set()
            pool.shutdown(cancel_futures=True)
            update()
    progress(shown)
    try:
        return [*map(Future.result, futures)]
    finally:
        # A variable that leads to an error in whose traceback it is would keep the tokenizer until the collector runs.
        del futures


def _begun(job: Job) -> Manifest:
    """The manifest before any shard is made."""
    vocab, metadata, settings = job.tokenizer.vocab, job.tokenizer.metadata, job.settings
    hash, encoding = None, settings.encoding
    if settings.reading.is_chat:
        template = chosen(metadata, encoding.template, encoding.template_text, False).text
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
    inputs = [replace(each, path=path_from(job.folder.at(), each), source="") for each in job.inputs]
    return Manifest(VERSION, __version__, tokenizer, settings, inputs, job.part)
