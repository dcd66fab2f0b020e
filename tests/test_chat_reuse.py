"""Turns of loops that chats reuse: the text is that of a whole rendering, and stock templates reuse all turns."""

from __future__ import annotations

from typing import Any

import pytest
from ggtok import GgtokError, Tokenizer
from ggtok._chat import reuse
from hypothesis import given
from hypothesis import strategies as st
from stock_templates import STOCK, with_controls

# Most of these templates read only what they are about.
pytestmark = pytest.mark.filterwarnings("ignore::ggtok.TokenizerWarning")

HEAD = """{%- set ns = namespace(a=0, b='', l=[]) %}{% set other = ns %}{% set outer = messages | length %}
{%- set turns = cycler('odd', 'even') %}{% set comma = joiner() %}{% set rest = messages[1:] %}{% set box = [ns] %}
"""
SEEN = "{%- macro seen(x) %}({{ x }}{{ ns.a }}{{ outer }}{{ messages[-1].role }}){% endmacro %}"
COUNTED = "{%- macro counted() %}{% set ns.a = ns.a + 1 %}{% endmacro %}"
"""What a macro reads is a part of every turn, so templates have these only if they are called."""

BODIES = [
    *("{{ m.role }}", "{{ m.content }}", "{{ m.content | trim | upper }}", "{{ m }}", "{{ m.items() | list }}"),
    *("{{ loop.index0 }}", "{{ loop.last }}", "{{ loop.first }}", "{{ loop.length }}", "{{ loop.revindex }}"),
    *("{{ loop.previtem.content }}", "{{ loop.nextitem.role if not loop.last }}", "{{ loop.cycle('x', 'y') }}"),
    *("{{ messages[loop.index0 - 1].content }}", "{{ messages[loop.index0 + 1].role }}", "{{ messages[-1].content }}"),
    *(
        "{{ messages | length }}",
        "{{ messages | map(attribute='role') | join }}",
        "{{ messages | length - loop.index }}",
    ),
    *("{% set ns.a = ns.a + 1 %}", "{{ ns.a }}", "{{ other.a }}", "{{ box[0].a }}", "{{ ns.b }}", "{{ ns }}"),
    "{% if m.role == 'user' %}{% set ns.b = m.content %}{% endif %}",
    "{% if loop.last %}{% set ns.a = 0 %}{% endif %}",
    "{% if ns.a > 1 %}{% set other.a = 0 %}{% set ns.c = 1 %}{% endif %}",
    "{% if ns.c is defined %}{{ ns.c }}{% endif %}",
    "{% set ns.l = ns.l + [m.role] %}{{ ns.l | length }}",
    *("{% set x = ns.b ~ m.content %}{{ x }}", "{{ x }}", "{{ outer }}", "{{ rest[loop.index0].role }}"),
    *("{{ seen(m.content) }}", "{{ counted() }}", "{{ turns.next() }}", "{{ comma() }}", "{{ bos_token ~ m.role }}"),
    *("{% for c in m.content %}{{ loop.index }}{{ c }}{% endfor %}", "{% for n in messages %}{{ n.role }}{% endfor %}"),
    "{% if loop.last or messages[loop.index0 + 1].role != 'user' %}<|im_end|>{% endif %}",
    "{% generation %}{{ m.content }}{% endgeneration %}",
    *("{% filter upper %}{{ m.role }}{% endfilter %}", "{% set y %}{{ m.content }}{% endset %}{{ y }}"),
    "{% if loop.index0 > outer - 2 %}last two{% endif %}",
    "{% if not messages[loop.index0 + 2] %}second to last{% endif %}",
    "{{ messages[loop.index0 + 1] == nothing }}{{ not loop.nextitem }}{{ loop.previtem and 1 }}",
    "{% if m.content == 'b' %}{% continue %}{% endif %}",
    *("<|im_start|>", "{{ strftime_now('%Y') }}", "{{ nothing }}", "{{ nothing is defined }}"),
]
LISTS = [
    "messages",
    "messages",
    "messages[1:]",
    "messages[::-1]",
    "messages | selectattr('role', 'eq', 'user')",
    "rest",
]
TAIL = "{{ ns.a }}{{ ns.b }}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"


@pytest.fixture(scope="module")
def tok() -> Tokenizer:
    return with_controls(Tokenizer.builtin("bpe"))


