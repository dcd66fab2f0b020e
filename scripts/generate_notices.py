"""Writes THIRD-PARTY-NOTICES.md: everything that is not ggtok's, in whatever is published, with licences.

python scripts/generate_notices.py
python scripts/generate_notices.py --check      # exit code 1 if the pages are not current

The Rust crates are those that `cargo metadata` resolves for the extension module and for the engine of the JavaScript
package, on any platform: normal dependencies only, because build scripts and procedural macros are not linked. If a
crate offers several licences, the first of `CHOICES` is taken. The texts are the crates' own files. Needs cargo; the
same Cargo.lock gives the same bytes.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
CRATES = [ROOT / "rust" / name for name in ("core", "chat", "train", "explain")]
CORE = CRATES[0]
TEXTS = ROOT / "scripts" / "licences"
CHOICES = ("MIT", "BSD-2-Clause", "BSD-3-Clause", "Zlib", "Apache-2.0", "Unicode-3.0")
FILES = {
    "MIT": r"LICEN[CS]E[-.]MIT.*",
    "BSD-2-Clause": r"LICEN[CS]E([-.]BSD.*)?",
    "BSD-3-Clause": r"LICEN[CS]E([-.]BSD.*)?",
    "Zlib": r"LICEN[CS]E[-.]ZLIB.*",
    "Apache-2.0": r"LICEN[CS]E[-.]APACHE.*",
    "Unicode-3.0": r"LICEN[CS]E[-.]UNICODE.*",
}
"""What the file with the text is called; a lone `LICENSE` is also taken."""

UNICODE = """\
## Unicode data

