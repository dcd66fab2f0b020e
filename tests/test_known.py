"""Which differences from an older llama.cpp are known: what each change is about, and what is claimed of a library."""

from __future__ import annotations

from typing import Any

import ggtok
import pytest
from conftest import TOKENIZERS, VOCABULARIES
from ggtok._releases import data
from ggtok._verify.known import WITHOUT, Known, about, bounded, builds
from ggtok._verify.library import Library
from ggtok._verify.report import Difference
from ggtok._verify.serve import Query

LOWERCASE, PRE = "tokenizer.ggml.normalizer.lowercase", "tokenizer.ggml.pre"
CASED = ggtok.Tokenizer.from_gguf(VOCABULARIES / "wordpiece.gguf", overrides={LOWERCASE: False}).vocab
NEWEST = f"b{data()['releases'][-1]['build']}"


def library(release: str | None = None, ggml: str | None = None) -> Library:
    return Library("libllama.so", None, release, ggml)


def encode(text: str | bytes) -> Difference:
    query = ("encode", text.encode() if isinstance(text, str) else text, False, False)
    return Difference(query, ("ok", [1]), ("ok", [2]), "a test")


def test_every_change_says_what_it_is_about() -> None:
    assert all(map(about, data()["changes"]))
    assert WITHOUT.keys() <= {row["code"] for row in data()["changes"]}


@pytest.mark.parametrize(
    ("code", "query", "left"),
    [
        ("collapsed-tilde", ("encode", b"a ~/\xc1\xbe\xff", True, False), ("encode", b"a /\xff", True, False)),
        ("collapsed-tilde", ("decode", [3], True, False), ("decode", [3], True, False)),
        ("wordpiece-marks", ("encode", "\u00dcni\u0301 \u0623\u064f\uac00".encode(), True, True), None),
        ("wordpiece-marks", ("encode", b"\xdb\xdb\xaa\xa0", True, True), ("encode", b"", True, True)),
        ("wordpiece-marks", ("encode", "\u0ece".encode(), True, True), ("encode", b"", True, True)),
        ("wordpiece-lowercase", ("encode", b"[CLS] \xf0\x80\x81\x94", True, True), ("encode", b"[cls] t", True, True)),
        ("gemma4", ("encode", b"a\xff\xe2\x93\x90", True, False), ("encode", b"a", False, False)),
        ("plamo2-added", ("encode", b"a", True, True), ("encode", b"a", False, True)),
        ("plamo2-added", ("decode", [1], True, True), ("decode", [1], True, True)),
        ("gemma4", ("specials", ["bos", "add_bos"]), ("specials", ["bos"])),
    ],
)
def test_a_call_without_what_a_change_is_about(code: str, query: Query, left: Query | None) -> None:
    expected = left or ("encode", "Uni \u0627\u1100\u1161".encode(), True, True)
    assert WITHOUT[code](query, TOKENIZERS["wordpiece"].vocab) == expected


@pytest.mark.parametrize(
    ("query", "left"),
    [
        (("encode", b"a[PAD]b[NONE]", True, True), ("encode", b"ab[NONE]", True, True)),
        (("encode", b"a[P[PAD]AD]b", True, True), ("encode", b"ab", True, True)),
        (("decode", [5, 0, 6], True, True), ("decode", [5, 6], True, True)),
        (("specials", ["bos", "fim_pad", "add_bos"]), ("specials", ["bos", "add_bos"])),
        (("token", 5), ("token", 5)),
        (("token", 0), None),
    ],
)
def test_a_change_of_tokens_names_them(query: Query, left: Query | None) -> None:
    without = about({"code": "special-texts", "concerns": {"found": ["[NONE]", "[PAD]"]}})
    assert without is not None
    assert without(query, TOKENIZERS["wordpiece"].vocab) == left


def test_byte_tokens_are_taken_out() -> None:
    vocab = TOKENIZERS["spm"].vocab
    byte = vocab.index("<0x41>")
    assert WITHOUT["gemma4"](("decode", [byte, 300], True, False), vocab) == ("decode", [300], False, False)
    assert WITHOUT["gemma4"](("token", byte), vocab) is None


