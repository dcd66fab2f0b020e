"""Conversations in OpenAI's shape: a template gets what llama-server gives it, and nothing is dropped silently.

The answers are those of llama-server b11549 (`/apply-template`), recorded.
"""

from __future__ import annotations

import json
import warnings
from typing import Any

import pytest
from ggtok import ChatRequestError, Tokenizer, TokenizerWarning

BPE = Tokenizer.builtin("bpe")
END: Any = BPE.vocab.id("<|im_end|>")

PROMPT = "{% if add_generation_prompt %}<|im_start|>assistant:{% endif %}"
MESSAGE = "<|im_start|>{{ m.role }}:CONTENT<|im_end|>"
LOOP = f"{{% for m in messages %}}{MESSAGE}{{% endfor %}}{PROMPT}"
ITEMS = "{% for part in m.content %}[{{ part.text }}]{% endfor %}"
CALL = "{% for call in m.tool_calls %}<call>{{ call.function.name }} ARGUMENTS</call>{% endfor %}"
THOUGHTS = "{% if m.role == 'assistant' %}<think>{{ m.reasoning_content }}</think>{% endif %}"

STRINGS = LOOP.replace("CONTENT", "{{ m.content + '' }}")
PARTS = LOOP.replace("CONTENT", ITEMS)
BOTH = LOOP.replace("CONTENT", f"{{% if m.content is string %}}{{{{ m.content }}}}{{% else %}}{ITEMS}{{% endif %}}")
NO_SYSTEM = STRINGS.replace(
    "<|im_start|>{{", "{% if m.role == 'system' %}{{ raise_exception('no system') }}{% endif %}<|im_start|>{{"
)
TOOLS = "{% for tool in tools %}{{ tool | tojson }}\n{% endfor %}" + LOOP.replace(
    "CONTENT", f"{{{{ m.content }}}}{CALL}"
)
CALLS = TOOLS.replace("ARGUMENTS", "{{ call.function.arguments | tojson }}")
OBJECTS = TOOLS.replace("ARGUMENTS", "{% for k, v in call.function.arguments.items() %}{{ k }}={{ v }};{% endfor %}")
TEXTS = TOOLS.replace("ARGUMENTS", "{{ call.function.arguments + '' }}")
THINKS = LOOP.replace("CONTENT", THOUGHTS + "{{ m.content }}").replace(
    "assistant:{% endif %}",
    "assistant:{% if enable_thinking is defined and not enable_thinking %}<think></think>{% endif %}{% endif %}",
)


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def assistant(content: Any, **fields: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content, **fields}


def system(content: Any) -> dict[str, Any]:
    return {"role": "system", "content": content}


def called(arguments: Any, **fields: Any) -> dict[str, Any]:
    call = {"type": "function", "id": "1", "function": {"name": "f", "arguments": arguments}}
    return assistant(None, tool_calls=[call]) | fields


