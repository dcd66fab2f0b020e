"""What llama.cpp's tokenizer has that ggtok's tables lack, and what changed since ggtok was last brought up to date.

    python scripts/watch_llama_cpp.py PATH_TO_LLAMA_CPP
    python scripts/watch_llama_cpp.py llama_cpp_python-0.3.36.tar.gz

Reads `src/llama-vocab.cpp`, `src/unicode.cpp`, `src/unicode-data.cpp`, what renders chats (`CHATS`) and a table of the
converter's (`CONVERTER`) in a llama.cpp tree, or in the archive or tree of llama-cpp-python, which carries it. Compares
with the installed ggtok, per table:

- the names of `tokenizer.ggml.pre` with their flags and families, the families' patterns,
- the values of `tokenizer.ggml.model`,
- the texts by which the loader finds special tokens,
- the digests by which the converter finds the pre-tokenizer of a model.

What is not a table is code, and for code there is a fingerprint per function and type in `llama_cpp_fingerprints.json`:
where one changed, somebody must read the change. `--write-fingerprints` records that this has been done.

Exit code 0: nothing new. 1: something is missing or changed. 2: the source could not be read.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from cpp_tokens import Token, block_end, definitions, tokenize

FINGERPRINTS = Path(__file__).with_name("llama_cpp_fingerprints.json")
DIGESTS = Path(__file__).parents[1] / "python" / "ggtok" / "lab" / "convert" / "digests.json"
FILES = ("llama-vocab.cpp", "unicode.cpp", "unicode-data.cpp")
CHATS = (
    *("common/jinja/*.cpp", "common/jinja/*.h", "common/chat.cpp", "common/chat-diff-analyzer.cpp"),
    *("common/chat-auto-parser.h", "common/chat-auto-parser-generator.cpp", "common/chat-auto-parser-helpers.cpp"),
    *("common/parsers/*.cpp", "common/json.cpp", "common/json-schema.cpp", "common/json-schema-to-grammar.cpp"),
    *("tools/server/server-common.cpp", "tools/server/server-chat.cpp"),
)
"""The language of templates, and the rules for messages. A new file is found too."""
CONVERTER = "conversion/base.py"
NESTED = ("", "vendor/llama.cpp/")
"""Where llama.cpp's `src` may be: in its own tree, or in llama-cpp-python's."""

LOADER = "llama_vocab::impl::load"
PATTERNS = "llm_tokenizer_bpe"
FAMILY_PREFIX = "LLAMA_VOCAB_PRE_TYPE_"
KIND_PREFIX = "LLAMA_VOCAB_TYPE_"
KINDS = {"wordpiece": "wpm", "unigram": "ugm"}
"""llama.cpp's names of kinds of vocabularies, where ours are others."""

TABLE_FILES = {
    "pre-tokenizer names": "PRE_TOKENIZERS in rust/core/src/vocabulary/families.rs",
    "pattern families": "FAMILIES in rust/core/src/vocabulary/families.rs",
    "tokenizer models": "MODELS in rust/core/src/vocabulary/defaults.rs",
    "loader texts": "SLOTS in rust/core/src/vocabulary/slots.rs, and the lists in repairs.rs beside it",
    "digests": "names in python/ggtok/lab/convert/digests.json",
}
Table = dict[str, Any]


@dataclass
class Tables:
    """The tables of either side, by the headings of `TABLE_FILES`, and the fingerprints of the rest."""

    tables: dict[str, Table]
    fingerprints: dict[str, str] = field(default_factory=dict)


