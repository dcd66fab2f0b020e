"""The playground in a browser: what it shows is what Python says, whatever is typed, pasted, dropped or linked."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import playground_browser
import pytest
from conftest import BUILTIN, SHARED, TOKENIZERS
from playground_browser import Opened, Site, build_playground, launched, vocabulary

pytestmark = playground_browser.needs_package
folder = playground_browser.folder
site = playground_browser.site
opened = playground_browser.opened


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    yield from launched()


# Tokens


@pytest.mark.parametrize("name", BUILTIN)
def test_tokens_appear_while_typing(opened: Any, name: str) -> None:
    page = opened()
    page.page.select_option("#vocabulary", name)
    text = ""
    for part in ("What", " is LoRA", "? Naïve 🦙\n", "\n你好 👋🏽 2024", " ﬁ  x "):
        text += part
        page.type(text)
        page.expect_ids(TOKENIZERS[name].encode(text))
    shown = "".join(
        page.page.locator("#sides .coloured .piece:not(.byte), .coloured .of, .coloured .gap-text").all_text_contents()
    )
    assert re.sub(r"<[^>]*>|\[\w+\]|▁$", "", shown.replace("↵", "")).strip("▁") == text
    assert f"{len(text)} characters" in page.counts()
    assert f"{len(text.encode())} bytes" in page.counts()


def test_the_newest_text_wins(opened: Any) -> None:
    page = opened()
    text = "the quick brown fox " * 20
    page.page.evaluate(
        """(text) => {
            const box = document.querySelector("#text");
            for (let end = 1; end <= text.length; end++) {
                box.value = text.slice(0, end);
                box.dispatchEvent(new Event("input"));
            }
        }""",
        text,
    )
    page.expect_tokens(TOKENIZERS["bpe"].count(text))


def test_special_tokens_and_bos(opened: Any) -> None:
    page = opened("#v=spm&t=a</s>b")
    tok = TOKENIZERS["spm"]
    for special, bos in ((False, True), (True, True), (True, False), (False, False)):
        page.page.set_checked("#special", special)
        page.page.set_checked("#bos", bos)
        page.expect_ids(tok.encode("a</s>b", parse_special=special, add_special=bos))
        assert page.page.locator("#sides .coloured .special").count() == special
        assert page.page.locator("#sides .coloured .added").count() >= bos


def test_a_token_says_what_it_is(opened: Any) -> None:
    page = opened("#v=bpe&t=Na%C3%AFve+is")
    page.page.locator("#sides .piece").last.hover()
    said = page.page.text_content(".pointed")
    assert said == "Token 5981 · spelled Ġis in the vocabulary · characters 5 to 8, bytes 6 to 9"
    page.type("é🦙")
    page.page.locator("#sides .piece").last.hover()
    page.page.get_by_text("characters 1 to 2, bytes 5 to 6").wait_for()
    page.type("Naïve is")
    page.expect_tokens(len(TOKENIZERS["bpe"].encode("Naïve is")))


def test_half_a_character_is_said(opened: Any) -> None:
    page = opened()
    page.page.evaluate(
        """() => {
            document.querySelector("#text").value = "a\\ud83d b\\udc4b";
            document.querySelector("#text").dispatchEvent(new Event("input"));
        }"""
    )
    page.page.get_by_text("lone surrogate").wait_for()
    page.expect_tokens(TOKENIZERS["bpe"].count("a\ufffd b\ufffd"))
    page.type("whole")
    page.page.locator("#status").wait_for(state="hidden")


def test_a_megabyte_is_pasted(opened: Any) -> None:
    page = opened("#v=bpe&t=")
    text = "".join(f"{n} unfathomable words, naïve 🦙\n" for n in range(30_000))[:1_000_000]
    page.page.evaluate("(text) => navigator.clipboard.writeText(text)", text)
    page.page.locator("#text").focus()
    page.page.keyboard.press("Control+v")
    page.expect_tokens(TOKENIZERS["bpe"].count(text))
    assert f"{len(text):,} characters" in page.counts()
    assert page.page.locator("*").count() < 20_000
    shown = page.page.locator("[role=option]").count()
    page.page.get_by_role("button", name="Show more").click()
    page.until(f"document.querySelectorAll('[role=option]').length >= {2 * shown}")
    page.page.locator("#text").focus()
    page.page.keyboard.type("!")
    page.expect_tokens(TOKENIZERS["bpe"].count(text + "!"))
    page.page.get_by_role("button", name="Copy link").click()
    page.page.get_by_text("too long for a link").wait_for()
    assert "t=" not in page.page.url
    assert "z=" not in page.page.url
    page.page.reload()
    page.expect_tokens(TOKENIZERS["bpe"].count(text + "!"))


# Files


def test_a_file_is_dropped(opened: Any, tmp_path: Path) -> None:
    page = opened("#v=bpe&t=Hello+World")
    page.drop(("mine.gguf", vocabulary("unigram")))
    page.until("document.querySelector('#vocabulary').value === 'file:mine.gguf'")
    page.expect_ids(TOKENIZERS["unigram"].encode("Hello World"))
    assert "12,000 tokens" in page.page.text_content("#about")

    path = tmp_path / "chosen.gguf"
    path.write_bytes(vocabulary("wordpiece"))
    page.page.set_input_files("#file", path)
    page.expect_tokens(TOKENIZERS["wordpiece"].count("Hello World"))


def test_many_files_are_opened_and_used_again(opened: Any) -> None:
    """More than the worker keeps open at a time."""
    page = opened("#v=bpe&t=Hello+World")
    names = [f"{n}-{kind}.gguf" for n, kind in enumerate(BUILTIN * 2)]
    page.drop(*((name, vocabulary(name[2:-5])) for name in names))
    page.until(f"document.querySelector('#other').value === 'file:{names[1]}'")
    page.page.select_option("#other", "")
    for name in names:
        page.page.select_option("#vocabulary", f"file:{name}")
        page.expect_ids(TOKENIZERS[name[2:-5]].encode("Hello World"))


def test_only_the_header_of_a_huge_file_is_read(opened: Any, tmp_path: Path) -> None:
    path = tmp_path / "huge.gguf"
    path.write_bytes(vocabulary("bpe"))
    try:
        os.truncate(path, 40_000_000_000)
    except OSError:
        pytest.skip("this file system has no sparse files of 40 GB")
    page = opened("#v=spm&t=Hello")
    page.page.set_input_files("#file", path)
    page.page.get_by_text(" of 40 GB read").wait_for()
    read = re.search(r"(\S+) (\w+) of 40 GB", page.page.text_content("#about"))
    assert read
    assert read[2] == "kB" or float(read[1]) < 5


def tensors_only() -> bytes:
    """A GGUF file of an image encoder, without a tokenizer."""
    key, value = b"general.architecture", b"clip"
    pairs = len(key).to_bytes(8, "little") + key + (8).to_bytes(4, "little") + len(value).to_bytes(8, "little") + value
    return b"GGUF" + (3).to_bytes(4, "little") + bytes(8) + (1).to_bytes(8, "little") + pairs + bytes(64)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("paper.pdf", b"%PDF-1.7\n" + bytes(100), "it is a PDF"),
        ("model.safetensors", (50).to_bytes(8, "little") + b'{"a": {}}', "safetensors"),
        ("weights.bin", b"PK\x03\x04" + bytes(100), "ZIP"),
        ("notes.gguf", b"hello", "not a GGUF file"),
        ("empty.gguf", b"", "is empty"),
        ("cut.gguf", vocabulary("bpe")[:200_000], "could not be opened. GGUFError"),
        ("mmproj-model.gguf", tensors_only(), "image encoder"),
        ("big-00002-of-00003.gguf", tensors_only(), "big-00001-of-00003.gguf"),
    ],
)
def test_files_without_a_tokenizer_are_said_to_be_so(opened: Any, name: str, content: bytes, said: str) -> None:
    page = opened("#v=bpe&t=Hello+World")
    page.drop((name, content))
    notice = page.notice()
    assert name in notice
    assert said in notice
    page.type("Hello World again")
    page.expect_tokens(TOKENIZERS["bpe"].count("Hello World again"))
    page.drop(("good.gguf", vocabulary("spm")))
    page.page.locator("#notice").wait_for(state="hidden")


def test_damage_never_stops_the_page(opened: Any) -> None:
    page = opened("#v=bpe&t=Hello")
    good = vocabulary("wordpiece")
    for at in (4, 8, 20, 60, 300, 5000):
        page.drop(("bad.gguf", good[:at] + b"\xff\xff\xff\xff\xff\xff" + good[at + 6 :]))
        page.until("!document.querySelector('#drop').classList.contains('busy')")
    page.page.select_option("#vocabulary", "bpe")
    page.type("Hello again")
    page.expect_tokens(TOKENIZERS["bpe"].count("Hello again"))


# Links


def test_a_link_restores_the_case(opened: Any) -> None:
    page = opened()
    page.page.select_option("#vocabulary", "spm")
    page.page.set_checked("#special", True)
    page.page.set_checked("#bos", False)
    for text in ("a & b=c #d +e% \n</s> 🦙", "naïve " * 300):
        page.type(text)
        page.page.get_by_role("button", name="Copy link").click()
        page.page.get_by_text("Copied. The link holds").wait_for()
        link = page.page.evaluate("navigator.clipboard.readText()")
        assert len(link) < 1000
        other = opened(link.partition("playground/")[2])
        other.expect_tokens(TOKENIZERS["spm"].count(text, parse_special=True, add_special=False))
        assert other.page.input_value("#text") == text
        assert other.page.is_checked("#special")
        assert not other.page.is_checked("#bos")
        page.page.reload()
        assert page.page.input_value("#text") == text


def test_a_link_asks_for_a_file(opened: Any) -> None:
    page = opened("#v=file%3Amine.gguf&t=Hello+World")
    page.page.get_by_text("This link was made with the file mine.gguf.").wait_for()
    page.drop(("mine.gguf", vocabulary("unigram")))
    page.expect_tokens(TOKENIZERS["unigram"].count("Hello World"))


def test_links_that_are_damaged(opened: Any) -> None:
    page = opened("#v=bpe&z=!!!")
    assert "could not be read" in page.notice()
    page = opened("#v=nonsense&t=Hello")
    assert "nonsense" in page.notice()
    page.expect_tokens(TOKENIZERS["bpe"].count("Hello"))
    page = opened("#%E0%A4%A&&=&v")
    page.expect_tokens(TOKENIZERS["bpe"].count(page.page.input_value("#text")))


def test_a_small_link_with_a_huge_text_is_refused(opened: Any) -> None:
    page = opened()
    packed = page.page.evaluate(
        """async () => {
            const text = new Blob(["a".repeat(20_000_000)]);
            const stream = text.stream().pipeThrough(new CompressionStream("deflate-raw"));
            const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
            return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
        }"""
    )
    page.goto(f"#v=bpe&z={packed.replace('+', '-').replace('/', '_')}")
    assert "too long" in page.notice()


def test_going_back(opened: Any) -> None:
    page = opened("#v=bpe&t=first")
    page.expect_tokens(TOKENIZERS["bpe"].count("first"))
    page.page.evaluate("location.hash = '#v=spm&t=second+text'")
    page.expect_tokens(TOKENIZERS["spm"].count("second text"))
    page.page.go_back()
    page.until("document.querySelector('#text').value === 'first'")
    assert page.page.input_value("#vocabulary") == "bpe"


# Two vocabularies


def test_two_vocabularies_side_by_side(opened: Any) -> None:
    page = opened("#v=bpe&w=wordpiece&t=What+is+LoRA%3F+unfathomably%0A2024+%F0%9F%A6%99")
    text = "What is LoRA? unfathomably\n2024 🦙"
    page.expect_tokens(TOKENIZERS["bpe"].count(text), 0)
    page.expect_tokens(TOKENIZERS["wordpiece"].count(text), 1)
    page.page.locator(".judgement").filter(has_text="Cuts first differ at character").wait_for()
    assert page.page.locator(".stretch.unequal").count() >= 1
    rows = page.page.eval_on_selector_all(
        ".stretch",
        """(all) => {
            const parts = ".piece:not(.byte):not(.added), .of, .gap-text";
            const textOf = (row) => Array.from(row.querySelectorAll(parts), (part) => part.textContent).join("");
            return all.map((stretch) => Array.from(stretch.querySelectorAll(".text-row"), textOf));
        }""",
    )
    assert all(upper == lower for upper, lower in rows)
    assert "".join(upper for upper, _ in rows).replace("↵", "\n") == text

    page.page.select_option("#other", "bpe")
    page.page.locator(".judgement").filter(has_text="Same cuts, same ids.").wait_for()
    assert page.page.locator(".stretch.unequal").count() == 0


def test_two_files_at_once(opened: Any) -> None:
    page = opened("#v=bpe&t=2024")
    page.drop(("a.gguf", vocabulary("spm")), ("b.gguf", vocabulary("unigram")))
    page.until("document.querySelector('#other').value === 'file:b.gguf'")
    assert page.page.input_value("#vocabulary") == "file:a.gguf"
    page.expect_tokens(TOKENIZERS["spm"].count("2024"), 0)
    page.expect_tokens(TOKENIZERS["unigram"].count("2024"), 1)


@pytest.mark.skipif(not (SHARED / "vocabs").exists(), reason="no shared material")
def test_same_cuts_other_ids(opened: Any) -> None:
    page = opened("#v=bpe&t=Hello+World")
    page.page.set_input_files("#file", [SHARED / "vocabs" / name for name in ("llama-bpe.gguf", "qwen2.gguf")])
    page.page.locator(".judgement").filter(has_text="Same cuts, other ids.").wait_for()
    page.type("in 2024")
    page.page.locator(".judgement").filter(has_text="Cuts first differ at character 3").wait_for()


def test_differences_of_cuts_agree_with_sets(opened: Any) -> None:
    """On random spans: the first difference is the least cut of one that is not the other's."""
    page = opened()
    wrong = page.page.evaluate(
        """async () => {
            const { stretchesOf } = await import("./base.js");
            let seed = 7;
            const random = (n) => (seed = (seed * 1103515245 + 12345) % 2147483648) % n;
            const draw = () => {
                const spans = [];
                for (let at = 0; at < 12; ) {
                    const start = at + (random(4) === 0);
                    const end = random(8) === 0 ? start : Math.min(12, start + 1 + random(3));
                    spans.push(start, end);
                    at = Math.max(at, end);
                }
                return { spans: Uint32Array.from(spans), ids: new Int32Array(spans.length / 2) };
            };
            const wrong = [];
            for (let round = 0; round < 3000; round++) {
                const [a, b] = [draw(), draw()];
                const cuts = [a, b].map(({ spans }) => new Set(
                    Array.from(spans).filter((end, at) => at % 2 && end > spans[at - 1])));
                const only = [...cuts[0]].filter((cut) => !cuts[1].has(cut)).concat(
                    [...cuts[1]].filter((cut) => !cuts[0].has(cut)));
                const [first] = [...stretchesOf(a, b)].filter(({ differs }) => differs);
                const both = [...cuts[0]].filter((cut) => cuts[1].has(cut) && cut < Math.min(...only));
                const start = Math.max(0, ...both);
                const isRight = only.length ? first?.start === start : first === undefined;
                if (!isRight) wrong.push([[...a.spans], [...b.spans], first]);
            }
            return wrong;
        }"""
    )
    assert wrong == []


