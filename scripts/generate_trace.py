"""Writes the Python classes of a trace, and makes the tables of docs/trace*.md, from the structures of the Rust crate.

python scripts/generate_trace.py
python scripts/generate_trace.py --check      # exit code 1 if the classes are not current

`docs/conf.py` puts the tables into the pages.
"""

from __future__ import annotations

import keyword
import re
import subprocess
import sys
import textwrap
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PAGES = {
    "trace": ROOT / "rust/explain/src/trace.rs",
    "trace-merging": ROOT / "rust/explain/src/trace/merging.rs",
    "trace-choosing": ROOT / "rust/explain/src/trace/choosing.rs",
    "trace-trie": ROOT / "rust/explain/src/double_array.rs",
}
"""The file whose structures are on a page."""
SOURCES = [*PAGES.values()]
MODULE = ROOT / "python/ggtok/trace.py"
WRITTEN_BY_HAND = ("Trace", "Why")
"""Structures whose Python classes have methods, and are not generated."""

DO_NOT_EDIT = "Written by `python scripts/generate_trace.py` from the Rust crate. DO NOT EDIT."
COMMENT = r"((?:^ *///[^\n]*\n)+)"
STRUCTURE = re.compile(
    COMMENT + r"^#\[derive\([^\n]*Serialize\)\]\n(?:^#\[[^\n]*\n)*^pub (struct|enum) (\w+) \{\n(.*?)^\}",
    re.MULTILINE | re.DOTALL,
)
INTEGERS = ("usize", "u8", "u32", "u64", "i64", "TokenId")


class Field(NamedTuple):
    """A field of a structure."""

    name: str
    type: str
    docs: str


class Structure(NamedTuple):
    """A structure, or an enumeration of structures, which are its fields then."""

    name: str
    docs: str
    fields: list[Field]
    is_enum: bool


def structures(source: str) -> list[Structure]:
    """The structures and enumerations of a Rust file that become JSON, in its order."""
    found = []
    for match in STRUCTURE.finditer(source):
        is_enum = match[2] == "enum"
        member = COMMENT + (r"^    (\w+)\((\w+)\),$" if is_enum else r"^    pub (\w+): ([^\n]*),$")
        fields = [Field(each[2], each[3], prose(each[1])) for each in re.finditer(member, match[4], re.MULTILINE)]
        found.append(Structure(match[3], prose(match[1]), fields, is_enum))
    return found


def prose(comment: str) -> str:
    """A documentation comment as one paragraph; links to items have no meaning here."""
    text = " ".join(line.strip().removeprefix("///").strip() for line in comment.splitlines())
    return re.sub(r"\[`([^`]+)`\]", lambda link: f"`{link[1].replace('::', '.')}`", text)


def inside(type: str, of: str) -> str | None:
    match = re.fullmatch(rf"{of}<(.*)>", type)
    return match[1] if match else None


def python_type(type: str) -> str:
    """The type hint of a Rust type."""
    if item := inside(type, "Vec"):
        return f"tuple[{python_type(item)}, ...]"
    if item := inside(type, "Option"):
        return f"{python_type(item)} | None"
    if type in INTEGERS:
        return "int"
    return {"f32": "float", "f64": "float", "&'static str": "str", "String": "str", "Bytes": "Text"}.get(type, type)


def json_type(type: str) -> str:
    """What a Rust type is in JSON, in words."""
    if item := inside(type, "Vec"):
        return f"array of {json_type(item)}"
    if item := inside(type, "Option"):
        return f"{json_type(item)} or null"
    if type in INTEGERS:
        return "integer"
    words = {"f32": "number", "f64": "number", "&'static str": "string", "String": "string", "bool": "boolean"}
    return words.get(type) or ("[text](trace.md#text)" if type == "Bytes" else f"[{type}]({address(type)})")


def address(type: str) -> str:
    """Where the table of a structure is."""
    return f"{places()[type]}.md#{type.lower()}"


