"""Text to tokens and back, exactly as llama.cpp does, straight from the metadata of a GGUF file."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._batch import Batch
    from ._chat import ChatEncoding
    from ._chunks import Chunk
    from ._diff import Diff, diff
    from ._edit import edit
    from ._evaluate import Evaluation, Score, evaluate
    from ._explain.trace import Trace, Why
    from ._findings import Finding, TokenizerWarning
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

_NAMES = {
    "_batch": ("Batch",),
    "_chat": ("ChatEncoding",),
    "_chunks": ("Chunk",),
    "_diff": ("Diff", "diff"),
    "_edit": ("edit",),
    "_evaluate": ("Evaluation", "Score", "evaluate"),
    "_findings": ("Finding", "TokenizerWarning"),
    "_ggtok": ("Buffer", "Encoding", "StreamDecoder", "StreamEncoder", "__version__", "cache_limit", "set_cache_limit"),
    "_tokenizer": ("Tokenizer",),
    "_train": ("train",),
    "_vocab": ("Token", "TokenAttribute", "Vocab"),
    "errors": (
        "ChatTemplateError",
        "ConversionError",
        "DependencyError",
        "GgtokError",
        "GGUFError",
        "TokenIndexError",
        "TokenizerWarning",
        "TrainingError",
        "UnsupportedError",
        "VocabularyError",
    ),
    "_explain.trace": ("Trace", "Why"),
}
"""The names of each module, which is imported when one of them is used: so `import ggtok` takes no time."""

_MODULES = {name: module for module, names in _NAMES.items() for name in names}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module 'ggtok' has no attribute {name!r}")
    from importlib import import_module

    value = globals()[name] = getattr(import_module(f".{_MODULES[name]}", __name__), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
