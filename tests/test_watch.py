"""The watch on llama.cpp: reading C++ tables, and what it reports when they move."""

from __future__ import annotations

import copy
import importlib
import io
import json
import os
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "scripts"))
cpp_tokens: Any = importlib.import_module("cpp_tokens")
watch: Any = importlib.import_module("watch_llama_cpp")

VOCAB = r"""
#include "llama-vocab.h" // "not a literal"
static const std::string marker = "\xee\x80\x80";
struct llm_tokenizer_bpe : llm_tokenizer {
    llm_tokenizer_bpe(const llama_vocab & vocab) {
        switch (vocab.get_pre_type()) {
            case LLAMA_VOCAB_PRE_TYPE_ONE:
            case LLAMA_VOCAB_PRE_TYPE_TWO_5: // both
                regex_exprs = {
                    // original: "(?i:'s)"
                    "\\s?[A-Z\"]+" /* two literals, one pattern */ "|\u4e00\t",
                    "[\r\n]",
                };
                break;
            case LLAMA_VOCAB_PRE_TYPE_RAW:
                regex_exprs = { R"x(\p{L}+)x" };
                byte_encode = false;
                break;
            default:
                regex_exprs = { "\\p{N}" };
                break;
        }
    }
    bool byte_encode = true;
};
void llama_vocab::impl::load(llama_model_loader & ml, const LLM_KV & kv) {
    if (tokenizer_model == "none") {
        type = LLAMA_VOCAB_TYPE_NONE;
        return;
    }
    if (tokenizer_model == "gpt2" || tokenizer_model == "other") {
        type = LLAMA_VOCAB_TYPE_BPE;
        const bool is_two = (tokenizer_pre == "two");
        if (!is_two) { throw std::runtime_error("no merges; }"); }
    } else { throw 1; }
    if (tokenizer_pre.empty()) {
        pre_type = LLAMA_VOCAB_PRE_TYPE_DEFAULT;
    } else if (
            tokenizer_pre == "one" ||
            tokenizer_pre == "uno") {
        pre_type = LLAMA_VOCAB_PRE_TYPE_ONE;
        ignore_merges = true;
    } else if (tokenizer_pre == "two") {
        pre_type = LLAMA_VOCAB_PRE_TYPE_TWO_5;
        clean_spaces = false;
        special_bos_id = LLAMA_TOKEN_NULL;
    } else if (tokenizer_pre == "raw") {
        pre_type = LLAMA_VOCAB_PRE_TYPE_RAW;
        normalizer_opts.lowercase = false;
    } else if (tokenizer_pre == "plain") {
        pre_type = LLAMA_VOCAB_PRE_TYPE_PLAIN;
    }
    for (const auto & t : token_to_id) {
        if (special_eot_id == LLAMA_TOKEN_NULL) {
            if (false
                    || t.first == "<|eot|>" // "<|old|>"
                    || t.first == "<é>") {
                special_eot_id = t.second;
                if ((attr & LLAMA_TOKEN_ATTR_CONTROL) == 0) { attr = 1; }
            }
        }
        if (false || t.first == "<|eot|>") {
            special_eog_ids.insert(t.second);
        }
        if (t.first == "<|channel|>") {
            attr = LLAMA_TOKEN_ATTR_USER_DEFINED;
        }
    }
    rule(1);
}
"""
SOURCE = {
    "llama-vocab.cpp": VOCAB,
    "unicode.cpp": "static int unicode_len_utf8(char src) { return 1; }\n",
    "unicode-data.cpp": "const std::vector<int> unicode_set_whitespace = { 1, 2 };\n",
    "conversion/base.py": """
        if chkhsh == "0a1b":
            # ref: https://example.org/one
            res = "one"
        if chkhsh == "2c3d":
            res = "two"
""",
}


@pytest.fixture
def theirs() -> Any:
    return watch.extract(SOURCE)


@pytest.mark.parametrize(
    ("source", "value"),
    [
        (r'"a\n\t\\\"b"', 'a\n\t\\"b'),
        (r'"\xe2\x96\x81"', "\u2581"),
        (r'"\u2581" "\U0001f600"', "\u2581\U0001f600"),
        (r'"\0" /* then */ "1"', "\0" + "1"),
        ('R"(\\d+)"', "\\d+"),
        (r'u8"é"', "é"),
        ('"one"\n// "no"\n"two"', "onetwo"),
    ],
)
def test_string_literals(source: str, value: str) -> None:
    assert [tuple(token) for token in cpp_tokens.tokenize(source)] == [(value, True)]


