"""Compares ways from files to training data: by time, by the time of all cores, and by the memory of all processes.

    python benches/corpus.py --texts FOLDER --model FILE.gguf [--size 1000] [--python PEERS] [--megatron REPOSITORY]

`FOLDER` has texts (`*.txt`), of which documents of about 4 KB are made, `--size` megabytes in all: the same ones as one
JSON Lines file, as eight, and as eight Parquet files. Each row of the table is a command from its start to its end,
reading and writing included, on all cores. Every document gets the ids of `encode` without special tokens, and EOS. The
documents and tokens of each result are counted and must be those of the first row.

`PEERS` is a Python of 3.12 or newer with what is measured: `pip install torch transformers tokenizers gigatoken awkward
datatrove orjson datasets pyarrow`. `REPOSITORY` is a checkout of NVIDIA/Megatron-LM. A row that fails says why.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import idle
import numpy as np
from vocabularies import Vocabulary

NUM_FILES = 8
NUM_CORES = len(os.sched_getaffinity(0))
NO_SPECIAL = "--tokenizer-hf-no-include-special-tokens"
POLL = 0.1
"""Seconds between two looks at the memory."""


@dataclass(frozen=True)
class Corpus:
    """The same documents in several files."""

    folder: Path
    documents: int
    text_bytes: int

    @property
    def line_file(self) -> Path:
        return self.folder / "all.jsonl"

    def files(self, ending: str) -> Path:
        return self.folder / ending


@dataclass
class Result:
    """A row of the table."""

    name: str
    source: str
    format: str
    seconds: float = 0.0
    cpu: float = 0.0
    """Seconds of all cores together: less disturbed by what else the machine does. Processes that the command does not
    wait for are missing: the workers of datatrove."""
    memory: int = 0
    """Most bytes of all processes together, a shared page counted once."""
    documents: int = 0
    tokens: int = 0
    problem: str | None = None


@dataclass(frozen=True)
class Row:
    """What is measured. `{...}` in the command is filled in."""

    name: str
    source: str
    format: str
    command: tuple[str, ...]


def rows(python: str, megatron: str | None) -> list[Row]:
    """All rows, ggtok's first."""
    call = (sys.executable, "-m", "ggtok", "corpus", "build", "{source}", "-o", "{out}", "-m", "{model}")
    build = (*call, "--no-special", "--append-eos", "--format")
    peer = (python, str(Path(__file__).with_name("corpus_peers.py")))
    files = ("--input", "{source}", "--output-prefix", "{out}/all", "--append-eod")
    hf = (*files, "--tokenizer-type", "HuggingFaceTokenizer", "--tokenizer-model", "{hf}", NO_SPECIAL)
    found = [Row("ggtok", "jsonl", format, (*build, format)) for format in ("megatron", "datatrove", "parquet")]
    found += [Row("ggtok", "parquet", format, (*build, format)) for format in ("megatron", "parquet")]
    found += [
        Row(
            "ggtok encode_batch, in memory",
            "parquet",
            "none",
            (sys.executable, peer[1], "memory", "{source}", "{model}"),
        ),
        Row("datatrove", "jsonl files", "datatrove", (*peer, "datatrove", "{source}", "{hf}", "{out}")),
        Row("datatrove", "parquet", "datatrove", (*peer, "datatrove", "{source}", "{hf}", "{out}")),
        Row("datasets.map", "jsonl files", "parquet", (*peer, "datasets", "{source}", "{hf}", "{out}")),
        Row("datasets.map", "parquet", "parquet", (*peer, "datasets", "{source}", "{hf}", "{out}")),
    ]
    if megatron is not None:
        fast, slow = (f"{megatron}/tools/preprocess_data{end}.py" for end in ("_fast", ""))
        workers = ("--workers", str(NUM_CORES), "--log-interval", "1000000")
        found += [
            Row("Megatron, fast (gigatoken)", "jsonl", "megatron", (python, fast, *hf, "--use-gigatoken")),
            Row("Megatron", "jsonl", "megatron", (python, slow, *hf, *workers)),
        ]
    return found


# The corpus


def documents(texts: Path, size: int) -> Iterator[str]:
    """Texts of about 4 KB from all files in turn, by their share, `size` bytes in all. A file that ends begins again,
    and is then cut at other places."""
    pick = random.Random(28)
    files = [path.read_text(encoding="utf-8") for path in sorted(texts.glob("*.txt"))]
    lengths, places = [len(text) for text in files], [0] * len(files)
    while size > 0:
        (file,) = pick.choices(range(len(files)), lengths)
        start = places[file] if places[file] < lengths[file] else 0
        places[file] = start + min(int(pick.lognormvariate(7.9, 0.9)) + 1, 100_000)
        text = files[file][start : places[file]]
        size -= len(text.encode())
        yield text


