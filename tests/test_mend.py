"""Broken files, made small: each opens after the repair that `check_file` finds, and `edit` changes any part."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import ggtok
import pytest
from click.testing import CliRunner
from ggtok import Finding, GgtokError, TokenIndexError, Tokenizer, TokenizerWarning, VocabularyError
from ggtok.cli import group, main
from ggtok.lab.convert.gguf import Packed, Typed, as_typed, gguf_bytes, header, packed
from ggtok.lab.convert.tensors import Tensors
from ggtok.tokenizer.keys import Type
from ggtok.tokenizer.metadata import read_metadata
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from oracles.gguf_vocab import Vocab
from test_check import CASES, CONTROL, NORMAL, PRE, byte_level, llama3, spm
from test_edit import digests
from tiny_model import write_model

TEMPLATE = "tokenizer.chat_template"
GGML = "tokenizer.ggml."
BOS = f"{GGML}bos_token_id"
ALL: Mapping[str, Any] = MappingProxyType(byte_level().metadata())


def written(values: Mapping[str, Any]) -> bytes:
    return gguf_bytes({key: Packed.strings([]) if value == [] else value for key, value in values.items()})


def entries(vocab: Vocab | None = None, **changes: Any) -> bytes:
    """A file with some keys of `tokenizer.ggml.` changed, or removed if they are `None`."""
    values = dict(ALL if vocab is None else vocab.metadata()) | {GGML + key: value for key, value in changes.items()}
    return written({key: value for key, value in values.items() if value is not None})


def flawed(*extra: tuple[str, Typed | Packed]) -> bytes:
    """A file with further keys, which may be empty or there already."""
    old = gguf_bytes(ALL)
    added = b"".join(packed(key, value) for key, value in extra)
    return header(len(ALL) + len(extra)) + old[len(header(0)) :] + added


class Broken(NamedTuple):
    """A file, the code of what stops it, and what a key is after the repair; `...` without a repair."""

    code: str
    data: bytes
    key: str = ""
    value: Any = ...


TWICE = [*byte_level().texts[:-2], b"he", b"</s>"]
BYTES_AS_FLOATS = Packed.of(Type.FLOAT64, [float(kind) for kind in byte_level().types])

BROKEN = {
    "empty key": Broken("key-empty", flawed(("", Typed(Type.BOOL, True))), "", None),
    "empty keys": Broken("key-empty", flawed(*[("", Typed(Type.UINT8, n)) for n in range(3)]), "", None),
    "key twice": Broken("key-twice", flawed(("general.name", Typed(Type.STRING, "b"))), "general.name", "b"),
    "array twice": Broken("key-twice", flawed((GGML + "merges", Packed.strings(["h e"]))), PRE, "gpt-2"),
    "architecture twice": Broken(
        "key-twice", flawed(("general.architecture", Typed(Type.STRING, "llama"))), "general.architecture", "llama"
    ),
    "id as int32": Broken("key-type", entries(bos_token_id=Typed(Type.INT32, 258)), BOS, 258),
    "id as float": Broken("key-type", entries(bos_token_id=258.0), BOS, 258),
    "no id as int32": Broken("key-type", entries(bos_token_id=Typed(Type.INT32, -1)), BOS, None),
    "id as text": Broken("key-type", entries(bos_token_id="<s>")),
    "id as NaN": Broken("key-type", entries(bos_token_id=float("nan"))),
    "flag as uint8": Broken("key-type", entries(add_bos_token=Typed(Type.UINT8, 1)), f"{GGML}add_bos_token", True),
    "flag as text": Broken("key-type", entries(add_bos_token="false")),
    "id too large": Broken("key-type", entries(bos_token_id=Typed(Type.UINT64, 1 << 40))),
    "types too large": Broken("key-type", entries(token_type=Packed.of(Type.INT64, [1 << 40] * 259))),
    "flag as 7": Broken("key-type", entries(add_bos_token=7)),
    "types as float64": Broken("key-type", entries(token_type=BYTES_AS_FLOATS), PRE, "gpt-2"),
    "scores as float64": Broken("key-type", entries(scores=Packed.of(Type.FLOAT64, [0.5] * 259)), PRE, "gpt-2"),
    "tokens as numbers": Broken("key-type", entries(tokens=[1, 2])),
    "pre of another spelling": Broken("pre-unknown", entries(pre="GPT_2"), PRE, "gpt-2"),
    "pre of a known vocabulary": Broken("pre-unknown", entries(llama3(), pre="llama3.9-bpe"), PRE, "llama-bpe"),
    "pre of nothing known": Broken("pre-unknown", entries(pre="mystery")),
    "model of another spelling": Broken("model-unknown", entries(model="GPT-2"), f"{GGML}model", "gpt2"),
    "model of nothing known": Broken("model-unknown", entries(model="mystery")),
    "duplicate tokens": Broken("tokens-twice", entries(tokens=TWICE), PRE, "gpt-2"),
    "no merges": Broken("merges-missing", entries(merges=None)),
    "no tokens": Broken("vocabulary-unsound", entries(tokens=None)),
    "short types": Broken("vocabulary-unsound", entries(token_type=[1, 2])),
    "no tokenizer": Broken("tokenizer-missing", gguf_bytes({"general.architecture": "clip", "general.type": "mmproj"})),
    "no file": Broken("file-damaged", b"GGUF"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_files(name: str, tmp_path: Path) -> None:
    broken = BROKEN[name]
    source, target = tmp_path / "broken.gguf", tmp_path / "mended.gguf"
    source.write_bytes(broken.data)
    with pytest.raises(GgtokError) as caught:
        Tokenizer.from_gguf(source)
    first = ggtok.check_file(source)[0]
    assert (first.code, first.severity) == (broken.code, "error")
    assert first.message in str(caught.value)
    assert (first.repair is None) == (broken.value is ...)
    if first.repair is None:
        return
    assert broken.code not in mended(source, target, first)
    assert read_metadata(target).get(broken.key) == broken.value
    Tokenizer.from_gguf(target)


def mended(source: Path, target: Path, finding: Finding) -> set[str]:
    """The codes that are left after a repair."""
    assert finding.repair is not None
    ggtok.edit(source, target, **finding.repair)
    return {finding.code for finding in ggtok.check_file(target)}


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.code} {case.severity}")
@pytest.mark.filterwarnings("ignore::ggtok.TokenizerWarning")
def test_each_repair_takes_its_finding_away(case: Any, tmp_path: Path) -> None:
    source, target = tmp_path / "broken.gguf", tmp_path / "mended.gguf"
    source.write_bytes(written({**case.vocab.metadata(), **case.metadata}))
    for finding in ggtok.check_file(source, overrides=dict(case.overrides)):
        if finding.repair is not None:
            assert finding.key not in case.overrides
            assert finding.code not in mended(source, target, finding)


KEYS = [
    *("", "general.name", "general.architecture", "llama.vocab_size", TEMPLATE),
    *(GGML + key for key in ("model", "pre", "tokens", "scores", "token_type", "merges", "bos_token_id")),
    *(GGML + key for key in ("eos_token_id", "add_bos_token", "precompiled_charsmap", "normalizer.lowercase")),
]
NUMBERS = st.sampled_from([0, 1, 3, 258, 1 << 40])
TEXTS = st.sampled_from(["gpt2", "GPT-2", "", "\ufeff{{ x }}", r"a\nb", "{% if %}", "<s>"])
VALUES = st.one_of(
    TEXTS.map(lambda text: Typed(Type.STRING, text)),
    NUMBERS.map(lambda number: Typed(Type.INT64, -number)),
    NUMBERS.map(lambda number: Typed(Type.UINT64, number)),
    st.sampled_from([1.0, 0.5, float("nan"), float("inf")]).map(lambda number: Typed(Type.FLOAT32, number)),
    st.booleans().map(lambda value: Typed(Type.BOOL, value)),
    st.lists(TEXTS, max_size=3).map(Packed.strings),
    st.tuples(NUMBERS, st.sampled_from([0, 1, 259])).map(lambda row: Packed.of(Type.INT64, [row[0]] * row[1])),
)


@given(changes=st.lists(st.tuples(st.sampled_from(KEYS), VALUES, st.booleans()), min_size=1, max_size=3))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@pytest.mark.filterwarnings("ignore::ggtok.TokenizerWarning")
def test_random_damage_is_told_and_each_repair_is_right(changes: list[Any], tmp_path: Path) -> None:
    rows = [(key, as_typed(key, value)) for key, value in ALL.items()]
    for key, value, is_extra in changes:
        rows = [row for row in rows if is_extra or row[0] != key] + [(key, value)]
    source, target = tmp_path / "broken.gguf", tmp_path / "mended.gguf"
    source.write_bytes(header(len(rows)) + b"".join(packed(key, value) for key, value in rows))
    for finding in ggtok.check_file(source)[:1]:
        if finding.repair is not None:
            ggtok.edit(source, target, **finding.repair)
            assert (finding.code, finding.key) not in [(left.code, left.key) for left in ggtok.check_file(target)]


def test_one_check_finds_all_repairs_and_one_command_makes_them(tmp_path: Path) -> None:
    source, target, other = (str(tmp_path / name) for name in ("broken file.gguf", "mended.gguf", "other.gguf"))
    changes: dict[str, Any] = {
        "add_eos_token": Typed(Type.UINT8, 0),
        "pre": "Gpt2",
        "tokens": TWICE,
        "eos_token_id": 10**6,
    }
    data = entries(**changes)
    Path(source).write_bytes(data)
    findings = ggtok.check_file(source)
    codes = [finding.code for finding in findings]
    assert codes[:4] == ["key-type", "pre-unknown", "tokens-twice", "special-outside"]
    done = call("check", source)
    assert main(["check", source]) == 1
    last = done.output.splitlines()[-1]
    command = shlex.split(last.partition("mend it with: ")[2])
    assert command == ["ggtok", "check", source, "--fix", "PATH"]
    dry = call("check", source, "--fix", target, "--dry-run")
    assert not os.path.exists(target)
    assert f'{PRE}: "Gpt2" -> "gpt-2"' in dry.output.splitlines()
    assert call("check", source, "--fix", target).exit_code == 0
    assert call(*[other if each == "PATH" else each for each in command[1:]]).exit_code == 0
    assert Path(target).read_bytes() == Path(other).read_bytes()
    assert Path(source).read_bytes() == data
    tokenizer = Tokenizer.from_gguf(target)
    assert [token.text for token in tokenizer.vocab[256:]] == ["he", "[PAD257]", "</s>"]
    assert ggtok.TokenAttribute.UNUSED in tokenizer.vocab[257].attributes
    assert not [finding for finding in ggtok.check_file(target) if finding.repair]


def test_a_duplicate_with_a_special_role_stays() -> None:
    texts = [b"</s>", *byte_level().texts[1:]]
    found = ggtok.check_file(entries(tokens=texts))[0]
    assert found.tokens == (0,)
    assert found.repair == {"tokens": [{"id": 0, "text": "[PAD0]", "type": "unused"}]}


def test_files_of_sound_vocabularies() -> None:
    assert ggtok.check_file(entries()) == []
    with pytest.raises(OSError, match="absent"):
        ggtok.check_file("absent.gguf")
    with pytest.raises(GgtokError, match="nonsense"):
        ggtok.check_file(entries(), llama_cpp="nonsense")
    assert ggtok.check_file(entries(), overrides={PRE: "nonesuch"})[0].repair is None


# What is better but still wrong is written; what was right must stay so.


def test_an_edit_of_a_broken_file_is_written_and_judged(tmp_path: Path) -> None:
    source, target = tmp_path / "broken.gguf", tmp_path / "better.gguf"
    source.write_bytes(entries(pre="mystery", model="mystery"))
    with pytest.warns(TokenizerWarning, match=r"unknown pre-tokenizer.*\[pre-unknown\]") as caught:
        assert ggtok.edit(source, target, metadata={f"{GGML}model": "gpt2"}) is None
    assert caught[0].filename == __file__
    assert read_metadata(target).get(f"{GGML}model") == "gpt2"
    done = call("edit", str(target), "-o", str(source), "--set", "general.name=x")
    assert main(["edit", str(target), "-o", str(source), "--set", "general.name=x"]) == 1
    assert done.output.splitlines()[1] == f"{source}: it does not open yet"
    assert "[pre-unknown]" in done.output.splitlines()[2]
    new = ggtok.edit(source, target, metadata={PRE: "gpt-2"})
    assert new == Tokenizer.from_gguf(entries(name="x"))


def test_a_sound_file_stays_sound(tmp_path: Path) -> None:
    source, target = tmp_path / "a.gguf", tmp_path / "b.gguf"
    source.write_bytes(entries())
    with pytest.raises(GgtokError, match="mystery"):
        ggtok.edit(source, target, metadata={PRE: "mystery"})
    assert not target.exists()


@pytest.mark.parametrize("kind", ["mmproj", "adapter"])
def test_a_file_without_a_tokenizer(kind: str, tmp_path: Path) -> None:
    source, target = tmp_path / "a.gguf", tmp_path / "b.gguf"
    source.write_bytes(gguf_bytes({"general.architecture": "clip", "general.type": kind, "general.name": "a"}))
    assert ggtok.edit(source, target, name="b") is None
    assert read_metadata(target).get("general.name") == "b"
    done = call("edit", str(source), "-o", str(target), "--set", "general.name=c", "--force")
    assert (done.exit_code, done.output.splitlines()[-1]) == (0, f"{target}: it has no tokenizer")


def test_tensors_of_a_broken_file_stay(tmp_path: Path) -> None:
    sound, source, target = (tmp_path / name for name in ("sound.gguf", "a.gguf", "b.gguf"))
    write_model(sound)
    data, metadata = sound.read_bytes(), read_metadata(sound)
    with open(sound, "rb") as file:
        tensors = Tensors.of(file, metadata)
    head = header(len(metadata.entries()) + 1, num_tensors=metadata.tensor_count) + data[24 : metadata.size]
    head += packed("", Typed(Type.BOOL, True)) + tensors.infos
    source.write_bytes(head + bytes(-len(head) % 32) + data[tensors.start :])
    with pytest.raises(GgtokError, match="a key is empty"):
        Tokenizer.from_gguf(source)
    assert ggtok.edit(source, target, metadata={"": None}) == Tokenizer.from_gguf(sound)
    assert digests(target) == digests(sound)


# Tokens by their ids, and merges of another file


def test_tokens_by_id(tmp_path: Path) -> None:
    source, target, rows = tmp_path / "a.gguf", tmp_path / "b.gguf", tmp_path / "tokens.json"
    source.write_bytes(gguf_bytes(spm().metadata()))
    begin: dict[str, Any] = {"id": 259, "text": "<begin>", "type": "control"}
    changes = [begin, {"id": 260, "score": 7}, {"id": 261, "type": "unused"}]
    rows.write_text(json.dumps(changes))
    new = ggtok.edit(source, target, tokens=changes)
    assert new is not None
    assert [(token.text, token.score) for token in new.vocab[259:]] == [("<begin>", -1.0), ("b", 7.0), ("ab", -3.0)]
    assert new.encode("<begin>", add_special=False, parse_special=True) == [259]
    by_file = call("edit", str(source), "-o", str(target), "--tokens", str(rows))
    assert by_file.exit_code == 0
    assert Tokenizer.from_gguf(target) == new
    options = ["--rename", "259=<begin>", "--retype", "259=control", "--score", "260=7", "--retype", "261=unused"]
    assert call("edit", str(source), "-o", str(target), *options).exit_code == 0
    assert Tokenizer.from_gguf(target) == new
    swapped = ggtok.edit(source, target, tokens=[{"id": 259, "text": "b"}, {"id": 260, "text": "a"}])
    assert swapped is not None
    assert [token.text for token in swapped.vocab[259:]] == ["b", "a", "ab"]


def test_lists_that_are_missing_are_made(tmp_path: Path) -> None:
    source, target = tmp_path / "a.gguf", tmp_path / "b.gguf"
    source.write_bytes(entries(token_type=None, scores=None))
    new = ggtok.edit(source, target, tokens=[{"id": 258, "type": "control", "score": 0.5}])
    assert new is not None
    assert (new.vocab[258].score, new.vocab[257].score) == (0.5, 0.0)
    assert ggtok.TokenAttribute.CONTROL in new.vocab[258].attributes


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ([{"id": 1, "txt": "a"}], GgtokError, r"no field of a token \(token 1\) is called 'txt': the nearest are text"),
        ([{"id": 1}, {"id": 1}], GgtokError, "token 1 is given twice"),
        ([{"text": "a"}], GgtokError, "must be an object with an id"),
        (["a"], GgtokError, "must be an object with an id"),
        ([{"id": 259}], TokenIndexError, "the id of a token is 259: there are 259 tokens"),
        ([{"id": True}], TypeError, "must be an id, not bool"),
        ([{"id": 1, "text": ""}], VocabularyError, "empty or has a NUL"),
        ([{"id": 1, "text": 7}], TypeError, "the text of token 1 must be str, not int"),
        ([{"id": 1, "text": "he"}], VocabularyError, "tokens 1 and 256 would both have the text 'he'"),
        ([{"id": 1, "type": "special"}], GgtokError, r"no type of a token \(token 1\) is called 'special'"),
        ([{"id": 1, "type": ["control"]}], GgtokError, "no type of a token"),
        ([{"id": 1, "score": "high"}], TypeError, "the score of token 1 must be a number, not str"),
    ],
)
def test_changes_of_tokens_that_are_refused(changes: Any, error: type[Exception], message: str, tmp_path: Path) -> None:
    source = tmp_path / "a.gguf"
    source.write_bytes(entries())
    with pytest.raises(error, match=message):
        ggtok.edit(source, tmp_path / "b.gguf", tokens=changes)
    assert os.listdir(tmp_path) == ["a.gguf"]


def test_merges_of_another_file(tmp_path: Path) -> None:
    source, other, target = (tmp_path / name for name in ("a.gguf", "other.gguf", "b.gguf"))
    source.write_bytes(entries(merges=None))
    other.write_bytes(entries())
    assert ggtok.edit(source, target, merges_from=other) == Tokenizer.from_gguf(other)
    assert call("edit", str(source), "-o", str(target), "--merges-from", str(other)).exit_code == 0
    with pytest.raises(GgtokError, match=r"no list tokenizer\.ggml\.merges"):
        ggtok.edit(source, target, merges_from=source)


def test_arrays_are_set(tmp_path: Path) -> None:
    source, target = tmp_path / "a.gguf", tmp_path / "b.gguf"
    source.write_bytes(entries(merges=None))
    new = ggtok.edit(source, target, metadata={f"{GGML}merges": ["h e"], "general.tags": ["a", "b"]})
    assert new is not None
    assert list(new.vocab.merges)
    done = call("edit", str(source), "-o", str(target), "--set", f'{GGML}merges=["h e"]')
    assert done.exit_code == 0, done.output
    assert Tokenizer.from_gguf(target) == new


# Special tokens and templates


def test_an_id_is_an_id(tmp_path: Path) -> None:
    source, target = str(tmp_path / "a.gguf"), str(tmp_path / "b.gguf")
    Path(source).write_bytes(entries())
    two = Tokenizer.from_gguf(source).vocab.id("2")
    assert two not in (None, 2)

    def eos(token: str) -> int | None:
        done = call("edit", source, "-o", target, "--special", f"eos={token}", "--force")
        assert done.exit_code == 0, done.output
        return Tokenizer.from_gguf(target).vocab.eos_id

    assert (eos("#2"), eos("str:2"), eos("200"), eos("</s>")) == (2, two, 200, 258)
    refused = call("edit", source, "-o", target, "--special", "eos=2")
    assert "write eos=#2 or eos=str:2" in refused.output
    assert f"{GGML}eos_token_id is 9999" in str(call("edit", source, "-o", target, "--special", "eos=9999").exception)


def test_templates_are_checked_and_lose_their_byte_order_mark(tmp_path: Path) -> None:
    source, target, template = tmp_path / "a.gguf", tmp_path / "b.gguf", tmp_path / "t.jinja"
    source.write_bytes(entries())
    template.write_bytes(b"\xef\xbb\xbf{{ messages[0].content }}")
    assert call("edit", str(source), "-o", str(target), "--set-template", str(template)).exit_code == 0
    assert read_metadata(target).get(TEMPLATE) == "{{ messages[0].content }}"
    new = ggtok.edit(source, target, chat_template="\ufeff{{ x }}")
    assert new is not None
    assert new.metadata[TEMPLATE] == "{{ x }}"
    shown = call("chat", "-m", str(source), "--template-file", str(template), "-p", "Hi")
    assert shown.output == "Hi"
    template.write_text("{% frobnicate %}")
    refused = call("edit", str(source), "-o", str(target), "--set-template", str(template))
    assert isinstance(refused.exception, ggtok.ChatTemplateError)


@pytest.mark.parametrize("text", ["<|x>", "<x|>", "<tool_call>", "[X]", "]~x]", "<\uff5cx\uff5c>", '<|"|>'])
@pytest.mark.parametrize("kind", [NORMAL, 4, CONTROL])
def test_tokens_that_a_template_writes(text: str, kind: int) -> None:
    """Read from the template's text and constants, in any spelling; not from comments, and not parts of words."""
    vocab = byte_level(
        texts=[*byte_level().texts[:256], text.encode(), b"</s>"], types=[NORMAL] * 256 + [kind, CONTROL], merges=[]
    )
    code = {NORMAL: ["template-normal"], 4: ["template-user-defined"], CONTROL: []}[kind]
    quoted = json.dumps(text, ensure_ascii=False)
    for template, codes in (
        (f"a{text}b", code),
        (f"{{{{ {quoted} ~ x }}}}", code),
        (f"{{% if x == {quoted} %}}{{% endif %}}", code),
        (f"{{# {text} #}}", []),
        ("{{ x }}", []),
    ):
        data = written({**vocab.metadata(), TEMPLATE: template})
        findings = ggtok.check_file(data)
        assert [finding.code for finding in findings if finding.code.startswith("template")] == codes, template
        assert all(finding.tokens == (256,) for finding in findings if finding.code in codes)


def call(*arguments: str) -> Any:
    return CliRunner().invoke(group, list(arguments))
