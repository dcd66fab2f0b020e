"""The words and rules of made-up templates: tables that `jinja_templates` and `jinja_values` draw from.

`PRODUCTIONS` is a grammar by the type of the value: `{int}` stands for any expression of that type.
"""

from __future__ import annotations

import re

MODES = {"single": 40, "program": 28, "space": 7, "real": 13, "broken": 12}

STRINGS = [
    "", " ", "a", "b", "x", "abc", "Hello World", "  pad\t", "é", "日本語", "😀 x", "ÀÉß",
    "line\nbreak\n", "\n", "a\n\n b", "<|im_end|>", "a,b,,c", "it's", 'a "q"', "back\\slash", "{{ x }}",
    "12", "-7", "3.5", "1f", "077", "+5", " 42abc", "nan", "-inf", "1e5",
    "99999999999", "user", "assistant", "role", "content", "TRUE", "tab\tx",
    "cr\r\nlf", "\x01\x7f", "nul\x00x", "xxabxx", "upper lower", "number", "a{}b{}", "{}", "word  two three", "é日",
    "\xa0nbsp\u2028", "items", "-",
]  # fmt: skip
INTEGERS = [0, 1, -1, 2, 3, 4, 5, 7, 10, 16, 42, -5, -6, 255, 256, 257, 1000]
HUGE = [2**31 - 1, 2**31, -(2**31) - 1, 2**53, 2**53 + 1, 2**62, 2**63 - 1, -(2**63), 10**15, 10**18, -(2**53) - 1]
BEYOND = [2**63, 2**64 - 1, 2**64, 10**30]
"""Integers that JSON can hold and the engine cannot."""
FLOATS = [
    0.0, -0.0, 0.5, 1.0, -2.5, 48.85661234, 1e-07, 1e+20, 3.14159, 123456.789, 1000000.0, 1234567.0, 1e+16, 1e+300,
    0.1, 2.0, 99.999999999, 1e-05, -1e-10, 1e+22,
]  # fmt: skip
LITERALS = ["0.0", "1.5", "-2.25", "48.85661234", "0.0000001", "100000000000000000000.5", "3.0", "1234567.5", "1.50"]
KEYS = ["a", "b", "role", "content", "n", "name", "items", "key é", "length", "x", "1"]

VARIABLES = {
    "int": ["n", "m"],
    "float": ["f", "g"],
    "str": ["s", "t", "u"],
    "bool": ["yes", "no"],
    "none": ["nil"],
    "undef": ["missing"],
    "ints": ["xs"],
    "strs": ["ss"],
    "dicts": ["ms"],
    "list": ["mix", "nothing"],
    "dict": ["d", "deep"],
}  # fmt: skip
"""The values of every made-up template, by type."""

