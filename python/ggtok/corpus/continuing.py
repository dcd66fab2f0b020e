"""What the shards of earlier runs are worth: those whose inputs are as they were are kept, the others are made anew.

An input is found again by its path, else by its size and sample, and keeps its first name. If its time has changed, or
all are to be looked at (`rehash`), its documents are read again and compared with the hashes of the shards.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from typing import Any

from ..errors import CorpusError
from ..tokenizer.findings import Finding, warn_of
from .documents import Documents, Watch
from .folder import Folder
from .manifest import NAME, VALIDATION, Manifest, Shard
from .plan import Task
from .shard import REJECTED, Job
from .writing import writer_of

ADVICE = "choose another folder, or build all of it anew (rebuild)"


@dataclass(frozen=True, slots=True)
class Options:
    """What a run does, besides what changes its result."""

    rebuild: bool = False
    """Whether all shards are made anew if they cannot be kept."""
    rehash: bool = False
    """Whether the documents of all finished shards are compared."""
    max_bad: float | None = None
    """The most bad rows; a `float` is a share of all."""
    keeps_shard_size: bool = False
    """Whether the size of the shards that are there holds, since none was given."""


Call = Callable[[Callable[[Any, Watch], Any], list[Any]], list[Any]]
"""Calls a function for each item, on several threads. The function also gets what it reports its progress to."""


def carry_over(before: Manifest, now: Manifest, job: Job, options: Options, call: Call) -> None:
    """Gives the new manifest the shards of the one before that hold, and inputs that were there their names.

    Raises `CorpusError` if it cannot continue that one.
    """
    now.run = before.run
    if not before.shards:
        return
    difference, kept, changed = before.difference(now), list[Shard](), list[str]()
    if difference is None:
        kept, changed = _kept(before, now, job, options.rehash, call)
        names = [[input.name for input in each.inputs] for each in (before, now)]
        is_same = len(kept) == len(before.shards) and names[0] == names[1]
        if now.settings.spans_inputs and not is_same:
            which = f" ({changed[0]})" if changed else ""
            difference = f"the inputs have changed{which}, and the order of all documents depends on them"
    if difference is not None and not options.rebuild:
        raise CorpusError(f"it holds another corpus: {difference}; {ADVICE}", source=str(job.folder.at()))
    if difference is not None:
        kept, now.run = [], before.run + 1
    elif not is_same:
        now.run += 1
    sizes = job.folder.sizes()
    now.shards = [shard for shard in kept if is_present(shard, sizes)]
    if sum(shard.run < now.run for shard in kept) > sum(shard.run < now.run for shard in now.shards):
        now.run = before.run + 1
    if changed:
        more = f" and {len(changed) - 1:,} more" if len(changed) > 1 else ""
        message = f"{changed[0]}{more} changed: {len(before.shards) - len(kept):,} of {len(before.shards):,} shards"
        warn_of(Finding("inputs-changed", "warning", f"{message} are made anew", ""))


def _kept(before: Manifest, now: Manifest, job: Job, rehash: bool, call: Call) -> tuple[list[Shard], list[str]]:
    """The shards that hold, with the numbers that their inputs have now, and the names of inputs that have changed."""
    of_path = {input.path: number for number, input in enumerate(before.inputs)}
    was = {number: of_path.pop(input.path) for number, input in enumerate(now.inputs) if input.path in of_path}
    of_content = {before.inputs[number].content: number for number in of_path.values()}
    for number, input in enumerate(now.inputs):
        if number not in was and input.content in of_content:
            was[number] = of_content.pop(input.content)
    same, looked = dict[int, int](), set[int]()
    sizes = job.folder.sizes()
    is_over = before.complete and all(is_present(shard, sizes) for shard in before.shards)
    for number, old in was.items():
        input, other = now.inputs[number], before.inputs[old]
        if input.content == other.content:
            now.inputs[number], same[old] = replace(input, name=other.name), number
            if is_over if input.size is None else (rehash or input.time != other.time):
                looked.add(number)
    changed = [input.name for number, input in enumerate(before.inputs) if number not in same]
    kept: dict[str, list[Shard]] = {}
    for shard in before.shards:
        if all(piece.input in same for piece in shard.ranges) and (now.settings.skip_bad or not shard.rejected):
            ranges = [replace(piece, input=same[piece.input]) for piece in shard.ranges]
            sources = {same[number]: sums for number, sums in shard.sources.items() if number in same}
            kept.setdefault(shard.task, []).append(replace(shard, ranges=ranges, sources=sources))
    inputs = [replace(each, name=entry.name) for each, entry in zip(job.inputs, now.inputs, strict=True)]
    doubtful = [shards for shards in kept.values() if any(piece.input in looked for piece in shards[0].ranges)]
    for shards, is_same in zip(doubtful, call(partial(_is_same, replace(job, inputs=inputs)), doubtful), strict=True):
        if not is_same:
            changed += [now.inputs[piece.input].name for piece in shards[0].ranges if piece.input in looked]
            del kept[shards[0].task]
    return [shard for shards in kept.values() for shard in shards], list(dict.fromkeys(changed))


def _is_same(job: Job, shards: list[Shard], send: Watch) -> bool:
    """Whether the documents of a task's finished shards are the same when they are read again."""
    documents = Documents(job.inputs, task_of(shards[0]), job.settings, send)
    done = {shard.number: shard for shard in shards}
    for number in range(max(done) + 1):
        if number and not documents.has_more:
            return False
        if not documents.repeat(done.get(number, Shard(""))) and number in done:
            if job.inputs[shards[0].ranges[0].input].size is None:
                raise documents.changed(done[number])
            return False
    return True


