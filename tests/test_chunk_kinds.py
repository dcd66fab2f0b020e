"""`split` at headings, Python blocks and patterns, with prefixes and of bytes, beside parsers of both languages."""

from __future__ import annotations

import ast
import io
import re
import textwrap
import tokenize
from collections.abc import Iterable
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest
from conftest import BUILTIN, TOKENIZERS, shared_files
from ggtok import ArgumentTypeError, Chunk, GgtokError, Tokenizer
from hypothesis import assume, given
from hypothesis import strategies as st

BPE = TOKENIZERS["bpe"]

MARKDOWN = [
    *("# One\n", "## Two ##\n", "###\n", "#no\n", "####### seven\n", "    # code\n", "   # three\n", "\t# tab\n"),
    *("```\n", "````\n", "``` a`b\n", "~~~\n", "~~~~ x`\n", "   ```\n", "    ```\n", "```` \n", "``` py\n", "`code`\n"),
    *("===\n", "---\n", "-\n", "= =\n", "   ----  \n", "    ---\n", "* * *\n", "***\n", "\n", "  \n", "\r\n"),
    *("Some text.\n", "and more\n", "    indented\n", "x = 1\n", "é中\n", "word " * 9 + "\n"),
]


def starts_of(text: str) -> list[int]:
    """Where the lines start, and the end."""
    return [0, *accumulate(map(len, text.splitlines(keepends=True)))]


def check(tok: Tokenizer, text: Any, chunks: list[Chunk[Any]], max_tokens: int, prefix: Any = None) -> None:
    """The chunks tile the text, and fit with their prefix."""
    end = 0
    for chunk in chunks:
        assert (chunk.start, chunk.text) == (end, text[chunk.start : chunk.end])
        assert chunk.count == tok.count((text[:0] if prefix is None else prefix) + chunk.text) <= max_tokens
        end = chunk.end
    assert end == len(text)


def check_kind(
    tok: Tokenizer, text: str, chunks: list[Chunk], max_tokens: int, places: Iterable[int], wholes: Iterable[Any]
) -> None:
    """No chunk ends inside what fits, and none passes a place that fills more than half of it."""
    check(tok, text, chunks, max_tokens)
    ends, places = {chunk.end for chunk in chunks}, {*places}
    for start, end in wholes:
        if tok.count(text[start:end]) <= max_tokens:
            assert not ends & {*range(start + 1, end)}, text[start:end]
    half = (max_tokens + tok.count("")) / 2 + 4
    for chunk in chunks[:-1]:
        if chunk.end not in places:
            passed = [place for place in places if chunk.start < place < chunk.end]
            assert all(tok.count(text[chunk.start : place]) <= half for place in passed)


@pytest.mark.parametrize("name", BUILTIN)
@given(lines=st.lists(st.sampled_from(MARKDOWN), max_size=40), max_tokens=st.integers(12, 60))
def test_markdown_is_cut_before_headings_and_outside_fences(name: str, lines: list[str], max_tokens: int) -> None:
    parser = pytest.importorskip("markdown_it").MarkdownIt("commonmark")
    tok, text = TOKENIZERS[name], "".join(lines)
    starts = [0, *accumulate(map(len, lines))]
    tokens = [token for token in parser.parse(text) if token.level == 0 and token.map]
    headings = [starts[token.map[0]] for token in tokens if token.type == "heading_open"]
    fences = [[starts[line] for line in token.map] for token in tokens if token.type == "fence"]
    for others in ([], ["paragraph", "line", "sentence", "word"]):
        chunks = tok.split(text, max_tokens, boundaries=["markdown", *others])  # type: ignore[list-item]
        check_kind(tok, text, chunks, max_tokens, headings, fences)


