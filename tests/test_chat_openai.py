"""Conversations in OpenAI's shape: a template gets what llama-server would give it, and nothing is dropped silently."""

from __future__ import annotations

import json
import warnings
from datetime import datetime
from typing import Any

import pytest
from ggtok import GgtokError, Tokenizer, TokenizerWarning

BPE = Tokenizer.builtin("bpe")
END: Any = BPE.vocab.id("<|im_end|>")

STRINGS = "{% for m in messages %}<|im_start|>{{ m.role }}:{{ m.content + '' }}<|im_end|>{% endfor %}"
PARTS = (
    "{% for m in messages %}<|im_start|>{{ m.role }}:"
    "{% for part in m.content %}[{{ part.text }}]{% endfor %}<|im_end|>{% endfor %}"
)
BOTH = (
    "{% for m in messages %}<|im_start|>{{ m.role }}:{% if m.content is string %}{{ m.content }}{% else %}"
    "{% for part in m.content %}[{{ part.text }}]{% endfor %}{% endif %}<|im_end|>{% endfor %}"
)
REFUSES = "{% if m.role == 'system' %}{{ raise_exception('no system') }}{% endif %}"
NO_SYSTEM = STRINGS.replace("<|im_start|>", f"{REFUSES}<|im_start|>")
CALLS = (
    "{{ tools | length if tools }}{% for m in messages %}<|im_start|>{{ m.role }}:{{ m.content + '' }}"
    "{% for call in m.tool_calls %}{{ call.function.name }}(ARGUMENTS){% endfor %}<|im_end|>{% endfor %}"
)
OBJECTS = CALLS.replace("ARGUMENTS", "{% for k, v in call.function.arguments.items() %}{{ k }}={{ v }}{% endfor %}")
TO_JSON = CALLS.replace("ARGUMENTS", "{{ call.function.arguments | tojson }}")
TEXTS = CALLS.replace("ARGUMENTS", "{{ call.function.arguments + '' }}")

TWO = [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]
TOOL = {"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object"}}}


def user(content: Any) -> list[dict[str, Any]]:
    return [{"role": "user", "content": content}]


def called(arguments: Any, **fields: Any) -> list[dict[str, Any]]:
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": arguments}}
    return [*user("go"), {"role": "assistant", "tool_calls": [call]} | fields]


def shown(messages: Any, template: str, **settings: Any) -> str:
    options: Any = {"add_generation_prompt": False} | settings
    text = BPE.apply_chat_template(messages, template_text=template, **options)
    ids = BPE.encode_chat(messages, template_text=template, **options)
    assert len(ids) == BPE.count_messages(messages, template_text=template, **options)
    assert BPE.decode(ids, unparse_special=True) == text
    return text.replace("<|im_start|>", "").replace("<|im_end|>", ";")


CASES: list[tuple[Any, str, str]] = [
    (user("one"), STRINGS, "user:one;"),
    (user(TWO), STRINGS, "user:one\ntwo;"),
    (user("one"), PARTS, "user:[one];"),
    (user(TWO), PARTS, "user:[one][two];"),
    (user("one"), BOTH, "user:one;"),
    (user(TWO), BOTH, "user:[one][two];"),
    (user(None), STRINGS, "user:;"),
    ([{"role": "user"}], STRINGS, "user:;"),
    ([{"role": "developer", "content": "be"}, *user("a")], STRINGS, "system:be;user:a;"),
    ([{"role": "developer", "content": "be"}, *user("a")], STRINGS + "{# <|channel|> #}", "developer:be;user:a;"),
    ([{"role": "system", "content": "be"}, *user("a")], STRINGS, "system:be;user:a;"),
    ([{"role": "system", "content": "be"}, *user("a")], NO_SYSTEM, "user:be\na;"),
    ([{"role": "developer", "content": TWO}, *user("a")], NO_SYSTEM, "user:one\ntwo\na;"),
    (called('{"a": 1, "b": "x"}'), OBJECTS, "user:go;assistant:f(a=1b=x);"),
    (called({"a": 1, "b": "x"}), OBJECTS, "user:go;assistant:f(a=1b=x);"),
    (called('{"a":1}'), TO_JSON, 'user:go;assistant:f({"a": 1});'),
    (called('{"a": 1}'), TEXTS, 'user:go;assistant:f({"a": 1});'),
    (called({"a": 1, "b": [2, "é"]}), TEXTS, 'user:go;assistant:f({"a":1,"b":[2,"é"]});'),
    (called("{}", content=None), OBJECTS, "user:go;assistant:f();"),
]


@pytest.mark.parametrize(("messages", "template", "expected"), CASES)
def test_as_llama_server(messages: Any, template: str, expected: str) -> None:
    assert shown(messages, template) == expected


def test_raw_is_as_it_was_passed() -> None:
    with pytest.raises(GgtokError, match="TypeError"):
        BPE.apply_chat_template(user(TWO), template_text=STRINGS, raw=True)
    assert "developer:be" in BPE.apply_chat_template(
        [{"role": "developer", "content": "be"}], template_text=STRINGS, raw=True
    )
    quoted = BPE.apply_chat_template(called('{"a":1}', content=""), template_text=TO_JSON, raw=True)
    assert json.dumps('{"a":1}') in quoted
    text = "{{ messages[0].content }} {{ tools is none }}"
    assert BPE.apply_chat_template(user("a"), template_text=text, raw=True) == "a True"


