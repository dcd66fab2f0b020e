"""What `corpus.py` measures besides command lines, each as its users call it: `python corpus_peers.py NAME ARGUMENTS`.

datatrove SOURCE HF OUT     DocumentTokenizer over all files of a folder, a task per file, a worker per core
datasets SOURCE HF OUT      load_dataset, map with tokenizers in a process per core, to_parquet
memory SOURCE MODEL         Tokenizer.encode_batch over texts in memory; prints the seconds of the calls alone, by the
                            clock and of all cores
"""

from __future__ import annotations

import json
import os
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

NUM_CORES = len(os.sched_getaffinity(0))


def eos_of(hf: Path) -> str:
    text: str = json.loads((hf / "tokenizer_config.json").read_text())["eos_token"]
    return text


def run_datatrove(source: Path, hf: Path, out: Path) -> None:
    """Each worker is one core, so tokenizers gets one thread."""
    os.environ["RAYON_NUM_THREADS"] = "1"
    readers: Any = import_module("datatrove.pipeline.readers")
    reader = readers.ParquetReader if source.name == "parquet" else readers.JsonlReader
    step: Any = import_module("datatrove.pipeline.tokens").DocumentTokenizer
    executor: Any = import_module("datatrove.executor").LocalPipelineExecutor
    tokenizer = step(str(out), str(hf / "tokenizer.json"), eos_token=eos_of(hf), shuffle_documents=False)
    tasks = len(list(source.iterdir()))
    steps = [reader(str(source)), tokenizer]
    executor(steps, tasks=tasks, workers=NUM_CORES, logging_dir=str(out / "logs")).run()


class Encode:
    """For `datasets.map`: opens the tokenizer once per process."""

    def __init__(self, hf: Path) -> None:
        self.hf = hf
        self.tokenizer: Any = None

    def __call__(self, batch: dict[str, list[str]]) -> dict[str, list[list[int]]]:
        if self.tokenizer is None:
            self.tokenizer = import_module("tokenizers").Tokenizer.from_file(str(self.hf / "tokenizer.json"))
            self.eos = self.tokenizer.token_to_id(eos_of(self.hf))
        encodings = self.tokenizer.encode_batch_fast(batch["text"], add_special_tokens=False)
        return {"input_ids": [[*encoding.ids, self.eos] for encoding in encodings]}

    def __getstate__(self) -> dict[str, Any]:
        return {"hf": self.hf, "tokenizer": None}


def run_datasets(source: Path, hf: Path, out: Path) -> None:
    """Each process is one core, so tokenizers gets one thread."""
    os.environ["RAYON_NUM_THREADS"] = "1"
    datasets: Any = import_module("datasets")
    kind = "parquet" if source.name == "parquet" else "json"
    files = sorted(map(str, source.iterdir()))
    rows = datasets.load_dataset(kind, data_files=files, split="train", num_proc=NUM_CORES)
    tokens = rows.map(Encode(hf), batched=True, num_proc=NUM_CORES, remove_columns=rows.column_names)
    tokens.to_parquet(str(out / "tokens.parquet"))


def run_memory(source: Path, model: Path) -> None:
    """In batches of 64 MB, so that the ids of all are not in memory."""
    pq: Any = import_module("pyarrow.parquet")
    tokenizer: Any = import_module("ggtok").Tokenizer.from_gguf(model)
    seconds = cpu = 0.0
    for path in sorted(source.iterdir()):
        for batch in pq.ParquetFile(path).iter_batches(16384, columns=["text"]):
            start = time.perf_counter(), time.process_time()
            tokenizer.encode_batch(batch.column(0), add_special=False)
            seconds += time.perf_counter() - start[0]
            cpu += time.process_time() - start[1]
    print("seconds", seconds, cpu)


if __name__ == "__main__":
    name, *arguments = sys.argv[1:]
    calls: dict[str, Any] = {"datatrove": run_datatrove, "datasets": run_datasets, "memory": run_memory}
    calls[name](*map(Path, arguments))
