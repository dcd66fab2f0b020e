"""tiktoken: byte-level BPE from merge ranks and a pattern."""

from __future__ import annotations

import base64
from importlib import import_module
from typing import Any

from vocabularies import Vocabulary

from peers import Encoder

REQUIREMENT = "tiktoken"
PACKAGE = "tiktoken"
CALLS = "`Encoding.encode_ordinary`; decode: `decode_bytes`"


def load(vocabulary: Vocabulary) -> Encoder:
    """Opens the rank file."""
    lines = (line.split() for line in vocabulary.tiktoken_ranks().read_bytes().splitlines())
    ranks = {base64.b64decode(token): int(rank) for token, rank in lines}
    encoding: Any = import_module("tiktoken").Encoding(
        vocabulary.name, pat_str=vocabulary.pattern, mergeable_ranks=ranks, special_tokens={}
    )
    return Encoder(encode=encoding.encode_ordinary, encode_list=encoding.encode_ordinary, decode=encoding.decode_bytes)
