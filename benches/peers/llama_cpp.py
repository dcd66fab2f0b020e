"""llama.cpp through the shared object in the `xllamacpp` wheel, called over ctypes into a buffer that is reused.

The binding is `tools/llama_reference.py` in the folder that GGTOK_SHARED names.
"""

from __future__ import annotations

import ctypes
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from vocabularies import Vocabulary

from peers import Encoder

REQUIREMENT = "xllamacpp==2026.10.11549"
PACKAGE = "xllamacpp"
CALLS = "`llama_tokenize` into a reused buffer; list: the buffer as a list; decode: `llama_detokenize`"


def load(vocabulary: Vocabulary) -> Encoder:
    """Opens the vocabulary with `vocab_only`."""
    sys.path.append(str(Path(vocabulary.path).parents[1] / "tools"))
    module: Any = import_module("llama_reference")
    reference = module.LlamaReference(vocabulary.path)
    tokenize, vocab = module._lib.llama_tokenize, reference._vocab
    buffer: Any = (ctypes.c_int32 * 8192)()

    def encode(text: bytes) -> int:
        nonlocal buffer
        if len(text) + 16 > len(buffer):
            buffer = (ctypes.c_int32 * (len(text) + 16))()
        return int(tokenize(vocab, text, len(text), buffer, len(buffer), False, False))

    def encode_list(text: bytes) -> list[int]:
        count = encode(text)
        return list(buffer[:count])

    return Encoder(
        encode=encode,
        encode_list=encode_list,
        ids=lambda count: list(buffer[:count]),
        text=str.encode,
        decode=reference.detokenize,
    )
