"""Random chat templates: they render or raise `GgtokError`, and cost what the limits allow.

`GGTOK_HYPOTHESIS=thorough` tries thousands of templates.
"""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from ggtok import GgtokError, Tokenizer
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

# Most of these templates read only what they are about.
pytestmark = pytest.mark.filterwarnings("ignore::ggtok.TokenizerWarning")

CHARS = 64 << 20
"""Bytes that a call may allocate."""
CALL = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"type": "function", "function": {"name": "f", "arguments": {"x": [1, 2]}}}],
}
MESSAGES: list[dict[str, Any]] = [
    {"role": "system", "content": "Be kind. <|im_end|>"},
    {"role": "user", "content": [{"type": "text", "text": "Hi"}]},
    CALL,
]

NAMES = st.sampled_from(
    ["a", "b", "m", "ns.s", "ns.l", "messages", "loop", "bos_token", "m.content", "m.role", "tools"]
)
NUMBERS = st.sampled_from(["0", "1", "2", "-1", "60", "1000", "10**6", "10**9", "2**70", "1.5", "1e308", "0.1"])
STRINGS = st.sampled_from(
    ["''", "'a'", "'ab' * 99", "'%s%s'", "'{0}{0}'", "'%999999999d'", "'<|im_start|>'", "'\\n'", "'é中'", "'{:>9999}'"]
)
# One word each: what comes after a `|`, and after a `.`.
_FILTERS = (
    "abs attr('upper') batch(3) batch(10**9,0) capitalize center(10**9) center(9) count default('x',true) "
    "dictsort escape filesizeformat first float forceescape format(1,2) groupby('role') indent(10**9) indent(4) "
    "int items join join(ns.s) last length list lower map('upper') map(attribute='role') map('string') max min "
    "pprint random reject rejectattr('role') replace('a',ns.s) replace('','aa') reverse round(10**9) safe select "
    "selectattr('role') slice(10**9) slice(2) sort string striptags sum title tojson tojson(indent=10**9) trim "
    "truncate(5) unique upper urlencode urlize wordcount wordwrap(3) xmlattr nofilter "
)
_METHODS = (
    "upper() split() split('a') join(ns.l) replace('a',ns.s) format(a,b) rjust(10**9) zfill(9) encode() "
    "strip('a') items() keys() get('role') append(1) __class__ mro() count('a') title() splitlines() "
    "startswith('a') rfind('a') isdigit() format_map({'a':a}) translate({97:ns.s}) expandtabs(10**9) "
    "partition('a') nope "
)
FILTERS, METHODS = st.sampled_from(_FILTERS.split()), st.sampled_from(_METHODS.split())


