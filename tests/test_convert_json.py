"""`tokenizer.json` and folders for transformers: what tokenizers trains and writes gives the same ids here."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import tokenizers  # type: ignore[import-untyped,unused-ignore]
from conftest import BUILTIN
from ggtok import ConversionError, GgtokError, Tokenizer, TokenizerWarning, UnsupportedError, _ggtok
from ggtok._convert.pre_by_digest import digest, table
from hypothesis import given
from hypothesis import strategies as st
from test_convert import documents, opened, repository, same, without_ties, written

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
    """What the converter would write for them: the table has two names where two models have the same tokens."""
    names = {"gpt-2": "gpt-2", "llama-bpe": "llama-bpe", "qwen2": "qwen2", "deepseek-llm": "deepseek-llm"}
    for name, pre in (names | {"mpt": "olmo"}).items():
        tokenizer = opened(name)
        again = Tokenizer.from_tokenizers_json(written(tokenizer.to_tokenizers_json))
        assert again.vocab.pre == pre
        same(again.encode, tokenizer.encode, documents()[::5])
        text, known = table()
        assert known[digest(tokenizer.encode(text))] == pre


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
        (b"[]", "type None"),
        (b'{"model": {"type": "WordLevel"}}', "'WordLevel'"),
        (b'{"model": {"type": "BPE"}}', "neither is over bytes"),
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
    with pytest.raises(GgtokError, match="is what this is made from"):
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
