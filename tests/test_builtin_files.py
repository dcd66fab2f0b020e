"""The four vocabularies inside the wheel as files: size, layout, coverage; read by `gguf` and by llama.cpp itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from conftest import BUILTIN, VOCABULARIES, reference_reader
from oracles.spelling import BYTE_ALPHABET, byte_encode

KEYS: dict[str, dict[str, Any]] = {
    "spm": {
        "general.architecture": "llama",
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.pre": "default",
        "tokenizer.ggml.add_bos_token": True,
        "tokenizer.ggml.add_eos_token": False,
        "tokenizer.ggml.add_space_prefix": True,
    },
    "bpe": {
        "general.architecture": "llama",
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "qwen2",
        "tokenizer.ggml.add_bos_token": False,
        "tokenizer.ggml.add_eos_token": False,
    },
    "wordpiece": {
        "general.architecture": "bert",
        "tokenizer.ggml.model": "bert",
        "tokenizer.ggml.pre": "default",
        "tokenizer.ggml.normalizer.lowercase": True,
        "tokenizer.ggml.normalizer.strip_accents": True,
    },
    "unigram": {
        "general.architecture": "t5",
        "tokenizer.ggml.model": "t5",
        "tokenizer.ggml.pre": "default",
        "tokenizer.ggml.add_bos_token": False,
        "tokenizer.ggml.add_eos_token": True,
        "tokenizer.ggml.add_space_prefix": True,
        "tokenizer.ggml.remove_extra_whitespaces": True,
    },
}
SPECIAL = {
    "spm": {"bos": "<s>", "eos": "</s>", "unknown": "<unk>"},
    "bpe": {
        "bos": "<|endoftext|>",
        "eos": "<|endoftext|>",
        "eot": "<|im_end|>",
        "padding": "<|endoftext|>",
        "fim_pre": "<|fim_prefix|>",
        "fim_suf": "<|fim_suffix|>",
        "fim_mid": "<|fim_middle|>",
        "fim_pad": "<|fim_pad|>",
        "fim_rep": "<|repo_name|>",
        "fim_sep": "<|file_sep|>",
    },
    "wordpiece": {"bos": "[CLS]", "seperator": "[SEP]", "unknown": "[UNK]", "padding": "[PAD]", "mask": "[MASK]"},
    "unigram": {"eos": "</s>", "unknown": "<unk>", "padding": "<pad>"},
}

# Letters of the corpora's scripts that no normalization changes.
LETTERS = "az жя αω אש صي کگ कह กฮ あん アン 中国語 ა ব ਪ த క ಕ ල ག ខ አ ߒ ᱥ"

# llama.cpp aborts its process on what it cannot bear, so it runs in a child: per text the ids and the text they give.
CHILD = """
import json, sys
sys.path.insert(0, sys.argv[1])
from llama_reference import LlamaReference
reference = LlamaReference(sys.argv[2])
answers = []
for text in json.load(sys.stdin):
    ids = reference.tokenize(text.encode())
    answers.append([ids, reference.detokenize(ids).decode("utf-8", "replace")])
attributes = [reference.attr(i) for i in range(reference.n_tokens)]
json.dump({"n_tokens": reference.n_tokens, "attributes": attributes, "answers": answers}, sys.stdout)
"""


@cache
def contents(name: str) -> dict[str, Any]:
    """All metadata of one file, as `gguf` reads it, which takes seconds."""
    reader = reference_reader(VOCABULARIES / f"{name}.gguf")
    assert not reader.tensors
    return {key: field.contents() for key, field in reader.fields.items()}


def ask_llama(name: str, shared: Path, texts: list[str]) -> dict[str, Any]:
    """llama.cpp's answers to the texts."""
    command = [sys.executable, "-c", CHILD, os.fspath(shared / "tools"), os.fspath(VOCABULARIES / f"{name}.gguf")]
    done = subprocess.run(command, input=json.dumps(texts).encode(), stdout=subprocess.PIPE, check=True)
    return dict(json.loads(done.stdout))


