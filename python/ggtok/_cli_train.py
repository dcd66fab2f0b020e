"""The command `ggtok train`: text files in, a GGUF file with a new vocabulary out, with progress on a terminal."""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

from ._train import DEFAULTS, train
from .errors import TrainingError


def add_options(sub: argparse.ArgumentParser) -> None:
    """What `train` takes."""
    sub.set_defaults(run=run)
    sub.add_argument("file", nargs="+", type=Path, help="a text file in UTF-8")
    sub.add_argument("-o", "--output", required=True, type=Path, metavar="PATH", help="the GGUF file to write")
    sub.add_argument("--kind", choices=tuple(DEFAULTS), default="bpe", help="the algorithm (default: bpe)")
    sub.add_argument("--vocab-size", type=int, required=True, metavar="N", help="how many tokens, all included")
    sub.add_argument("--pre", metavar="NAME", help="the pre-tokenizer of bpe (default: qwen2)")
    sub.add_argument(
        "--special",
        metavar="ROLE=TEXT",
        action="append",
        help="a special token, such as eos=</s>; replaces all default ones; repeatable",
    )
    sub.add_argument("--control", metavar="TEXT", action="append", default=[], help="a control token; repeatable")
    sub.add_argument(
        "--user-defined", metavar="TEXT", action="append", default=[], help="a token always read in text; repeatable"
    )
    sub.add_argument("--name", help="general.name of the file")
    sub.add_argument("--threads", type=int, metavar="N", help="how many threads count (default: all cores)")
    sub.add_argument("--memory", type=int, metavar="MIB", help="how many MiB of counted words stay in memory")
    sub.add_argument(
        "--set",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="another setting of the kind, as docs/train.md lists them: --set min_frequency=3; repeatable",
    )


def run(arguments: argparse.Namespace) -> None:
    """Trains and writes."""
    if not arguments.output.parent.is_dir():
        raise TrainingError(f"{arguments.output.parent} is no folder to write to")
    settings = {name: _value(arguments.kind, name, value) for name, value in map(_pair, arguments.set)}
    if arguments.pre is not None:
        settings["pre"] = arguments.pre
    shown = Bar(sum(path.stat().st_size for path in arguments.file)) if sys.stderr.isatty() else None
    try:
        tokenizer = train(
            arguments.file,
            kind=arguments.kind,
            vocab_size=arguments.vocab_size,
            special=None if arguments.special is None else dict(map(_pair, arguments.special)),
            control_tokens=arguments.control,
            user_defined_tokens=arguments.user_defined,
            name=arguments.name,
            threads=arguments.threads,
            memory=None if arguments.memory is None else arguments.memory << 20,
            progress=shown,
            **settings,
        )
    finally:
        if shown is not None:
            shown.clear()
    tokenizer.to_gguf(arguments.output)
    print(f"{arguments.output}: {len(tokenizer.vocab)} tokens")


def _pair(argument: str) -> tuple[str, str]:
    name, equals, value = argument.partition("=")
    if not (name and equals):
        raise TrainingError(f"{argument!r} is not NAME=VALUE")
    return name, value


def _value(kind: str, name: str, text: str) -> Any:
    """The value of a setting: a number, true, false or null, or else a text, as its default is."""
    if name not in DEFAULTS[kind]:
        raise TrainingError(f"{name!r} is no setting of {kind}, which has {', '.join(sorted(DEFAULTS[kind]))}")
    default = DEFAULTS[kind][name]
    if isinstance(default, str):
        return text
    try:
        value = json.loads(text)
    except ValueError:
        value = text
    if default is not None and not isinstance(value, type(default)):
        raise TrainingError(f"{name} is {type(default).__name__}: {text!r} is not")
    return value


class Bar:
    """A line on the terminal that says how far the training is, and how long it may still take."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.phase, self.began, self.first = "", 0.0, 0

    def __call__(self, phase: str, done: int, total: int) -> None:
        """What `train` calls."""
        now = time.monotonic()
        if phase != self.phase:
            self.phase, self.began, self.first = phase, now, done
        total = total or self.size
        share = min(done / total, 1.0) if total else 0.0
        left, steps = "", done - self.first
        if steps > 0 and share < 1:
            seconds = (now - self.began) / steps * (total - done)
            left = f", {int(seconds // 60)}:{int(seconds % 60):02} left"
        print(f"\r\x1b[K{phase} {share:4.0%} {'█' * int(20 * share):░<20}{left}", end="", file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Takes the line away."""
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)
