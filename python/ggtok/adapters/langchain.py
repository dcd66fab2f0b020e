"""A counter and a tokenizer for LangChain's text splitters."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ..tokenizer.base import BaseTokenizer
from ._shared import decode_slice, encode_slices, load


def length_function(tok: BaseTokenizer) -> Callable[[str], int]:
    """What LangChain's splitters take as `length_function`: the number of tokens of a text, BOS and EOS not included.

    It needs no other package.

    >>> import ggtok
    >>> count = ggtok.adapters.langchain.length_function(ggtok.Tokenizer.builtin("spm"))
    >>> count("What is LoRA?")
    6
    """
    return partial(tok.count, add_special=False)


def tokenizer(tok: BaseTokenizer, chunk_overlap: int, tokens_per_chunk: int) -> Any:
    """The `langchain_text_splitters.Tokenizer` for `split_text_on_tokens`.

    Args:
        tok: The tokenizer.
        chunk_overlap: How many tokens a chunk repeats from the end of the one before it.
        tokens_per_chunk: The most tokens of a chunk.

    Raises `DependencyError` if langchain-text-splitters is not installed.

    LangChain cuts between any two tokens, so a chunk may start or end within a character, which is then U+FFFD.
    `tok.split` cuts at sentences and words.
    """
    splitters = load("langchain_text_splitters.base", "langchain-text-splitters")
    return splitters.Tokenizer(
        chunk_overlap=chunk_overlap,
        tokens_per_chunk=tokens_per_chunk,
        decode=partial(decode_slice, tok),
        encode=partial(encode_slices, tok),
    )
