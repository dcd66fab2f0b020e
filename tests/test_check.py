"""`check`: every code on a file made to have it, silence on sound files, and the warnings when a file is opened."""

from __future__ import annotations

import inspect
import pickle
import re
import warnings
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import ggtok
import pytest
from conftest import BUILTIN, shared_files
from ggtok import Finding, Tokenizer, TokenizerWarning, _ggtok
from ggtok.lab import diagnosis, releases
from ggtok.tokenizer import check
from oracles import gguf_vocab
from oracles.gguf_vocab import TokenType, Vocab
from oracles.spelling import BYTE_TOKENS, BYTES
from stock_templates import TEMPLATES

PAGE = (Path(__file__).parents[1] / "docs/check.md").read_text(encoding="utf-8")
NORMAL, CONTROL = int(TokenType.NORMAL), int(TokenType.CONTROL)


def byte_level(**changes: Any) -> Vocab:
    """A sound vocabulary: 256 bytes, two merges, EOS."""
    texts = [*BYTES, b"he", b"hel", b"</s>"]
    types = [NORMAL] * 258 + [CONTROL]
    vocab = Vocab("gpt2", texts, types, merges=[b"h e", b"he l"], pre="gpt-2", eos=258, bos=258)
    for name, value in changes.items():
        setattr(vocab, name, value)
    return vocab


def spm(**changes: Any) -> Vocab:
    """A sound vocabulary with all byte tokens."""
    texts = [b"<unk>", b"<s>", b"</s>", *BYTE_TOKENS, b"a", b"b", b"ab"]
    types = [TokenType.UNKNOWN, CONTROL, CONTROL, *[TokenType.BYTE] * 256, *[NORMAL] * 3]
    vocab = Vocab("llama", texts, [int(kind) for kind in types], [0.0] * 259 + [-1.0, -2.0, -3.0], unk=0, bos=1, eos=2)
    for name, value in changes.items():
        setattr(vocab, name, value)
    return vocab


def opened(vocab: Vocab, metadata: Mapping[str, Any] | None = None, overrides: Any = None) -> Tokenizer:
    """A tokenizer without its warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TokenizerWarning)
        return Tokenizer.from_gguf(gguf_vocab.write(vocab.metadata() | dict(metadata or {})), overrides=overrides)


def found(tokenizer: Tokenizer, code: str) -> Finding:
    findings = [finding for finding in tokenizer.check() if finding.code == code]
    assert len(findings) == 1, tokenizer.check()
    return findings[0]


def llama3(**changes: Any) -> Vocab:
    """Three of Llama 3's tokens at their ids, and fillers."""
    texts = BYTES + [b"x%d" % id for id in range(256, 9907)]
    for text, id in (("What", 3923), ("Hello", 9906), ("\u0120return", 471)):
        texts[id] = text.encode()
    vocab = Vocab("gpt2", [*texts, b"</s>"], [NORMAL] * len(texts) + [CONTROL], eos=len(texts), bos=len(texts))
    for name, value in changes.items():
        setattr(vocab, name, value)
    return vocab


PRE = "tokenizer.ggml.pre"


class Case(NamedTuple):
    """A file that has a finding: its vocabulary, and metadata and overrides on top."""

    code: str
    severity: str
    says: str
    vocab: Vocab
    metadata: Mapping[str, Any] = MappingProxyType({})
    overrides: Mapping[str, Any] = MappingProxyType({})


OUTSIDE = 10**6
TEMPLATE = "tokenizer.chat_template"
NO_BYTE_TOKEN = [b"zz" if text == b"<0x41>" else text for text in spm().texts]
NO_BYTE_TYPE = [NORMAL if text == b"<0x41>" else kind for text, kind in zip(spm().texts, spm().types, strict=True)]
FF = [b"qq" if id == 255 else text for id, text in enumerate(byte_level().texts)]
NO_BOS = Vocab("t5", [b"<pad>", b"</s>", b"<unk>", b"a"], [3, 3, 2, 1], eos=1, unk=2, add_bos=True)
TWO = Vocab("gpt2", [b"a", b"b"], [1, 1], pre="gpt-2", merges=[b"a b"])
TWO_AND_EOS = Vocab("gpt2", [b"a", b"b"], [1, 1], pre="gpt-2", merges=[b"a b"], add_eos=True)
RWKV = Vocab("rwkv", [b"<s>", b"</s>", b"a"], [3, 3, 1], eos=1)
NO_UNKNOWN = Vocab("bert", [b"[CLS]", b"[SEP]", b"a"], [3, 3, 1], bos=0, sep=1)
ROLE = byte_level(texts=[*BYTES, b"he", b"<|role|>", b"</s>"], merges=[b"h e"])
ANYONE = byte_level(texts=ROLE.texts, types=[NORMAL] * 257 + [TokenType.USER_DEFINED, CONTROL], merges=[b"h e"])

