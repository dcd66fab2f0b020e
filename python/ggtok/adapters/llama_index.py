"""A tokenizer and a counter for LlamaIndex."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ..tokenizer.base import BaseTokenizer
from ._shared import load


def tokenizer(tok: BaseTokenizer) -> Callable[[str], list[int]]:
    """What LlamaIndex takes as `tokenizer`: from a text to its ids, without BOS, which a chunk does not have.

    Give it to `set_global_tokenizer`, `Settings.tokenizer` or a splitter. It needs no other package.

    >>> import ggtok
    >>> len(ggtok.adapters.llama_index.tokenizer(ggtok.Tokenizer.builtin("spm"))("What is LoRA?"))
    6
    """
    return partial(tok.encode, add_special=False)


def counting_handler(tok: BaseTokenizer, **options: Any) -> Any:
    """A `TokenCountingHandler` that counts with this tokenizer.

    Args:
        tok: The tokenizer.
        **options: Further arguments of `TokenCountingHandler`.

    Raises `DependencyError` if llama-index-core is not installed.
    """
    callbacks = load("llama_index.core.callbacks", "llama-index-core")
    return callbacks.TokenCountingHandler(tokenizer=tokenizer(tok), **options)