def test_character_literals_and_comments_are_not_strings() -> None:
    tokens = cpp_tokens.tokenize('c == \'"\' || d == \'{\' // "x"\n#define X "y"\n/* { */ e')
    assert [token.text for token in tokens] == ["c", "==", "'\"'", "||", "d", "==", "'{'", "e"]


def test_pre_tokenizers(theirs: Any) -> None:
    flags = {"clean_spaces": True, "ignore_merges": False, "add_bos": False, "add_sep": False}
    flags |= {"escape_whitespaces": False, "lowercase": True, "has_bos": True}
    assert theirs.tables["pre-tokenizer names"] == {
        "one": flags | {"family": "one", "ignore_merges": True},
        "uno": flags | {"family": "one", "ignore_merges": True},
        "two": flags | {"family": "two-5", "clean_spaces": False, "has_bos": False},
        "raw": flags | {"family": "raw", "lowercase": False},
        "plain": flags | {"family": "plain"},
    }


def test_families(theirs: Any) -> None:
    first = {"patterns": ['\\s?[A-Z"]+|\u4e00\t', "[\r\n]"], "byte_encode": True}
    assert theirs.tables["pattern families"] == {
        "one": first,
        "two-5": first,
        "raw": {"patterns": [r"\p{L}+"], "byte_encode": False},
        "plain": {"patterns": [r"\p{N}"], "byte_encode": True},
    }


def test_models_loader_texts_and_digests(theirs: Any) -> None:
    assert theirs.tables["tokenizer models"] == {"none": "none", "gpt2": "bpe", "other": "bpe"}
    assert theirs.tables["loader texts"] == {
        "eot": ["<|eot|>", "<é>"],
        "eog": ["<|eot|>"],
        "user_defined": ["<|channel|>"],
    }
    assert theirs.tables["digests"] == {"0a1b": "one", "2c3d": "two"}


def test_the_same_source_has_nothing_new(theirs: Any) -> None:
    lines, differs = watch.report(theirs, copy.deepcopy(theirs))
    assert not differs
    assert lines[0] == "pre-tokenizer names: 5 in llama.cpp, 5 in ggtok"


@pytest.mark.parametrize(
    ("old", "new", "row"),
    [
        (
            'tokenizer_pre == "uno"',
            'tokenizer_pre == "uno" || tokenizer_pre == "eins"',
            '  + eins: {"clean_spaces": true',
        ),
        ("ignore_merges = true;", "", "  ~ one: ~ ignore_merges: llama.cpp false, ggtok true"),
        ("ignore_merges = true;", "ignore_merges = true; new_flag = true;", "  ~ one: + new_flag: true"),
        ('"[\\r\\n]"', '"[\\n]"', r'  ~ one: ~ patterns: + "[\n]", - "[\r\n]"'),
        ('tokenizer_model == "other"', 'tokenizer_model == "newer"', '  + newer: "bpe"'),
        ('tokenizer_model == "other"', 'tokenizer_model == "newer"', "  - other: no longer in llama.cpp"),
        ('t.first == "<|channel|>"', 't.first == "<|chan|>"', '  ~ user_defined: + "<|chan|>", - "<|channel|>"'),
        ("rule(1);", "rule(2);", "  ~ llama-vocab.cpp llama_vocab::impl::load"),
        ("bool byte_encode = true;", "bool byte_encode = true; int more;", "  ~ llama-vocab.cpp llm_tokenizer_bpe"),
    ],
)
def test_each_change_is_reported(theirs: Any, old: str, new: str, row: str) -> None:
    assert old in VOCAB
    moved = watch.extract(SOURCE | {"llama-vocab.cpp": VOCAB.replace(old, new)})
    lines, differs = watch.report(moved, theirs)
    assert differs
    assert [line for line in lines if line.startswith(row)], lines


def test_new_names_and_comments_leave_the_fingerprints_alone(theirs: Any) -> None:
    names = VOCAB.replace('tokenizer_pre == "raw"', 'tokenizer_pre == "raw" || tokenizer_pre == "rawer"')
    patterns = names.replace(
        "case LLAMA_VOCAB_PRE_TYPE_RAW:", "case LLAMA_VOCAB_PRE_TYPE_RAW: /* ! */ case LLAMA_VOCAB_PRE_TYPE_X:"
    )
    moved = watch.extract(SOURCE | {"llama-vocab.cpp": patterns.replace('"\\\\p{N}"', '"\\\\p{N}+"')})
    assert moved.tables != theirs.tables
    assert moved.fingerprints == theirs.fingerprints


