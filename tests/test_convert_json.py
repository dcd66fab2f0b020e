"""`tokenizer.json` and folders for transformers: what tokenizers trains and writes gives the same ids here."""

from __future__ import annotations

import contextlib
import io
import json
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import gguf
import pytest
import tokenizers  # type: ignore[import-untyped,unused-ignore]
from conftest import BUILTIN, VOCABULARIES
from ggtok import ConversionError, GgtokError, TokenAttribute, Tokenizer, TokenizerWarning, UnsupportedError, _ggtok
from ggtok.lab.convert import architectures, special_tokens
from ggtok.lab.convert.library import GPT2, Library
from ggtok.lab.convert.pre_by_digest import digest, table
from ggtok.lab.convert.probes import TEXTS
from ggtok.lab.convert.vocabulary import BYTE_TOKENS
from ggtok.tokenizer.keys import FLAGS, SPECIAL
from hypothesis import given
from hypothesis import strategies as st
from test_convert import byte_level, documents, opened, repository, same, without_ties, written

pytestmark = pytest.mark.filterwarnings("ignore::ggtok.TokenizerWarning")


def trained_json(kind: str) -> Any:
    """A tokenizer that huggingface/tokenizers trains on this project's pages."""
    models: Any = tokenizers.models
    trainers: Any = tokenizers.trainers
    pre: Any = tokenizers.pre_tokenizers
    if kind == "bpe":
        tokenizer = tokenizers.Tokenizer(models.BPE())
        (pattern,) = _ggtok.families()["qwen2"]["patterns"]
        split = pre.Split(tokenizers.Regex(pattern), "isolated")
        tokenizer.pre_tokenizer = pre.Sequence([split, pre.ByteLevel(add_prefix_space=False, use_regex=False)])
        special = ["<|endoftext|>", "<|im_end|>"]
        trainer = trainers.BpeTrainer(
            vocab_size=700, special_tokens=special, initial_alphabet=pre.ByteLevel.alphabet(), show_progress=False
        )
    elif kind == "wordpiece":
        tokenizer = tokenizers.Tokenizer(models.WordPiece(unk_token="[UNK]"))
        tokenizer.normalizer = tokenizers.normalizers.BertNormalizer(lowercase=True)
        tokenizer.pre_tokenizer = pre.BertPreTokenizer()
        special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
        trainer = trainers.WordPieceTrainer(vocab_size=700, special_tokens=special, show_progress=False)
    else:
        tokenizer = tokenizers.Tokenizer(models.Unigram())
        tokenizer.normalizer = tokenizers.normalizers.Replace(tokenizers.Regex(" {2,}"), " ")
        tokenizer.pre_tokenizer = pre.Metaspace()
        special = ["<pad>", "</s>", "<unk>"]
        trainer = trainers.UnigramTrainer(
            vocab_size=700, special_tokens=special, unk_token="<unk>", show_progress=False
        )
    tokenizer.train_from_iterator(repository(), trainer)
    templates = {"wordpiece": ("[CLS] $A [SEP]", ["[CLS]", "[SEP]"]), "unigram": ("$A </s>", ["</s>"])}
    if kind in templates:
        single, used = templates[kind]
        tokens = [(text, tokenizer.token_to_id(text)) for text in used]
        tokenizer.post_processor = tokenizers.processors.TemplateProcessing(single=single, special_tokens=tokens)
    return tokenizer


@pytest.mark.parametrize("kind", ["bpe", "wordpiece", "unigram"])
def test_from_tokenizers_json(kind: str) -> None:
    other = trained_json(kind)
    data = other.to_str().encode()
    pre = "qwen2" if kind == "bpe" else None
    tokenizer = Tokenizer.from_tokenizers_json(data, pre=pre, vocab_size=720)
    assert tokenizer.vocab[719].text == "[PAD719]"
    texts = [text for text in documents() if text.strip()]
    if kind == "wordpiece":
        texts = [text for text in texts if "\u2581" not in text and all(len(word) < 100 for word in text.split())]
    if kind == "unigram":
        # llama.cpp takes a piece such as <|im_end|> for a control token, wherever it comes from.
        texts = [" ".join(text.split()) for text in texts if "<|" not in text]
        texts = without_ties(tokenizer, lambda text: other.encode(text).ids, texts, parse_special=True)
    same(lambda text: other.encode(text).ids, lambda text: tokenizer.encode(text, parse_special=True), texts)


