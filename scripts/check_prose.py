"""Checks what can be checked about pages without reading them: links, line lengths, openings and endings.

python scripts/check_prose.py

Pages are the Markdown files at the top and in `docs`. Examples that run are tests: `tests/test_docs.py`.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SITE = "https://ggtok.readthedocs.io/en/latest/"
FILES = re.compile(r"https://(?:github\.com/ggtok/ggtok/blob|raw\.githubusercontent\.com/ggtok/ggtok)/main/(.+)")
CODE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
CODE_BUT_DIRECTIVES = re.compile(r"^```(?!\{).*?^```$", re.MULTILINE | re.DOTALL)
GENERATED_BLOCKS = re.compile(r"<!-- (\w+):begin -->.*?<!-- \1:end -->", re.DOTALL)
MOST_COLUMNS = 120
HEADINGS_MADE_LATER = {"cli", "trace", "trace-trie"}
"""Pages whose own links lead to headings that are made while the site is built."""
WITHOUT_NEXT_STEP = {"index", "changes", "contributing"}
ADDRESSES = """
adapt adapters api/adapters api/compare api/corpus api/errors api/index api/results api/tokenizer api/traces api/types
api/vocabulary architecture batches changes chat check cli coming-from/index coming-from/llama-cpp
coming-from/llama-cpp-python coming-from/sentencepiece coming-from/tiktoken coming-from/tokenizers contributing
convert corpus corpus-engines corpus-formats corpus-scale count decode deviations edit encode evaluate experiments
explain how/bpe how/detokenizing how/index how/plamo2 how/rwkv how/special-tokens how/spm how/unigram how/wordpiece
how/xcda index install maintaining models offsets open parts performance quickstart releases releasing run rust security
supported trace train verify vocabularies vocabulary why
"""
"""Pages that the site has had. Others link to them."""


class Page:
    """A page with what its checks need."""

    def __init__(self, root: Path, path: Path) -> None:
        self.root = root
        self.path = path
        self.text = path.read_text(encoding="utf-8")
        self.name = path.relative_to(root).as_posix()
        self.on_site = path.relative_to(root / "docs").with_suffix("").as_posix() if "docs/" in self.name else None
        self.is_generated = "DO NOT EDIT" in self.text

    def target(self, link: str) -> Path | None:
        """The file that a link leads to; None if it leads out of the project."""
        if link.startswith(SITE):
            file = self.root / "docs" / re.sub(r"(^|/)$", r"\1index.html", link.removeprefix(SITE))
            return file if file.exists() else file.with_suffix(".md")
        if found := FILES.fullmatch(link):
            return self.root / found[1]
        return None if re.match(r"https?:", link) else self.path.parent / link

    def problems(self) -> Iterator[str]:
        text = CODE.sub("", self.text)
        links = re.findall(r"\]\(([^)#\s]+)", text) + re.findall(r'(?:src|srcset|href)="([^"#]+)"', text)
        for link in links:
            file = self.target(link)
            if file and not file.exists():
                yield f"{link} leads nowhere"
        for link, heading in re.findall(r"\]\(([^)#\s]*)#([^)\s]+)\)", CODE_BUT_DIRECTIVES.sub("", self.text)):
            file = (self.target(link) or self.root).resolve() if link else self.path
            is_page = file.suffix == ".md" and file.is_relative_to(self.root / "docs") and file.exists()
            if is_page and self.path.stem not in HEADINGS_MADE_LATER and heading not in headings(file):
                yield f"{link}#{heading} leads to no heading"
        if self.name == "README.md":
            for link in re.findall(r"\]\(([^)]+)\)", self.text):
                if not link.startswith(("https://", "#")):
                    yield f"{link} is relative, and a package index has no other files"
        if not self.is_generated:
            yield from self._written()
        if self.on_site and self.on_site not in WITHOUT_NEXT_STEP and not re.match(r"api/(?!index)", self.on_site):
            body = re.sub(r"\n```\{toctree\}.*?^```$", "", self.text, flags=re.MULTILINE | re.DOTALL)
            if not re.search(r"\n\nNext: [^\n]*\]\([^\n]+(\n[^\n]+)*\n*$", body):
                yield "does not end with the next step"

    def _written(self) -> Iterator[str]:
        """Problems of a page that people write."""
        folders = ("", "rust/core/src", "tests", "benches/results", "docs")
        for name in re.findall(r"`((?:\w+/)*\w+\.(?:rs|py|json|svg|md))`", self.text):
            if not any((self.root / folder / name).exists() for folder in folders):
                yield f"names the file {name}, which does not exist"
        for line in GENERATED_BLOCKS.sub("", CODE.sub("", self.text)).splitlines():
            if len(line) > MOST_COLUMNS and not line.startswith("|"):
                yield f"has a line of {len(line)} columns: {line[:40]}..."


def headings(page: Path) -> set[str]:
    """The anchors of a page's headings, as the site makes them."""
    titles = re.findall(r"^#+ (.*)$", CODE.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def old_addresses(root: Path) -> Iterator[str]:
    """Addresses of the site that would no longer lead somewhere."""
    moved = json.loads((root / "docs/moved.json").read_text(encoding="utf-8"))
    for address in ADDRESSES.split():
        page, _, heading = moved.get(address, f"{address}.html").partition("#")
        file = (root / "docs" / page).with_suffix(".md")
        if not file.exists() or (heading and heading not in headings(file)):
            yield f"docs: the address {address} leads nowhere"
        if (address in moved) == (root / f"docs/{address}.md").exists():
            yield f"docs: {address} must be a page or have a row in moved.json, and not both"


def openings(root: Path) -> Iterator[str]:
    """Source files that do not open with a sentence."""
    opening = re.compile(r'(//! |""")\S[^\n]*(\n(//! )?[^\s/][^\n]*)*?\.(\s|""")')
    for path in [*root.glob("rust/*/src/**/*.rs"), *root.glob("python/ggtok/**/*.py")]:
        if not opening.match(path.read_text(encoding="utf-8")):
            yield f"{path.relative_to(root)} does not open with a sentence"


def workflows(root: Path) -> Iterator[str]:
    """Workflows whose actions are not pinned, or that may do more than they need."""
    for path in sorted(root.glob(".github/workflows/*.yml")):
        text, name = path.read_text(encoding="utf-8"), path.name
        for action in re.findall(r"uses: *(.*)", text):
            if not re.fullmatch(r"[\w.-]+/[\w./-]+@[0-9a-f]{40} # v[\d.]+", action):
                yield f"{name}: {action} is not pinned to a commit"
        if not re.search(r"^permissions: \{\}$", text, re.MULTILINE):
            yield f"{name}: has permissions for all jobs"
        if not text.count("runs-on:") == text.count("timeout-minutes:") == text.count("    permissions:\n"):
            yield f"{name}: a job lacks timeout-minutes or permissions"
        if text.count("actions/checkout@") != text.count("persist-credentials: false"):
            yield f"{name}: a checkout keeps its credentials"
        if "secrets." in text:
            yield f"{name}: reads secrets"


def problems(root: Path) -> Iterator[str]:
    """All problems, one line each."""
    for path in sorted([*root.glob("*.md"), *root.glob("docs/**/*.md")]):
        page = Page(root, path)
        yield from (f"{page.name}: {problem}" for problem in page.problems())
    lines = (root / "CHANGELOG.md").read_text(encoding="utf-8").splitlines()
    if next(line for line in lines if line.startswith("## ")) != "## Unreleased":
        yield "CHANGELOG.md: the first section must be Unreleased"
    yield from old_addresses(root)
    yield from openings(root)
    yield from workflows(root)


if __name__ == "__main__":
    found = list(problems(ROOT))
    print("\n".join(found) or "prose: no problems")
    sys.exit(bool(found))