CASES = [
    Case("pre-missing", "error", 'Llama 3: open it with overrides={"tokenizer.ggml.pre": "llama-bpe"}', llama3()),
    Case("pre-missing", "error", "converting the model again", byte_level(pre="")),
    Case("pre-default", "error", '{"tokenizer.ggml.pre": "llama-bpe"}', llama3(pre="default")),
    Case("pre-default", "warning", "if the model has another", byte_level(pre="default")),
    Case("pre-differs", "warning", "gpt-2, which cuts texts differently from llama-bpe", llama3(pre="gpt-2")),
    Case("added-missing", "error", "BOS is added", NO_BOS),
    Case("added-missing", "error", "EOS is added", TWO_AND_EOS),
    Case(
        "override-unknown",
        "error",
        "did you mean tokenizer.ggml.add_bos_token?",
        byte_level(),
        {},
        {"tokenizer.ggml.add_bos_tokne": True},
    ),
    Case("override-unknown", "note", "has no effect", byte_level(), {}, {"llama.nonesuch": 7}),
    Case("override-type", "error", "is int, not bool", byte_level(), {}, {"tokenizer.ggml.add_bos_token": 1}),
    Case("override-array", "error", "the value is an array", byte_level(), {}, {"tokenizer.ggml.tokens": "a"}),
    Case("end-missing", "warning", "no token ends generation", TWO),
    Case("special-outside", "warning", "range", byte_level(), {"tokenizer.ggml.padding_token_id": OUTSIDE}),
    Case("special-normal", "warning", "marked as normal", byte_level(eos=5)),
    Case("template-normal", "error", "1 token ('<|role|>')", ROLE, {TEMPLATE: "{{ '<|role|>' }}"}),
    Case("template-user-defined", "warning", "refuse_user_defined", ANYONE, {TEMPLATE: "<|role|>{# <b> #}"}),
    Case("template-bom", "error", "byte order mark", spm(), {TEMPLATE: "\ufeff{{ x }}"}),
    Case("template-newlines", "error", r"spelled \n", spm(), {TEMPLATE: r"{{ x }}\n{{ '\n' }}"}),
    Case("template-unknown", "error", "nofilter", spm(), {TEMPLATE: "{{ x | nofilter }}"}),
    Case("control-in-text", "note", "'<s>', '</s>'", RWKV),
    Case("bytes-missing", "error", "1 of the bytes of UTF-8", byte_level(texts=[b"qq", *byte_level().texts[1:]])),
    Case("bytes-missing", "note", "1 bytes that UTF-8 never has", byte_level(texts=FF)),
    Case("bytes-missing", "warning", "1 of the 256 bytes", spm(texts=NO_BYTE_TOKEN, types=NO_BYTE_TYPE)),
    Case("tokens-unreachable", "note", "1 token ('hel')", byte_level(merges=[b"h e"])),
    Case("merges-unused", "warning", "1 merges ('x y')", byte_level(merges=[b"h e", b"he l", b"x y"])),
    Case("scores-odd", "error", "NaN", spm(scores=[0.0] * 259 + [-1.0, float("nan"), -3.0])),
    Case("scores-missing", "error", "all scores are 0", spm(scores=[0.0] * 262)),
    Case(
        "size-differs",
        "warning",
        "is 7 and there are 259 tokens",
        byte_level(),
        {"general.architecture": "llama", "llama.vocab_size": 7},
    ),
    Case("template-bos", "note", "encode_chat", spm(add_bos=True), {TEMPLATE: "{{ bos_token }}"}),
    Case("template-bos", "note", "encode_chat", spm(add_bos=True), {TEMPLATE: "<s>{{ x }}"}),
    Case("template-unsound", "error", "line 1, column", spm(), {TEMPLATE: "{% if %}"}),
    Case("template-unknown", "warning", "nofilter", spm(), {f"{TEMPLATE}.rag": "{{ (x | nofilter) if x }}"}),
    Case("template-tokens", "warning", "<|im_start|>", spm(), {TEMPLATE: "<|im_start|>"}),
    Case("unknown-missing", "warning", "the id -1", NO_UNKNOWN, {"tokenizer.ggml.unknown_token_id": OUTSIDE}),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.code} {case.severity}")
