"""Files of other libraries: what ggtok writes gives the same ids there, and what they train gives the same ids here."""

from __future__ import annotations

import base64
import contextlib
import io
import json
import warnings
from collections.abc import Callable
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import pytest
import sentencepiece  # type: ignore[import-untyped,unused-ignore]
import tiktoken
import tokenizers  # type: ignore[import-untyped,unused-ignore]
from conftest import ABSENT, BUILTIN, SHARED, VOCABULARIES
from ggtok import ConversionError, GgtokError, TokenAttribute, Tokenizer, TokenizerWarning, _ggtok
from ggtok.lab.convert import protobuf
from ggtok.lab.convert import tiktoken as export
from ggtok.lab.convert.gguf import gguf_bytes
from ggtok.tokenizer.vocab import attributes
from hypothesis import given
from hypothesis import strategies as st
from oracles.gguf_vocab import TokenType, Vocab

ROOT = Path(__file__).resolve().parents[1]
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


@lru_cache(1)
def opened(name: str, pre: str | None = None) -> Tokenizer:
    """A builtin or shared vocabulary. One is kept, because all together take 800 MB."""
    if name in BUILTIN:
        return Tokenizer.builtin(name)
    path = SHARED / "vocabs" / f"{name}.gguf"
    if not path.exists():
        pytest.skip(ABSENT)
    return Tokenizer.from_gguf(path, overrides={"tokenizer.ggml.pre": pre} if pre else None)


def written(write: Callable[[Any], object]) -> bytes:
    file = io.BytesIO()
    write(file)
    return file.getvalue()


def same(ids: Callable[[str], list[int]], others: Callable[[str], list[int]], texts: list[str]) -> None:
    for text in texts:
        assert ids(text) == others(text), text


def user_defined(tokenizer: Tokenizer) -> set[str]:
    bit = int(TokenAttribute.USER_DEFINED)
    return {tokenizer.vocab[id].text for id, bits in enumerate(attributes(tokenizer.vocab)) if bits & bit}


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
    """Every family with one pattern, over the builtin vocabulary's tokens, whose ranks are computed once."""
    ranks: dict[bool, dict[bytes, int]] = {}
    compute = export._ranks

    def kept(vocabulary: Any) -> dict[bytes, int]:
        whole = vocabulary.vocab.settings["ignore_merges"]
        return ranks[whole] if whole in ranks else ranks.setdefault(whole, compute(vocabulary))

    monkeypatch.setattr(export, "_ranks", kept)
    data, count = (VOCABULARIES / "bpe.gguf").read_bytes(), 0
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


def test_tiktoken_needs_special_tokens_that_are_told_apart() -> None:
    types = {"tokenizer.ggml.token_type": [1] * 257 + [3, 3]}
    byte_level(["ab", "<x>", "<y>"], ["a b"], **types).to_tiktoken(io.BytesIO())
    with pytest.raises(ConversionError, match="either of the special tokens '<x>' and '<x>>'"):
        byte_level(["ab", "<x>", "<x>>"], ["a b"], **types).to_tiktoken(io.BytesIO())


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
    user_tokens = user_defined(tokenizer)
    texts = [*documents(), *sorted(user_tokens)[:20], "<s>a</s> b<|im_end|>[SEP]"]
    if tokenizer.vocab.kind == "wordpiece":
        texts = [text for text in texts if "\u2581" not in text]
    if tokenizer.vocab.kind == "unigram":
        texts = without_ties(tokenizer, lambda text: other.encode(text).ids, texts, parse_special=True)
    assert len(texts) > len(documents()) * 0.9
    same(lambda text: other.encode(text).ids, lambda text: tokenizer.encode(text, parse_special=True), texts)
    other.encode_special_tokens = True
    if not user_tokens:
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
    data = (VOCABULARIES / "bpe.gguf").read_bytes()
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
    data = (VOCABULARIES / "unigram.gguf").read_bytes()
    tokenizer = Tokenizer.from_gguf(data, overrides=dict(zip(keys, spaces, strict=True)))
    other = as_tokenizers(tokenizer)
    texts = ["", " ", "   ", "a", " a", "  a", "a ", " a  b  ", "\n", "\u2581a", "a\u2581 b"]
    same(lambda text: other.encode(text).ids, lambda text: tokenizer.encode(text, parse_special=True), texts)
    model = sentencepiece.SentencePieceProcessor(model_proto=written(tokenizer.to_sentencepiece))
    only_spaces = {" ", "   ", "\n"} if spaces == (False, True) else set()
    texts = [text for text in texts if text not in only_spaces]
    same(model.encode, lambda text: tokenizer.encode(text, add_special=False), texts)