PRODUCTIONS: dict[str, list[str]] = {
    "int": [
        "{int} + {int}", "{int} - {int}", "{int} * {int}", "{int} % {int}", "-{int}", "+{int}", "- {int}",
        "{str}|length", "{list}|length", "{dict}|length", "{list}|count", "{str}|int", "{str}|int(7)",
        "{str}|int({int}, 16)", "{int}|abs", "{str}|int(base={small}, default={int})", "{float}|int", "{bool}|int",
        "{ints}|first", "{ints}|last", "{ints}|min", "{ints}|max", "{ints}[{index}]", "{ints}.{small}",
        "{int} if {bool} else {int}", "{int}|default({int})", "{undef}|default({int})", "{undef}|d({int})",
        "{undef}|length", "{dict}.get('n', {int})", "{undef}|wordcount", "{int} or {int}", "{ints}.pop()",
        "{undef}|sum", "{int}|int", "{str}.length()", "({int})", "({ints}|sort)[0]",
    ],
    "float": [
        "{float} + {int}", "{int} - {float}", "{float} * {float}", "{int} / {int}", "{float} / {float}",
        "{float} % {int}", "-{float}", "{int}|float", "{str}|float", "{str}|float({float})", "{float}|abs",
        "{bool}|float", "{float}|float", "{float} if {bool} else {float}", "{undef}|default({float})",
    ],
    "str": [
        "{str} ~ {str}", "{str} + {str}", "{str} ~ {int}", "{float} ~ {str}", "{str} ~ {bool}", "{str} ~ {none}",
        "{undef} ~ {str}", "{str} ~ {list}", "{str} + {dict}", "{str} * {small}", "{small} * {str}", "{str}|upper",
        "{str}|lower", "{str}|title", "{str}|capitalize", "{str}|trim", "{str}|strip", "{str}.strip()",
        "{str}.strip({str})", "{str}.lstrip()", "{str}.rstrip({str})", "{str}|replace({str}, {str})",
        "{str}.replace({str}, {str})", "{str}|indent", "{str}|indent({small})",
        "{str}|indent(width={small}, first={bool}, blank={bool})", "{str}|indent({str}, {bool}, {bool})",
        "{str}[{index}]", "{str}[{index}:]", "{str}[:{index}]", "{str}[::{step}]", "{str}[{index}:{index}:{step}]",
        "{strs}|join", "{strs}|join({str})", "{ints}|join(', ')", "{dicts}|join({str}, 'content')",
        "{dicts}|join(attribute='role', d='+')", "{any}|tojson", "{list}|tojson(indent={small})",
        "{dict}|tojson(indent=2)", "{list}|tojson(ensure_ascii=true)", "{dict}|tojson(separators=(',', ':'))",
        "{any}|string", "{int}|string", "{str}|string", "{list}|string", "{dict}|string", "{tuple}|string",
        "{strs}|first", "{strs}|last", "{strs}[{index}]", "{str}|safe", "{int}|upper", "{list}|upper",
        "{str}.format({any})", "'{}-{}'.format({any}, {str})", "{str}.split({str})|last", "{str}.split({str})[0]",
        "{str}.rsplit({str}, {small})|first", "{dicts}[0].content", "{dicts}[-1]['role']",
        "{str} if {bool} else {str}", "{str} if {bool}", "{str} or {str}", "{str} and {str}",
        "{undef}|default({str})", "{str}|default({str}, true)", "{none}|default({str})", "{dict}.a", "{dict}['role']",
        "{str} {str}", "strftime_now('%Y-%m-%d')", "({str}|upper)|lower", "{none}|string", "{bool}|string",
        "{undef}|string", "{float}|string", "{str}.upper().lower()",
    ],
    "bool": [
        "{int} < {int}", "{float} >= {int}", "{int} <= {float}", "{str} > {str}", "{any} == {any}", "{any} != {any}",
        "{int} == {float}", "{str} == {str}", "not {any}", "{bool} and {bool}", "{bool} or {bool}", "{str} in {str}",
        "{str} not in {str}", "{int} in {ints}", "{any} in {list}", "{str} in {dict}", "{any} not in {tuple}",
        "{any} in {undef}", "{none} in {list}", "{any} is defined", "{any} is not defined", "{any} is undefined",
        "{any} is none", "{any} is string", "{any} is number", "{any} is integer", "{any} is float",
        "{any} is boolean", "{any} is true", "{any} is not false", "{any} is mapping", "{any} is iterable",
        "{any} is sequence", "{any} is callable", "{int} is odd", "{int} is even", "{int} is divisibleby 3",
        "{int} is divisibleby({small} + 1)", "{str} is lower", "{str} is upper", "{any} is eq {any}",
        "{int} is ge({int})", "{int} is gt({int})", "{str} is lt({str})", "{any} is ne({any})",
        "{any} is equalto({any})", "{int} is greaterthan 2", "{int} is lessthan {int}", "{any} is in({list})",
        "{any} is sameas({any})", "{str} is test", "'number' is test", "{str}.startswith({str})",
        "{str}.endswith({str})", "{int}|abs > 3", "{bool} if {bool} else {bool}", "{list} == {list}",
        "{tuple} == {tuple}", "{dict} == {dict}", "({bool})", "not {bool} and {bool}", "{str} in {strs}",
    ],
    "none": ["{dict}.get('nope')", "{none}|default({none})", "{none} if {bool} else {none}"],
    "undef": [
        "{dict}.nope", "{list}[99]", "{str}[99]", "{dict}['nope']", "{undef}.x", "{undef}[{any}]", "[]|first",
        "{int} if false", "{list}[]", "{undef}|last", "{int}.x",
    ],
    "ints": [
        "[{int}, {int}, {int}]", "[{int}]", "range({small})", "range({small}, {small})",
        "range({small}, {index}, {step})", "{ints} + {ints}", "{ints}[{index}:{index}]", "{ints}[::{step}]",
        "{ints}|sort", "{ints}|sort(reverse={bool})", "{ints}|reverse", "{ints}|list", "{ints}|select('odd', 0)",
        "{ints}|reject('gt', {int})", "{dicts}|map(attribute='n')", "{ints}|select('equalto', {int})",
        "{ints}.append({int})", "{dicts}|map(attribute='nope', default={int})",
    ],
    "strs": [
        "[{str}, {str}]", "{str}.split({str})", "{str}.split()", "{str}.rsplit({str}, {small})",
        "{str}.split(',', {small})", "{strs}|sort", "{strs}|reverse", "{strs} + {strs}", "{strs}[{index}:]",
        "{dicts}|map(attribute='role')", "{dict}.keys()", "{strs}|list", "{dict}|list", "{strs}|select('in', {strs})",
        "{strs}|sort(reverse=true)", "{strs}.append({str})",
    ],
    "dicts": [
        "[{dict}, {dict}]", "{dicts}|selectattr('a')", "{dicts}|rejectattr('role')",
        "{dicts}|selectattr('n', 'gt', {int})", "{dicts}|selectattr('role', 'equalto', {str})",
        "{dicts}|rejectattr('content', 'eq', {str})", "{dicts}[{index}:]", "{dicts}|sort(attribute='n')",
        "{dicts}|sort(attribute='role', reverse={bool})", "{dicts}|reverse", "{dicts} + {dicts}", "{dicts}[::{step}]",
        "{dicts}|selectattr('n', 'odd', 0)", "{dicts}|list",
    ],
    "tuple": [
        "({any}, {any})", "({any}, {any}, {any})", "{tuple}|reverse", "{tuple}[{index}:]", "({any},  {str})",
        "({dict}|items|first)", "{dict}.items()[0]", "({int}, {int})|sort",
    ],
    "list": [
        "[{any}, {any}]", "[{any}]", "[]", "[{any}, {any},]", "{list} + {list}", "{list}|reverse",
        "{list}[{index}:{index}:{step}]", "{dict}|items", "{dict}.items()", "{dict}.values()", "{list}|list",
        "{ints}", "{strs}", "{dicts}", "{tuple}", "{list} if {bool} else {list}", "{undef}|list", "{none}|map",
        "{list}.append({any})", "{list} + {tuple}",
    ],
    "dict": [
        "{{'a': {any}, 'b': {any}}}", "{{{str}: {any}}}", "{{'role': {str}, 'content': {str}, 'n': {int}}}", "{{}}",
        "{{{int}: {any}}}", "{{{any}: {any}, 'a': {int}}}", "dict(a={any}, b={any})", "dict({dict}, c={any})",
        "namespace(a={any}, n={int})", "dict([({str}, {any})])", "{dicts}[{index}]", "{dicts}|first",
        "{dict}|dictsort", "{dict}|dictsort(reverse={bool})", "{dict}|dictsort(by='value')",
        "{dict} if {bool} else {dict}", "{{'a': {any}, 'a': {any}, }}", "{{1: {any}, true: {any}, 1.0: 'c'}}",
        "{dicts}|max(attribute='n')", "{dicts}|min(attribute='role')", "{dict} or {dict}",
    ],
    "func": [
        "range", "dict", "{str}.upper", "{list}.append", "{dict}['get']", "namespace", "tojson", "raise_exception",
    ],
}  # fmt: skip

