"""One measurement of one peer in this process: prints one JSON object as the last line of standard output.

`worker.py REQUEST`, where REQUEST is the JSON object that the driver makes: `measurement`, `peer`, `vocabulary`,
`shared`, `cache`, `core` and what the measurement needs. A peer that cannot represent the vocabulary is an answer
(`{"unsupported": reason}`), not a failure. Before each timed section, one call on a text that occurs in no document
builds whatever a library builds on first use; only the `startup` measurement includes that cost.
"""

from __future__ import annotations

import gzip
import json
import os
import resource
import statistics
import subprocess
import sys
from array import array
from collections.abc import Callable, Iterable
from hashlib import blake2b
from importlib import import_module, metadata
from itertools import cycle, repeat
from pathlib import Path
from time import perf_counter, perf_counter_ns
from typing import Any

from peers import PEERS, REFERENCE, Encoder, open_ggtok
from texts import BIG, CORPORA, DOCUMENT_BYTES, SHORT, WARM_UP, distinct, documents, run
from vocabularies import UnsupportedError, Vocabulary

Request = dict[str, Any]
Answer = dict[str, Any]

CALLS_PER_SAMPLE = 1000
"""Short calls are timed in groups, so that the cost of reading the clock (about 50 ns) is negligible."""
SAMPLES = 31
DECODE_IDS = 4096
BATCH_ROUNDS = 5
IMPORTS = 7
STRETCH = 2500
"""Documents per measured stretch at scale: 10 MB."""
UNPINNED = ("batch", "startup", "start")
"""Measurements that may use every core: loading is one call that a user waits for, however many threads it takes."""


def _open(request: Request) -> Encoder:
    return PEERS[request["peer"]].load(_vocabulary(request))


def _vocabulary(request: Request) -> Vocabulary:
    return Vocabulary(Path(request["shared"]) / "vocabs" / f"{request['vocabulary']}.gguf", Path(request["cache"]))


def _documents(request: Request, corpus: str | None = None) -> list[str]:
    return documents(Path(request["shared"]) / "corpora", corpus or request["corpus"], request["limit_bytes"])


def _seconds(call: Callable[[Any], Any], inputs: Iterable[Any]) -> float:
    start = perf_counter()
    for item in inputs:
        call(item)
    return perf_counter() - start


def _digest(ids: Iterable[int]) -> str:
    return blake2b(array("i", ids).tobytes(), digest_size=8).hexdigest()


def check(request: Request) -> Answer:
    """The digest of every document's ids, and the version of the package."""
    encoder = _open(request)
    digests = {
        corpus: [_digest(encoder.ids(encoder.encode(encoder.text(text)))) for text in _documents(request, corpus)]
        for corpus in CORPORA
        if corpus in request["corpora"]
    }
    return {"version": _version(request), "digests": digests}


def recorded(request: Request) -> Answer:
    """How many of the texts with recorded ids of llama.cpp get other ids, or an error.

    Special tokens are not added. Some peers read them in every text and some never, so texts that spell one are left
    out, and so are bytes that are not UTF-8.
    """
    vocabulary, encoder, texts, differing = _vocabulary(request), _open(request), 0, 0
    special = vocabulary.special()
    with gzip.open(Path(request["shared"]) / "conformance" / f"{vocabulary.name}.jsonl.gz", "rt") as lines:
        for case in map(json.loads, lines):
            if case["kind"] != "encode" or case["add_special"] or case["parse_special"] or "text" not in case:
                continue
            if not any(token in case["text"] for token in special):
                texts += 1
                try:
                    ids = encoder.ids(encoder.encode(encoder.text(case["text"])))
                except Exception:
                    ids = None
                differing += ids is None or list(ids) != case["ids"]
    return {"version": _version(request), "texts": texts, "differing": differing}


def _version(request: Request) -> str:
    return metadata.version(PEERS[request["peer"]].requirement.partition("==")[0] or "ggtok")


