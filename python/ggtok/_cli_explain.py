"""The command `ggtok explain`: every step from a text to its tokens, printed, walked through, compared or as a page."""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import sys

from . import Tokenizer
from ._cli.legacy import UsageError, _print_json, _texts, _tokenizer
from ._explain import compare
from ._explain.html import compare_page, trie_page
from ._explain.step import walk
from ._explain.tables import Section
from ._explain.text import LEAST_WIDTH, lines
from ._explain.trace import Trace
from ._explain.trie import explain_trie, trie_sections

MAX_ROWS = 40


def run(arguments: argparse.Namespace) -> None:
    """Runs the command."""
    arguments.text += arguments.prompt
    several = len(arguments.text) + len(arguments.file) > 1
    if several and arguments.trie is None and (arguments.step or arguments.html is not None):
        raise UsageError("--step and --html are for one text")
    if arguments.trie is not None:
        _trie(arguments)
    elif arguments.compare is not None:
        _compare(arguments)
    else:
        _traces(arguments)


def _traces(arguments: argparse.Namespace) -> None:
    tokenizer = _tokenizer(arguments)
    span = None if arguments.why is None else _span(arguments.why)
    for _, text in _texts(arguments):
        trace = _explained(tokenizer, text, arguments)
        if arguments.html is not None:
            trace.to_html(arguments.html)
        if arguments.step:
            walk(trace, colors=_colors())
        elif span is not None:
            why = trace.why(*span)
            if arguments.json:
                reasons = [{"kind": each.kind, "message": each.message} for each in why.reasons]
                _print_json(start=why.start, end=why.end, ids=[each.id for each in why.tokens], reasons=reasons)
            else:
                print(why)
        elif arguments.json:
            print(json.dumps(json.loads(trace.to_json())))
        elif arguments.html is None:
            print(trace.to_text(width=_width(), colors=_colors()))


def _compare(arguments: argparse.Namespace) -> None:
    if arguments.model or arguments.builtin or arguments.override_kv:
        raise UsageError("--compare takes two files, and no --model, --builtin or --override-kv")
    names = _names(*arguments.compare)
    tokenizers = [Tokenizer.from_gguf(path) for path in arguments.compare]
    for _, text in _texts(arguments):
        a, b = (_explained(tokenizer, text, arguments) for tokenizer in tokenizers)
        if arguments.html is not None:
            _write_page(arguments.html, compare_page(a, b, names))
        elif arguments.json:
            found = compare.pairs(a, b)
            parts_at = compare.parting(found)
            section = None if parts_at is None else found[parts_at.pair].a or found[parts_at.pair].b
            parting = None if parts_at is None or section is None else {"table": section.title, "row": parts_at.row}
            _print_json(a=json.loads(a.to_json()), b=json.loads(b.to_json()), parting=parting)
        else:
            print(compare.render(a, b, names, width=_width(), max_rows=MAX_ROWS, colors=_colors()))


def _trie(arguments: argparse.Namespace) -> None:
    if arguments.model or arguments.builtin or arguments.override_kv:
        raise UsageError("--trie takes words, and no --model, --builtin or --override-kv")
    words = [os.fsencode(word) for word in arguments.trie]
    trie, made = explain_trie(words, [*words, *map(os.fsencode, arguments.text)])
    if arguments.html is not None:
        _write_page(arguments.html, trie_page(trie.words, made, trie_sections(trie)))
    elif arguments.json:
        print(json.dumps(json.loads(made)))
    else:
        print("\n\n".join(_shown(section) for section in trie_sections(trie)))


def _write_page(path: str, page: str) -> None:
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        file.write(page)


def _explained(tokenizer: Tokenizer, text: bytes, arguments: argparse.Namespace) -> Trace:
    return tokenizer.explain(text, add_special=not arguments.no_special, parse_special=arguments.parse_special)


def _shown(section: Section) -> str:
    return "\n".join(lines(section, _width(), MAX_ROWS, _colors()))


def _span(written: str) -> tuple[int, int]:
    match = re.fullmatch(r"(\d{1,9}):(\d{1,9})", written, re.ASCII)
    if match is None:
        raise UsageError(f"{written!r} is not START:END, two numbers of characters")
    return int(match[1]), int(match[2])


def _names(first: str, second: str) -> tuple[str, str]:
    """The names of two files; their paths where these are the same."""
    names = os.path.basename(first), os.path.basename(second)
    return names if names[0] != names[1] else (first, second)


def _width() -> int:
    return max(shutil.get_terminal_size().columns, LEAST_WIDTH)


def _colors() -> bool:
    """Whether the reader's terminal shows colours, and they want them (https://no-color.org)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
