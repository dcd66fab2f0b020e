"""What all adapters share: nothing is imported early, and a package that is missing is named."""

from __future__ import annotations

import importlib
import subprocess
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import ggtok
import pytest
from ggtok import adapters
from ggtok.adapters._generation import end_ids

LIBRARIES = {
    *("chonkie", "langchain_core", "langchain_text_splitters", "llama_cpp", "llama_index", "llguidance", "outlines"),
    *("outlines_core", "tokenizers", "torch", "transformers", "vllm", "xgrammar"),
}


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_libraries_are_imported_when_they_are_used() -> None:
    """`import ggtok` imports no adapter, and the adapters import no library."""
    names = ", ".join(adapters.__all__)
    code = f"""
import sys, ggtok
assert not any(name.startswith("ggtok.adapters") for name in sys.modules)
from ggtok.adapters import {names}
print(*sorted({{name.partition(".")[0] for name in sys.modules}} & {LIBRARIES}))
"""
    assert run(code).strip() == ""


def test_names() -> None:
    assert {*adapters.__all__} <= set(dir(adapters))
    for name in adapters.__all__:
        assert getattr(adapters, name).__name__ == f"ggtok.adapters.{name}"
    with pytest.raises(AttributeError, match="no attribute 'nonesuch'"):
        adapters.nonesuch  # noqa: B018


TOK = ggtok.Tokenizer.builtin("bpe")


@pytest.mark.parametrize(
    ("module", "package", "call"),
    [
        ("llguidance", "llguidance", lambda: adapters.llguidance.tokenizer(TOK)),
        ("langchain_text_splitters", "langchain-text-splitters", lambda: adapters.langchain.tokenizer(TOK, 0, 1)),
        ("chonkie", "chonkie", lambda: adapters.chonkie.Tokenizer(TOK)),
        ("llama_cpp", "llama-cpp-python", lambda: adapters.llama_cpp.Tokenizer(TOK)),
        ("llama_index", "llama-index-core", lambda: adapters.llama_index.counting_handler(TOK)),
        ("outlines_core", "outlines-core", lambda: adapters.outlines.vocabulary(TOK)),
        ("vllm", "", lambda: adapters.vllm.register()),
        ("xgrammar", "xgrammar", lambda: adapters.xgrammar.tokenizer_info(TOK)),
        ("tokenizers", "tokenizers", lambda: adapters.tokenizers.Tokenizer(TOK).get_added_tokens_decoder()),
    ],
)
def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch, module: str, package: str, call: Any) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == module]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ggtok.DependencyError, match=f"pip install .*{package or module}"):
        call()


def test_a_vocabulary_without_an_end_of_generation() -> None:
    nothing: Any = SimpleNamespace(vocab=SimpleNamespace(eog_ids=frozenset(), eos_id=None))
    with pytest.raises(ggtok.GgtokError, match="no token that ends generation: pass its id"):
        end_ids(nothing)


def test_vllm_finds_the_plugin() -> None:
    """In the metadata of the wheel."""
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (place,) = project["entry-points"]["vllm.general_plugins"].values()
    module, _, name = place.partition(":")
    assert callable(getattr(importlib.import_module(module), name))
