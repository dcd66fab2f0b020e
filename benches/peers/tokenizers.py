"""Hugging Face tokenizers: every kind that tokenizer.json describes."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import Any

from vocabularies import Vocabulary

from peers import Encoder

REQUIREMENT = "tokenizers==1.0.0rc3"
PACKAGE = "tokenizers"
CALLS = "`encode(text).ids_array`; list: the same with `.ids`"


def load(vocabulary: Vocabulary) -> Encoder:
    """Opens tokenizer.json."""
    tokenizer: Any = import_module("tokenizers").Tokenizer.from_file(str(vocabulary.tokenizer_json()))
    encode = partial(tokenizer.encode, add_special_tokens=False)
    return Encoder(
        encode=lambda text: encode(text).ids_array,
        encode_list=lambda text: encode(text).ids,
        ids=lambda answer: answer.tolist(),
        decode=tokenizer.decode,
    )
