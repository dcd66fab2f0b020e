"""Text to tokens and back, exactly as llama.cpp does, straight from the metadata of a GGUF file."""

from ._batch import Batch
from ._ggtok import StreamDecoder, StreamEncoder
from ._tokenizer import Tokenizer
from ._vocab import Token, TokenAttribute, Vocab
from .errors import DependencyError, GgtokError, GGUFError, TokenIndexError, UnsupportedError, VocabularyError

__all__ = [
    "Batch",
    "DependencyError",
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
]