The character tables (`rust/core/src/text/unicode`) and the character maps that `ggtok.train` compiles are made from
data files of the [Unicode Character Database](https://www.unicode.org/ucd/). Licence: [Unicode-3.0](#unicode-30).
"""

VOCABULARIES = """\
## Embedded vocabularies

`python/ggtok/vocabularies/*.gguf` hold words and parts of words that are frequent in the texts below, and counts or
scores of them, but no text. Each file names its sources under `general.dataset.*`.

| source | licence |
| --- | --- |
| Articles of [Wikipedia](https://www.wikipedia.org) in 17 languages, by their authors | [CC BY-SA 4.0][cc] |
| The standard library of [CPython](https://github.com/python/cpython), Python Software Foundation | [PSF-2.0][psf] |
| Test data of [sentencepiece](https://github.com/google/sentencepiece), Google Inc. | [Apache-2.0](#apache-20) |
| *War and Peace*, *Botchan* and *I Am a Cat*, from Project Gutenberg and Aozora Bunko | public domain |

[cc]: https://creativecommons.org/licenses/by-sa/4.0/
[psf]: https://docs.python.org/3/license.html

The character map in `unigram.gguf` follows the rules that sentencepiece calls `nmt_nfkc` (Apache-2.0, Google Inc.):
NFKC from Unicode data, and which control characters become spaces or vanish.
"""

STANDARD_LIBRARY = """\
## Rust's standard library

The compiled files contain parts of the [Rust standard library](https://github.com/rust-lang/rust), which is
copyright by the Rust Project contributors. Licence: [MIT](#mit) or [Apache-2.0](#apache-20).
"""


def licences(expression: str) -> list[str]:
    """The licences to take from an SPDX expression: all sides of AND, of OR the first of `CHOICES`."""
    taken = []
    for side in re.split(r"\s+AND\s+", expression):
        offered = re.split(r"\s+OR\s+|/", side.strip(" ()"))
        known = [choice for choice in CHOICES if choice in offered]
        if not known:
            raise ValueError(f"no licence of {expression!r} is known: add one to CHOICES, with its file in FILES")
        taken.append(known[0])
    return taken


def linked() -> list[dict[str, Any]]:
    """The crates that the extension module or the engine links, except ggtok's own, by name and version."""
    command = ["cargo", "metadata", "--format-version=1", "--locked", "--features=pyo3/extension-module"]
    metadata = json.loads(subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout)
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    waiting = [key for key, package in packages.items() if package["name"] in ("ggtok-python", "ggtok-wasm")]
    seen = set(waiting)
    while waiting:
        for dependency in nodes[waiting.pop()]["deps"]:
            key = dependency["pkg"]
            is_normal = any(kind["kind"] is None for kind in dependency["dep_kinds"])
            is_macro = any("proc-macro" in target["kind"] for target in packages[key]["targets"])
            if is_normal and not is_macro and key not in seen:
                seen.add(key)
                waiting.append(key)
    found = [packages[key] for key in seen if packages[key]["source"]]
    return sorted(found, key=lambda package: (package["name"], package["version"]))


def text(package: dict[str, Any], licence: str) -> str:
    """A licence's text as a crate has it."""
    folder = Path(package["manifest_path"]).parent
    named = [path for path in sorted(folder.iterdir()) if re.fullmatch(FILES[licence], path.name, re.IGNORECASE)]
    alone = [path for path in sorted(folder.iterdir()) if re.fullmatch(r"LICEN[CS]E(\.\w+)?", path.name, re.IGNORECASE)]
    if not named + alone:
        raise ValueError(f"{package['name']} has no file with the text of {licence}")
    return plain((named or alone)[0].read_text(encoding="utf-8"))


def plain(content: str) -> str:
    """A text without meaningless differences: line ends, blank lines around it, spaces at line ends."""
    return "\n".join(line.rstrip() for line in content.strip().splitlines())


def heading(licence: str) -> str:
    return f"### {licence}"


def fence(content: str) -> str:
    return f"```text\n{content}\n```\n"


def page_of_crate() -> str:
    unicode_text = plain((TEXTS / "Unicode-3.0.txt").read_text(encoding="utf-8"))
    return (
        "# Third-party notices\n\n<!-- Generated by `python scripts/generate_notices.py`. DO NOT EDIT. -->\n\n"
        "The crate ggtok-core holds more than its authors' work. Its dependencies are separate crates.\n\n"
        f"{UNICODE}\n## Texts\n\n{heading('Unicode-3.0')}\n\n{fence(unicode_text)}"
    )


def page() -> str:
    """The page for the wheels, the sdist and the JavaScript package."""
    users: dict[tuple[str, str], list[str]] = defaultdict(list)
    rows = []
    for package in linked():
        name = f"{package['name']} {package['version']}"
        taken = licences(package["license"])
        rows.append(f"| [{name}]({package['repository']}) | {package['license']} | {' and '.join(taken)} |\n")
        for licence in taken:
            users[licence, text(package, licence)].append(name)
    for licence in ("Apache-2.0", "MIT", "Unicode-3.0"):
        own = plain((TEXTS / f"{licence}.txt").read_text(encoding="utf-8"))
        what = {"Apache-2.0": "sentencepiece", "MIT": "Rust's standard library", "Unicode-3.0": "Unicode data"}[licence]
        users[licence, own].insert(0, what)
    sections = []
    for licence in CHOICES:
        texts = sorted((names, content) for (key, content), names in users.items() if key == licence)
        if texts:
            sections.append(f"{heading(licence)}\n")
        sections += [f"{', '.join(names)}:\n\n{fence(content)}" for names, content in texts]
    return (
        "# Third-party notices\n\n<!-- Generated by `python scripts/generate_notices.py`. DO NOT EDIT. -->\n\n"
        "ggtok's own code is under the MIT licence, see LICENSE. This page lists what its wheels, its JavaScript\n"
        "package and its source distribution hold besides.\n\n"
        f"{UNICODE}\n{VOCABULARIES}\n{STANDARD_LIBRARY}\n"
        "## Rust crates\n\nThe extension module in a wheel contains most of these, and the engine of the JavaScript\n"
        "package some of them and wasm-bindgen. The source distribution contains none.\n\n"
        "| crate | its licences | taken |\n| --- | --- | --- |\n"
        + "".join(rows)
        + "\n## Texts\n\n"
        + "\n".join(sections)
    )


def expression() -> str:
    """The SPDX expression for a wheel: MIT, and what its parts need."""
    taken = {licence for package in linked() for licence in licences(package["license"])} | {
        "Apache-2.0",
        "Unicode-3.0",
    }
    return " AND ".join(["MIT", *sorted(taken - {"MIT"})])


def main(arguments: list[str]) -> int:
    licence = (ROOT / "LICENSE").read_text(encoding="utf-8")
    wanted = {
        ROOT / "THIRD-PARTY-NOTICES.md": page(),
        CORE / "THIRD-PARTY-NOTICES.md": page_of_crate(),
        **{crate / "LICENSE": licence for crate in CRATES},
    }
    stale = [path for path, content in wanted.items() if not path.exists() or path.read_text("utf-8") != content]
    if f'license = "{expression()}"' not in (ROOT / "pyproject.toml").read_text(encoding="utf-8"):
        print(f'pyproject.toml must say: license = "{expression()}"', file=sys.stderr)
        return 1
    if arguments == ["--check"]:
        for path in stale:
            print(f"{path.relative_to(ROOT)} is not current: run python scripts/generate_notices.py", file=sys.stderr)
        return int(bool(stale))
    for path in stale:
        path.write_text(wanted[path], encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
