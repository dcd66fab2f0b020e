"""The tables in llama.cpp's tests of chat templates, read from its source.

`GGTOK_LLAMA_CPP` names a tree or an archive.

C++ string literals and nlohmann's `json` initializers are read as far as these tables use them.
"""

from __future__ import annotations

import os
import re
import tarfile
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

ABSENT = "GGTOK_LLAMA_CPP does not point at llama.cpp's source or llama-cpp-python's archive"
TESTS, TEMPLATES = "tests/", "models/templates/"


@cache
def sources() -> dict[str, str]:
    """The texts of all files that the tests read, by their path in llama.cpp's tree. Empty without the source."""
    place = os.environ.get("GGTOK_LLAMA_CPP")
    if not place:
        return {}
    wanted = re.compile(r"(?:^|/)(tests/test-(?:chat-template|jinja)\.cpp|models/templates/[^/]*\.jinja)$")
    path, found = Path(place), {}
    texts: Iterable[tuple[str, bytes]]
    if path.is_dir():
        files = [file for pattern in ("tests/test-*.cpp", "models/templates/*.jinja") for file in path.rglob(pattern)]
        texts = ((file.as_posix(), file.read_bytes()) for file in files)
    else:
        with tarfile.open(path) as archive:
            members = [member for member in archive if wanted.search(member.name)]
            opened = [(member.name, archive.extractfile(member)) for member in members]
            texts = [(name, file.read()) for name, file in opened if file is not None]
    for name, data in texts:
        match = wanted.search(name)
        if match:
            found[match[1]] = data.decode()
    return found


def rows(values: list[Any], ids: list[str]) -> list[Any]:
    """Parameters for one test each, or a single skipped one."""
    if not values:
        return [pytest.param(None, id="absent", marks=pytest.mark.skip(reason=ABSENT))]
    return [pytest.param(value, id=id) for value, id in zip(values, ids, strict=True)]


def templates() -> dict[str, str]:
    return {
        name[len(TEMPLATES) :].removesuffix(".jinja"): text
        for name, text in sorted(sources().items())
        if name.startswith(TEMPLATES)
    }


_TOKEN = re.compile(
    r'\s+|//[^\n]*|/\*.*?\*/|(?P<string>(?:u8)?"(?:[^"\\]|\\.)*")|(?P<number>-?\d+(?:\.\d+)?)'
    r"|(?P<word>[A-Za-z_][\w:]*)|(?P<mark>[{}(),])",
    re.DOTALL,
)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0"}


class Pairs(list[Any]):
    """What stood in braces."""


class _Reader:
    """Reads C++ values."""

    def __init__(self, text: str, at: int) -> None:
        self.text, self.at = text, at

    def token(self) -> tuple[str, str]:
        while True:
            match = _TOKEN.match(self.text, self.at)
            if match is None:
                raise ValueError(self.text[self.at : self.at + 40])
            self.at = match.end()
            if match.lastgroup:
                return match.lastgroup, match[0]

    def peek(self) -> tuple[str, str]:
        at, token = self.at, self.token()
        self.at = at
        return token

    def value(self) -> Any:
        kind, text = self.token()
        if kind == "string":
            parts = [text]
            while self.peek()[0] == "string":
                parts.append(self.token()[1])
            return "".join(map(_unquoted, parts))
        if kind == "number":
            return float(text) if "." in text else int(text)
        if text == "{":
            return Pairs(self.until("}"))
        if text in ("true", "false", "nullptr"):
            return {"true": True, "false": False}.get(text)
        if kind == "word" and self.token()[1] == "(":
            inner = self.until(")")
            if text == "json::array":
                return list(inner[0]) if inner else []
            if text in ("json::object", "json"):
                return {} if not inner else inner[0]
            if text in ("U8C", "std::string"):
                return inner[0]
        raise ValueError(f"{text} at {self.text[self.at - 40 : self.at + 40]!r}")

    def until(self, end: str) -> list[Any]:
        values = []
        while self.peek()[1] != end:
            values.append(self.value())
            if self.peek()[1] == ",":
                self.token()
        self.token()
        return values


def _unquoted(literal: str) -> str:
    body = literal[literal.index('"') + 1 : -1]
    return re.sub(r"\\(u[0-9a-fA-F]{4}|.)", _unescaped, body, flags=re.DOTALL)


def _unescaped(match: re.Match[str]) -> str:
    code = match[1]
    return chr(int(code[1:], 16)) if len(code) == 5 else _ESCAPES.get(code, code)


def as_json(value: Any) -> Any:
    """nlohmann's rule: braces around pairs that start with a string are an object, other braces an array."""
    if isinstance(value, Pairs):
        if all(isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str) for pair in value):
            return {pair[0]: as_json(pair[1]) for pair in value}
        return [as_json(item) for item in value]
    return [as_json(item) for item in value] if isinstance(value, list) else value


class JinjaCase(NamedTuple):
    name: str
    template: str
    variables: dict[str, Any]
    expected: str


@cache
def jinja_cases() -> tuple[JinjaCase, ...]:
    """The calls of `test_template` in `test-jinja.cpp`."""
    text = sources().get("tests/test-jinja.cpp", "")
    found = []
    for match in re.finditer(r"^ *test_template\(t,", text, re.MULTILINE):
        name, template, variables, expected = _Reader(text, match.end()).until(")")
        found.append(JinjaCase(name, template, as_json(variables), expected))
    return tuple(found)


class ChatCase(NamedTuple):
    name: str
    template: str
    expected: str
    bos: str
    eos: str
    supported: bool
    extra: list[list[str]]


@cache
def chat_cases() -> tuple[ChatCase, ...]:
    """The rows of `test_cases` in `test-chat-template.cpp`."""
    text = sources().get("tests/test-chat-template.cpp", "")
    found = []
    for row in text.split("/* .name= */")[1:]:
        values: dict[str, Any] = {}
        for match in re.finditer(r"/\* \.(\w+)=? ?\*/", "/* .name= */" + row):
            values[match[1]] = _Reader("/* .name= */" + row, match.end()).value()
        expected = values.get("expected_output_jinja") or values["expected_output"]
        tokens = values.get("bos_token", ""), values.get("eos_token", "")
        supported = values.get("supported_with_jinja", True)
        extra = values.get("extra_conversation", [])
        found.append(ChatCase(values["name"], values["template_str"], expected, *tokens, supported, extra))
    return tuple(found)
