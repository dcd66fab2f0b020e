"""Trains the four vocabularies inside the wheel, `python/ggtok/vocabularies/{spm,bpe,wordpiece,unigram}.gguf`.

`ggtok.train` makes them from the corpora under `$GGTOK_SHARED/corpora`, which are credited in `docs/vocabularies.md`
and in each file. It takes half a minute. The same texts give the same bytes:

    GGTOK_SHARED=../shared .venv/bin/python scripts/train_vocabularies.py

With `--report` nothing is trained: llama.cpp opens the four files (`xllamacpp` is in the extra `test`), and the table
of sizes and characters per token in `docs/vocabularies.md` is printed.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

import ggtok

ROOT = Path(__file__).resolve().parent.parent
SHARED = Path(os.environ.get("GGTOK_SHARED", ROOT.parent / "shared"))
TARGET = ROOT / "python" / "ggtok" / "vocabularies"
CORPORA = {name: SHARED / "corpora" / f"{name}.txt" for name in ("en", "code", "multi", "cjk")}

CREDITS = (
    ("War and Peace; Botchan", "Project Gutenberg", "https://www.gutenberg.org"),
    ("test data of sentencepiece", "google/sentencepiece", "https://github.com/google/sentencepiece"),
    ("Wikipedia articles in 17 languages (CC BY-SA)", "Wikipedia authors", "https://www.wikipedia.org"),
    ("CPython standard library (PSF-2.0)", "Python Software Foundation", "https://github.com/python/cpython"),
)

CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)

BPE_CONTROL = "endoftext im_start im_end fim_prefix fim_middle fim_suffix fim_pad repo_name file_sep"

SETTINGS: dict[str, dict[str, Any]] = {
    # As Llama 2: byte fallback below the characters, no normalization, digits apart, runs of spaces as tokens.
    "spm": {"vocab_size": 15_000, "character_coverage": 1.0},
    # As Qwen 2. Its pre-tokenizer makes decoding the exact inverse (no space clean-up), and merges are always applied,
    # so that `explain` has something to show (`llama-bpe` takes whole words from the vocabulary first). Small alphabets
    # are too rare in the corpora to get merges, so the bytes of each character merge first.
    "bpe": {
        "vocab_size": 13_000,
        "pre": "qwen2",
        "whole_characters": True,
        "max_token_length": 15,
        "special": {},
        "control_tokens": [f"<|{name}|>" for name in BPE_CONTROL.split()],
    },
    # As BERT, uncased.
    "wordpiece": {"vocab_size": 12_000, "max_token_length": 16},
    # As T5. Its character map takes half of the file.
    "unigram": {"vocab_size": 12_000, "character_coverage": 1.0},
}
"""By name, which is also the kind. The sizes keep the four files together below 1.5 MB."""

EDITS: dict[str, dict[str, Any]] = {
    "bpe": {
        "chat_template": CHAT_TEMPLATE,
        "special": {
            "bos": "<|endoftext|>",
            "eos": "<|endoftext|>",
            "eot": "<|im_end|>",
            "pad": "<|endoftext|>",
            "fim_pre": "<|fim_prefix|>",
            "fim_mid": "<|fim_middle|>",
            "fim_suf": "<|fim_suffix|>",
            "fim_pad": "<|fim_pad|>",
            "fim_rep": "<|repo_name|>",
            "fim_sep": "<|file_sep|>",
        },
    },
}
"""What is set when the files are written."""


def train(name: str) -> None:
    """Trains one vocabulary, and writes it with its credits."""
    metadata: dict[str, str | int] = {
        "general.description": "A small vocabulary for examples and tests: see docs/vocabularies.md of ggtok",
        "general.license": "mit",
        "general.dataset.count": len(CREDITS),
    }
    for index, (title, organization, url) in enumerate(CREDITS):
        key = f"general.dataset.{index}"
        metadata |= {f"{key}.name": title, f"{key}.organization": organization, f"{key}.url": url}
    kind: Any = name
    tokenizer = ggtok.train(CORPORA.values(), kind=kind, name=f"ggtok {name}", **SETTINGS[name])
    tokenizer.to_gguf(TARGET / f"{name}.gguf", metadata=metadata, **EDITS.get(name, {}))
    print(f"{name}: {(TARGET / f'{name}.gguf').stat().st_size:,} bytes")


def report() -> None:
    """Prints the Markdown table of sizes and of characters per token, as llama.cpp counts them."""
    sys.path.insert(0, str(SHARED / "tools"))
    from llama_reference import LlamaReference  # type: ignore[import-not-found,unused-ignore]

    texts = {name: path.read_bytes().decode() for name, path in CORPORA.items()}
    print("| name | tokens | bytes |", " | ".join(texts), "|")
    print("|---" * (3 + len(texts)) + "|")
    for name in SETTINGS:
        path = TARGET / f"{name}.gguf"
        reference = LlamaReference(path)
        ratios = (f"{len(text) / len(reference.tokenize(text.encode())):.2f}" for text in texts.values())
        print(f"| `{name}` | {reference.n_tokens:,} | {path.stat().st_size:,} |", " | ".join(ratios), "|")


def main() -> None:
    """Trains the vocabularies named on the command line, by default all."""
    parser = argparse.ArgumentParser(description="Train the vocabularies inside the wheel.")
    parser.add_argument("names", nargs="*", metavar="name", help=f"of {', '.join(SETTINGS)} (default: all)")
    parser.add_argument("--report", action="store_true", help="print sizes and characters per token instead")
    arguments = parser.parse_args()
    if not SHARED.joinpath("corpora").is_dir():
        raise SystemExit(f"no corpora under {SHARED}: set GGTOK_SHARED")
    if arguments.report:
        return report()
    for name in arguments.names or SETTINGS:
        train(name)
    return None


if __name__ == "__main__":
    main()