METHODS: dict[str, list[str]] = {
    "int": ["default", "abs", "int", "float", "safe", "string", "tojson"],
    "float": ["default", "abs", "int", "float", "safe", "string", "tojson"],
    "str": [
        "default", "upper", "lower", "strip", "rstrip", "lstrip", "title", "capitalize", "length", "startswith",
        "endswith", "split", "rsplit", "replace", "format", "int", "float", "string", "slice", "safe", "tojson",
        "indent", "join",
    ],
    "bool": ["default", "int", "float", "safe", "string", "tojson"],
    "list": [
        "default", "list", "first", "last", "length", "slice", "selectattr", "select", "rejectattr", "reject", "join",
        "string", "tojson", "map", "append", "pop", "sort", "reverse", "min", "max", "unique",
    ],
    "dict": ["get", "keys", "values", "items", "tojson", "string", "length", "dictsort", "join"],
    "none": [
        "default", "tojson", "string", "safe", "items", "map", "reject", "rejectattr", "select", "selectattr",
        "unique",
    ],
    "undef": [
        "default", "capitalize", "first", "items", "join", "last", "length", "list", "lower", "map", "max", "min",
        "reject", "rejectattr", "replace", "reverse", "safe", "select", "selectattr", "sort", "string", "strip",
        "sum", "title", "truncate", "unique", "upper", "wordcount",
    ],
}  # fmt: skip
"""The functions that values of each type have."""
METHODS["ints"] = METHODS["strs"] = METHODS["dicts"] = METHODS["tuple"] = METHODS["list"]

