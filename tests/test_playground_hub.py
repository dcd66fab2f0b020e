"""The playground with models of the Hugging Face Hub, which a server here stands in for; and its chats and first paint.

Needs what `test_playground.py` needs, and openssl for the server's certificate.
"""

from __future__ import annotations

import gzip
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ggtok
import playground_browser
import pytest
from conftest import TOKENIZERS, VOCABULARIES
from playground_browser import Opened, Site, launched, vocabulary
from playground_hub import CDN, HUB, OTHER, TOKEN, Hub

pytestmark = [
    playground_browser.needs_package,
    pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed"),
]
folder = playground_browser.folder
site = playground_browser.site
opened = playground_browser.opened
EXPECTED = ("request to https://", "Failed to load resource", "has been blocked by CORS")
"""What the Hub may answer without failing a test."""
NAME = "acme/Tiny-GGUF"
QUANTIZED = f"hf:{NAME}:Q4_K_M"
TEMPLATE = (
    "{% for m in messages %}{% if m.role == 'tool' %}{{ raise_exception('no tools here') }}{% endif %}"
    "<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def with_template(folder: Path) -> bytes:
    path = folder / "chat.gguf"
    ggtok.edit(VOCABULARIES / "bpe.gguf", path, chat_template=TEMPLATE)
    return path.read_bytes()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    server = Hub(tmp_path_factory.mktemp("hub"))
    chat = with_template(tmp_path_factory.mktemp("chat"))
    server.models = {
        NAME: {
            "README.md": b"",
            "tiny-Q4_K_M.gguf": vocabulary("bpe"),
            "tiny-Q8_0.gguf": vocabulary("bpe"),
            "mmproj-tiny.gguf": vocabulary("bpe"),
        },
        "acme/Other-GGUF": {"other.gguf": vocabulary("spm")},
        "acme/Chat-GGUF": {"chat.gguf": chat},
        "acme/empty": {"README.md": b""},
        "acme/projector": {"mmproj-x.gguf": b"GGUF", "README.md": b""},
        "acme/fake": {"fake.gguf": b"<html>not a model</html>" + bytes(3000)},
        "private/own": {"own-Q8_0.gguf": vocabulary("wordpiece")},
    }
    yield server
    server.stop()


@pytest.fixture
def hub(server: Hub) -> Hub:
    server.reset()
    return server


@pytest.fixture(scope="module")
def browser(server: Hub) -> Iterator[Any]:
    yield from launched(*server.arguments())


def name(page: Opened, model: str, button: str = "#open") -> None:
    page.page.fill("#model", model)
    page.page.click(button)


def read(page: Opened) -> None:
    """Waits until the vocabulary is one that was read by its name."""
    page.page.locator("#about").filter(has_text=" read").wait_for()


# Models by name


def test_nothing_is_asked_before_a_model_is_named(opened: Any, hub: Hub) -> None:
    page = opened()
    page.expect_tokens(TOKENIZERS["bpe"].count(page.page.input_value("#text")))
    page.type("another text")
    page.page.select_option("#vocabulary", "spm")
    page.page.select_option("#other", "unigram")
    page.page.click("#tab-chat")
    page.page.locator(".chat .piece").first.wait_for()
    page.page.focus("#model")
    page.page.fill("#model", "a")
    page.offline_ready()
    assert hub.asked == []
    assert page.errors == []


def test_a_model_is_opened_by_its_name(opened: Any, hub: Hub) -> None:
    page = opened("#t=Hello+World")
    name(page, NAME)
    files = page.page.locator("#found button")
    files.first.wait_for()
    assert [text.split(".gguf")[0] for text in files.all_text_contents()] == ["tiny-Q4_K_M", "tiny-Q8_0"]
    assert page.page.evaluate("document.activeElement.textContent").startswith("tiny-Q4_K_M")
    page.page.keyboard.press("Enter")
    page.page.get_by_text("of 800 MB read").wait_for()
    page.expect_ids(TOKENIZERS["bpe"].encode("Hello World"))
    page.until(f"decodeURIComponent(location.hash).startsWith('#v={QUANTIZED}&')")
    assert hub.sent <= 2 << 20
    assert {host for host, _, _ in hub.asked} == {HUB, CDN}
    assert all("authorization" not in headers for _, _, headers in hub.asked)
    assert all("referer" not in headers and "cookie" not in headers for _, _, headers in hub.asked)


@pytest.mark.parametrize(
    "typed",
    [
        f"https://huggingface.co/{NAME}/blob/main/tiny-Q8_0.gguf",
        f"https://huggingface.co/{NAME}/resolve/main/tiny-Q8_0.gguf?download=true",
        f"https://{OTHER}/{NAME}/tiny-Q8_0.gguf",
        f"hf:{NAME}:Q8_0",
        f"{NAME}/tiny-Q8_0.gguf",
        "acme/Other-GGUF",
    ],
)
def test_links_and_full_names_open_at_once(opened: Any, hub: Hub, typed: str) -> None:
    page = opened("#v=wordpiece&t=Hello+World")
    name(page, typed)
    read(page)
    page.expect_ids(TOKENIZERS["spm" if "Other" in typed else "bpe"].encode("Hello World"))


def test_suggestions(opened: Any, hub: Hub) -> None:
    page = opened()
    page.page.locator("#model").press_sequentially("tiny")
    page.page.locator("#found", has_text=NAME).wait_for()
    (path,) = hub.paths()
    assert path.startswith("/api/models?search=tiny&filter=gguf")
    page.page.locator("#found button", has_text=NAME).click()
    page.page.locator("#found button", has_text="tiny-Q8_0").wait_for()
    page.page.keyboard.press("Escape")
    page.page.locator("#found").wait_for(state="hidden")


def test_two_models_side_by_side(opened: Any, hub: Hub) -> None:
    page = opened("#t=Hello+unfathomable+World&k=1")
    name(page, f"{NAME}:Q8_0")
    read(page)
    name(page, "acme/Other-GGUF", "#compare")
    a, b = (TOKENIZERS[each].count("Hello unfathomable World") for each in ("bpe", "spm"))
    percent = round(100 * abs(b / a - 1))
    more = "more" if b > a else "fewer"
    said = rf"needs {b} tokens, {percent} % {more} than {NAME}:Q8_0 with its {a}\."
    page.page.locator(".cost").filter(has_text=re.compile(said)).wait_for()
    page.page.locator("#explain .caption").first.wait_for()
    page.until("location.hash.includes('&w=hf')")
    fragment = page.page.evaluate("location.hash")
    other = opened(fragment)
    other.page.locator(".cost").filter(has_text=re.compile(said)).wait_for()
    other.page.locator("#explain .caption").first.wait_for()
    other.until(f"location.hash === {json.dumps(fragment)}")


def test_recent_models_are_kept_and_forgotten(opened: Any, hub: Hub) -> None:
    page = opened("#t=Hello")
    name(page, f"{NAME}:Q8_0")
    read(page)
    page.page.get_by_role("button", name="Forget these").wait_for()
    hub.asked.clear()
    page.page.goto("about:blank")
    page.goto("#t=Hello")
    page.page.get_by_role("button", name="Tiny-GGUF:Q8_0").click()
    page.page.locator("#about", has_text="kept in this browser").wait_for()
    assert hub.asked == []
    page.page.get_by_role("button", name="Forget these").click()
    page.page.get_by_role("button", name="Forget these").wait_for(state="detached")
    page.goto(f"#v=hf:{NAME}:Q8_0&t=Hello")
    read(page)
    assert hub.asked


def test_a_full_quota_is_said_and_survived(opened: Any, hub: Hub) -> None:
    full = (
        "if (self.Cache) Cache.prototype.put = async () => { throw new DOMException('full', 'QuotaExceededError'); };"
    )
    page = opened("#t=Hello", full)
    name(page, f"{NAME}:Q8_0")
    page.page.get_by_text("no room to keep it").wait_for()
    page.expect_ids(TOKENIZERS["bpe"].encode("Hello"))


def test_a_token_is_for_the_hub_alone(opened: Any, hub: Hub) -> None:
    page = opened("#t=Hello")
    name(page, "private/own")
    assert "no model named private/own, or it is private" in page.notice()
    page.page.fill("#token", TOKEN)
    page.page.click("#open")
    read(page)
    sent = {host for host, _, headers in hub.asked if "authorization" in headers}
    assert sent == {HUB}
    name(page, f"https://{OTHER}/{NAME}/tiny-Q8_0.gguf")
    page.until("document.querySelector('#vocabulary').value.startsWith('https:')")
    assert {host for host, _, headers in hub.asked if "authorization" in headers} == {HUB}
    kept = page.page.evaluate(
        "caches.open('ggtok-models').then((cache) => cache.keys()).then((keys) => keys.map(({url}) => url).join())"
    )
    assert "private" not in kept
    stored = page.page.evaluate("JSON.stringify([localStorage, sessionStorage, document.cookie])")
    assert TOKEN not in stored
    assert TOKEN not in page.page.url


REFUSED = {
    "missing": ("none/such", "no model named none/such"),
    "not a name": ("what is this", "write owner/name"),
    "no file": ("acme/empty", "acme/empty has no GGUF file"),
    "projector": ("acme/projector", "only files that go with a model"),
    "no such tag": (f"{NAME}:Q3_K_S", "has no file for Q3_K_S: it has tiny-Q4_K_M.gguf"),
    "no such file": (f"{NAME}/nothing.gguf", "there is no such file (404)"),
    "not GGUF": ("acme/fake", "is not a GGUF file: it is a web page"),
    "gated": ("gated/model", "accept its terms"),
    "busy": ("busy/model", "had too many requests (429). Try again in 55 seconds"),
    "broken": ("broken/model", "answers with an error (503)"),
    "unreachable": ("https://nowhere.invalid/x/model.gguf", "nowhere.invalid"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refusals_say_what_to_do(opened: Any, hub: Hub, case: str) -> None:
    typed, said = REFUSED[case]
    hub.refusals |= {
        "/api/models/gated/": (403, {"x_error_code": "GatedRepo"}),
        "/api/models/busy/": (429, {"ratelimit": '"api";r=0;t=55'}),
        "/api/models/broken/": (503, {}),
    }
    page = opened("#v=bpe&t=Hello+World")
    page.expect_tokens(TOKENIZERS["bpe"].count("Hello World"))
    name(page, typed)
    page.page.locator("#notice").wait_for(timeout=4000)
    notice = page.notice()
    if case != "unreachable":
        assert said.lower() in notice.lower()
    assert typed.split("/")[-1].split(":")[0] in notice or typed in notice
    assert len(hub.asked) <= 4
    assert page.page.input_value("#text") == "Hello World"
    assert page.page.input_value("#vocabulary") == "bpe"
    page.type("Hello again")
    page.expect_ids(TOKENIZERS["bpe"].encode("Hello again"))


def test_a_busy_hub_is_not_asked_again(opened: Any, hub: Hub) -> None:
    hub.refusals["/"] = (429, {"retry_after": "7"})
    page = opened(f"#v={QUANTIZED}&t=Hello")
    assert "Try again in 7 seconds" in page.notice()
    page.type("Hello again")
    page.page.wait_for_timeout(500)
    assert len(hub.asked) == 1
    hub.refusals.clear()
    page.page.click("#open")
    page.expect_ids(TOKENIZERS["bpe"].encode("Hello again"))


def test_a_server_without_ranges_is_stopped_after_the_head(opened: Any, hub: Hub) -> None:
    hub.has_ranges = False
    page = opened("#t=Hello")
    name(page, f"{NAME}:Q8_0")
    page.page.get_by_text("was stopped after the head").wait_for()
    page.expect_ids(TOKENIZERS["bpe"].encode("Hello"))
    page.page.wait_for_timeout(300)
    assert hub.sent < 50_000_000


def test_a_file_that_ends_early(opened: Any, hub: Hub) -> None:
    hub.cut = 100_000
    page = opened("#t=Hello")
    name(page, f"{NAME}:Q8_0")
    page.page.locator("#notice").wait_for(timeout=4000)
    assert NAME in page.notice()
    assert page.page.input_value("#text") == "Hello"


def test_a_server_that_lies_about_the_size(opened: Any, hub: Hub) -> None:
    hub.wrong_total = 5000
    page = opened("#t=Hello")
    name(page, f"{NAME}:Q8_0")
    assert "contradicts itself" in page.notice()
    name(page, f"https://{OTHER}/{NAME}/tiny-Q8_0.gguf")
    page.until("document.querySelector('#notice p').textContent.startsWith('tiny-Q8_0.gguf')")


def test_a_slow_line_is_said_and_the_text_goes_on(opened: Any, hub: Hub) -> None:
    page = opened("#v=bpe&t=Hello")
    page.expect_tokens(TOKENIZERS["bpe"].count("Hello"))
    hub.delay = 6.0
    name(page, f"{NAME}/tiny-Q8_0.gguf")
    page.page.locator("#opening").filter(has_text=f"{NAME}/tiny-Q8_0.gguf: the server is slow").wait_for(timeout=4000)
    page.type("Hello again")
    page.expect_ids(TOKENIZERS["bpe"].encode("Hello again"))


def test_offline(opened: Any, hub: Hub) -> None:
    page = opened("#v=bpe&t=Hello")
    page.expect_tokens(TOKENIZERS["bpe"].count("Hello"))
    page.context.set_offline(True)
    name(page, NAME)
    page.page.locator("#notice").wait_for(timeout=4000)
    assert "this computer is offline" in page.notice()
    assert NAME in page.notice()


# The first paint


def test_the_first_paint_is_what_the_engine_gives(opened: Any, browser: Any, site: Site) -> None:
    """The tokens in the page's source are those of the strip that replaces them."""
    read = "(all) => all.map((piece) => [piece.textContent, piece.className.trim()])"
    still = Opened(browser, site.url, java_script_enabled=False).goto()
    parts = ("#result {} .piece", "#ids {} .an-id")
    painted = [still.page.eval_on_selector_all(part.format(".painted"), read) for part in parts]
    assert still.page.locator(".painted .piece").first.is_visible()
    still.context.close()
    page = opened()
    page.page.locator("#sides .piece").first.wait_for()
    drawn = [page.page.eval_on_selector_all(part.format("> :not(.painted)"), read) for part in parts]
    assert painted == drawn
    assert len(painted[0]) > 20
    assert page.page.locator(".painted:visible").count() == 0
    assert not page.page.locator("#loading").is_visible()


@pytest.fixture
def visited(browser: Any, site: Site) -> Iterator[tuple[Opened, list[str]]]:
    """The page in a browser that has not seen it, and the files that it asks for."""
    page, asked = Opened(browser, site.url), []
    page.context.on("request", lambda request: asked.append(request.url.partition("playground/")[2] or "index.html"))
    page.goto()
    page.expect_tokens(TOKENIZERS["bpe"].count(page.page.input_value("#text")))
    yield page, asked
    page.context.close()


def test_a_first_visit_loads_little(visited: Any, folder: Path) -> None:
    page, asked = visited
    page.page.evaluate("navigator.serviceWorker.ready")
    page.page.wait_for_timeout(1000)
    read = {name: (folder / "docs/playground" / name).read_bytes() for name in asked}
    # Servers compress what they know, which a vocabulary is not.
    known = (".html", ".js", ".css", ".svg", ".json", ".wasm")
    sizes = {name: len(gzip.compress(data, 9) if name.endswith(known) else data) for name, data in read.items()}
    assert asked.count("ggtok/core/ggtok_bg.wasm") == 1
    assert "ggtok/vocabularies/bpe.gguf.deflate" in asked
    assert not {"explain.js", "chat.js", "ggtok/ggtok_bg.wasm", "ggtok/vocabularies/spm.gguf.deflate"} & {*asked}
    assert sum(sizes.values()) <= 600_000, sizes


def test_the_engine_is_asked_for_before_the_scripts(visited: Any) -> None:
    """So that it is loaded at the same time as them, and not after the worker has started."""
    _, asked = visited
    assert asked.index("ggtok/core/ggtok_bg.wasm") < asked.index("main.js") < asked.index("worker.js")


def test_the_page_names_all_scripts_that_it_starts_with(folder: Path) -> None:
    """So that a browser asks for them at once, and not for each after the one that imports it."""
    folder = folder / "docs/playground"
    needed, waiting = set(), ["main.js"]
    while waiting:
        needed.add(name := waiting.pop())
        found = re.findall(r'^import .*"\./(.*)";', (folder / name).read_text(encoding="utf-8"), re.MULTILINE)
        waiting += set(found) - needed
    page = (folder / "index.html").read_text(encoding="utf-8")
    assert set(re.findall(r'modulepreload" href="(.*?)"', page)) == needed


def test_ids_are_copied_in_three_forms(opened: Any) -> None:
    ids = TOKENIZERS["bpe"].encode("Naïve is")
    page = opened("#v=bpe&t=Na%C3%AFve+is")
    page.expect_ids(ids)

    def copied(name: str) -> str:
        page.page.get_by_role("button", name=name).click()
        page.page.get_by_role("button", name="Copied").wait_for()
        page.page.get_by_role("button", name=name).wait_for()
        return str(page.page.evaluate("navigator.clipboard.readText()"))

    assert copied("Copy ids") == " ".join(map(str, ids))
    assert json.loads(copied("as JSON")) == ids
    exec(copied("as Python"), {})
    page.type("")
    page.until("Array.from(document.querySelectorAll('.id-buttons button')).filter((b) => b.disabled).length === 3")


# Chats

MESSAGES = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "What is <|im_end|> LoRA? 🦙"},
    {"role": "assistant", "content": "Two small matrices."},
    {"role": "user", "content": "Why?"},
]


def paste(page: Opened, body: Any) -> None:
    page.page.locator("#panel-chat details").evaluate("(details) => (details.open = true)")
    page.page.fill("[aria-label='Request body']", json.dumps(body))
    page.page.get_by_role("button", name="Use it").click()


def chat_page(opened: Any, fragment: str) -> Opened:
    page: Opened = opened(fragment)
    page.page.locator("#sides .piece").first.wait_for()
    page.page.click("#tab-chat")
    page.page.locator(".chat .piece").first.wait_for()
    return page


def chat_is(page: Opened, expected: Any) -> None:
    """Waits until the text and the ids are those of the wheel."""
    ids = ",".join(map(str, expected.ids))
    page.until(f"Array.from(document.querySelectorAll('.chat .an-id'), (id) => id.textContent).join() === '{ids}'")
    parts = ".chat .piece:not(.byte):not(.added), .chat .of, .chat .gap-text"
    text = "".join(page.page.locator(parts).all_text_contents()).replace("↵", "")
    assert text == expected.text


def test_a_chat_is_what_the_wheel_says(opened: Any, hub: Hub, tmp_path: Path) -> None:
    tok = ggtok.Tokenizer.from_gguf(with_template(tmp_path))
    page = chat_page(opened, "#v=hf:acme/Chat-GGUF&t=Hello")
    paste(page, {"messages": MESSAGES})
    expected = tok.encode_chat(MESSAGES, return_spans=True)
    chat_is(page, expected)
    costs = page.page.locator(".turn .about").all_text_contents()
    assert costs == [f"{span[1] - span[0]} tokens" for span in expected.message_spans if span]
    control = page.page.locator(".chat .special").all_text_contents()
    assert control.count("<|im_end|>") == len(MESSAGES)

    page.page.fill("[aria-label='Message 4']", "Why not?")
    changed = [*MESSAGES[:3], {"role": "user", "content": "Why not?"}]
    chat_is(page, tok.encode_chat(changed, return_spans=True))
    page.page.uncheck("#panel-chat [type=checkbox]")
    chat_is(page, tok.encode_chat(changed, return_spans=True, add_generation_prompt=False))


def test_a_budget_and_a_mask(opened: Any, hub: Hub, tmp_path: Path) -> None:
    tok = ggtok.Tokenizer.from_gguf(with_template(tmp_path))
    page = chat_page(opened, "#v=hf:acme/Chat-GGUF&t=Hello")
    paste(page, MESSAGES)
    expected = tok.encode_chat(MESSAGES, return_spans=True)
    chat_is(page, expected)
    page.page.fill("#panel-chat [type=number]", str(len(expected.ids) - 1))
    page.until("document.querySelectorAll('.turn.left-out').length === 2")
    spans = [span for span in expected.message_spans if span]
    first, last = spans[1][0], spans[2][1]
    assert page.page.locator(".chat .piece.left-out").count() == last - first
    page.page.select_option("#panel-chat .flags select", "turn")
    unmasked = sum(not each for each in expected.assistant_mask)
    page.until(f"document.querySelectorAll('.chat .unmasked').length === {unmasked}")


def test_a_template_that_fails_is_said(opened: Any, hub: Hub) -> None:
    page = chat_page(opened, "#v=hf:acme/Chat-GGUF&t=Hello")
    paste(page, [{"role": "tool", "content": "x"}])
    page.page.locator("#panel-chat .notice").filter(has_text="no tools here").wait_for(timeout=4000)
    assert "acme/Chat-GGUF" in page.page.text_content("#panel-chat .notice")
    assert page.page.input_value("[aria-label='Message 1']") == "x"
    page.page.select_option("[aria-label='Role of message 1']", "user")
    page.page.locator("#panel-chat .notice").wait_for(state="hidden")
    paste(page, {"no": "messages"})
    page.page.locator("#panel-chat .notice").filter(has_text="no list of messages").wait_for()
    page.page.fill("[aria-label='Request body']", "{")
    page.page.get_by_role("button", name="Use it").click()
    page.page.locator("#panel-chat .notice").filter(has_text="not the body of a request").wait_for()


def test_a_file_without_a_template_takes_chatml(opened: Any, hub: Hub) -> None:
    page = chat_page(opened, "#v=wordpiece&t=Hello")
    page.page.get_by_text("no chat template, so ChatML is used").wait_for()
    paste(page, MESSAGES)
    chat_is(page, TOKENIZERS["wordpiece"].encode_chat(MESSAGES, return_spans=True, template="chatml"))


# Right to left


def test_sentences_stay_left_to_right(opened: Any, hub: Hub) -> None:
    """Only strips have the text's direction, and words keep their order in them."""
    text = "مرحبا بالعالم 2024 hello world"
    page = opened("#v=bpe&w=unigram&t=" + text)
    page.page.locator(".judgement").filter(has_text="tokens").wait_for()
    direction = "(nodes) => nodes.map((node) => getComputedStyle(node).direction)"
    assert set(page.page.eval_on_selector_all(".cost, .judgement, h3, .totals", direction)) == {"ltr"}
    assert set(page.page.eval_on_selector_all("#text, .both", direction)) == {"rtl"}
    places = page.page.eval_on_selector_all(
        ".stretch", "(all) => all.map((node) => [node.textContent, node.getBoundingClientRect().left])"
    )
    left = {part: min(place for found, place in places if part in found) for part in ("مرحبا", "2024", "he", "wor")}
    assert left["مرحبا"] > left["2024"] > left["wor"] > left["he"]
