"""Shell completion of GGUF files and names, on top of click's."""

from __future__ import annotations

import os
import re

import click
from click.shell_completion import CompletionItem

SAFE = re.compile(r"[\w.+@%/-]+")
"""Names that every shell takes as they are, and that click's scripts pass on unchanged."""


class GgufFile(click.ParamType[str]):
    """The path of a file. It is completed to GGUF files, and to folders that may contain them."""

    name = "file"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
        """The files that fit; if none does, the shell completes folders.

        Names that need quotes are left to the shell, which then offers files of every kind.
        """
        folder, start = os.path.split(incomplete)
        try:
            with os.scandir(os.path.expanduser(folder) or ".") as entries:
                fitting = [entry for entry in entries if _fits(entry.name, start)]
                files = [entry.name for entry in fitting if entry.name.lower().endswith(".gguf")]
                folders = [entry.name + "/" for entry in fitting if entry.is_dir()]
        except OSError:
            return []
        if not all(map(SAFE.fullmatch, [*files, *folders])):
            return [CompletionItem(incomplete, type="file")]
        if not files:
            return [CompletionItem(incomplete, type="dir")]
        return [CompletionItem(os.path.join(folder, name)) for name in sorted([*files, *folders])]


def _fits(name: str, start: str) -> bool:
    return name.startswith(start) and (start != "" or not name.startswith("."))


GGUF = GgufFile()