def test_a_user_defined_token_of_unigram() -> None:
    """Without a character map, nothing that begins like one is changed."""
    texts = [b"<pad>", b"</s>", b"<unk>", "\u2581".encode(), b"a", b"b", b"<x>"]
    special, normal = [TokenType.CONTROL, TokenType.CONTROL, TokenType.UNKNOWN], [TokenType.NORMAL] * 3
    vocab = Vocab("t5", texts, [*special, *normal, TokenType.USER_DEFINED], [0.0, 0.0, 0.0, -1.0, -1.0, -2.0, 0.0])
    tokenizer = Tokenizer.from_gguf(vocab.gguf())
    other = as_tokenizers(tokenizer)
    texts_of_users = ["a<x>b", "<x>", "a <x> b", "<"]
    same(lambda text: other.encode(text).ids, lambda text: tokenizer.encode(text, parse_special=True), texts_of_users)


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


def test_tokenizers_json_refuses_bytes_that_are_not_utf8() -> None:
    with pytest.raises(ConversionError, match=r"the text of token 257 is not UTF-8: b'a\\xff'"):
        as_tokenizers(byte_level(["ab", "a\udcff"], ["a b"]))


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
    again = Tokenizer.from_sentencepiece(io.BytesIO(data))
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


SPECIAL_NAMES = ["<unk>", "<s>", "</s>", "<pad>", "<x>"]


@given(
    st.permutations(SPECIAL_NAMES).flatmap(lambda names: st.integers(1, len(names)).map(lambda size: names[:size])),
    st.lists(st.sampled_from([1, 3, 3, 4, 5]), min_size=5, max_size=5),
    st.dictionaries(st.sampled_from(range(45, 49)), st.sampled_from(["", "<x>", "<s>", "zz", "a"])),
    st.dictionaries(st.sampled_from(range(40, 44)), st.integers(-1, 5)),
)
def test_special_pieces_of_sentencepiece(
    names: list[str], kinds: list[int], pieces: dict[int, str], ids: dict[int, int]
) -> None:
    """They are found by their texts, as the library does, and not by the ids that training was told."""
    rows = [*zip(names, (2, *kinds), strict=False), ("\u2581", 1), ("a", 1), ("\u2581a", 1)]
    data = b"".join(
        protobuf.field(1, message((1, text), (2, -float(id)), (3, kind))) for id, (text, kind) in enumerate(rows)
    )
    data += protobuf.field(2, message((3, 1), *pieces.items(), *ids.items()))
    model, tokenizer = sentencepiece.SentencePieceProcessor(model_proto=data), Tokenizer.from_sentencepiece(data)
    for name, theirs in (("bos", model.bos_id()), ("eos", model.eos_id()), ("padding", model.pad_id())):
        assert tokenizer.metadata.get(f"tokenizer.ggml.{name}_token_id", -1) == theirs
    same(model.encode, lambda text: tokenizer.encode(text, add_special=False), ["a", "a b", "ba a"])
    if model.bos_id() < 0 and model.eos_id() < 0:
        assert tokenizer.encode("a") == tokenizer.encode("a", add_special=False)


def message(*pairs: tuple[int, Any]) -> bytes:
    return b"".join(protobuf.field(number, value) for number, value in pairs)


KEPT = {"normalization_rule_name": "identity", "remove_extra_whitespaces": False, "add_dummy_prefix": False}
OF_TRAINING: list[dict[str, Any]] = [
    {"split_by_unicode_script": False, "split_by_number": False, "shuffle_input_sentence": False},
    {"split_by_whitespace": False, "train_extremely_large_corpus": True},
    {"split_digits": True, "allow_whitespace_only_pieces": True},
    {"pretokenization_delimiter": "e", "max_sentencepiece_length": 5, "character_coverage": 0.98},
    {
        "required_chars": "\u4e2d",
        "control_symbols": ["<x>"],
        "unk_surface": "?",
        "unk_piece": "<U>",
        "bos_piece": "<B>",
    },
    {"unk_id": 3, "bos_id": 0, "eos_id": 1, "pad_id": 2},
    {"bos_id": -1, "eos_id": -1, "treat_whitespace_as_suffix": True},
]
"""What only says how pieces are found, or what ids special ones have."""

