"""Which differences from an older llama.cpp are known: what each change is about, and what is claimed of a library."""

from __future__ import annotations

from typing import Any

import ggtok
import pytest
from conftest import TOKENIZERS, VOCABULARIES
from ggtok.lab.releases import builds, data
from ggtok.lab.verify.known import Known, bounded, is_about, oldest
from ggtok.lab.verify.library import Library
from ggtok.lab.verify.report import Difference
from ggtok.lab.verify.serve import Query

LOWERCASE, PRE = "tokenizer.ggml.normalizer.lowercase", "tokenizer.ggml.pre"
CASED = ggtok.Tokenizer.from_gguf(VOCABULARIES / "wordpiece.gguf", overrides={LOWERCASE: False})
NEWEST = f"b{builds()[-1]}"


def library(release: str | None = None, ggml: str | None = None) -> Library:
    return Library("libllama.so", None, release, ggml)


def encode(text: str | bytes) -> Difference:
    query = ("encode", text.encode() if isinstance(text, str) else text, False, False)
    return Difference(query, ("ok", [1]), ("ok", [2]), "a test")


@pytest.mark.parametrize("row", data()["changes"], ids=lambda row: row["code"])
def test_every_change_is_about_some_call(row: Any) -> None:
    texts = [text for name in ("found", "marked") for text in row["concerns"].get(name, ())]
    text = ("x".join(texts) + " a ~ \u00c9").encode()
    assert is_about(row["code"], ("encode", text, True, True), TOKENIZERS["wordpiece"].vocab)


@pytest.mark.parametrize(
    ("code", "query", "about"),
    [
        ("collapsed-tilde", ("encode", b"a ~/", True, False), True),
        ("collapsed-tilde", ("encode", b"a \xc1\xbe", True, False), True),
        ("collapsed-tilde", ("encode", b"a \xc1\xbf", True, False), False),
        ("collapsed-tilde", ("decode", [3], True, False), False),
        ("wordpiece-marks", ("encode", "i\u0301".encode(), True, True), True),
        ("wordpiece-marks", ("encode", b"plain", True, True), False),
        ("wordpiece-lowercase", ("encode", b"[CLS]", True, True), True),
        ("wordpiece-lowercase", ("encode", b"[cls]", True, True), False),
        ("gemma4", ("encode", b"a", True, False), True),
        ("gemma4", ("open", "a.gguf", {}), False),
        ("opens", ("open", "a.gguf", {}), True),
        ("opens", ("encode", b"a", True, False), False),
        ("special-texts-b7964", ("encode", b"a[PAD]b", True, True), True),
        ("special-texts-b7964", ("encode", b"a[NONE]b", True, True), False),
        ("special-texts-b7964", ("decode", [5, 0, 6], True, True), True),
        ("special-texts-b7964", ("decode", [5, 6], True, True), False),
        ("special-texts-b7964", ("specials", ["bos", "fim_pad"]), True),
        ("special-texts-b7964", ("token", 5), False),
        ("special-texts-b7964", ("token", 0), True),
    ],
)
def test_what_a_change_is_about(code: str, query: Query, about: bool) -> None:
    assert is_about(code, query, TOKENIZERS["wordpiece"].vocab) is about


def test_a_difference_is_explained_by_what_is_in_the_call() -> None:
    """Both changes if both are, and neither for an abort, or a text without any."""
    known = Known(library("b9294"), CASED)
    found = [known.explain(encode(text)) for text in ("a\u0301", "A", "plain")]
    assert found == [("wordpiece-marks", "wordpiece-lowercase"), ("wordpiece-lowercase",), ()]
    assert known.explain(Difference(encode("A").query, ("died", "SIGABRT", ""), ("ok", [2]), "a test")) == ()


@pytest.mark.parametrize("release", ["b9713", NEWEST, f"b{int(NEWEST[1:]) + 1}"])
def test_a_release_that_has_the_change_is_not_excused(release: str) -> None:
    assert Known(library(release), CASED).explain(encode("a\u0301")) == ()


@pytest.mark.parametrize("found", [library("b9538"), library("b9600"), library(), bounded(library(ggml="0.13.1"))])
def test_what_is_said_about_a_change(found: Library) -> None:
    known = Known(found, TOKENIZERS["wordpiece"])
    assert known.explain(encode("a\u0301")) == ("wordpiece-marks",)
    said = "since b9713, and not in b9538, accents are stripped only if "
    assert str(known.changes["wordpiece-marks"]).startswith(said)


@pytest.mark.parametrize(
    ("found", "first"),
    [
        (library("b9538", "0.13.1"), 9538),
        (library(ggml="0.13.1"), 9295),
        (library(ggml="0.13.0"), 9295),
        (library(ggml="99.0.0"), int(NEWEST[1:]) + 1),
        (library(ggml="0.13.1-dev"), 9295),
        *((library(ggml=text), 0) for text in (None, "", "0.0.1", "x.y.z")),
    ],
)
def test_the_oldest_build_that_a_library_can_be(found: Library, first: int) -> None:
    assert oldest(bounded(found)) == first


def test_the_bounds_are_named() -> None:
    assert str(bounded(library(ggml="0.13.0"))) == (
        "llama.cpp of an unknown release after b9294 and before b9538, ggml 0.13.0"
    )


@pytest.mark.parametrize(("release", "codes"), [("b9294", ("opens",)), (None, ("opens",)), ("b9538", ())])
def test_a_file_that_older_releases_refuse(release: str | None, codes: tuple[str, ...]) -> None:
    tokenizer = ggtok.Tokenizer.from_gguf(VOCABULARIES / "bpe.gguf", overrides={PRE: "minicpm5"})
    known = Known(library(release), tokenizer)
    refused: Any = ("error", ["GgtokError"], "llama.cpp refuses")
    differences = [
        Difference(("open", "a", {}), theirs, ("ok", 5), "the file") for theirs in (refused, ("died", "SIGABRT", ""))
    ]
    assert [*map(known.explain, differences)] == [codes, ()]