def throughput(request: Request) -> Answer:
    """Seconds for documents never seen before, then for the same documents again (llama.cpp remembers nothing)."""
    encoder = _open(request)
    inputs = [encoder.text(text) for text in _documents(request)]
    size = sum(len(text.encode()) for text in _documents(request))
    encoder.encode(encoder.text(WARM_UP))
    first = _seconds(encoder.encode, inputs)
    second = first if request["peer"] == REFERENCE else _seconds(encoder.encode, inputs)
    return {"bytes": size, "first": first, "second": second}


def passes(request: Request) -> Answer:
    """Page faults of two passes over documents from everywhere in a corpus, up to a limit in bytes.

    `counts.py` has valgrind write its counts at each call of `getloadavg`, which does nothing else here.
    """
    encoder = _open(request)
    every = _documents(request | {"limit_bytes": 1 << 30})
    texts = every[:: max(1, len(every) * DOCUMENT_BYTES // request["limit_bytes"])]
    inputs = [encoder.text(text) for text in texts]
    encoder.encode(encoder.text(WARM_UP))
    faults = []
    for _ in range(2):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        os.getloadavg()
        _seconds(encoder.encode, inputs)
        faults.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
    os.getloadavg()
    return {"bytes": sum(len(text.encode()) for text in texts), "faults": faults}


def scale(request: Request) -> Answer:
    """MB/s of every 10 MB of a big text that was never seen before, then of the same documents again: medians."""
    encoder = _open(request)
    texts = documents(Path(request["big"]), request["corpus"], request["big_bytes"])
    stretches = [texts[at : at + STRETCH] for at in range(0, len(texts), STRETCH)]
    sizes = [sum(len(text.encode()) for text in stretch) for stretch in stretches]
    inputs = [[encoder.text(text) for text in stretch] for stretch in stretches]
    encoder.encode(encoder.text(WARM_UP))

    def speed() -> float:
        seconds = [_seconds(encoder.encode, stretch) for stretch in inputs]
        return statistics.median(size / 1e6 / time for size, time in zip(sizes, seconds, strict=True))

    return {"bytes": sum(sizes), "first": speed(), "second": speed()}


def start(request: Request) -> Answer:
    """Encodes the big texts one after another, and starts over at their end. The driver times the whole process."""
    encoder, left, folder = _open(request), request["bytes"], Path(request["big"])
    corpora = cycle(BIG)
    while left > 0:
        corpus = next(corpora)
        for text in documents(folder, corpus, left):
            encoder.encode(encoder.text(text))
        left -= (folder / f"{corpus}.txt").stat().st_size
    return {"text_bytes": sum((folder / f"{corpus}.txt").stat().st_size for corpus in BIG)}


def short(request: Request) -> Answer:
    """Median nanoseconds per call that returns a list."""
    encoder = _open(request)
    answer = {}
    for name, text in SHORT.items():
        argument, samples = encoder.text(text), []
        for _ in range(SAMPLES):
            start = perf_counter_ns()
            for _ in repeat(None, CALLS_PER_SAMPLE):
                encoder.encode_list(argument)
            samples.append((perf_counter_ns() - start) / CALLS_PER_SAMPLE)
        answer[name] = statistics.median(samples)
    return answer


def startup(request: Request) -> Answer:
    """Seconds from the load call to the first list of ids, package imported; bytes resident beyond this process's."""
    before = _resident()
    import_module(PEERS[request["peer"]].package)
    start = perf_counter()
    encoder = _open(request)
    encoder.encode_list(encoder.text(WARM_UP))
    return {"load": perf_counter() - start, "resident": _resident() - before}


def imports(request: Request) -> Answer:
    """Median seconds of the import statement in a bare interpreter that has imported nothing else."""
    package = PEERS[request["peer"]].package
    code = f"import time; start = time.perf_counter(); import {package}; print(time.perf_counter() - start)"
    command = [sys.executable, "-I", "-c", code]
    outputs = (subprocess.run(command, capture_output=True, text=True, check=True).stdout for _ in range(IMPORTS))
    return {"seconds": statistics.median(map(float, outputs))}


def _resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def single_run(request: Request) -> Answer:
    """Seconds for one call on a megabyte of one repeated character, and the digest of the ids."""
    encoder = _open(request)
    argument = encoder.text(run(request["run"]))
    encoder.encode(encoder.text(WARM_UP))
    start = perf_counter()
    answer = encoder.encode(argument)
    return {"seconds": perf_counter() - start, "digest": _digest(encoder.ids(answer))}


def decode(request: Request) -> Answer:
    """Seconds and text bytes for decoding every document's ids, and median seconds for one call on 4,096 ids."""
    encoder = _open(request)
    if encoder.decode is None:
        raise UnsupportedError("no decoder")
    texts = _documents(request)
    ids = [encoder.ids(encoder.encode(encoder.text(text))) for text in texts]
    inputs = [encoder.decode_input(part) for part in ids]
    block = encoder.decode_input([token for part in ids for token in part][:DECODE_IDS])
    encoder.decode(block)
    seconds = _seconds(encoder.decode, inputs)
    blocks = [_seconds(encoder.decode, [block]) for _ in range(SAMPLES)]
    return {"bytes": sum(len(text.encode()) for text in texts), "seconds": seconds, "block": statistics.median(blocks)}


def count(request: Request) -> Answer:
    """ggtok only: seconds of `encode_array` and of `count` on documents seen before."""
    tokenizer = open_ggtok(_vocabulary(request))
    texts = _documents(request)

    def encode(text: str) -> None:
        tokenizer.encode_array(text, add_special=False)

    def count_only(text: str) -> None:
        tokenizer.count(text, add_special=False)

    _seconds(encode, texts)
    rounds = [(_seconds(encode, texts), _seconds(count_only, texts)) for _ in range(BATCH_ROUNDS)]
    encoded, counted = (statistics.median(part) for part in zip(*rounds, strict=True))
    return {"encode_array": encoded, "count": counted}


def batch(request: Request) -> Answer:
    """ggtok only: seconds of `encode_batch` on documents seen before, one thread and two. Not pinned."""
    tokenizer = open_ggtok(_vocabulary(request))
    texts = _documents(request)

    def seconds(threads: int) -> float:
        return _seconds(lambda batch: tokenizer.encode_batch(batch, threads=threads, add_special=False), [texts])

    seconds(2)
    rounds = [(seconds(1), seconds(2)) for _ in range(BATCH_ROUNDS)]
    one, two = (statistics.median(part) for part in zip(*rounds, strict=True))
    return {"one": one, "two": two}


def growth(request: Request) -> Answer:
    """Resident bytes beyond the loaded tokenizer, after each eighth of a stream of distinct text."""
    encoder = _open(request)
    total = request["growth_bytes"]
    step = max(total // DOCUMENT_BYTES // 8, 1)
    encoder.encode(encoder.text(WARM_UP))
    before, marks = _resident(), []
    for n, text in enumerate(distinct(total), 1):
        encoder.encode(encoder.text(text))
        if n % step == 0:
            marks.append(_resident() - before)
    return {"bytes": total, "resident": marks}


MEASUREMENTS: dict[str, Callable[[Request], Answer]] = {
    function.__name__: function
    for function in (
        *(check, recorded, throughput, passes, scale, start, short, startup, imports, single_run, decode, count),
        *(batch, growth),
    )
}


def main() -> None:
    """Pins the process if the measurement is for one core, runs it, prints the answer."""
    request: Request = json.loads(sys.argv[1])
    if request["measurement"] not in UNPINNED and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {request["core"]})
    try:
        answer = MEASUREMENTS[request["measurement"]](request)
    except UnsupportedError as reason:
        answer = {"unsupported": str(reason)}
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
