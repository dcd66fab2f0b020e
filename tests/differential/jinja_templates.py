"""Made-up templates and values over the whole language of llama.cpp's Jinja engine.

`made(seed, index)` always returns the same case. Its mode is one of `MODES`:

- "single" calls one built-in function, or applies one operator or test, and shows every side of the result;
- "program" nests statements of every kind around expressions that mostly have the type that they need;
- "space" puts whitespace, comments and trimming tags next to each other;
- "real" renders one of llama.cpp's own templates, mostly with a few tokens changed;
- "broken" changes a few tokens of a program, or strings tokens together.

`jinja_grammar` has the tables, `jinja_values` makes the values.
"""

from __future__ import annotations

import re
from functools import cache
from random import Random
from typing import NamedTuple

from .jinja_grammar import (
    ANY,
    ARGUMENTS,
    FORMS,
    FRAGMENTS,
    FUNCTIONS,
    HUGE,
    INTEGERS,
    KEYS,
    LITERALS,
    LOOP,
    METHODS,
    MODES,
    ODD,
    OPERATORS,
    PLACE,
    PRODUCTIONS,
    STRINGS,
    TESTED,
    TESTS,
    TOKEN,
    TYPES,
    UNKNOWN,
    VARIABLES,
)
from .jinja_original import Case, llama_cpp
from .jinja_values import ValueMaker


def sort(token: str) -> str:
    """Words, numbers, strings, tags and the rest: tokens that often fit in each other's place."""
    first = token[0]
    return (
        "0"
        if first.isdigit()
        else "a"
        if first.isalpha() or first == "_"
        else "'"
        if first in "'\""
        else token[:2] + token[-2:]
    )


class Made(NamedTuple):
    """One case and the mode that made it."""

    mode: str
    case: Case