def test_pre_by_digest_of_the_real_vocabularies() -> None:
    """What the converter would write for them: the table has two names where two models have the same tokens.

    In `test_round_trip.py` their `tokenizer.json` is read.
    """
    names = {"gpt-2": "gpt-2", "llama-bpe": "llama-bpe", "qwen2": "qwen2", "deepseek-llm": "deepseek-llm"}
    text, known = table()
    for name, pre in (names | {"mpt": "olmo"}).items():
        assert known[digest(opened(name).encode(text))] == pre


def test_an_unknown_digest_names_the_nearest() -> None:
    data = written(Tokenizer.builtin("bpe").to_tokenizers_json)
    with pytest.raises(ConversionError, match=r"give its name as pre, for example .*qwen2"):
        Tokenizer.from_tokenizers_json(data)
    with pytest.raises(UnsupportedError, match="'nonesuch'"):
        Tokenizer.from_tokenizers_json(data, pre="nonesuch")


def test_special_tokens_of_the_configuration(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    Tokenizer.builtin("bpe").to_tokenizers_json(path)
    config: dict[str, Any] = {"bos_token": {"content": "<|endoftext|>"}, "eos_token": "<|im_end|>", "pad_token": None}
    config |= {"add_bos_token": True, "chat_template": [{"name": "default", "template": "a"}, {"name": "b"}]}
    for source in (config, json.dumps(config).encode()):
        vocab = Tokenizer.from_tokenizers_json(path, config=source, pre="qwen2").vocab
        assert (vocab.bos_id, vocab.eos_id, vocab.add_bos, vocab.pad_id) == (12991, 12993, True, None)
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config), "utf-8")
    tokenizer = Tokenizer.from_tokenizers_json(path, pre="qwen2")
    assert (tokenizer.vocab.eos_id, tokenizer.metadata["tokenizer.chat_template"]) == (12993, "a")


