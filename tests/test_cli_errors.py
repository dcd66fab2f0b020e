"""What goes wrong on the command line: each error is one line that says what and where, and no file is written."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from pathlib import Path

import click
import ggtok
import pytest
from conftest import VOCABULARIES
from ggtok.cli import group
from ggtok.cli.output import with_options
from test_cli import call

FILES = {
    "bpe.gguf": (VOCABULARIES / "bpe.gguf").read_bytes(),
    "fox.txt": b"The quick brown fox jumps over the lazy dog.\n" * 9,
    "rows.jsonl": b'{"t": "a"}\n{"t": 3}\n',
    "other.jsonl": b'{"t": "a"}\n\n{"u": "a", "v": 1}\n',
    "list.jsonl": b"[1]\n",
    "bad.jsonl": b'{"t": "a"}\n{"t": }\n',
    "latin.jsonl": b'{"t": "\xff"}\n',
    "deep.jsonl": b"[" * 100_000,
    "latin.txt": b"caf\xe9",
    "ids": b"1 2\nx 3",
    "long": b"1" * 10_000,
    "ids.json": b'{"ids": [1]}\n{"ids": [true]}',
    "chat.json": b'[{"role": "user"}, 3]',
}
OVERRIDE = ["encode", "-m", "m", "-p", "x", "--override-kv"]
ERRORS: list[tuple[str | list[str], str]] = [
    (["encode", "-m", "/absent/model.gguf", "-p", "x"], "/absent/model.gguf: No such file or directory"),
    (["encode", "-m", "ids", "-p", "x"], "not a GGUF file"),
    (["encode", "."], ".: Is a directory"),
    (["encode", "\x1b[31m"], r"\x1b[31m: no such file"),
    (["encode", "-p", "x", "--lines", "--jsonl", "t"], "--lines and --jsonl: give only one"),
    (["encode", "-m", "a", "--builtin", "bpe", "-p", "x"], "-m and --builtin: give only one"),
    (["encode", "--jsonl", "t", "rows.jsonl"], "rows.jsonl, line 2: the field 't' must be a string, not a number"),
    (["count", "--jsonl", "t", "other.jsonl"], "other.jsonl, line 3: no field 't', only 'u', 'v'"),
    (["count", "--jsonl", "t", "list.jsonl"], "list.jsonl, line 1: expected a JSON object, found a list"),
    (["count", "--jsonl", "t", "bad.jsonl"], "bad.jsonl, line 2: not JSON: Expecting value at column 7"),
    (["count", "--jsonl", "t", "latin.jsonl"], "latin.jsonl, line 1: not JSON: 'utf-8' codec can't decode byte 0xff"),
    (["count", "--jsonl", "t", "deep.jsonl"], "deep.jsonl, line 1: not JSON: "),
    (["decode", "-p", "1 x"], "'1 x': 'x' is not a token id: ids are numbers"),
    (["decode", "-p", "1_0"], "'1_0' is not a token id"),
    (["decode", "ids"], "ids: 'x' is not a token id"),
    (["decode", "--lines", "ids"], "ids, line 2: 'x' is not a token id"),
    (["decode", "long"], "long: '1111111111111111111111111111111111111111' is not a token id"),
    (["decode", "ids.json"], 'ids.json, line 2: expected an object with "ids", a list of numbers, found an object'),
    (["decode", "-p", "99999999"], "'99999999': token id 99999999 is outside the vocabulary of 13000 tokens"),
    (["decode", "-p", "-1"], "token id -1 is outside"),
    (["decode", "-p", "9" * 30], "token id 999999999999999999999999999999 is outside"),
    (["decode", "-p", '{"ids": ['], "not JSON: Expecting value at column 10"),
    (["split", "-p", "x"], "Missing option '-n' / '--max-tokens' (see ggtok split --help)"),
    (["split", "-n", "0", "-p", "x"], "'-n' / '--max-tokens': 0 is not in the range x>=1"),
    (["split", "-n", "1", "latin.txt"], "latin.txt: not UTF-8 at byte 3; convert it first"),
    (["split", "-n", "1", "-p", "漢 \U0001f3fb"], "'漢 🏻': the character at byte 4 has 3 tokens by itself"),
    (["split", "-n", "1", "--json", "-0", "-p", "x"], "--json and --null: give only one"),
    (["chat", "chat.json"], "chat.json: message 1 must be an object, not a number"),
    (["chat", "rows.jsonl"], "rows.jsonl: not JSON: Extra data at line 2, column 1"),
    (["chat", "-p", "x", "ids"], "a file and -p: give only one"),
    (["chat", "-p", "x", "--tools", "ids.json"], "ids.json: not JSON: Extra data at line 2"),
    (["chat", "-p", "x", "--tools", "absent"], "absent: no such file (a JSON list of tools is expected)"),
    (["chat", "-p", "x", "--template-file", "absent"], "absent: no such file (a Jinja template is expected)"),
    (["chat", "-p", "x", "--template-file", "latin.txt"], "latin.txt: not UTF-8 at byte 3"),
    (["chat", "-p", "x", "--set", "x"], "--set: 'x' is not NAME=VALUE"),
    (["chat", "-p", "x", "--set", "messages=1"], "--set: 'messages' is not a variable of a template"),
    (["chat", "-p", "x", "--template", "nope"], "bpe.gguf: "),
    (["encode", "--override-kv", "a=int:1", "-p", "x"], "--override-kv needs -m MODEL"),
    ([*OVERRIDE, "a=1"], "'a=1' is not KEY=TYPE:VALUE"),
    ([*OVERRIDE, "a=i8:1"], "has the type 'i8': expected int, float, bool or str"),
    ([*OVERRIDE, "a=bool:1"], "has the value '1': expected a bool"),
    ([*OVERRIDE, "a=int:x"], "has the value 'x': expected an int"),
    (["encode", "--nonsense"], "No such option '--nonsense'"),
    (["nonsense"], "no such command 'nonsense': the commands are encode, decode"),
    ("explain -p a --why 1-2", "'1-2' is not START:END, two numbers of characters"),
    ("explain --builtin bpe -p abc --why 5:99", "characters 5 to 99 are not a part of a text"),
    ("explain -p a -p b --step", "--step and --html are for one text"),
    ("explain --builtin bpe -p a --step", "the walk through the steps needs a terminal to read keys from"),
    ("explain -p a --builtin spm --compare x y", "--compare takes two models, without -m"),
    ("explain --builtin spm --trie x", "--trie takes words, without -m"),
    ("explain --trie", "--trie needs words as arguments"),
    ("explain --step --trie x", "--step, --why, --compare and --trie: give only one"),
    ("explain LoRA?", "LoRA?: no such file (a text itself is given with -p)"),
    ("explain -p a --compare absent.gguf b.gguf", "absent.gguf: No such file or directory"),
    (["explain", "--trie", "a", ""], "empty"),
    ("inspect a.gguf -m b.gguf", "the model is given twice: as an argument and with -m or --builtin"),
    ("check a.gguf --builtin bpe", "the model is given twice"),
    ("inspect absent.gguf", "absent.gguf: No such file or directory"),
    ("inspect fox.txt", "fox.txt: this is not a GGUF file"),
    ("inspect .", ".: Is a directory"),
    ("diff bpe.gguf", "Missing argument 'B'"),
    ("diff bpe.gguf absent.gguf", "absent.gguf: No such file or directory"),
    ("diff bpe.gguf bpe.gguf absent", "absent"),
    ("diff bpe.gguf bpe.gguf fox.txt -p a", "one text is compared: give FILE or -p"),
    ("search", "Missing argument 'QUERY'"),
    ("search -e (", "'(' is not a regular expression: missing )"),
    ("search -e --prefix a", "--prefix is for a text; begin a regular expression with ^"),
    ("train fox.txt --vocab-size 280", "Missing option '-o'"),
    ("train fox.txt -o x.gguf", "Missing option '--vocab-size'"),
    ("train -o x.gguf --vocab-size 280", "Missing argument 'FILE...'"),
    ("train absent -o x.gguf --vocab-size 280", "absent: No such file or directory"),
    ("train fox.txt -o absent/x.gguf --vocab-size 280", "absent is not a folder"),
    ("train fox.txt -o x.gguf --vocab-size 10", "10"),
    ("train fox.txt -o x.gguf --vocab-size 280 --set a", "--set: 'a' is not NAME=VALUE"),
    ("train fox.txt -o x.gguf --vocab-size 280 --set a=1", "--set: 'a' is not a setting of bpe"),
    ("train fox.txt -o x.gguf --vocab-size 280 --set min_frequency=x", "min_frequency is int: 'x' is not"),
    ("train fox.txt -o x.gguf --vocab-size 280 --special eos", "--special: 'eos' is not NAME=VALUE"),
    ("train fox.txt -o x.gguf --vocab-size 280 --pre lama-bpe", "llama-bpe"),
    ("evaluate a=x a=y", "two texts are called 'a': give names, NAME=FILE"),
    ("evaluate absent --builtin bpe", "absent: No such file"),
    ("evaluate fox.txt --reference x --builtin bpe", "reference must be one of"),
    (["bench", "-p", ""], "the text is empty: nothing to measure"),
]


def messages(path: Path) -> Iterator[str]:
    """The texts in a Python file, except docstrings."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    documented = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documented:
            yield node.value


