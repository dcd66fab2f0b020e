"""Checks that imports go one way, that the parts use a tokenizer through its seam, and that nothing grows by accident.

python scripts/check_structure.py

1. Floors: a module of the core (`CORE`) or of the Python package (`PYTHON`) imports only from its floor and from those
   before it in the list. Imports inside functions and for type checkers count too. `from .. import name`, if it reaches
   the root of the package, is an import of its `__init__`. Only `__init__` imports `_facade`.
2. Circles: no file of a crate or of the package reaches itself through its imports, for type checkers either. The files
   in the folder of a Rust file are how it is made: it depends on them, and what they import from it does not count.
3. Crates depend only on those that `CRATES` gives them.
4. Seam: of `tokenizer/`, other folders import only the names that the docstring of `tokenizer/seam.py` lists, and what
   that file defines. Every listed name is used.
5. Private names: no folder imports a private name or module of another one, or reads a private attribute that another
   one defines.
6. Budgets: a part has at most the lines of code that `BUDGETS` gives it, so a part grows by a decision. Comments,
   docstrings, blank lines, tests and generated files do not count.
7. Names: in one language at most `MOST_NAMESAKES` types have the same name, so that a name says which one it is. Each
   adapter may have a `Tokenizer`. An associated type counts once, where its trait declares it.
8. A file has at most `MOST_LINES` lines, except generated ones, which say DO NOT EDIT.

Tests may import anything.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections import Counter
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
    *("tokenizer", "encoder", "sampling", "gguf", "failure", "inspect", "many"),
)
PYTHON = (
    *("_ggtok", "tokenizer/findings", "errors", "_plugins"),
    *("tokenizer/arguments", "tokenizer/keys", "tokenizer/contents"),
    *("tokenizer/numbers", "tokenizer/notebook", "tokenizer/text_or_path", "tokenizer/cuts", "tokenizer/batch"),
    *("tokenizer/chunks", "tokenizer/metadata", "tokenizer/vocab", "tokenizer/files", "tokenizer/check"),
    *("tokenizer", "stores", "trace", "lab/explain", "lab/convert", "lab/refusals", "lab/releases", "chat"),
    *("corpus", "adapters", "lab/chart", "lab/diff", "lab/diagnosis", "lab", "_chat_calls", "_facade"),
    *("__init__", "cli", "__main__"),
)
"""The tokenizer, and then the parts over it: each file or folder imports from those before it. A file belongs to the
longest of these paths."""
BUDGETS = {
    **{"rust/core": 15_843, "rust/chat": 5_489, "rust/train": 3_030, "rust/explain": 3_631},
    **{"rust/python": 4_180, "rust/wasm": 940},
    **{"tokenizer": 1_441, "chat": 964, "stores": 1_118, "corpus": 3_952, "lab": 7_643},
    **{"adapters": 525, "cli": 2_861, "": 486},
}
"""Lines of code of each crate, of each folder of the Python package, and of the files beside them."""
MOST_NAMESAKES = 3
MOST_LINES = 600
FOLDERS = ("rust", "python", "scripts", "tests", "benches", "docs")
SUFFIXES = (".rs", ".py", ".js", ".css", ".html")

OWN = re.compile(r"(self|cls)\.\w+$")
"""An attribute of a method's own object."""

TYPES = {
    "python": r"^\s*class (\w+)[:(]"
    r"|^\s*([A-Z]\w*)(?:: TypeAlias| = (?:\w+\.)?(?:TypeVar|NewType)\()|^([A-Z]+[a-z]\w*) = ",
    "rust": r"^\s*(?:pub(?:\(\w+\))? )?(?:struct|enum|union|trait) (\w+)"
    r"|^(?:pub(?:\(\w+\))? )?type (\w+)|^\s+type (\w+)[:;]",
}
"""What defines a type or an alias of one."""

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


