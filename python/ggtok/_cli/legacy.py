"""The commands that are not in `commands/` yet, on argparse."""

from __future__ import annotations

import argparse
import base64
import csv
import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import click

from .. import Tokenizer, evaluate
from .._cli_train import add_options as add_train_options

BUILTIN = ("bpe", "spm", "wordpiece", "unigram")


UsageError = click.ClickException


@click.command(add_help_option=False, context_settings={"ignore_unknown_options": True})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def command(context: click.Context, arguments: tuple[str, ...]) -> None:
    """The commands that are not moved yet."""
    parsed = _parser().parse_args([context.info_name or "", *arguments])
    parsed.run(parsed)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="ggtok", description="Text to tokens and back, exactly as llama.cpp does, from a GGUF file's metadata."
    )
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    def command(name: str, run: Callable[[argparse.Namespace], None], help: str) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=help, description=f"{help.capitalize()}.")
        sub.set_defaults(run=run)
        source = sub.add_mutually_exclusive_group()
        source.add_argument("-m", "--model", metavar="PATH", help="a GGUF file, with or without tensors")
        source.add_argument("--builtin", choices=BUILTIN, help="an embedded vocabulary (default: bpe)")
        sub.add_argument(
            "--override-kv",
            metavar="KEY=TYPE:VALUE",
            action="append",
            default=[],
            help="replace metadata as llama.cpp does; TYPE is int, float, bool or str; commas separate several",
        )
        sub.add_argument(
            "--json",
            action="store_true",
            help='write one JSON object per text; text that is not UTF-8 is {"base64": "..."}',
        )
        return sub

    def of_texts(name: str, run: Callable[[argparse.Namespace], None], help: str) -> argparse.ArgumentParser:
        sub = command(name, run, help)
        sub.add_argument("text", nargs="*", help="a text (default: standard input as one text)")
        sub.add_argument(
            "-f", "--file", metavar="FILE", action="append", default=[], help="a file as one text; - is standard input"
        )
        sub.add_argument("--no-special", action="store_true", help="add no BOS, EOS or SEP")
        sub.add_argument(
            "--parse-special", action="store_true", help="read control tokens written in the text as tokens"
        )
        return sub

    add_explain_options(of_texts("explain", _explain, "show every step from texts to their tokens"))

    sub = command("inspect", _inspect, "show what a file's tokenizer is")
    sub.add_argument("path", nargs="?", metavar="MODEL", help="like --model")

    sub = commands.add_parser(
        "evaluate",
        help="measure how well vocabularies fit texts",
        description="Measures how well vocabularies fit texts, each beside the others.",
    )
    sub.set_defaults(run=_evaluate)
    sub.add_argument("file", nargs="+", metavar="[NAME=]FILE", help="a text, named by its file unless a name is given")
    sub.add_argument("-m", "--model", action="append", default=[], metavar="PATH", help="a GGUF file; repeatable")
    sub.add_argument(
        "--builtin", action="append", default=[], choices=BUILTIN, help="an embedded vocabulary; repeatable"
    )
    sub.add_argument("--reference", metavar="NAME", help="the text of which the others are translations")
    sub.add_argument("--svg", metavar="PATH", help="write a chart of the bytes per token")
    sub.add_argument("--json", action="store_true", help="write one JSON object per text and vocabulary")

    sub = commands.add_parser(
        "train",
        help="train a vocabulary and write it as a GGUF file",
        description="Trains a vocabulary on text files and writes it as a GGUF file.",
    )
    add_train_options(sub)
    return parser


def add_explain_options(sub: argparse.ArgumentParser) -> None:
    """What `explain` has beside texts."""
    sub.add_argument("-p", "--prompt", metavar="TEXT", action="append", default=[], help="a text, as in llama.cpp")
    sub.add_argument("--html", metavar="PATH", help="write a page that needs no network")
    modes = sub.add_mutually_exclusive_group()
    modes.add_argument("--step", action="store_true", help="walk through the steps with keys; ? shows them")
    modes.add_argument(
        "--why", metavar="START:END", help="say why these characters are not one token; the first is number 0"
    )
    modes.add_argument(
        "--compare", nargs=2, metavar="MODEL", help="the traces of two files beside each other, and where they part"
    )
    modes.add_argument(
        "--trie", nargs="+", metavar="WORD", help="build, walk and pack a double array; looks up the words and each -p"
    )


