"""`check`: every code on a file made to have it, silence on sound files, and what is told when a file is opened."""

from __future__ import annotations

import pickle
import re
import time
import warnings
from pathlib import Path
from typing import Any

import ggtok
import pytest
from conftest import shared_files
from ggtok import Finding, Tokenizer, TokenizerWarning, _check, _ggtok
from oracles import bpe, gguf_vocab
from oracles.gguf_vocab import TokenType, Vocab

PAGE = (Path(__file__).parents[1] / "docs/check.md").read_text(encoding="utf-8")
NORMAL, CONTROL = int(TokenType.NORMAL), int(TokenType.CONTROL)
BYTES = [bpe.byte_encode(bytes([byte])) for byte in range(256)]


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
    texts = [b"<unk>", b"<s>", b"</s>", *(b"<0x%02X>" % byte for byte in range(256)), b"a", b"b", b"ab"]
    types = [TokenType.UNKNOWN, CONTROL, CONTROL, *[TokenType.BYTE] * 256, *[NORMAL] * 3]
    vocab = Vocab("llama", texts, [int(kind) for kind in types], [0.0] * 259 + [-1.0, -2.0, -3.0], unk=0, bos=1, eos=2)
    for name, value in changes.items():
        setattr(vocab, name, value)
    return vocab


def opened(vocab: Vocab, metadata: dict[str, Any] | None = None, **overrides: Any) -> Tokenizer:
    """A tokenizer without its warnings; `None` removes a key."""
    changed = {key: value for key, value in (vocab.metadata() | (metadata or {})).items() if value is not None}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TokenizerWarning)
        given = {key.replace("__", "."): value for key, value in overrides.items()}
        return Tokenizer.from_gguf(gguf_vocab.write(changed), overrides=given)


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
CASES: list[tuple[str, str, str, Any]] = [
    ("pre-missing", "error", r'Llama 3: open it with overrides={"tokenizer.ggml.pre": "llama-bpe"}', lambda: opened(llama3())),
    ("pre-missing", "error", "converting the model again", lambda: opened(byte_level(pre=""))),
    ("pre-default", "error", '"llama-bpe"', lambda: opened(llama3(pre="default"))),
    ("pre-default", "warning", "if the model has another", lambda: opened(byte_level(pre="default"))),
    ("pre-differs", "warning", "gpt-2, which cuts texts otherwise than llama-bpe", lambda: opened(llama3(pre="gpt-2"))),
    ("added-missing", "error", "BOS is added", lambda: opened(Vocab("t5", [b"<pad>", b"</s>", b"<unk>", b"a"], [3, 3, 2, 1], eos=1, unk=2, add_bos=True))),
    ("added-missing", "error", "EOS is added", lambda: opened(Vocab("gpt2", [b"a", b"b"], [1, 1], pre="gpt-2", merges=[b"a b"], add_eos=True))),
    ("override-unknown", "error", "did you mean tokenizer.ggml.add_bos_token", lambda: opened(byte_level(), tokenizer__ggml__add_bos_tokne=True)),
    ("override-unknown", "note", "has no effect", lambda: opened(byte_level(), llama__nonesuch=7)),
    ("override-type", "error", "it is int, not bool", lambda: opened(byte_level(), tokenizer__ggml__add_bos_token=1)),
    ("override-array", "error", "the value is an array", lambda: opened(byte_level(), tokenizer__ggml__tokens="a")),
    ("end-missing", "warning", "no token ends generation", lambda: opened(Vocab("gpt2", [b"a", b"b"], [1, 1], pre="gpt-2", merges=[b"a b"]))),
    ("special-outside", "warning", "out of range", lambda: opened(byte_level(), {"tokenizer.ggml.padding_token_id": 10**6})),
    ("special-normal", "warning", "marked as normal", lambda: opened(byte_level(eos=5))),
    ("special-looking", "warning", "<\\|role\\|>", lambda: opened(byte_level(texts=[*BYTES, b"he", b"<|role|>", b"</s>"], merges=[b"h e"]))),
    ("bytes-missing", "error", "1 of the bytes of UTF-8", lambda: opened(byte_level(texts=[b"qq", *byte_level().texts[1:]]))),
    ("bytes-missing", "note", "1 bytes that UTF-8 never has", lambda: opened(byte_level(texts=[b"qq" if id == 255 else text for id, text in enumerate(byte_level().texts)]))),
    ("bytes-missing", "warning", "1 of the 256 bytes have no byte token", lambda: opened(spm(texts=[b"zz" if text == b"<0x41>" else text for text in spm().texts], types=[NORMAL if text == b"<0x41>" else kind for text, kind in zip(spm().texts, spm().types, strict=True)]))),
    ("tokens-unmade", "note", r"1 token \('hel'\)", lambda: opened(byte_level(merges=[b"h e", b"h el"][:1]))),
    ("merges-idle", "warning", r"1 merges \('x y'\)", lambda: opened(byte_level(merges=[b"h e", b"he l", b"x y"]))),
    ("scores-odd", "error", "no number or infinite", lambda: opened(spm(scores=[0.0] * 259 + [-1.0, float("nan"), -3.0]))),
    ("scores-missing", "error", "all scores are 0", lambda: opened(spm(scores=[0.0] * 262))),
    ("size-differs", "warning", "is 7 and there are 259 tokens", lambda: opened(byte_level(), {"general.architecture": "llama", "llama.vocab_size": 7})),
    ("template-bos", "note", "add_special=False", lambda: opened(spm(add_bos=True), {"tokenizer.chat_template": "{{ bos_token }}"})),
    ("template-bos", "note", "add_special=False", lambda: opened(spm(add_bos=True), {"tokenizer.chat_template": "<s>{{ x }}"})),
    ("template-tokens", "warning", r"<\|im_start\|>", lambda: opened(spm(), {"tokenizer.chat_template": "<|im_start|>"})),
    ("unknown-missing", "warning", "the id -1", lambda: opened(Vocab("bert", [b"[CLS]", b"[SEP]", b"a"], [3, 3, 1], bos=0, sep=1), {"tokenizer.ggml.unknown_token_id": 10**6})),
]  # fmt: skip


