"""Text to tokens and back, exactly as llama.cpp does, straight from the metadata of a GGUF file."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Concatenate, ParamSpec, TypeVar

    from . import adapters as adapters
    from . import corpus as corpus
    from . import errors as errors
    from ._facade import Tokenizer as Tokenizer
    from ._ggtok import Buffer as Buffer
    from ._ggtok import Encoding as Encoding
    from ._ggtok import StreamDecoder as StreamDecoder
    from ._ggtok import StreamEncoder as StreamEncoder
    from ._ggtok import __version__ as __version__
    from ._ggtok import align as align
    from ._ggtok import cache_limit as cache_limit
    from ._ggtok import set_cache_limit as set_cache_limit
    from .chat import Chat as Chat
    from .chat import ChatEncoding as ChatEncoding
    from .chat import ChatMedia as ChatMedia
    from .chat import Turn as Turn
    from .errors import *  # noqa: F403
    from .lab.diagnosis import check_file as check_file
    from .lab.diff import Diff as Diff
    from .lab.diff import diff as diff
    from .lab.edit import edit as _edit
    from .lab.evaluate import Evaluation as Evaluation
    from .lab.evaluate import Score as Score
    from .lab.evaluate import WordScore as WordScore
    from .lab.evaluate import evaluate as evaluate
    from .lab.explain.explain import Trace as Trace
    from .lab.explain.record import Why as Why
    from .lab.extend import extend as _extend
    from .lab.extend import replaced as replaced
    from .lab.prune import Pruned as Pruned
    from .lab.prune import prune as prune
    from .lab.releases import ReleaseChange as ReleaseChange
    from .lab.releases import Releases as Releases
    from .lab.train import train as _train
    from .lab.verify.result import Comparison as Comparison
    from .lab.verify.verify import verify as verify
    from .stores.find import find as find
    from .tokenizer.batch import Batch as Batch
    from .tokenizer.chunks import Chunk as Chunk
    from .tokenizer.findings import Finding as Finding
    from .tokenizer.vocab import Token as Token
    from .tokenizer.vocab import TokenAttribute as TokenAttribute
    from .tokenizer.vocab import Vocab as Vocab

    _P = ParamSpec("_P")
    _R = TypeVar("_R")

    def _bound(function: Callable[Concatenate[type[Tokenizer], _P], _R]) -> Callable[_P, _R]: ...

    edit, extend, train = _bound(_edit), _bound(_extend), _bound(_train)

_NAMES = {
    "tokenizer.batch": ("Batch",),
    "chat": ("Chat", "ChatEncoding", "ChatMedia", "Turn"),
    "tokenizer.chunks": ("Chunk",),
    "lab.diagnosis": ("check_file",),
    "lab.diff": ("Diff", "diff"),
    "lab.edit": ("edit",),
    "lab.extend": ("extend", "replaced"),
    "lab.evaluate": ("Evaluation", "Score", "WordScore", "evaluate"),
    "tokenizer.findings": ("Finding", "TokenizerWarning"),
    "_ggtok": (
        *("Buffer", "Encoding", "StreamDecoder", "StreamEncoder"),
        *("__version__", "align", "cache_limit", "set_cache_limit"),
    ),
    "lab.prune": ("Pruned", "prune"),
    "lab.releases": ("ReleaseChange", "Releases"),
    "stores.find": ("find",),
    "_facade": ("Tokenizer",),
    "lab.train": ("train",),
    "lab.verify.result": ("Comparison",),
    "lab.verify.verify": ("verify",),
    "tokenizer.vocab": ("Token", "TokenAttribute", "Vocab"),
    "errors": (
        *("ArgumentTypeError", "ChatRequestError", "ChatTemplateError", "ChatTypeError", "ConversionError"),
        *("CorpusError", "DependencyError", "DownloadError", "GgtokError", "LibraryError", "GGUFError"),
        *("MismatchError", "ModelNotFoundError", "TokenIndexError", "TokenizerWarning", "TrainingError"),
        *("UnsupportedError", "VocabularyError"),
    ),
    "lab.explain.record": ("Why",),
    "lab.explain.explain": ("Trace",),
}
"""The names of each module, which is imported when one of them is used: so `import ggtok` takes no time."""

_MODULES = {name: module for module, names in _NAMES.items() for name in names}

_TAKE_CLASS = ("edit", "extend", "train")
"""Functions whose first argument is the class of the tokenizer that they make."""

_SUBMODULES = ("adapters", "corpus", "errors")
"""Public modules that are imported when they are used."""

__all__ = sorted(_MODULES)  # type checkers take the names imported above, each as itself


def __getattr__(name: str) -> object:
    if name not in _MODULES and name not in _SUBMODULES:
        raise AttributeError(f"module 'ggtok' has no attribute {name!r}")
    from importlib import import_module

    if name in _SUBMODULES:
        return import_module(f".{name}", __name__)  # which makes it an attribute
    value = getattr(import_module(f".{_MODULES[name]}", __name__), name)
    if name in _TAKE_CLASS:
        from types import MethodType

        value = MethodType(value, __getattr__("Tokenizer"))
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_SUBMODULES})
