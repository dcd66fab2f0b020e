"""Checks that imports go one way, and that no file is too long.

python scripts/check_structure.py

1. Floors: a module of the core (`CORE`) or of the Python package (`PYTHON`) imports only from its floor and from those
   before it in the list. Imports inside functions and for type checkers count too.
2. Circles: no file of a crate or of the package reaches itself through its imports. The files in the folder of a Rust
   file are how it is made: it depends on them, and what they import from it does not count. In Python, imports for type
   checkers do not count, because the methods of a class call functions that take the class.
3. Crates depend only on those that `CRATES` gives them.
4. A file has at most `MOST_LINES` lines, except generated ones, which say DO NOT EDIT.

Tests may import anything.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CRATES = {
    **{"core": (), "chat": ("core",), "train": ("core",), "explain": ("core",)},
    **{"python": ("chat", "core", "explain", "train"), "wasm": ("chat", "core", "explain")},
}
CORE = (
    *("token", "error", "work", "text", "lookup", "vocabulary", "decode", "encode"),
    *("tokenizer", "gguf", "inspect", "many"),
)
PYTHON = (
    *("_ggtok", "tokenizer/findings", "errors", "tokenizer/arguments", "tokenizer/keys", "tokenizer/contents"),
    *("tokenizer/numbers", "tokenizer/notebook", "tokenizer/texts", "tokenizer/cuts", "tokenizer/batch"),
    *("tokenizer/chunks", "tokenizer/metadata", "tokenizer/vocab", "tokenizer/files", "tokenizer/check"),
    *("tokenizer", "stores", "trace", "lab/explain", "lab/convert", "lab/refusals", "lab/releases", "chat", "_facade"),
    *("corpus", "adapters", "lab/chart", "lab/diff", "lab/diagnosis", "lab", "__init__", "cli", "__main__"),
)
"""The tokenizer, and then the parts over it: each file or folder imports from those before it. A file belongs to the
longest of these paths."""
MOST_LINES = 600
FOLDERS = ("rust", "python", "scripts", "tests", "benches", "docs")
SUFFIXES = (".rs", ".py", ".js", ".css", ".html")

Graph = dict[str, set[str]]
"""For each module, written as a path such as `encode/model/bpe`, the modules that it imports."""


def rust_graph(folder: Path) -> Graph:
    """The imports of a crate. The module of `lib.rs` is the empty path."""
    texts = {}
    for path in folder.rglob("*.rs"):
        module = path.relative_to(folder).with_suffix("").as_posix()
        texts["" if module == "lib" else module] = re.sub(r"//.*", "", path.read_text(encoding="utf-8"))
    for module, text in list(texts.items()):
        for name in re.findall(r"^#\[cfg\(test\)\]\nmod (\w+);", text, re.MULTILINE):
            texts.pop(f"{module}/{name}".lstrip("/"), None)
        texts[module] = re.sub(r"^#\[cfg\(test\)\]\n(?:.*;\n|(?s:.*?)^\}\n)", "", text, flags=re.MULTILINE)
    graph: Graph = {module: set() for module in texts}
    for module, text in texts.items():
        found = [
            [*module.split("/"), name] for name in re.findall(r"^(?:pub(?:\(\w+\))? )?mod (\w+);", text, re.MULTILINE)
        ]
        for match in re.findall(r"\b(?:crate|super)::[\w:]*(?:\{[^;]*\})?", text):
            for first, *rest in (path.split("::") for path in spread("".join(match.split()))):
                start = [] if first == "crate" else module.split("/")[:-1]
                while rest[:1] == ["super"]:
                    start, rest = start[:-1], rest[1:]
                found.append([*start, *rest])
        for place in found:
            ends = range(len(place), -1, -1)
            target = next(to for end in ends if (to := "/".join(place[:end]).lstrip("/")) in graph)
            # What a file imports from those whose folders it is in does not count, except from the root.
            if not target or not f"{module}/".startswith(f"{target}/"):
                graph[module].add(target)
    return graph


def spread(path: str) -> Iterator[str]:
    """The paths of a list in braces: `a::{b,c::{d}}` is `a::b` and `a::c::d`."""
    start, _, inner = path.partition("{")
    if not inner:
        yield start
    depth, item = 0, ""
    for character in inner.removesuffix("}") + "," if inner else "":
        depth += (character == "{") - (character == "}")
        if character == "," and depth == 0:
            yield from spread(start + item)
            item = ""
        else:
            item += character


def python_graph(folder: Path, *, types: bool) -> Graph:
    """The imports of a package, with those for type checkers or without. `__init__` is the module of its folder."""
    files = {path.relative_to(folder).with_suffix("").as_posix(): path for path in folder.rglob("*.py")}
    graph: Graph = {module: set() for module in [*files, "_ggtok"]}
    for module, path in files.items():
        for node in imports(ast.parse(path.read_text(encoding="utf-8")), types):
            start = node.module.split(".") if isinstance(node, ast.ImportFrom) and node.module else []
            if isinstance(node, ast.ImportFrom) and node.level:
                start = [folder.name, *module.split("/")[: -node.level], *start]
            for package, *place in ([*start, *alias.name.split(".")] for alias in node.names):
                ends = range(len(place), -1, -1) if package == folder.name else ()
                around = ("/".join([*place[:end], *last]) for end in ends for last in (["__init__"], []))
                graph[module].add(next((to for to in around if to in graph), module))
        graph[module].discard(module)
    return graph


def imports(node: ast.AST, types: bool) -> Iterator[ast.Import | ast.ImportFrom]:
    """The import statements in a syntax tree."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child
        elif types or not (isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING"):
            yield from imports(child, types)


def upward(graph: Graph, floors: tuple[str, ...], folder: str) -> Iterator[str]:
    """Imports from floors that come later in the list."""
    places = {floor: place for place, floor in enumerate(floors)}
    for module, targets in sorted(graph.items()):
        if not module:
            continue
        floor = floor_of(module, places)
        if floor is None:
            yield f"{folder}/{module} is on no floor"
            continue
        above = [to for to in sorted(targets) if (other := floor_of(to, places)) is None or other > floor]
        yield from (f"{folder}/{module} imports {to or 'lib'}" for to in above)


def floor_of(module: str, places: dict[str, int]) -> int | None:
    """The place of the longest path in the list that a module is at or below."""
    parts = module.split("/")
    ends = range(len(parts), 0, -1)
    return next((places[path] for end in ends if (path := "/".join(parts[:end])) in places), None)


def circle(graph: Graph, folder: str) -> Iterator[str]:
    """A circle, if there is one."""
    try:
        TopologicalSorter({module: targets - {""} for module, targets in graph.items()}).prepare()
    except CycleError as error:
        yield f"{folder} has a circle: {' imports '.join(module or 'lib' for module in reversed(error.args[1]))}"


def problems(root: Path) -> Iterator[str]:
    """What does not hold, one sentence each."""
    for crate, allowed in CRATES.items():
        manifest = tomllib.loads((root / "rust" / crate / "Cargo.toml").read_text(encoding="utf-8"))
        ours = {name.removeprefix("ggtok-") for name in manifest["dependencies"] if name.startswith("ggtok-")}
        yield from (f"rust/{crate} depends on rust/{name}" for name in sorted(ours.difference(allowed)))
        graph = rust_graph(root / "rust" / crate / "src")
        yield from upward(graph, CORE, "rust/core/src") if crate == "core" else ()
        yield from circle(graph, f"rust/{crate}/src")
    yield from upward(python_graph(root / "python/ggtok", types=True), PYTHON, "python/ggtok")
    yield from circle(python_graph(root / "python/ggtok", types=False), "python/ggtok")
    for path in sorted(path for folder in FOLDERS for path in (root / folder).rglob("*") if path.suffix in SUFFIXES):
        text = path.read_text(encoding="utf-8")
        if (lines := text.count("\n")) > MOST_LINES and "DO NOT EDIT" not in text[:1000]:
            yield f"{path.relative_to(root).as_posix()} has {lines} lines, more than {MOST_LINES}"


if __name__ == "__main__":
    found = list(problems(ROOT))
    sys.exit("\n".join(found) if found else 0)