# What can go wrong


def test_offline_after_loading(browser: Any, folder: Path) -> None:
    site = Site(folder)
    page = Opened(browser, site.url).goto("#v=bpe&t=Hello")
    page.expect_tokens(TOKENIZERS["bpe"].count("Hello"))
    page.type("Hello again")
    page.offline_ready()
    site.stop()
    for name in BUILTIN:
        page.page.select_option("#vocabulary", name)
        page.type(f"offline with {name}")
        page.expect_tokens(TOKENIZERS[name].count(f"offline with {name}"))
    page.until("location.hash.includes('with+wordpiece')")
    page.page.reload()
    page.expect_tokens(TOKENIZERS["wordpiece"].count("offline with wordpiece"))
    page.page.locator("#sides .piece").nth(1).click()
    page.page.locator("#explain .caption").wait_for()
    errors = [error for error in page.errors if "Failed to load resource" not in error]
    page.context.close()
    assert not errors


def test_a_crash_is_told_and_repaired(opened: Any) -> None:
    page = opened("#v=spm&t=Hello")
    page.expect_tokens(TOKENIZERS["spm"].count("Hello"))
    page.page.workers[0].evaluate("setTimeout(() => { throw new Error('on purpose'); })")
    assert "started again" in page.notice()
    page.type("Hello again")
    page.expect_tokens(TOKENIZERS["spm"].count("Hello again"))
    page.errors[:] = [error for error in page.errors if "on purpose" not in error]


