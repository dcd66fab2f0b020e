"""The page of a trace and the fragment for notebooks: what they are made of, and the page in a browser."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import ggtok
import pytest
from conftest import BUILTIN, shared_files
from ggtok import _ggtok
from ggtok.lab.explain import compare, html
from ggtok.lab.explain.html import compare_page, page, trie_page
from ggtok.lab.explain.tables import Cell, Row, section
from ggtok.lab.explain.verdict import verdict
from hypothesis import given
from hypothesis import strategies as st
from playground_browser import launched

EVIL = "<img src=x onerror=\"document.title='run'\"></script><script>document.title='run'</script><!-- &lt; ]]>"
TEXT = "What is LoRA? Naïve 🦙\n\tdon't\x00 <|im_end|>"
VOID = {"meta", "br", "input", "img", "link"}


class Page(HTMLParser):
    """A page as elements. Raises where elements are not closed in order."""

    def __init__(self, content: str) -> None:
        super().__init__(convert_charrefs=True)
        self.attributes: list[tuple[str, str, str]] = []
        self.texts: dict[str, list[str]] = {}
        self.open: list[str] = []
        self.feed(content)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        self.texts.setdefault(tag, []).append("")
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open:
            self.texts[self.open[-1]][-1] += data

    def values(self, tag: str, name: str) -> list[str]:
        return [value for where, what, value in self.attributes if (where, what) == (tag, name)]


def page_of(trace: ggtok.Trace, folder: Path) -> str:
    path = folder / "page.html"
    trace.to_html(path)
    return path.read_text(encoding="utf-8")


def embedded(page: Page) -> Any:
    assert page.values("script", "type") == ["application/json", "module"]
    return json.loads(page.texts["script"][0])


@pytest.mark.parametrize(
    ("value", "written"),
    [
        *((value, value) for value in (1, -0.5, 2**53, True, None)),
        *((value, str(value)) for value in (2**53 + 1, -(2**60), float("inf"), float("nan"))),
        (b"\xff", {"base64": "/w=="}),
        (("a", b"\xff"), ["a", {"base64": "/w=="}]),
    ],
)
def test_values_that_javascript_has_not_are_words(value: Cell, written: object) -> None:
    rows = [Row((1, "x")), Row((2, value))]
    table = json.loads(html._section(section("key", "Title", "About.", "n:number, value:word", rows)))
    assert table["rows"] == [[[1, "x"], ""], [[2, written], ""]]


@pytest.mark.parametrize("name", BUILTIN)
@pytest.mark.parametrize("text", [TEXT, EVIL, "", b"\xff<b>\xe4\xbd"])
def test_the_page_holds_the_trace_and_nothing_from_elsewhere(name: str, text: str | bytes, tmp_path: Path) -> None:
    trace = ggtok.Tokenizer.builtin(name).explain(text, parse_special=True)
    content = page_of(trace, tmp_path)
    page = Page(content)
    data = embedded(page)
    assert data["page"] == json.loads(trace._raw.page())
    assert all(len(row[0]) == len(each["columns"]) for each in data["sections"] for row in each["rows"])
    assert [place for place, _ in data["why"]] == sorted({place for place, _ in data["why"]})

    sources = (page.texts["style"][0] + page.texts["script"][1]).replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"https?:|//[a-z]|@import|url\(", sources)
    assert not page.values("script", "src") + page.values("link", "href") + page.values("img", "src")
    assert page.values("a", "href") == ["#steps"]
    policy = page.values("meta", "content")[0]
    assert policy.startswith("default-src 'none';")
    for kind, content in (("style", page.texts["style"][0]), ("script", page.texts["script"][1])):
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy
    assert len(set(page.values("html", "lang"))) == 1


@pytest.mark.parametrize("name", BUILTIN)
def test_markup_in_a_text_stays_text(name: str, tmp_path: Path) -> None:
    trace = ggtok.Tokenizer.builtin(name).explain(EVIL)
    page, fragment = page_of(trace, tmp_path), trace._repr_html_()
    assert "<img" not in page + fragment
    assert page.count("<script") == page.count("</script>") == 2
    assert "<!--" not in page.replace("<!DOCTYPE", "") + fragment


@pytest.mark.parametrize("name", BUILTIN)
def test_the_fragment_has_all_tokens_and_only_styles(name: str) -> None:
    trace = ggtok.Tokenizer.builtin(name).explain(TEXT)
    page = Page(trace._repr_html_())
    ids = [text for text in page.texts["span"] if text.isdecimal()]
    assert set(map(str, trace.ids)) <= set(ids)
    assert set(page.texts) <= {"div", "p", "span", "br", "details", "summary", "pre"}
    assert {name for _, name, _ in page.attributes} <= {"style", "title"}
    assert "http" not in trace._repr_html_()


def test_a_fragment_of_a_long_text_is_bounded() -> None:
    tok = ggtok.Tokenizer.builtin("spm")
    short, long = (len(tok.explain("a b c " * n)._repr_html_()) for n in (2000, 6000))
    assert long < short * 1.1


@given(st.text() | st.binary(), st.sampled_from(BUILTIN))
def test_any_text_makes_a_page(text: str | bytes, name: str) -> None:
    text = text if isinstance(text, bytes) else text.encode("utf-8", "replace")
    trace = ggtok.Tokenizer.builtin(name).explain(text, parse_special=True)
    assert embedded(Page(page(trace)))["page"] == json.loads(trace._raw.page())
    Page(trace._repr_html_())


# In a browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    yield from launched()


class Opened:
    """A page in the browser, and what went wrong in it."""

    def __init__(self, browser: Any, path: Path, **settings: Any) -> None:
        self.page = browser.new_page(**settings)
        self.errors: list[str] = []
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("console", lambda message: self.errors.append(message.text))
        self.page.on("dialog", lambda dialog: self.errors.append("dialog"))
        self.page.on("request", lambda request: self.errors.extend([request.url] * (request.url != path.as_uri())))
        self.page.goto(path.as_uri())

    def step(self) -> str:
        """The address of the step, such as `merge.2`."""
        return str(self.page.get_attribute(".controls .link", "href")).removeprefix("#step=")

    def known(self) -> int:
        """How many tokens the strip shows."""
        return int(self.page.locator(".tokens > .token").count())

    def overflow(self) -> int:
        return int(self.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))


@pytest.fixture
def opened(browser: Any, tmp_path: Path) -> Iterator[Any]:
    pages: list[Opened] = []

    def open_page(trace: ggtok.Trace, **settings: Any) -> Opened:
        path = tmp_path / f"{len(pages)}.html"
        trace.to_html(path)
        pages.append(Opened(browser, path, **settings))
        return pages[-1]

    yield open_page
    for each in pages:
        each.page.close()
        assert not each.errors


WALK = """([most, at]) => {
    const root = document.querySelectorAll(".explain")[at];
    const parts = [".slider", ".caption", ".picture", ".open"];
    const [slider, caption, picture, open] = parts.map((one) => root.querySelector(one));
    const wrong = [];
    let opened = 0;
    const look = () => {
        const said = caption.textContent;
        const isWrong = !said.trim() || /undefined|NaN|\\[object|Infinity|null|[{}]/.test(said) ||
            /undefined|NaN|\\[object|Infinity/.test(picture.textContent);
        if (isWrong) wrong.push([slider.value, said, picture.textContent]);
    };
    for (const stage of root.querySelectorAll(".bar button")) {
        stage.click();
        const stride = Math.floor(Number(slider.max) / most) + 1;
        for (let step = 0; step <= Number(slider.max); step += stride) {
            slider.value = step;
            slider.dispatchEvent(new Event("input"));
            look();
            if (open.hidden || !open.textContent.startsWith("Open") || opened++ > 30) continue;
            open.click();
            look();
        }
    }
    return wrong;
}"""


def walk(page: Opened, most: int = 100, at: int = 0) -> None:
    """Goes through the stages and into the first steps that open: each says what happens and draws without an error."""
    assert page.page.evaluate(WALK, [most, at]) == []


@pytest.mark.parametrize("name", BUILTIN)
def test_every_step_is_drawn(opened: Any, name: str) -> None:
    page = opened(ggtok.Tokenizer.builtin(name).explain(TEXT, parse_special=True))
    walk(page)
    page.page.click(".all-tables > summary")
    summaries = page.page.locator(".tables summary")
    for place in range(summaries.count()):
        summaries.nth(place).click()
    # A table is drawn after its section has opened.
    tables = page.page.locator(".tables table")
    tables.nth(summaries.count() - 1).wait_for()
    assert tables.count() == summaries.count()
    assert page.overflow() == 0


@pytest.mark.parametrize("path", shared_files("vocabs/*.gguf"))
def test_every_step_of_every_shared_vocabulary_is_drawn(opened: Any, path: Path) -> None:
    text = "Åwhat ﬁne ½ 🦙 <dna>ACGTTACGN</dna>\n\n don't <|endoftext|></s>zzqxj 你"
    page = opened(ggtok.Tokenizer.from_gguf(path).explain(text, parse_special=True))
    walk(page)


@pytest.mark.parametrize("name", BUILTIN)
def test_markup_in_a_text_is_shown_and_not_run(opened: Any, name: str) -> None:
    trace = ggtok.Tokenizer.builtin(name).explain(EVIL)
    page = opened(trace)
    walk(page, 20)
    page.page.click(".answer-button")
    title = page.page.title()
    assert title != "run"
    assert page.page.locator("img").count() == 0
    shown = "".join(page.page.locator(".token .face").all_text_contents())
    assert "onerror" in shown
    assert "</" in shown


def test_keys_buttons_and_tokens(opened: Any) -> None:
    page = opened(ggtok.Tokenizer.builtin("bpe").explain("What is LoRA?"))
    press = page.page.keyboard.press
    assert page.step() == "split.1"
    steps = {}
    for key in ("ArrowRight", "ArrowRight", "ArrowLeft", "Enter", "ArrowRight", "Enter", "End", "ArrowRight"):
        press(key)
        steps[key] = page.step()
    assert steps == {"ArrowRight": "tokens.1", "ArrowLeft": "merge.1", "Enter": "merge.1", "End": "tokens.1"}
    found = []
    for key in ("Home", "PageDown", "Enter", "ArrowRight", "ArrowRight", "PageUp", "PageUp"):
        press(key)
        found.append(page.step())
    assert found == ["split.1", "merge.1", "merge.1.1", "merge.1.2", "merge.1.3", "merge.1.1", "split.1"]

    page.page.click(".next")
    page.page.evaluate("document.activeElement.blur()")
    before = page.step()
    page.page.select_option(".controls select", "4")
    press("Space")
    assert page.page.get_attribute(".play", "aria-pressed") == "true"
    page.page.wait_for_timeout(900)
    assert page.step() != before
    press("Space")
    assert page.page.get_attribute(".play", "aria-pressed") == "false"

    page.page.locator("[role=option]").first.focus()
    press("ArrowRight")
    press("Enter")
    assert page.page.get_attribute("[role=option]:nth-of-type(2)", "aria-selected") == "true"
    page.page.locator(".card", has_text="Why is it not one token with the next").wait_for()
    page.page.locator("[role=option]").nth(0).hover()
    assert page.page.locator(".hot").count() >= 1


@pytest.mark.parametrize("name", BUILTIN)
def test_the_strip_fills(opened: Any, name: str) -> None:
    """No token is shown before the step that makes it, and all are at the end."""
    trace = ggtok.Tokenizer.builtin(name).explain("What is LoRA?")
    page = opened(trace)
    assert page.known() == 0
    assert "".join(page.page.locator(".tokens .face, .tokens .gap-text").all_text_contents()) == "What is LoRA?"
    assert not page.page.locator(".tokens .id:visible").count()
    known = [0]
    for _ in range(60):
        page.page.keyboard.press("ArrowRight")
        known.append(page.known())
    assert known == sorted(known)
    assert known[-1] == len(trace.tokens)
    assert len(set(known)) > 2
    page.page.keyboard.press("Home")
    assert page.known() == 0
    page.page.click(".answer-button")
    assert page.known() == len(trace.tokens)


def test_links_lead_to_steps(opened: Any, tmp_path: Path) -> None:
    page = opened(ggtok.Tokenizer.builtin("bpe").explain("What is LoRA?"))
    page.page.evaluate("location.hash = 'step=merge.3.2'")
    page.page.wait_for_function("document.querySelector('.link').href.endsWith('#step=merge.3.2')")
    caption = page.page.text_content(".caption")
    assert "→" in caption
    page.page.click(".controls .link")
    page.page.reload()
    assert page.step() == "merge.3.2"
    assert page.page.text_content(".caption") == caption
    page.page.evaluate("location.hash = 'step=merge.99'")
    assert page.step() == "merge.3.2"


def test_characters_are_above_their_bytes(opened: Any) -> None:
    """The byte alphabet is never shown alone."""
    page = opened(ggtok.Tokenizer.builtin("bpe").explain("こんにちは"))
    page.page.click(".next")
    shown = page.page.text_content(".picture")
    assert "E3" in shown
    assert "こ" in shown
    for text in page.page.locator("body").inner_text(), shown:
        assert "ãģ" not in text


MOVES = """document.getAnimations().flatMap((one) => one.effect.getKeyframes().flatMap(Object.keys))
    .filter((name) => !["offset", "easing", "composite", "computedOffset"].includes(name))"""


@pytest.mark.parametrize("motion", ["no-preference", "reduce"])
def test_merges_move_unless_motion_is_not_wanted(opened: Any, motion: str) -> None:
    page = opened(ggtok.Tokenizer.builtin("bpe").explain("What is LoRA?"), reduced_motion=motion)
    page.page.click(".next")
    assert set(page.page.evaluate(MOVES)) == ({"transform"} if motion == "no-preference" else set())


PHONE = {"spm": "merge.2", "bpe": "merge.2", "unigram": "search.2", "wordpiece": "match.3"}


@pytest.mark.parametrize("name", PHONE)
def test_a_phone_shows_the_picture_at_once(opened: Any, name: str) -> None:
    """The idea, the stages, the caption and the picture are on the first screen."""
    trace = ggtok.Tokenizer.builtin(name).explain("Hello World, こんにちは 👋🏽 naïve")
    page = opened(trace, viewport={"width": 390, "height": 844})
    for part in (".idea", ".bar", ".caption", ".picture"):
        box = page.page.locator(part).bounding_box()
        assert box["y"] + box["height"] <= 844
    page.page.evaluate(f"location.hash = 'step={PHONE[name]}'")
    page.page.locator(".picture .node, .picture .block, .picture .dot").first.wait_for()
    assert page.page.locator(".picture svg").bounding_box()["y"] < 450
    assert page.overflow() == 0


SIGNS = {
    ("bpe", "a b\n"): "␣ is a space · ↵ ends a line",
    ("bpe", "é"): "C3 is a byte of a character",
    ("spm", "a b"): "␣ is a space · ▁ begins a word",
    ("unigram", "é"): "▁ begins a word",
}


@pytest.mark.parametrize(("name", "text"), SIGNS)
def test_signs_are_explained(opened: Any, name: str, text: str) -> None:
    page = opened(ggtok.Tokenizer.builtin(name).explain(text))
    assert page.page.text_content(".signs") == SIGNS[name, text]


def test_two_views_in_one_page_do_not_meet(browser: Any, tmp_path: Path) -> None:
    """Nothing in a view has an id, and a view that is destroyed leaves nothing."""
    pages = [ggtok.Tokenizer.builtin("bpe").explain(text)._raw.page() for text in ("one two", "three")]
    path = tmp_path / "mount.html"
    mounts = "".join(f"mountTrace(document.body, {{page: {each}, why: () => null}})," for each in pages)
    script = f"{html.scripts(*html.SCRIPTS)}\nwindow.views = [{mounts}];"
    path.write_text(f"<meta charset=utf-8><body></body><script type=module>{script}</script>", encoding="utf-8")
    page = Opened(browser, path)
    assert page.page.locator(".explain").count() == 2
    assert page.page.locator("[id]").count() == 0
    assert page.page.evaluate("views.map((view) => view.show('merge.1'))") == [True, True]
    page.page.evaluate("views[1].showToken(0)")
    assert page.page.evaluate("views[0].show('merge.99')") is False
    page.page.evaluate("views.forEach((view) => view.destroy())")
    assert page.page.locator("body *:not(script)").count() == 0
    page.page.close()
    assert not page.errors


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_themes_and_narrow_screens(opened: Any, scheme: str) -> None:
    trace = ggtok.Tokenizer.builtin("unigram").explain("What is LoRA? " + "longword" * 20)
    page = opened(trace, color_scheme=scheme, viewport={"width": 390, "height": 800})

    def is_dark() -> bool:
        paper = page.page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
        return sum(map(int, re.findall(r"\d+", paper)[:3])) < 200

    assert is_dark() == (scheme == "dark")
    for stage in page.page.locator(".bar button").all():
        stage.click()
        assert page.overflow() == 0
        for _ in range(3):
            page.page.click(".next")
            assert page.overflow() == 0
    page.page.click("#theme")
    assert is_dark() == (scheme == "light")
    page.page.emulate_media(media="print")
    assert not is_dark()
    assert not page.page.is_visible("#theme")


@pytest.mark.parametrize("name", ["spm", "unigram"])
def test_long_texts_stay_usable(opened: Any, name: str) -> None:
    words = ("What", "is", "low-rank", "adaptation", "Naïve", "🦙", "unfathomable", "12345")
    text = " ".join(words[n * n % 7 + n % 2] for n in range(1500))[:10_000]
    page = opened(ggtok.Tokenizer.builtin(name).explain(text))
    assert page.page.locator("*").count() < 30_000
    for stage in page.page.locator(".bar button").all():
        stage.click()
        for key in ("ArrowRight", "Enter", "ArrowRight"):
            page.page.keyboard.press(key)
            assert page.page.locator(".picture *").count() < 2000
    page.page.click(".all-tables > summary")
    page.page.locator(".tables summary").last.click()
    page.page.wait_for_selector(".tables tr")
    shown = page.page.locator(".tables tr").count()
    assert shown < 600
    page.page.click(".table button")
    assert shown < page.page.locator(".tables tr").count() < 2 * shown


def test_a_double_array_is_drawn(browser: Any, tmp_path: Path) -> None:
    words = ["un", "uni", "unique", "que", "quick", "<b>", "é"]
    path = tmp_path / "trie.html"
    path.write_text(trie_page(words, _ggtok.explain_trie(words, ["unique", "quiet", "z"]), []), encoding="utf-8")
    page = Opened(browser, path)
    walk(page)
    assert page.overflow() == 0
    page.page.close()
    assert not page.errors


def test_two_traces_are_compared(browser: Any, tmp_path: Path) -> None:
    text = f"What is LoRA? {EVIL}"
    a, b = (ggtok.Tokenizer.builtin(name).explain(text) for name in ("bpe", "wordpiece"))
    path = tmp_path / "compare.html"
    path.write_text(compare_page(a, b, ("<a>", "b")), encoding="utf-8")
    page = Opened(browser, path)
    walk(page, 20)
    walk(page, 20, 1)
    assert page.overflow() == 0
    page.page.close()
    assert not page.errors


CELLS = """() => Array.from(document.querySelectorAll(".stretch"), (stretch) => {
    const rows = Array.from(stretch.querySelectorAll(".text-row"));
    const cells = rows.map((row) => Array.from(row.querySelectorAll("[data-cell]")));
    return {
        differs: stretch.classList.contains("unequal"),
        texts: rows.map((row) => Array.from(row.querySelectorAll(".piece"), (piece) => piece.textContent)),
        isAligned: cells[0].length === cells[1].length && cells[0].every((cell, at) => {
            const [above, below] = [cell.getBoundingClientRect(), cells[1][at].getBoundingClientRect()];
            return Math.abs(above.left - below.left) < 0.5 && above.bottom < below.bottom;
        }),
    };
})"""


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("pair", [("bpe", "wordpiece"), ("spm", "unigram"), ("bpe", "bpe")], ids="-".join)
def test_a_comparison_begins_with_a_verdict(browser: Any, tmp_path: Path, pair: tuple[str, str], width: int) -> None:
    """The page says what the terminal says, and a character is below itself."""
    text = "The unaffable na\u00efve \u4f60\u597d \U0001f44b\U0001f3fd\nend of 2024. "
    a, b = (ggtok.Tokenizer.builtin(name).explain(text) for name in pair)
    path = tmp_path / "compare.html"
    path.write_text(compare_page(a, b, pair), encoding="utf-8")
    page = Opened(browser, path, viewport={"width": width, "height": 800})
    found = compare.cuts(a, b)
    assert page.page.inner_text(".judgement") == "".join(part for part, _ in verdict(found))
    stretches = page.page.evaluate(CELLS)
    assert all(stretch["isAligned"] for stretch in stretches)
    assert sum(stretch["differs"] for stretch in stretches) == found.num_stretches
    if found.first is not None:
        first = next(stretch["texts"] for stretch in stretches if stretch["differs"])
        parts = [found.first.parts_a, found.first.parts_b]
        assert [len(texts) for texts in first] == [len(own) for own in parts]
        # The slider stands there, and moves both sides to the step of the same place in the text.
        place = int(page.page.input_value(".places .slider"))
        page.page.click("text=difference \u203a")
        assert int(page.page.input_value(".places .slider")) > place
    titles = page.page.locator(".side .unit")
    before = titles.all_inner_texts()
    page.page.locator(".places .slider").fill("0")
    assert titles.count() == 2
    assert titles.all_inner_texts() != before or found.first is None
    assert page.page.locator(".both .here").count() == 2
    assert page.overflow() == 0
    page.page.close()
    assert not page.errors


def test_an_empty_text_is_compared(browser: Any, tmp_path: Path) -> None:
    a, b = (ggtok.Tokenizer.builtin(name).explain("") for name in ("bpe", "spm"))
    path = tmp_path / "compare.html"
    path.write_text(compare_page(a, b, ("a", "b")), encoding="utf-8")
    page = Opened(browser, path)
    assert page.page.inner_text(".judgement") == "Same cuts, other ids. 0 and 1 tokens."
    page.page.close()
    assert not page.errors