class Maker(ValueMaker):
    """Writes expressions and statements. `names` holds the variables in scope, by type."""

    def __init__(self, rng: Random) -> None:
        super().__init__(rng)
        self.names = {kind: list(names) for kind, names in VARIABLES.items()}
        self.macros: list[tuple[str, int]] = []
        """Name and number of parameters without a default."""
        self.num_names = 0
        self.num_loops = 0

    # Expressions

    def expression(self, kind: str, depth: int = 2) -> str:
        """An expression that mostly has this type."""
        if kind == "any" or self.chance(1.5):
            kind = self.rng.choice(ANY)
        if depth <= 0 or kind not in PRODUCTIONS or self.chance(30):
            return self.atom(kind)
        return self.expanded(self.rng.choice(PRODUCTIONS[kind]), depth - 1)

    def expanded(self, production: str, depth: int) -> str:
        """The production with expressions in place of the types."""
        return PLACE.sub(lambda match: self.operand(match[1], depth) if match[1] else match[0][0], production)

    def operand(self, kind: str, depth: int) -> str:
        """An expression, mostly in brackets if it is not a single token."""
        text = self.expression(kind, depth)
        return text if re.fullmatch(r"\w+|'[^']*'", text) or self.chance(12) else f"({text})"

    def atom(self, kind: str) -> str:
        """A variable or a literal."""
        names = self.names.get(kind)
        if names and self.chance(55):
            return self.rng.choice(names)
        rng = self.rng
        match kind:
            case "int":
                return str(rng.choice(HUGE if self.chance(6) else INTEGERS))
            case "float":
                return rng.choice(LITERALS)
            case "str":
                return self.literal(rng.choice(STRINGS))
            case "bool":
                return rng.choice(["true", "false", "True", "False"])
            case "none":
                return rng.choice(["none", "None"])
            case "undef":
                return rng.choice(["missing", "undefined", "nope"])
            case "small":
                return str(rng.randrange(6))
            case "index":
                return str(rng.randrange(-4, 6))
            case "step":
                return rng.choice(["1", "2", "-1", "-2", "3", "0"] if self.chance(10) else ["1", "2", "-1", "-2", "3"])
            case "key":
                return self.literal(rng.choice(KEYS))
            case "test":
                return self.literal(rng.choice(TESTS))
            case "func":
                return rng.choice(["range", "dict", "namespace", "s.upper"])
            case "tuple":
                return rng.choice(["(1, 2)", "('a', n)", "(none, s)", "(2, 1, 3)"])
            case "dict":
                return rng.choice(["{'a': 1}", "{'role': s, 'n': 2}", "{}", "{'x': [1, 'b']}"])
            case _:
                return rng.choice(["[1, 2, 3]", "['b', 'a']", "[]", "[1, 'a', none]", "[[1, 2], [3]]"])

    def literal(self, text: str) -> str:
        """The text between quotes."""
        quote = self.rng.choice("'\"")
        escapes = {"\\": "\\\\", quote: f"\\{quote}"}
        if self.chance(70):
            escapes |= {"\n": "\\n", "\t": "\\t", "\r": "\\r"}
        return quote + "".join(escapes.get(character, character) for character in text) + quote

    def arguments(self, name: str) -> str:
        """What a call of this function has between its brackets."""
        if name in ARGUMENTS and self.chance(85 if name != "range" else 97):
            return self.expanded(self.rng.choice(ARGUMENTS[name]), 1)
        kinds = [kind for kind in TYPES if name != "range" or kind != "int"]
        given = [self.operand(self.rng.choice(kinds), 0) for _ in range(self.rng.choice([0, 0, 1, 1, 1, 2, 2, 3, 4]))]
        for i, argument in enumerate(given):
            if self.chance(10):
                given[i] = (
                    f"{self.rng.choice(['a', 'd', 'attribute', 'default', 'boolean', 'reverse', 'width'])}={argument}"
                )
            elif self.chance(2):
                given[i] = f"*{argument}"
        return ", ".join(given)

    # One built-in

    def single(self) -> str:
        """One call, operator, test, member or slice, and every side of its result."""
        rng = self.rng
        kind = rng.choice(TYPES)
        receiver = self.operand(kind, rng.choice([0, 0, 0, 1]))
        match rng.choices([*FORMS], [*FORMS.values()])[0]:
            case "method":
                own = METHODS.get(kind)
                name = rng.choice(own if own and self.chance(85) else [*METHODS[rng.choice([*METHODS])], *UNKNOWN])
                given = self.arguments(name)
                bare = f"{receiver}|{name}"
                expression = rng.choice(
                    [
                        bare if not given or self.chance(20) else f"{bare}({given})", f"{bare}({given})",
                        f"{receiver}.{name}({given})", f"{receiver}['{name}']({given})",
                        f"{receiver}.{name}" if self.chance(10) else f"{receiver}.{name}({given})",
                    ]
                )  # fmt: skip
            case "test":
                name = rng.choice(TESTS) if self.chance(96) else rng.choice(UNKNOWN)
                if self.chance(60):
                    receiver = self.operand(TESTED.get(name, kind), 0)
                given = self.arguments(name) if name in ARGUMENTS or self.chance(10) else ""
                form = (
                    f"({given})"
                    if given and "{" not in given
                    else rng.choice(["", "", "", "()", " 1", " 'a'", " [1]", " n"])
                )
                expression = f"{receiver} is {rng.choice(['', '', 'not '])}{name}{form}"
            case "binary":
                operator = rng.choice(OPERATORS)
                other = self.operand("small" if operator == "*" else kind if self.chance(50) else rng.choice(TYPES), 0)
                expression = f"{receiver} {operator} {other}"
            case "member":
                key = self.operand(
                    rng.choice(["int", "str", "key", "index", "bool", "none", "undef", "float", "list", "tuple"]), 0
                )
                expression = rng.choice(
                    [f"{receiver}[{key}]", f"{receiver}.{rng.choice(KEYS[:7])}", f"{receiver}.{rng.randrange(3)}"]
                )
            case "function":
                name = rng.choice(FUNCTIONS[1:] if self.chance(90) else FUNCTIONS)
                expression = f"{name}({self.arguments(name)})"
            case "slice":
                bounds = [self.atom("index") if self.chance(60) else "" for _ in range(rng.choice([2, 2, 3]))]
                if self.chance(10):
                    bounds[0] = self.operand(rng.choice(TYPES), 0)
                expression = f"{receiver}[{':'.join(bounds)}]"
            case "unary":
                expression = f"{rng.choice(['not ', '-', '+', '- ', 'not not ', '--'])}{receiver}"
            case "block":
                name = rng.choice([*METHODS["str"], "trim", "count"])
                given = self.arguments(name)
                used = f"{name}({given})" if given else name
                return f"{{% filter {used} %}}{self.text()}{{{{ {receiver} }}}}{{% endfilter %}}"
            case "for":
                names = rng.choice(["x", "x", "x, y", "x, y, z"])
                test = f" if {rng.choice(['x', 'not x', 'x is string', 'loop', 'x != y'])}" if self.chance(25) else ""
                shown = "".join(f"{{{{ [{name}]|string }}}}" for name in names.split(", "))
                return (
                    f"{{% for {names} in {receiver}{test} %}}{shown}{{{{ loop.index }}}},{{% else %}}none{{% endfor %}}"
                )
            case "odd":
                odd = rng.choice(ODD)
                return re.sub(r"(?<!\{)\{([a-z]+)\}(?!\})", lambda match: self.operand(match[1], 1), odd)
            case "sorted":
                many = rng.choice([3, 10, 16, 17, 20, 33, 70])
                kinds = rng.choice(
                    [
                        ["small"],
                        ["small", "float"],
                        ["small", "str"],
                        ["str"],
                        ["key"],
                        ["small", "none"],
                        ["str", "list"],
                    ]
                )
                items = [self.atom(rng.choice(kinds)) for _ in range(many)]
                pairs = ", ".join(f"{{'k': {item}, 'i': {i}}}" for i, item in enumerate(items))
                entries = ", ".join(f"'k{i % 23}': {item}" for i, item in enumerate(items))
                reverse = f"reverse={self.atom('bool')}"
                return rng.choice(
                    [
                        f"{{{{ [{', '.join(items)}]|sort({reverse})|string }}}}",
                        f"{{% for v in [{pairs}]|sort(attribute='k', {reverse}) %}}{{{{ v.i }}}},{{% endfor %}}",
                        f"{{{{ {{{entries}}}|dictsort(by='value', {reverse})|string }}}}",
                    ]
                )
            case _:
                expression = self.expression("any", 3)
        shown = rng.choice(
            ["{{ r }}|{{ [r]|string }}|{{ [r]|tojson }}", "{{ [r]|string }}", "{{ r }}", "{{ r }}{{ [r]|tojson }}"]
        )
        return f"{{% set r = {expression} %}}{shown}" if self.chance(80) else f"{{{{ {expression} }}}}"

    # Programs

    def open(self) -> str:
        """The start of a statement's tag."""
        return self.rng.choice(["{%", "{%", "{%-"]) + self.rng.choice([" ", " ", "", "\n  "])

    def close(self) -> str:
        """The end of a statement's tag."""
        return self.rng.choice([" ", " ", "", "\n"]) + self.rng.choice(["%}", "%}", "-%}"])

    def tag(self, content: str) -> str:
        """A statement's tag."""
        opening = self.open()
        return f"{opening if content[:1] not in '-+' else '{% '}{content}{self.close()}"

    def text(self) -> str:
        """Text between tags."""
        return self.rng.choice(
            [
                "",
                "\n",
                " ",
                "  \n",
                "a",
                "text ",
                "\n\n",
                " x\n ",
                "é😀",
                "<|im_start|>",
                "\t",
                "}",
                "{ %",
                "- ",
                "\r\n",
                "'",
                "#",
            ]
        )

    def new_name(self, kind: str) -> str:
        """A variable of this type for the scope: a new one, or one that is there already."""
        known = [name for names in self.names.values() for name in names]
        self.num_names += 1
        name = self.rng.choice(known) if known and self.chance(10) else f"v{self.num_names}"
        self.names.setdefault(kind, []).append(name)
        return name

    def block(self, depth: int) -> str:
        """A few statements with text around them."""
        count = self.rng.choice([1, 1, 2, 2, 3])
        return "".join(self.text() + self.statement(depth) for _ in range(count)) + self.text()

    def output(self) -> str:
        """An expression's tag."""
        kind = self.rng.choice(["str", "str", "int", "float", "bool", "strs", "any"])
        expression = self.expression(kind, 3)
        if self.num_loops and self.chance(30):
            expression = f"loop.{self.rng.choice(LOOP)}"
        before, after = self.rng.choice(
            [("{{ ", " }}"), ("{{ ", " }}"), ("{{- ", " -}}"), ("{{- ", " }}"), ("{{ ", " -}}")]
        )
        return f"{before}{expression}{after}"

    def statement(self, depth: int) -> str:
        """A statement of any kind. At depth 0 it has no body."""
        rng = self.rng
        kinds = {
            "output": 30,
            "set": 12,
            "comment": 3,
            "call macro": 6 if self.macros else 0,
            "namespace": 3,
            "escape": 6 * bool(self.num_loops),
        }
        if depth > 0:
            kinds |= {"if": 14, "for": 16, "block set": 4, "macro": 6, "call": 3, "filter": 4, "generation": 1}
        match rng.choices([*kinds], [*kinds.values()])[0]:
            case "set":
                if self.chance(15):
                    values = [rng.choice(TYPES) for _ in range(rng.choice([2, 2, 3]))]
                    shown = ", ".join(self.operand(kind, 1) for kind in values)
                    return self.tag(
                        f"set {', '.join(self.new_name(kind) for kind in values)} = {rng.choice([shown, f'[{shown}]'])}"
                    )
                kind = rng.choice(TYPES)
                value = self.expression(kind, 3)
                return self.tag(f"set {self.new_name(kind)} = {value}")
            case "block set":
                body = self.block(depth - 1)
                return self.tag(f"set {self.new_name('str')}") + body + self.tag("endset")
            case "comment":
                return rng.choice(["{# a comment #}", "{#- trimmed -#}", "{##}", "{#\n{% x %}\n#}", "{# {{ #}"])
            case "namespace":
                kind = rng.choice(["int", "str", "list"])
                name = self.new_name("dict")
                made = self.tag(f"set {name} = namespace(a={self.expression(kind, 1)}, n=0)")
                value = rng.choice([f"{name}.a ~ 1", f"{name}.n + 1", self.expression(kind, 2)])
                changed = self.tag(f"set {name}.a = {value}")
                return made + self.text() + changed + f"{{{{ {name}.a }}}}"
            case "escape":
                word = rng.choice(["break", "continue"])
                test = self.tag(f"if {self.expression('bool', 1)}")
                return test + self.text() + self.tag(word) + self.text() + self.tag("endif")
            case "if":
                kind = rng.choice(["bool", "bool", "any"])
                parts = [self.tag(f"if {self.expression(kind, 3)}"), self.block(depth - 1)]
                for _ in range(rng.choice([0, 0, 0, 1, 2])):
                    parts += [self.tag(f"elif {self.expression('bool', 2)}"), self.block(depth - 1)]
                if self.chance(50):
                    parts += [self.tag("else"), self.block(depth - 1)]
                return "".join([*parts, self.tag("endif")])
            case "for":
                return self.loop(depth)
            case "macro":
                return self.macro(depth)
            case "call macro":
                return f"{{{{ {self.macro_call()} }}}}"
            case "call":
                parameters = rng.choice(["", "", "(p)", "(p, q=2)"])
                used = rng.choice(
                    ["caller()", "caller(1)", "caller('é', 3)", "caller(q=1)", "caller(p=s)", "caller()|upper"]
                )
                shown = self.tag("macro wrap(w=0)") + f"<{{{{ {used} }}}}{{{{ w }}}}>" + self.tag("endmacro")
                body = self.block(depth - 1) + rng.choice(["", "{{ p }}", "{{ w }}"])
                return (
                    shown
                    + self.tag(f"call{parameters} wrap({rng.choice(['', '1', 'w=s', 'xs'])})")
                    + body
                    + self.tag("endcall")
                )
            case "filter":
                name = rng.choice(
                    [
                        "upper",
                        "lower",
                        "trim",
                        "title",
                        "length",
                        "tojson",
                        "indent",
                        "replace",
                        "capitalize",
                        "default",
                        "string",
                    ]
                )
                given = self.arguments(name) if name in ("indent", "replace", "default") else ""
                return (
                    self.tag(f"filter {name}({given})" if given else f"filter {name}")
                    + self.block(depth - 1)
                    + self.tag("endfilter")
                )
            case "generation":
                return "{% generation %}" + self.block(depth - 1) + "{% endgeneration %}"
            case _:
                return self.output()

    def loop(self, depth: int) -> str:
        """A loop; its variables are in scope inside."""
        rng = self.rng
        saved = {kind: list(names) for kind, names in self.names.items()}
        kind = rng.choice(["ints", "strs", "dicts", "list", "dict", "undef"] if self.chance(90) else TYPES)
        iterable = self.operand(kind, 2) if self.chance(90) else self.expression(kind, 2)
        if kind in ("dict", "list") and self.chance(50):
            iterable = rng.choice(["{d}|items", "{d}.items()", "{d}", "{d}|dictsort"]).format(d=self.operand("dict", 1))
            variables = f"{self.new_name('str')}, {self.new_name('any')}"
        else:
            variables = self.new_name({"ints": "int", "strs": "str", "dicts": "dict", "dict": "str"}.get(kind, "any"))
            self.names.pop("any", None)
        self.names.pop("any", None)
        test = f" if {self.expression('bool', 2)}" if self.chance(25) else ""
        self.num_loops += 1
        body = self.block(depth - 1)
        self.num_loops -= 1
        self.names = saved
        otherwise = self.tag("else") + self.block(depth - 1) if self.chance(20) else ""
        return self.tag(f"for {variables} in {iterable}{test}") + body + otherwise + self.tag("endfor")

    def macro(self, depth: int) -> str:
        """A macro and, mostly, a call of it."""
        rng = self.rng
        name = f"m{len(self.macros)}"
        required, optional = rng.choice([0, 1, 1, 2]), rng.choice([0, 0, 1, 2])
        parameters = [f"p{i}" for i in range(required)] + [f"q{i}={self.expression('any', 1)}" for i in range(optional)]
        saved = {kind: list(names) for kind, names in self.names.items()}
        for parameter in parameters:
            self.names.setdefault(rng.choice(["str", "int"]), []).append(parameter.split("=")[0])
        body = self.block(depth - 1)
        self.names = saved
        self.macros.append((name, required))
        shown = self.tag(f"macro {name}({', '.join(parameters)})") + body + self.tag("endmacro")
        return shown + (f"{{{{ {self.macro_call()} }}}}" if self.chance(80) else "")

    def macro_call(self) -> str:
        """A call of a macro with about as many arguments as it needs."""
        name, required = self.rng.choice(self.macros)
        given = [
            self.operand(self.rng.choice(["str", "int", "any"]), 1)
            for _ in range(max(0, required + self.rng.choice([0, 0, 0, 0, 0, 1, 1, -1])))
        ]
        if self.chance(30):
            given.append(f"q0={self.operand('str', 1)}")
        if self.chance(10):
            given.append(f"p0={self.operand('str', 1)}")
        return f"{name}({', '.join(given)})"

    def space(self) -> str:
        """Whitespace next to every kind of tag."""
        rng = self.rng
        pieces: list[str] = []
        opened = 0
        blanks = [
            "\n",
            " ",
            "  ",
            "\t",
            "\r\n",
            "\r",
            "\n\n",
            " \n ",
            "\v",
            "\f",
            "a",
            "b\n",
            " c ",
            "-",
            "}",
            "%}",
            "#}",
            "-}}",
            "\u00a0",
            "",
            "",
        ]
        for _ in range(rng.randrange(2, 14)):
            pieces.append(rng.choice(blanks) if self.chance(80) else rng.choice(blanks) + rng.choice(blanks))
            match rng.randrange(7):
                case 0 | 1:
                    pieces.append(
                        rng.choice(
                            [
                                "{{ s }}",
                                "{{- s }}",
                                "{{ s -}}",
                                "{{- s -}}",
                                "{{'-'}}",
                                "{{ {'a':{'b':1}}|string }}",
                                "{{-1}}",
                                "{{ -1 }}",
                            ]
                        )
                    )
                case 2:
                    pieces.append(rng.choice(["{# c #}", "{#- c #}", "{# c -#}", "{#- c -#}", "{#\n#}", "{#-#}"]))
                case 3 | 4:
                    opened += 1
                    pieces.append(
                        rng.choice(["{% if yes %}", "{%- if yes %}", "{% if yes -%}", "{%-if yes-%}", "{%if not no%}"])
                    )
                case 5 if opened:
                    opened -= 1
                    pieces.append(
                        rng.choice(["{% endif %}", "{%- endif %}", "{% endif -%}", "{%- endif -%}", "{%endif%}"])
                    )
                case _:
                    pieces.append(rng.choice(["{% set v = 1 %}", "{%- set v = 1 -%}", "{% generation %}"]))
        return (
            "".join(pieces)
            + rng.choice(["{% endif %}", "{%- endif %}\n"]) * opened
            + rng.choice(["", "\n", "\n\n", "\r\n", " "])
        )

    def edited(self, source: str, count: int) -> str:
        """The template with some tokens deleted, repeated, exchanged or replaced, mostly inside tags."""
        tokens = TOKEN.findall(source)
        rng = self.rng
        for _ in range(count):
            if not tokens:
                break
            i = rng.randrange(len(tokens))
            for _ in range(20):
                if re.match(r"\w+$|['\"]|[^\w\s]", tokens[i]):
                    break
                i = rng.randrange(len(tokens))
            match rng.choice([0, 1, 2, 3, 3, 3, 3, 4, 4, 5, 6]):
                case 0:
                    del tokens[i]
                case 1:
                    tokens.insert(i, tokens[i])
                case 2:
                    j = min(i + rng.choice([1, 2]), len(tokens) - 1)
                    tokens[i], tokens[j] = tokens[j], tokens[i]
                case 3 | 4:
                    tokens[i] = rng.choice([token for token in tokens if sort(token) == sort(tokens[i])])
                case 5:
                    tokens[i] = rng.choice(FRAGMENTS)
                case _:
                    tokens.insert(i, rng.choice(FRAGMENTS))
        return "".join(tokens)