@cache
def places() -> dict[str, str]:
    """The page of each structure."""
    return {each.name: page for page, path in PAGES.items() for each in structures(path.read_text(encoding="utf-8"))}


def snake(name: str) -> str:
    """As serde writes the name of a variant."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def module(found: list[Structure]) -> str:
    """The Python module."""
    kinds = {field.type: snake(field.name) for each in found if each.is_enum for field in each.fields}
    parts = [
        '"""What a trace holds: one class per table that a reader of the algorithms would draw.\n\n'
        f'{DO_NOT_EDIT}\n"""\n\n'
        "from __future__ import annotations\n\n"
        "from dataclasses import dataclass\n"
        "from typing import ClassVar, TypeAlias\n\n"
        "Text: TypeAlias = str | bytes\n"
        '"""Text of a vocabulary or of an input: `bytes` if it is not UTF-8."""'
    ]
    for each in found:
        if each.is_enum or each.name in WRITTEN_BY_HAND:
            continue
        lines = ["@dataclass(frozen=True, slots=True)", f"class {each.name}:", docstring(each.docs), ""]
        if each.name in kinds:
            lines.append(f'    kind: ClassVar[str] = "{kinds[each.name]}"')
        for field in each.fields:
            name = f"{field.name}_" if keyword.iskeyword(field.name) else field.name
            lines.append(commented(f"{name}: {python_type(field.type)}", field.docs))
        parts.append("\n".join(lines))
    for each in found:
        if each.is_enum:
            union = " | ".join(field.type for field in each.fields)
            parts.append(f'{each.name}: TypeAlias = {union}\n"""{each.docs}"""')
    return "\n\n\n".join(parts) + "\n"


def commented(code: str, text: str) -> str:
    """A field with its description: after it if there is room, or else before it."""
    line = f"    {code}  # {text}"
    if len(line) <= 120:
        return line
    return "\n".join([*(f"    # {part}" for part in textwrap.wrap(text, 114, break_on_hyphens=False)), f"    {code}"])


def docstring(text: str) -> str:
    return textwrap.indent("\n".join(textwrap.wrap(f'"""{text}"""', 116, break_on_hyphens=False)), "    ")


def pages() -> dict[str, str]:
    """The tables of each page."""
    return {page: tables(structures(path.read_text(encoding="utf-8"))) for page, path in PAGES.items()}


def tables(found: list[Structure]) -> str:
    """The tables of one page."""
    parts = []
    for each in found:
        if each.is_enum:
            rows = [f"| `{snake(field.name)}` | [{field.type}]({address(field.type)}) |" for field in each.fields]
            docs = f"{each.docs} Its `kind` says which object it is."
            parts.append("\n".join([f"## {each.name}\n\n{docs}\n", "| kind | object |", "| --- | --- |", *rows]))
        else:
            rows = [f"| `{field.name}` | {json_type(field.type)} | {escaped(field.docs)} |" for field in each.fields]
            head = "\n".join(textwrap.wrap(each.docs, 120, break_on_hyphens=False))
            parts.append(
                "\n".join([f"## {each.name}\n\n{head}\n", "| field | type | meaning |", "| --- | --- | --- |", *rows])
            )
    return "\n\n".join(parts) + "\n"


def escaped(text: str) -> str:
    return text.replace("|", "\\|")


def formatted(source: str) -> str:
    """Python source as the project has it."""
    command = [sys.executable, "-m", "ruff", "format", "--stdin-filename", str(MODULE), "-"]
    return subprocess.run(command, input=source, capture_output=True, text=True, check=True, cwd=ROOT).stdout


def all_structures() -> list[Structure]:
    return [each for path in SOURCES for each in structures(path.read_text(encoding="utf-8"))]


def main() -> int:
    """Writes or checks."""
    text = formatted(module(all_structures()))
    if "--check" not in sys.argv[1:]:
        MODULE.write_text(text, encoding="utf-8")
    elif MODULE.read_text(encoding="utf-8") != text:
        print(f"{MODULE.relative_to(ROOT)} is not current: run python scripts/generate_trace.py", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
