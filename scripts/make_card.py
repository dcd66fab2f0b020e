"""Writes what represents the site elsewhere: the card of a shared link, and the icons that are not SVG.

python scripts/make_card.py              # needs playwright and Chromium
python scripts/make_card.py --check      # exit code 1 if the pictures are not current

They are docs/_static/card.png, favicon.ico and touch-icon.png, and tokens.svg for the first page. Browsers on different
machines draw different pixels, so each picture but the last says from which drawing it was made, and `--check` compares
that.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import struct
import sys
import zlib
from html import escape
from pathlib import Path

from ggtok import Tokenizer

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs/_static"
TEXT = "What is LoRA?"
LLAMA_3 = ((128000, "<|begin_of_text|>"), (3923, "What"), (374, " is"), (6621, " Lo"), (5726, "RA"), (30, "?"))
"""The tokens of the text in Llama 3, whose vocabulary is not in the wheel."""
TONES = ("#d3e5f8", "#fae4bf", "#cdecdf", "#ecd8ee")
DARK_TONES = ("#1d3d60", "#573d12", "#154638", "#4a2b50")
CARD_SIZE, TOUCH_SIZE, ICON_SIZE = (1200, 630), (180, 180), (32, 32)
SIGNATURE = b"\x89PNG\r\n\x1a\n"
KEYWORD = b"Source\0"
"""Begins the text in a picture that says what it was drawn from."""


def card() -> str:
    """The card as SVG text: the name, what it does, a text's tokens, and the proof."""
    cases = json.loads((ROOT / "benches/results/exactness.json").read_text(encoding="utf-8"))["cases"]
    compared, differing = (sum(count[key] for count in cases.values()) for key in ("cases", "differing"))
    width, height = CARD_SIZE
    icon = (FOLDER / "icon.svg").read_text(encoding="utf-8").partition(">")[2].removesuffix("</svg>\n")
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">',
        "<style>text { font-family: system-ui, 'DejaVu Sans', sans-serif; fill: #1b2028 } "
        ".mono { font-family: 'DejaVu Sans Mono', monospace; text-anchor: middle }</style>",
        f'<rect width="{width}" height="{height}" fill="#ffffff"/><rect width="{width}" height="14" fill="#4a90d9"/>',
        f'<g transform="translate(72 76) scale(4.6)">{icon}</g>',
        '<text x="244" y="190" font-size="104" font-weight="700">ggtok</text>',
        '<text x="80" y="292" font-size="42">The tokenizer inside your GGUF file, in Python</text>',
    ]
    x = 80.0
    tokenizer = Tokenizer.builtin("bpe")
    for at, id in enumerate(tokenizer.encode(TEXT)):
        face = tokenizer.piece(id).decode().replace(" ", "␣")
        wide = max(36 * len(face), 18 * len(str(id))) + 36
        parts.append(
            f'<rect x="{x:g}" y="348" width="{wide}" height="132" rx="14" fill="{TONES[at % len(TONES)]}"/>'
            f'<text class="mono" x="{x + wide / 2:g}" y="416" font-size="56">{escape(face)}</text>'
            f'<text class="mono" x="{x + wide / 2:g}" y="460" font-size="28">{id}</text>'
        )
        x += wide + 8
    proof = f"{compared:,} recorded answers of llama.cpp compared, {differing:,} differ"
    parts.append(f'<text x="80" y="566" font-size="34" style="fill: #56606b">{proof}</text></svg>')
    return "\n".join(parts)


def tokens() -> str:
    """The tokens of a text with their ids below them, in a light and a dark form."""
    width, wide, rows = 420, 15, [[*LLAMA_3[:1]], [*LLAMA_3[1:]]]
    style = [f".t{at} {{ fill: {tone} }}" for at, tone in enumerate(TONES)]
    dark = [f".t{at} {{ fill: {tone} }}" for at, tone in enumerate(DARK_TONES)]
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} 196" width="{width}" height="196" role="img">',
        "<style>text { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace; "
        f"text-anchor: middle; fill: #1b2028 }} .id {{ font-size: 15px; opacity: 0.75 }} {' '.join(style)} "
        f"@media (prefers-color-scheme: dark) {{ text {{ fill: #e6edf3 }} {' '.join(dark)} }}</style>",
    ]
    number = 0
    for row, top in zip(rows, (2, 100), strict=True):
        x = 2
        for id, text in row:
            face = escape(text.replace(" ", "␣"))
            across = max(wide * len(text), 9 * len(str(id))) + 24
            middle = x + across / 2
            parts.append(
                f'<rect class="t{(number + 3) % 4}" x="{x}" y="{top}" width="{across}" height="90" rx="9"/>'
                f'<text x="{middle:g}" y="{top + 46}" font-size="25" textLength="{wide * len(text)}">{face}</text>'
                f'<text class="id" x="{middle:g}" y="{top + 74}">{id}</text>'
            )
            x, number = x + across + 5, number + 1
    return "\n".join([*parts, "</svg>", ""])


def icon(size: int, ground: str) -> str:
    """The icon in a size, on a ground."""
    svg = (FOLDER / "icon.svg").read_text(encoding="utf-8")
    return svg.replace("<svg ", f'<svg width="{size}" height="{size}" style="background: {ground}" ', 1)


def drawings() -> dict[str, tuple[str, tuple[int, int]]]:
    """What each picture is drawn from, and its size."""
    return {
        "card.png": (card(), CARD_SIZE),
        "touch-icon.png": (icon(TOUCH_SIZE[0], "#ffffff"), TOUCH_SIZE),
        "favicon.ico": (icon(ICON_SIZE[0], "transparent"), ICON_SIZE),
    }


def source_of(picture: bytes) -> bytes:
    """From which drawing a picture was made: its hash."""
    return picture.partition(KEYWORD)[2][:64]


def signed(picture: bytes, svg: str) -> bytes:
    """A PNG picture with the hash of its drawing, before its end."""
    content = b"tEXt" + KEYWORD + hashlib.sha256(svg.encode()).hexdigest().encode()
    chunk = struct.pack(">I", len(content) - 4) + content + struct.pack(">I", zlib.crc32(content))
    return picture[:-12] + chunk + picture[-12:]


def as_ico(picture: bytes, size: int) -> bytes:
    """A PNG picture as the only one of an ICO file."""
    return struct.pack("<HHHBBBBHHII", 0, 1, 1, size, size, 0, 0, 1, 32, len(picture), 22) + picture


def main() -> int:
    """Writes, or with `--check` compares, the pictures."""
    made = drawings()
    if "--check" in sys.argv:
        wanted = {name: hashlib.sha256(svg.encode()).hexdigest().encode() for name, (svg, _) in made.items()}
        paths = {name: FOLDER / name for name in made}
        if (FOLDER / "tokens.svg").read_text(encoding="utf-8") != tokens():
            return 1
        return int(any(not path.exists() or source_of(path.read_bytes()) != wanted[n] for n, path in paths.items()))
    (FOLDER / "tokens.svg").write_text(tokens(), encoding="utf-8")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = os.environ.get("CHROMIUM") or shutil.which("chromium")
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for name, (svg, (width, height)) in made.items():
            page = browser.new_page(viewport={"width": width, "height": height})
            page.set_content(f'<body style="margin: 0; background: transparent; display: grid">{svg}</body>')
            picture = signed(page.screenshot(omit_background=True), svg)
            assert picture.startswith(SIGNATURE)
            (FOLDER / name).write_bytes(as_ico(picture, width) if name.endswith(".ico") else picture)
        browser.close()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