def options(command: click.Command) -> Iterator[str]:
    """The options of a command and its subcommands."""
    for parameter in command.params:
        yield from (option for option in [*parameter.opts, *parameter.secondary_opts] if option.startswith("--"))
    if isinstance(command, click.Group):
        for name in command.list_commands(click.Context(command)):
            yield from options(command.get_command(click.Context(command), name) or click.Command(None))


PRINT_COMMANDS = (Path("lab/verify/result.py"),)


def test_the_library_names_no_options_of_the_command() -> None:
    """Its messages name arguments, which `to_stderr` translates."""
    package = Path(ggtok.__file__).parent
    known = set(options(group))
    assert {"--input-format", "--libllama", "--online", "--set-template", "--seconds"} <= known
    for path in package.rglob("*.py"):
        place = path.relative_to(package)
        if place.parts[0] != "cli" and place not in PRINT_COMMANDS:
            found = {word for text in messages(path) for word in re.findall(r"(?<![\w-])--[a-z][a-z-]+", text)}
            assert not found & known, path


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("name it with library=PATH", "name it with --libllama PATH"),
        ("; offline=False reads it, offline=True does not", "; --online reads it, --offline does not"),
        ("pass template='a b', template_text=, or", "pass --template 'a b', --template-file, or"),
        ("max_length without too_long='drop': give skip_bad", "--max-length without --too-long drop: give --skip-bad"),
        ("raw=True needs trust=True", "--raw needs --trust"),
        ('open it with overrides={"a.pre": "gpt-2"}', "open it with --override-kv a.pre=str:gpt-2"),
        (
            'overrides={"a.b": ...} or overrides={"a.c": False}',
            "--override-kv a.b=TYPE:VALUE or --override-kv a.c=bool:false",
        ),
        ("with normalize_corpus_only=True only", "with --set normalize_corpus_only=true only"),
        ("max_lengths and x.raw=1 are not arguments", "max_lengths and x.raw=1 are not arguments"),
    ],
)
def test_messages_name_options_for_arguments(message: str, expected: str) -> None:
    assert with_options(message) == expected
    assert set(re.findall(r"--[a-z-]+", expected)) <= set(options(group))


