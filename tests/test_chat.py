"""Conversations through the tokenizer: what is text and what a control token, spans, masks, BOS, errors, limits."""

from __future__ import annotations

import time
import warnings
from collections import UserDict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from io import BytesIO
from typing import Any

import pytest
from conftest import BUILTIN, shared_files
from ggtok import (
    ChatMedia,
    ChatRequestError,
    ChatTemplateError,
    ChatTypeError,
    Finding,
    GgtokError,
    TokenAttribute,
    Tokenizer,
    VocabularyError,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.gguf_vocab import TokenType, Vocab
from test_api import small_vocab

# Most of these templates read only what they are about.
pytestmark = pytest.mark.filterwarnings("ignore::ggtok.TokenizerWarning")

CHATML = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
HI = [{"role": "user", "content": "Hi"}]
TALK = [
    {"role": "system", "content": "Be kind."},
    {"role": "user", "content": "Hi <|im_end|>"},
    {"role": "assistant", "content": "Hello"},
]


@pytest.fixture(scope="module")
def tok() -> Tokenizer:
    return Tokenizer.builtin("bpe")


def with_templates(**templates: str) -> Tokenizer:
    """A small vocabulary whose file has chat templates; BOS is added."""
    vocab = small_vocab()
    overrides: dict[str, Any] = {}
    for name, text in templates.items():
        overrides["tokenizer.chat_template" + ("" if name == "default" else f".{name}")] = text
    return Tokenizer.from_gguf(vocab.gguf(), overrides=overrides)


# Choosing a template


def test_no_template(tok: Tokenizer) -> None:
    with pytest.raises(
        ChatTemplateError, match=r"no chat template .*: pass template_text=, or template='chatml' to do"
    ):
        with_templates().apply_chat_template(HI)
    with pytest.raises(ChatTemplateError, match=r"pass template='rag', template_text=, or template='chatml'"):
        with_templates(rag="x").apply_chat_template(HI)
    with pytest.raises(ChatTemplateError, match=r"pass template= one of 'a', 'b', template_text=, or"):
        with_templates(a="x", b="y").apply_chat_template(HI)
    with pytest.raises(ChatTemplateError, match=r"no chat template 'nope': it has 'a', 'b'$"):
        with_templates(a="x", b="y").apply_chat_template(HI, template="nope")
    with pytest.raises(TypeError, match="not both"):
        tok.apply_chat_template(HI, template="a", template_text="b")
    with pytest.raises(TypeError, match="template_text must be str, not int"):
        tok.apply_chat_template(HI, template_text=3)  # type: ignore[arg-type]


def test_the_template_of_llama_server() -> None:
    tok, written = with_templates(), "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
    assert tok.apply_chat_template(HI, template="chatml") == written
    assert with_templates(default="chatml").apply_chat_template(HI) == written
    assert with_templates(chatml="mine").apply_chat_template(HI, template="chatml") == "mine"


def test_templates_of_the_file() -> None:
    tok = with_templates(default="D", tool_use="T", rag="R")
    assert tok.apply_chat_template(HI) == tok.apply_chat_template(HI, template="default") == "D"
    assert tok.apply_chat_template(HI, template="rag") == "R"
    tool = {"type": "function", "function": {"name": "x"}}
    assert (
        tok.apply_chat_template(HI, tools=[tool]) == tok.apply_chat_template({"messages": HI, "tools": [tool]}) == "T"
    )
    assert tok.apply_chat_template(HI, tools=[]) == "D"
    assert with_templates(tool_use="T").apply_chat_template(HI) == "T"


def test_variables_of_a_template() -> None:
    tok = with_templates(default="{{ bos_token }}|{{ eos_token }}|{{ pad_token }}|{{ x }}|{{ documents[0].t }}")
    assert tok.apply_chat_template(HI, x="y", documents=[{"t": "z"}]) == "|</s>||y|z"
    assert tok.apply_chat_template(HI, x="y", documents=[{"t": "z"}], bos_token="b") == "b|</s>||y|z"
    clock = with_templates(default="{{ strftime_now('%Y-%m-%d %H %z') }}")
    assert time.strftime("%Y-%m-%d %H %z") in (clock.apply_chat_template(HI), time.strftime("%Y-%m-%d %H %z"))


def test_functions_as_tools(tok: Tokenizer) -> None:
    def add(x: int) -> int:
        """Adds.

        Args:
            x: A number
        """
        return x

    text = tok.apply_chat_template(HI, tools=[add], template_text="{{ tools[0].function.parameters|tojson }}")
    schema = (
        '{"properties": {"x": {"type": "integer", "description": "A number"}}, "required": ["x"], "type": "object"}'
    )
    assert text.replace(" ", "").replace('"type":"object",', "", 1) != text
    assert sorted(text.strip("{}")) == sorted(schema.strip("{}"))
    assert text == tok.apply_chat_template(
        {"messages": HI, "tools": [add]}, template_text="{{ tools[0].function.parameters|tojson }}"
    )
    for tools in ([3], "x", 5):
        with pytest.raises(ChatRequestError, match="tools"):
            tok.apply_chat_template(HI, tools=tools, template_text="")  # type: ignore[arg-type]
    with pytest.raises(GgtokError, match="no docstring"):
        tok.apply_chat_template(HI, tools=[lambda: 3], template_text="")


# Input


@dataclass
class Message:
    role: str
    content: str | None


def test_messages_may_be_dataclasses_and_iterators(tok: Tokenizer) -> None:
    def messages() -> Iterator[Any]:
        yield Message("user", "Hi")

    expected = tok.apply_chat_template(HI, template_text=CHATML)
    assert tok.apply_chat_template(messages(), template_text=CHATML) == expected
    assert tok.encode_chat(messages(), template_text=CHATML) == tok.encode_chat(HI, template_text=CHATML)


class Shape(UserDict[str, Any]):
    """A mapping that is not a dict."""


def test_the_body_of_a_request(tok: Tokenizer) -> None:
    text = "{{ messages[0].content }}|{{ x }}|{{ documents[0].t }}|{{ add_generation_prompt }}|{{ reasoning_effort }}"
    body: dict[str, Any] = {
        **{"model": "m", "messages": HI, "documents": [{"t": "d"}], "add_generation_prompt": False},
        **{"chat_template_kwargs": {"x": 1, "y": 2}, "reasoning_effort": "high"},
    }
    assert tok.apply_chat_template(body, template_text=text) == "Hi|1|d||high"
    other = tok.apply_chat_template(
        Shape(body), template_text=text, x=3, documents=[{"t": "e"}], add_generation_prompt=True
    )
    assert other == "Hi|3|e|True|high"
    assert body["chat_template_kwargs"] == {"x": 1, "y": 2}
    assert tok.encode_chat(body) == tok.encode_chat(HI, add_generation_prompt=False) == tok.chat(body).ids
    assert tok.count_messages(body) == len(tok.encode_chat(body))


def test_numbers_and_surrogates(tok: Tokenizer) -> None:
    """Integers are what llama.cpp makes of them: of those beyond 64 bits, floats. A surrogate is the bytes of it."""
    shown = tok.apply_chat_template(HI, template_text="{{ x | tojson }}", x=[2**62, 2**63, 2**70, True])
    assert shown == "[4611686018427387904, -9223372036854775808, 1.18059e+21, true]"
    with pytest.raises(ChatRequestError, match=r"chat_template_kwargs\.x: the number is too large"):
        tok.apply_chat_template(HI, template_text="{{ x }}", x=10**400)
    talk = [{"role": "user", "content": "a\ud800b"}]
    assert tok.apply_chat_template(talk, template_text="{{ messages[0].content }}") == "a\ud800b"
    assert tok.encode_chat(talk, template_text="{{ messages[0].content }}") == tok.encode("a\ud800b")


class Loop:
    """A model that consists of itself."""

    def model_dump(self) -> Any:
        return self


CYCLE: list[Any] = []
CYCLE.append(CYCLE)
DEEP: Any = "x"
for _ in range(100_000):
    DEEP = [DEEP]
BAD: list[tuple[Any, type[Exception], str]] = [
    ("Hi", ChatRequestError, "messages: expected an array, got a string"),
    (None, ChatRequestError, "messages: expected an array, got null"),
    (5, ChatRequestError, "messages: expected an array, got a number"),
    (b"Hi", ChatTypeError, r"messages: expected str, .*, not bytes"),
    ({"role": "user"}, ChatRequestError, "messages: (a request must have messages|expected an array)"),
    (["Hi"], ChatRequestError, r"messages\[0\]: a message must be an object, not a string"),
    ([*HI, None], ChatRequestError, r"messages\[1\]: a message must be an object, not null"),
    ([{"content": "x"}], ChatRequestError, r"messages\[0\]: a message must have a role"),
    ([{"role": 5, "content": "x"}], ChatRequestError, r"messages\[0\]\.role: expected a string, got a number"),
    ([{"role": "user"}], ChatRequestError, r"messages\[0\]: a message must have content"),
    ([{"role": "user", "content": 5}], ChatRequestError, r"messages\[0\]\.content: expected a string or an array"),
    ([{"role": "user", "content": b"x"}], ChatTypeError, r"messages\[0\]\.content: expected .*, not bytes"),
    (
        [{"role": "user", "content": [{"image": object()}]}],
        ChatTypeError,
        r"messages\[0\]\.content\[0\]\.image: .*object",
    ),
    ([{"role": "user", ("a",): 3}], ChatTypeError, r"messages\[0\]: a key must be str, not tuple"),
    ([{"role": "user", "content": CYCLE}], ChatTypeError, r"messages\[0\]\.content.*nested more than 100 deep"),
    ([{"role": "user", "content": DEEP}], ChatTypeError, r"messages\[0\]\.content.*nested more than 100 deep"),
    ([{"role": "user", "content": Loop()}], ChatTypeError, r"messages\[0\]\.content: expected .*, not Loop"),
    ([{"role": "user", "content": [{"type": "text"}]}], ChatRequestError, r"messages\[0\]\.content\[0\]"),
]


@pytest.mark.parametrize(("messages", "error", "message"), BAD, ids=range(len(BAD)))
def test_bad_messages(tok: Tokenizer, messages: Any, error: type[ChatRequestError], message: str) -> None:
    for call in (tok.apply_chat_template, tok.encode_chat, tok.count_messages, lambda each: tok.chat(each).ids):
        with pytest.raises(error, match=message) as caught:
            call(messages)
        assert isinstance(caught.value, GgtokError)
        assert caught.value.field == str(caught.value).partition(": ")[0]
        assert len(str(caught.value)) < 500


# Control tokens


def test_contents_are_text(tok: Tokenizer) -> None:
    ids = tok.encode_chat(TALK, template_text=CHATML)
    start, end = tok.vocab.id("<|im_start|>"), tok.vocab.id("<|im_end|>")
    assert start is not None
    assert end is not None
    assert (ids.count(start), ids.count(end)) == (3, 2)
    text = tok.apply_chat_template(TALK, template_text=CHATML)
    assert tok.decode(ids, unparse_special=True) == text
    assert tok.count_messages(TALK, template_text=CHATML) == len(ids)
    # What llama-server counts: it reads control tokens that a user wrote.
    served = tok.encode_chat(TALK, template_text=CHATML, trust=True)
    assert served == tok.encode(text, parse_special=True)
    assert served.count(end) == 3
    assert tok.count_messages(TALK, template_text=CHATML, trust=True) == len(served)
    with pytest.raises(GgtokError, match="trust=True do not go with it"):
        tok.encode_chat(TALK, trust=True, return_spans=True)


FUNCTION: dict[str, Any] = {"name": "X", "arguments": {"X": ["X"]}}
CALL = {"type": "function", "id": "X", "function": FUNCTION}
EVERYWHERE = [{"role": "user", "name": "X", "content": [{"type": "text", "text": "X"}], "tool_calls": [CALL]}]
TRANSFORMS = [
    "{{ messages[0].name }}",
    "{{ messages[0].name|trim }}",
    "{{ ('  ' + messages[0].name + ' ')|trim }}",
    "{{ messages[0].name.split('|')|join('|') }}",
    "{{ messages[0].name[:3] ~ messages[0].name[3:] }}",
    "{% for c in messages[0].name.split('|') %}{{ c }}|{% endfor %}",
    "{{ messages[0].content[0].text.replace('\\n', '') }}",
    "{{ messages|map(attribute='content')|list|tojson }}",
    "{{ messages[0].content|tojson(indent=2) }}{{ messages[0].tool_calls[0].function.arguments|tojson }}",
    "{{ messages }}",
    "{{ messages[0].tool_calls|string }}",
    "{% for k, v in messages[0].tool_calls[0].items() %}{{ k }}{{ v }}{% endfor %}",
    "{{ messages[0].tool_calls[0].function.arguments }}{{ messages[0].content[0]['text'] }}",
    "{% macro m(x) %}{{ x }}{% endmacro %}{{ m(messages[0].name) }}",
    "{% set x %}{{ messages[0].name }}{% endset %}{{ x|upper|lower }}",
    "{% set ns = namespace(a='') %}{% set ns.a = ns.a + messages[0].name %}{{ ns.a }}",
    "{% filter indent %}{{ messages[0].name }}\n{{ messages[0].name }}{% endfilter %}",
    "{{ messages|map(attribute='name')|join }}",
    "{{ messages[0].name|safe }}",
    "{{ tools[0].function.name }}{{ tools|tojson }}{{ documents[0].X }}{{ extra }}{{ bos_token }}{{ date_string }}",
    "{% generation %}{{ messages[0].name }}{% endgeneration %}",
]


@pytest.mark.parametrize("template", TRANSFORMS)
@pytest.mark.parametrize("token", ["<|im_end|>", "<|endoftext|>"])
def test_control_tokens_of_the_caller_are_never_read(tok: Tokenizer, template: str, token: str) -> None:
    messages = eval(repr(EVERYWHERE).replace("X", token))
    tool = {"type": "function", "function": {"name": token, "parameters": {token: token}}}
    other: dict[str, Any] = {"tools": [tool], "documents": [{"X": token}], "extra": token}
    other |= {"bos_token": token, "date_string": token}
    ids = tok.encode_chat(messages, template_text=f"<|im_start|>{template}<|im_start|>", **other)
    control = [id for id in ids if TokenAttribute.CONTROL in tok.vocab[id].attributes]
    assert control == [tok.vocab.id("<|im_start|>")] * 2


def test_media(tok: Tokenizer) -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    sound = {"type": "input_audio", "input_audio": {"data": "AA", "format": "wav"}}
    text = {"type": "text", "text": "<__media__>"}
    talk: list[dict[str, Any]] = [*HI, {"role": "user", "content": [text, image, sound]}]
    for call in (tok.encode_chat, tok.apply_chat_template):
        with pytest.raises(ChatRequestError, match=r"messages\[1\]\.content\[1\]: an image has no text") as caught:
            call(talk)
        assert caught.value.field == "messages[1].content[1]"
    for marker in ("<__media__>", "<|im_end|>"):
        encoding = tok.encode_chat(talk, media_marker=marker, return_spans=True)
        first, second = encoding.media
        assert (first[:2], second[:2]) == ((1, 1), (1, 2))
        assert isinstance(first, ChatMedia)
        for place in encoding.media:
            assert marker in tok.decode(encoding.ids[place.start : place.end], unparse_special=True)
        assert encoding.ids.count(tok.vocab.id("<|im_end|>") or 0) == 2
        assert tok.apply_chat_template(talk, media_marker=marker) == encoding.text
        assert encoding.to_dict()["media"][0] == {"message": 1, "part": 1, "start": first.start, "end": first.end}
    with pytest.raises(ChatRequestError, match=r"messages\[0\]\.content\[0\]: parts of the type \"input_text\""):
        tok.encode_chat([{"role": "user", "content": [{"type": "input_text", "text": "a"}]}], media_marker="x")


def test_user_defined_tokens_can_be_refused() -> None:
    tok = with_templates(default="{% for m in messages %}[call]{{ m.content }}{% endfor %}")
    for token, is_refused in (("<|tool|>", True), ("[call]", True), ("[other]", False), ("\n\n\n", False)):
        grown = tok.to_gguf(BytesIO(), add_tokens=[token])
        talk = [{"role": "user", "content": f"a {token}"}]
        id = grown.vocab.id(token)
        assert id in grown.encode_chat(talk)
        assert grown.encode_chat(HI, refuse_user_defined=True) == grown.encode_chat(HI)
        if not is_refused:
            assert id in grown.encode_chat(talk, refuse_user_defined=True)
            continue
        for call in (grown.encode_chat, grown.count_messages):
            with pytest.raises(VocabularyError, match=r"which this vocabulary reads as the token"):
                call(talk, refuse_user_defined=True)


def test_roles_the_template_names_are_its_text() -> None:
    """Phi-4-mini's template writes `'<|' + role + '|>'`; an unknown role cannot make a token that way."""
    vocab = small_vocab()
    texts = [*vocab.texts, b"<|user|>", b"<|critic|>", b"<|evil|>"]
    types = [*(vocab.types or []), *[int(TokenType.CONTROL)] * 3]
    grown = Vocab("gpt2", texts, types, merges=vocab.merges, pre="gpt-2", bos=260, eos=261)
    tok = Tokenizer.from_gguf(grown.gguf())
    text = "{% for m in messages %}{{ '<|' + m['role'] + '|>' }}{% if m.role == 'critic' %}!{% endif %}{% endfor %}"
    ids = tok.encode_chat([{"role": role, "content": ""} for role in ("user", "critic", "evil")], template_text=text)
    assert tok.vocab.id("<|user|>") in ids
    assert tok.vocab.id("<|critic|>") in ids
    assert tok.vocab.id("<|evil|>") not in ids


@cache
def opened(name: str) -> Tokenizer:
    return Tokenizer.builtin(name) if name in BUILTIN else Tokenizer.from_gguf(name)


VOCABULARIES = [
    *BUILTIN,
    *(row if row.marks else pytest.param(str(row.values[0]), id=row.id) for row in shared_files("vocabs/*.gguf")),
]


@pytest.mark.parametrize("name", VOCABULARIES)
@settings(max_examples=15)
@given(data=st.data())
def test_random_messages(name: str, data: st.DataObject) -> None:
    """No control token but those of the template, parts that are the text, spans that lie in order and hold it."""
    tok = opened(str(name))
    control = controls(str(name))
    words = st.sampled_from(
        [*control, *(text[:-1] for text in control), *(text[1:] for text in control), "Hi ", "\n", "é"]
    )
    content = st.lists(words, max_size=6).map("".join)
    roles = st.sampled_from(["user", "assistant", "system"])
    messages = data.draw(st.lists(st.fixed_dictionaries({"role": roles, "content": content}), min_size=1, max_size=4))
    messages.append({"role": "assistant", "content": "Hi"})
    open_, close = (control * 2)[:2] if control else ("", "")
    template = "{% for m in messages %}" + open_ + "{{ m.role }}: {{ m.content }}" + close + "{% endfor %}"

    options: dict[str, Any] = {"template_text": template, "add_generation_prompt": False}
    try:
        bare = tok.encode_chat(messages, add_special=False, **options)
    except VocabularyError as error:
        assert "in every text" in str(error)  # noqa: PT017
        ids = {id for row in messages for id in tok.encode("> " + row["content"] + open_, add_special=False)}
        assert any(TokenAttribute.CONTROL in tok.vocab[id].attributes for id in ids)
        return
    written = [id for id in bare if TokenAttribute.CONTROL in tok.vocab[id].attributes and id != tok.vocab.unk_id]
    expected = [tok.vocab.id(text) for text in (open_, close)] * len(messages) if control else []
    assert written == expected

    encoding = tok.encode_chat(messages, return_spans=True, **options)
    assert encoding.ids == tok.encode_chat(messages, **options)
    # The text for other programs has neither the BOS nor the EOS that the vocabulary adds.
    assert tok.apply_chat_template(messages, **options) in encoding.text
    assert len(encoding.assistant_mask) == len(encoding.ids)
    ends = 0
    for span in encoding.message_spans:
        assert span is not None
        assert ends - (0 if control else 1) <= span[0] <= span[1] <= len(encoding.ids)
        ends = span[1]
    if control:  # they part the messages, so that no token belongs to two
        starts = [span[0] for span in encoding.message_spans if span]
        assert starts[1:] == [span[1] for span in encoding.message_spans if span][:-1]


@cache
def controls(name: str) -> list[str]:
    """Texts of up to eight control tokens that can be written in a text."""
    tok = opened(name)
    found = []
    for token in tok.vocab:
        text = token.text
        if token.id == tok.vocab.unk_id:
            continue
        if TokenAttribute.CONTROL in token.attributes and text.isprintable() and len(text) > 2 and " " not in text:
            if tok.encode(text, add_special=False, parse_special=True) == [token.id] and "{" not in text:
                found.append(text)
            if len(found) == 8:
                break
    return found


# BOS


@pytest.mark.parametrize("text", ["{{ bos_token }}{{ messages[0].content }}", "{{ messages[0].content }}"])
def test_bos_once(text: str) -> None:
    tok = with_templates(default=text)
    bos = tok.vocab.bos_id
    ids = tok.encode_chat(HI)
    assert ids[0] == bos
    assert ids.count(bos or 0) == 1
    again = tok.encode_chat([{"role": "user", "content": "<s>"}])
    assert again.count(bos or 0) == 1
    bare = tok.encode_chat(HI, add_special=False)
    assert bare.count(bos or 0) == text.count("bos_token")


def test_bos_is_added_twice_only_by_the_template() -> None:
    tok = with_templates(default="{{ bos_token }}{{ bos_token }}x")
    assert tok.encode_chat(HI, add_special=False).count(tok.vocab.bos_id or 0) == 2
    assert tok.encode_chat(HI).count(tok.vocab.bos_id or 0) == 2


# Spans and masks


def own(tok: Tokenizer, messages: Any, **options: Any) -> str:
    """What the assistant mask covers."""
    encoding = tok.encode_chat(messages, return_spans=True, **{"add_generation_prompt": False} | options)
    ids = [id for id, mine in zip(encoding.ids, encoding.assistant_mask, strict=True) if mine]
    return tok.decode(ids, unparse_special=True)


def test_spans_and_mask_without_generation(tok: Tokenizer) -> None:
    encoding = tok.encode_chat(TALK, template_text=CHATML, add_generation_prompt=False, return_spans=True)
    texts = [
        tok.decode(encoding.ids[start:end], unparse_special=True) for start, end in filter(None, encoding.message_spans)
    ]
    assert texts == [f"<|im_start|>{message['role']}\n{message['content']}<|im_end|>\n" for message in TALK]
    assert own(tok, TALK, template_text=CHATML) == "Hello<|im_end|>"
    assert own(tok, TALK, template_text=CHATML, mask="content") == "Hello"
    with pytest.raises(GgtokError, match="mask must be 'turn' or 'content', not 'all'"):
        tok.encode_chat(TALK, return_spans=True, mask="all")  # type: ignore[call-overload]


def test_the_mask_of_tool_calls(tok: Tokenizer) -> None:
    calls = (
        "{% for c in m.tool_calls %}<call>{{ c.function.name }} {{ c.function.arguments|tojson }}</call>{% endfor %}"
    )
    template = CHATML.replace("message", "m").replace("ms", "messages").replace("<|im_end|>", f"{calls}<|im_end|>")
    call = {"type": "function", "function": {"name": "weather", "arguments": {"city": "Paris"}}}
    talk = [
        *HI,
        {"role": "assistant", "content": "Let me see", "tool_calls": [call]},
        {"role": "tool", "content": "Sun"},
    ]
    written = 'Let me see<call>weather {"city": "Paris"}</call><|im_end|>'
    assert own(tok, talk, template_text=template) == written
    content = own(tok, talk, template_text=template, mask="content")
    assert "Sun" not in content
    assert "weather" in content


def test_mask_with_generation(tok: Tokenizer) -> None:
    text = (
        "{% for m in messages %}<|im_start|>{% if m.role == 'assistant' %}{% generation %}{{ m.content }}<|im_end|>"
        "{% endgeneration %}{% else %}{{ m.content }}<|im_end|>{% endif %}{% endfor %}"
    )
    for mask in ("turn", "content"):
        assert own(tok, TALK, template_text=text, mask=mask) == "Hello<|im_end|>"
    assert own(tok, HI, template_text=text) == ""


def test_a_message_that_is_not_written_has_no_span(tok: Tokenizer) -> None:
    text = "{% for m in messages if m.role != 'user' %}{{ m.content }}<|im_end|>{% endfor %}"
    encoding = tok.encode_chat(TALK, template_text=text, return_spans=True)
    assert encoding.message_spans[1] is None
    [finding] = encoding.warnings
    assert finding.code == "chat-message-unread"


def test_the_last_message_is_continued_or_closed(tok: Tokenizer) -> None:
    options: dict[str, Any] = {"template_text": CHATML}
    text = tok.apply_chat_template(TALK, **options)
    assert text.endswith("<|im_start|>assistant\nHello")
    assert tok.decode(tok.encode_chat(TALK, **options), unparse_special=True) == text
    closed = tok.apply_chat_template(TALK, add_generation_prompt=False, **options)
    assert closed == text + "<|im_end|>\n"
    for continues in (True, "content"):
        prompt: dict[str, Any] = {"add_generation_prompt": False, "continue_final_message": continues}
        assert tok.apply_chat_template(TALK, **prompt, **options) == text
        assert tok.apply_chat_template({"messages": TALK} | prompt, **options) == text
    with pytest.raises(ChatRequestError, match="must set add_generation_prompt to false"):
        tok.apply_chat_template(TALK, continue_final_message=True, **options)
    with pytest.raises(
        GgtokError, match="continue_final_message must be True, False, 'content' or 'reasoning_content'"
    ):
        tok.apply_chat_template(TALK, continue_final_message="all", **options)  # type: ignore[arg-type]


def test_findings_as_data(tok: Tokenizer) -> None:
    said: list[Finding] = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tok.apply_chat_template(HI, template_text=CHATML, warnings=said, nope=1)
        tok.count_messages(HI, template_text=CHATML, warnings=said, nope=1)
        encoding = tok.encode_chat(HI, template_text=CHATML, warnings=said, nope=1, return_spans=True)
        chat = tok.chat(HI, template_text=CHATML, warnings=said, nope=1)
        chat.append({"role": "user", "content": "Hi", "mood": "good"})
    assert [each.code for each in said] == ["chat-variable-unread"] * 4 + ["chat-field-unread"]
    assert encoding.warnings == (said[2],)
    assert encoding.to_dict()["warnings"][0]["code"] == "chat-variable-unread"
    assert chat.encoding.warnings == tuple(said[3:])


# As transformers renders

PLAIN = "{% for m in messages %}\n  {% if m.content is defined %}\n{{ m.content }}\n  {% endif %}\n{% endfor %}"


def test_raw(tok: Tokenizer) -> None:
    parts = [{"type": "text", "text": "a"}]
    assert tok.apply_chat_template([Message("user", "a")], template_text=PLAIN, raw=True) == "a\n"  # type: ignore[list-item]
    assert tok.apply_chat_template([{"role": "user", "content": parts}], template_text=PLAIN, raw=True) == f"{parts}\n"
    assert tok.apply_chat_template([{"role": "user", "content": None}], template_text=PLAIN, raw=True) == ""
    text = "{{ tools is none }} {{ x }} {{ bos_token }} {{ {'a<': 'é'}|tojson }} {{ strftime_now('%Y') | length }}"
    body = {"messages": HI, "chat_template_kwargs": {"x": 3}}
    assert tok.apply_chat_template(body, template_text=text, raw=True) == 'True 3 <|endoftext|> {"a<": "é"} 4'
    text = "{% for i in range(9) %}{% if i > 1 %}{% break %}{% endif %}{{ i }}{% endfor %}"
    text = f"{{% generation %}}{text}{{% endgeneration %}}"
    assert tok.apply_chat_template(HI, template_text=text, raw=True) == "01"
    prompt: dict[str, Any] = {"add_generation_prompt": False, "continue_final_message": True}
    assert tok.apply_chat_template(TALK, template_text=CHATML, raw=True, **prompt).endswith("assistant\nHello")
    talk: list[dict[str, Any]] = [
        *HI,
        {"role": "assistant", "content": [{"type": "text", "text": "Hel"}, {"type": "text", "text": "lo"}]},
    ]
    text = "{% for message in messages %}{% for part in message.content %}{{ part.text }}{% endfor %};{% endfor %}"
    assert tok.apply_chat_template(talk, template_text=text, raw=True, **prompt) == ";Hello"


def test_ids_of_raw_text_need_trust(tok: Tokenizer) -> None:
    text = tok.apply_chat_template(TALK, template_text=CHATML, raw=True)
    for call in (tok.encode_chat, tok.count_messages):
        with pytest.raises(GgtokError, match="need trust=True"):
            call(TALK, template_text=CHATML, raw=True)
    ids = tok.encode_chat(TALK, template_text=CHATML, raw=True, trust=True)
    assert ids == tok.encode(text, parse_special=True)
    assert tok.count_messages(TALK, template_text=CHATML, raw=True, trust=True) == len(ids)
    with pytest.raises(GgtokError, match="raw=True and trust=True do not go with it"):
        tok.encode_chat(TALK, raw=True, trust=True, return_spans=True)
    with pytest.raises(GgtokError, match="raw=True does not go with it"):
        tok.chat(raw=True)
    bos = with_templates(default="{{ bos_token }}x")
    assert bos.encode_chat(HI, raw=True, trust=True) == bos.encode_chat(HI, trust=True) == bos.encode_chat(HI)


@pytest.mark.parametrize(
    ("template", "line", "message"),
    [
        ("{{ raise_exception('no') }}", None, "it refuses these messages: no"),
        ("x\n{% bad %}", 2, "it has a syntax error"),
        ("{{ 1 / 0 }}", None, "ZeroDivisionError"),
        ("{{ messages.append(1) }}", None, "SecurityError"),
    ],
)
def test_errors_of_raw(tok: Tokenizer, template: str, line: int | None, message: str) -> None:
    with pytest.raises(ChatTemplateError, match=message) as caught:
        tok.apply_chat_template(HI, template_text=template, raw=True)
    assert (caught.value.template, caught.value.line) == ("template_text", line)
    for messages in ([], [3]):
        with pytest.raises(ChatRequestError, match="messages"):
            tok.apply_chat_template(messages, template_text=template, raw=True)  # type: ignore[arg-type]
