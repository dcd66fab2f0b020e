"""Text to tokens and back, exactly as llama.cpp does, straight from the metadata of a GGUF file."""

from ._batch import Batch
from ._chat import ChatEncoding
from ._check import Finding
from ._chunks import Chunk
from ._diff import Diff, diff
from ._edit import edit
from ._evaluate import Evaluation, Score, evaluate
from ._ggtok import Buffer, Encoding, StreamDecoder, StreamEncoder, __version__, cache_limit, set_cache_limit
from ._tokenizer import Tokenizer
from ._train import train
from ._vocab import Token, TokenAttribute, Vocab
from .errors import (
    ChatTemplateError,
    ConversionError,
    DependencyError,
    GgtokError,
    GGUFError,
    TokenIndexError,
    TokenizerWarning,
    TrainingError,
    UnsupportedError,
    VocabularyError,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._explain.trace import Trace, Why

__all__ = [
    "Batch",
    "Buffer",
    "ChatEncoding",
    "ChatTemplateError",
    "Chunk",
    "ConversionError",
    "DependencyError",
    "Diff",
    "Encoding",
    "Evaluation",
    "Finding",
    "GGUFError",
    "GgtokError",
    "Score",
    "StreamDecoder",
    "StreamEncoder",
    "Token",
    "TokenAttribute",
    "TokenIndexError",
    "Tokenizer",
    "TokenizerWarning",
    "Trace",
    "TrainingError",
    "UnsupportedError",
    "Vocab",
    "VocabularyError",
    "Why",
    "__version__",
    "cache_limit",
    "diff",
    "edit",
    "evaluate",
    "set_cache_limit",
    "train",
]


def __getattr__(name: str) -> object:
    # Their module has many classes, and most programs explain nothing.
    if name in ("Trace", "Why"):
        from ._explain import trace

        return getattr(trace, name)
    raise AttributeError(f"module 'ggtok' has no attribute {name!r}")