def test_every_code(case: Case) -> None:
    finding = found(opened(case.vocab, case.metadata, case.overrides), case.code)
    assert finding.severity == case.severity
    assert case.says in f"{finding.message}; {finding.advice}"
    assert str(finding) == f"{case.severity}: {finding.message}; {finding.advice} [{case.code}]"


def test_a_finding_about_many_tokens_fits_a_screen() -> None:
    few, many = (Finding("code", "note", "a", "b", tokens=tuple(range(n))) for n in (3, 10**5))
    begin = "Finding(code='code', severity='note', message='a', advice='b', key=None, tokens="
    assert repr(few) == f"{begin}(0, 1, 2), repair=None)"
    assert repr(many) == repr(few).replace("(0, 1, 2)", "(0, 1, 2, 3, 4, 5, ...)")


def test_the_page_lists_every_code() -> None:
    source = Path(check.__file__).read_text(encoding="utf-8")
    made = set(re.findall(r'Finding\("([a-z-]+)"', source))
    of_files = set(re.findall(r'(?:Finding\(|code, known = [A-Z]+, )"([a-z-]+)"', inspect.getsource(diagnosis)))
    of_releases = set(re.findall(r'Finding\("([a-z-]+)"', Path(releases.__file__).read_text(encoding="utf-8")))
    assert made | of_releases | of_files == set(re.findall(r"^\| `([a-z-]+)` \|", PAGE, re.MULTILINE))
    assert made == {case.code for case in CASES}


@pytest.mark.parametrize("make", [byte_level, spm])
def test_sound_vocabularies_have_no_findings(make: Any) -> None:
    assert opened(make()).check() == []


@pytest.mark.parametrize("name", BUILTIN)
def test_builtin_vocabularies_have_no_findings(name: str) -> None:
    assert Tokenizer.builtin(name).check() == []


KNOWN = {
    "baichuan": {"tokens-unreachable"},  # <SEP>, <CLS> and 348 others, normal tokens that no two tokens make
    "deepseek-llm": {"bytes-missing"},  # 13 bytes, of which UTF-8 has none
    "gemma-4": {"tokens-unreachable", "template-bos", "template-user-defined"},  # <unused0> and so on; <|tool_call>
    "mpt": {"bytes-missing"},
    "phi-3": {"template-bos"},
    "plamo2-small": {"control-in-text"},
    "rwkv-world": {"control-in-text"},
}


@pytest.mark.parametrize("path", shared_files("vocabs/*.gguf"))
def test_no_false_alarm_on_real_files(path: Path) -> None:
    findings = Tokenizer.from_gguf(path).check()
    assert {finding.code for finding in findings} == KNOWN.get(path.stem, set())
    loud = {(finding.code, finding.severity, finding.tokens) for finding in findings if finding.severity != "note"}
    told = {("template-user-defined", "warning", (48, 49, 51, 52, 100, 101))}
    assert loud == (told if path.stem == "gemma-4" else set())


@pytest.mark.parametrize("path", shared_files("vocabs/*.gguf"))
def test_no_false_alarm_of_templates(path: Path) -> None:
    """Templates of other models: what they write are no tokens here, or control tokens, or made by merges.

    One half of the templates for some vocabularies, the other half for the others.
    """
    templates = sorted(TEMPLATES.glob("*.jinja"))[len(path.stem) % 2 :: 2]
    texts = {template.stem: template.read_text(encoding="utf-8") for template in templates}
    overrides: dict[str, Any] = {f"tokenizer.chat_template.{name}": text for name, text in texts.items()}
    tokenizer = Tokenizer.from_gguf(path, overrides=overrides)
    errors = [finding for finding in tokenizer.check() if finding.severity == "error"]
    assert {finding.code for finding in errors} <= {"template-unsound", "template-unknown"}