def with_pattern(data: bytes, regex: str, **normalizer: Any) -> bytes:
    """A file with another pattern, or another normalizer."""
    content = json.loads(data)
    bytes_only = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    split = {"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated", "invert": False}
    content["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [split, bytes_only]}
    content["normalizer"] = normalizer or None
    return json.dumps(content).encode()


QWEN2 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
"""As Qwen's own files write it, which is not as llama.cpp does."""
LLAMA3 = QWEN2.replace(r"|\p{N}|", r"|\p{N}{1,3}|")


@cache
def gpt2_with_the_pattern_of_llama() -> bytes:
    return written(opened("gpt-2", "llama-bpe").to_tokenizers_json)


def test_pre_is_that_of_the_files_own_pattern() -> None:
    """With the tokens of Qwen 2 and the pattern of GPT-2, the converter finds no name, or another."""
    data = written(opened("qwen2").to_tokenizers_json)
    assert Tokenizer.from_tokenizers_json(with_pattern(data, QWEN2)).vocab.pre == "qwen2"
    other = with_pattern(data, GPT2)
    ids = tokenizers.Tokenizer.from_str(other.decode()).encode(table()[0]).ids
    with pytest.raises(ConversionError, match=f"does not know this pre-tokenizer .*{digest(ids)}.* example gpt-2"):
        Tokenizer.from_tokenizers_json(other)


@pytest.mark.parametrize(
    ("regex", "normalizer", "example"),
    [
        (LLAMA3, {}, None),
        (GPT2, {}, "'1234567"),
        (QWEN2, {}, "'1234567"),
        (LLAMA3.replace(r"\p{L}+|", r"\p{Lu}?\p{Ll}+|"), {}, '"we'),
        (LLAMA3, {"type": "NFC"}, "'e\u0301"),
        (r"\p{Han}+|" + LLAMA3, {}, "a text that needs the class"),
        (LLAMA3, {"type": "Nmt"}, "a text that needs the normalizer 'Nmt'"),
    ],
)
def test_other_patterns_and_normalizers_are_said(
    regex: str, normalizer: dict[str, Any], example: str | None, recwarn: pytest.WarningsRecorder
) -> None:
    warnings.simplefilter("always")
    data = with_pattern(gpt2_with_the_pattern_of_llama(), regex, **normalizer)
    Tokenizer.from_tokenizers_json(data, pre="llama-bpe")
    messages = [str(each.message) for each in recwarn]
    assert len(messages) == (example is not None)
    assert all(str(example) in message for message in messages), messages


def test_the_library_is_huggingfaces() -> None:
    """For every family of patterns, and for models with byte fallback, on the texts that tell patterns apart."""
    path, files = VOCABULARIES / "bpe.gguf", [written(Tokenizer.builtin("spm").to_tokenizers_json)]
    names = {json.dumps(row): name for name, row in _ggtok.pretokenizers().items()}  # some differ in nothing else
    for row, name in ((json.loads(row), name) for row, name in names.items()):
        if row["family"] not in ("kimi-k2", "afmoe", "tiny-aya") and _ggtok.families()[row["family"]]["byte_encode"]:
            files.append(written(Tokenizer.from_gguf(path, overrides={"tokenizer.ggml.pre": name}).to_tokenizers_json))
    splits: list[dict[str, Any]] = [
        {"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious", "invert": False},
        {"type": "Split", "pattern": {"Regex": r"\p{^L}\P{L}+|\w+\d"}, "behavior": "Removed", "invert": True},
        {"type": "Punctuation", "behavior": "Isolated"},
        {"type": "Digits", "individual_digits": False},
        {"type": "Whitespace"},
        {"type": "WhitespaceSplit"},
    ]
    for split in splits:
        content = json.loads(files[1])
        content["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [split, {**BYTE_LEVEL, "use_regex": True}]}
        files.append(json.dumps(content).encode())
    assert len(files) > 60
    for file in dict.fromkeys(files):
        content = json.loads(file)
        vocab, merges = content["model"]["vocab"], [tuple(rule) for rule in content["model"]["merges"]]
        library = Library(content, vocab, merges, {token["content"]: token["id"] for token in content["added_tokens"]})
        theirs = tokenizers.Tokenizer.from_str(file.decode())
        for text in (table()[0], *TEXTS, "What<|im_end|> <0x41>\ud55c"):
            assert library.ids(text) == theirs.encode(text, add_special_tokens=False).ids, content["pre_tokenizer"]


SPLIT = {"type": "Split", "behavior": "Isolated", "invert": False}
BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("normalizer", [{"type": "Replace", "pattern": {"String": "a"}, "content": "aa"}] * 30),
        ("normalizer", [{"type": "Prepend", "prepend": "a" * 100_000}]),
        ("normalizer", [{"type": "Prepend", "prepend": "\ud800"}]),
        ("normalizer", [{"type": "NFC"}] * 100_000),
        ("pre_tokenizer", [BYTE_LEVEL] * 30),
        (
            "pre_tokenizer",
            [{**SPLIT, "pattern": {"Regex": r"(?=(\S|\S?)+\x{1})b"}}, BYTE_LEVEL],
        ),
        ("pre_tokenizer", [{**SPLIT, "pattern": {"Regex": "(" * 5000}}, BYTE_LEVEL]),
        (
            "pre_tokenizer",
            [{**SPLIT, "pattern": {"Regex": "(a{999}){999}"}}, BYTE_LEVEL],
        ),
    ],
)
def test_hostile_components_are_given_up(key: str, value: list[Any]) -> None:
    content = json.loads(small_json("bpe"))
    inner = {"normalizer": "normalizers", "pre_tokenizer": "pretokenizers"}[key]
    content[key] = {"type": "Sequence", inner: value}
    with pytest.raises(ConversionError, match="does not know this pre-tokenizer"):
        Tokenizer.from_tokenizers_json(json.dumps(content).encode())


# Architectures

VISIBLE = ["<|channel>", "<channel|>", "<|tool_call>", "<tool_call|>", "<|tool_response>", "<tool_response|>", '<|"|>']


