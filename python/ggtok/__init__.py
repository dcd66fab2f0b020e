"""Text to tokens and back, exactly as llama.cpp does, straight from the metadata of a GGUF file."""

from ._batch import Batch
from ._chat import ChatEncoding
from ._check import Finding
from ._chunks import Chunk
from ._diff import Diff, diff
from ._ggtok import Buffer, Encoding, StreamDecoder, StreamEncoder, __version__, cache_limit, set_cache_limit
from ._tokenizer import Tokenizer
from ._train import train
from ._vocab import Token, TokenAttribute, Vocab
from .errors import (
    ChatTemplateError,
    DependencyError,
    GgtokError,
    GGUFError,
    TokenIndexError,
    TokenizerWarning,
    TrainingError,
    UnsupportedError,
    VocabularyError,
)

__all__ = [
    "Batch",
    "Buffer",
    "ChatEncoding",
    "ChatTemplateError",
    "Chunk",
    "DependencyError",
    "Diff",
    "Encoding",
    "Finding",
    "GGUFError",
    "GgtokError",
    "StreamDecoder",
    "StreamEncoder",
    "Token",
    "TokenAttribute",
    "TokenIndexError",
    "Tokenizer",
    "TokenizerWarning",
    "TrainingError",
    "UnsupportedError",
    "Vocab",
    "VocabularyError",
    "__version__",
    "cache_limit",
    "diff",
    "set_cache_limit",
    "train",
]
