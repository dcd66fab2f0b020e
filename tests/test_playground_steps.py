"""The panel of steps in the playground: where it stands, when it opens, how it follows the text, and its links."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import playground_browser
import pytest
from conftest import TOKENIZERS
from playground_browser import launched

pytestmark = playground_browser.needs_package
folder = playground_browser.folder
site = playground_browser.site
opened = playground_browser.opened


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    yield from launched()


def test_a_click_explains(opened: Any) -> None:
    page = opened("#v=bpe&t=What+is+LoRA%3F")
    page.page.locator("#sides .piece").nth(2).click()
    page.page.locator("#explain").wait_for(state="visible")
    page.page.locator("#explain .node").first.wait_for()
    assert page.page.locator("#sides .piece").nth(2).get_attribute("aria-selected") == "true"
    page.page.get_by_text("Why is it not one token with the").first.wait_for()
    page.page.get_by_role("button", name="Close").click()
    page.page.locator("#explain").wait_for(state="hidden")
    page.page.mouse.move(10, 10)
    page.type("What is LoRA, then?")
    page.expect_tokens(TOKENIZERS["bpe"].count("What is LoRA, then?"))
    assert page.page.locator("#explain").is_hidden()


def test_an_empty_panel_that_is_closed_stays_closed(opened: Any) -> None:
    page = opened()
    page.page.locator("#sides .piece").first.wait_for()
    page.page.locator("#close").evaluate("(button) => button.click()")
    page.page.keyboard.press("Tab")
    page.type("Hello")
    page.expect_tokens(TOKENIZERS["bpe"].count("Hello"))
    page.page.wait_for_timeout(500)
    assert page.page.locator("#explain").is_hidden()
    page.page.locator("#sides .piece").first.click()
    page.page.locator("#explain .caption").wait_for()


@pytest.mark.parametrize("width", [1280, 390])
def test_the_steps_open_beside_the_text_once_the_page_is_used(opened: Any, width: int) -> None:
    page = opened(viewport={"width": width, "height": 844})
    page.page.locator("#sides .piece").first.wait_for()
    assert not page.page.locator("#explain .caption").count()
    page.page.focus("#text")
    page.page.keyboard.press("ArrowRight")
    page.page.locator("#explain .caption").wait_for()
    assert "unfathomably" in page.page.text_content("#explain .unit")
    assert page.page.locator("#sides [aria-selected=true]").count() == 1
    assert page.page.evaluate("document.activeElement.id") == "text"
    if width == 390:
        page.page.locator("#sides .piece").last.click()
        page.page.wait_for_timeout(300)
    places = {
        name: page.page.locator(name).first.bounding_box() for name in ("#text", "#sides .coloured", "#explain", "#ids")
    }
    text, strip, steps, ids = places.values()
    if width == 1280:
        assert page.page.evaluate("scrollY") == 0
        assert abs(text["y"] - steps["y"]) < 80
        assert strip["x"] + strip["width"] < steps["x"]
    else:
        assert 0 <= strip["y"] < strip["y"] + strip["height"] <= steps["y"] <= strip["y"] + strip["height"] + 140
        assert steps["y"] + steps["height"] <= ids["y"]


def test_a_link_names_the_token_and_the_step(opened: Any) -> None:
    page = opened("#v=bpe&t=Hello+unfathomable&k=3")
    chosen = page.page.locator("#sides [aria-selected=true]")
    page.page.locator("#explain .caption").wait_for()
    page.page.get_by_role("button", name="Open", exact=False).filter(has_text="steps").click()
    page.page.get_by_role("button", name="Next step").click()
    page.until("location.hash.includes('&k=3.merge.2.2&')")
    fragment = page.page.evaluate("location.hash")
    other = opened(fragment)
    other.page.locator("#explain .unit", has_text="(2 of ").wait_for()
    assert chosen.text_content() == other.page.locator("#sides [aria-selected=true]").text_content()
    other.page.wait_for_timeout(500)
    assert other.page.evaluate("location.hash") == fragment
    tree, pairs = (other.page.locator(f"#explain {part}").bounding_box() for part in (".merging svg", ".pairs"))
    assert pairs["y"] > tree["y"] + tree["height"]
    other.page.evaluate("location.hash = '#v=bpe&t=Hello+unfathomable&k=0.merge.1.2'")
    other.page.locator("#explain .unit", has_text="Hello (2 of ").wait_for()
    tree, pairs = (other.page.locator(f"#explain {part}").bounding_box() for part in (".merging svg", ".pairs"))
    assert pairs["x"] > tree["x"] + tree["width"]
    other.page.evaluate("location.hash = '#v=bpe&t=Hello+unfathomable&k=0.split.1'")
    other.page.locator("#explain .unit", has_text="Cutting into pieces").wait_for()
    other.page.evaluate("location.hash = '#v=bpe&t=Hello+unfathomable&k=999'")
    other.page.get_by_text("Click a token").wait_for()


def test_the_steps_follow_the_text(opened: Any) -> None:
    page = opened("#v=unigram&t=Hello+World")
    page.page.locator("#sides .piece").nth(1).click()
    page.page.locator("#explain .caption").wait_for()
    page.page.focus("#text")
    page.type("Hello World, unfathomable")
    page.page.locator("#explain [role=option]", has_text="able").first.wait_for()
    assert page.page.evaluate("document.activeElement.id") == "text"
    page.type("long " * 500)
    page.page.get_by_text("of an earlier text").wait_for()
    page.page.get_by_role("button", name="Show the new ones").click()
    page.page.locator("#explain .unit", has_text="of 500").wait_for()
    assert page.page.get_by_text("of an earlier text").count() == 0
    page.type("")
    page.page.get_by_text("Click a token").wait_for()
    page.type("Hello again")
    page.page.locator("#explain .caption").wait_for()


def test_the_steps_stay_open_at_their_place(opened: Any) -> None:
    page = opened("#v=spm&t=Hello+unfathomable+%3C%7Cim_end%7C%3E")
    page.page.locator("#sides .piece", has_text=re.compile("^f$")).click()
    chosen = page.page.locator("#explain .card > h3")
    for change, text in (("spm", "f"), ("#bos", "f"), ("unigram", "fa"), ("bpe", "f"), ("#special", "f")):
        page.page.click(change) if change.startswith("#") else page.page.select_option("#vocabulary", change)
        chosen.filter(has_text=re.compile(f": {text}\\s*$")).wait_for()
    page.page.locator("#sides .piece.special").click()
    page.page.get_by_text("it becomes one token, and the text is cut around it").wait_for()
    assert page.page.locator("#explain .tokens > .token").all_text_contents() == ["<|im_end|>12993"]


ARABIC = "\u0645\u0631\u062d\u0628\u0627 GGUF"
PLACES = """(part) => {
    const range = document.createRange();
    const walker = document.createTreeWalker(part, NodeFilter.SHOW_TEXT);
    const places = [];
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
        for (let at = 0; at < node.length; at++) {
            range.setStart(node, at);
            range.setEnd(node, at + 1);
            const { left, right, top } = range.getBoundingClientRect();
            if (right > left) places.push([node.data[at], left, Math.round(top)]);
        }
    }
    return places;
}"""


def test_arabic_does_not_turn_what_is_beside_it(opened: Any) -> None:
    """Letters stand where they are read: GGUF from left to right in an Arabic text, and so a sentence about Arabic."""
    page = opened(f"#v=unigram&t={ARABIC}", viewport={"width": 1280, "height": 900})
    page.page.locator("#sides .piece").nth(1).click()
    page.page.locator("#explain .caption").wait_for()
    places = page.page.locator("#explain .tokens").evaluate(PLACES)
    latin = [(letter, left) for letter, left, _ in places if letter in "GUF"]
    assert "".join(letter for letter, _ in sorted(latin, key=lambda each: each[1])) == "GGUF"
    other = opened(f"#v=bpe&t={ARABIC}&k=1.merge.1.2", viewport={"width": 1280, "height": 900})
    other.page.locator("#explain .unit", has_text="(2 of ").wait_for()
    places = other.page.locator("#explain .caption").evaluate(PLACES)
    sentence = "".join(letter for letter, _, _ in places)
    start = sentence.index(":")
    line = [place for place in places[start:] if place[2] == places[start][2]]
    assert line == sorted(line, key=lambda each: each[1])
    assert len(line) > 20


def test_a_long_text_is_not_explained(opened: Any) -> None:
    page = opened("#v=bpe&t=")
    page.type("word " * 3000)
    page.expect_tokens(TOKENIZERS["bpe"].count("word " * 3000))
    page.page.locator("#sides .piece").first.click()
    page.page.get_by_text("Shorten the text").wait_for()