@pytest.mark.parametrize("nested", ["", "vendor/llama.cpp/"])
@pytest.mark.parametrize("packed", [False, True])
def test_source_from_a_tree_or_an_archive(tmp_path: Path, nested: str, packed: bool) -> None:
    path = tmp_path / ("a.tar.gz" if packed else "tree")
    files = {name if "/" in name else f"src/{name}": text for name, text in SOURCE.items()}
    files |= CHATS | {"common/other.cpp": "int f() {}"}
    if packed:
        with tarfile.open(path, "w:gz") as archive:
            for name, text in files.items():
                member = tarfile.TarInfo(f"package-1.0/{nested}{name}")
                member.size = len(text.encode())
                archive.addfile(member, io.BytesIO(text.encode()))
    else:
        for name, text in files.items():
            file = path / nested / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, "utf-8")
    assert watch.read_source(path) == SOURCE | CHATS


CHATS = {
    "common/jinja/value.cpp": "namespace jinja {\nstatic int slice(int a) { return a; }\nstruct value { int n; };\n}\n",
    "common/parsers/gpt-oss.cpp": "namespace { int init(int a) { return 1; } }\n",
    "tools/server/server-common.cpp": "int parse(int a) { return 2; }\n",
}


def test_functions_that_render_chats_are_watched(theirs: Any) -> None:
    new, same = watch.extract(SOURCE | CHATS), theirs.fingerprints
    functions = ["jinja/value.cpp slice", "jinja/value.cpp value", "parsers/gpt-oss.cpp init"]
    named = {*(f"common/{name}" for name in functions), "tools/server/server-common.cpp parse"}
    assert new.fingerprints.keys() - same.keys() == named
    assert {name: new.fingerprints[name] for name in same} == same
    file = "common/jinja/value.cpp"
    changed = CHATS | {file: CHATS[file].replace("return a", "return a + 1"), "common/parsers/x.cpp": "int f() {}"}
    lines, differs = watch.report(watch.extract(SOURCE | changed), new)
    assert differs
    assert [line for line in lines if line.startswith("  + ")] == ["  + common/parsers/x.cpp f"]
    assert [line for line in lines if line.startswith("  ~ ")] == [f"  ~ {file} slice"]


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        *((name, True) for name in CHATS),
        *(("src/unicode.cpp", True), ("common/jinja/value.h", True), ("common/unicode.cpp", False)),
        *(("conversion/base.py", True), ("conversion/llama.py", False)),
        *(("common/jinja/deep/value.cpp", False), ("tests/common/chat.cpp", False), ("common/jinja/README.md", False)),
    ],
)
def test_which_files_are_read(place: str, expected: bool) -> None:
    assert watch.is_read(place) is expected


@pytest.mark.parametrize("content", [None, b"no archive"])
def test_a_wrong_path_has_its_own_exit_code(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "x"
    if content is None:
        path.mkdir()
    else:
        path.write_bytes(content)
    assert watch.main([str(path)]) == 2


def test_ggtok_is_up_to_date(capsys: pytest.CaptureFixture[str]) -> None:
    source = os.environ.get("GGTOK_LLAMA_CPP")
    if not source:
        pytest.skip("GGTOK_LLAMA_CPP does not point at llama.cpp's source or llama-cpp-python's archive")
    pytest.importorskip("ggtok")
    assert watch.main([source]) == 0, capsys.readouterr().out


def test_shared_table_is_what_the_source_says(shared: Path) -> None:
    source = os.environ.get("GGTOK_LLAMA_CPP")
    if not source:
        pytest.skip("GGTOK_LLAMA_CPP does not point at llama.cpp's source or llama-cpp-python's archive")
    reference = json.loads((shared / "reference" / "pretokenizers.json").read_text("utf-8"))
    tables = watch.extract(watch.read_source(Path(source))).tables
    assert tables["pattern families"] == reference["families"]
    assert tables["pre-tokenizer names"].keys() == reference["pre"].keys()
    for name, row in reference["pre"].items():
        ours = tables["pre-tokenizer names"][name]
        assert {key: value for key, value in row.items() if key in ours}.items() <= ours.items(), name
