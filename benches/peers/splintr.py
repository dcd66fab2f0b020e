"""splintr: BPE, SentencePiece BPE, WordPiece and Unigram from tokenizer.json."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from vocabularies import Vocabulary

from peers import Encoder

REQUIREMENT = "splintr-rs"
PACKAGE = "splintr"
CALLS = "`encode_flat`; list: `encode_raw`"


def load(vocabulary: Vocabulary) -> Encoder:
    """Opens tokenizer.json (its loader of rank files gives the same ids with a much slower first pass)."""
    tokenizer: Any = import_module("splintr").from_json(str(vocabulary.tokenizer_json()))
    return Encoder(
        encode=tokenizer.encode_flat,
        encode_list=tokenizer.encode_raw,
        ids=lambda answer: memoryview(answer).cast("I").tolist(),
        decode=tokenizer.decode,
    )
