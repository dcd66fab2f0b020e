"""Files of other libraries: what ggtok writes gives the same ids there, and what they train gives the same ids here."""

from __future__ import annotations

import base64
import contextlib
import io
import json
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import sentencepiece  # type: ignore[import-untyped,unused-ignore]
import tiktoken
import tokenizers  # type: ignore[import-untyped,unused-ignore]
from conftest import ABSENT, SHARED
from ggtok import ConversionError, GgtokError, TokenAttribute, Tokenizer, TokenizerWarning, UnsupportedError, _ggtok
from ggtok._convert import protobuf
from ggtok._convert.gguf import gguf_bytes
from ggtok._convert.pre_by_digest import digest, table
from hypothesis import given
from hypothesis import strategies as st

ROOT = Path(__file__).resolve().parents[1]
BUILTIN = ("bpe", "spm", "unigram", "wordpiece")
DOC_CHARS, NUM_DOCS = 1500, 12

pytestmark = pytest.mark.filterwarnings("ignore::ggtok.TokenizerWarning")

TEXTS = [
    "",
    "a",
    " a",
    "a ",
    "a  b",
    "\n",
    " \n",
    "\t\tx = 1\n",
    "x\u3000y",
    "e\u0301é",
    "🦙🦙 🦙",
    "ﬁ ①",
    "<0x41>",
    "大模型",
]
TEXTS += [unit * count for unit in ("-", "a", "0", "=") for count in (2, 3, 7, 16)]
TEXTS += ["x" + " " * count + "y" for count in range(2, 70)]


@cache
def documents() -> list[str]:
    """Texts for every comparison: short ones, this project's pages, and the shared corpora cut into documents."""
    texts = [*TEXTS, *repository()]
    for path in sorted(SHARED.glob("corpora/*.txt")):
        text = path.read_bytes().decode()
        step = len(text) // NUM_DOCS
        texts += [text[at : at + DOC_CHARS] for at in range(0, len(text), step)]
    return texts


@cache
def repository() -> list[str]:
    pages = [(ROOT / name).read_text("utf-8") for name in ("README.md", "docs/architecture.md", "docs/chat.md")]
    return [page[at : at + DOC_CHARS] for page in pages for at in range(0, len(page), DOC_CHARS)]


@cache
def opened(name: str) -> Tokenizer:
    """A builtin or shared vocabulary."""
    if name in BUILTIN:
        return Tokenizer.builtin(name)
    path = SHARED / "vocabs" / f"{name}.gguf"
    if not path.exists():
        pytest.skip(ABSENT)
    return Tokenizer.from_gguf(path)


def written(write: Callable[[Any], object]) -> bytes:
    file = io.BytesIO()
    write(file)
    return file.getvalue()


def same(ids: Callable[[str], list[int]], others: Callable[[str], list[int]], texts: list[str]) -> None:
    for text in texts:
        assert ids(text) == others(text), text


def user_defined(tokenizer: Tokenizer) -> set[str]:
    return {token.text for token in tokenizer.vocab if TokenAttribute.USER_DEFINED in token.attributes}


# tiktoken


def as_tiktoken(tokenizer: Tokenizer) -> tiktoken.Encoding:
    file = io.BytesIO()
    settings = tokenizer.to_tiktoken(file)
    rows = [line.split() for line in file.getvalue().splitlines()]
    return tiktoken.Encoding(mergeable_ranks={base64.b64decode(piece): int(rank) for piece, rank in rows}, **settings)


@pytest.mark.parametrize("name", ["bpe", "gpt-2", "llama-bpe", "qwen2"])
def test_tiktoken(name: str) -> None:
    tokenizer = opened(name)
    encoding = as_tiktoken(tokenizer)
    same(encoding.encode_ordinary, lambda text: tokenizer.encode(text, add_special=False), documents())
    text = "What<|im_end|> is\n<|endoftext|>"
    ids = encoding.encode(text, allowed_special="all")
    assert ids == tokenizer.encode(text, add_special=False, parse_special=True)
    assert encoding.decode(ids) == text


