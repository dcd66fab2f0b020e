"""Traces in Python, and their tables in a terminal, for every kind of vocabulary."""

from __future__ import annotations

import base64
import copy
import dataclasses
import importlib
import json
import pickle
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ggtok
import ggtok.trace
import pytest
from conftest import BUILTIN, VOCABULARIES, every_kind, shared_files
from ggtok import GgtokError, Tokenizer
from ggtok.lab.explain import compare, terminal
from ggtok.lab.explain.cells import cell_len
from ggtok.lab.explain.explain import Trace
from ggtok.lab.explain.pictures import picture
from ggtok.lab.explain.record import STEPS, Why, names_of, read
from ggtok.lab.explain.sections import sections
from ggtok.lab.explain.step import Walk
from ggtok.lab.explain.strip import strip
from ggtok.lab.explain.tables import Section
from ggtok.lab.explain.terminal_tables import shortened
from ggtok.lab.explain.units import Story, face
from hypothesis import given
from hypothesis import strategies as st
from oracles import strategies
from oracles.gguf_vocab import Vocab
from oracles.spelling import BYTE_TOKENS

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))
generate_trace: Any = importlib.import_module("generate_trace")

TEXT = (
    "What is LoRA?</s> <|im_end|>\tna\u00efve Cafe\u0301 \ufb01ne \u4f60\u597d "
    "\U0001f600\u200d\U0001f44b\u0007\u2581 [SEP]"
)


def as_json(value: object) -> object:
    """A value of a trace as JSON has it, found without type hints."""
    if isinstance(value, bytes):
        return {"base64": base64.b64encode(value).decode()}
    if isinstance(value, tuple):
        return [as_json(item) for item in value]
    if dataclasses.is_dataclass(value):
        fields = {each.name: getattr(value, each.name) for each in dataclasses.fields(value) if each.init}
        kind = {} if "kind" in fields or not hasattr(value, "kind") else {"kind": value.kind}
        found: dict[str, Any] = kind | {name.removesuffix("_"): as_json(field) for name, field in fields.items()}
        if isinstance(value, ggtok.trace.Stretch) and found["bpe"]:
            del found["bpe"]["kind"]  # which tells the steps of a fragment apart
        return found
    return value


def check(tokenizer: Tokenizer, text: str | bytes, **flags: Any) -> Trace:
    """What holds for every trace and its tables."""
    trace = tokenizer.explain(text, **flags)
    assert trace.ids == tokenizer.encode(text, **flags)
    if isinstance(text, str):
        assert trace.offsets == tokenizer.encode_with_offsets(text, **flags).tolist()[1]
    assert as_json(trace) == json.loads(trace.to_json())
    for section in sections(trace):
        assert all(len(row.cells) == len(section.columns) for row in section.rows)
    for width in (20, 47, 90):
        for tables in (None, "all"):
            fits(trace.to_text(tables, width=width, max_rows=5).split("\n"), width)
    check_walk(trace)
    return trace


def fits(lines: list[str], width: int) -> None:
    assert max(map(cell_len, lines)) <= width
    assert all(line.isprintable() for line in lines)


def check_walk(trace: Trace) -> None:
    """Each token is made by one unit, every step can be shown, and at the end all tokens are known."""
    walk = Walk(trace)
    made = [place for unit in walk.units[:-1] for place in unit.tokens]
    assert sorted(made) == [place for place, token in enumerate(trace.tokens) if token.fragment is not None]
    for number in {*range(min(len(walk), 8)), len(walk) - 1}:
        walk.at, walk.inside = number, None
        fits(walk.screen(60, 24, False), 60)
        for inside in range(min(walk.unit.length, 4)):
            walk.inside = inside
            fits(walk.screen(60, 24, False), 60)
    walk.key("G")
    assert walk.known() == {*range(len(trace.tokens))}
    assert "".join(part.text for part in strip(trace)) == "".join(part.text for part in strip(trace, walk.known()))


def rows(trace: Trace, key: str) -> list[dict[str, Any]]:
    """The rows of all sections of a kind, with the names of their columns."""
    return [
        {column.name: cell for column, cell in zip(section.columns, row.cells, strict=True)}
        for section in sections(trace)
        if section.key == key
        for row in section.rows
    ]


