"""This project: `Tokenizer.from_gguf`, the GGUF file itself."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import Any

from vocabularies import Vocabulary

from peers import Encoder

REQUIREMENT = ""
PACKAGE = "ggtok"
CALLS = "`encode_array(text, add_special=False)`; list: `encode(text)`, special tokens added; decode: `decode_bytes`"


def open_tokenizer(vocabulary: Vocabulary) -> Any:
    """The `ggtok.Tokenizer`, for the measurements that only this project has."""
    return import_module("ggtok").Tokenizer.from_gguf(vocabulary.path)


def load(vocabulary: Vocabulary) -> Encoder:
    """Opens the vocabulary."""
    tokenizer = open_tokenizer(vocabulary)
    return Encoder(
        encode=partial(tokenizer.encode_array, add_special=False),
        encode_list=tokenizer.encode,
        ids=lambda answer: answer.tolist(),
        decode=tokenizer.decode_bytes,
        decode_input=lambda ids: import_module("numpy").array(ids, dtype="int32"),
    )