def test_tiktoken_of_every_pattern(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every family with one pattern, over the builtin vocabulary's tokens."""
    data, count = Tokenizer.builtin("bpe")._metadata.data, 0
    texts = documents()[:: 3 if SHARED.exists() else 1]
    names = {row["family"]: name for name, row in _ggtok.pretokenizers().items()}
    for family, name in names.items():
        row = _ggtok.families()[family]
        tokenizer = Tokenizer.from_gguf(data, overrides={"tokenizer.ggml.pre": name})
        if len(row["patterns"]) != 1 or not row["byte_encode"] or family == "kimi-k2":
            with pytest.raises(ConversionError, match=r"applies [2-9]|byte-level BPE only|no pattern describes"):
                tokenizer.to_tiktoken(io.BytesIO())
            continue
        encoding, count = as_tiktoken(tokenizer), count + 1
        same(encoding.encode_ordinary, lambda text: tokenizer.encode(text, add_special=False), texts)  # noqa: B023
    assert count > 20


def test_tiktoken_files(tmp_path: Path) -> None:
    path = tmp_path / "bpe.tiktoken"
    settings = Tokenizer.builtin("bpe").to_tiktoken(path)
    assert json.loads((tmp_path / "bpe.tiktoken.json").read_text("utf-8")) == settings
    assert path.read_bytes().startswith(b"IQ== 0\n")


def byte_level(tokens: list[str], merges: list[str], **keys: Any) -> Tokenizer:
    """A small byte-level vocabulary: the builtin's 256 bytes and some tokens."""
    spelled = [token.text for token in Tokenizer.builtin("bpe").vocab[:256]]
    entries = {"general.architecture": "llama", "tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "gpt-2"}
    lists = {"tokenizer.ggml.tokens": spelled + tokens, "tokenizer.ggml.merges": merges}
    return Tokenizer.from_gguf(gguf_bytes(entries | lists | keys))


@pytest.mark.parametrize(
    ("tokens", "merges", "pre", "reason"),
    [
        (["ab", "abc"], ["a b", "ab c"], "gpt-2", None),
        (["ab", "bc", "abc"], ["a b", "b c", "ab c"], "gpt-2", None),
        (["ab", "bc", "abc"], ["a b", "b c", "a bc"], "gpt-2", "would make token 258 'abc'"),
        (["bc", "ab"], ["a b", "b c"], "gpt-2", "not in the order"),
        (["abc"], ["a b", "ab c"], "gpt-2", "is not made of tokens, or makes none"),
        (["ab", "xyz"], ["a b"], "gpt-2", None),
        (["ab", "xyz", "yz"], ["a b"], "llama-bpe", "would make token 257 'xyz'"),
        (["ab"], ["a b"], "default", "applies 4"),
        (["ab"], ["a b"], "kimi-k2", "no pattern describes"),
    ],
)
def test_tiktoken_needs_ranks(tokens: list[str], merges: list[str], pre: str, reason: str | None) -> None:
    tokenizer = byte_level(tokens, merges, **{"tokenizer.ggml.pre": pre, "tokenizer.ggml.bos_token_id": 0})
    if reason is not None:
        with pytest.raises(ConversionError, match=reason) as caught:
            tokenizer.to_tiktoken(io.BytesIO())
        assert caught.value.format == "tiktoken"
        return
    encoding = as_tiktoken(tokenizer)
    texts = ["abcab", "bcabc", "xyz abc", "aabcc"]
    same(encoding.encode_ordinary, lambda text: tokenizer.encode(text, add_special=False), texts)


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("abc")), min_size=1, max_size=8, unique=True),
    st.lists(st.text("abc", min_size=1, max_size=12), min_size=3, max_size=6),
    st.randoms(use_true_random=False),
    st.sampled_from(["gpt-2", "llama-bpe"]),
)
def test_tiktoken_claims_only_what_is_equal(
    first: list[tuple[str, str]], texts: list[str], random: Any, pre: str
) -> None:
    """Random rules in any order: the export refuses, or the ids are equal."""
    rules = list(first)
    for _ in range(6):
        (a, b), (c, d) = random.choice(rules), random.choice(rules)
        rules.append(random.choice([(a + b, c), (a, c + d), (a + b, c + d)]))
    rules = list(dict.fromkeys(rules))
    tokens = list(dict.fromkeys(left + right for left, right in rules))
    keys = {"tokenizer.ggml.pre": pre, "tokenizer.ggml.bos_token_id": 0}
    tokenizer = byte_level(tokens, [f"{left} {right}" for left, right in rules], **keys)
    try:
        encoding = as_tiktoken(tokenizer)
    except ConversionError:
        return
    texts += ["".join(random.choices("abc", k=40)) for _ in range(20)]
    same(encoding.encode_ordinary, lambda text: tokenizer.encode(text, add_special=False), texts)


