"""The drawings of the page of a trace, and that the page says what the terminal says, for all kinds."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import ggtok
import pytest
import test_html
from conftest import BUILTIN, shared_files
from ggtok.lab.explain.units import Story
from test_html import MOVES

browser = test_html.browser
opened = test_html.opened

NEW_TOKENS = {"unigram": ("search.1.3", {"transform", "opacity"}), "wordpiece": ("match.1", {"transform"})}


@pytest.mark.parametrize("name", NEW_TOKENS)
@pytest.mark.parametrize("motion", ["no-preference", "reduce"])
def test_new_tokens_grow_and_rejected_ones_fade(opened: Any, name: str, motion: str) -> None:
    step, moves = NEW_TOKENS[name]
    page = opened(ggtok.Tokenizer.builtin(name).explain("Hello World"), reduced_motion=motion)
    page.page.evaluate(f"location.hash = 'step={step}'")
    page.page.wait_for_function(f"document.querySelector('.link').href.endsWith('#step={step}')")
    page.page.keyboard.press("ArrowLeft")
    page.page.keyboard.press("ArrowRight")
    assert set(page.page.evaluate(MOVES)) == (moves if motion == "no-preference" else set())


def tokenizer_of(kind: str | Path) -> ggtok.Tokenizer:
    return ggtok.Tokenizer.builtin(kind) if isinstance(kind, str) else ggtok.Tokenizer.from_gguf(kind)


OVERLAPS = """() => {
    const boxes = (query) => [...document.querySelectorAll(`.picture svg ${query}`)]
        .map((node) => [node.textContent, node.getBoundingClientRect()]).filter(([, { width }]) => width);
    const [notes, others] = [boxes(".note"), boxes(".block rect, .cell rect")];
    const meet = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1;
    const outer = document.querySelector(".picture svg")?.getBoundingClientRect();
    return notes.flatMap(([text, note], at) => [
        ...[...others, ...notes.slice(at + 1)].filter(([, other]) => meet(note, other)).map(([other]) => [text, other]),
        ...(note.right > outer.right + 1 || note.left < outer.left - 1 ? [[text, "cut"]] : []),
    ]);
}"""


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("kind", ["unigram", "wordpiece", *shared_files("vocabs/[pr][lw]*.gguf")])
def test_notes_lie_on_nothing(opened: Any, kind: str | Path, width: int) -> None:
    """Neither on tokens or characters, nor on each other, and none is cut off."""
    trace = tokenizer_of(kind).explain(
        "Hello World, こんにちは 👋🏽 naïve unaffable, unfathomable" + " 吾輩は猫である" * 3
    )
    page = opened(trace, viewport={"width": width, "height": 844})
    found = []
    for _ in range(200):
        found += page.page.evaluate(OVERLAPS)
        if not page.page.locator(".open").is_hidden() and page.page.locator(".open").text_content() != "Close steps":
            page.page.keyboard.press("Enter")
        page.page.keyboard.press("ArrowRight")
    assert found == []
    assert page.overflow() == 0


def test_failures_of_wordpiece_are_counted(opened: Any) -> None:
    page = opened(ggtok.Tokenizer.builtin("wordpiece").explain("unaffable"))
    page.page.keyboard.press("PageDown")
    assert "▁un · aff · able" in page.page.text_content(".caption")
    page.page.keyboard.press("Enter")
    assert "7 longer ones are not in the vocabulary: ▁unaffable, ▁unaffabl" in page.page.text_content(".caption")
    assert page.page.locator(".block.loses").count() == 3


KINDS = [
    *BUILTIN,
    *(path for name in ("*-bge", "[pru][lwg]*", "h*", "w*") for path in shared_files(f"vocabs/{name}.gguf")),
]
SHOWN = """() => {
    const captions = [];
    for (const stage of document.querySelectorAll(".bar button")) {
        stage.click();
        const [slider, open] = [".slider", ".open"].map((one) => document.querySelector(one));
        for (let step = 0; step <= Number(slider.max); step++) {
            slider.value = step;
            slider.dispatchEvent(new Event("input"));
            captions.push(document.querySelector(".caption").textContent);
        }
    }
    return captions;
}"""


@pytest.mark.parametrize("kind", KINDS)
def test_the_page_tells_the_story(opened: Any, kind: str | Path) -> None:
    """The same units in the same order, in the same words, as the terminal walks through."""
    trace = tokenizer_of(kind).explain("Hello World, こんにちは 👋🏽 naïve  unaffable½" + " 吾輩は猫である" * 3)
    story = Story(trace)
    told = story.told(story.units)
    page = opened(trace)
    assert page.page.evaluate(SHOWN) == [told[unit.id]["whole"].replace("\x01", "") for unit in story.units]
    assert page.page.text_content(".idea") == story.idea
    assert page.page.locator(".bar button").all_text_contents() == list(story.stages.values())


def test_the_pairs_that_could_merge_are_listed(opened: Any) -> None:
    """The first one merges, those that it ends are struck out, and in the end none is left."""
    page = opened(ggtok.Tokenizer.builtin("bpe").explain("unaffable"))
    pairs = page.page.locator(".pairs li")
    struck = 0
    for step in range(1, 7):
        page.page.evaluate(f"location.hash = 'step=merge.1.{step}'")
        page.page.wait_for_function(f"document.querySelector('.link').href.endsWith('#step=merge.1.{step}')")
        classes = [each.get_attribute("class") for each in pairs.all()]
        texts = pairs.all_text_contents()
        ranks = [int(text.split()[1].rstrip(":")) for text in texts]
        assert ranks == sorted(ranks)
        assert classes[0] == ("first" if step == 1 else "now")
        if step > 1:
            assert page.page.text_content(".caption").startswith(f"{texts[0].partition(': ')[2]} → ")
        struck += classes.count("dead")
    assert struck > 2
    page.page.keyboard.press("Enter")  # as one step, which is the finished tree
    ids = page.page.locator(".node[data-token] text.id")
    ids.first.wait_for()
    assert {int(text) for text in ids.all_text_contents()} == {*ggtok.Tokenizer.builtin("bpe").encode("unaffable")}


def test_a_word_of_unigram_is_one_lattice(opened: Any) -> None:
    """A step for each dot, each with its best total; the unknown character is hatched and said."""
    page = opened(ggtok.Tokenizer.builtin("unigram").explain("unaffable 👋"))
    page.page.evaluate("location.hash = 'step=search.1.11'")
    page.page.wait_for_function("document.querySelector('.link').href.endsWith('search.1.11')")
    assert page.page.locator(".dot").count() == 11
    assert page.page.locator(".dot .total").all_text_contents()[-1] == "\u221230.86"
    assert page.page.locator(".arc.way").count() == 4
    page.page.evaluate("location.hash = 'step=search.1.3'")
    page.page.wait_for_function("document.querySelector('.link').href.endsWith('search.1.3')")
    assert (page.page.locator(".arc.best").count(), page.page.locator(".arc.beaten").count()) == (1, 2)
    page.page.evaluate("location.hash = 'step=search.2'")
    page.page.locator(".hatch").wait_for()
    assert "👋 is not in the vocabulary: it becomes the unknown token" in page.page.text_content(".caption")


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("kind", BUILTIN)
def test_nothing_moves_up_within_a_stage(opened: Any, kind: str, width: int) -> None:
    trace = ggtok.Tokenizer.builtin(kind).explain("Hello 👋🏽 unfathomable World, a")
    page = opened(trace, viewport={"width": width, "height": 844}, reduced_motion="reduce")
    places = page.page.evaluate(
        """() => {
            const found = [];
            for (let step = 0; step < 60; step++) {
                const top = (query) => Math.round(document.querySelector(query).getBoundingClientRect().top + scrollY);
                found.push([document.querySelector(".now button").textContent, top(".picture"), top(".strip-head")]);
                document.querySelector(".next").click();
            }
            return found;
        }"""
    )
    for (before, *tops), (after, *next_tops) in itertools.pairwise(places):
        assert before != after or all(top <= below for top, below in zip(tops, next_tops, strict=True))


SCALES = """() => [...document.querySelectorAll(".merging svg")].map(
    (tree) => (tree.getAttribute("width") / tree.viewBox.baseVal.width).toFixed(1))"""


@pytest.mark.parametrize(("width", "rows"), [(390, 2), (1280, 1)])
def test_rows_of_a_tree_have_one_scale(opened: Any, width: int, rows: int) -> None:
    page = opened(ggtok.Tokenizer.builtin("bpe").explain("unfathomably"), viewport={"width": width, "height": 844})
    page.page.evaluate("location.hash = 'step=merge.1'")
    page.page.locator(".merging").wait_for()
    scales = page.page.evaluate(SCALES)
    assert len(scales) == rows
    assert len(set(scales)) == 1