@st.composite
def templates(draw: st.DrawFn) -> str:
    loops = []
    for _ in range(draw(st.integers(1, 2))):
        body = "".join(draw(st.lists(st.sampled_from(BODIES), min_size=1, max_size=4)))
        loop = f"{{% for m in {draw(st.sampled_from(LISTS))} %}}{body}{{% endfor %}}"
        loops.append(draw(st.sampled_from([loop, loop, f"{{% if outer > 1 %}}{loop}{{% endif %}}"])))
    return whole("".join(loops))


def whole(loops: str) -> str:
    return HEAD + SEEN * ("seen(" in loops) + COUNTED * ("counted(" in loops) + loops + TAIL


MESSAGES: st.SearchStrategy[list[dict[str, Any]]] = st.lists(
    st.builds(dict, role=st.sampled_from(["user", "assistant"]), content=st.sampled_from(["", "a", "b", " Hello "])),
    min_size=2,
    max_size=6,
)


def outcome(call: Any) -> Any:
    try:
        return call()
    except GgtokError as error:
        return str(error)


@given(templates(), MESSAGES, st.booleans())
def test_any_loop(tok: Tokenizer, template: str, messages: list[dict[str, Any]], raw: bool) -> None:
    check(tok, template, messages, raw)


@pytest.mark.parametrize("rows", ["messages", "messages[::-1]"])
def test_each_body(tok: Tokenizer, rows: str) -> None:
    messages = [{"role": role, "content": role[:1]} for role in ["user", "assistant"] * 2]
    for body in BODIES:
        check(tok, whole(f"{{% for m in {rows} %}}{body}{{% endfor %}}"), messages, False)


def check(tok: Tokenizer, template: str, messages: list[dict[str, Any]], raw: bool) -> None:
    """The ids, spans and mask are those of a whole rendering, or the error is."""
    chat, options = tok.chat(template_text=template, raw=raw), {"template_text": template, "raw": raw}
    done = 0
    for end in range(1, len(messages) + 1):
        prompt = messages[end - 1]["role"] != "assistant"
        flags: dict[str, Any] = {"add_generation_prompt": prompt, **options}
        expected = outcome(lambda: tok.encode_chat(messages[:end], **flags))  # noqa: B023
        found = outcome(lambda: chat.extend(messages[done:end]))  # noqa: B023
        if isinstance(expected, str):
            assert found == expected
            continue
        done = end
        assert chat.ids == expected
        encoding = outcome(lambda: tok.encode_chat(messages[:end], return_spans=True, **flags))  # noqa: B023
        assert outcome(lambda: chat.encoding) == encoding


@pytest.mark.parametrize("name", STOCK)
def test_stock_templates_run_new_turns_only(tok: Tokenizer, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A message after a long conversation runs the turns of a few messages."""
    ran: list[int] = []
    run = reuse.Turns._run

    def counted(self: reuse.Turns, *args: Any) -> Any:
        ran.append(1)
        return run(self, *args)

    monkeypatch.setattr(reuse.Turns, "_run", counted)
    chat, numbers = tok.chat(template_text=STOCK[name]), []
    for number in range(40):
        ran.clear()
        chat.append({"role": "assistant" if number % 2 else "user", "content": f"text {number}"})
        numbers.append(len(ran))
    assert max(numbers[4:]) <= 4 * (2 if name != "qwen 3" else 4)
    assert max(numbers[20:]) == max(numbers[4:20])


@pytest.mark.parametrize(
    ("body", "is_reused"),
    [
        ("{{ m.content }}{% break %}", False),
        ("{% macro f() %}{{ m.content }}{% endmacro %}{{ f() }}", False),
        ("{{ loop }}", False),
        ("{{ loop.cycle('a', 'b') }}", False),
        ("{{ [1] | random }}", False),
        ("{{ m.content ~ loop.last }}", True),
        ("{% call(x) f(m.content) %}{{ x }}{% endcall %}", True),
    ],
)
def test_which_loops_take_part(tok: Tokenizer, body: str, is_reused: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[int] = []
    run = reuse.Turns._run

    def counted(self: reuse.Turns, *args: Any) -> Any:
        ran.append(1)
        return run(self, *args)

    monkeypatch.setattr(reuse.Turns, "_run", counted)
    head = "{% macro f(x) %}{% if caller %}{{ caller(x) }}{% endif %}{{ x }}{% endmacro %}" if "call" in body else ""
    template = f"{head}{{% for m in messages %}}{body}{{% endfor %}}"
    tok.chat([{"role": "user", "content": "Hi"}], template_text=template).ids  # noqa: B018
    assert bool(ran) == is_reused