# tokenizer.json


def as_tokenizers(tokenizer: Tokenizer) -> Any:
    return tokenizers.Tokenizer.from_str(written(tokenizer.to_tokenizers_json).decode())


REAL = [*("gpt-2", "llama-bpe", "qwen2", "deepseek-llm", "mpt", "gemma-4", "llama-spm", "phi-3", "baichuan")]
REAL += ["spm-small", "bert-bge", "bert-bge-l1-s0", "nomic-bert-moe"]


@pytest.mark.parametrize("name", [*BUILTIN, *REAL])
def test_tokenizers_json(name: str) -> None:
    tokenizer = opened(name)
    other = as_tokenizers(tokenizer)
    texts = [*documents(), *sorted(user_defined(tokenizer))[:20], "<s>a</s> b<|im_end|>[SEP]"]
    if tokenizer.vocab.kind == "wordpiece":
        texts = [text for text in texts if "\u2581" not in text]
    if tokenizer.vocab.kind == "unigram":
        texts = without_ties(tokenizer, lambda text: other.encode(text).ids, texts, parse_special=True)
    assert len(texts) > len(documents()) * 0.9
    same(lambda text: other.encode(text).ids, lambda text: tokenizer.encode(text, parse_special=True), texts)
    other.encode_special_tokens = True
    if not user_defined(tokenizer):
        same(lambda text: other.encode(text).ids, tokenizer.encode, ["a b c", "What is LoRA?"])
    if not tokenizer.vocab.settings["clean_spaces"] and tokenizer.vocab.kind in ("bpe", "spm"):
        ids = tokenizer.encode("What is  LoRA?", add_special=False)
        assert other.decode(ids) == "What is  LoRA?"


def without_ties(
    tokenizer: Tokenizer, others: Callable[[str], list[int]], texts: list[str], **flags: bool
) -> list[str]:
    """Leaves out texts with two segmentations that have the same score, as far as a float says."""

    def is_tie(text: str) -> bool:
        ids = [others(text), tokenizer.encode(text, **flags)]
        first, second = (sum(tokenizer.vocab[id].score for id in some) for some in ids)
        return ids[0] != ids[1] and abs(first - second) < 1e-3

    return [text for text in texts if not is_tie(text)]


def test_tokenizers_json_of_every_pattern() -> None:
    data = Tokenizer.builtin("bpe")._metadata.data
    texts = documents()[:: 3 if SHARED.exists() else 1]
    names = {row["family"]: name for name, row in _ggtok.pretokenizers().items()}
    for family, name in names.items():
        tokenizer = Tokenizer.from_gguf(data, overrides={"tokenizer.ggml.pre": name})
        if family in ("kimi-k2", "afmoe", "tiny-aya") or not _ggtok.families()[family]["byte_encode"]:
            with pytest.raises(ConversionError):
                as_tokenizers(tokenizer)
            continue
        other = as_tokenizers(tokenizer)
        same(
            lambda text: other.encode(text, add_special_tokens=False).ids,  # noqa: B023
            lambda text: tokenizer.encode(text, add_special=False, parse_special=True),  # noqa: B023
            texts,
        )


