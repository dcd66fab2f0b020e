"""Conversations through the tokenizer: what is text and what a control token, spans, masks, BOS, errors, limits."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from conftest import BUILTIN, shared_files
from ggtok import ChatTemplateError, GgtokError, TokenAttribute, Tokenizer, VocabularyError
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
    with pytest.raises(ChatTemplateError, match=r"^the file has no chat template .*: pass template_text=$"):
        with_templates().apply_chat_template(HI)
    with pytest.raises(ChatTemplateError, match=r"pass template='rag' or template_text=$"):
        with_templates(rag="x").apply_chat_template(HI)
    with pytest.raises(ChatTemplateError, match=r"no chat template 'nope': it has 'a', 'b'$"):
        with_templates(a="x", b="y").apply_chat_template(HI, template="nope")
    with pytest.raises(TypeError, match="not both"):
        tok.apply_chat_template(HI, template="a", template_text="b")
    with pytest.raises(TypeError, match="template_text must be str, not int"):
        tok.apply_chat_template(HI, template_text=3)  # type: ignore[arg-type]


def test_templates_of_the_file() -> None:
    tok = with_templates(default="D", tool_use="T", rag="R")
    assert tok.apply_chat_template(HI) == tok.apply_chat_template(HI, template="default") == "D"
    assert tok.apply_chat_template(HI, template="rag") == "R"
    assert tok.apply_chat_template(HI, tools=[{"name": "x"}]) == "T"
    assert tok.apply_chat_template(HI, tools=[]) == "D"


def test_variables_of_a_template() -> None:
    tok = with_templates(default="{{ bos_token }}|{{ eos_token }}|{{ pad_token is none }}|{{ x }}|{{ documents[0].t }}")
    assert tok.apply_chat_template(HI, x="y", documents=[{"t": "z"}]) == "<s>|</s>|False|y|z"
    assert tok.apply_chat_template(HI, x="y", documents=[{"t": "z"}], bos_token="b") == "b|</s>|False|y|z"
    clock = with_templates(default="{{ strftime_now('%Y') }}")
    assert clock.apply_chat_template(HI).isdigit()


def test_functions_as_tools(tok: Tokenizer) -> None:
    def add(x: int) -> int:
        """Adds.

        Args:
            x: A number
        """
        return x

    text = tok.apply_chat_template(HI, tools=[add], template_text="{{ tools[0].function.parameters|tojson }}")
    assert text == (
        '{"type": "object", "properties": {"x": {"type": "integer", "description": "A number"}}, "required": ["x"]}'
    )
    with pytest.raises(TypeError, match=r"tools\[0\] must be a mapping or a function, not int"):
        tok.apply_chat_template(HI, tools=[3], template_text="")  # type: ignore[list-item]
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


def test_none_is_left_out(tok: Tokenizer) -> None:
    text = "{{ messages[0].content is defined }}"
    assert tok.apply_chat_template([{"role": "user", "content": None}], template_text=text, raw=True) == "False"
    assert tok.apply_chat_template([{"role": "user", "content": None}], template_text=text) == "True"


@pytest.mark.parametrize(
    ("messages", "error", "message"),
    [
        ([], GgtokError, "there are no messages"),
        ("Hi", TypeError, "messages must be a list of mappings, not str"),
        ({"role": "user"}, TypeError, "messages must be a list of mappings, not dict"),
        (None, TypeError, "messages must be a list of mappings, not NoneType"),
        (["Hi"], TypeError, r"messages\[0\] must be a mapping, not str"),
        ([{"role": "user", "content": b"x"}], TypeError, r"messages\[0\]\['content'\] must consist of .*, not bytes"),
        ([{"role": "user", "content": [{"image": object()}]}], TypeError, r"\['content'\]\[0\]\['image'\].*not object"),
        ([{"role": "user", ("a",): 3}], TypeError, r"a key of messages\[0\] must be str, not tuple"),
    ],
)
def test_bad_messages(tok: Tokenizer, messages: Any, error: type[Exception], message: str) -> None:
    for call in (tok.apply_chat_template, tok.encode_chat, tok.count_messages):
        with pytest.raises(error, match=message):
            call(messages, template_text=CHATML)


def test_deep_messages(tok: Tokenizer) -> None:
    value: Any = "x"
    for _ in range(100_000):
        value = [value]
    with pytest.raises(GgtokError, match=r"messages\[0\]\['content'\] is nested more than 100 deep"):
        tok.encode_chat([{"role": "user", "content": value}], template_text=CHATML)


# Control tokens


def test_contents_are_text(tok: Tokenizer) -> None:
    ids = tok.encode_chat(TALK, template_text=CHATML)
    start, end = tok.vocab.id("<|im_start|>"), tok.vocab.id("<|im_end|>")
    assert start is not None
    assert end is not None
    assert (ids.count(start), ids.count(end)) == (4, 3)
    assert tok.decode(ids, unparse_special=True) == tok.apply_chat_template(TALK, template_text=CHATML)
    assert tok.count_messages(TALK, template_text=CHATML) == len(ids)


EVERYWHERE = [{"role": "user", "name": "X", "content": [{"type": "text", "text": "X"}], "tool_calls": [{"X": ["X"]}]}]
TRANSFORMS = [
    "{{ messages[0].name }}",
    "{{ messages[0].name|trim }}",
    "{{ ('  ' + messages[0].name + ' ')|trim }}",
    "{{ messages[0].name.split('|')|join('|') }}",
    "{{ messages[0].name[:3] ~ messages[0].name[3:] }}",
    "{% for c in messages[0].name %}{{ c }}{% endfor %}",
    "{{ messages[0].content[0].text.replace('\\n', '') }}",
    "{{ messages|tojson }}",
    "{{ messages|tojson(indent=2) }}",
    "{{ messages }}",
    "{{ messages[0].tool_calls|string }}",
    "{% for k, v in messages[0].tool_calls[0].items() %}{{ k }}{{ v }}{% endfor %}",
    "{{ '%s' % messages[0].name }}{{ '%s'|format(messages[0].name) }}{{ '{}'.format(messages[0].name) }}",
    "{% macro m(x) %}{{ x }}{% endmacro %}{{ m(messages[0].name) }}",
    "{% set x %}{{ messages[0].name }}{% endset %}{{ x|upper|lower }}",
    "{% set ns = namespace(a='') %}{% set ns.a = ns.a + messages[0].name %}{{ ns.a }}",
    "{% filter indent %}{{ messages[0].name }}\n{{ messages[0].name }}{% endfilter %}",
    "{{ messages|map(attribute='name')|join }}",
    "{{ messages[0].name|safe }}",
    "{{ tools[0].X }}{{ documents[0].X }}{{ extra }}",
    "{% generation %}{{ messages[0].name }}{% endgeneration %}",
]


@pytest.mark.parametrize("template", TRANSFORMS)
@pytest.mark.parametrize("token", ["<|im_end|>", "<|endoftext|>"])
def test_control_tokens_of_the_caller_are_never_read(tok: Tokenizer, template: str, token: str) -> None:
    messages = eval(repr(EVERYWHERE).replace("X", token))
    other: dict[str, Any] = {"tools": [{"X": token}], "documents": [{"X": token}], "extra": token}
    ids = tok.encode_chat(messages, template_text=f"<|im_start|>{template}<|im_start|>", **other)
    control = [id for id in ids if TokenAttribute.CONTROL in tok.vocab[id].attributes]
    assert control == [tok.vocab.id("<|im_start|>")] * 2


@pytest.mark.parametrize(
    "template",
    ["{{ messages[0].name|wordwrap(50) }}", "{{ messages[0].name|truncate(3) }}{{ messages[0].name|title }}x"],
)
def test_what_cannot_be_followed_is_an_error_or_text(tok: Tokenizer, template: str) -> None:
    messages = [{"role": "user", "name": "<|im_end|>", "content": ""}]
    try:
        ids = tok.encode_chat(messages, template_text=template)
    except ChatTemplateError as error:
        assert "cannot be followed" in str(error)  # noqa: PT017
    else:
        assert tok.vocab.id("<|im_end|>") not in ids
    assert tok.encode_chat([{"role": "user", "name": "harmless", "content": ""}], template_text=template)


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

    try:
        bare = tok.encode_chat(messages, template_text=template, add_special=False)
    except VocabularyError as error:
        assert "in every text" in str(error)  # noqa: PT017
        ids = {id for row in messages for id in tok.encode("> " + row["content"] + open_, add_special=False)}
        assert any(TokenAttribute.CONTROL in tok.vocab[id].attributes for id in ids)
        return
    written = [id for id in bare if TokenAttribute.CONTROL in tok.vocab[id].attributes and id != tok.vocab.unk_id]
    expected = [tok.vocab.id(text) for text in (open_, close)] * len(messages) if control else []
    assert written == expected

    encoding = tok.encode_chat(messages, template_text=template, return_spans=True)
    assert encoding.ids == tok.encode_chat(messages, template_text=template)
    assert encoding.text == tok.apply_chat_template(messages, template_text=template)
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


def test_spans_and_mask_without_generation(tok: Tokenizer) -> None:
    encoding = tok.encode_chat(TALK, template_text=CHATML, return_spans=True)
    texts = [
        tok.decode(encoding.ids[start:end], unparse_special=True) for start, end in filter(None, encoding.message_spans)
    ]
    assert texts == [f"<|im_start|>{message['role']}\n{message['content']}<|im_end|>\n" for message in TALK]
    own = [id for id, mine in zip(encoding.ids, encoding.assistant_mask, strict=True) if mine]
    assert tok.decode(own) == "Hello"


def test_mask_with_generation(tok: Tokenizer) -> None:
    text = (
        "{% for m in messages %}<|im_start|>{% if m.role == 'assistant' %}{% generation %}{{ m.content }}<|im_end|>"
        "{% endgeneration %}{% else %}{{ m.content }}<|im_end|>{% endif %}{% endfor %}"
    )
    encoding = tok.encode_chat(TALK, template_text=text, return_spans=True)
    own = [id for id, mine in zip(encoding.ids, encoding.assistant_mask, strict=True) if mine]
    assert tok.decode(own, unparse_special=True) == "Hello<|im_end|>"
    with pytest.raises(ChatTemplateError, match=r"no assistant mask: nothing is written inside"):
        tok.encode_chat(TALK, template_text=text.replace("assistant", "nobody"), return_spans=True)
    assert not any(tok.encode_chat(HI, template_text=text, return_spans=True).assistant_mask)


def test_no_mask_is_an_error(tok: Tokenizer) -> None:
    with pytest.raises(ChatTemplateError, match=r"no assistant mask: it has no \{% generation %\}"):
        tok.encode_chat(TALK, template_text="{{ messages[0].content }}", return_spans=True)


def test_without_an_assistant_the_mask_is_empty(tok: Tokenizer) -> None:
    empty = {"role": "assistant", "content": ""}
    for talk in (HI, [*HI, empty]):
        encoding = tok.encode_chat(talk, template_text=CHATML, return_spans=True)
        assert encoding.assistant_mask == [False] * len(encoding.ids)
        assert len(encoding.message_spans) == len(talk)


def test_a_message_that_is_not_written_has_no_span(tok: Tokenizer) -> None:
    text = "{% for m in messages if m.role != 'user' %}{{ m.content }}<|im_end|>{% endfor %}"
    encoding = tok.encode_chat(TALK, template_text=text, return_spans=True)
    assert encoding.message_spans[1] is None


def test_continuing_the_last_message(tok: Tokenizer) -> None:
    options: dict[str, Any] = {"template_text": CHATML, "add_generation_prompt": False, "continue_final_message": True}
    text = tok.apply_chat_template(TALK, **options)
    assert text.endswith("<|im_start|>assistant\nHello")
    assert tok.decode(tok.encode_chat(TALK, **options), unparse_special=True) == text
    with pytest.raises(ValueError, match="add_generation_prompt=False"):
        tok.apply_chat_template(TALK, template_text=CHATML, continue_final_message=True)
    with pytest.raises(ChatTemplateError, match="nothing to continue"):
        tok.apply_chat_template(TALK, **{**options, "template_text": "x"})


# Errors and limits

LOOP = "{% set ns = namespace(s='aaaaaaaa', l=[1]) %}{% for i in range(60) %}"
ATTACKS = [
    "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}",
    "{% for a in range(100000) %}{% for b in range(100000) if false %}{% endfor %}{% endfor %}",
    "{% for a in range(100000) %}{{ range(100000)|list|length }}{% endfor %}",
    "{{ 'a' * 10**9 }}",
    "{{ 10**9 * 'a' }}",
    "{{ [1] * 10**9 }}",
    LOOP + "{% set ns.s = ns.s ~ ns.s %}{% endfor %}",
    LOOP + "{% set ns.s = ns.s + ns.s %}{% endfor %}",
    LOOP + "{% set ns.s = [ns.s, ns.s]|join %}{% endfor %}",
    LOOP + "{% set ns.s = '%s%s'|format(ns.s, ns.s) %}{% endfor %}",
    LOOP + "{% set ns.s = '%s%s' % (ns.s, ns.s) %}{% endfor %}",
    LOOP + "{% set ns.s = '{0}{0}'.format(ns.s) %}{% endfor %}",
    LOOP + "{% set ns.s = ns.s.replace('a', ns.s) %}{% endfor %}",
    LOOP + "{% set ns.s = ns.s|replace('a', ns.s) %}{% endfor %}",
    LOOP + "{% set ns.s = ns.s.join([ns.s, ns.s, ns.s]) %}{% endfor %}",
    LOOP + "{% set ns.s %}{{ ns.s }}{{ ns.s }}{% endset %}{% endfor %}",
    LOOP + "{% set ns.l = [ns.l, ns.l] %}{% endfor %}{{ ns.l }}",
    LOOP + "{% set ns.l = {'a': ns.l, 'b': ns.l} %}{% endfor %}{{ ns.l|tojson }}",
    LOOP + "{% set ns.l = dict(a=ns.l, b=ns.l) %}{% endfor %}{{ ns.l }}",
    LOOP + "{% set ns.l = cycler(ns.l, ns.l).items %}{% endfor %}{{ ns.l }}",
    LOOP + "{% set ns.l = [none, none]|map('default', ns.l, true)|list %}{% endfor %}{{ ns.l }}",
    LOOP + "{% set ns.l = ns.l + ns.l %}{% endfor %}",
    "{% macro m(n) %}{% if n > 40 %}{{ varargs }}{% else %}{{ m(n+1, varargs, varargs) }}{% endif %}{% endmacro %}"
    "{{ m(0, 1, 2) }}",
    "{% macro m() %}{{ m() }}{{ m() }}{% endmacro %}{{ m() }}",
    "{{ 10**5000 }}",
    "{{ 2**4000 * 2**4000 }}",
    "{{ 'x'|center(10**9) }}",
    "{{ 'x'.rjust(width=10**9) }}{{ 'x'.ljust(10**9) }}",
    "{{ '\\t'.expandtabs(10**9) }}",
    "{{ '%1000000000d' % 1 }}",
    "{{ '%*d' % (1000000000, 1) }}",
    "{{ '%.1000000000f'|format(1) }}",
    "{{ '{:{w}}'.format(1, w=1000000000) }}",
    "{{ '{a:>1000000000}'.format_map({'a': 1}) }}",
    "{{ range(10**9)|list }}",
    "{{ [1]|batch(10**9, 0)|list }}",
    "{{ [1]|slice(10**9)|list }}",
    "{{ 1.5|round(10**9, 'ceil') }}",
    "{{ lipsum(n=10**9) }}",
    "{{ 'x\ny'|indent(10**9) }}",
    "{{ {'a': 1}|tojson(indent=10**9) }}",
    "{{ (1).to_bytes(10**9, 'big') }}",
    "{{ ('a' * 100000).encode('idna') }}",
    "{{ ('<!--' * 1000000)|striptags }}",
    "{{ ('a' * 8000000).rfind('b' + 'a' * 4000000) }}",
    "{{ range(100000)|map('string')|map('replace', '', 'a' * 100000)|join }}",
    "{{ (['a' * 1000000] * 1000)|sort|length }}",
    "{{ ('a,' * 1000000).split(',')|length }}",
    "{{ " + "(" * 3000 + "1" + ")" * 3000 + " }}",
    "{{ 1" + "+1" * 20000 + " }}",
    "{% if 1 %}" * 3000 + "{% endif %}" * 3000,
    "{% for x in [1] %}" * 30 + "{% endfor %}" * 30,
    "x" * 600_000,
]


@pytest.mark.parametrize("template", ATTACKS, ids=range(len(ATTACKS)))
def test_templates_are_bounded(tok: Tokenizer, template: str) -> None:
    for call in (tok.apply_chat_template, tok.encode_chat):
        with pytest.raises(ChatTemplateError) as caught:
            call(HI, template_text=template)
        assert len(str(caught.value)) < 2000


@pytest.mark.skipif(sys.platform != "linux", reason="limits of the address space are those of Linux")
def test_attacks_take_little_memory() -> None:
    script = (
        "import resource; resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))\n"
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "import ggtok, test_chat\n"
        "tok = ggtok.Tokenizer.builtin('bpe')\n"
        "for template in test_chat.ATTACKS[3:]:\n"
        "    try: tok.apply_chat_template(test_chat.HI, template_text=template)\n"
        "    except ggtok.ChatTemplateError as error: assert 'memory' not in str(error), (template, error)\n"
    )
    subprocess.run([sys.executable, "-c", script, str(Path(__file__).parent)], check=True)


@pytest.mark.parametrize(
    ("template", "line", "message"),
    [
        ("\n\n{{ raise_exception('no way') }}", 3, "it refuses these messages: no way"),
        ("a\n{{ nope.x }}", 2, "a value is missing: 'nope' is undefined"),
        ("{% macro m() %}\n{{ 1 / 0 }}\n{% endmacro %}{{ m() }}", 2, "ZeroDivisionError: division by zero"),
        ("x\n{% bad %}", 2, "it is not a sound template: Encountered unknown tag 'bad'."),
        ("{{ 'x'|nofilter }}", 1, "it is not a sound template: No filter named 'nofilter'."),
        (
            "{{ messages.append(1) }}",
            1,
            "it refuses these messages: access to attribute 'append' of 'list' object is unsafe.",
        ),
        ("{{ ''.__class__.__mro__ }}", 1, None),
        ("{% include 'x' %}", 1, None),
    ],
)
def test_errors_name_template_and_line(template: str, line: int, message: str | None) -> None:
    tok = with_templates(rag=template)
    for call in (tok.apply_chat_template, tok.encode_chat):
        with pytest.raises(ChatTemplateError) as caught:
            call(HI, template="rag")
        assert (caught.value.template, caught.value.line) == ("tokenizer.chat_template.rag", line)
        if message is not None:
            assert str(caught.value) == f"chat template 'tokenizer.chat_template.rag', line {line}: {message}"


def test_long_conversations_are_within_the_limits(tok: Tokenizer) -> None:
    messages = [{"role": "user" if index % 2 else "assistant", "content": "word " * 200} for index in range(2000)]
    ids = tok.encode_chat(messages, template_text=CHATML)
    assert len(ids) > 400_000
    text = (
        "{% set ns = namespace(s='') %}{% for m in messages %}{% set ns.s = ns.s ~ m.content %}{% endfor %}{{ ns.s }}"
    )
    assert len(tok.apply_chat_template(messages, template_text=text)) == 2_000_000
    one = [{"role": "user", "content": "word " * 4_000_000}]
    assert len(tok.apply_chat_template(one, template_text=CHATML)) > 20_000_000


# Imports


def test_jinja_is_imported_with_the_first_call() -> None:
    script = (
        "import sys, ggtok\n"
        "assert 'jinja2' not in sys.modules\n"
        "tok = ggtok.Tokenizer.builtin('bpe')\n"
        "assert 'jinja2' not in sys.modules\n"
        "tok.apply_chat_template([{'role': 'user', 'content': 'x'}], template_text='x')\n"
        "assert 'jinja2' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