def test_markdown() -> None:
    fence = "~~~~ js\n# not a heading\n\n~~~\nconst a = 1;\n~~~~\n"
    text = f"Intro\nin two lines\n===\n\nText.\n\n{fence}\n## Two\nMore text\n"
    chunks = BPE.split(text, BPE.count(fence) + 2, boundaries=["markdown", "paragraph"])
    first = "Intro\nin two lines\n===\n\nText.\n\n"
    assert [chunk.text for chunk in chunks] == [first, f"{fence}\n", "## Two\nMore text\n"]
    # An unclosed fence goes on to the end, and one that does not fit is cut.
    assert len(BPE.split("Text.\n\n```\n" + "a b c\n" * 4, 20, boundaries=["markdown", "line"])) == 2
    assert len(BPE.split("Text.\n\n```\n" + "a b c\n" * 30, 20, boundaries=["markdown", "line"])) > 5


SOURCE = textwrap.dedent(
    r'''
    """A module.

    With (an open bracket, and 'quotes'.
    """
    import os
    import sys


    # About f.

    @decorated(
        "a",
    )
    @again
    def f(a, b="it's", c='"'):
        """Says (something.

        Twice.
        """
        return {
            "a": [1, 2,
                  3],
            "b": f"{a!r:>{b}}" + "{ \" \
    }",
        }  # ) ] "
        # The end of f.

    TABLE = [
        (1, "one", """
    def no_block(): ...
    """),
        (2, "two"),
    ]
    if os.name == "nt":
        a = 1
    # Comment.
    else:
        a = 2 + \
            3


    class C:
        @property
        def x(self): return """a
    b""" + r"\\"

        async def y(self):
            await z

    async def g(): pass
    print(f(1,
            2))
    '''
).strip()


def blocks_of(text: str) -> list[int]:
    """Where top-level blocks start, by Python's parser: with the comments before them."""
    lines, starts = text.splitlines(keepends=True), starts_of(text)
    found, is_indented, last = [], False, 0
    for node in ast.parse(text).body:
        line = min(each.lineno for each in [node, *getattr(node, "decorator_list", [])]) - 1
        if is_indented or isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            above = [number for number in range(last, line) if lines[number].strip()]
            comments = [number for number in above if lines[number].startswith("#")]
            inner = [number for number in above if number not in comments]
            found.append(starts[next((number for number in comments if number > max(inner, default=-1)), line)])
        statements = [each.lineno for each in ast.walk(node) if isinstance(each, ast.stmt)]
        is_indented, last = lines[max(statements) - 1][0] in " \t", node.end_lineno or 0
    return found


def statements_of(text: str) -> list[tuple[int, int]]:
    """The ranges of lines of all statements that go over several, by Python's tokenizer."""
    starts, first, found = starts_of(text), None, []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in (tokenize.COMMENT, tokenize.NL, tokenize.INDENT, tokenize.DEDENT):
            continue
        first = token.start[0] if first is None else first
        if token.type == tokenize.NEWLINE:
            found.append((starts[first - 1], starts[token.end[0]] if token.end[0] < len(starts) else len(text)))
            first = None
    return found


@pytest.mark.parametrize("name", BUILTIN)
@pytest.mark.parametrize("text", [SOURCE, Path(textwrap.__file__).read_text(), Path(tokenize.__file__).read_text()])
def test_python_is_cut_before_blocks_and_outside_strings_and_brackets(name: str, text: str) -> None:
    tok = TOKENIZERS[name]
    for max_tokens in (40, 60, 100, 300, 1000):
        chunks = tok.split(text, max_tokens, boundaries=["python"])
        check_kind(tok, text, chunks, max_tokens, blocks_of(text), statements_of(text))
        long = {chunk.end for chunk in chunks} - {*starts_of(text)}
        assert not long or any(tok.count(line) > max_tokens for line in text.splitlines(keepends=True))


