"""Text to tokens and back, exactly as llama.cpp does, straight from the metadata of a GGUF file."""

from ._batch import Batch
from ._check import Finding
from ._diff import Diff, diff
from ._ggtok import Buffer, __version__
from ._tokenizer import Tokenizer
from ._vocab import Token, TokenAttribute, Vocab
from .errors import (
    DependencyError,
    GgtokError,
    GGUFError,
    TokenIndexError,
    TokenizerWarning,
    UnsupportedError,
    VocabularyError,
)

__all__ = [
    "Batch",
    "Buffer",
    "DependencyError",
    "Diff",
    "Finding",
    "GGUFError",
    "GgtokError",
    "Token",
    "TokenAttribute",
    "TokenIndexError",
    "Tokenizer",
    "TokenizerWarning",
    "UnsupportedError",
    "Vocab",
    "VocabularyError",
    "__version__",
    "diff",
]
