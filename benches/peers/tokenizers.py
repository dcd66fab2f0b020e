"""Hugging Face tokenizers: every kind that tokenizer.json describes."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from vocabularies import Vocabulary

from peers import Encoder

REQUIREMENT = "tokenizers"
PACKAGE = "tokenizers"
CALLS = "`encode_batch_fast([text])`, which keeps no offsets; list: the same with `.ids`"


def load(vocabulary: Vocabulary) -> Encoder:
    """Opens tokenizer.json."""
    tokenizer: Any = import_module("tokenizers").Tokenizer.from_file(str(vocabulary.tokenizer_json()))
    encode = tokenizer.encode_batch_fast
    return Encoder(
        encode=lambda text: encode([text], add_special_tokens=False)[0],
        encode_list=lambda text: encode([text], add_special_tokens=False)[0].ids,
        ids=lambda answer: answer.ids,
        decode=tokenizer.decode,
    )