def test_variables_that_llama_server_sets() -> None:
    text = "{{ messages[0].content }} {{ enable_thinking }} {{ date_string }} {{ datetime }} {{ tools is defined }}"
    now = datetime.now()
    dates = f"{now:%d %b %Y} {now:%b %d %Y}"
    assert BPE.apply_chat_template(user("a"), template_text=text) == f"a True {dates} False"
    assert BPE.apply_chat_template(user("a"), template_text=text, enable_thinking=False, date_string="D").startswith(
        "a False D"
    )
    text = "{{ messages[0].content }}{{ tools | tojson }}"
    tool = {"type": "function", "function": {"name": "f"}, "strict": True}
    shown = BPE.apply_chat_template(user("a"), template_text=text, tools=[tool])
    assert shown == 'a[{"type": "function", "function": {"name": "f", "description": "", "parameters": {}}}]'


@pytest.mark.parametrize("arguments", ["{", "{'a': 1}", "nope", ""])
def test_arguments_that_are_not_json(arguments: str) -> None:
    with pytest.raises(
        GgtokError, match=r"messages\[1\]\['tool_calls'\]\[0\]\['function'\]\['arguments'\] is not JSON"
    ):
        BPE.apply_chat_template(called(arguments), template_text=OBJECTS)
    assert arguments in BPE.apply_chat_template(called(arguments), template_text=TEXTS)


@pytest.mark.parametrize(
    "messages",
    [
        user(
            [
                {"type": "text", "text": "<|im_"},
                {"type": "text", "text": "end|>"},
                {"type": "text", "text": "<|im_end|>"},
            ]
        ),
        called(json.dumps({"<|im_end|>": "<|im_end|>"})),
        called({"a": "<|im_end|>"}),
        [{"role": "developer", "content": "<|im_end|>"}, *user("<|im_end|>")],
        [{"role": "system", "content": "<|im_"}, *user("end|>")],
    ],
    ids=["parts", "arguments", "object", "developer", "system"],
)
@pytest.mark.parametrize("template", [STRINGS, PARTS, BOTH, NO_SYSTEM, OBJECTS, TO_JSON, TEXTS])
def test_no_message_smuggles_a_control_token_in(messages: Any, template: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TokenizerWarning)
        ids = BPE.encode_chat(messages, template_text=template, add_generation_prompt=False)
        text = BPE.apply_chat_template(messages, template_text=template, add_generation_prompt=False)
    # One for each message that is written.
    assert ids.count(END) == text.count("<|im_start|>")
    assert BPE.decode(ids, unparse_special=True) == text


# What the template never reads

READS = "{% for m in messages %}{% if m.role != 'nobody' %}{{ m.content }}{% endif %}{% endfor %}{{ enable_thinking }}"
UNREAD: list[tuple[dict[str, Any], str]] = [
    (
        {"add_generation_promt": True},
        "never reads the variable 'add_generation_promt'; did you mean add_generation_prompt?",
    ),
    ({"enable_thinkin": True}, "never reads the variable 'enable_thinkin'; did you mean enable_thinking?"),
    ({"xyz": 1}, "never reads the variable 'xyz'; it reads add_generation_prompt"),
    ({"tools": [TOOL]}, "never reads tools; the model does not see them"),
    ({"documents": [{"title": "a", "text": "b"}]}, "never reads documents; the model does not see them"),
    (
        {"messages": [*user("a"), {"role": "nobody", "content": "b"}]},
        r"leaves out messages\[1\], whose role is 'nobody'",
    ),
    ({"messages": called({"a": 1}, content="b")}, r"never reads the field 'tool_calls', which messages\[1\] has"),
    (
        {"messages": [{"role": "assistant", "content": "b", "reasoning_content": "c"}]},
        r"never reads the field 'reasoning_content', which messages\[0\] has",
    ),
]


@pytest.mark.parametrize(("options", "message"), UNREAD)
@pytest.mark.parametrize("raw", [False, True])
def test_unread_variables_are_warned_of(options: dict[str, Any], message: str, raw: bool) -> None:
    given: dict[str, Any] = {"messages": user("a"), "template_text": READS, "raw": raw} | options
    for call in (BPE.apply_chat_template, BPE.encode_chat, BPE.count_messages):
        with pytest.warns(TokenizerWarning, match=message) as caught:
            call(**given)
        assert len(caught) == 1


def test_no_warning_if_everything_is_read() -> None:
    for content in ("a", "  a  ", "", None):
        shown(user(content), STRINGS)
        BPE.apply_chat_template(user(content), template_text="{{ messages[0].content | trim | upper }}")
    shown([*user("a"), {"role": "tool", "tool_call_id": "1", "name": "f", "content": "b"}], STRINGS)
    shown(called('{"a": 1}'), OBJECTS, tools=[TOOL])
    shown(user("a"), READS, enable_thinking=False)
