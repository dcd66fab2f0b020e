"""The keys of GGUF files that a tokenizer is made from, and the types of values."""

from __future__ import annotations

from enum import IntEnum

from .._ggtok import flag_keys, special_keys

GGML = "tokenizer.ggml."
MODEL, PRE = GGML + "model", GGML + "pre"
CHAT_TEMPLATE = "tokenizer.chat_template"

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)
"""llama.cpp's token types, the values of `token_type`."""

TOKEN_TYPE_COUNT = GGML + "token_type_count"
"""BERT's number of kinds of segments, which is written but never read here."""

SPECIAL = special_keys()
"""The keys of special tokens, without `GGML`, by the core's name for them."""

FLAGS = flag_keys()
"""The keys of flags, without `GGML`, by the core's name for them."""


Type = IntEnum("Type", "UINT8 INT8 UINT16 INT16 UINT32 INT32 FLOAT32 BOOL STRING ARRAY UINT64 INT64 FLOAT64", start=0)
"""The types of GGUF values, numbered as in the file."""

FORMATS = dict(zip(Type, "BbHhIif?saQqd", strict=True))
"""Their codes in the module `struct`. Strings and arrays also have a length."""


ARRAYS = {
    **{GGML + "tokens": Type.STRING, GGML + "merges": Type.STRING, GGML + "scores": Type.FLOAT32},
    **{GGML + "token_type": Type.INT32, GGML + "precompiled_charsmap": Type.UINT8},
}
"""The keys of arrays that a tokenizer is made from, and the types of their elements."""


def read_types(architecture: object) -> dict[str, str]:
    """The Python type of every key that a tokenizer is made from, unless it is an array."""
    texts = (GGML + "model", PRE, "general.name", "general.architecture")
    numbers = (*(GGML + key for key in SPECIAL.values()), f"{architecture}.vocab_size")
    flags = (GGML + key for key in FLAGS.values())
    return dict.fromkeys(texts, "str") | dict.fromkeys(numbers, "int") | dict.fromkeys(flags, "bool")