NOT_OF_COMMANDS = {"refuse_user_defined=True", "match='"}
"""Arguments in messages about calls that no command makes."""


def test_every_message_that_names_an_argument_is_translated() -> None:
    package = Path(ggtok.__file__).parent
    paths = [
        path for part in ("chat", "corpus", "lab", "stores", "tokenizer") for path in (package / part).rglob("*.py")
    ]
    texts = [with_options(text) for path in paths for text in messages(path)]
    left = {word for text in texts for word in re.findall(r"\b[a-z_]+=(?:True|False|')", text)}
    assert left == NOT_OF_COMMANDS


def test_what_is_read_as_text_is_said_with_the_option() -> None:
    """And the text itself is not changed."""
    text = "Hi<|im_end|> parse_special=True"
    title, note, *lines = call("explain", "--builtin", "bpe", "-p", text).out.decode().split("\n")
    assert text in title
    assert note == "--parse-special would read these as special tokens, not as text: <|im_end|>"
    assert "parse_special=True" in "".join(lines).replace("│", "")


@pytest.mark.parametrize(("arguments", "message"), ERRORS, ids=[ascii(each[0])[:60] for each in ERRORS])
def test_errors_are_one_line(
    arguments: str | list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, data in FILES.items():
        (tmp_path / name).write_bytes(data)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GGTOK_MODEL", raising=False)
    words = arguments.split() if isinstance(arguments, str) else arguments
    if words[0] in ("count", "split", "chat", "bench"):
        monkeypatch.setenv("GGTOK_MODEL", "bpe.gguf")
    done = call(*words)
    *notices, error = done.err.splitlines()
    assert done.code == 2
    assert error.startswith("ggtok: error: ")
    assert message in error
    assert error.isprintable()
    assert all("no model given" in notice for notice in notices)
    assert sorted(os.listdir()) == sorted(FILES)