def task_of(shard: Shard) -> Task:
    """The task that makes a shard."""
    return Task(shard.task, tuple(shard.ranges), "-" in shard.name)


def is_present(shard: Shard, sizes: dict[str, int]) -> bool:
    """Whether the files of a shard exist in their full size."""
    return all(sizes.get(file.name) == file.size for file in shard.files)


def ended(shards: list[Shard]) -> set[str]:
    """The names of the tasks whose shards are all there: as many as the number of the last one says."""
    count = Counter(shard.task for shard in shards)
    return {last.task for last in shards if last.is_last and count[last.task] == last.number + 1}


class Budget:
    """The first shards of a corpus, as many as reach its budget of tokens. They may be finished in any order."""

    def __init__(self, manifest: Manifest) -> None:
        budget = None if manifest.settings.shares else manifest.settings.budget
        self._left = inf if budget is None else budget
        self._next, self._waiting = (0, 0), dict[tuple[int, int], Shard]()
        self.shards: list[Shard] = []
        self.is_reached = False
        """Whether `shards` are all that the corpus needs."""
        for shard in manifest.shards:
            self.add(shard)

    def add(self, shard: Shard) -> None:
        """Takes a finished shard. O(1), except for those that waited for it."""
        self._waiting[int(shard.task), shard.number] = shard
        while not self.is_reached and (first := self._waiting.pop(self._next, None)) is not None:
            task, number = self._next
            self._next = (task + 1, 0) if first.is_last else (task, number + 1)
            self.shards.append(first)
            self._left -= first.tokens
            self.is_reached = self._left <= 0


def remove_unlisted(folder: Folder, manifest: Manifest) -> None:
    """Deletes the files of shards that are not kept, and those that a killed run wrote but did not note."""
    listed = {file.name for shard in manifest.shards for file in shard.files}
    suffixes = (*writer_of(manifest.settings.writing.format).suffixes, REJECTED)
    for name in folder.sizes().keys() - listed:
        stem = name.partition(".")[0]
        number = stem.removeprefix(VALIDATION)
        if len(number) >= 5 and NAME.fullmatch(number) and name.removeprefix(stem) in suffixes:
            folder.remove(name)