@pytest.mark.parametrize("spaces", [(False, False), (False, True), (True, False), (True, True)])
def test_spaces_of_unigram(spaces: tuple[bool, bool]) -> None:
    keys = ("tokenizer.ggml.remove_extra_whitespaces", "tokenizer.ggml.add_space_prefix")
    data = Tokenizer.builtin("unigram")._metadata.data
    tokenizer = Tokenizer.from_gguf(data, overrides=dict(zip(keys, spaces, strict=True)))
    other = as_tokenizers(tokenizer)
    texts = ["", " ", "   ", "a", " a", "  a", "a ", " a  b  ", "\n", "\u2581a", "a\u2581 b"]
    same(lambda text: other.encode(text).ids, lambda text: tokenizer.encode(text, parse_special=True), texts)
    model = sentencepiece.SentencePieceProcessor(model_proto=written(tokenizer.to_sentencepiece))
    only_spaces = {" ", "   ", "\n"} if spaces == (False, True) else set()
    texts = [text for text in texts if text not in only_spaces]
    same(model.encode, lambda text: tokenizer.encode(text, add_special=False), texts)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("rwkv-world", "kind 'rwkv' has no counterpart"),
        ("plamo2-small", "kind 'plamo2' has no counterpart"),
        ("hybriddna-gpt2", "is llama.cpp's own"),
        ("whitespace-lower-small", "is llama.cpp's own"),
        ("ugm-nfkc-small", "does not normalize what begins like the user-defined token"),
    ],
)
def test_tokenizers_json_refuses(name: str, reason: str) -> None:
    with pytest.raises(ConversionError, match=reason):
        as_tokenizers(opened(name))


def test_tokenizers_json_refuses_merges_of_other_texts() -> None:
    for tokens, merges in ((["abc"], ["a b", "ab c"]), ([], ["a b"])):
        with pytest.raises(ConversionError, match="is not made of tokens, or makes none"):
            as_tokenizers(byte_level(tokens, merges))


# sentencepiece


@pytest.mark.parametrize("name", ["spm", "unigram", "llama-spm", "baichuan", "nomic-bert-moe"])
def test_sentencepiece(name: str) -> None:
    tokenizer = opened(name)
    data = written(tokenizer.to_sentencepiece)
    model = sentencepiece.SentencePieceProcessor(model_proto=data)
    texts = documents()
    if tokenizer.vocab.kind == "unigram":
        texts = without_ties(tokenizer, model.encode, texts, add_special=False)
        assert len(texts) > len(documents()) * 0.8
    same(model.encode, lambda text: tokenizer.encode(text, add_special=False), texts)
    assert model.vocab_size() == len(tokenizer.vocab)
    vocab = tokenizer.vocab
    assert (model.unk_id(), model.eos_id()) == (vocab.unk_id, vocab.eos_id)
    assert model.bos_id() == (-1 if vocab.bos_id is None else vocab.bos_id)
    assert model.pad_id() == (0 if name == "unigram" else 1 if name == "nomic-bert-moe" else -1)
    again = Tokenizer.from_sentencepiece(data)
    ids = [[some.encode(text, add_special=False) for text in texts] for some in (again, tokenizer)]
    assert ids[0] == ids[1]
    assert [token.text for token in again.vocab] == [token.text for token in vocab]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("bpe", "kind 'bpe' has no counterpart"),
        ("wordpiece", "kind 'wordpiece' has no counterpart"),
        ("spm-small", "where a text has spaces"),
        ("phi-3", "one unknown token, and there are"),
    ],
)
def test_sentencepiece_refuses(name: str, reason: str) -> None:
    with pytest.raises(ConversionError, match=reason):
        opened(name).to_sentencepiece(io.BytesIO())