def read_source(path: Path) -> dict[str, str]:
    """The text of each of `FILES`, by name, and of those that `CHATS` and `CONVERTER` name, by path."""
    if path.is_dir():
        root = next((path / nested for nested in NESTED if (path / nested / "src" / FILES[0]).exists()), path)
        others = (file for pattern in (*CHATS, CONVERTER) for file in sorted(root.glob(pattern)))
        found = {file.relative_to(root).as_posix(): file.read_text("utf-8") for file in others}
        return {name: (root / "src" / name).read_text("utf-8") for name in FILES} | found
    found = {}
    with tarfile.open(path) as archive:
        for member in archive:
            place = member.name.partition("/")[2].removeprefix(NESTED[1])
            content = archive.extractfile(member) if is_read(place) else None
            if content:
                found[place.removeprefix("src/")] = content.read().decode("utf-8")
    if missing := set(FILES).difference(found):
        raise FileNotFoundError(f"{path} holds no {', '.join(sorted(missing))}")
    return found


def is_read(place: str) -> bool:
    """Whether the file at a path in llama.cpp's tree is one of those that the watch reads."""
    patterns = [*(f"src/{name}" for name in FILES), *CHATS, CONVERTER]
    return any(PurePosixPath(place).match(each) and place.count("/") == each.count("/") for each in patterns)


def extract(source: Mapping[str, str]) -> Tables:
    """The tables and fingerprints of llama.cpp's source."""
    tokens = {name: tokenize(text) for name, text in source.items() if name != CONVERTER}
    vocab = dict(definitions(tokens[FILES[0]]))
    loader, patterns = vocab[LOADER], vocab[PATTERNS]
    families = dict(pattern_families(patterns))
    names = dict(pre_tokenizers(loader))
    used = {row["family"] for row in names.values()}
    tables: dict[str, Table] = {
        "pre-tokenizer names": names,
        "pattern families": {name: families.get(name, families["default"]) for name in sorted(used)},
        "tokenizer models": dict(models(loader)),
        "loader texts": loader_texts(loader),
        "digests": digests(source.get(CONVERTER, "")),
    }
    return Tables(tables, dict(sorted(fingerprints(tokens))))


def conditions(tokens: Sequence[Token], variable: Sequence[str]) -> Iterator[tuple[list[str], Sequence[Token]]]:
    """For each `if (variable == "a" || variable == "b" ...) {...}`: the texts and the block."""
    size = len(variable)
    texts: list[str] = []
    for at, token in enumerate(tokens):
        if token.is_string:
            before = [before.text for before in tokens[max(at - size - 1, 0) : at]]
            texts += [token.text] if before == [*variable, "=="] else []
        elif token.text == ";":
            texts = []
        elif token.text == "{" and texts:
            yield texts, tokens[at : block_end(tokens, at) + 1]
            texts = []


def assignments(block: Sequence[Token]) -> dict[str, str]:
    """`name = value;` directly in a block; a member is called `object.member`."""
    found, depth, start = {}, 0, 1
    for at, token in enumerate(block):
        depth += (token.text == "{") - (token.text == "}") if not token.is_string else 0
        if depth == 1 and token.text in (";", "{", "}") and not token.is_string:
            words = [word.text for word in block[start:at]]
            if "=" in words:
                equals = words.index("=")
                found["".join(words[:equals])] = "".join(words[equals + 1 :])
            start = at + 1
    return found


def pre_tokenizers(loader: Sequence[Token]) -> Iterator[tuple[str, Table]]:
    """Each name of `tokenizer.ggml.pre` with its family and flags."""
    flags: Table = {"clean_spaces": True, "ignore_merges": False, "add_bos": False, "add_sep": False}
    flags |= {"escape_whitespaces": False, "lowercase": True, "has_bos": True}
    for texts, block in conditions(loader, ["tokenizer_pre"]):
        values = assignments(block)
        row = flags | {"family": family_name(values.pop("pre_type", "?"))}
        for name, value in values.items():
            known = name.removeprefix("normalizer_opts.")
            if (name, value) == ("special_bos_id", "LLAMA_TOKEN_NULL"):
                row["has_bos"] = False
            else:  # a flag unknown until now stays in the row and shows as a difference
                row[known] = value == "true" if value in ("true", "false") else value
        yield from ((text, dict(row)) for text in texts)