RECEIVERS = {"int": "Integer", "float": "Float", "str": "String", "bool": "Boolean", "list": "Array", "tuple": "Tuple",
             "dict": "Object", "none": "None", "undef": "Undefined"}  # fmt: skip
"""What the engine calls these types."""

TESTS = [
    "boolean", "callable", "odd", "even", "false", "true", "divisibleby", "string", "integer", "float", "number",
    "iterable", "sequence", "mapping", "lower", "upper", "none", "defined", "undefined", "eq", "equalto", "ge", "gt",
    "greaterthan", "lt", "lessthan", "ne", "in", "test", "sameas", "escaped", "filter",
]  # fmt: skip
FORMS = {
    "method": 44,
    "test": 14,
    "binary": 14,
    "member": 5,
    "function": 6,
    "slice": 6,
    "unary": 3,
    "block": 3,
    "for": 3,
}
FORMS |= {"odd": 9, "sorted": 2, "random": 2}
"""What a case of the mode "single" shows, and how often."""
LOOP = ["index", "index0", "revindex", "revindex0", "first", "last", "length", "previtem", "nextitem", "nope"]
ODD = [
    "{% set (v, w) = {list} %}{{ v }}{{ w }}", "{% set xs[0] = 1 %}", "{% set d.0 = 1 %}", "{% set d['a'] = {any} %}",
    "{% set d() = 1 %}", "{% set v, w = {any} %}{{ v }}", "{% set v, 1 = (1, 2) %}",
    "{% set d.a = {any} %}{{ d|string }}", "{% set {any}.a = {any} %}", "{% set d.a, d.b = 1, 2 %}",
    "{% set v = {any}, {any} %}{{ [v]|string }}", "{% set 'v' = 1 %}",
    "{% set v %}{{ {any} }}{% endset %}{{ [v]|string }}", "{% set v, w %}ab{% endset %}",
    "{% set d.a %}ab{% endset %}{{ d.a }}", "{% for 1 in {list} %}{% endfor %}",
    "{% for v, 1 in [[1, 2]] %}{% endfor %}", "{% for (v, w) in {dict} %}{{ v }}{% endfor %}",
    "{% for v.a in {ints} %}{% endfor %}", "{% for v in xs recursive %}{{ v }}{% endfor %}",
    "{% for v in 1, 2 %}{{ v }}{% endfor %}", "{% for v in {list} if v %}{{ v }}{% else %}-{% endfor %}{{ v }}",
    "{% for v in (xs if yes) %}{{ v }}{% endfor %}", "{% for v in xs if yes else ss %}{{ v }}{% endfor %}",
    "{% for v in xs %}{% continue %}{% else %}-{% endfor %}",
    "{% for v in xs %}a{% if v %}b{% break %}{% endif %}c{% else %}-{% endfor %}",
    "{% for v in xs %}{% set n = v %}{% endfor %}{{ n }}",
    "{% for v in xs %}{% if w is defined %}{{ w }}{% endif %}{% set w = v %}{% endfor %}",
    "{% if no %}{% set n = 'b' %}{% endif %}{{ n }}", "{% macro 'm'() %}{% endmacro %}",
    "{% macro m(1) %}a{% endmacro %}{{ m(2) }}", "{% macro m('a'=1) %}{% endmacro %}{{ m() }}",
    "{% macro m(v, w=v) %}{{ v }}{{ w }}{% endmacro %}{{ m({any}) }}",
    "{% macro m(v) %}{{ v }}{{ n }}{% endmacro %}{{ m(n={int}) }}",
    "{% macro m(v=1, w) %}{{ v }}{{ w }}{% endmacro %}{{ m({int}) }}",
    "{% macro m(v) %}{{ [v]|string }}{% endmacro %}{{ m(w=2) }}",
    "{% macro m() %}{{ v }}{% endmacro %}{% for v in {ints} %}{{ m() }}{% endfor %}",
    "{{ m() }}{% macro m() %}{% endmacro %}",
    "{% macro m(k) %}{{ k }}{% if k > 0 %}{{ m(k - 1) }}{% endif %}{% endmacro %}{{ m({small}) }}",
    "{% macro m() %}{% endmacro %}{{ [m]|string }}{{ m is callable }}",
    "{% macro m() %}{% break %}{% endmacro %}{% for v in xs %}a{{ m() }}b{% endfor %}",
    "{% macro m() %}{% set n = 'b' %}{% endmacro %}{{ m() }}{{ n }}", "{% call range(3) %}a{% endcall %}",
    "{% call nope() %}{% endcall %}", "{% call s.upper() %}{% endcall %}", "{% call dict(a=1) %}{% endcall %}",
    "{% macro m(v=1) %}{{ caller(v, w={any}) }}{% endmacro %}{% call(v, w) m() %}{{ v }}{{ w }}{% endcall %}",
    "{{ caller() }}",
    "{% macro m() %}{{ caller() }}{% endmacro %}{% for v in xs %}{% call m() %}{{ v }}{% endcall %}{% endfor %}",
    "{{ ('é' ~ s)[{small}]|tojson(true) }}", "{{ true is ne(false) }}{{ [true, false]|sort }}",
    "{{ {any} is in(missing) }}",
    "{{ n is sameas(n) }}{{ xs is sameas(xs) }}{{ s is sameas(s) }}{{ f is sameas(f) }}{{ none is sameas(nil) }}",
    "{{ 256 is sameas(256) }}{{ 257 is sameas(257) }}{{ true is sameas(yes) }}{{ true is sameas(1) }}",
    "{{ {int} is divisibleby({small}) }}", "{{ {int} % {small} }}|{{ {float} % {small} }}|{{ {int} / {small} }}",
    "{{ {any} is 'odd' }}", "{{ {any} is s.upper() }}", "{{ {any}|'upper' }}", "{{ {str}|s.upper() }}",
    "{{ {any}|upper.lower }}", "{{ {str}.-1 }}", "{{ {str}.(1) }}", "{{ {any}|(upper) }}", "{{ range(1, 2, 0) }}",
    "{{ strftime_now('') }}", "{{ dicts|selectattr('a', 'nope', 1) }}", "{{ ms|selectattr({key}, 'nope', 1) }}",
    "{{ xs|select('nope', 1) }}", "{{ dict(**d) }}", "{{ dict(a=1, a=2)|string }}", "{{ [*xs] }}",
    "{{ {any} is not defined is true }}", "{{ not {any} is none }}", "{{ {int} is odd or {bool} }}",
    "{{ {any} is in {list} }}", "{{ -{int}|abs }}", "{{ {int} - {int} - {int} }}",
    "{{ 2 - 1 }}{{ 2 -1 }}{{ 2-1 }}{{ xs[0] -1 }}{{ (2)-1 }}", "{{ {int} ** 2 }}", "{{ {int} // 2 }}",
    "{{ {str} == {str} == {bool} }}", "{{ {int} < {int} < {int} }}", "{{ 'a' in 'ab' == true }}",
    "{{ {bool} and {bool} or {bool} }}", "{{ xs[1, 2] }}", "{{ {any} if {bool} else {any} if {bool} else {any} }}",
    "{{ 1 if {bool} }}", "{{ xs[:] }}{{ xs[::] }}{{ xs[1:2:3:4] }}{{ s[] }}", "{{ {list}[{any}:{any}] }}",
    "{% filter upper|lower %}aB{% endfilter %}", "{% filter 'upper' %}aB{% endfilter %}",
    "{% filter nope %}{% endfilter %}", '{{ \'a\' \'b\' "c" }}',
    "{% if {any} %}1{% elif {any} %}2{% else %}3{% else %}4{% endif %}", "{% raw %}{{ x }}{% endraw %}",
    "{{ loop }}{{ loop.index }}", "{% break %}", "", "{{ 1.5.2 }}", "{{ 1.x }}", "{{ 1 .x }}", "{{ .5 }}",
    "{{ 99999999999999999999 }}", "{{ 9223372036854775807 }}{{ -9223372036854775808 }}", "{{ 1e5 }}", "{{ 'a",
    "{{ 'a\\", "{{ 'a\\x' }}", "{#", "{# a", "{{", "{%", "{{-", "{{ x -", "a{%", "{{ }}", "{% %}", "{{ x }} }}",
    "a }} b %} c #}", "{{ {'a': {'b': 1}}['a']['b'] }}", "{{ [1, 2, }}", "{{ [,] }}", "{{ [1 2] }}",
    "{{ {'a': 1 'b': 2} }}", "{{ f(1 2) }}", "{{ (1 }}", "{{ () }}", "{{ (1,) }}", "{{ {,} }}", "{{ 1, 2 }}",
    "{% generation", "{{ {any} }}{% set true = false %}{{ true }}{% set range = 1 %}{{ range }}{{ dict }}",
    "{{ dict == range }}{{ s.upper == s.lower }}{{ [dict]|string }}", "{{ xs.append({any}) }}{{ xs|string }}",
    "{% set v = d %}{% set v.z = 1 %}{{ d|string }}", "{% set v = xs %}{{ v.pop() }}{{ xs }}",
]  # fmt: skip
"""Rare forms. Their braces of expressions stand for types, too."""
TESTED = {"odd": "int", "even": "int", "divisibleby": "int", "lower": "str", "upper": "str", "test": "str"}
"""Tests that want one type."""
FUNCTIONS = ["raise_exception", "dict", "namespace", "strftime_now", "range", "tojson", "test_is_in", "test_is_odd"]
UNKNOWN = [
    "count",
    "d",
    "e",
    "trim",
    "escape",
    "round",
    "batch",
    "nope",
    "find",
    "isdigit",
    "update",
    "__class__",
    "loop",
]
"""Filters that are other names, or that other engines have."""

