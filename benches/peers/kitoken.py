"""kitoken: BPE and WordPiece from tokenizer.json, SPM and Unigram from sentencepiece's model (faster than its JSON)."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from vocabularies import Vocabulary

from peers import Encoder

REQUIREMENT = "kitoken"
PACKAGE = "kitoken"
CALLS = "`encode`; decode: `decode`"


def load(vocabulary: Vocabulary) -> Encoder:
    """Opens the sentencepiece model (SPM, Unigram) or tokenizer.json."""
    kitoken: Any = import_module("kitoken").Kitoken
    if vocabulary.kind in ("SPM", "Unigram"):
        tokenizer = kitoken.from_sentencepiece_file(str(vocabulary.sentencepiece_model()))
    else:
        tokenizer = kitoken.from_tokenizers_file(str(vocabulary.tokenizer_json()))
    return Encoder(encode=tokenizer.encode, encode_list=tokenizer.encode, decode=tokenizer.decode)