def python_trees(folder: Path) -> dict[str, ast.Module]:
    """The modules of a package."""
    paths = sorted(folder.rglob("*.py"))
    return {path.relative_to(folder).with_suffix("").as_posix(): ast.parse(path.read_bytes()) for path in paths}


def python_imports(trees: dict[str, ast.Module], package: str) -> Iterator[tuple[str, str, str]]:
    """Each import of a package: by which module, of which, and the name that it takes from it, if it is one.

    `__init__` is the module of its folder, and of the package, whatever is imported from it.
    """
    modules = {*trees, "_ggtok"}
    for module, tree in trees.items():
        for node in (node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)):
            start = node.module.split(".") if isinstance(node, ast.ImportFrom) and node.module else []
            if isinstance(node, ast.ImportFrom) and node.level:
                start = [package, *module.split("/")[: -node.level], *start]
            for first, *place in ([*start, *alias.name.split(".")] for alias in node.names):
                if first != package:
                    continue
                ends = range(0 if start == [package] else len(place), -1, -1)
                around = ((end, "/".join([*place[:end], *last])) for end in ends for last in (["__init__"], []))
                end, target = next(((end, to) for end, to in around if to in modules), (0, "__init__"))
                yield module, target, ".".join(place[end:])


def python_graph(trees: dict[str, ast.Module], package: str) -> Graph:
    """The imports of a package."""
    graph: Graph = {module: set() for module in [*trees, "_ggtok"]}
    for module, target, _ in python_imports(trees, package):
        graph[module] |= {target} - {module}
    return graph


def past_the_seam(trees: dict[str, ast.Module], package: str) -> Iterator[str]:
    """What folders use of each other that they should not, and what the seam lists but no part uses."""
    seam = trees.get("tokenizer/seam", ast.Module([], []))
    rows = re.findall(r"^- `(\w+)`: (.*(?:\n  .*)*)", ast.get_docstring(seam) or "", re.MULTILINE)
    listed = {(f"tokenizer/{module}", name) for module, names in rows for name in re.findall(r"`(\w+)`", names)}
    own = {("tokenizer/seam", node.name) for node in seam.body if isinstance(node, ast.FunctionDef)}
    used = set()
    for module, target, name in python_imports(trees, package):
        folders = folder_of(module), folder_of(target)
        if folders[1] in ("", folders[0]):
            if target == "_facade" and module != "__init__":
                yield f"{package}/{module} imports _facade"
            continue
        used.add((target, name))
        is_private = any(part[0] == "_" and part != "__init__" for part in [*target.split("/"), name] if part)
        if is_private or (folders[1] == "tokenizer" and (target, name) not in listed | own):
            yield f"{package}/{module} imports {f'{name} from {target}' if name else target}"
    yield from (f"{package}/tokenizer/seam lists {name}, which is not used" for _, name in sorted(listed - used))


def private_reads(trees: dict[str, ast.Module], package: str) -> Iterator[str]:
    """Private attributes that other folders define. One of the tokenizer's can also be the name of a file's own."""
    defined = {module: {*defined_attributes(tree)} for module, tree in trees.items()}
    folders: dict[str, set[str]] = {}
    for module, names in defined.items():
        folders.setdefault(folder_of(module), set()).update(names)
    for module, tree in trees.items():
        others = {name for folder, names in folders.items() if folder != folder_of(module) for name in names}
        others -= folders[folder_of(module)]
        if folder_of(module) != "tokenizer":
            others |= folders.get("tokenizer", set()) - defined[module]
        for node in ast.walk(tree):
            if (
                isinstance(node, ast.Attribute)
                and node.attr in others
                and ast.unparse(node.value) not in ("self", "cls")
            ):
                yield f"{package}/{module} reads {ast.unparse(node)}"


def folder_of(module: str) -> str:
    """The folder of the package that a module is in; none for the files beside them."""
    return module.rpartition("/")[0].partition("/")[0]