def _inspect(arguments: argparse.Namespace) -> None:
    if arguments.path is not None:
        if arguments.model is not None:
            raise UsageError("the model is given twice")
        arguments.model = arguments.path
    tokenizer = _tokenizer(arguments)
    vocab = tokenizer.vocab
    special = {name: id for name, id in tokenizer._special().items() if id is not None}
    flags = {name: getattr(vocab, name) for name in ("add_bos", "add_eos", "add_sep")}
    eog = sorted(vocab.eog_ids)
    if arguments.json:
        _print_json(
            kind=str(vocab.kind),
            pre=vocab.pre,
            size=len(vocab),
            special={name: {"id": id, "piece": _lossless(tokenizer.piece(id))} for name, id in special.items()},
            eog_ids=eog,
            **flags,
            repairs=list(tokenizer.repairs),
        )
        return
    rows = [("name", str(tokenizer.metadata.get("general.name", "")))]
    rows += [("kind", str(vocab.kind)), ("pre-tokenizer", vocab.pre or ""), ("tokens", str(len(vocab)))]
    rows += [(f"{name} token", f"{id:<8}{_shown(tokenizer.piece(id))}") for name, id in special.items()]
    rows += [("end of generation", f"{id:<8}{_shown(tokenizer.piece(id))}") for id in eog]
    rows += [(name, "yes" if value else "no") for name, value in flags.items()]
    rows += [("repaired", repair) for repair in tokenizer.repairs]
    before = None
    for name, value in rows:
        if value:
            print(f"{name if name != before else '':<18} {value}")
            before = name


def _evaluate(arguments: argparse.Namespace) -> None:
    tokenizers = {path: Tokenizer.from_gguf(path) for path in arguments.model}
    tokenizers |= {name: Tokenizer.builtin(name) for name in arguments.builtin}
    texts = {}
    for argument in arguments.file:
        name, equals, path = argument.partition("=")
        texts[name] = Path(path if equals else argument)
    evaluation = evaluate(tokenizers or {"bpe": Tokenizer.builtin("bpe")}, texts, reference=arguments.reference)
    if arguments.svg:
        evaluation.to_svg(arguments.svg)
    if arguments.json:
        for row in evaluation.to_dicts():
            _print_json(**row)
    else:
        print(evaluation)


def _explain(arguments: argparse.Namespace) -> None:
    from .._cli_explain import run

    run(arguments)


def _tokenizer(arguments: argparse.Namespace) -> Tokenizer:
    overrides = dict(_override(item) for row in arguments.override_kv for item in next(csv.reader([row]), []))
    if arguments.model is not None:
        return Tokenizer.from_gguf(arguments.model, overrides=overrides)
    if overrides:
        raise UsageError("--override-kv needs --model")
    return Tokenizer.builtin(arguments.builtin or "bpe")


def _override(item: str) -> tuple[str, str | int | float | bool]:
    """One override in llama.cpp's notation: `string_parse_kv_override` in its `common/common.cpp`.

    Deviations: (1) a number must be a number, where llama.cpp takes anything else for 0. (2) Keys and strings may be
    longer than 127 bytes.
    """
    key, equals, typed = item.partition("=")
    kind, colon, value = typed.partition(":")
    if not (key and equals and colon):
        raise UsageError(f"{item!r} is not KEY=TYPE:VALUE")
    kinds: dict[str, Callable[[str], str | int | float | bool]] = {
        "int": int,
        "float": float,
        "bool": lambda value: {"true": True, "false": False}[value],
        "str": str,
    }
    if kind not in kinds:
        raise UsageError(f"{item!r} has the type {kind!r}: expected int, float, bool or str")
    try:
        return key, kinds[kind](value)
    except (ValueError, KeyError):
        raise UsageError(f"{item!r} has the value {value!r}: expected a {kind}") from None


def _texts(arguments: argparse.Namespace) -> Iterator[tuple[str, bytes]]:
    """Each text with its name."""
    for text in arguments.text:
        yield repr(text), os.fsencode(text)
    for path in arguments.file or ([] if arguments.text else ["-"]):
        if path == "-":
            yield path, sys.stdin.buffer.read()
        else:
            with open(path, "rb") as file:
                yield path, file.read()


def _lossless(text: bytes) -> str | dict[str, str]:
    """Bytes as JSON has them: a string where they are UTF-8, which a token's bytes need not be."""
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(text).decode("ascii")}


def _shown(piece: bytes) -> str:
    """A piece in quotes, with invisible characters escaped; `b'...'` where it is not UTF-8."""
    try:
        return repr(piece.decode("utf-8"))
    except UnicodeDecodeError:
        return repr(piece)


def _print_json(**values: object) -> None:
    print(json.dumps(values))
