"""sentencepiece: BPE (SPM) and Unigram from its own model file."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from vocabularies import Vocabulary

from peers import Encoder

REQUIREMENT = "sentencepiece"
PACKAGE = "sentencepiece"
CALLS = "`encode_as_numpy`; list: `encode`; decode: `decode`"


def load(vocabulary: Vocabulary) -> Encoder:
    """Opens the model file."""
    processor: Any = import_module("sentencepiece").SentencePieceProcessor(
        model_file=str(vocabulary.sentencepiece_model())
    )
    return Encoder(encode=processor.encode_as_numpy, encode_list=processor.encode, decode=processor.decode)