def test_python() -> None:
    blocks = [
        "import os\nimport sys\n\nX, Y = 'some words', ['and', 'more']\n\n",
        "# About f.\n\n@a(1)\ndef f():\n    pass\n    # it\n\n",
        "TABLE = [\n    1, 2,\n]\nprint(TABLE, 3, 4)\n",
        "class C:\n    x: int = 1\n    y: int = 2\n\n",
        "async def g():\n    await h.done(1, 2, 3)\n",
    ]
    chunks = BPE.split("".join(blocks), max(map(BPE.count, blocks)), boundaries=["python"])
    assert [chunk.text for chunk in chunks] == blocks
    # A decorator stays with its function, nested brackets that fit stay whole in those that do not.
    text = "x = 1\n" * 9 + "@a\n\n@b\ndef f():\n    pass\n"
    for max_tokens in range(BPE.count("@a\n\n@b\ndef f():\n"), 60):
        for chunk in BPE.split(text, max_tokens, boundaries=["python"]):
            assert ("@a" in chunk.text) == ("@b" in chunk.text) == ("def f():\n" in chunk.text)
    rows = "".join(f"    {{\n        'name': 'row {at}',\n        'value': {at},\n    }},\n" for at in range(20))
    for chunk in BPE.split(f"ROWS = [\n{rows}]\n", 90, boundaries=["python"]):
        assert chunk.text.count("{") == chunk.text.count("}")


@given(text=st.text("ab \n\\\"'#()[]{}@:\r\t", max_size=80), max_tokens=st.integers(4, 30))
def test_what_is_not_python_is_cut_too(text: str, max_tokens: int) -> None:
    check(BPE, text, BPE.split(text, max_tokens, boundaries=["python", "markdown"]), max_tokens)


@pytest.mark.parametrize("name", BUILTIN)
@given(
    text=st.text("ab.é中\U0001f600\n ", max_size=80),
    pattern=st.sampled_from(["b", r"(?=b)", r"\.\s*", "", "中|é", "(?m)^", r"\Z", "a+"]),
    max_tokens=st.integers(8, 30),
)
def test_patterns(name: str, text: str, pattern: str, max_tokens: int) -> None:
    tok, places = TOKENIZERS[name], [match.end() for match in re.finditer(pattern, text)]
    chunks = tok.split(text, max_tokens, boundaries=["word", re.compile(pattern), "character"])
    check_kind(tok, text, chunks, max_tokens, places, [])
    encoded = tok.split(text.encode(), max_tokens, boundaries=["word", re.compile(pattern.encode()), "character"])
    check(tok, text.encode(), encoded, max_tokens)
    if not re.search("[中é]", pattern) and pattern:
        assert [chunk.text.decode() for chunk in encoded] == [chunk.text for chunk in chunks]


