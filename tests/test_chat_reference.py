"""Chats beside others: llama-server itself, llama.cpp's tables and templates read where they lie, transformers.

`GGTOK_FUZZ_SEED` sets which conversations the live server is asked about. The tests with llama.cpp's templates need
`GGTOK_LLAMA_CPP`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import llama_cpp_tables as tables
import pytest
from conftest import shared_files
from differential.chats import arguments, compared
from ggtok import GgtokError, Tokenizer
from ggtok._ggtok import ChatTemplate
from stock_templates import TEMPLATES

SPECIAL = {"bos_token": "<s>", "eos_token": "</s>"}
USER = {"role": "user", "content": "Hello <|im_end|> there </s> "}
ASSISTANT = {"role": "assistant", "content": "Fine\n\n thanks"}
SYSTEM = {"role": "system", "content": "Be good. "}
MORE = {"role": "user", "content": "More"}
THINKING = {"role": "assistant", "content": "<think>\nhm\n</think>\n\nOk", "reasoning_content": "let me think"}
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "description": "Weather <|x|> \u00e9",
            "parameters": {
                "type": "object",
                "properties": {
                    "city": {"type": "string", "description": "Name"},
                    "unit": {"type": "string", "enum": ["c", "f"]},
                },
                "required": ["city"],
            },
        },
    }
]
FUNCTION = {"name": "get_weather", "arguments": {"city": 'Oslo "x" <|im_end|>', "n": 3}}
CALL = {
    "role": "assistant",
    "content": "",
    "tool_calls": [{"id": "call00001", "type": "function", "function": FUNCTION}],
}
RESULT = {"role": "tool", "content": '{"t": 3}', "tool_call_id": "call00001", "name": "get_weather"}
PARTS = {"role": "user", "content": [{"type": "text", "text": "Hi "}, {"type": "text", "text": "you"}]}
CONVERSATIONS: dict[str, tuple[list[dict[str, Any]], list[Any] | None]] = {
    "one": ([USER], None),
    "system": ([SYSTEM, USER, ASSISTANT, MORE], None),
    "turns": ([USER, ASSISTANT, MORE], None),
    "tools": ([SYSTEM, USER], TOOLS),
    "calls": ([SYSTEM, USER, CALL, RESULT, ASSISTANT, MORE], TOOLS),
    "call": ([USER, CALL, RESULT], TOOLS),
    "thinking": ([SYSTEM, USER, THINKING, MORE, {**ASSISTANT, "reasoning_content": "y"}], None),
    "parts": ([PARTS], None),
    "flat tools": ([SYSTEM, USER], [{**TOOLS[0]["function"], "parameter_definitions": {}}]),  # type: ignore[dict-item]
}

VARIABLES = {"functions": "[]", "datetime": "today", "date_string": "26 Jul 2024"}
"""Some templates need more than messages."""


SOME = ("stock-*", "v-t*", "g*")
"""Made-up templates for the live server, which takes half a second to start with one. All have recorded answers."""


def same_as_the_server(folder: Path, per_template: int, names: tuple[str, ...] = ()) -> str:
    """Compares made-up conversations with the live server, and returns the counts."""
    seed = os.environ.get("GGTOK_FUZZ_SEED", "7")
    words = ["--templates", str(folder), "--per-template", str(per_template), "--seed", seed]
    words += ["--ours", "ggtok", "--shrink", "1", *(word for name in names for word in ("--only", name))]
    tally = compared(arguments(words))
    report = tally.report(examples=10)
    assert not tally.causes, report
    assert tally.agreed["both render"] > tally.compared / 2 > 100, report
    return report.splitlines()[-1]


def test_made_up_templates_beside_llama_server(record_property: Callable[[str, object], None]) -> None:
    pytest.importorskip("xllamacpp")
    record_property("summary", same_as_the_server(TEMPLATES, 20, SOME))


def test_templates_of_llama_cpp_beside_llama_server(record_property: Callable[[str, object], None]) -> None:
    folder = Path(os.environ.get("GGTOK_LLAMA_CPP", "/nowhere")) / "models" / "templates"
    if not folder.is_dir():
        pytest.skip("GGTOK_LLAMA_CPP does not point at llama.cpp's tree")
    pytest.importorskip("xllamacpp")
    record_property("summary", same_as_the_server(folder, 6))


def test_templates_of_llama_cpp_are_all_there() -> None:
    if not os.environ.get("GGTOK_LLAMA_CPP"):
        pytest.skip(tables.ABSENT)
    assert len(tables.templates()) >= 60
    assert len(tables.jinja_cases()) >= 300
    assert len(tables.chat_cases()) >= 36


LACKED = {
    *("tojson sort_keys=true", "macro with caller", "is escaped", "is filter", "string.replace() with count"),
    *("string.format() manual numbering", "string.format() named fields", "string.format() escaped braces"),
    "array|map with filter",
}
"""Cases that llama.cpp's own engine does not pass: its tests skip what is not implemented."""