def fallback_json(extra: list[str], **settings: Any) -> bytes:
    """A BPE with byte fallback, whose merges are not in the order of its tokens."""
    special = ["<unk>", "<s>", "</s>", *extra]
    texts = [*special, *BYTE_TOKENS, *"\u2581abc", "ab", "bc", "abc"]
    steps = [{"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}]
    added = [{"id": id, "content": text, "special": True} for id, text in enumerate(special)]
    model = {"type": "BPE", "byte_fallback": True, "fuse_unk": True, "unk_token": "<unk>"}
    model |= {"vocab": {text: id for id, text in enumerate(texts)}, "merges": ["b c", "a b", "a bc"]}
    return json.dumps({"model": model | settings, "added_tokens": added, "normalizer": steps[0]}).encode()


@pytest.mark.parametrize("how", ["config.json", "text_config", "argument", "tokens"])
def test_gemma_4_keeps_its_merges(how: str, tmp_path: Path) -> None:
    name = "Gemma4ForConditionalGeneration"
    path = tmp_path / "tokenizer.json"
    path.write_bytes(fallback_json(VISIBLE if how == "tokens" else VISIBLE[:2]))
    named = {"architectures": [name]}
    configs: dict[str, Any] = {"config.json": named, "text_config": {"text_config": named}}
    if how in configs:
        (tmp_path / "config.json").write_text(json.dumps(configs[how] | {"vocab_size": 9999}))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tokenizer = Tokenizer.from_tokenizers_json(path, architecture=name if how == "argument" else None)
    vocab = tokenizer.vocab
    assert (vocab.model, vocab.add_bos, vocab.settings["add_space_prefix"]) == ("gemma4", True, False)
    assert [vocab[id].text for id in tokenizer.encode("abc cab\n", add_special=False)] == [
        *("abc", "\u2581", "c", "ab", "<0x0A>")
    ]
    attributes = {text: vocab[vocab.id(text) or 0].attributes for text in ("<s>", "<|channel>", "<0x00>", "ab")}
    assert list(attributes.values()) == [
        *(TokenAttribute.CONTROL, TokenAttribute.USER_DEFINED, TokenAttribute.BYTE, TokenAttribute.NORMAL)
    ]


@pytest.mark.parametrize(
    ("architecture", "model"),
    [(None, "llama"), ("LlamaForCausalLM", "llama"), ("JambaForCausalLM", "llama"), ("XverseForCausalLM", "llama")],
)
def test_byte_fallback_of_other_architectures(architecture: str | None, model: str) -> None:
    with pytest.warns(TokenizerWarning, match="one score"):
        vocab = Tokenizer.from_tokenizers_json(fallback_json([]), architecture=architecture).vocab
    assert vocab.model == model
    assert vocab.settings["add_space_prefix"] == (architecture != "JambaForCausalLM")


def test_byte_fallback_with_a_pre_tokenizer() -> None:
    """The converter gives it a name if it knows the digest, as of DFM-Mimir, and nothing if it does not."""
    with pytest.raises(ConversionError, match="does not know this pre-tokenizer"):
        Tokenizer.from_tokenizers_json(fallback_json([]), architecture="Gemma3ForCausalLM")
    tokenizer = Tokenizer.from_tokenizers_json(fallback_json([]), pre="gemma4")
    assert (tokenizer.vocab.model, tokenizer.vocab.pre) == ("gpt2", "gemma4")
    assert tokenizer.encode("abc", add_special=False) == [tokenizer.vocab.id("abc")]


def test_llama_takes_named_tokens_for_special_ones() -> None:
    """As transformers does: `special` in tokenizer.json says something else."""
    config = {"eos_token": "</s>", "boi_token": {"content": "<|channel>"}, "additional_special_tokens": ["<x>"]}
    data = fallback_json([*VISIBLE[:2], "<x>"])
    vocab = Tokenizer.from_tokenizers_json(data, config=config, architecture="LlamaForCausalLM").vocab
    control = {token.text for token in vocab if TokenAttribute.CONTROL in token.attributes}
    assert control == {"</s>", "<|channel>", "<x>"}
    assert (vocab.eos_id, vocab.bos_id) == (2, 1)


@pytest.mark.parametrize(
    ("architecture", "config", "model_config", "expected"),
    [
        ("Glm4MoeForCausalLM", {}, {}, {"bos": "[gMASK]", "eot": "<|user|>", "unk": "<|endoftext|>"}),
        ("Glm4MoeForCausalLM", {"unk_token": "<x>"}, {}, {"bos": "[gMASK]", "unk": "<x>"}),
        ("Qwen3ASRForConditionalGeneration", {"eos_token": "<x>"}, {}, {"bos": "<|im_end|>", "eos": "<|im_end|>"}),
        (
            "Qwen3ForCausalLM",
            {"eos_token": "<x>"},
            {"eos_token_id": 0, "bos_token_id": 250},
            {"eos": "<x>", "bos": 250},
        ),
        ("Qwen3ForCausalLM", {}, {"text_config": {"pad_token_id": 258, "eos_token_id": [1, 2]}}, {"pad": 258}),
        ("GPTRefactForCausalLM", {}, {}, {"fim_pre": 1, "fim_suf": 3, "fim_mid": 2}),
        ("LLaDAModelLM", {"add_bos_token": False}, {}, {"add_bos": True}),
        ("ModernBertModel", {"add_bos_token": False}, {}, {"add_bos": False, "add_eos": True, "add_sep": True}),
        ("LlamaForCausalLM", {}, {"vocab_size": 49152}, {"add_bos": False}),
    ],
)
def test_special_tokens_of_architectures(
    architecture: str, config: dict[str, Any], model_config: dict[str, Any], expected: dict[str, Any], tmp_path: Path
) -> None:
    tokenizer = byte_level(["ab"], ["a b"])
    texts = ["<|endoftext|>", "<|im_end|>", "<|user|>", "[gMASK]", "<|observation|>", "<x>"]
    path = tmp_path / "tokenizer.json"
    tokenizer.to_gguf(io.BytesIO(), add_control_tokens=texts, special={"bos": None}).to_tokenizers_json(path)
    (tmp_path / "config.json").write_text(json.dumps({"architectures": [architecture]} | model_config))
    config = {"model_max_length": 9} | config
    vocab = Tokenizer.from_tokenizers_json(path, config=config, pre="qwen2").vocab
    size = model_config.get("vocab_size", 257 + len(texts))
    assert len(vocab) == size
    for name, value in expected.items():
        found = getattr(vocab, name if name.startswith("add_") else f"{name}_id")
        assert found == (vocab.id(value) if isinstance(value, str) else value), name


def test_sizes_of_architectures() -> None:
    assert architectures.of({"vocab_size": 100}, "MambaForCausalLM").vocab_size == 104
    assert architectures.of({"vocab_size": 100, "pad_vocab_size_multiple": 16}, "MambaForCausalLM").vocab_size == 112
    assert architectures.of({"vocab_size": 100, "pad_vocab_size_multiple": 16}, "LlamaForCausalLM").vocab_size == 100
    assert architectures.of({"vocab_size": "100", "architectures": [["x"], {}]}, None).vocab_size is None


# What SpecialVocab of llama.cpp's gguf-py finds, at the commit of architectures.json


@pytest.mark.parametrize(
    ("single", "pair", "config", "ids", "expected"),
    [
        ("<s> A", "<s> A B", {"bos": "<s>"}, {}, {"bos": 0, "add_bos": True}),
        ("<s> A", "<s> A B", {"bos": "</s>", "cls": "<x>"}, {}, {"bos": 1, "cls": 2, "add_bos": False}),
        ("<s> A", "<s> A B", {"bos": "</s>"}, {}, {"bos": 1, "cls": 0, "add_bos": True}),
        ("<s> A", "<s> A B", {"pad": "<x>"}, {}, {"bos": 0, "cls": 0, "pad": 2, "add_bos": True}),
        ("A </s>", "A </s> B </s>", {"eos": "</s>"}, {}, {"eos": 1, "add_eos": True, "add_sep": False}),
        ("A </s>", "A B </s>", {"eos": "<x>"}, {}, {"eos": 1, "eot": 2, "add_eos": True}),
        ("A", "A </s> B", {"sep": "</s>"}, {}, {"eos": 1, "sep": 1, "add_sep": True}),
        (
            "<s> A </s>",
            "<s> A </s> </s> B </s>",
            {"bos": "<s>", "eos": "</s>"},
            {},
            {"bos": 0, "eos": 1, "sep": 1, "add_bos": True, "add_eos": True, "add_sep": True},
        ),
        ("A", "A B", {"bos": "<s>", "eot": "<x>"}, {"bos": 2, "eos": 1, "eot": 2}, {"bos": 0, "eos": 1}),
    ],
)
def test_special_tokens_are_those_of_the_converter(
    single: str, pair: str, config: dict[str, str], ids: dict[str, int], expected: dict[str, Any]
) -> None:
    def items(texts: str) -> list[Any]:
        return [
            {"Sequence": {"id": text}} if text in "AB" else {"SpecialToken": {"id": text}} for text in texts.split()
        ]

    file = {"post_processor": {"type": "TemplateProcessing", "single": items(single), "pair": items(pair)}}
    named = {f"{name}_token": text for name, text in config.items()}
    meant = architectures.of({f"{name}_token_id": id for name, id in ids.items()}, None)
    found = special_tokens.entries(file, named, {"<s>": 0, "</s>": 1, "<x>": 2}, meant, 3)
    keys = SPECIAL | FLAGS | {"cls": "cls_token_id"}
    assert found == {f"tokenizer.ggml.{keys[name]}": value for name, value in expected.items()}


def test_special_tokens_of_roberta() -> None:
    file = {"post_processor": {"type": "RobertaProcessing", "cls": ["<s>", 0], "sep": ["</s>", 1]}}
    for config, expected in (({"bos_token": "<s>"}, (0, 1)), ({"cls_token": "<x>", "sep_token": "<x>"}, (2, 2))):
        found = special_tokens.entries(file, config, {"<s>": 0, "</s>": 1, "<x>": 2}, architectures.of({}, None), 3)
        assert (found["tokenizer.ggml.cls_token_id"], found["tokenizer.ggml.seperator_token_id"]) == expected


# Chat templates


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"jinja": "J"}, {"": "J"}),
        ({"jinja": "J", "json": "S"}, {"": "J"}),
        ({"json": "S"}, {"": "S"}),
        ({"jinja": "J", "config": "C", "json": "S"}, {"": "C"}),
        ({"jinja": "J", "additional": "A"}, {"": "J", "tool_use": "A"}),
        ({"json": "S", "additional": "A"}, {"": "S"}),
        ({"jinja": "J", "additional": "A", "config": "C"}, {"": "C"}),
        ({"config": [{"name": "default", "template": "D"}, {"name": "a-b", "template": "N"}]}, {"": "D", "a_b": "N"}),
        ({"config": [{"name": "rag", "template": "N"}]}, {"rag": "N"}),
        ({"jinja": "J", "config": "C", "architecture": "MiniMaxText01ForCausalLM"}, {"": "J"}),
        ({"jinja": "J", "json": "S", "no config": ""}, {}),
    ],
)
def test_which_chat_template_wins(files: dict[str, Any], expected: dict[str, str], tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    Tokenizer.builtin("bpe").to_tokenizers_json(path)
    if "no config" not in files:
        config = {"model_max_length": 9} | ({"chat_template": files["config"]} if "config" in files else {})
        (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    if "jinja" in files:
        (tmp_path / "chat_template.jinja").write_text(files["jinja"])
    if "json" in files:
        (tmp_path / "chat_template.json").write_text(json.dumps({"chat_template": files["json"]}))
    if "additional" in files:
        (tmp_path / "additional_chat_templates").mkdir()
        (tmp_path / "additional_chat_templates" / "tool-use.jinja").write_text(files["additional"])
    tokenizer = Tokenizer.from_tokenizers_json(path, pre="qwen2", architecture=files.get("architecture"))
    key = "tokenizer.chat_template"
    found = {name.removeprefix(key)[1:]: text for name, text in tokenizer.metadata.items() if name.startswith(key)}
    assert found == expected
    if "architecture" not in files:
        theirs: Any = gguf.SpecialVocab(tmp_path).chat_template
        if isinstance(theirs, list):
            names = {"".join(c if c.isalnum() else "_" for c in each["name"]): each["template"] for each in theirs}
            theirs = {name if name != "default" else "": text for name, text in names.items()}
        assert found == ({"": theirs} if isinstance(theirs, str) else theirs or {})


@pytest.mark.parametrize(
    ("kind", "change", "lost"),
    [
        ("unigram", {"normalizer": {"type": "Lowercase"}}, "Lowercase, that a text with a space first gets no other"),
        ("unigram", {"model": {"byte_fallback": True}}, "byte_fallback, that a space at the end stays"),
        ("wordpiece", {"pre_tokenizer": {"type": "Digits", "individual_digits": True}}, "Digits"),
        ("wordpiece", {"normalizer": {"type": "NFKC"}}, "NFKC"),
    ],
)
def test_components_without_a_place_are_said(kind: str, change: dict[str, Any], lost: str) -> None:
    content = json.loads(small_json(kind))
    for key, value in change.items():
        content[key] = content[key] | value if key == "model" else value
    with pytest.warns(TokenizerWarning, match=f"cannot represent a part of the file: {lost};"):
        Tokenizer.from_tokenizers_json(json.dumps(content).encode())


def test_whitespace_is_its_own_model() -> None:
    content = json.loads(fallback_json([], byte_fallback=False))
    content |= {"normalizer": {"type": "Lowercase"}, "pre_tokenizer": {"type": "Whitespace"}}
    tokenizer = Tokenizer.from_tokenizers_json(json.dumps(content).encode())
    assert (tokenizer.vocab.model, tokenizer.vocab.pre) == ("whitespace", "whitespace")
    assert [tokenizer.vocab[id].text for id in tokenizer.encode("ABC ab", add_special=False)] == ["abc", "ab"]


@pytest.mark.parametrize("affix", ["continuing_subword_prefix", "end_of_word_suffix"])
def test_affixes_are_refused(affix: str) -> None:
    with pytest.raises(ConversionError, match=f"nothing like the {affix} '</w>'"):
        Tokenizer.from_tokenizers_json(fallback_json([], **{affix: "</w>"}))


def test_byte_fallback_has_one_score() -> None:
    data = written(Tokenizer.builtin("spm").to_tokenizers_json)
    with pytest.warns(TokenizerWarning, match="one score") as caught:
        tokenizer = Tokenizer.from_tokenizers_json(data)
    assert caught[0].filename == __file__
    assert {token.score for token in tokenizer.vocab} == {-1000.0}


def nested(depth: int) -> bytes:
    return b"[" * depth


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (nested(100_000), "not JSON"),
        (b"[]", "it has no model with a type"),
        (b'{"model": {"type": "WordLevel"}}', "'WordLevel'"),
        (b'{"model": {"type": "BPE"}}', "must be an object"),
        (b'{"model": {"type": "BPE", "vocab": {}}}', "neither is over bytes"),
        (b'{"model": {"type": "WordPiece", "vocab": []}}', "must be an object"),
        (b'{"model": {"type": "WordPiece", "vocab": {"a": true}}}', "the id True for 'a'"),
        (b'{"model": {"type": "WordPiece", "vocab": {"a": 4000000}}}', "the highest id is 4000000"),
        (b'{"model": {"type": "WordPiece", "vocab": {"a": 0, "b": 0}}}', "two tokens have the id 0"),
        (b'{"model": {"type": "WordPiece", "vocab": {}, "continuing_subword_prefix": "@"}}', "'##' only"),
        (b'{"model": {"type": "WordPiece"}, "added_tokens": [{"id": -1, "content": "a"}]}', r"added_tokens\[0\]"),
        (b'{"model": {"type": "Unigram", "vocab": [["a"]]}}', r"model.vocab\[0\]"),
        (b'{"model": {"type": "Unigram", "vocab": [["a", NaN]]}}', "the score nan"),
        (b'{"model": {"type": "Unigram", "vocab": [["a", 1e400]]}}', "the score inf"),
        (
            b'{"model": {"type": "Unigram", "vocab": [["a", 1]]}, "normalizer": {"type": "Precompiled",'
            b' "precompiled_charsmap": "?"}}',
            "not base64",
        ),
        (
            b'{"model": {"type": "BPE", "vocab": {}, "merges": ["a"]}, "pre_tokenizer": {"type": "ByteLevel"}}',
            r"model.merges\[0\]",
        ),
    ],
)
def test_damaged_json(data: bytes, error: str) -> None:
    with pytest.raises(ConversionError, match=error):
        Tokenizer.from_tokenizers_json(data)