@every_kind
def test_every_kind(kind: str, data: st.DataObject) -> None:
    vocab, tokenizer = strategies.drawn(kind, data)
    flags = {name: data.draw(st.booleans()) for name in ("add_special", "parse_special", "continues")}
    check(tokenizer, data.draw(strategies.texts(vocab)), **flags)


@pytest.mark.parametrize("name", BUILTIN)
@pytest.mark.parametrize("text", [TEXT, "", " ", b"a\xff\xe4\xb8 b\xc3", "\ud800a", "\u0301x"])
def test_builtin(name: str, text: str | bytes) -> None:
    tokenizer = Tokenizer.builtin(name)
    check(tokenizer, text)
    check(tokenizer, text, add_special=False, parse_special=True, continues=True)


@pytest.mark.parametrize("path", shared_files("vocabs/*.gguf"))
def test_real_vocabularies(path: Path) -> None:
    check(Tokenizer.from_gguf(path), TEXT, parse_special=True)


@pytest.mark.parametrize("name", ["bpe", "spm"])
@given(text=st.text(st.characters(exclude_categories=["Cs"]), max_size=12))
def test_symbols_spell_the_text(name: str, text: str) -> None:
    """The symbols that merge are one after the other what the vocabulary writes for the text."""
    trace = Tokenizer.builtin(name).explain(text)
    spelled = ""
    for fragment in trace.fragments:
        if isinstance(fragment.steps, ggtok.trace.Spm):
            spelled += str(fragment.steps.escaped)
        elif isinstance(fragment.steps, ggtok.trace.Bpe):
            spelled += "".join(str(piece.spelled) for piece in fragment.steps.pieces if len(piece.merging.symbols) > 1)
    assert "".join(row["text"] for row in rows(trace, "symbols")) == spelled


@given(text=st.text("ab hi\u4f60", max_size=20))
def test_the_symbols_around_a_merge(text: str) -> None:
    """They are those of a plain list in which neighbours become one."""
    trace = Tokenizer.builtin("spm").explain(text)
    for fragment in trace.fragments:
        steps = fragment.steps
        assert isinstance(steps, ggtok.trace.Spm)
        symbols: list[tuple[int, str]] = [(symbol.index, str(symbol.text)) for symbol in steps.merging.symbols]
        shown = [
            row for row in rows(Tokenizer.builtin("spm").explain(text), "merges") if row["what happens"] == "merge"
        ]
        merged = [pop.bigram for pop in steps.merging.pops if pop.stale is None]
        for bigram, row in zip(merged, shown, strict=True):
            place = [index for index, _ in symbols].index(bigram.left)
            symbols[place : place + 2] = [(bigram.left, symbols[place][1] + symbols[place + 1][1])]
            texts = [each for _, each in symbols]
            before, after = texts[:place], texts[place + 1 :]
            expected = [*[""] * (len(before) > 3), *before[-3:], texts[place], *after[:3], *[""] * (len(after) > 3)]
            assert list(row["symbols now"]) == expected


# The class


def test_a_trace_is_a_value() -> None:
    tokenizer = Tokenizer.builtin("bpe")
    trace = tokenizer.explain(TEXT)
    other = tokenizer.explain(TEXT)
    assert trace == other
    assert hash(trace) == hash(other)
    assert trace != tokenizer.explain(TEXT, parse_special=True)
    assert pickle.loads(pickle.dumps(trace)) == trace
    assert pickle.loads(pickle.dumps(trace)).why(0, 4) == trace.why(0, 4)
    assert copy.deepcopy(trace) == trace
    with pytest.raises(dataclasses.FrozenInstanceError):
        trace.text = ""  # type: ignore[misc]
    assert repr(trace) == f"<ggtok.Trace of {TEXT[:40]!r}...: bpe, {len(trace.tokens)} tokens>"
    assert str(trace) == trace.to_text()
    assert ggtok.Trace is Trace
    assert ggtok.Why is Why


def test_bytes_that_are_not_utf8() -> None:
    trace = Tokenizer.builtin("bpe").explain(b"a\xff")
    assert trace.text == b"a\xff"
    assert [token.piece for token in trace.tokens] == ["a", b"\xef", b"\xbf", b"\xbd"]
    assert "b'\\xff'" in trace.to_text("all")
    assert trace.why(1, 2).text == b"\xff"
    assert pickle.loads(pickle.dumps(trace)) == trace