def defined_attributes(tree: ast.Module) -> Iterator[str]:
    """The private names that classes define, and those that are assigned as attributes."""
    for node in ast.walk(tree):
        names = [node.attr] if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) else []
        for inner in node.body if isinstance(node, ast.ClassDef) else ():
            names += [inner.name] if isinstance(inner, ast.FunctionDef) else []
            names += [each.id for each in ast.walk(inner) if isinstance(each, ast.Name)] if is_assignment(inner) else []
        yield from (name for name in names if name[0] == "_" and name[:2] != "__")


def is_assignment(node: ast.AST) -> bool:
    """Whether a statement gives a name a value or a type."""
    return isinstance(node, ast.Assign | ast.AnnAssign)


def code_lines(path: Path) -> int:
    """The lines of a file that are code of the product."""
    text = path.read_text(encoding="utf-8")
    if "DO NOT EDIT" in text[:1000] or re.search(r"/tests?/|/(fuzz|benches|examples)/|/tests\.rs", path.as_posix()):
        return 0
    if path.suffix == ".py":
        text = re.sub(r'^[ \t]*r?""".*?""".*?$', "", text, flags=re.MULTILINE | re.DOTALL)
    if path.suffix == ".rs":  # inline tests stand at the end of a file
        text = re.split(r"^#\[cfg\(test\)\]\nmod .*\{$", text, maxsplit=1, flags=re.MULTILINE)[0]
    comment = {".py": ("#",), ".rs": ("//",)}.get(path.suffix, ("//", "/*", "*"))
    return sum(bool(line.strip()) and not line.strip().startswith(comment) for line in text.split("\n"))


def over_budget(root: Path) -> Iterator[str]:
    """The parts with more lines than they may have."""
    sizes: dict[str, int] = {}
    for folder in ("rust", "python/ggtok"):
        for path in (root / folder).rglob("*"):
            if path.suffix in (".rs", ".py", ".js", ".css") and "target" not in path.parts:
                place = folder_of(path.relative_to(root / folder).as_posix())
                part = f"rust/{place}" if folder == "rust" else place
                sizes[part] = sizes.get(part, 0) + code_lines(path)
    for part, lines in sorted(sizes.items()):
        if lines > BUDGETS.get(part, 0):
            name = part if part.startswith("rust/") else f"python/ggtok/{part}"
            yield f"{name} has {lines} lines of code, more than its budget of {BUDGETS.get(part, 0)}"


def namesakes(root: Path) -> Iterator[str]:
    """The names that too many types of a language have."""
    for (folder, pattern), suffix in zip(TYPES.items(), ("py", "rs"), strict=True):
        paths = [path for path in (root / folder).rglob(f"*.{suffix}") if {"target", "tests"}.isdisjoint(path.parts)]
        found = Counter[str]()
        for path in paths:
            names = [match[match.lastindex or 0] for match in re.finditer(pattern, path.read_text("utf-8"), re.M)]
            found.update(name for name in names if (path.parent.name, name) != ("adapters", "Tokenizer"))
        for name, number in sorted(found.items()):
            if number > MOST_NAMESAKES:
                yield f"{folder}/ has {number} types called {name}, more than {MOST_NAMESAKES}"


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
    """The index of the longest path in the list that a module is at or below."""
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
    trees = python_trees(root / "python/ggtok")
    graph = python_graph(trees, "ggtok")
    yield from upward(graph, PYTHON, "python/ggtok")
    yield from circle(graph, "python/ggtok")
    yield from past_the_seam(trees, "ggtok")
    yield from private_reads(trees, "ggtok")
    yield from over_budget(root)
    yield from namesakes(root)
    for path in sorted(path for folder in FOLDERS for path in (root / folder).rglob("*") if path.suffix in SUFFIXES):
        text = path.read_text(encoding="utf-8")
        if (lines := text.count("\n")) > MOST_LINES and "DO NOT EDIT" not in text[:1000]:
            yield f"{path.relative_to(root).as_posix()} has {lines} lines, more than {MOST_LINES}"


if __name__ == "__main__":
    found = list(problems(ROOT))
    sys.exit("\n".join(found) if found else 0)