def test_a_difference_is_explained_if_it_is_gone_without_the_change() -> None:
    """The smallest set of changes; not one whose sign is merely there, nor an abort, nor a text without any."""
    known = Known(library("b9294"), CASED)
    differences = [encode(text) for text in ("a\u0301", "A", "\u00dc", "\u00e9 bug", "plain")]
    died = Difference(differences[0].query, ("died", "SIGABRT", ""), ("ok", [2]), "a test")

    def still_differ(queries: list[Query]) -> list[bool]:
        texts = [query[1].decode() for query in queries]
        return ["bug" in text or not text.isascii() or text != text.lower() for text in texts]

    both = ("wordpiece-marks", "wordpiece-lowercase")
    expected = [both[:1], both[1:], both, (), (), ()]
    assert known.explain([*differences, died], still_differ) == expected
    assert [row.change.code for row in known.listed({"wordpiece-lowercase": 3, "wordpiece-marks": 0})] == [both[1]]


@pytest.mark.parametrize("release", ["b9713", NEWEST, f"b{int(NEWEST[1:]) + 1}"])
def test_a_release_that_has_the_change_is_not_excused(release: str) -> None:
    assert Known(library(release), CASED).explain([encode("a\u0301")], lambda queries: []) == [()]


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (library("b9538"), "12 by wordpiece-marks, between b9538 and b9713: "),
        (library("b9600"), "12 by wordpiece-marks, which some release before b9713 lacks: "),
        (library(), "12 by wordpiece-marks, which some release before b9713 lacks: "),
        (bounded(library(ggml="0.13.1")), "12 by wordpiece-marks, which some release before b9713 lacks: "),
        (bounded(library(ggml="0.11.0")), "12 by wordpiece-marks, between b9538 and b9713: "),
    ],
)
def test_no_more_is_claimed_than_is_known(found: Library, said: str) -> None:
    known = Known(found, TOKENIZERS["wordpiece"].vocab)
    assert known.explain([encode("a\u0301")], lambda queries: [False for _ in queries]) == [("wordpiece-marks",)]
    (row,) = known.listed({"wordpiece-marks": 12})
    assert str(row).startswith(said)
    assert row.to_dict()["certain"] == ("between" in said)


@pytest.mark.parametrize(
    ("found", "first", "last"),
    [
        (library("b9538", "0.13.1"), 9538, 9538),
        (library(ggml="0.13.1"), 9295, 9712),
        (library(ggml="0.13.0"), 9295, 9537),
        (library(ggml="99.0.0"), int(NEWEST[1:]) + 1, 1 << 31),
        (library(ggml="0.0.1"), 0, data()["releases"][0]["build"] - 1),
        *((library(ggml=text), 0, 1 << 31) for text in (None, "", "0.13", "0.13.1-dev", "x.y.z", "9" * 9)),
    ],
)
def test_the_builds_that_a_library_can_be(found: Library, first: int, last: int) -> None:
    assert builds(bounded(found)) == (first, last)


def test_the_bounds_are_named() -> None:
    assert str(bounded(library(ggml="0.13.0"))) == (
        "llama.cpp of an unknown release after b9294 and before b9538, ggml 0.13.0"
    )


@pytest.mark.parametrize(("release", "codes"), [("b9294", ("opens",)), (None, ("opens",)), ("b9538", ())])
def test_a_file_that_older_releases_refuse(release: str | None, codes: tuple[str, ...]) -> None:
    tokenizer = ggtok.Tokenizer.from_gguf(VOCABULARIES / "bpe.gguf", overrides={PRE: "minicpm5"})
    known = Known(library(release), tokenizer.vocab)
    refused: Any = ("error", ["GgtokError"], "llama.cpp refuses")
    differences = [
        Difference(("open", "a", {}), theirs, ("ok", 5), "the file") for theirs in (refused, ("died", "SIGABRT", ""))
    ]
    assert known.explain(differences, lambda queries: [False for _ in queries]) == [codes, ()]
