"""The commands that look at files: `inspect`, `check`, `diff`, `search`."""

from __future__ import annotations

import base64
import io
import json
import os
import re
import shutil
from contextlib import redirect_stdout
from itertools import combinations
from pathlib import Path

import ggtok
import pytest
from conftest import BUILTIN, VOCABULARIES
from ggtok import Tokenizer
from ggtok.cli import main
from ggtok.cli.table import print_pairs, print_table
from ggtok.lab.explain.cells import cell_len
from hypothesis import given
from hypothesis import strategies as st
from terminals import on_terminal, shown

PRE = "tokenizer.ggml.pre"


def path_of(name: str) -> str:
    return str(VOCABULARIES / f"{name}.gguf")


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A file that differs from `bpe` in its pre-tokenizer."""
    path = tmp_path_factory.mktemp("other") / "other.gguf"
    Tokenizer.from_gguf(path_of("bpe"), overrides={PRE: "default"}).to_gguf(path)
    return str(path)


@pytest.fixture(scope="module")
def flawed(shared: Path) -> str:
    return str(shared / "vocabs/phi-3.gguf")


# inspect


@pytest.mark.parametrize("name", BUILTIN)
def test_inspect(capsys: pytest.CaptureFixture[str], name: str) -> None:
    tokenizer = Tokenizer.builtin(name)
    found = json.loads(shown(capsys, "inspect", path_of(name), "--json"))
    vocab = tokenizer.vocab
    assert (found["kind"], found["pre"], found["size"]) == (vocab.kind, vocab.pre, len(vocab))
    assert found["merges"] == len(vocab.merges)
    assert found["settings"] == dict(vocab.settings)
    assert found["attributes"]["normal"] == sum(ggtok.TokenAttribute.NORMAL in token.attributes for token in vocab)
    assert {row["id"] for row in found["special"].values()} >= {vocab.eos_id} - {None}
    assert found["findings"] == [finding._asdict() for finding in tokenizer.check()]
    assert shown(capsys, "inspect", "--builtin", name, "--json") == json.dumps(found | {"file": None}) + "\n"
    lines = shown(capsys, "inspect", "-m", path_of(name)).splitlines()
    assert re.fullmatch(rf"kind +{vocab.kind}", lines[1])
    assert any(re.fullmatch(rf"tokens +{len(vocab)} \(.*\bnormal\b.*\)", line) for line in lines)


def test_inspect_shows_problems(capsys: pytest.CaptureFixture[str], flawed: str) -> None:
    printed = shown(capsys, "inspect", flawed)
    assert "\nproblem " in printed
    for finding in Tokenizer.from_gguf(flawed).check():
        assert str(finding) in printed


def test_inspect_several_files(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    printed = shown(capsys, "inspect", path_of("bpe"), path_of("spm"))
    assert re.findall(r"(?:\A|\n\n)file +(.*)", printed) == [path_of("bpe"), path_of("spm")]  # with a line between them
    monkeypatch.setenv("GGTOK_MODEL", path_of("spm"))
    assert json.loads(shown(capsys, "inspect", "--json"))["kind"] == "spm"
    assert json.loads(shown(capsys, "inspect", "--json", path_of("bpe")))["kind"] == "bpe"


def test_overrides_are_for_each_file(capsys: pytest.CaptureFixture[str]) -> None:
    overrides = ["--override-kv", f"{PRE}=str:gpt-2,tokenizer.ggml.eos_token_id=int:7"]
    for line in shown(capsys, "inspect", path_of("bpe"), path_of("bpe"), "--json", *overrides).splitlines():
        found = json.loads(line)
        assert (found["pre"], found["special"]["eos"]["id"]) == ("gpt-2", 7)


@pytest.mark.parametrize(
    ("name", "listed", "hidden"),
    [
        ("bpe", {"add_bos", "add_eos"}, {"lowercase", "strip_accents", "add_space_prefix"}),
        ("spm", {"add_bos", "add_eos", "add_space_prefix"}, {"lowercase", "ignore_merges", "add_sep"}),
        ("unigram", {"add_bos", "add_eos", "remove_extra_whitespaces"}, {"lowercase", "strip_accents"}),
        ("wordpiece", {"clean_spaces", "lowercase", "strip_accents"}, {"escape_whitespaces", "ignore_merges"}),
    ],
)
def test_inspect_lists_the_flags_of_the_kind(
    capsys: pytest.CaptureFixture[str], name: str, listed: set[str], hidden: set[str]
) -> None:
    printed = set(re.findall(r"\w+", shown(capsys, "inspect", "--builtin", name)))
    assert listed <= printed
    assert not hidden & printed


def test_inspect_shows_what_applies_to_the_kind(capsys: pytest.CaptureFixture[str]) -> None:
    names = {
        name: set(re.findall(r"^(\S+(?: \S+)*)  ", shown(capsys, "inspect", "--builtin", name), re.MULTILINE))
        for name in BUILTIN
    }
    assert {name for name, rows in names.items() if "merges" in rows} == {"bpe"}
    assert {name for name, rows in names.items() if "pre-tokenizer" in rows} == {"bpe"}
    assert {name for name, rows in names.items() if "nl token" in rows} == {"bpe", "spm"}
    assert {name for name, rows in names.items() if {"end of generation", "chat template"} & rows} == {
        *("bpe", "spm", "unigram"),
    }
    assert not {"fim_pad token", "eot token"} & names["wordpiece"]
    assert {"sep token", "mask token"} <= names["wordpiece"]


# check


def test_check(capsys: pytest.CaptureFixture[str]) -> None:
    name = path_of("bpe")
    assert shown(capsys, "check", name) == f"{name}: no problems\n"
    assert json.loads(shown(capsys, "check", name, "--json")) == {"file": name, "findings": []}
    assert shown(capsys, "check", "--builtin", "spm") == "spm: no problems\n"


def test_check_of_several_files_ends_with_their_number(capsys: pytest.CaptureFixture[str], flawed: str) -> None:
    printed = shown(capsys, "check", path_of("bpe"), flawed, path_of("spm"))
    assert printed.splitlines()[-1] == "3 files, 1 with notes"
    assert shown(capsys, "check", path_of("bpe"), path_of("spm")).endswith("\n2 files, no problems\n")
    wrong = ["--override-kv", "tokenizer.ggml.nonsense=int:3"]
    assert shown(capsys, "check", path_of("bpe"), flawed, *wrong, code=1).endswith("\n2 files, 2 with errors\n")
    assert len(shown(capsys, "check", path_of("bpe"), flawed, "--json").splitlines()) == 2


def test_check_with_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    """It is a warning when the file is opened; here it is a finding and nothing more."""
    name = path_of("bpe")
    assert main(["check", name, "--override-kv", "tokenizer.ggml.nonsense=int:3"]) == 1
    out, error = capsys.readouterr()
    assert out.startswith(f"{name}: error: the override of tokenizer.ggml.nonsense has no effect: ")
    assert out.endswith("[override-unknown]\n")
    assert error == ""


def test_check_continues_after_a_file_that_does_not_open(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes((VOCABULARIES / "bpe.gguf").read_bytes()[:1000])
    assert main(["check", "absent.gguf", str(broken), path_of("bpe")]) == 2
    out, error = capsys.readouterr()
    finding, *rest = out.splitlines()
    assert finding.startswith(f"{broken}: error: the file ends inside ")
    assert finding.endswith("[file-damaged]")
    assert rest == [f"{path_of('bpe')}: no problems", "3 files, 1 with errors, 1 not read"]
    assert error.splitlines() == ["ggtok: error: absent.gguf: No such file or directory"]
    assert main(["check", "absent.gguf", "--json"]) == 2
    found = json.loads(capsys.readouterr().out)
    assert found == {"file": "absent.gguf", "error": "absent.gguf: No such file or directory"}
    os.mkdir(tmp_path / "\udcff")
    path = str(shutil.copy(path_of("bpe"), tmp_path / "\udcff/a.gguf"))
    assert main(["check", path, "--json"]) == 0
    file = json.loads(capsys.readouterr().out)["file"]
    assert base64.b64decode(file["base64"]) == os.fsencode(path)


def test_check_marks_each_file(flawed: str) -> None:
    wrong = ["--override-kv", "tokenizer.ggml.nonsense=int:3"]
    shown = on_terminal("check", path_of("bpe"), flawed, width=300).text.splitlines()
    assert [line[0] for line in shown] == ["✓", "!", " ", "2"]
    assert on_terminal("check", path_of("bpe"), *wrong, width=300).text.startswith(f"✗ {path_of('bpe')}\n  error: ")
    assert "\x1b[32m✓" in on_terminal("check", path_of("bpe")).raw
    ascii = on_terminal("check", path_of("bpe"), width=300, PYTHONUTF8="0", PYTHONIOENCODING="ascii")
    assert ascii.text == f"+ {path_of('bpe')}: no problems\n"


# diff


def test_diff(capsys: pytest.CaptureFixture[str], other: str, tmp_path: Path) -> None:
    bpe = path_of("bpe")
    assert shown(capsys, "diff", bpe, bpe) == "No difference between the tokenizers.\n"
    found = ggtok.diff(Tokenizer.from_gguf(bpe), Tokenizer.from_gguf(other), "The end.\n\n")
    assert found
    printed = shown(capsys, "diff", bpe, other, "-p", "The end.\n\n", code=1)
    verdict, vocabularies, *_ = str(found).splitlines()
    strips = ["bpe   The│·end│[. ↵↵]", "other The│·end│[.│↵↵]"]
    verdict = verdict.replace("·", "│")  # a dot is a space in the text below
    table = ["              bpe    other", "pre           qwen2  default", "clean_spaces  no     yes"]
    hint = "--all prints all tokens and merges that differ"
    assert printed.splitlines() == [verdict, vocabularies, "", *strips, "", *table, hint]
    whole = shown(capsys, "diff", bpe, other, "-p", "The end.\n\n", "--all", code=1)
    assert whole.splitlines() == [*printed.splitlines()[:5], "", *str(found).splitlines()[2:]]
    (tmp_path / "text").write_text("The end.\n\n")
    assert shown(capsys, "diff", bpe, other, str(tmp_path / "text"), code=1) == printed
    expected = json.loads(json.dumps({"a": bpe, "b": other} | found.to_dict()))
    assert json.loads(shown(capsys, "diff", bpe, other, "-p", "The end.\n\n", "--json", code=1)) == expected
    assert "ids first differ" not in shown(capsys, "diff", bpe, other, code=1)


def test_diff_of_kinds(capsys: pytest.CaptureFixture[str]) -> None:
    printed = shown(capsys, "diff", path_of("bpe"), path_of("unigram"), code=1)
    assert printed.startswith("Two kinds of tokenizer, bpe and unigram. ")
    assert re.search(r"\nkind +bpe +unigram\n", printed)
    assert len(shown(capsys, "diff", path_of("bpe"), path_of("unigram"), "--all", code=1)) > 10 * len(printed)
    assert printed.isprintable() or all(line.isprintable() for line in printed.splitlines())


@pytest.mark.parametrize(("a", "b"), [*combinations(BUILTIN, 2)])
def test_diff_fits_a_screen_and_shows_characters(capsys: pytest.CaptureFixture[str], a: str, b: str) -> None:
    text = "Vier Fünftel von 2024: 漢字 und 👋. " * 40
    found = on_terminal("diff", path_of(a), path_of(b), "-p", text, width=100, height=34)
    assert len(found.text.splitlines()) <= 34
    for encoded in ("Ġ", "Ã", "▁"):
        assert encoded not in shown(capsys, "diff", path_of(a), path_of(b), "--all", code=1).replace("'Ã'", "")


# search


def test_search(capsys: pytest.CaptureFixture[str]) -> None:
    vocab = Tokenizer.builtin("bpe").vocab
    bpe = ("search", "--builtin", "bpe")
    lines = shown(capsys, *bpe, " token").splitlines()
    assert lines[0].split() == ["id", "piece", "score", "attributes"]
    assert [int(line.split()[0]) for line in lines[1:]] == vocab.search(" token")
    rows = [json.loads(line) for line in shown(capsys, *bpe, "--json", "-e", "^<.*im_end").splitlines()]
    assert rows == [{"id": 12993, "piece": "<|im_end|>", "text": "<|im_end|>", "score": 0.0, "attributes": ["control"]}]
    rows = [json.loads(line) for line in shown(capsys, *bpe, "--json", "--prefix", " tow").splitlines()]
    assert [row["id"] for row in rows] == vocab.search(" tow", match="prefix")
    assert shown(capsys, *bpe, "no such piece", code=1) == ""


def test_search_for_bytes(capsys: pytest.CaptureFixture[str]) -> None:
    (row,) = [json.loads(line) for line in shown(capsys, "search", "--builtin", "bpe", "--json", "\udcff").splitlines()]
    assert row["piece"] == {"base64": "/w=="}


def test_search_for_everything(capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown(capsys, "search", "--builtin", "wordpiece", "").splitlines()
    assert len(lines) == 1 + len(Tokenizer.builtin("wordpiece").vocab)


# Terminals


@pytest.mark.parametrize("width", [40, 120])
@pytest.mark.parametrize(
    "arguments",
    [
        ("inspect", path_of("wordpiece")),
        ("search", "the", "--builtin", "bpe"),
        ("check", path_of("bpe")),
        ("diff", path_of("bpe"), path_of("spm"), "-p", "a text"),
        ("explain", "--builtin", "bpe", "-p", "What is LoRA?", "--why", "3:9"),
    ],
)
def test_it_fits_the_window(arguments: tuple[str, ...], width: int) -> None:
    found = on_terminal(*arguments, width=width)
    assert found.code == (arguments[0] == "diff")
    assert max(map(cell_len, found.text.splitlines())) <= width
    assert "\x1b[1" in found.raw or arguments[0] in ("check", "explain")
    assert "\x1b[" not in on_terminal(*arguments, width=width, TERM="dumb").raw
    assert "\x1b[3" not in on_terminal(*arguments, width=width, NO_COLOR="1").raw


def test_a_window_of_ten_columns() -> None:
    for command in ("check", "inspect"):
        assert on_terminal(command, path_of("wordpiece"), width=10).code == 0


def test_findings_are_listed_below_their_file() -> None:
    """In a window that is wide enough for the paths, wherever the package is installed."""
    command = ("check", path_of("spm"), path_of("wordpiece"), "--llama-cpp", "b9538")
    found = on_terminal(*command, width=10_000).text.splitlines()
    assert found[0].startswith(f"✓ {path_of('spm')}")
    at = found.index(f"! {path_of('wordpiece')}")
    assert found[at + 1].startswith("  warning: llama.cpp b9538 answers differently: since b9713, and not in b9538, ")
    assert all(line.startswith("  ") for line in found[at + 1 : -1])
    assert found[-1] == "2 files, 1 with warnings"


CELLS = st.text(st.characters(codec="utf-8"), max_size=12)


@given(st.lists(st.tuples(CELLS, CELLS, CELLS), max_size=5))
def test_tables_keep_their_rows(rows: list[tuple[str, str, str]]) -> None:
    """Whatever is in the cells, a row is one line without control characters."""
    with redirect_stdout(io.StringIO()) as out:
        print_table(("a", "b", "c"), rows, right=(1,))
    lines = out.getvalue().split("\n")
    assert len(lines) == len(rows) + 2
    assert all(line.isprintable() for line in lines)
    with redirect_stdout(io.StringIO()) as out:
        print_pairs([(name, value) for name, value, _ in rows])
    assert all(line.isprintable() for line in out.getvalue().split("\n"))