def test_why() -> None:
    trace = Tokenizer.builtin("bpe").explain("na\u00efve LoRA")
    why = trace.why(6, 10)
    assert (why.start, why.end, why.text) == (6, 10, "LoRA")
    assert [token.piece for token in why.tokens] == [" L", "o", "RA"]
    assert [token.piece for token in trace.why(6, 7).tokens] == [" L"]
    assert str(why).startswith("'LoRA' (characters 6 to 10) became ' L' 'o' 'RA'.\n- ")
    for start, end in ((0, 0), (3, 2), (-1, 2), (0, 11), (2**70, 2**70 + 1)):
        with pytest.raises(GgtokError, match="not a part of a text of 10 characters"):
            trace.why(start, end)
    with pytest.raises(TypeError):
        trace.why("0", 1)  # type: ignore[arg-type]


def test_reasons_show_patterns_as_they_are() -> None:
    (reason, *_) = Tokenizer.builtin("bpe").explain("ab  ab").why(0, 4).reasons
    assert "\\" in reason.message
    assert "\\\\" not in reason.message


def test_a_place_of_a_reason_is_in_characters() -> None:
    trace = Tokenizer.builtin("bpe").explain("\u00ef\u00ef is it")
    places = [
        reason.at for start in range(8) for end in range(start + 1, 9) for reason in trace.why(start, end).reasons
    ]
    assert {place for place in places if place is not None} <= set(range(9))


def test_parts_of_characters_are_shown_in_hexadecimal() -> None:
    assert face(b"a\x80\xff \xc3\xa9") == "a 80 FF \u2423\u00e9"


def test_the_legend_is_that_of_the_pairs() -> None:
    """SPM's words never say how byte-pair encoding chooses, and a word without pairs says nothing of them."""
    for kind, word in (("spm", "score"), ("bpe", "number")):
        story = Story(Tokenizer.builtin(kind).explain("a 🦙 Hello"))
        told = [each["drawing"] for each in story.told(story.units).values() if each["drawing"]["kind"] == "tree"]
        assert {bool(drawing["pairs"]) for drawing in told} == {True, False}
        for drawing in told:
            assert (word in drawing["legend"]) == bool(drawing["legend"]) == bool(drawing["pairs"])


@pytest.mark.parametrize("kind", ["bpe", "spm"])
@given(data=st.data())
def test_a_word_becomes_one_token_or_several(kind: str, data: st.DataObject) -> None:
    """What is said of a word fits the symbols that its merges end in."""
    vocab, tokenizer = strategies.drawn(kind, data)
    story = Story(tokenizer.explain(data.draw(strategies.texts(vocab))))
    for told in story.told(story.units).values():
        if told["drawing"]["kind"] == "tree" and len(told["drawing"]["letters"]["cells"]) > 1:
            [leaf, *others] = told["drawing"]["leaves"]
            is_one = not others and len(leaf["tokens"]) == 1
            assert ("one token, " in told["whole"]) == is_one, told["whole"]


@pytest.mark.parametrize(
    ("text", "rewrites", "is_said"),
    [("a a", True, True), (" a", True, False), ("a a", False, False), (" a", False, False)],
)
def test_a_space_in_front_is_told_if_it_was_put_there(text: str, rewrites: bool, is_said: bool) -> None:
    settings = dict.fromkeys(("add_space_prefix", "remove_extra_whitespaces"), rewrites)
    overrides = {f"tokenizer.ggml.{name}": value for name, value in settings.items()}
    story = Story(Tokenizer.from_gguf(VOCABULARIES / "unigram.gguf", overrides=overrides).explain(text))
    told = [each["whole"] for each in story.told(story.units).values() if each["title"] == "Rewriting"]
    assert ["is put in front" in whole for whole in told] == [is_said]


