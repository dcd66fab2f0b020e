"""Shell completion of GGUF files and of models by name, on top of click's."""

from __future__ import annotations

import os
import re

import click
from click.shell_completion import BashComplete, CompletionItem, split_arg_string

SAFE = re.compile(r"[\w.+@%/:-]+")
"""Names that every shell takes as they are, and that click's scripts pass on unchanged."""


class ModelName(click.ParamType[str]):
    """The path of a GGUF file, or the name of a model in a store. It is completed to both."""

    name = "model"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
        """The names that fit, then the files and folders."""
        from ..stores.find import names_from

        names = [CompletionItem(name) for name in names_from(incomplete) if SAFE.fullmatch(name)]
        files = _files_from(incomplete)
        if names:  # a script that leaves files to the shell drops what came before
            files = [item for item in files if item.type == "plain"]
        return names + files


def _files_from(incomplete: str) -> list[CompletionItem[str]]:
    """The GGUF files that fit, and folders that may contain some; if no file fits, the shell completes folders.

    Names that need quotes are left to the shell, which then offers files of every kind.
    """
    folder, start = os.path.split(incomplete)
    try:
        with os.scandir(os.path.expanduser(folder) or ".") as entries:
            fitting = [each for each in entries if each.name.startswith(start) and (start or each.name[0] != ".")]
            files = [entry.name for entry in fitting if entry.name.lower().endswith(".gguf")]
            folders = [entry.name + "/" for entry in fitting if entry.is_dir()]
    except OSError:
        return []
    if any(":" in name or not SAFE.fullmatch(name) for name in [*files, *folders]):
        return [CompletionItem(incomplete, type="file")]
    if not files:
        return [CompletionItem(incomplete, type="dir")]
    return [CompletionItem(os.path.join(folder, name)) for name in sorted([*files, *folders])]


class Bash(BashComplete):
    """bash, for which a colon ends a word: it sees `ollama:llama` as three words, and replaces the last."""

    def get_completion_args(self) -> tuple[list[str], str]:
        """The words before the cursor's and that word, each with the colons in it."""
        cursor = int(os.environ["COMP_CWORD"])
        cut = os.environ["COMP_WORDS"].split("\n")[: cursor + 1]
        words = split_arg_string(re.sub(r"\n:(\n|$)", ":", "\n".join(cut)))
        is_new = len(cut) <= cursor or (cut[-1] == "" and cut[-2] != ":")
        last = "" if is_new else words.pop()
        self._kept = last.rfind(":") + 1 if ":" in cut[-2:] else 0
        return words[1:], last

    def format_completion(self, item: CompletionItem[str]) -> str:
        """What replaces the word of bash."""
        return f"{item.type},{item.value[self._kept :]}"


MODEL = ModelName()
