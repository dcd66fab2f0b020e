"""The files below a folder, without what .gitignore leaves out, and their numbers as a tree."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from .output import CELL, drawn, painted, printable, wants_colors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

IGNORE, GIT = ".gitignore", ".git"
BAR = 12
"""Columns of the bar of what has all tokens."""

BRANCHES = (("├── ", "│   "), ("└── ", "    "))
"""What is before a name, and before those below it: of one with others after it, and of the last one."""

Rules: TypeAlias = "tuple[tuple[str, GitIgnoreSpec], ...]"
"""The rules of .gitignore files with their folders, the outermost first."""


def files_below(root: str) -> Iterator[str]:
    """The paths of the files below a folder, in order, and of folders that cannot be read. Links are not followed."""
    rules: Rules = ()
    absolute = Path(root).resolve()
    if top := next((each for each in (absolute, *absolute.parents) if (each / GIT).exists()), None):
        for folder in [each for each in reversed(absolute.parents) if each.is_relative_to(top)]:
            rules = _with_rules_of(str(folder), rules)
    waiting: list[tuple[str, str, Rules, bool]] = [(root, str(absolute), rules, True)]
    while waiting:
        path, place, rules, is_folder = waiting.pop()
        if not is_folder:
            yield path
            continue
        try:
            rules = _with_rules_of(place, rules)
            entries = sorted(os.scandir(path), key=lambda entry: entry.name, reverse=True)
        except OSError:
            yield path  # whoever opens it names the error
            continue
        for entry in entries:
            is_folder, own = entry.is_dir(follow_symlinks=False), os.path.join(place, entry.name)
            if entry.name != GIT and not entry.is_symlink() and not _is_ignored(own + "/" * is_folder, rules):
                waiting.append((entry.path, own, rules, is_folder))


def _with_rules_of(folder: str, rules: Rules) -> Rules:
    path = Path(folder, IGNORE)
    if not path.is_file():
        return rules
    from pathspec import GitIgnoreSpec

    lines = path.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    return (*rules, (folder, GitIgnoreSpec.from_lines(lines)))


def _is_ignored(path: str, rules: Rules) -> bool:
    """What the innermost rule says that says anything."""
    found = (spec.check_file(path[len(folder) :].lstrip("/")).include for folder, spec in reversed(rules))
    return bool(next((each for each in found if each is not None), False))


@dataclass
class Node:
    """A file or a folder: how many tokens it has, and what is in it."""

    count: int = 0
    is_binary: bool = False
    below: dict[str, Node] = field(default_factory=dict)

    def add(self, path: str, count: int | None) -> None:
        """Adds a file below it; one without a count is binary."""
        node, number = self, count or 0
        node.count += number
        for name in filter(None, [path[: path.startswith(os.sep)], *path.split(os.sep)]):  # "/" is a folder, too
            node = node.below.setdefault(name, Node())
            node.count += number
        node.is_binary = count is None

    def rows(self, name: str) -> Iterator[tuple[Node, str]]:
        """It and what is below it, the largest first, each with its name after the branches of the tree."""
        waiting = [(self, name, "")]
        while waiting:
            node, line, indent = waiting.pop()
            yield node, line
            below = sorted(node.below.items(), key=lambda item: item[1].count)
            for number, (name, child) in enumerate(below):
                branch, stem = BRANCHES[number == 0]
                waiting.append((child, f"{indent}{branch}{name}{'/' * bool(child.below)}", indent + stem))


def print_tree(tree: Node) -> None:
    """The numbers of files and folders, their shares of all tokens, and where they are. Binary files are named."""
    colors, width = wants_colors(), max(len(f"{tree.count:,}"), len("binary"))
    [root] = tree.below.values() if len(tree.below) == 1 else [tree]
    name = next(iter(tree.below)) if root is not tree else "total"
    while len(root.below) == 1 and next(iter(root.below.values())).below:
        [(last, root)] = root.below.items()
        name = os.path.join(name, last)
    for node, line in root.rows(os.path.join(name, "") if root.below else name):
        share = node.count / tree.count if tree.count else 0
        bar = painted(f"{CELL * round(share * BAR):{BAR}}", "34" * colors)
        numbers = f"{node.count:>{width},} {bar}{share:4.0%}"
        if node.is_binary:
            numbers = painted(f"{'binary':>{width}} {'':{BAR + 4}}", "2" * colors)
        print(drawn(f"{numbers} {printable(line)}"))