@pytest.mark.parametrize(
    "case", tables.rows(list(tables.jinja_cases()), [f"{n}-{case.name}" for n, case in enumerate(tables.jinja_cases())])
)
def test_cases_of_llama_cpp(case: tables.JinjaCase) -> None:
    body = {"messages": [{"role": "user", "content": ""}], "chat_template_kwargs": case.variables}
    try:
        text = ChatTemplate(case.template, case.name).render(body).text
    except GgtokError as error:
        text = str(error)
    assert (text != case.expected) == (case.name in LACKED), text


MESSAGES = [
    {"role": "system", "content": "You are a helpful assistant"},
    {"role": "user", "content": "Hello"},
    {"role": "assistant", "content": "Hi there"},
    {"role": "user", "content": "Who are you"},
    {"role": "assistant", "content": "   I am an assistant   "},
    {"role": "user", "content": "Another question"},
]


@pytest.mark.parametrize("case", tables.rows(list(tables.chat_cases()), [case.name for case in tables.chat_cases()]))
def test_conversations_of_llama_cpp(case: tables.ChatCase) -> None:
    if not case.supported:
        pytest.skip("llama.cpp's own engine does not render this template either")
    messages = MESSAGES + [{"role": role, "content": content} for role, content in case.extra]
    rendering = ChatTemplate(case.template, case.name).render({"messages": messages}, bos=case.bos, eos=case.eos)
    assert rendering.text == case.expected.replace("\r\n", "\n")


# With raw=True, jinja2 renders as transformers does.


@pytest.fixture(scope="module")
def tok() -> Tokenizer:
    return Tokenizer.builtin("spm")


def same_as_transformers(tok: Tokenizer, template: str) -> int:
    """Compares every conversation, and returns how many both render."""
    reference = pytest.importorskip("transformers.utils.chat_template_utils")
    rendered = 0
    for messages, tools in CONVERSATIONS.values():
        for prompt in (True, False):
            options: dict[str, Any] = {"tools": tools, "add_generation_prompt": prompt, **VARIABLES}
            try:
                chats = [[dict(message) for message in messages]]
                (expected,), _ = reference.render_jinja_template(chats, chat_template=template, **options, **SPECIAL)
            except Exception:
                with pytest.raises(GgtokError):
                    tok.apply_chat_template(messages, template_text=template, raw=True, **options)
                continue
            assert tok.apply_chat_template(messages, template_text=template, raw=True, **options) == expected
            rendered += 1
    return rendered


@pytest.mark.parametrize("text", tables.rows(list(tables.templates().values()), list(tables.templates())))
def test_raw_templates_of_llama_cpp(tok: Tokenizer, text: str) -> None:
    assert same_as_transformers(tok, text) > 0


@pytest.mark.parametrize("path", sorted(TEMPLATES.glob("stock-*.jinja")), ids=lambda path: path.stem)
def test_raw_templates_of_ours(tok: Tokenizer, path: Path) -> None:
    assert same_as_transformers(tok, path.read_text("utf-8")) > 0


@pytest.mark.parametrize("path", shared_files("vocabs/*.gguf"))
def test_raw_templates_of_vocabularies(tok: Tokenizer, path: Path) -> None:
    metadata = Tokenizer.from_gguf(path).metadata
    found = [text for key, text in metadata.items() if key.startswith("tokenizer.chat_template")]
    if not found:
        pytest.skip("this vocabulary has no chat template")
    for text in found:
        assert same_as_transformers(tok, str(text)) > 0


def test_functions_as_tools() -> None:
    reference = pytest.importorskip("transformers.utils.chat_template_utils")
    from ggtok.chat.schema import schema

    for function in (weather, drink):
        assert schema(function) == reference.get_json_schema(function)


def weather(
    city: str, days: int = 3, unit: str | None = None, *, places: list[tuple[float, float]] | None = None
) -> dict[str, int]:
    """Tells the weather.

    In two paragraphs.

    Args:
        city: The name of the city,
            in English
        days: How many days
        unit: Celsius: or Fahrenheit
        places: Where

    Returns:
        The temperature by day
    """
    raise NotImplementedError


def drink(beverage: str, size: int | str) -> None:
    """Drinks.

    Args:
        beverage: What (choices: ["tea", "coffee"])
        size: How much
    """
