"""Text to tokens and back, exactly as llama.cpp does, straight from the metadata of a GGUF file."""

from ._batch import Batch
from ._chat import ChatEncoding
from ._chunks import Chunk
from ._ggtok import Encoding, StreamDecoder, StreamEncoder, cache_limit, set_cache_limit
from ._tokenizer import Tokenizer
from ._vocab import Token, TokenAttribute, Vocab
from .errors import (
    ChatTemplateError,
    DependencyError,
    GgtokError,
    GGUFError,
    TokenIndexError,
    UnsupportedError,
    VocabularyError,
)

__all__ = [
    "Batch",
    "Chunk",
    "ChatEncoding",
    "ChatTemplateError",
    "DependencyError",
    "Encoding",
    "GGUFError",
    "GgtokError",
    "StreamDecoder",
    "StreamEncoder",
    "Token",
    "TokenAttribute",
    "TokenIndexError",
    "Tokenizer",
    "UnsupportedError",
    "Vocab",
    "VocabularyError",
    "cache_limit",
    "set_cache_limit",
]