def test_patterns_come_first_in_their_order() -> None:
    text = "Q: one two three?\nA: four five six.\n\nQ: seven eight?\nA: nine ten.\n"
    chunks = BPE.split(text, 20, boundaries=["paragraph", re.compile("(?m)^(?=Q:)"), re.compile("(?m)^(?=A:)")])
    assert [chunk.text[:2] for chunk in chunks] == ["Q:", "Q:"]
    chunks = BPE.split(text, 20, boundaries=[re.compile("(?m)^(?=A:)"), "paragraph", re.compile("(?m)^(?=Q:)")])
    assert [chunk.text[:2] for chunk in chunks][1:] == ["A:"]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"boundaries": [re.compile(b"a")]}, ArgumentTypeError, "boundaries: cannot use a bytes pattern"),
        ({"text": b"a b", "boundaries": [re.compile("a")]}, ArgumentTypeError, "cannot use a string pattern"),
        ({"prefix": b"a"}, ArgumentTypeError, "prefix must be str as the text is, not bytes"),
        ({"text": b"a b", "prefix": "a"}, ArgumentTypeError, "prefix must be bytes as the text is, not str"),
        ({"boundaries": ["page"]}, GgtokError, "'markdown', 'python', 'paragraph', .* or 'character', not 'page'"),
        ({"boundaries": [7]}, ArgumentTypeError, "boundaries must be compiled patterns or of 'markdown'"),
        ({"prefix": "a long prefix that has many tokens"}, GgtokError, "tokens are added to every text"),
    ],
)
def test_bad_arguments(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    call: dict[str, Any] = {"text": "a b", "max_tokens": 4}
    with pytest.raises(error, match=message):
        BPE.split(**call | arguments)


@pytest.mark.parametrize("name", BUILTIN)
@given(
    text=st.text(st.one_of(st.characters(), st.sampled_from("ab .\n```#")), max_size=60),
    prefix=st.sampled_from(["passage: ", "search_document:", "\U0001f600", "a", " ", ""]),
    max_tokens=st.integers(16, 40),
    strip=st.booleans(),
)
def test_a_prefix_is_counted_in_every_chunk(name: str, text: str, prefix: str, max_tokens: int, strip: bool) -> None:
    tok = TOKENIZERS[name]
    assume(max_tokens > 9 + tok.count(prefix))
    chunks = tok.split(text, max_tokens, prefix=prefix, strip=strip, boundaries=["markdown", "python", "word"])
    if strip:
        assert all(chunk.count == len(tok.encode(prefix + chunk.text)) <= max_tokens for chunk in chunks)
    else:
        check(tok, text, chunks, max_tokens, prefix)
    assert tok.split_batch([text], max_tokens, prefix=prefix, strip=strip) == [
        tok.split(text, max_tokens, prefix=prefix, strip=strip)
    ]


PIECES = [
    *(b"ab ", b".\n\n", "é中".encode(), b"\xff"),
    *(b"\xc3", b"\xed\xa0\x80", b"\xf0\x9f\x98", b"\x80\x80", b"\xf4\x90\x80\x80"),
]


@pytest.mark.parametrize("name", BUILTIN)
@given(
    parts=st.lists(st.sampled_from(PIECES), max_size=40),
    max_tokens=st.integers(8, 40),
    overlap=st.integers(0, 3),
    side=st.sampled_from(["right", "left", "middle"]),
)
def test_bytes_are_cut_into_bytes(name: str, parts: list[bytes], max_tokens: int, overlap: int, side: Any) -> None:
    tok, text = TOKENIZERS[name], b"".join(parts)
    check(tok, text, tok.split(text, max_tokens), max_tokens)
    for chunk in tok.split(text, max_tokens, overlap=overlap, boundaries=["markdown", "line"]):
        assert chunk.text == text[chunk.start : chunk.end]
        assert chunk.count == tok.count(chunk.text) <= max_tokens
    buffer: Any = bytearray(text)
    assert tok.split(buffer, max_tokens) == tok.split(text, max_tokens)
    kept = tok.truncate(text, max_tokens, side=side)
    assert tok.count(kept) <= max_tokens
    assert kept == text or len(kept) < len(text)
    try:
        decoded = text.decode()
    except UnicodeDecodeError:
        return
    assert tok.truncate(decoded, max_tokens, side=side).encode() == kept
    assert [chunk.text.encode() for chunk in tok.split(decoded, max_tokens)] == [
        chunk.text for chunk in tok.split(text, max_tokens)
    ]


@pytest.mark.parametrize("path", shared_files("vocabs/*.gguf"))
def test_every_kind(path: Path) -> None:
    tok = Tokenizer.from_gguf(path)
    room = 60 + tok.count("")
    chunks = tok.split(SOURCE, room, boundaries=["python"])
    check_kind(tok, SOURCE, chunks, room, [], statements_of(SOURCE))
    for text in (SOURCE, SOURCE.encode()):
        prefix = text[:3]
        check(tok, text, tok.split(text, room, prefix=prefix), room, prefix)


@pytest.mark.parametrize(
    "text",
    [
        "`" * 1_000_000,
        "```" * 300_000 + "\n",
        "``` `\n" * 150_000,
        "```\n" * 250_000,
        "`` \n```\n~~~\n" * 100_000,
        "(\n" * 300_000,
        "(" * 300_000 + "\n" + ")" * 300_000,
        "((\n))\n" * 100_000,
        "'''\n" * 250_001,
        "'\\\n" * 250_000,
        "# a\n@b\n" * 150_000,
        "a\n=\n" * 200_000,
        "1" * 1_000_000,
    ],
)
def test_structure_takes_linear_time(text: str) -> None:
    """Quadratic time would be hours."""
    chunks = BPE.split(text, 500, boundaries=["markdown", "python"])
    assert "".join(chunk.text for chunk in chunks) == text
