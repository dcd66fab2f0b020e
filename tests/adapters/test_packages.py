"""What all adapters share: nothing is imported early, and a package that is missing is named."""

from __future__ import annotations

import importlib
import inspect
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import ggtok
import pytest
from ggtok import adapters
from ggtok.adapters._shared import end_ids

LOADED = {
    name: dict(re.findall(r'\bload\("([^"]+)", "([^"]+)"\)', Path(folder, f"{name}.py").read_text(encoding="utf-8")))
    for folder in adapters.__path__
    for name in adapters.__all__
}
"""The modules of libraries that each adapter imports, and the packages that they are in."""

LIBRARIES = {module.partition(".")[0] for modules in LOADED.values() for module in modules}
LIBRARIES |= {"langchain_core", "outlines", "tokenizers", "torch"}


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


OTHER_CALLS: dict[str, list[Callable[[], object]]] = {"vllm": [lambda: adapters.vllm.register()]}
"""Those of libraries that are not needed at once."""


@pytest.mark.parametrize("name", [name for name in adapters.__all__ if LOADED[name]])
def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Every call that needs a library, which is each that has a tokenizer as its first argument, or a listed one."""
    for module in [each for each in sys.modules if each.partition(".")[0] in LIBRARIES]:
        monkeypatch.delitem(sys.modules, module)
    for module in LIBRARIES:
        monkeypatch.setitem(sys.modules, module, None)
    named = set()
    for call in OTHER_CALLS.get(name) or calls(getattr(adapters, name)):
        try:
            call()
        except ggtok.DependencyError as error:
            (package,) = re.findall(r"pip install (?:-U )?([\w-]+)$", str(error))
            named.add(package)
    assert named
    assert named <= {*LOADED[name].values()}


def calls(module: Any) -> Iterator[Callable[[], object]]:
    """What the module has for a tokenizer, with 1 for other arguments that are needed."""
    for name, value in vars(module).items():
        if not name.startswith("_") and getattr(value, "__module__", "") == module.__name__:
            first, *others = inspect.signature(value).parameters.values()
            if first.name == "tok":
                needed = [1 for each in others if each.default is each.empty and each.kind != each.VAR_KEYWORD]
                yield partial(value, TOK, *needed)


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