@cache
def real_templates() -> list[tuple[str, str]]:
    """Name and source of llama.cpp's own templates."""
    paths = sorted((llama_cpp() / "models" / "templates").glob("*.jinja"))
    return [(path.stem, path.read_bytes().decode()) for path in paths]


def made(seed: int, index: int, mode: str | None = None) -> Made:
    """The case of this seed and number, of a mode if one is given."""
    rng = Random(f"{seed}/{index}")
    maker = Maker(rng)
    chosen = mode or rng.choices([*MODES], [*MODES.values()])[0]
    values = maker.values()
    match chosen:
        case "single":
            template = maker.single()
        case "program":
            template = "".join(maker.block(2) for _ in range(rng.choice([1, 1, 2])))
        case "space":
            template = maker.space()
        case "real":
            _, source = rng.choice(real_templates())
            values = maker.conversation()
            template = maker.edited(source, rng.choice([0, 1, 1, 1, 2, 3]))
        case _:
            if maker.chance(25):
                template = "".join(rng.choice(FRAGMENTS) + rng.choice(["", " "]) for _ in range(rng.randrange(1, 15)))
            elif maker.chance(50):
                template = maker.edited(maker.single(), rng.choice([1, 1, 2]))
            else:
                template = maker.edited(maker.block(2), rng.choice([1, 1, 2, 3]))
    return Made(chosen, {"template": template, "values": values})
