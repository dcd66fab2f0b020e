"""ggtok's tokenizers in the form that other libraries take them, one module per library.

A module imports its library when it is used, not before.
"""

from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from . import chonkie, langchain, llama_cpp, llama_index, llguidance, outlines, tokenizers, vllm, xgrammar

__all__ = [
    "chonkie",
    "langchain",
    "llama_cpp",
    "llama_index",
    "llguidance",
    "outlines",
    "tokenizers",
    "vllm",
    "xgrammar",
]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'ggtok.adapters' has no attribute {name!r}")
    return import_module(f".{name}", __name__)  # which makes it an attribute


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