def expressions(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    operator = st.sampled_from(["+", "-", "*", "/", "//", "%", "**", "~", "==", "<", "in", "not in", "and", "or"])
    return st.one_of(
        st.tuples(inner, operator, inner).map(lambda parts: f"({' '.join(parts)})"),
        st.tuples(inner, FILTERS).map(lambda parts: f"({parts[0]})|{parts[1]}"),
        st.tuples(inner, METHODS).map(lambda parts: f"({parts[0]}).{parts[1]}"),
        st.tuples(inner, inner).map(lambda parts: f"[{parts[0]}, {parts[1]}]"),
        st.tuples(inner, inner).map(lambda parts: f"{{'a': {parts[0]}, 'b': {parts[1]}}}"),
        st.tuples(inner, inner).map(lambda parts: f"({parts[0]})[{parts[1]}]"),
        st.tuples(inner, inner).map(lambda parts: f"({parts[0]})[{parts[1]}:]"),
        st.tuples(inner, inner, inner).map(lambda parts: f"({parts[0]} if {parts[1]} else {parts[2]})"),
        inner.map(lambda part: f"range({part})"),
        inner.map(lambda part: f"macro({part})"),
        inner.map(lambda part: f"namespace(s={part}, l={part})"),
        inner.map(lambda part: f"raise_exception({part})"),
        inner.map(lambda part: f"strftime_now({part})"),
        st.tuples(inner, inner).map(lambda parts: f"cycler({parts[0]}, {parts[1]}).next()"),
    )


EXPRESSIONS = st.recursive(st.one_of(NAMES, NUMBERS, STRINGS), expressions, max_leaves=6)


def blocks(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(EXPRESSIONS, inner).map(lambda parts: f"{{% for m in {parts[0]} %}}{parts[1]}{{% endfor %}}"),
        inner.map(lambda body: f"{{% for a in range(60) %}}{body}{{% endfor %}}"),
        inner.map(lambda body: f"{{% for m in messages recursive %}}{body}{{{{ loop(messages) }}}}{{% endfor %}}"),
        st.tuples(EXPRESSIONS, inner).map(lambda parts: f"{{% if {parts[0]} %}}{parts[1]}{{% else %}}x{{% endif %}}"),
        inner.map(lambda body: f"{{% macro macro(a) %}}{body}{{% endmacro %}}"),
        inner.map(lambda body: f"{{% call macro(b) %}}{body}{{% endcall %}}"),
        inner.map(lambda body: f"{{% set ns.s %}}{body}{{% endset %}}"),
        inner.map(lambda body: f"{{% filter upper %}}{body}{{% endfilter %}}"),
        inner.map(lambda body: f"{{% generation %}}{body}{{% endgeneration %}}"),
    )


STATEMENTS = st.one_of(
    EXPRESSIONS.map(lambda value: f"{{{{ {value} }}}}"),
    EXPRESSIONS.map(lambda value: f"{{% set ns.l = {value} %}}"),
    EXPRESSIONS.map(lambda value: f"{{% set a = {value} %}}"),
    st.sampled_from(["{% set ns.s = ns.s ~ ns.s %}", "{% set ns.l = [ns.l, ns.l] %}", "{% break %}", "{% continue %}"]),
    st.sampled_from(
        ["<|im_start|>", "text", "{{", "{% include 'x' %}", "{#", "{{ self }}", "{% endfor %}", "{{ loop }}"]
    ),
)
TEMPLATES = st.recursive(STATEMENTS, blocks, max_leaves=8).map(
    lambda body: "{% set ns = namespace(s='aaaaaaaa', l=[1]) %}{% macro macro(a) %}[{{ a }}]{% endmacro %}" + body
)


@pytest.fixture(scope="module")
def tok() -> Any:
    return Tokenizer.builtin("bpe")


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(TEMPLATES)
def test_any_template_is_bounded(tok: Tokenizer, template: str) -> None:
    for call in (tok.apply_chat_template, tok.encode_chat):
        try:
            result: str | list[int] = call(MESSAGES, template_text=template, add_generation_prompt=False)
        except GgtokError as error:
            result = str(error)
        assert len(result) <= CHARS


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(st.sampled_from([*"{}%#-+|.'\"() \n[]=~a1", "for ", "if ", "end", "set ", "in "]), max_size=60).map(
        "".join
    )
)
def test_noise_is_refused_or_renders(tok: Tokenizer, template: str) -> None:
    with suppress(GgtokError):
        tok.encode_chat(MESSAGES, template_text=template, add_generation_prompt=False)


@pytest.mark.skipif(sys.platform != "linux", reason="limits of the address space are those of Linux")
def test_any_template_takes_little_memory() -> None:
    """With 1 GiB of address space, of which the interpreter and its libraries take the most, no template runs out."""
    script = (
        "import resource; resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))\n"
        "import sys, pytest\n"
        "sys.exit(pytest.main(['-q', '-n', '0', '-p', 'no:cacheprovider', '-k', 'bounded', sys.argv[1]]))\n"
    )
    subprocess.run([sys.executable, "-c", script, str(Path(__file__))], check=True, stdout=subprocess.DEVNULL)
