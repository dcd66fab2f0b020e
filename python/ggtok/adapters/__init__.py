"""ggtok's tokenizers in the form that other libraries take them, one module per library.

A module imports its library when it is used, not before.
"""

from importlib import import_module
from pkgutil import iter_modules

TYPE_CHECKING = False
if TYPE_CHECKING:  # type checkers do not look into the folder
    from . import chonkie, langchain, llama_cpp, llama_index, llguidance, outlines, tokenizers, vllm, xgrammar

__all__ = sorted(module.name for module in iter_modules(__path__) if not module.name.startswith("_"))


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'ggtok.adapters' has no attribute {name!r}")
    return import_module(f".{name}", __name__)  # which makes it an attribute


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