def test_a_worker_that_cannot_start_is_not_started_for_ever(browser: Any, site: Site) -> None:
    page = Opened(browser, site.url, service_workers="block")
    tried: list[str] = []
    page.context.on("requestfailed", lambda request: tried.append(request.url))
    page.context.route("**/ggtok_bg.js", lambda route: route.abort())
    page.goto()
    assert "could not be started" in page.notice()
    for n in range(6):
        page.type(f"text {n}")
        page.page.wait_for_timeout(100)
    page.page.get_by_text("Crash: it could not be started").wait_for()
    assert len(tried) == 3
    page.context.close()


def test_a_site_without_the_package_says_so(browser: Any, tmp_path: Path) -> None:
    assert not build_playground.build(tmp_path / "docs" / "playground", tmp_path / "nothing")
    site = Site(tmp_path)
    page = Opened(browser, site.url).goto()
    assert "was not built here" in page.notice()
    page.context.close()
    site.stop()
    assert not page.errors


def test_the_policy_allows_nothing_from_elsewhere(opened: Any) -> None:
    page = opened()
    policy = " ".join(page.page.get_attribute("meta[http-equiv]", "content").split())
    assert policy.startswith("default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; connect-src")
    assert "connect-src 'self' https:;" in policy
    assert "unsafe-inline" not in policy
    assert not page.page.locator("script:not([src]), style, [style], [onclick]").count()
    refused = page.page.evaluate("fetch('http://example.com/').then(() => false, () => true)")
    assert refused
    page.errors[:] = [error for error in page.errors if "example.com" not in error and "Refused" not in error]


