"""Puts the playground together: the page, the explain view's scripts, and the core as WebAssembly.

    python scripts/build_playground.py FOLDER

The page is `docs/playground`. `scripts/build_wasm.py` makes the package with the core; without it, the page only says
that it was not built. `docs/conf.py` calls this for the site. Any static server will do for the result:
`python -m http.server --directory FOLDER`.
"""

from __future__ import annotations

import html
import json
import re
import shutil
import sys
import zlib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "docs" / "playground"
ICON = ROOT / "docs" / "_static" / "icon.svg"
EXPLAIN = ROOT / "python" / "ggtok" / "lab" / "explain" / "page"
STYLES = (EXPLAIN / "common.css", EXPLAIN / "style.css", SOURCES / "style.css")
"""What the page and the view of steps share, and the own styles of each."""
PACKAGE = ROOT / "target" / "wasm" / "ggtok"
NEEDED = ("*.js", "*.wasm", "core/*", "vocabularies/*.gguf", "LICENSE", "THIRD-PARTY-NOTICES.md")
"""What the page takes of the package."""
PRELOAD = '<link rel="preload" href="ggtok/core/ggtok_bg.wasm" as="fetch" type="application/wasm" crossorigin>'
"""So that the engine is loaded at the same time as the page's scripts."""
BASE = ("base", "verdict")
"""The explain page's scripts that the playground starts with. The others are loaded when steps are first shown."""
EXPORTS = ("el", "hex", "label", "lengthOfCharacter", "listKeys", "plural", "reach", "stretchesOf", "verdictOf")
"""What it takes of them."""


def build(folder: Path, package: Path = PACKAGE) -> bool:
    """Writes the playground into `folder`. False if the package is missing, and with it the core."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(SOURCES, folder)
    shutil.copyfile(ICON, folder / "icon.svg")
    from ggtok.lab.explain.html import SCRIPTS, scripts

    for name, parts, exports in (("base", BASE, EXPORTS), ("explain", SCRIPTS, ("mountTrace",))):
        module = f"{scripts(*parts)}\nexport {{ {', '.join(exports)} }};\n"
        (folder / f"{name}.js").write_text(module, encoding="utf-8")
    common, style, own = (path.read_text(encoding="utf-8") for path in STYLES)
    (folder / "style.css").write_text(common + own, encoding="utf-8")
    of_part = (common + style).replace(":root", ":host")
    (folder / "explain.css").write_text(of_part, encoding="utf-8")
    is_built = (package / "ggtok.js").exists()
    if is_built:
        for path in (path for pattern in NEEDED for path in package.glob(pattern)):
            target = folder / "ggtok" / path.relative_to(package)
            target.parent.mkdir(parents=True, exist_ok=True)
            if path.suffix == ".gguf":
                target.with_suffix(".gguf.deflate").write_bytes(zlib.compress(path.read_bytes(), 9, -15))
            else:
                shutil.copyfile(path, target)
    index = folder / "index.html"
    page = index.read_text(encoding="utf-8")
    values = {"package": "built" if is_built else "missing", "preload": PRELOAD * is_built, **first_paint()}
    index.write_text(re.sub(r"\{\{(\w+)\}\}", lambda match: values[match[1]], page), encoding="utf-8")
    files = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    (folder / "files.json").write_text(json.dumps(files), encoding="utf-8")
    return is_built


def first_paint() -> dict[str, str]:
    """The text that the page starts with, and its tokens as `strip.js` draws them before the engine is there."""
    from ggtok import Tokenizer

    script = (SOURCES / "main.js").read_text(encoding="utf-8")
    found = re.search(r"English: \{ text: (\"[^\"]*\") \}", script)
    assert found, "main.js has no first text"
    text = json.loads(found[1])
    tokenizer = Tokenizer.builtin("bpe")
    ids = tokenizer.encode(text)
    pieces = [html.escape(tokenizer.piece(id).decode()) for id in ids]
    assert "".join(pieces) == html.escape(text), "a token is not a part of the text"
    strip = "".join(f'<span class="piece token-{at % 4}">{piece}</span>' for at, piece in enumerate(pieces))
    list_of_ids = "".join(f'<span class="an-id token-{at % 4}">{id}</span>' for at, id in enumerate(ids))
    count = f'<h3>BPE</h3><p class="totals"><strong>{len(ids)} tokens</strong></p>'
    line = f'<div class="coloured"><div class="text-line">{strip}</div></div>'
    return {"text": html.escape(text), "painted": count + line, "ids": f'<p class="id-list">{list_of_ids}</p>'}


if __name__ == "__main__":
    if not build(Path(sys.argv[1])):
        print("the playground only says that it was not built: scripts/build_wasm.py makes its WebAssembly")
