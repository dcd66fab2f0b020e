"""ggtok's chats beside llama-server's recorded answers: 60 made-up requests for each template of `tests/templates`.

`tests/templates/README.md` says how they were recorded.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from differential.chat_sides import Ours, Template
from differential.chats import Run, arguments, compared, shrink

FILE = Path(__file__).parent / "data" / "chats.jsonl.gz"
TEMPLATES = Path(__file__).parent / "templates"


def test_the_same_as_llama_server(record_property: Callable[[str, object], None]) -> None:
    tally = compared(arguments(["--replay", str(FILE), "--ours", "ggtok"]))
    report = tally.report(examples=10)
    print(report)
    record_property("summary", report.splitlines()[-1])
    assert not tally.causes, report
    assert not tally.unloaded_here, report
    assert tally.compared > 2000
    assert min(tally.agreed["both render"] / 5, tally.agreed["both refuse"]) > 300


def recorded() -> list[dict[str, Any]]:
    """The lines about templates."""
    with gzip.open(FILE, "rt", encoding="utf-8") as file:
        return [line for line in map(json.loads, file) if "greeting" in line]


def test_the_recorded_templates_are_those_in_the_tree() -> None:
    texts = {line["template"]: line["text"] for line in recorded()}
    assert texts == {path.stem: path.read_text("utf-8") for path in TEMPLATES.glob("*.jinja")}


class Shouting(Ours):
    """A fault: what asks for an answer has other letters."""

    def ask(self, template: Template, body: Any, now: int) -> dict[str, Any]:
        """Returns a text that differs, or an error in place of a text."""
        answer = super().ask(template, body, now)
        if "tools" in body:
            return {"error": "no tools today"} if "prompt" in answer else answer
        return {name: text.replace("<start_of_turn>model", "<start_of_turn>MODEL") for name, text in answer.items()}


def test_a_fault_is_found() -> None:
    run = Run(arguments(["--replay", str(FILE), "--only", "stock-gemma", "--ours", "ggtok"]))
    run.ours = Shouting()
    run.replay()
    assert run.tally.causes["the text differs"] > 5
    assert run.tally.causes["ours refuses"] > 1
    report = run.tally.report(examples=5)
    assert "+'<start_of_turn>MODEL\\n'" in report
    assert "ours refuses: no tools today" in report


def test_a_request_is_shrunk() -> None:
    body = {"messages": [{"role": "user", "content": "Hi"}, {"role": "tool", "content": "a long text"}], "stream": True}
    small = shrink(body, lambda some: any("x" in each.get("content", "") for each in some.get("messages", ())), 600)
    assert small == {"messages": [{"content": "x"}]}
