"""The playground on a plain static server, opened in a browser: what its tests share, with their fixtures.

Needs Chromium, playwright and the package that `scripts/build_wasm.py` makes; `.ci/playground` has them all.
"""

from __future__ import annotations

import base64
import functools
import http.server
import re
import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import VOCABULARIES

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "scripts"))
import build_playground as build_playground  # noqa: E402

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

needs_package = pytest.mark.skipif(
    not (build_playground.PACKAGE / "core/ggtok.js").exists(), reason="scripts/build_wasm.py has not been run"
)


def vocabulary(name: str) -> bytes:
    return (VOCABULARIES / f"{name}.gguf").read_bytes()


def launched(*arguments: str) -> Iterator[Any]:
    """Chromium, for as long as a fixture lives. Without it the test is skipped."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed")
    with sync_api.sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", *arguments])


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args: object) -> None:
        pass


class Server(http.server.ThreadingHTTPServer):
    def handle_error(self, *args: object) -> None:
        """Says nothing of a browser that closes a connection."""


class Site:
    """The built site, in a folder of a plain static server."""

    def __init__(self, folder: Path) -> None:
        handler = functools.partial(Quiet, directory=str(folder))
        self.server = Server(("127.0.0.1", 0), handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}/docs/playground/"

    def stop(self) -> None:
        self.server.shutdown()
        self.server.server_close()


class Opened:
    """The playground in a browser, and what went wrong in it."""

    def __init__(self, browser: Any, url: str, **settings: Any) -> None:
        self.context = browser.new_context(permissions=["clipboard-read", "clipboard-write"], **settings)
        self.errors: list[str] = []
        self.url = url
        self.context.on("request", lambda request: self.seen(request.url))
        self.page = self.context.new_page()
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("console", lambda message: self.errors.append(message.text))

    def seen(self, url: str) -> None:
        if not url.startswith(self.url):
            self.errors.append(f"request to {url}")

    def goto(self, fragment: str = "") -> Opened:
        self.page.goto("about:blank")
        self.page.goto(self.url + fragment)
        return self

    def type(self, text: str) -> None:
        self.page.fill("#text", text)

    def counts(self, n: int = 0) -> str:
        return str(self.page.locator("#sides .totals").nth(n).text_content())

    def expect_tokens(self, count: int, n: int = 0) -> None:
        pattern = re.compile(rf"^{count:,} tokens?$")
        self.page.locator("#sides .totals").nth(n).locator("strong").filter(has_text=pattern).wait_for()

    def expect_ids(self, expected: list[int]) -> None:
        self.expect_tokens(len(expected))
        shown = "Array.from(document.querySelectorAll('details .an-id'), (id) => id.textContent).join()"
        self.until(f"{shown} === '{','.join(map(str, expected))}'")

    def drop(self, *files: tuple[str, bytes]) -> None:
        """Drops files on the page."""
        given = [[name, base64.b64encode(content).decode()] for name, content in files]
        self.page.evaluate(
            """async (files) => {
                const data = new DataTransfer();
                for (const [name, content] of files) {
                    const response = await Promise.resolve(atob(content));
                    data.items.add(new File([Uint8Array.from(response, (c) => c.charCodeAt(0))], name));
                }
                for (const type of ["dragover", "drop"]) {
                    const event = new DragEvent(type, { dataTransfer: data, bubbles: true, cancelable: true });
                    document.querySelector("#drop").dispatchEvent(event);
                }
            }""",
            given,
        )

    def until(self, condition: str) -> None:
        """Waits until an expression is true. (The page's policy forbids what `wait_for_function` does.)"""
        for _ in range(1000):
            if self.page.evaluate(condition):
                return
            self.page.wait_for_timeout(30)
        raise TimeoutError(condition)

    def notice(self) -> str:
        self.page.locator("#notice").wait_for(state="visible")
        return str(self.page.text_content("#notice p"))

    def overflow(self) -> int:
        return int(self.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))

    def offline_ready(self) -> None:
        """Waits until the service worker has everything, which it gets once the page is used."""
        self.page.evaluate("navigator.serviceWorker.ready")
        self.until("navigator.serviceWorker.controller !== null")
        count = "fetch('files.json').then((found) => found.json()).then((names) => names.length)"
        kept = "caches.open('ggtok-playground').then((cache) => cache.keys()).then((keys) => keys.length)"
        self.until(f"Promise.all([{kept}, {count}]).then(([kept, all]) => kept > all)")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    assert build_playground.build(folder / "docs" / "playground")
    return folder


@pytest.fixture(scope="module")
def site(folder: Path) -> Iterator[Site]:
    site = Site(folder)
    yield site
    site.stop()


@pytest.fixture
def opened(request: pytest.FixtureRequest, browser: Any, site: Site) -> Iterator[Callable[..., Opened]]:
    """Opens the page in a new context. What goes wrong in it fails the test, apart from what its module expects."""
    pages: list[Opened] = []

    def open_page(fragment: str = "", script: str = "", **settings: Any) -> Opened:
        pages.append(Opened(browser, site.url, **settings))
        pages[-1].context.add_init_script(script)
        return pages[-1].goto(fragment)

    yield open_page
    expected = getattr(request.module, "EXPECTED", ())
    for each in pages:
        each.context.close()
        assert [error for error in each.errors if not any(part in error for part in expected)] == []
