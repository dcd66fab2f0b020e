"""Templates that fail or never end: what an error names, and what a call may cost."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ggtok import ChatTemplateError, Tokenizer
from test_chat import CHATML, HI, with_templates

# Most of these templates read only what they are about.
pytestmark = pytest.mark.filterwarnings("ignore::ggtok.TokenizerWarning")


@pytest.fixture(scope="module")
def tok() -> Tokenizer:
    return Tokenizer.builtin("bpe")


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


ATTACKS += [
    "{{ ('a' * 1000000).translate({97: 'a' * 1000}) }}",
    "{{ {'a': 1}|tojson(separators=('x' * 100000000, 'y')) }}",
    "{{ ('a ' * 1000000)|wordwrap(1) }}",
    "{{ ('a.b ' * 1000000)|urlize }}",
    "{{ strftime_now('%c' * 8000000) }}",
    "{{ (10 ** 100000) // (10 ** 50000) }}",
    "{% for a in range(100000) %}{% for b in range(100000) %}{{ '' if a is divisibleby 7 }}{% endfor %}{% endfor %}",
    "{{ dict.fromkeys(range(100000000)) }}",
    "{{a}}" * 100_000,
]


@pytest.mark.parametrize("template", ATTACKS, ids=range(len(ATTACKS)))
def test_templates_are_bounded(tok: Tokenizer, template: str) -> None:
    """Without limits, these would run for hours or take all memory."""
    for call in (tok.apply_chat_template, tok.encode_chat):
        try:
            size = len(call(HI, template_text=template))
        except ChatTemplateError as error:
            size = 500 * len(str(error))
        assert size < 1_000_000


@pytest.mark.skipif(sys.platform != "linux", reason="limits of the address space are those of Linux")
def test_attacks_take_little_memory() -> None:
    script = (
        "import resource, sys; sys.path.insert(0, sys.argv[1])\n"
        "import ggtok, test_chat_limits as test\n"
        "tok = ggtok.Tokenizer.builtin('bpe')\n"
        "tok.apply_chat_template(test.HI)\n"
        "size = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize() + (200 << 20)\n"
        "resource.setrlimit(resource.RLIMIT_AS, (size, size))\n"
        "for template in test.ATTACKS:\n"
        "    try: tok.apply_chat_template(test.HI, template_text=template, warnings=[])\n"
        "    except ggtok.ChatTemplateError: pass\n"
    )
    subprocess.run([sys.executable, "-c", script, str(Path(__file__).parent)], check=True)


@pytest.mark.parametrize(
    ("template", "line", "column", "message"),
    [
        ("\n\n{{ raise_exception('no way') }}", 3, 19, "it refuses these messages: no way"),
        ("x\n{% bad %}", 2, 4, "it has a syntax error: unknown statement 'bad'"),
        ("{{ 'x'|nofilter }}", 1, 7, "String has no filter 'nofilter'"),
        ("{% include 'x' %}", 1, 4, None),
        ("{{ 'x'", 1, 7, None),
    ],
)
def test_errors_name_template_and_line(template: str, line: int, column: int, message: str | None) -> None:
    tok = with_templates(rag=template)
    for call in (tok.apply_chat_template, tok.encode_chat):
        with pytest.raises(ChatTemplateError) as caught:
            call(HI, template="rag")
        error = caught.value
        assert (error.template, error.line, error.column) == ("tokenizer.chat_template.rag", line, column)
        place = f"chat template 'tokenizer.chat_template.rag', line {line}, column {column}: "
        assert str(error) == place + (message or str(error).removeprefix(place))


def test_long_conversations_are_within_the_limits(tok: Tokenizer) -> None:
    messages = [{"role": "user" if index % 2 else "assistant", "content": "word " * 200} for index in range(2000)]
    ids = tok.encode_chat(messages, template_text=CHATML, add_generation_prompt=False)
    assert len(ids) > 400_000
    one = [{"role": "user", "content": "word " * 4_000_000}]
    assert len(tok.apply_chat_template(one, template_text=CHATML)) > 20_000_000


def test_nested_arguments_of_a_call_need_no_stack(tok: Tokenizer) -> None:
    """A server may call from deep inside its own frames."""
    arguments: dict[str, object] = {"a": 1}
    for _ in range(80):
        arguments = {"a": arguments}
    call = {"type": "function", "function": {"name": "f", "arguments": arguments}}
    messages: list[Any] = [*HI, {"role": "assistant", "tool_calls": [call]}, {"role": "tool", "content": "x"}]
    template = "{% for m in messages %}{{ m.role }}{{ m.tool_calls }}{% endfor %}"

    def grown() -> object:
        chat = tok.chat(template_text=template)
        chat.extend(messages)
        return chat.messages

    calls = (grown, lambda: tok.encode_chat(messages, template_text=template))

    def at(depth: int, call: Callable[[], object]) -> object:
        return at(depth - 1, call) if depth else call()

    left = sys.getrecursionlimit() - len(inspect.stack())
    for call_it in calls:
        expected = call_it()
        assert at(left - 60, call_it) == expected
