"""fastokens: BPE from tokenizer.json."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from vocabularies import UnsupportedError, Vocabulary

from peers import Encoder

REQUIREMENT = "fastokens"
PACKAGE = "fastokens"
CALLS = "`encode_batch_flat([text])`; list: `encode_ordinary(text).ids`"


def load(vocabulary: Vocabulary) -> Encoder:
    """Opens tokenizer.json."""
    if vocabulary.kind == "WordPiece":
        raise UnsupportedError("fastokens has no BertNormalizer")
    if vocabulary.kind == "Unigram":
        raise UnsupportedError("fastokens has no Precompiled normalizer")
    tokenizer: Any = import_module("fastokens").Tokenizer.from_file(str(vocabulary.tokenizer_json()))
    return Encoder(
        encode=lambda text: tokenizer.encode_batch_flat([text])[0],
        encode_list=lambda text: tokenizer.encode_ordinary(text).ids,
        ids=lambda answer: memoryview(answer).cast("I").tolist(),
        decode=tokenizer.decode,
    )