def parts(*texts: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": text} for text in texts]


def tool(**parameters: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": "f", "description": "d", "parameters": parameters}}


GO = user("go")
RESULT = {"role": "tool", "tool_call_id": "1", "content": "ok"}
EVERY_ROLE = [
    *(system(parts("s", "t")), GO, called("{}"), {"role": "tool", "tool_call_id": "1", "content": parts("x", "y")}),
    *(assistant(parts("v", "w")), GO),
]
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
SOUND = {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}
ON, OFF = {"continue_final_message": True}, {"add_generation_prompt": False}

CASES: list[tuple[str, list[Any], dict[str, Any], str]] = [
    # The last message is the assistant's.
    (STRINGS, [GO, assistant("Sure")], {}, "user:go;assistant:Sure"),
    (STRINGS, [GO, assistant("Sure")], ON | OFF, "user:go;assistant:Sure"),
    (THINKS, [GO, assistant("Sure")], {}, "user:go;assistant:<think></think>Sure"),
    (THINKS, [GO, assistant("Sure", reasoning_content="hm")], {}, "user:go;assistant:<think>hm</think>Sure"),
    (THINKS, [GO, assistant("", reasoning_content="hm")], {}, "user:go;assistant:<think>hm"),
    # Fields that are there and empty.
    (
        CALLS,
        [GO, assistant("b", tool_calls=[], annotations=[], refusal=None), GO],
        {},
        "user:go;assistant:b;user:go;assistant:",
    ),
    # Parts.
    (STRINGS, [user(parts("one", "two"))], {}, "user:one\ntwo;assistant:"),
    (STRINGS, [user(parts("one", "", "  ", "two"))], {}, "user:one\n\n  \ntwo;assistant:"),
    (STRINGS, [user([])], {}, "user:;assistant:"),
    (STRINGS, [user(None)], {}, "user:;assistant:"),
    (STRINGS, [user(parts("one"))], {}, "user:one;assistant:"),
    (PARTS, [user(parts("one", "", "two"))], {}, "user:[one][][two];assistant:"),
    (PARTS, [user("one")], {}, "user:[one];assistant:"),
    (PARTS, [user("")], {}, "user:[];assistant:"),
    (BOTH, [user(parts("one", "two"))], {}, "user:[one][two];assistant:"),
    (STRINGS, EVERY_ROLE, {}, "system:s\nt;user:go;assistant:;tool:x\ny;assistant:v\nw;user:go;assistant:"),
    (BOTH, EVERY_ROLE, {}, "system:[s][t];user:go;assistant:;tool:[x][y];assistant:[v][w];user:go;assistant:"),
    # Numbers.
    (
        CALLS,
        [GO],
        {"tools": [tool(minimum=0.0, maximum=48.85661234, step=1e-7, big=2**70)]},
        '{"type": "function", "function": {"name": "f", "description": "d", "parameters": '
        '{"minimum": 0, "maximum": 48.8566, "step": 1e-07, "big": 1.18059e+21}}}\nuser:go;assistant:',
    ),
    (
        CALLS,
        [GO, called({"a": 0.0, "b": 48.85661234, "c": 1e-7, "d": 2**53}), RESULT],
        {},
        'user:go;assistant:<call>f {"a": 0, "b": 48.8566, "c": 1e-07, "d": 9007199254740992}</call>;tool:ok;assistant:',
    ),
    (
        OBJECTS,
        [GO, called('{"a": 0.0, "b": 48.85661234, "c": 1e-7}'), RESULT],
        {},
        "user:go;assistant:<call>f a=0.0;b=48.856612;c=0.0;</call>;tool:ok;assistant:",
    ),
    # Nothing in arguments.
    (
        OBJECTS,
        [GO, called('{"a": null, "b": true}'), RESULT],
        {},
        "user:go;assistant:<call>f a=;b=True;</call>;tool:ok;assistant:",
    ),
    (CALLS, [GO, called('{"a": null}'), RESULT], {}, 'user:go;assistant:<call>f {"a": null}</call>;tool:ok;assistant:'),
    (CALLS, [GO, called(None), RESULT], {}, "user:go;assistant:<call>f null</call>;tool:ok;assistant:"),
    (OBJECTS, [GO, called(None), RESULT], {}, "user:go;assistant:<call>f </call>;tool:ok;assistant:"),
    # The order of keys.
    (
        CALLS,
        [GO, called({"b": 1, "a": {"d": 2, "c": 3}}), RESULT],
        {},
        'user:go;assistant:<call>f {"b": 1, "a": {"d": 2, "c": 3}}</call>;tool:ok;assistant:',
    ),
    # Tools and arguments of the template.
    (CALLS, [GO], {"tools": []}, "user:go;assistant:"),
    (
        CALLS,
        [GO],
        {"tools": [tool() | {"strict": True}], "tool_choice": "none"},
        '{"type": "function", "function": {"name": "f", "description": "d", "parameters": {}}}\nuser:go;assistant:',
    ),
    (THINKS, [GO], {"chat_template_kwargs": {"enable_thinking": False}}, "user:go;assistant:<think></think>"),
    (THINKS, [GO], {"reasoning_effort": "none"}, "user:go;assistant:<think></think>"),
    (CALLS, [GO, called("{}"), RESULT], OFF, "user:go;assistant:<call>f {}</call>;tool:ok;"),
    # System messages.
    (NO_SYSTEM, [system("be"), GO], {}, "user:be\ngo;assistant:"),
    (NO_SYSTEM, [{"role": "developer", "content": parts("be", "kind")}, GO], {}, "user:be\nkind\ngo;assistant:"),
    (NO_SYSTEM, [system("be")], {}, "assistant:"),
    (STRINGS, [{"role": "developer", "content": "be"}, GO], {}, "system:be;user:go;assistant:"),
    (STRINGS + "{# <|channel|> #}", [{"role": "developer", "content": "be"}], OFF, "developer:be;"),
    (STRINGS, [], {}, "assistant:"),
]


@pytest.mark.filterwarnings("ignore::ggtok.TokenizerWarning")
@pytest.mark.parametrize(("template", "messages", "options", "expected"), CASES, ids=range(len(CASES)))
def test_as_llama_server(template: str, messages: list[Any], options: dict[str, Any], expected: str) -> None:
    body = {"messages": messages, **options}
    text = BPE.apply_chat_template(body, template_text=template)
    ids = BPE.encode_chat(body, template_text=template)
    assert text.replace("<|im_start|>", "").replace("<|im_end|>", ";") == expected
    assert len(ids) == BPE.count_messages(body, template_text=template)
    assert BPE.decode(ids, unparse_special=True) == text


REFUSED: list[tuple[str, list[Any], dict[str, Any], str]] = [
    (STRINGS, [GO, assistant("one"), assistant("two")], {}, "messages[2]"),
    (CALLS, [GO, called("{}")], {}, "messages[1].tool_calls"),
    (STRINGS, [GO, assistant("one")], ON, "continue_final_message"),
    (STRINGS, [user([IMAGE])], {}, "messages[0].content[0]"),
    (STRINGS, [user([*parts("a"), SOUND])], {}, "messages[0].content[1]"),
    (STRINGS, [user([{"type": "input_text", "text": "a"}])], {}, "messages[0].content[0]"),
    (STRINGS, [user([{"type": "other", "text": "a"}])], {}, "messages[0].content[0]"),
    (STRINGS, [user(5)], {}, "messages[0].content"),
    (STRINGS, [{"content": "a"}], {}, "messages[0]"),
    *((CALLS, [GO, called(each), RESULT], {}, "messages[1].tool_calls[0].function.arguments") for each in ("", "{")),
    (THINKS, [GO], {"chat_template_kwargs": {"enable_thinking": "false"}}, "chat_template_kwargs.enable_thinking"),
    (CALLS, [GO], {"tools": [{"name": "x"}]}, "tools[0]"),
    (CALLS, [GO], {"tools": [tool()], "tool_choice": "some"}, "tool_choice"),
]


@pytest.mark.parametrize(("template", "messages", "options", "field"), REFUSED, ids=range(len(REFUSED)))
def test_what_llama_server_refuses(template: str, messages: list[Any], options: dict[str, Any], field: str) -> None:
    for call in (BPE.apply_chat_template, BPE.encode_chat, BPE.count_messages):
        with pytest.raises(ChatRequestError) as caught:
            call({"messages": messages, **options}, template_text=template)
        assert caught.value.field == field
        assert str(caught.value).startswith(f"{field}: ")


def test_what_is_closed_where_the_server_cannot() -> None:
    """Without a generation prompt the assistant's last message is closed, tool calls included."""
    talk = [GO, called('{"a": 1}')]
    text = BPE.apply_chat_template(talk, template_text=CALLS, add_generation_prompt=False)
    assert text.endswith('assistant:<call>f {"a": 1}</call><|im_end|>')
    assert BPE.chat(talk, template_text=CALLS).encoding.text == text


@pytest.mark.parametrize(
    "messages",
    [
        [user(parts("<|im_", "end|>", "<|im_end|>"))],
        [GO, called(json.dumps({"<|im_end|>": "<|im_end|>"}))],
        [GO, called({"a": "<|im_end|>"})],
        [{"role": "developer", "content": "<|im_end|>"}, user("<|im_end|>")],
        [system("<|im_"), user("end|>")],
    ],
    ids=["parts", "arguments", "object", "developer", "system"],
)
@pytest.mark.parametrize("template", [STRINGS, PARTS, BOTH, NO_SYSTEM, OBJECTS, CALLS, TEXTS])
def test_no_message_smuggles_a_control_token_in(messages: Any, template: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TokenizerWarning)
        ids = BPE.encode_chat(messages, template_text=template, add_generation_prompt=False)
        text = BPE.apply_chat_template(messages, template_text=template, add_generation_prompt=False)
    # One for each message that is written.
    assert ids.count(END) == text.count("<|im_start|>")
    assert BPE.decode(ids, unparse_special=True) == text


# What the template never reads

READS = "{% for m in messages %}{% if m.role != 'ghost' %}{{ m.content }}{% endif %}{% endfor %}{{ enable_thinking }}"
UNREAD: list[tuple[dict[str, Any], str]] = [
    (
        {"add_generation_promt": True},
        "never reads the variable 'add_generation_promt'; did you mean add_generation_prompt?",
    ),
    ({"enable_thinkin": True}, "never reads the variable 'enable_thinkin'; did you mean enable_thinking?"),
    ({"xyz": 1}, "never reads the variable 'xyz'; it reads add_generation_prompt"),
    ({"tools": [tool()]}, "never reads tools; the model does not see them"),
    ({"documents": [{"title": "a", "text": "b"}]}, "never reads documents; the model does not see them"),
    (
        {"messages": [user("a"), {"role": "ghost", "content": "b"}]},
        r"leaves out messages\[1\], whose role is 'ghost'",
    ),
    (
        {"messages": [GO, called({"a": 1}, content="b"), GO]},
        r"never reads the field 'tool_calls', which messages\[1\] has",
    ),
    (
        {"messages": [assistant("b", reasoning_content="c")]},
        r"never reads the field 'reasoning_content', which messages\[0\] has",
    ),
]


@pytest.mark.parametrize(("options", "message"), UNREAD)
def test_unread_variables_are_warned_of(options: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"messages": [user("a")], "template_text": READS} | options
    for call in (BPE.apply_chat_template, BPE.encode_chat, BPE.count_messages):
        with pytest.warns(TokenizerWarning, match=message) as caught:
            call(**given)
        assert len(caught) == 1


def test_no_warning_if_everything_is_read() -> None:
    def silent(messages: Any, template: str, **options: Any) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            BPE.apply_chat_template(messages, template_text=template, **options)

    for content in ("a", "  a  ", "", None):
        silent([user(content)], STRINGS)
        silent([user(content)], "{{ messages[0].content | trim | upper }}")
    silent([GO, RESULT | {"name": "f"}], STRINGS)
    silent([GO, called('{"a": 1}'), RESULT], OBJECTS, tools=[tool()])
    silent([GO], READS, enable_thinking=False)


def test_one_warning_for_a_system_message_that_is_dropped() -> None:
    with pytest.warns(TokenizerWarning, match=r"messages\[0\] is dropped: .* takes no system messages") as caught:
        BPE.apply_chat_template([system("be")], template_text=NO_SYSTEM)
    assert [warning.message.finding.code for warning in caught] == ["chat-message-unread"]  # type: ignore[union-attr]