ARGUMENTS: dict[str, list[str]] = {
    "default": ["{any}", "{any}, {bool}", "{any}, boolean={bool}", "boolean=true", "{any}, true"],
    "strip": ["", "{str}", "chars={str}", "{none}"],
    "lstrip": ["", "{str}", "chars={str}"],
    "rstrip": ["", "{str}", "chars={str}"],
    "startswith": ["{str}", "''"],
    "endswith": ["{str}", "''"],
    "split": ["", "{str}", "{str}, {index}", "', '", "sep={str}", "{none}"],
    "rsplit": ["", "{str}", "{str}, {index}", "','"],
    "replace": [
        "{str}, {str}", "{str}, ''", "'', {str}", "{str}, {str}, {int}", "{str}, {str}, -1", "old={str}, new={str}",
    ],
    "format": ["", "{any}", "{any}, {any}", "{str}, {int}, {float}"],
    "int": ["", "{int}", "{any}, {small}", "default={any}", "base={int}", "0, 16", "1, 0", "base=2, default=-1"],
    "float": ["", "{float}", "default={any}", "{int}"],
    "slice": ["{index}", "{index}, {index}", "{index}, {index}, {step}", "{int}, {int}, {int}"],
    "indent": [
        "", "{small}", "{small}, {bool}", "{small}, {bool}, {bool}", "width={small}", "first=true", "blank=true",
        "{str}, true", "{str}, first=true, blank=true", "{index}", "{none}, true",
    ],
    "tojson": [
        "", "indent={small}", "{bool}", "ensure_ascii={bool}", "{bool}, {index}", "separators=({str}, {str})",
        "indent={index}", "{bool}, {small}, [{str}]", "sort_keys={bool}", "indent=2, separators=[',', ':']",
        "separators=[',']",
    ],
    "selectattr": [
        "{key}", "{key}, {test}, {any}", "{key}, 'eq', {str}", "{test}, {any}", "{key}, 'defined'",
        "'0', 'gt', {int}",
    ],
    "join": ["", "{str}", "{str}, {key}", "attribute={key}", "d={any}", "d={str}, attribute={key}", "{str}, {index}"],
    "map": [
        "attribute={key}", "attribute={key}, default={any}", "'upper'", "attribute={index}",
        "default=1, attribute='a'",
    ],
    "append": ["{any}"],
    "pop": ["", "{index}"],
    "get": ["{key}", "{key}, {any}"],
    "sort": [
        "", "reverse={bool}", "attribute={key}", "{bool}", "{bool}, {bool}, {key}", "attribute={index}",
        "reverse=1, attribute='n'",
    ],
    "min": ["", "attribute={key}", "{bool}, {key}"],
    "max": ["", "attribute={key}", "{bool}, {key}"],
    "dictsort": [
        "", "reverse={bool}", "by='value'", "{bool}, 'value', {bool}", "by='key', reverse=true", "{bool}, {any}",
    ],
    "divisibleby": ["{int}", "{small}", "3"],
    "in": ["{list}", "{str}", "{dict}", "{tuple}"],
    "test": [""],
    "raise_exception": ["{str}", "{any}"],
    "strftime_now": ["'%Y-%m-%d'", "'%d %b %Y %H:%M'", "'%A %B %j %p %I'", "{str}"],
    "dict": [
        "", "{dict}", "a={any}", "{dict}, a={any}", "[({str}, {any})]", "{list}", "{dict}|items",
        "[[{str}, {int}]], b=2",
    ],
    "range": [
        "{small}", "{small}, {small}", "{index}, {small}, {step}", "{small}, {index}, {step}",
        "{small}, stop={small}",
    ],
}  # fmt: skip
"""Arguments that make sense, by function; the others get any."""
for _same, _name in (
    ("select reject rejectattr", "selectattr"), ("namespace", "dict"), ("d", "default"), ("trim", "strip"),
    ("eq equalto ge gt greaterthan lt lessthan ne sameas", "append"), ("test_is_in", "in"),
):  # fmt: skip
    ARGUMENTS |= dict.fromkeys(_same.split(), ARGUMENTS[_name])