@pytest.mark.parametrize(("code", "severity", "message", "make"), CASES, ids=[f"{c[0]} {i}" for i, c in enumerate(CASES)])
def test_every_code(code: str, severity: str, message: str, make: Any) -> None:
    finding = found(make(), code)
    assert finding.severity == severity
    assert re.search(message.replace("{", r"\{"), f"{finding.message}; {finding.advice}")
    assert str(finding) == f"{severity}: {finding.message}; {finding.advice} [{code}]"


def test_the_page_lists_every_code() -> None:
    source = Path(_check.__file__).read_text(encoding="utf-8")
    made = set(re.findall(r'Finding\("([a-z-]+)"', source))
    assert made == set(re.findall(r"^\| `([a-z-]+)` \|", PAGE, re.MULTILINE))
    assert made == {case[0] for case in CASES}


@pytest.mark.parametrize("make", [byte_level, spm])
def test_sound_vocabularies_have_no_findings(make: Any) -> None:
    assert opened(make()).check() == []


@pytest.mark.parametrize("name", ["bpe", "spm", "unigram", "wordpiece"])
def test_builtin_vocabularies_have_no_findings(name: str) -> None:
    assert Tokenizer.builtin(name).check() == []


KNOWN = {
    "baichuan": {"tokens-unmade"},  # <SEP>, <CLS> and 348 others, normal tokens that no two tokens make
    "deepseek-llm": {"bytes-missing"},  # 13 bytes, of which UTF-8 has none
    "gemma-4": {"tokens-unmade", "template-bos"},  # <unused0> and so on
    "mpt": {"bytes-missing"},
    "phi-3": {"template-bos"},
}


@pytest.mark.parametrize("path", shared_files("vocabs/*.gguf"))
def test_no_false_alarm_on_real_files(path: Path) -> None:
    findings = Tokenizer.from_gguf(path).check()
    assert {finding.code for finding in findings} == KNOWN.get(path.stem, set())
    assert {finding.severity for finding in findings} <= {"note"}


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
    assert {origin.pre for origin in _check.ORIGINS} <= _ggtok.pretokenizers().keys()


def test_warnings_when_a_file_is_opened(tmp_path: Path) -> None:
    path = tmp_path / "a.gguf"
    path.write_bytes(byte_level(pre="").gguf())
    with pytest.warns(TokenizerWarning, match=r"names no pre-tokenizer.*\[pre-missing\]$") as caught:
        tokenizer = Tokenizer.from_gguf(path)
    assert caught[0].filename == __file__
    assert isinstance(caught[0].message, UserWarning)
    assert caught[0].message.finding == found(tokenizer, "pre-missing")  # type: ignore[union-attr]
    assert caught[0].message.finding.key == PRE  # type: ignore[union-attr]
    pickle.loads(pickle.dumps(tokenizer))  # without a warning


@pytest.mark.filterwarnings("error")
def test_what_is_no_error_is_not_warned_of() -> None:
    """And overrides of another type, which the logger tells."""
    Tokenizer.from_gguf(byte_level(pre="default").gguf())
    overrides = {"llama.nonesuch": 7, "tokenizer.chat_template": "x", "tokenizer.ggml.add_bos_token": 1}
    Tokenizer.from_gguf(byte_level().gguf(), overrides=overrides)


def test_a_check_of_a_hostile_vocabulary_ends() -> None:
    """Long tokens, which cost the square of their length to take apart, are not taken apart."""
    texts = [b"<unk>", b"<s>", b"</s>", *(b"a" * length for length in range(1, 1500))]
    vocab = Vocab("llama", texts, [2, 3, 3] + [NORMAL] * 1499, [0.0] * 3 + [-1.0] * 1499, unk=0, bos=1, eos=2)
    start = time.perf_counter()
    assert "tokens-unmade" not in {finding.code for finding in opened(vocab).check()}
    assert time.perf_counter() - start < 5


def test_findings_are_sorted_by_severity() -> None:
    tokenizer = opened(byte_level(pre="default", eos=5, merges=[b"h e"]), {"tokenizer.ggml.padding_token_id": 10**6})
    severities = [finding.severity for finding in tokenizer.check()]
    assert severities == sorted(severities, key=["error", "warning", "note"].index)
    assert len(set(severities)) > 1
    assert isinstance(ggtok.Tokenizer.builtin("bpe").check(), list)
