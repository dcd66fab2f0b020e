"""The command line: the Python API for people and shell scripts.

On a terminal the output is laid out to be read. Into a pipe or file `encode` writes one line of ids per text, `count`
one number per text, and `decode` exactly the bytes of the text. `--json` writes one JSON object per text, in ASCII, so
that it is valid in every locale; a text that is not UTF-8 is `{"base64": "..."}`.
Exit codes: 0, 1 if the reader of the output has closed it, 2 for errors in arguments, files or texts (one line on
standard error), 130 after Ctrl-C.
"""

from __future__ import annotations

import argparse
import base64
import csv
import io
import json
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from . import GgtokError, Tokenizer, evaluate
from ._cli_train import add_options as add_train_options

BUILTIN = ("bpe", "spm", "wordpiece", "unigram")


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code."""
    arguments = _parser().parse_args(argv)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.showwarning = lambda message, *_: print(f"ggtok: warning: {message}", file=sys.stderr)
            arguments.run(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(
            os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno()
        )  # so that the interpreter does not fail to flush it at exit
        return 1
    except KeyboardInterrupt:
        return 130
    except OSError as error:
        return _fail(f"{error.filename}: {error.strerror}" if error.filename else str(error))
    except (GgtokError, UsageError) as error:
        return _fail(str(error))
    return 0


class UsageError(Exception):
    """An argument that makes no sense."""


def _fail(message: str) -> int:
    print(f"ggtok: error: {' '.join(message.splitlines())}", file=sys.stderr)
    return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="ggtok", description="Text to tokens and back, exactly as llama.cpp does, from a GGUF file's metadata."
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version and exit")
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

    of_texts("encode", _encode, "turn texts into token ids")
    of_texts("count", _count, "count the tokens of texts")
    add_explain_options(of_texts("explain", _explain, "show every step from texts to their tokens"))

    sub = command("decode", _decode, "turn token ids into text")
    sub.add_argument("id", nargs="*", help="token ids (default: from standard input)")
    sub.add_argument("--remove-special", action="store_true", help="remove the BOS and EOS that encoding adds")
    sub.add_argument("--unparse-special", action="store_true", help="write special tokens as their text")

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


class _Version(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import version

        print(f"ggtok {version('ggtok')}")
        parser.exit()


def _encode(arguments: argparse.Namespace) -> None:
    tokenizer = _tokenizer(arguments)
    for _, text in _texts(arguments):
        ids = tokenizer.encode(text, add_special=not arguments.no_special, parse_special=arguments.parse_special)
        if arguments.json:
            _print_json(ids=ids, pieces=[_lossless(tokenizer.piece(id)) for id in ids])
        elif sys.stdout.isatty():
            for id in ids:
                print(f"{id:>8}  {_shown(tokenizer.piece(id))}")
        else:
            print(*ids)


def _count(arguments: argparse.Namespace) -> None:
    tokenizer = _tokenizer(arguments)
    several = len(arguments.text) + len(arguments.file) > 1
    for name, text in _texts(arguments):
        count = tokenizer.count(text, add_special=not arguments.no_special, parse_special=arguments.parse_special)
        if arguments.json:
            _print_json(count=count)
        elif several and sys.stdout.isatty():
            print(f"{count:>8}  {name}")
        else:
            print(count)


def _decode(arguments: argparse.Namespace) -> None:
    tokenizer = _tokenizer(arguments)
    text = tokenizer.decode_bytes(
        _ids(arguments), remove_special=arguments.remove_special, unparse_special=arguments.unparse_special
    )
    if arguments.json:
        _print_json(text=_lossless(text))
        return
    if sys.stdout.isatty():
        text += b"\n"
    sys.stdout.flush()
    sys.stdout.buffer.write(text)


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
    from ._cli_explain import run

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


def _ids(arguments: argparse.Namespace) -> list[int]:
    """Ids separated by white space, commas or brackets, so that a printed list can be pasted."""
    texts = arguments.id or [sys.stdin.buffer.read().decode("utf-8", "backslashreplace")]
    words = " ".join(texts).translate(str.maketrans("[],", "   ")).split()
    try:
        return [int(word) for word in words]
    except ValueError as error:
        raise UsageError(f"token ids must be integers: {error}") from None


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