PLACE = re.compile(r"\{\{|\}\}|\{([a-z]+)\}")
OPERATORS = ["+", "-", "*", "/", "%", "~", "==", "!=", "<", ">", "<=", ">=", "and", "or", "in", "not in"]
TYPES = ["int", "float", "str", "bool", "none", "undef", "ints", "strs", "dicts", "list", "tuple", "dict", "func"]
ANY = [*TYPES, "int", "str", "str", "float", "list", "dict", "bool"]

TOKEN = re.compile(r"\{[{%#]-?|-?[%}#]\}|'(?:\\.|[^'\\])*'|\"(?:\\.|[^\"\\])*\"|\w+|\s+|[=!<>]=|[^\w\s]", re.DOTALL)
"""A token of a template, near enough. Every text is a sequence of them."""
FRAGMENTS = [
    "{{", "}}", "{%", "%}", "{%-", "-%}", "{{-", "-}}", "{#", "#}", "-#}", "{#-", "{%+", "(", ")", "[", "]", "{", "}",
    ",", ".", ":", "|", "||", "<=", "==", "!=", "===", "=", "+", "-", "~", "*", "**", "/", "//", "%", "!", "&", "@",
    "'", '"', "\\", "\n", "\r\n", "\r", " ", "0", "1.", ".5", "1.5.2", "1e5", "00", "99999999999999999999", "-1",
    "'a'", '"b"', "'\\n'", "'\\q'", "x", "s", "xs", "d", "not", "in", "is", "is not", "if", "elif", "else", "endif",
    "for", "endfor", "set", "endset", "macro", "endmacro", "call", "endcall", "filter", "endfilter", "break",
    "continue", "generation", "endgeneration", "raw", "endraw", "include", "block", "do", "import", "loop.index",
    "true", "none", "range(3)", "abs", "é", "\t", "recursive", "with", "{% if x %}", "{% endif %}",
    "{% for x in xs %}", "{% endfor %}", "{{ s }}", "caller()", "*xs", "**d", "a=1", "text",
]  # fmt: skip
