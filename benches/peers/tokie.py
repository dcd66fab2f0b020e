"""tokie: BPE, SentencePiece BPE, WordPiece and Unigram from tokenizer.json.

`encode_bytes` skips the pre-tokenizer and the normalizer, so its ids are others: it is no candidate.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from vocabularies import Vocabulary

from peers import Encoder

REQUIREMENT = "tokie"
PACKAGE = "tokie"
CALLS = "`encode(text, False)`; list: the same with `.ids`; decode: `decode_bytes`"


def load(vocabulary: Vocabulary) -> Encoder:
    """Opens tokenizer.json."""
    tokenizer: Any = import_module("tokie").Tokenizer.from_json(str(vocabulary.tokenizer_json()))
    return Encoder(
        encode=lambda text: tokenizer.encode(text, False),
        encode_list=lambda text: tokenizer.encode(text, False).ids,
        ids=lambda answer: answer.ids,
        decode=tokenizer.decode_bytes,
    )