OPTIONS: list[tuple[str, dict[str, Any], str | None]] = [
    *(("bpe", AS_LLAMA | KEPT | options, None) for options in OF_TRAINING),
    *(("unigram", KEPT | options, None) for options in OF_TRAINING),
    ("bpe", {**AS_LLAMA, "bos_piece": "B"}, "that a text never spells a control piece"),
    ("bpe", {**AS_LLAMA, "control_symbols": ["ing"]}, "that a text never spells a control piece"),
    ("bpe", {**AS_LLAMA, "normalization_rule_name": "nfkc"}, "its character map"),
    ("bpe", {**AS_LLAMA, "remove_extra_whitespaces": True}, "that it removes extra spaces"),
    ("bpe", {**AS_LLAMA, "byte_fallback": False}, "that unknown characters side by side become one token"),
    ("bpe", {**AS_LLAMA, "user_defined_symbols": ["<x>", "e"]}, "its user-defined pieces, which become normal tokens"),
    ("bpe", {**AS_LLAMA, "treat_whitespace_as_suffix": True}, "that spaces follow words"),
    ("unigram", {}, None),
    ("unigram", {"normalization_rule_name": "nmt_nfkc_cf"}, None),
    ("unigram", {"byte_fallback": True}, "that unknown characters become bytes"),
    ("unigram", {"add_dummy_prefix": False}, "that no space comes before the text"),
    ("unigram", {"remove_extra_whitespaces": False}, "that a text of spaces gets one more"),
    ("unigram", {"normalization_rule_name": "identity"}, "that it removes \u2581 at the end of a text"),
    ("unigram", {**KEPT, "user_defined_symbols": ["<x>", "e"]}, "its user-defined pieces, which become normal tokens"),
    ("unigram", {"treat_whitespace_as_suffix": True}, "that spaces follow words"),
]


@pytest.mark.parametrize(("kind", "options", "lost"), OPTIONS, ids=str)
def test_every_option_of_sentencepiece(
    kind: str, options: dict[str, Any], lost: str | None, recwarn: pytest.WarningsRecorder
) -> None:
    """The ids are equal, or a warning says what is lost."""
    data = trained(model_type=kind, hard_vocab_limit=False, **options)
    warnings.simplefilter("always")
    tokenizer, model = Tokenizer.from_sentencepiece(data), sentencepiece.SentencePieceProcessor(model_proto=data)
    assert [str(each.message).split(": ")[1].split(";")[0] for each in recwarn] == ([lost] if lost else [])
    texts = [*TEXTS, *SPACED, *repository()[:9]]
    if kind == "unigram":
        texts = without_ties(tokenizer, model.encode, texts, add_special=False)
    if lost is None:
        same(model.encode, lambda text: tokenizer.encode(text, add_special=False), texts)


SPACED = [" ", "\u2581", "a\u2581", "<x> e<x>", "".join(map(chr, range(32, 127))), "\u4e2d\u4e2d \u4e2d"]


def changed(data: bytes, number: int, settings: bytes) -> bytes:
    """A model with more settings: of a repeated field of protocol buffers the last one wins."""
    return data + protobuf.field(number, settings)


@pytest.mark.parametrize(
    ("number", "settings", "lost"),
    [
        (3, message((5, False)), "that spaces are not written as \u2581"),
        (5, message((2, b"\x04\0\0\0abcdef")), "how it changes decoded text"),
        (1, message((1, "unusedd"), (2, -1.0), (3, 5)), "that some pieces are unused"),
        (2, message((24, False)), None),
    ],
)
def test_what_sentencepiece_does_not_train_is_said_too(
    number: int, settings: bytes, lost: str | None, recwarn: pytest.WarningsRecorder
) -> None:
    data = changed(trained(model_type="bpe", **AS_LLAMA), number, settings)
    warnings.simplefilter("always")
    Tokenizer.from_sentencepiece(data)
    assert [str(each.message).split(": ")[1].split(";")[0] for each in recwarn] == ([lost] if lost else [])


def test_from_sentencepiece_says_what_is_lost() -> None:
    lost = "its character map and that it removes extra spaces and that unknown characters side by side"
    with pytest.warns(TokenizerWarning, match=lost) as caught:
        Tokenizer.from_sentencepiece(trained(model_type="bpe"))
    assert caught[0].filename == __file__


def test_to_sentencepiece_says_that_bos_is_not_in_it() -> None:
    tokenizer = Tokenizer.builtin("unigram").to_gguf(io.BytesIO(), flags={"add_bos": True})
    with pytest.warns(TokenizerWarning, match="does not say that BOS is added and EOS is added"):
        tokenizer.to_sentencepiece(io.BytesIO())


def test_from_sentencepiece_takes_user_defined_pieces_for_normal_ones() -> None:
    tokenizer = Tokenizer.from_sentencepiece(trained(model_type="bpe", **AS_LLAMA, user_defined_symbols=["<x>"]))
    id = tokenizer.vocab.id("<x>")
    assert id is not None
    assert tokenizer.vocab[id].attributes == TokenAttribute.NORMAL


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
