"""A `tokenizer.json` that is read without a warning gives the ids of huggingface/tokenizers, whatever is in it."""

from __future__ import annotations

import base64
import io
import json
import warnings
from pathlib import Path
from typing import Any

import pytest
import tokenizers  # type: ignore[import-untyped,unused-ignore]
from ggtok import ConversionError, Tokenizer, _ggtok
from ggtok.lab.verify.child import Child
from ggtok.lab.verify.library import find_library
from ggtok.lab.verify.verify import REFERENCE
from hypothesis import given
from hypothesis import strategies as st
from oracles.gguf_vocab import Vocab
from oracles.spelling import BYTE_TOKENS
from test_convert import documents
from test_convert_json import fallback_json, small_json


def imported_silently(content: Any, pre: str | None = None) -> tuple[Tokenizer, bool]:
    """What is made of a file, and whether no warning says that ids differ."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        tokenizer = Tokenizer.from_tokenizers_json(json.dumps(content).encode(), pre=pre)
    return tokenizer, not any("conversion-differs" in str(each.message) for each in caught)


def assert_same_ids(content: Any, tokenizer: Tokenizer, texts: list[str]) -> None:
    other = tokenizers.Tokenizer.from_str(json.dumps(content))
    for text in texts:
        assert tokenizer.encode(text, add_special=False) == other.encode(text, add_special_tokens=False).ids, text


def component(kind: str, **settings: Any) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({"type": st.just(kind)} | settings)


def sequence(name: str, steps: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(steps, max_size=3).map(lambda steps: {"type": "Sequence", name: steps} if steps else None)


CHARSMAP = base64.b64encode(_ggtok.compile_charsmap(tsv="A\t20\nA0\t20\n9\t20\n")).decode()
STRIP = component("Strip", strip_left=st.booleans(), strip_right=st.booleans())
MERGE = component("Replace", pattern=st.just({"Regex": " {2,}"}), content=st.sampled_from([" ", "\u2581", "b"]))
SCHEMES = st.sampled_from(["always", "first", "never"])
META = component("Metaspace", replacement=st.just("\u2581"), prepend_scheme=SCHEMES, split=st.booleans())
SPLITS = component("WhitespaceSplit")
BERT = component(
    "BertNormalizer",
    clean_text=st.booleans(),
    handle_chinese_chars=st.booleans(),
    strip_accents=st.sampled_from([None, True, False]),
    lowercase=st.booleans(),
)


@given(
    sequence("normalizers", component("Precompiled", precompiled_charsmap=st.just(CHARSMAP)) | STRIP | MERGE),
    sequence("pretokenizers", META | SPLITS)
    | st.tuples(SPLITS, META).map(lambda steps: {"type": "Sequence", "pretokenizers": steps}),
    st.sets(st.sampled_from(["\u2581\u2581", "a\u2581b", "\n", "\u00e9"])),
    st.lists(st.text("ab \n\t\u00e9\u00a0.", max_size=8), min_size=20, max_size=20),
)
def test_a_unigram_without_a_warning_keeps_its_ids(
    normalizer: Any, splits: Any, more: set[str], texts: list[str]
) -> None:
    vocab = [
        [text, -3.1 - at * 0.7] for at, text in enumerate(["<unk>", "\u2581", "a", "b", "ab", "\u2581a", *sorted(more)])
    ]
    content: dict[str, Any] = {
        "model": {"type": "Unigram", "unk_id": 0, "vocab": vocab},
        "normalizer": normalizer,
        "pre_tokenizer": splits,
    }
    content |= {"version": "1.0", "truncation": None, "padding": None, "added_tokens": []}
    content |= {"post_processor": None, "decoder": None}
    tokenizer, is_silent = imported_silently(content)
    if is_silent:
        assert_same_ids(content, tokenizer, [*texts, " a", "a ", "a  b", "\na", "a\u00a0b"])


@given(
    BERT | sequence("normalizers", BERT | component("NFD") | component("Lowercase") | component("StripAccents")),
    component("BertPreTokenizer") | component("Whitespace") | SPLITS | st.none(),
    st.sampled_from([100, 3]),
    st.lists(st.text("abAB \n\u00e9.'\u4e2d\0\u200b", max_size=8), min_size=20, max_size=20),
)
def test_a_wordpiece_without_a_warning_keeps_its_ids(
    normalizer: Any, splits: Any, longest: int, texts: list[str]
) -> None:
    model: dict[str, Any] = {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##"}
    words = ["[UNK]", "a", "b", "A", "ab", "##a", "##b", "\u00e9", "e", "##e", "\u4e2d", "##\u4e2d", ".", "'"]
    model |= {"max_input_chars_per_word": longest, "vocab": {text: id for id, text in enumerate(words)}}
    content: dict[str, Any] = {"model": model, "normalizer": normalizer, "pre_tokenizer": splits, "added_tokens": []}
    content |= {"version": "1.0", "truncation": None, "padding": None, "post_processor": None, "decoder": None}
    tokenizer, is_silent = imported_silently(content)
    if is_silent:
        assert_same_ids(content, tokenizer, [*texts, "a\u4e2db", "aaaa", "A.", "a\0b"])


@pytest.mark.parametrize("pre", ["gpt-2", "qwen2", "llama-bpe", "bloom", "starcoder", "viking", "minerva-7b", "falcon"])
@pytest.mark.parametrize("lacks", ["", "w"])
def test_a_bpe_without_a_warning_keeps_its_ids(pre: str, lacks: str) -> None:
    """Its tokens go over the places where patterns differ, and these are not in the texts that are always compared."""
    merges = ["t h", "th e", "\u0120 \u0120", "\u010a \u0120", "2 2", "3 3", "33 3", "' s", "a ,"]
    alphabet = sorted({*tokenizers.pre_tokenizers.ByteLevel.alphabet()} - {lacks})
    vocab = {text: id for id, text in enumerate([*alphabet, *(rule.replace(" ", "") for rule in merges)])}
    content: dict[str, Any] = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": None,
    }
    content |= {
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
        "post_processor": None,
    }
    content |= {"decoder": None, "model": {"type": "BPE", "vocab": vocab, "merges": merges}}
    tokenizer, is_silent = imported_silently(content, pre)
    assert is_silent == (pre == "gpt-2" and not lacks)
    if is_silent:
        assert_same_ids(content, tokenizer, ["the 22 333", "a  b", "\n a's", "3333 , a,", *documents()])


def test_llama_cpp_opens_what_was_a_tokenizer_json(tmp_path: Path) -> None:
    pytest.importorskip("xllamacpp", reason="llama.cpp itself comes in the wheel xllamacpp")
    whitespace = json.loads(fallback_json([], byte_fallback=False)) | {"pre_tokenizer": {"type": "Whitespace"}}
    files = [*map(small_json, ("wordpiece", "unigram")), fallback_json([]).decode(), json.dumps(whitespace)]
    llama_cpp = Child(REFERENCE, (find_library().path,), timeout=60)
    try:
        for at, (file, model) in enumerate(zip(files, ("bert", "t5", "llama", "whitespace"), strict=True)):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tokenizer = Tokenizer.from_tokenizers_json(file.encode())
            tokenizer.to_gguf(tmp_path / f"{at}.gguf")
            assert tokenizer.vocab.model == model
            assert llama_cpp.ask([("open", str(tmp_path / f"{at}.gguf"), {})]) == [("ok", len(tokenizer.vocab))]
    finally:
        llama_cpp.close()


def test_merged_characters_must_be_tokens() -> None:
    """Ranks know only pairs of tokens; SPM starts with characters, whatever they are."""
    texts = [b"<unk>", *BYTE_TOKENS, b"a", b"ab"]
    vocab = Vocab("llama", texts, [2, *[6] * 256, 1, 1], [float(-id) for id in range(len(texts))], unk=0)
    tokenizer = Tokenizer.from_gguf(vocab.gguf())
    assert tokenizer.encode("ab", add_special=False)[-1] == len(texts) - 1
    with pytest.raises(ConversionError, match="cannot make 'ab' of 'b', which is not a token"):
        tokenizer.to_tokenizers_json(io.BytesIO())


def test_an_unknown_token_may_be_a_word() -> None:
    texts = [b"[CLS]", b"[SEP]", "\u2581unk".encode(), "\u2581a".encode()]
    tokenizer = Tokenizer.from_gguf(Vocab("bert", texts, [3, 3, 1, 1], unk=2, bos=0, sep=1).gguf())
    file = io.BytesIO()
    tokenizer.to_tokenizers_json(file)
    other = tokenizers.Tokenizer.from_str(file.getvalue().decode())
    assert other.encode("a x", add_special_tokens=False).ids == tokenizer.encode("a x", add_special=False) == [3, 2]
