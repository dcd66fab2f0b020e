"""gigatoken: BPE and SentencePiece-like BPE.

`Tokenizer.encode` only forwards to `backend.encode`, so the backend is called directly.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from vocabularies import UnsupportedError, Vocabulary

from peers import Encoder

REQUIREMENT = "gigatoken"
PACKAGE = "gigatoken"
CALLS = "`Tokenizer.backend.encode`; list: the same with `.tolist()`"


def load(vocabulary: Vocabulary) -> Encoder:
    """Opens tokenizer.json (BPE) or the sentencepiece model (SPM)."""
    tokenizer: Any = import_module("gigatoken").Tokenizer
    if vocabulary.kind == "BPE":
        backend = tokenizer(str(vocabulary.tokenizer_json())).backend
    elif vocabulary.kind == "SPM":
        backend = tokenizer.from_sentencepiece(vocabulary.sentencepiece_model()).backend
    else:
        raise UnsupportedError("gigatoken has BPE models only")
    return Encoder(
        encode=backend.encode,
        encode_list=lambda text: backend.encode(text).tolist(),
        ids=lambda answer: answer.tolist(),
        decode=backend.decode,
        decode_input=lambda ids: import_module("numpy").array(ids, dtype="uint32"),
    )