def pattern_families(tokenizer: Sequence[Token]) -> Iterator[tuple[str, Table]]:
    """Each family's patterns and whether it spells bytes."""
    labels: list[str] = []
    row: Table = {"patterns": [], "byte_encode": True}
    at = 0
    while at < len(tokenizer):
        words = [token.text for token in tokenizer[at : at + 3]]
        if words[0] == "case":
            labels.append(family_name(words[1]))
        elif words[:2] == ["default", ":"]:
            labels.append("default")
        elif words == ["regex_exprs", "=", "{"]:
            end = block_end(tokenizer, at + 2)
            row["patterns"] = [token.text for token in tokenizer[at + 3 : end] if token.is_string]
            at = end
        elif words == ["byte_encode", "=", "false"]:
            row["byte_encode"] = False
        elif words[0] == "break" and row["patterns"]:
            yield from ((label, row) for label in labels)
            labels, row = [], {"patterns": [], "byte_encode": True}
        at += 1


def models(loader: Sequence[Token]) -> Iterator[tuple[str, str]]:
    """Each value of `tokenizer.ggml.model` and its kind of vocabulary."""
    for texts, block in conditions(loader, ["tokenizer_model"]):
        kind = assignments(block).get("type")
        if kind:
            yield from ((text, kind.removeprefix(KIND_PREFIX).lower()) for text in texts)


def loader_texts(loader: Sequence[Token]) -> Table:
    """Per slot the texts of tokens that the loader treats specially."""
    slots: dict[str, list[str]] = {}
    for texts, block in conditions(loader, ["t", ".", "first"]):
        words = " ".join(token.text for token in block)
        filled = [name for name, value in assignments(block).items() if value == "t.second"]
        if filled:
            slot = filled[0].removeprefix("special_").removesuffix("_id")
        elif "special_eog_ids . insert" in words:
            slot = "eog"
        elif "= LLAMA_TOKEN_ATTR_USER_DEFINED" in words:
            slot = "user_defined"
        else:
            slot = f"unknown rule for {texts[0]}"
        slots.setdefault(slot, []).extend(texts)
    return {slot: sorted(texts) for slot, texts in slots.items()}


def digests(converter: str) -> Table:
    """The pre-tokenizers that the converter knows, by the digest of a test text's ids."""
    return dict(re.findall(r'if chkhsh == "(\w+)":.*?\bres = "([^"]+)"', converter, re.DOTALL))


def family_name(constant: str) -> str:
    """`LLAMA_VOCAB_PRE_TYPE_SPARK2_5` is `spark2-5`."""
    return constant.removeprefix(FAMILY_PREFIX).lower().replace("_", "-")


def fingerprints(files: Mapping[str, Sequence[Token]]) -> Iterator[tuple[str, str]]:
    """One short digest per function and type, of its tokens, without what the tables hold already."""
    for file, tokens in files.items():
        parts: dict[str, list[str]] = {}
        for name, definition in definitions(tokens):
            rest = without_tables(definition) if name in (LOADER, PATTERNS) else definition
            parts.setdefault(name, []).append("\n".join(token.text for token in rest))
        for name, texts in parts.items():
            digest = hashlib.sha256("\n".join(texts).encode("utf-8", "surrogateescape"))
            yield f"{file} {name}", digest.hexdigest()[:16]


def without_tables(tokens: Sequence[Token]) -> list[Token]:
    """Leaves out the patterns with their labels, and the conditions on names and texts with the rows they fill in."""
    rest: list[Token] = []
    skip_until = -1
    for at, token in enumerate(tokens):
        words = [word.text for word in tokens[at : at + 3]]
        if at <= skip_until or token.text in ("case", "||") or token.text.startswith(FAMILY_PREFIX):
            continue
        if words == ["regex_exprs", "=", "{"]:
            skip_until = block_end(tokens, at + 2)
        elif words[:2] == ["tokenizer_pre", "=="] or (words[1:2] == ["=="] and words[0] == "first"):
            skip_until = at + 2
        elif token.text == "{" and words[1:3] == ["pre_type", "="]:
            skip_until = block_end(tokens, at)
        elif token.text not in ("if", "else", "(", ")", ":", ";", "break", "t", "."):
            rest.append(token)
    return rest


