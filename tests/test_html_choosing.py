"""The steps of Unigram, PLaMo-2, WordPiece and RWKV on the page of a trace: what is drawn, and that the page says what
the terminal says, for all kinds.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import ggtok
import pytest
import test_html
from conftest import BUILTIN, shared_files
from ggtok.lab.explain import html
from ggtok.lab.explain.stages import idea, units
from ggtok.lab.explain.units import Step
from test_html import MOVES, Opened

browser = test_html.browser
opened = test_html.opened

NEW_TOKENS = {"unigram": ("try.3", {"transform", "opacity"}), "wordpiece": ("match.1", {"transform"})}


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
    page.page.click(".folds summary")
    page.page.wait_for_selector(".folds tbody tr")  # drawn after it has opened
    assert page.page.locator(".folds tbody tr").count() == 14


SAME_STEPS = ("*-bge", "[pru][lwg]*", "gemma-4", "h*", "w*")
"""Files without a second pattern, which is a separate step only in the terminal."""
KINDS = [*BUILTIN, *(path for name in SAME_STEPS for path in shared_files(f"vocabs/{name}.gguf"))]


@pytest.mark.parametrize("kind", KINDS)
def test_the_page_and_the_terminal_tell_the_same_story(browser: Any, kind: str | Path, tmp_path: Path) -> None:
    """The same steps in the same order, which decide the same tokens, in the same words."""
    trace = tokenizer_of(kind).explain("Hello World, こんにちは 👋🏽 naïve  unaffable½" + " 吾輩は猫である" * 3)
    script = f"""{html.scripts(*html.SCRIPTS)}
    const plain = (nodes) => nodes.map((node) => node.textContent ?? node).join("").trim();
    const trace = prepare({trace.to_json()});
    window.idea = say(`ideas.${{ideaOf(trace)}}`);
    window.units = unitsOf(trace).map(({{ stage, length, tokens, ...unit }}) => [
        ...[stage, length < 2 ? 0 : length, stage === "try" ? null : tokens],
        plain(unit.summary ? unit.summary.caption() : unit.caption(0)),
        length < 2 ? [] : Array.from({{ length }}, (_, step) => plain(unit.caption(step))),
    ]);"""
    path = tmp_path / "units.html"
    path.write_text(f"<meta charset=utf-8><body></body><script type=module>{script}</script>", encoding="utf-8")
    page = Opened(browser, path)
    found, shown = page.page.evaluate("[units, idea]")
    page.page.close()
    assert not page.errors

    def caption(step: Step) -> str:
        return "".join(text for text, _ in step.caption)

    expected = []
    for unit in units(trace):
        inner = [caption(unit.inside(step)) for step in range(unit.length)] if unit.inside else []
        tokens = None if unit.stage == "try" else [unit.tokens.start, unit.tokens.stop]
        expected.append([unit.stage, unit.length, tokens, caption(unit.whole()), inner])
    assert found == expected
    assert shown == idea(trace)


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