def test_two_candidates_are_told() -> None:
    """PLaMo-2's cheapest ways, from right to left; what costs more than the third best is only drawn."""
    texts, scores = [b"a", b"ab", b"b", b"abc", b"c", b"bc"], [-1.0, -1.5, -2.0, -4.0, -1.0, -3.0]
    types = [2, 3, 3, *[6] * 256, *[1] * len(texts)]
    tokens = [b"<unk>", b"<s>", b"</s>", *BYTE_TOKENS, *texts]
    vocab = Vocab("plamo2", tokens, types, [*[0.0] * 259, *scores], unk=0, bos=1, eos=2)
    trace = Tokenizer.from_gguf(vocab.gguf()).explain("abc")
    story = Story(trace)
    assert (story.units[0].stage, story.units[0].length) == ("search", 4)
    [told] = story.told(story.units[:1]).values()
    assert told["steps"][2].replace("\x01", "") == (
        "3 tokens begin at this dot. ab (1.5) brings the total to 2.5: the best. abc (4) would bring it to 4: beaten. "
        "a (1) would bring it to 4: beaten."
    )
    drawn = ["".join(text for text, _ in line) for line in picture(told["drawing"], 2, trace.tokens)]
    assert drawn == ["abc", "╰╯ ab 2.5", "╰─╯ abc 4 beaten", "╵ a 4 beaten"]
    assert told["drawing"]["totals"] == ["2.5", "3", "1", "0"]
    weights = {arc["text"]: arc["weight"] for arc in told["drawing"]["arcs"]}
    assert [weights["a"], weights["abc"]] == [1.0, 0.0]


def test_a_special_token_that_is_read_as_text_is_said_first() -> None:
    """The short form names it, and the option that reads it."""
    lines = Tokenizer.builtin("bpe").explain("Hi<|im_end|>").to_text(width=200).split("\n")
    assert lines[1] == "parse_special=True would read these as special tokens, not as text: <|im_end|>"
    assert "as special tokens" not in Tokenizer.builtin("bpe").explain("Hi<|im_end|>", parse_special=True).to_text()


def test_an_unread_special_token_around_a_read_one() -> None:
    """Of two special tokens that overlap, a step marks the one that it is about."""
    texts, types = [b"<unk>", *BYTE_TOKENS, b"ab", b"aabb"], [2, *[6] * 256, 4, 3]
    story = Story(check(Tokenizer.from_gguf(Vocab("llama", texts, types, unk=0).gguf()), "aabb"))
    told = [story.told([unit])[unit.id]["drawing"]["parts"] for unit in story.units if unit.stage == "special"]
    assert told == [[["aabb", ""]], [["a", ""], ["ab", "won"], ["b", ""]], [["", ""], ["aabb", "lost"], ["", ""]]]


def test_a_word_that_is_one_token_with_a_space() -> None:
    reasons = Tokenizer.builtin("bpe").explain("first").why(0, 5).reasons
    assert [reason.kind for reason in reasons] == ["not_in_vocabulary", "one_with_space"]
    assert reasons[-1].message == "“first” is one token with a space before it: “ first” is token 6665."


def test_arguments_of_text() -> None:
    trace = Tokenizer.builtin("bpe").explain("a b")
    with pytest.raises(GgtokError, match="width must be at least 20, not 19"):
        trace.to_text(width=19)
    with pytest.raises(GgtokError, match="max_rows must be at least 2, not 1"):
        trace.to_text(max_rows=1)
    assert "\x1b[" not in trace.to_text()
    assert "\x1b[1mResult\x1b[0m" in trace.to_text("all", colors=True)
    assert "\x1b[" in trace.to_text(colors=True)
    with pytest.raises(TypeError, match='"all" or an iterable of names'):
        trace.to_text("queue")


def test_a_long_text_is_shortened() -> None:
    trace = Tokenizer.builtin("bpe").explain("LoRA " * 2000)
    assert trace.to_text(width=80).count("\n") < 50
    printed = trace.to_text("all", width=80, max_rows=10)
    assert "more rows" in printed
    assert "more tables" in printed
    assert len(printed) < 50_000


# Conversion


def test_an_object_has_the_class_with_its_fields() -> None:
    kinds = [kind for kind in vars(ggtok.trace).values() if dataclasses.is_dataclass(kind)]
    assert [STEPS[names_of(kind)] for kind in kinds] == kinds
    point = '{"start": 1, "end": 2, "code_point": 97}'
    assert read(point, STEPS) == ggtok.trace.CodePoint(1, 2, 97)
    with pytest.raises(KeyError, match=r"\('start', 'code_point'\)"):
        read('{"start": 1, "code_point": 97}', STEPS)
    steps = '{"kind": "rwkv", "matches": []}'
    assert read(steps, STEPS) == ggtok.trace.Rwkv(())
    assert read('[{"base64": "/w=="}]', STEPS) == [b"\xff"]


