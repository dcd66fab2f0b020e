"""Puts the playground together: the page, the explain view's scripts, and the core as WebAssembly.

    python scripts/build_playground.py FOLDER

The page is `docs/playground`. `scripts/build_wasm.py` makes the package with the core; without it, the page only says
that it was not built. `docs/conf.py` calls this for the site. Any static server will do for the result:
`python -m http.server --directory FOLDER`.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "docs" / "playground"
ICON = ROOT / "docs" / "_static" / "icon.svg"
EXPLAIN = ROOT / "python" / "ggtok" / "lab" / "explain" / "page"
PACKAGE = ROOT / "target" / "wasm" / "ggtok"
NEEDED = ("*.js", "*.wasm", "vocabularies/*.gguf", "LICENSE", "THIRD-PARTY-NOTICES.md")
"""What the page takes of the package."""
EXPORTS = ("compareCuts", "el", "hex", "label", "lengthOfCharacter", "mountTrace", "plural", "verdictOf")
"""What it takes of the explain page's scripts."""


def build(folder: Path, package: Path = PACKAGE) -> bool:
    """Writes the playground into `folder`. False if the package is missing, and with it the core."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(SOURCES, folder)
    shutil.copyfile(ICON, folder / "icon.svg")
    (folder / "explain.js").write_text(explain_module(), encoding="utf-8")
    style = (EXPLAIN / "style.css").read_text(encoding="utf-8")
    (folder / "explain.css").write_text(style.replace(":root", ":host"), encoding="utf-8")  # for a part of a page
    is_built = (package / "ggtok.js").exists()
    if is_built:
        for path in (path for pattern in NEEDED for path in package.glob(pattern)):
            target = folder / "ggtok" / path.relative_to(package)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
    index = folder / "index.html"
    page = index.read_text(encoding="utf-8")
    index.write_text(page.replace("{{package}}", "built" if is_built else "missing"), encoding="utf-8")
    files = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    (folder / "files.json").write_text(json.dumps(files), encoding="utf-8")
    return is_built


def explain_module() -> str:
    """The scripts of the explain page as a module."""
    from ggtok.lab.explain.html import SCRIPTS, scripts

    return f"{scripts(*SCRIPTS)}\nexport {{ {', '.join(EXPORTS)} }};\n"


if __name__ == "__main__":
    if not build(Path(sys.argv[1])):
        sys.exit(f"{PACKAGE} is missing: run python scripts/build_wasm.py first")
