"""The page of a trace and the fragment for notebooks: what they are made of, and the page in a browser."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import ggtok
import pytest
from conftest import BUILTIN, shared_files
from ggtok import _ggtok
from ggtok._explain import html
from ggtok._explain.html import compare_page, page, trie_page
from ggtok._explain.tables import Cell, LazyRows, Row, section
from hypothesis import given
from hypothesis import strategies as st

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
    """In every slice of a long table, whatever its other values are."""
    rows = LazyRows(lambda n: Row((n, value if n == 300 else "x")), [(n,) for n in range(600)])
    table = json.loads(html._section(section("key", "Title", "About.", "n:number, value:word", rows)))
    expected: list[list[object]] = [[[n, "x"], None, None, ""] for n in range(600)]
    expected[300][0] = [300, written]
    assert table["rows"] == expected


@pytest.mark.parametrize("name", BUILTIN)
@pytest.mark.parametrize("text", [TEXT, EVIL, "", b"\xff<b>\xe4\xbd"])
def test_the_page_holds_the_trace_and_nothing_from_elsewhere(name: str, text: str | bytes, tmp_path: Path) -> None:
    trace = ggtok.Tokenizer.builtin(name).explain(text, parse_special=True)
    content = page_of(trace, tmp_path)
    page = Page(content)
    data = embedded(page)
    assert data["trace"] == json.loads(trace.to_json())
    assert all(len(row[0]) == len(each["columns"]) for each in data["sections"] for row in each["rows"])
    assert [place for place, _ in data["why"]] == sorted({place for place, _ in data["why"]})

    assert not re.search(r"https?:|//[a-z]|@import|url\(", page.texts["style"][0] + page.texts["script"][1])
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
    table = {"details", "summary", "table", "thead", "tbody", "tr", "th", "td"}
    assert set(page.texts) <= table | {"div", "p", "span", "br"}
    assert {name for _, name, _ in page.attributes} <= {"style", "title", "colspan"}
    assert "http" not in trace._repr_html_()


def test_a_fragment_of_a_long_text_is_bounded() -> None:
    tok = ggtok.Tokenizer.builtin("spm")
    short, long = (len(tok.explain("a b c " * n)._repr_html_()) for n in (2000, 6000))
    assert long < short * 1.1


@given(st.text() | st.binary(), st.sampled_from(BUILTIN))
def test_any_text_makes_a_page(text: str | bytes, name: str) -> None:
    text = text if isinstance(text, bytes) else text.encode("utf-8", "replace")
    trace = ggtok.Tokenizer.builtin(name).explain(text, parse_special=True)
    assert embedded(Page(page(trace)))["trace"] == json.loads(trace.to_json())
    Page(trace._repr_html_())


# In a browser

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Headless Chromium, if it is installed."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed")
    with sync_api.sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])


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

    def step(self) -> int:
        return int(self.page.input_value("#slider"))

    def last(self) -> int:
        return int(self.page.get_attribute("#slider", "max"))

    def show(self, step: int) -> None:
        self.page.eval_on_selector(
            "#slider", "(slider, step) => { slider.value = step; slider.dispatchEvent(new Event('input')); }", step
        )

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


WALK = """(stride) => {
    const slider = document.getElementById("slider");
    const wrong = [];
    for (let step = 0; step <= Number(slider.max); step += stride) {
        slider.value = step;
        slider.dispatchEvent(new Event("input"));
        const [caption, stage] = ["caption", "stage"].map((id) => document.getElementById(id).textContent);
        const isWrong = !caption.trim() || /undefined|NaN|\\[object|Infinity/.test(caption + stage);
        if (isWrong) wrong.push([step, caption, stage]);
    }
    return wrong;
}"""


def walk(page: Opened, most: int = 200) -> None:
    """Goes through the steps: each says what happens and draws without an error."""
    assert page.page.evaluate(WALK, page.last() // most + 1) == []


@pytest.mark.parametrize("name", BUILTIN)
def test_every_step_is_drawn(opened: Any, name: str) -> None:
    page = opened(ggtok.Tokenizer.builtin(name).explain(TEXT, parse_special=True))
    walk(page)
    for summary in page.page.query_selector_all("summary"):
        summary.click()
    # A table is drawn after its section has opened.
    tables = page.page.locator("#tables table")
    tables.nth(page.page.locator("summary").count() - 1).wait_for()
    assert tables.count() == page.page.locator("summary").count()
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
    title = page.page.title()
    assert title != "run"
    assert page.page.locator("img").count() == 0
    shown = "".join(page.page.locator(".token .face").all_text_contents())
    assert "onerror" in shown
    assert "</" in shown


def test_keys_buttons_and_tokens(opened: Any) -> None:
    page = opened(ggtok.Tokenizer.builtin("bpe").explain("What is LoRA?"))
    press = page.page.keyboard.press
    steps = []
    for key in ("ArrowRight", "ArrowRight", "ArrowLeft", "End", "ArrowRight", "Home", "PageDown", "PageUp"):
        press(key)
        steps.append(page.step())
    last = page.last()
    assert steps[:6] == [1, 2, 1, last, last, 0]
    assert steps[6] > 0
    assert steps[7] == 0

    page.page.click("#next")
    assert page.step() == 1
    page.page.evaluate("document.activeElement.blur()")
    press("Space")
    assert page.page.text_content("#play") == "Pause"
    page.page.wait_for_timeout(1500)
    assert page.step() > 1
    press("Space")
    assert page.page.text_content("#play") == "Play"

    page.page.locator("[role=option]").first.focus()
    press("ArrowRight")
    press("Enter")
    assert page.page.get_attribute("[role=option]:nth-of-type(2)", "aria-selected") == "true"
    assert "Why is it not one token with the next" in page.page.text_content(".card")
    page.page.locator("[role=option]").nth(0).hover()
    assert page.page.locator(".hot").count() >= 1


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_themes_and_narrow_screens(opened: Any, scheme: str) -> None:
    trace = ggtok.Tokenizer.builtin("unigram").explain("What is LoRA? " + "longword" * 20)
    page = opened(trace, color_scheme=scheme, viewport={"width": 390, "height": 800})

    def is_dark() -> bool:
        paper = page.page.evaluate("getComputedStyle(document.body).backgroundColor")
        return sum(map(int, re.findall(r"\d+", paper)[:3])) < 200

    assert is_dark() == (scheme == "dark")
    for step in range(0, page.last(), max(1, page.last() // 20)):
        page.show(step)
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
    for step in (0, page.last() // 2, page.last()):
        page.show(step)
        assert page.page.locator("#stage *").count() < 2000
    page.page.locator("summary").last.click()
    assert page.page.locator("#tables tr").count() < 200


def test_a_double_array_is_drawn(browser: Any, tmp_path: Path) -> None:
    words = ["un", "uni", "unique", "que", "quick", "<b>", "é"]
    path = tmp_path / "trie.html"
    path.write_text(trie_page(words, _ggtok.explain_trie(words, ["unique", "quiet", "z"]).json(), []), encoding="utf-8")
    page = Opened(browser, path)
    walk(page)
    assert page.last() > 30
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
    total = page.last()
    page.page.locator("input[type=radio]").nth(1).check()
    assert page.step() == 0
    assert page.last() != total
    walk(page, 20)
    page.page.locator("[role=option]").first.click()
    assert page.page.locator("input[type=radio]").first.is_checked()
    assert page.last() == total
    page.page.close()
    assert not page.errors