def committed() -> Tables:
    """What ggtok was built with, and the fingerprints of the source that was read last."""
    from ggtok import _ggtok

    texts: Table = {slot: sorted(texts) for slot, texts in _ggtok.loader_texts().items()}
    tables: dict[str, Table] = {
        "pre-tokenizer names": dict(_ggtok.pretokenizers()),
        "pattern families": dict(_ggtok.families()),
        "tokenizer models": {name: KINDS.get(kind.lower(), kind.lower()) for name, kind in _ggtok.models().items()},
        "loader texts": texts,
        "digests": json.loads(DIGESTS.read_text("utf-8"))["names"],
    }
    return Tables(tables, json.loads(FINGERPRINTS.read_text("utf-8")) if FINGERPRINTS.exists() else {})


def report(theirs: Tables, ours: Tables) -> tuple[list[str], bool]:
    """Lines for people, and whether anything is missing or changed."""
    lines, differs = [], False
    for heading, table in theirs.tables.items():
        rows = list(changed_rows(table, ours.tables[heading]))
        differs |= bool(rows)
        lines.append(f"{heading}: {len(table)} in llama.cpp, {len(ours.tables[heading])} in ggtok")
        lines += [f"  {row}" for row in rows]
        lines += [f"  (table: {TABLE_FILES[heading]})"] if rows else []
    rows = list(changed_rows(theirs.fingerprints, ours.fingerprints))
    lines.append(f"functions and types: {len(theirs.fingerprints)} in llama.cpp, {len(rows)} new, changed or gone")
    lines += [f"  {row.partition(': ')[0]}" for row in rows]
    lines += ["  (read them, then run with --write-fingerprints)"] if rows else []
    return lines, differs or bool(rows)


def changed_rows(theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> Iterator[str]:
    """`+` for what ggtok lacks, `~` for what differs, `-` for what llama.cpp no longer has."""
    for name in [*theirs, *(name for name in ours if name not in theirs)]:
        if name not in ours:
            yield f"+ {name}: {_plain(theirs[name])}"
        elif name not in theirs:
            yield f"- {name}: no longer in llama.cpp"
        elif isinstance(theirs[name], dict):
            parts = changed_rows(theirs[name], ours[name])
            yield from (f"~ {name}: {part}" for part in parts)
        elif isinstance(theirs[name], list) and set(theirs[name]) != set(ours[name]):
            more = [f"+ {_plain(text)}" for text in theirs[name] if text not in ours[name]]
            less = [f"- {_plain(text)}" for text in ours[name] if text not in theirs[name]]
            yield f"~ {name}: {', '.join(more + less)}"
        elif theirs[name] != ours[name]:
            yield f"~ {name}: llama.cpp {_plain(theirs[name])}, ggtok {_plain(ours[name])}"


def _plain(value: Any) -> str:
    return json.dumps(value, ensure_ascii=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Reads, compares, prints."""
    parser = argparse.ArgumentParser(description="What does llama.cpp have that ggtok lacks?")
    parser.add_argument("source", type=Path, help="llama.cpp's tree, or llama-cpp-python's tree or source archive")
    parser.add_argument("--write-fingerprints", action="store_true", help="record that the code has been read")
    options = parser.parse_args(arguments)
    try:
        theirs = extract(read_source(options.source))
    except (OSError, KeyError, ValueError, tarfile.TarError) as error:
        print(f"{options.source}: cannot be read as llama.cpp's source: {error!r}", file=sys.stderr)
        return 2
    if options.write_fingerprints:
        FINGERPRINTS.write_text(json.dumps(theirs.fingerprints, indent=0) + "\n", "utf-8")
    lines, differs = report(theirs, committed())
    print("\n".join(lines))
    print("Something is missing or changed." if differs else "Nothing is missing or changed.")
    return 1 if differs else 0


if __name__ == "__main__":
    sys.exit(main())