def test_the_class_has_the_fields_of_the_crate() -> None:
    sources = "\n".join(path.read_text(encoding="utf-8") for path in generate_trace.SOURCES)
    found = {each.name: each for each in generate_trace.structures(sources)}
    fields = [(each.name, each.type) for each in dataclasses.fields(Trace) if each.init]
    assert fields == [(each.name, generate_trace.python_type(each.type)) for each in found["Trace"].fields]
    assert {"Spm", "Bpe", "Unigram", "Steps"} <= set(found)


# Terminals


@given(text=st.text(max_size=30), width=st.integers(0, 30))
def test_fitted(text: str, width: int) -> None:
    fitted = terminal.fitted(text, width)
    assert cell_len(fitted) <= max(width, 0)
    if cell_len(text) <= width:
        assert fitted == text


@given(text=st.text("ab \u4f60\u0301", max_size=40), width=st.integers(2, 12))
def test_wrapped(text: str, width: int) -> None:
    lines = terminal.wrapped(text, width)
    assert all(cell_len(line) <= width for line in lines)
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")


@given(items=st.lists(st.text(), max_size=20), most=st.integers(2, 20))
def test_shortened(items: list[str], most: int) -> None:
    found = shortened(items, most)
    kept = [item for item in found if not isinstance(item, int)]
    assert len(kept) == min(len(items), most)
    assert sum(item if isinstance(item, int) else 1 for item in found) == len(items)
    assert kept[0:1] == items[0:1]
    assert kept[-1:] == items[-1:]


# Comparison


def naive_difference(a: list[Section], b: list[Section]) -> bool:
    """Whether two traces differ in what they do, found without pairing."""

    def steps(found: list[Section]) -> Iterator[object]:
        for section in found:
            if section.key not in compare.OF_THE_FILE:
                yield section.key, section.title
                for row in section.rows:
                    yield [
                        cell for cell, column in zip(row.cells, section.columns, strict=True) if column.kind != "number"
                    ]

    return list(steps(a)) != list(steps(b))


@pytest.mark.parametrize("first", BUILTIN)
@pytest.mark.parametrize("second", BUILTIN)
@pytest.mark.parametrize("text", ["What is LoRA?", "a a a a", "", "a"])
def test_where_two_traces_first_differ(first: str, second: str, text: str) -> None:
    a, b = (Tokenizer.builtin(name).explain(text) for name in (first, second))
    found = compare.pairs(a, b)
    assert [first for first, _ in found if first] == sections(a)
    assert [second for _, second in found if second] == sections(b)
    difference = compare.first_difference(found)
    assert (difference is not None) == naive_difference(sections(a), sections(b))
    for width in (40, 160):
        printed = compare.render(a, b, ("one", "two"), width=width, max_rows=8, colors=False)
        assert max(map(cell_len, printed.split("\n"))) <= width
        assert ("here they differ" in printed) == (difference is not None)


def test_the_rows_around_a_difference() -> None:
    a, b = (Tokenizer.builtin("bpe").explain("a b " * 50 + end + " a b" * 50) for end in ("c", "d"))
    printed = compare.render(a, b, ("one", "two"), width=60, max_rows=8, colors=False)
    tables = printed.split("one: ")[1:]
    [first] = [table.split("two: ")[0] for table in tables if "here they differ" in table]
    before, after = first.split("here they differ")
    rows = [len(re.findall("^ *[0-9]+ ", part, re.MULTILINE)) for part in (before, after)]
    assert rows == [4, 4], first


def test_where_scores_differ() -> None:
    """Two vocabularies that differ in one score: the queue is the first to show it."""
    texts = [b"<unk>", b"<s>", b"</s>", b"\xe2\x96\x81", b"a", b"b", b"ab", b"ba"]
    types = [2, 3, 3, *[1] * 5]
    vocabs = [
        Vocab("llama", texts, types, [0.0, 0.0, 0.0, -9.0, -9.0, -9.0, *scores]) for scores in ((-1, -2), (-2, -1))
    ]
    a, b = (Tokenizer.from_gguf(vocab.gguf()).explain("aba") for vocab in vocabs)
    found = compare.pairs(a, b)
    difference = compare.first_difference(found)
    assert difference is not None
    assert (difference.section.key, difference.row) == ("queue", 0)