@pytest.mark.parametrize("name", ["llama-bpe", "qwen2", "deepseek-llm"])
@pytest.mark.parametrize("pre", ["", "default", "gpt-2"])
def test_real_files_with_another_pre_tokenizer(shared: Path, name: str, pre: str) -> None:
    path, overrides = shared / f"vocabs/{name}.gguf", {PRE: pre}
    if pre == "gpt-2":
        tokenizer = Tokenizer.from_gguf(path, overrides=overrides)
        assert f'"{name}"' in found(tokenizer, "pre-differs").advice
        return
    with pytest.warns(TokenizerWarning, match=f'"{name}"') as caught:
        tokenizer = Tokenizer.from_gguf(path, overrides=overrides)
    code = "pre-default" if pre else "pre-missing"
    assert [warning.message.finding.code for warning in caught] == [code]  # type: ignore[union-attr]
    assert f'"{name}"' in found(tokenizer, code).advice


def test_well_known_vocabularies_name_pre_tokenizers() -> None:
    assert {origin.pre for origin in check.ORIGINS} <= _ggtok.pretokenizers().keys()


def test_warnings_when_a_file_is_opened(tmp_path: Path) -> None:
    path = tmp_path / "a.gguf"
    path.write_bytes(byte_level(pre="").gguf())
    with pytest.warns(TokenizerWarning, match=r"names no pre-tokenizer.*\[pre-missing\]$") as caught:
        tokenizer = Tokenizer.from_gguf(path)
    assert caught[0].filename == __file__
    assert isinstance(caught[0].message, UserWarning)
    assert isinstance(caught[0].message, TokenizerWarning)
    assert caught[0].message.finding == found(tokenizer, "pre-missing")
    assert caught[0].message.finding.key == PRE
    pickle.loads(pickle.dumps(tokenizer))  # without a warning


@pytest.mark.filterwarnings("error")
def test_only_errors_are_warned_of() -> None:
    """And overrides of another type, which the logger reports."""
    Tokenizer.from_gguf(byte_level(pre="default").gguf())
    overrides: dict[str, Any] = {"llama.nonesuch": 7, "tokenizer.chat_template": "x", "tokenizer.ggml.add_bos_token": 1}
    Tokenizer.from_gguf(byte_level().gguf(), overrides=overrides)


def test_a_check_of_a_hostile_vocabulary_ends() -> None:
    """Long tokens, which cost the square of their length to take apart, are not taken apart."""
    texts = [b"<unk>", b"<s>", b"</s>", *(b"a" * length for length in range(1, 1500))]
    vocab = Vocab("llama", texts, [2, 3, 3] + [NORMAL] * 1499, [0.0] * 3 + [-1.0] * 1499, unk=0, bos=1, eos=2)
    assert "tokens-unreachable" not in {finding.code for finding in opened(vocab).check()}


def test_findings_are_sorted_by_severity() -> None:
    tokenizer = opened(byte_level(pre="default", eos=5, merges=[b"h e"]), {"tokenizer.ggml.padding_token_id": 10**6})
    severities = [finding.severity for finding in tokenizer.check()]
    assert severities == sorted(severities, key=["error", "warning", "note"].index)
    assert len(set(severities)) > 1
    assert isinstance(ggtok.Tokenizer.builtin("bpe").check(), list)


def test_warnings_name_the_line_of_the_caller() -> None:
    tok = Tokenizer.builtin("bpe")
    name = Path(__file__).name
    calls = (
        lambda: tok.apply_chat_template([{"role": "user", "content": "a"}], add_generation_promt=True),
        lambda: tok.encode_chat([{"role": "user", "content": "a"}], add_generation_promt=True),
        lambda: tok.count_messages([{"role": "user", "content": "a"}], add_generation_promt=True),
        lambda: ggtok.train([__file__] * 300, kind="bpe", vocab_size=259),
        lambda: ggtok.evaluate({"bpe": tok}, {name: __file__}),
        lambda: Tokenizer.from_gguf(byte_level(pre="").gguf()),
    )
    for call in calls:
        with pytest.warns(TokenizerWarning) as caught:
            call()
        assert {warning.filename for warning in caught} == {__file__}