def made(texts: Path, folder: Path, size: int) -> Corpus:
    """The corpus in a folder, written if it is not there."""
    pa: Any = import_module("pyarrow")
    pq: Any = import_module("pyarrow.parquet")
    note = folder / "corpus.json"
    if not note.exists():
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "jsonl").mkdir(parents=True)
        (folder / "parquet").mkdir()
        lines, count, total = (folder / "all.jsonl").open("wb"), 0, 0
        chosen = list(documents(texts, size))
        for number in range(NUM_FILES):
            part = chosen[number * len(chosen) // NUM_FILES : (number + 1) * len(chosen) // NUM_FILES]
            ids = [f"{count + index:09}" for index in range(len(part))]
            pq.write_table(
                pa.table({"id": ids, "text": part}), folder / f"parquet/{number}.parquet", row_group_size=5000
            )
            with (folder / f"jsonl/{number}.jsonl").open("wb") as file:
                for id, text in zip(ids, part, strict=True):
                    line = json.dumps({"id": id, "text": text}, ensure_ascii=False).encode() + b"\n"
                    file.write(line)
                    lines.write(line)
                    total += len(text.encode())
            count += len(part)
        lines.close()
        note.write_text(json.dumps({"documents": count, "text_bytes": total}))
    return Corpus(folder, **json.loads(note.read_text()))


def read_once(folder: Path) -> None:
    """Brings files into the page cache."""
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                while file.read(1 << 24):
                    pass


# Measuring


def memory_of(process: int) -> int:
    """Bytes of a process and all its children: shared pages are divided among those that share them."""
    total, waiting = 0, [process]
    while waiting:
        pid = waiting.pop()
        try:
            rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
            total += 1024 * sum(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:"))
            for task in Path(f"/proc/{pid}/task").iterdir():
                waiting += map(int, (task / "children").read_text().split())
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
    return total


def measure(command: list[str], environment: dict[str, str], log: Path) -> tuple[float, float, int]:
    """Seconds, seconds of all cores, and most bytes of a command, or the seconds that it prints.

    Raises `RuntimeError` with the end of its output if it fails.
    """
    most, ended = 0, threading.Event()
    with log.open("wb") as output:
        start = time.perf_counter()
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=os.environ | environment)

        def watch() -> None:
            nonlocal most
            while not ended.wait(POLL):
                most = max(most, memory_of(process.pid))

        watcher = threading.Thread(target=watch)
        watcher.start()
        _, status, usage = os.wait4(process.pid, 0)
        code = process.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.perf_counter() - start
        ended.set()
        watcher.join()
    text = log.read_text(errors="replace")
    if code != 0:
        raise RuntimeError(text.strip().splitlines()[-1] if text.strip() else f"exit code {code}")
    own = [line.split()[1:] for line in text.splitlines() if line.startswith("seconds ")]
    seconds, cpu = map(float, own[0]) if own else (seconds, usage.ru_utime + usage.ru_stime)
    return seconds, cpu, most


def count_megatron(folder: Path) -> tuple[int, int]:
    """Documents and tokens by the index files."""
    num_documents = num_tokens = 0
    for path in folder.rglob("*.idx"):
        sequences, ends = np.fromfile(path, "<u8", 2, offset=18).tolist()
        num_documents += ends - 1
        num_tokens += int(np.fromfile(path, "<i4", sequences, offset=34).sum(dtype=np.int64))
    return num_documents, num_tokens


def count_datatrove(folder: Path) -> tuple[int, int]:
    """Documents and tokens by the index files."""
    ends = [np.fromfile(path, "<u8") for path in folder.rglob("*.ds.index")]
    return sum(map(len, ends)), sum(int(each[-1]) for each in ends if len(each))


def count_parquet(folder: Path) -> tuple[int, int]:
    """Documents and tokens by the lists."""
    pq: Any = import_module("pyarrow.parquet")
    num_documents = num_tokens = 0
    for path in folder.rglob("*.parquet"):
        for batch in pq.ParquetFile(path).iter_batches(columns=["input_ids"]):
            num_documents += batch.num_rows
            num_tokens += len(batch.column(0).flatten())
    return num_documents, num_tokens


def count_nothing(folder: Path) -> tuple[int, int]:
    """For what keeps its result in memory."""
    return 0, 0


COUNTS: dict[str, Callable[[Path], tuple[int, int]]] = {
    "megatron": count_megatron,
    "datatrove": count_datatrove,
    "parquet": count_parquet,
    "none": count_nothing,
}


def run(row: Row, corpus: Corpus, model: str, hf: Path, work: Path) -> Result:
    """Runs a row in a new folder, which is deleted."""
    result = Result(row.name, row.source, row.format)
    sources = {"jsonl": corpus.line_file, "jsonl files": corpus.files("jsonl"), "parquet": corpus.files("parquet")}
    out = work / "out"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    values = {"source": str(sources[row.source]), "model": model, "hf": str(hf), "out": str(out)}
    environment = {"HF_HOME": str(work / "out/cache"), "HF_HUB_OFFLINE": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        command = [word.format(**values) for word in row.command]
        result.seconds, result.cpu, result.memory = measure(command, environment, work / "log")
        result.documents, result.tokens = COUNTS[row.format](out)
    except (RuntimeError, OSError) as error:
        result.problem = str(error)[:200]
    finally:
        shutil.rmtree(out, ignore_errors=True)
    return result


def table(results: list[Result], corpus: Corpus) -> str:
    """The results in Markdown."""
    first = results[0]
    names = "| | reads | writes | documents/s | MB/s | MB per CPU second | memory | result |"
    lines = [names, "|---|---|---|--:|--:|--:|--:|---|"]
    for each in results:
        head = f"| {each.name} | {each.source} | {each.format} "
        if each.problem is not None:
            lines.append(f"{head}| | | | | {each.problem} |")
            continue
        speed = f"| {corpus.documents / each.seconds:,.0f} | {corpus.text_bytes / each.seconds / 1e6:,.1f} "
        speed += f"| {corpus.text_bytes / each.cpu / 1e6:,.1f} "
        same = (each.documents, each.tokens) == (first.documents, first.tokens)
        differs = f"{each.documents:,} documents, {each.tokens:,} tokens"
        said = "" if each.format == "none" else f"{first.tokens:,} tokens" if same else differs
        lines.append(f"{head}{speed}| {each.memory / 1e6:,.0f} MB | {said} |")
    return "\n".join(lines)


def hf_folder(vocabulary: Vocabulary, folder: Path) -> Path:
    """The tokenizer as Hugging Face's libraries open it."""
    vocabulary.convert()
    vocab = import_module("ggtok").Tokenizer.from_gguf(vocabulary.path).vocab
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(vocabulary.tokenizer_json(), folder / "tokenizer.json")
    special = {
        f"{name}_token": vocab[id].text for name in ("bos", "eos") if (id := getattr(vocab, f"{name}_id")) is not None
    }
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 10**9, **special}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return folder


def main() -> None:
    """Measures the requested rows."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--texts", type=Path, required=True, help="a folder with *.txt")
    parser.add_argument("--model", type=Path, required=True, help="a GGUF file whose pattern vocabularies.py knows")
    parser.add_argument("--size", type=int, default=1000, help="megabytes of text (default: 1000)")
    parser.add_argument("--python", default=sys.executable, help="the Python that has the other packages")
    parser.add_argument("--megatron", help="a checkout of NVIDIA/Megatron-LM")
    parser.add_argument("--work", type=Path, default=Path("target/corpus"), help="a folder for all files")
    parser.add_argument("--rows", nargs="*", default=[""], help="only rows whose name starts so")
    parser.add_argument("--out", type=Path, help="a JSON file for the results")
    options = parser.parse_args()

    chosen = [row for row in rows(options.python, options.megatron) if row.name.startswith(tuple(options.rows))]
    if not chosen:
        parser.error("no row has such a name")
    work = options.work.resolve()
    hf = hf_folder(Vocabulary(options.model, work / "vocabularies"), work / "hf")
    corpus = made(options.texts, work / f"{options.size}", options.size * 10**6)
    read_once(corpus.folder)
    results: list[Result] = []
    for row in chosen:
        before = idle.now()
        results.append(run(row, corpus, str(options.model), hf, work))
        said = idle.disturbed(before, idle.now())
        print(f"{row.name}, {row.source} to {row.format}: {results[-1].seconds:.1f} s", said or "", file=sys.stderr)
    print(f"{corpus.documents:,} documents, {corpus.text_bytes / 1e6:,.0f} MB of text, {NUM_CORES} cores\n")
    print(table(results, corpus))
    if options.out:
        options.out.write_text(
            json.dumps({**asdict(corpus), "results": [asdict(each) for each in results]}, default=str)
        )


if __name__ == "__main__":
    main()
