"""Strings with origins: every operation gives what `str` gives, and each character keeps its origin."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from ggtok._chat.formatting import printf
from ggtok._chat.notation import forced, tojson, traced_repr, traced_tojson
from ggtok._chat.text import UNKNOWN, Origin, Text, concat, plain, runs_of
from hypothesis import given
from hypothesis import strategies as st

# Each character below is written by one origin only, so an oracle can tell the origin of a character that is kept.
CHARS = {"abAB \n": Origin(True), "xyXY\t'": Origin(False, 0, 1), 'vwVW."': Origin(False, 1, 2)}
ORIGIN = {char: origin for chars, origin in CHARS.items() for char in chars}


def traced(text: str) -> Text:
    return concat([Text.of(char, ORIGIN[char]) for char in text])


texts = st.text(alphabet=sorted(ORIGIN), max_size=30).map(traced)
short = st.text(alphabet=sorted(ORIGIN), min_size=1, max_size=3)


def check(ours: Any, theirs: Any) -> None:
    """The same strings, and every run is that of its characters, or unknown."""
    if isinstance(theirs, str):
        assert isinstance(ours, str)
        assert plain(ours) == theirs
        assert sum(length for length, _ in runs_of(ours)) == len(theirs)
        if isinstance(ours, Text):
            for char, origin in zip(theirs, ours.origins(), strict=True):
                assert origin == UNKNOWN or origin == ORIGIN.get(char, origin)
    else:
        assert len(ours) == len(theirs)
        for one, other in zip(ours, theirs, strict=True):
            check(one, other)


OPERATIONS: list[Callable[[str, str, int, int], Any]] = [
    lambda t, s, i, j: t[i:j],
    lambda t, s, i, j: t[i:],
    lambda t, s, i, j: t[::-1],
    lambda t, s, i, j: t[i::2],
    lambda t, s, i, j: t[0] if t else "",
    lambda t, s, i, j: list(t),
    lambda t, s, i, j: t.strip(),
    lambda t, s, i, j: t.strip(s),
    lambda t, s, i, j: t.lstrip(s),
    lambda t, s, i, j: t.rstrip(s),
    lambda t, s, i, j: t.removeprefix(s),
    lambda t, s, i, j: t.removesuffix(s),
    lambda t, s, i, j: t.split(),
    lambda t, s, i, j: t.split(None, i),
    lambda t, s, i, j: t.split(s),
    lambda t, s, i, j: t.split(s, i),
    lambda t, s, i, j: t.rsplit(),
    lambda t, s, i, j: t.rsplit(None, i),
    lambda t, s, i, j: t.rsplit(s, i),
    lambda t, s, i, j: t.splitlines(),
    lambda t, s, i, j: t.splitlines(True),
    lambda t, s, i, j: t.partition(s),
    lambda t, s, i, j: t.rpartition(s),
    lambda t, s, i, j: t + t,
    lambda t, s, i, j: t * i,
    lambda t, s, i, j: t.join([t, t, s]),
    lambda t, s, i, j: t.replace(s, t),
    lambda t, s, i, j: t.replace(s, s + s, i),
    lambda t, s, i, j: t.replace("", t),
    lambda t, s, i, j: t.ljust(i + 10, "-"),
    lambda t, s, i, j: t.rjust(i + 10, "-"),
    lambda t, s, i, j: t.center(i + 10, "-"),
    lambda t, s, i, j: t.zfill(i + 10),
    lambda t, s, i, j: str(t),
]


@pytest.mark.parametrize("number", range(len(OPERATIONS)))
@given(texts, short, st.integers(-3, 6), st.integers(-3, 6))
def test_operations(number: int, text: Text, other: str, i: int, j: int) -> None:
    operation = OPERATIONS[number]
    check(operation(text, traced(other), i, j), operation(str(plain(text)), other, i, j))


@pytest.mark.parametrize("name", ["lower", "upper", "title", "capitalize", "swapcase", "casefold"])
@given(st.lists(st.text(max_size=5), max_size=5))
def test_cases(name: str, pieces: list[str]) -> None:
    """Any characters, also those whose other case is longer: the lengths of the runs stay those of the text."""
    text = concat([Text.of(piece, Origin(index % 2 == 0)) for index, piece in enumerate(pieces)])
    changed, expected = getattr(text, name)(), getattr("".join(pieces), name)()
    assert plain(changed) == expected
    assert sum(length for length, _ in runs_of(changed)) == len(expected)


@given(st.text(alphabet="abAB", max_size=9).map(traced), st.text(alphabet="xyXY", max_size=9).map(traced))
def test_cases_keep_origins(one: Text, two: Text) -> None:
    assert runs_of((one + two).upper()) == runs_of(one + two)
    assert runs_of((one + two).title()) == runs_of(one + two)


values = st.recursive(
    texts | st.text(max_size=5) | st.integers() | st.booleans() | st.none() | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts | st.integers(), inner, max_size=4),
    max_leaves=10,
)


def bare(value: Any) -> Any:
    """A value without origins."""
    if isinstance(value, str):
        return str(plain(value))
    if isinstance(value, dict):
        return {bare(key): bare(item) for key, item in value.items()}
    return [bare(item) for item in value] if isinstance(value, list) else value


@given(values, st.booleans(), st.sampled_from([None, 0, 2, "\t"]))
def test_json(value: Any, ensure_ascii: bool, indent: Any) -> None:
    written = traced_tojson(value, ensure_ascii, indent)
    assert plain(written) == json.dumps(bare(value), ensure_ascii=ensure_ascii, indent=indent)
    assert plain(written) == tojson(value, ensure_ascii, indent)


@given(st.lists(texts, min_size=1, max_size=4))
def test_json_and_repr_keep_origins(strings: list[Text]) -> None:
    for write in (traced_tojson, traced_repr):
        written = write(strings)
        assert isinstance(written, Text)
        for text in strings:
            for length, origin in text.runs:
                assert any(origin == other and length <= size for size, other in written.runs)


@given(values)
def test_repr(value: Any) -> None:
    assert plain(traced_repr([value])) == repr([bare(value)])


@given(texts)
def test_escapes(text: Text) -> None:
    import markupsafe

    assert plain(forced(text)) == str(markupsafe.escape(str(plain(text))))
    assert [origin for _, origin in runs_of(forced(text))] == [origin for _, origin in text.runs]


@given(texts, short)
def test_printf(text: Text, other: str) -> None:
    for template, args in (("a%sb%%", (text,)), ("%s%s", (text, traced(other))), ("%(a)s b", {"a": text})):
        result = printf(Text.of(template, Origin(True)), args)
        assert plain(result) == template % args
        assert isinstance(result, Text)
        assert not any(origin == UNKNOWN for origin in result.origins())


def test_a_text_without_known_origin_is_not_trusted() -> None:
    assert Text("abc").runs == ((3, UNKNOWN),)
    assert UNKNOWN.trusted is None
    assert (Text.of("a", Origin(True)) + "b").runs == ((1, Origin(True)), (1, UNKNOWN))  # type: ignore[attr-defined]
