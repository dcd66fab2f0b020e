"""Measures training against sentencepiece and tokenizers: seconds, peak memory and bytes per token, one process each.

`python benches/train.py FILE... [--vocab-size 32000] [--rounds 1] [--kinds bpe spm ...]`, in an environment with ggtok,
gguf, sentencepiece and tokenizers. Every trainer reads the same files, with two threads and the settings of its peer:
pieces of Qwen 2's pattern for BPE, sentencepiece's defaults with byte fallback for SPM, BERT's words for WordPiece. The
order of the trainers alternates between rounds, and the fastest round is reported. Bytes per token are measured on the
training files, with the trainer's own library.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

KINDS = {"bpe": "tokenizers", "spm": "sentencepiece", "wordpiece": "tokenizers", "unigram": "sentencepiece"}
THREADS = 2
QWEN2 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
SHARED_SETTINGS: dict[str, Any] = {"max_sentence_length": 1 << 20, "hard_vocab_limit": False, "minloglevel": 2}


def ggtok(kind: str, files: list[Path], size: int, folder: Path) -> Callable[[str], int]:
    """Trains with ggtok."""
    import ggtok

    settings: dict[str, Any] = {"spm": {"split_digits": False, "allow_whitespace_only_pieces": False}}.get(kind, {})
    if kind == "unigram":
        settings["normalization"] = "nmt_nfkc"
    tokenizer = ggtok.train(files, kind=kind, vocab_size=size, threads=THREADS, **settings)  # type: ignore[arg-type]
    return lambda text: tokenizer.count(text, add_special=False)


def sentencepiece(kind: str, files: list[Path], size: int, folder: Path) -> Callable[[str], int]:
    """Trains with sentencepiece."""
    import sentencepiece

    settings: dict[str, Any] = {"model_type": "unigram", "normalization_rule_name": "nmt_nfkc"}
    if kind == "spm":
        settings = {"model_type": "bpe", "byte_fallback": True, "normalization_rule_name": "identity"}
        settings["remove_extra_whitespaces"] = False
    sentencepiece.SentencePieceTrainer.train(
        input=",".join(map(str, files)),
        model_prefix=str(folder / "model"),
        vocab_size=size,
        num_threads=THREADS,
        **SHARED_SETTINGS,
        **settings,
    )
    processor = sentencepiece.SentencePieceProcessor(model_file=str(folder / "model.model"))
    return lambda text: len(processor.encode(text))


def tokenizers(kind: str, files: list[Path], size: int, folder: Path) -> Callable[[str], int]:
    """Trains with huggingface/tokenizers."""
    from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, trainers

    tokenizer: Any
    if kind == "bpe":
        tokenizer = Tokenizer(models.BPE())
        split = pre_tokenizers.Split(Regex(QWEN2), "isolated")
        spelled = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence([split, spelled])
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        trainer: Any = trainers.BpeTrainer(
            vocab_size=size, min_frequency=2, initial_alphabet=alphabet, show_progress=False
        )
    else:
        tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
        tokenizer.normalizer = normalizers.BertNormalizer()
        tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        trainer = trainers.WordPieceTrainer(
            vocab_size=size, min_frequency=2, special_tokens=["[UNK]"], show_progress=False
        )
    tokenizer.train([str(path) for path in files], trainer)
    return lambda text: len(tokenizer.encode(text, add_special_tokens=False).ids)


TRAINERS = {"ggtok": ggtok, "sentencepiece": sentencepiece, "tokenizers": tokenizers}


def work(library: str, kind: str, size: int, files: list[Path]) -> dict[str, float]:
    """Trains once in this process."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with TemporaryDirectory() as folder:
        start = perf_counter()
        count = TRAINERS[library](kind, files, size, Path(folder))
        seconds = perf_counter() - start
    usage = resource.getrusage(resource.RUSAGE_SELF)
    tokens = length = 0
    for path in files:
        for line in path.read_text(encoding="utf-8").splitlines()[:20_000]:
            tokens += count(line)
            length += len(line.encode())
    memory = (usage.ru_maxrss - before) / 1024
    return {"seconds": seconds, "cpu": usage.ru_utime + usage.ru_stime, "MB": memory, "bytes": length / max(tokens, 1)}


def main() -> None:
    """Runs every trainer in its own process and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", nargs="+", type=Path)
    parser.add_argument("--vocab-size", type=int, default=32_000)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--worker", metavar="LIBRARY", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        print(json.dumps(work(arguments.worker, arguments.kinds[0], arguments.vocab_size, arguments.file)))
        return
    print("| kind | trainer | seconds | CPU seconds | MB | bytes per token |\n|---|---|---|---|---|---|")
    for kind in arguments.kinds:
        runs: dict[str, list[dict[str, float]]] = {"ggtok": [], KINDS[kind]: []}
        for turn in range(arguments.rounds):
            for library in list(runs)[:: 1 if turn % 2 == 0 else -1]:
                options = ["--vocab-size", str(arguments.vocab_size), "--kinds", kind, "--worker", library]
                command = [sys.executable, __file__, *map(str, arguments.file), *options]
                done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
                runs[library].append(json.loads(done.stdout.splitlines()[-1]))
        for library, found in runs.items():
            best = min(found, key=lambda run: run["seconds"])
            figures = (f"{best[name]:.1f}" for name in ("seconds", "cpu", "MB"))
            print(f"| {kind} | {library} | {' | '.join(figures)} | {best['bytes']:.2f} |", flush=True)


if __name__ == "__main__":
    main()