def trained(**settings: Any) -> bytes:
    """A model that sentencepiece trains on this project's pages."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=(line for page in repository() for line in page.splitlines()),
        model_writer=model,
        vocab_size=600,
        minloglevel=2,
        num_threads=1,
        **settings,
    )
    return model.getvalue()


AS_LLAMA = {"normalization_rule_name": "identity", "remove_extra_whitespaces": False, "byte_fallback": True}


@pytest.mark.parametrize(
    "settings",
    [
        {"model_type": "bpe", **AS_LLAMA},
        {"model_type": "bpe", **AS_LLAMA, "add_dummy_prefix": False},
        {"model_type": "unigram"},
        {"model_type": "unigram", "normalization_rule_name": "nmt_nfkc_cf"},
        {"model_type": "unigram", "normalization_rule_name": "identity", "remove_extra_whitespaces": False},
        {"model_type": "unigram", "pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": -1},
    ],
)
def test_from_sentencepiece(settings: dict[str, Any], tmp_path: Path) -> None:
    data = trained(**settings)
    model = sentencepiece.SentencePieceProcessor(model_proto=data)
    (tmp_path / "tokenizer.model").write_bytes(data)
    tokenizer = Tokenizer.from_sentencepiece(tmp_path / "tokenizer.model", vocab_size=640)
    texts = [text for text in documents() if text.strip()]
    texts = without_ties(tokenizer, model.encode, texts, add_special=False)
    assert len(texts) > len(documents()) * 0.8
    same(model.encode, lambda text: tokenizer.encode(text, add_special=False), texts)
    assert (tokenizer.vocab.unk_id, tokenizer.vocab.eos_id) == (model.unk_id(), model.eos_id())
    assert tokenizer.vocab[639].text == "[PAD639]"
    assert tokenizer.vocab[639].attributes == TokenAttribute.UNUSED


def test_from_sentencepiece_says_what_is_lost() -> None:
    with pytest.warns(TokenizerWarning, match="its character map and that it removes extra spaces") as caught:
        Tokenizer.from_sentencepiece(trained(model_type="bpe"))
    assert caught[0].filename == __file__


def test_from_sentencepiece_takes_user_defined_pieces_for_normal_ones() -> None:
    tokenizer = Tokenizer.from_sentencepiece(trained(model_type="bpe", **AS_LLAMA, user_defined_symbols=["<x>"]))
    id = tokenizer.vocab.id("<x>")
    assert id is not None
    assert tokenizer.vocab[id].attributes == TokenAttribute.NORMAL


def message(*pairs: tuple[int, Any]) -> bytes:
    return b"".join(protobuf.field(number, value) for number, value in pairs)


PIECE = message((1, message((1, "a"), (2, -1.0), (3, 1))))


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"", "no pieces"),
        (b"\xff", "ends inside a number"),
        (b"\x80" * 20, "longer than 64 bits"),
        (b"\x0a\x05abc", "a field has 5 bytes, and 3 are left"),
        (b"\x0a\xff\xff\xff\xff\x0f", "are left"),
        (b"\x0b", "the wire type 3"),
        (message((0, b"x")), "the number 0"),
        (message((1, 5)), "field 1 is not a message"),
        (message((1, message((1, 7)))), "piece 0 has a field of a wrong type"),
        (message((1, message((1, "a"), (3, 9)))), "the type 9"),
        (message((1, message((1, "")))), "the text b''"),
        (PIECE + message((2, message((3, 4)))), "not 4"),
        (PIECE + message((2, message((3, b"x")))), "field 3 of field 2 has a wrong type"),
        (PIECE + message((3, message((2, 1)))), "field 2 of field 3 has a wrong type"),
    ],
)
def test_damaged_models(data: bytes, error: str) -> None:
    with pytest.raises(ConversionError, match=error):
        Tokenizer.from_sentencepiece(data)


def test_a_repeated_piece_is_refused() -> None:
    with pytest.raises(GgtokError, match="share the text"):
        Tokenizer.from_sentencepiece(PIECE * 2)


@cache
def small_model() -> bytes:
    return trained(model_type="unigram")


def damaged(data: bytes, edits: list[tuple[float, int]], length: float) -> bytes:
    changed = bytearray(data[: int(len(data) * length) + 1])
    for place, byte in edits:
        changed[int(place * (len(changed) - 1))] = byte
    return bytes(changed)


EDITS = st.lists(st.tuples(st.floats(0, 1), st.integers(0, 255)), min_size=1, max_size=6)


@given(st.one_of(st.binary(max_size=60), st.builds(lambda *how: damaged(small_model(), *how), EDITS, st.floats(0, 1))))
def test_hostile_models(data: bytes) -> None:
    with contextlib.suppress(GgtokError):
        Tokenizer.from_sentencepiece(data).encode("What is LoRA?", add_special=False)


# From tokenizer.json


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


@pytest.mark.parametrize("name", ["bpe", "spm", "unigram", "wordpiece"])
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


@pytest.mark.parametrize("name", ["bpe", "spm", "unigram", "wordpiece"])
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