# For everybody


def test_by_keyboard_alone(opened: Any) -> None:
    page = opened("#v=bpe&t=What+is+LoRA%3F")
    page.page.locator("#sides .piece").first.wait_for()
    focused: list[str] = []
    for _ in range(40):
        page.page.keyboard.press("Tab")
        focused.append(page.page.evaluate("document.activeElement.id || document.activeElement.className"))
        if focused[-1].startswith("piece"):
            break
    expected = ["theme", "model", "open", "compare", "vocabulary", "other", "file", "tab-text"]
    expected += ["text", "special", "bos", "share"]
    assert [name for name in focused if name in expected] == expected
    for key in ("ArrowRight", "ArrowRight", "End", "Home", "ArrowRight"):
        page.page.keyboard.press(key)
    assert "is, token 5981" in page.page.evaluate("document.activeElement.getAttribute('aria-label')")
    page.page.keyboard.press("Enter")
    page.page.locator("#explain .caption").wait_for()
    assert page.page.evaluate("document.activeElement.id") == "explain-title"
    page.page.keyboard.press("Home")
    assert page.page.locator("#explain .unit").text_content() == "Cutting into pieces"
    page.page.keyboard.press("Escape")
    assert "is, token 5981" in page.page.evaluate("document.activeElement.getAttribute('aria-label')")