def values(leaf: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.recursive(
        leaf, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    )


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every value inside a value."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from places(inner, (*path, key))


@cache
def small_json(kind: str) -> str:
    content = json.loads(trained_json(kind).to_str())
    vocab = content["model"]["vocab"]
    keep = {text: id for text, id in vocab.items() if id < 12} if isinstance(vocab, dict) else vocab[:12]
    content["model"] |= {"vocab": keep, "merges": content["model"].get("merges", [])[:3]}
    return json.dumps(content)


LEAF = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4)


@given(st.sampled_from(["bpe", "wordpiece", "unigram"]), st.data(), values(LEAF))
def test_hostile_json(kind: str, data: st.DataObject, value: Any) -> None:
    content = json.loads(small_json(kind))
    *way, last = data.draw(st.sampled_from([place for place in places(content) if place]))
    at = content
    for key in way:
        at = at[key]
    at[last] = value
    pre = data.draw(st.sampled_from([None, "qwen2"]))
    with contextlib.suppress(GgtokError):
        Tokenizer.from_tokenizers_json(json.dumps(content).encode(), pre=pre)


# A folder for transformers


@pytest.mark.parametrize("name", BUILTIN)
def test_a_folder_for_transformers(name: str, tmp_path: Path) -> None:
    """Read back, the special ids are those of the vocabulary; `scripts` of other libraries are left alone."""
    tok, folder = Tokenizer.builtin(name), tmp_path / "new" / "folder"
    folder.mkdir(parents=True)
    (folder / "other").write_text("stays")
    tok.to_transformers(folder)
    tok.to_transformers(str(folder))
    templates = {"chat_template.jinja"} if "tokenizer.chat_template" in tok.metadata else set()
    written = {"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"} | templates
    assert {path.name for path in folder.iterdir()} == written | {"other"}
    back = Tokenizer.from_tokenizers_json(folder / "tokenizer.json", pre=tok.vocab.pre if name == "bpe" else None)
    for each in ("bos", "unk", "sep", "pad", "mask", *["eos"] * (name != "wordpiece")):
        assert getattr(back.vocab, f"{each}_id") == getattr(tok.vocab, f"{each}_id"), each
    assert back.metadata.get("tokenizer.chat_template") == tok.metadata.get("tokenizer.chat_template")
    assert back.encode("What is LoRA?") == tok.encode("What is LoRA?")
    with pytest.raises(GgtokError, match="is also an input"):
        back.to_transformers(folder)
    with pytest.raises(TypeError, match="the folder must be a path"):
        tok.to_transformers(7)  # type: ignore[arg-type]


def test_named_templates_have_files(tmp_path: Path) -> None:
    tok = Tokenizer.builtin("bpe")
    new = tok.to_gguf(
        io.BytesIO(), metadata={"tokenizer.chat_template.tool_use": "{{ tools }}", "llama.context_length": 7}
    )
    new.to_transformers(tmp_path)
    assert (tmp_path / "additional_chat_templates/tool_use.jinja").read_text() == "{{ tools }}"
    assert (tmp_path / "chat_template.jinja").read_text() == tok.metadata["tokenizer.chat_template"]


@pytest.mark.parametrize("name", BUILTIN)
def test_transformers_opens_the_folder(name: str, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    tok = Tokenizer.builtin(name)
    tok.to_transformers(tmp_path)
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    for each in ("bos", "eos", "unk", "sep", "pad", "mask"):
        assert getattr(theirs, f"{each}_token_id") == getattr(tok.vocab, f"{each}_id"), each
    for text in ("What is LoRA?", " a  b\n", "na\u00efve 中文", "hello world's"):
        assert theirs.encode(text) == tok.encode(text, parse_special=True)
    if theirs.chat_template:
        chat = [{"role": "user", "content": "Hi"}]
        text = theirs.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
        assert text == tok.apply_chat_template(chat, raw=True)