def test_nothing_else_and_not_too_big() -> None:
    files = [path for path in VOCABULARIES.iterdir() if path.suffix == ".gguf"]
    assert sorted(path.stem for path in files) == list(BUILTIN)
    assert sum(path.stat().st_size for path in files) <= 1_500_000


@pytest.mark.parametrize("name", BUILTIN)
def test_metadata(name: str) -> None:
    metadata = contents(name)
    assert metadata["GGUF.version"] == 3
    assert {key: metadata.get(key) for key in KEYS[name]} == KEYS[name]
    assert metadata["general.name"] == f"ggtok {name}"
    credits = " ".join(metadata[f"general.dataset.{n}.organization"] for n in range(metadata["general.dataset.count"]))
    for credited in ("Project Gutenberg", "google/sentencepiece", "Wikipedia", "Python Software Foundation"):
        assert credited in credits


@pytest.mark.parametrize("name", BUILTIN)
def test_vocabulary(name: str) -> None:
    metadata = contents(name)
    tokens, types = metadata["tokenizer.ggml.tokens"], metadata["tokenizer.ggml.token_type"]
    assert 8_000 <= len(tokens) <= 16_000
    assert len(set(tokens)) == len(tokens) == len(types)
    assert all(tokens)
    special = {key: tokens[metadata[f"tokenizer.ggml.{key}_token_id"]] for key in SPECIAL[name]}
    assert special == SPECIAL[name]
    assert {text for text, kind in zip(tokens, types, strict=True) if kind in (2, 3)} >= set(special.values())

    known = set(tokens)
    letters = LETTERS.replace(" ", "")
    if name == "bpe":
        assert known >= {*BYTE_ALPHABET.values()}
        letters_known = {c for c in letters if byte_encode(c.encode()).decode() in known}
        merges = [merge.split(" ") for merge in metadata["tokenizer.ggml.merges"]]
        assert all(left in known and right in known and left + right in known for left, right in merges)
    else:
        letters_known = {c for c in letters if c in known or f"▁{c}" in known}
    assert letters_known == set(letters)
    if name == "spm":
        assert [text for text, kind in zip(tokens, types, strict=True) if kind == 6] == [
            f"<0x{byte:02X}>" for byte in range(256)
        ]
    if name in ("spm", "unigram"):
        assert len(metadata["tokenizer.ggml.scores"]) == len(tokens)
    if name == "unigram":
        assert len(metadata["tokenizer.ggml.precompiled_charsmap"]) > 200_000


@pytest.mark.usefixtures("llama_cpp")
@pytest.mark.parametrize("name", BUILTIN)
def test_llama_cpp_covers_the_corpora(name: str, shared: Path) -> None:
    corpora = [path.read_bytes().decode() for path in sorted((shared / "corpora").glob("*.txt"))]
    assert len(corpora) == 4
    characters = sorted(set("".join(corpora)))
    extracts = [text[at : at + 20_000] for text in corpora for at in (0, len(text) // 2)]
    texts = [" ".join(characters), *extracts, LETTERS, "What is LoRA?\r\n\tprint(  x )\n\n😀 𝄞 \x00"]
    answer = ask_llama(name, shared, texts)
    metadata = contents(name)
    assert answer["n_tokens"] == len(metadata["tokenizer.ggml.tokens"])

    if name in ("wordpiece", "unigram"):  # no bytes to fall back on: the last text may be unknown
        unknown = metadata["tokenizer.ggml.unknown_token_id"]
        # Not every character starts a word of the corpora, so WordPiece may not know characters that stand alone.
        known = answer["answers"][1:-2] if name == "wordpiece" else answer["answers"][:-1]
        assert not any(unknown in ids for ids, _ in known)
    else:
        prefix = " " if name == "spm" else ""
        assert [decoded.removeprefix(prefix) for _, decoded in answer["answers"]] == texts
    if name == "bpe":
        assert len(answer["answers"][0][0]) <= 2 * len(characters) - 1  # a token or less per character
    if name == "spm":
        spent = {metadata["tokenizer.ggml.tokens"][i] for i in answer["answers"][0][0]}
        assert {text for text in spent if text.startswith("<0x")} == {"<0x0A>", "<0x0D>"}  # line ends are bytes