STATES = {
    "first": "",
    "pair": "#v=bpe&w=unigram&t=What+is+LoRA%3F+%F0%9F%91%8B%F0%9F%8F%BD+%E4%BD%A0%E5%A5%BD",
    "asks": "#v=file%3Amine.gguf&t=Hello",
    "bos": "#v=spm&s=1&t=a%3C%2Fs%3Eb",
}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("state", STATES)
def test_axe_finds_nothing(opened: Any, scheme: str, state: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed")
    page = opened(STATES[state], color_scheme=scheme, reduced_motion="reduce")
    page.page.locator("#sides .piece, .notice:visible").first.wait_for()
    if state == "first":
        page.page.locator("#sides .piece").nth(2).click()
        page.page.locator("#explain .caption").wait_for()
    assert not page.errors
    found = axe.Axe().run(page.page).response["violations"]
    assert [(each["id"], [node["target"] for node in each["nodes"]][:3]) for each in found] == []
    page.errors.clear()  # axe tries an inline style, which the policy forbids


@pytest.mark.parametrize("state", STATES)
def test_a_phone_does_not_scroll_sideways(opened: Any, state: str) -> None:
    page = opened(STATES[state], viewport={"width": 390, "height": 844})
    page.page.locator("#sides .piece, .notice:visible").first.wait_for()
    assert page.overflow() == 0
    if state == "first":
        box = page.page.locator("#sides .coloured").first.bounding_box()
        assert box["y"] + box["height"] < 844
    page.type("longword" * 100 + " 👋🏽" * 30 + "\t\t" * 30 + "x" * 300)
    page.page.wait_for_timeout(300)
    assert page.overflow() == 0
    if state != "asks":
        page.type("What is LoRA?")
        page.page.locator("#sides .piece:visible", has_text="RA").first.click()
        page.page.locator("#explain .caption").wait_for()
        assert page.overflow() == 0


def test_the_theme_is_kept_and_shared_with_the_documentation(opened: Any) -> None:
    page = opened(color_scheme="light")

    def is_dark() -> bool:
        paper = page.page.evaluate("getComputedStyle(document.body).backgroundColor")
        return sum(map(int, re.findall(r"\d+", paper)[:3])) < 200

    assert not is_dark()
    page.page.click("#theme")
    assert is_dark()
    assert page.page.evaluate("localStorage.getItem('theme')") == "dark"
    page.page.reload()
    assert is_dark()
