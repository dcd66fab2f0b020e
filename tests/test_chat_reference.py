"""Chat templates as others render them: transformers, and llama.cpp's tables and templates read where they lie."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path
from typing import Any

import llama_cpp_tables as tables
import pytest
from conftest import shared_files
from ggtok import GgtokError, Tokenizer
from ggtok._chat.rendering import Request, Source

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

VARIABLES = {"functions": "[]", "datetime": "today"}
"""Some templates need more than messages."""


def chat(messages: Any, variables: dict[str, Any], special: dict[str, str] = SPECIAL) -> Request:
    variables = dict(variables)
    tools, documents = variables.pop("tools", None), variables.pop("documents", None)
    return Request(messages, tools, documents, variables, special, datetime.now())


def same_as_transformers(template: str, special: dict[str, str]) -> int:
    """Compares every conversation, with and without origins. Returns how many both render."""
    reference = pytest.importorskip("transformers.utils.chat_template_utils")
    rendered = 0
    for messages, tools in CONVERSATIONS.values():
        for prompt in (True, False):
            options = {"tools": tools, "add_generation_prompt": prompt, **VARIABLES}
            try:
                chats = [[dict(message) for message in messages]]
                (expected,), _ = reference.render_jinja_template(chats, chat_template=template, **options, **special)
            except Exception:
                with pytest.raises(GgtokError):
                    chat(messages, options, special).render(Source(template, "t"))
                continue
            conversation = chat(messages, options, special)
            assert conversation.render(Source(template, "t")) == expected
            traced = conversation.trace(Source(template, "t")).text
            assert str.__str__(traced) == expected
            for piece in traced.pieces():
                if "<|im_end|> there" in piece:
                    assert piece.runs[0][1].trusted is not True
            rendered += 1
    return rendered


@pytest.mark.parametrize("text", tables.rows(list(tables.templates().values()), list(tables.templates())))
def test_templates_of_llama_cpp(text: str) -> None:
    assert same_as_transformers(text, SPECIAL) > 0


def test_templates_of_llama_cpp_are_all_there() -> None:
    if not os.environ.get("GGTOK_LLAMA_CPP"):
        pytest.skip(tables.ABSENT)
    assert len(tables.templates()) >= 60
    assert len(tables.jinja_cases()) >= 300
    assert len(tables.chat_cases()) >= 36


@pytest.mark.parametrize("path", shared_files("vocabs/*.gguf"))
def test_templates_of_vocabularies(path: Path) -> None:
    tokenizer = Tokenizer.from_gguf(path)
    found = [text for key, text in tokenizer.metadata.items() if key.startswith("tokenizer.chat_template")]
    if not found:
        pytest.skip("this vocabulary has no chat template")
    for text in found:
        assert same_as_transformers(str(text), SPECIAL) > 0


# llama.cpp's engine is its own. Where it differs from jinja2, ours is jinja2's: the reason for each row.
IMMUTABLE = "lists cannot be changed in the immutable sandbox, which transformers uses"
JINJA_DIFFERENCES = {
    "array.pop() last": IMMUTABLE,
    "array.pop() with index": IMMUTABLE,
    "array.append()": IMMUTABLE,
    "macro with caller": "jinja2 keeps the newlines before what a call block writes",
}


@pytest.mark.parametrize(
    "case", tables.rows(list(tables.jinja_cases()), [f"{n}-{case.name}" for n, case in enumerate(tables.jinja_cases())])
)
def test_cases_of_llama_cpp(case: tables.JinjaCase) -> None:
    conversation = chat([{"role": "user", "content": ""}], case.variables, {})
    try:
        output = conversation.render(Source(case.template, "t"))
        assert str.__str__(conversation.trace(Source(case.template, "t")).text) == output
    except GgtokError as error:
        output = f"error: {error}"
    assert (output != case.expected) == (case.name in JINJA_DIFFERENCES), output


MESSAGES = [
    {"role": "system", "content": "You are a helpful assistant"},
    {"role": "user", "content": "Hello"},
    {"role": "assistant", "content": "Hi there"},
    {"role": "user", "content": "Who are you"},
    {"role": "assistant", "content": "   I am an assistant   "},
    {"role": "user", "content": "Another question"},
]
SYSTEM_MOVED = {
    "mistralai/Mistral-7B-Instruct-v0.2 (NOTE: Old pre-v1 without a system prompt)",
    "google/gemma-7b-it",
    "OrionStarAI/Orion-14B-Chat",
    "Phi-3-mini",
    "Phi-3-medium",
    "yandex/YandexGPT-5-Lite-8B-instruct",
}
"""Templates that do not read a system message: llama.cpp puts it into the first message of the user, we do not."""


@pytest.mark.parametrize("case", tables.rows(list(tables.chat_cases()), [case.name for case in tables.chat_cases()]))
def test_conversations_of_llama_cpp(case: tables.ChatCase) -> None:
    if not case.supported:
        pytest.skip("llama.cpp's own engine does not render this template either")
    messages = MESSAGES + [{"role": role, "content": content} for role, content in case.extra]
    if case.name in SYSTEM_MOVED:
        both = f"{messages[0]['content']}\n{messages[1]['content']}"
        messages = [{"role": "user", "content": both}, *messages[2:]]
    conversation = chat(messages, {"add_generation_prompt": True}, {"bos_token": case.bos, "eos_token": case.eos})
    assert conversation.render(Source(case.template, case.name)) == case.expected.replace("\r\n", "\n")


def test_functions_as_tools() -> None:
    reference = pytest.importorskip("transformers.utils.chat_template_utils")
    from ggtok._chat.schema import schema

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
