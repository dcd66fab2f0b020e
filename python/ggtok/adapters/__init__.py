"""ggtok's tokenizers in the form that other libraries take them, one module per library.

A module imports its library when it is used, not before.
"""

from importlib import import_module
from pkgutil import iter_modules

TYPE_CHECKING = False
if TYPE_CHECKING:  # type checkers do not look into the folder
    from . import chonkie as chonkie
    from . import langchain as langchain
    from . import llama_cpp as llama_cpp
    from . import llama_index as llama_index
    from . import llguidance as llguidance
    from . import outlines as outlines
    from . import tokenizers as tokenizers
    from . import vllm as vllm
    from . import xgrammar as xgrammar

__all__ = sorted(module.name for module in iter_modules(__path__) if not module.name.startswith("_"))


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'ggtok.adapters' has no attribute {name!r}")
    return import_module(f".{name}", __name__)  # which makes it an attribute


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
