"""Hypothesis strategies: small nasty vocabularies of every kind, and texts that hit them.

Strategies are made once, not for each example: to check and to label a new one takes far longer than to draw from it.

Two tokens of one length never are both special: llama.cpp's order among those depends on its standard library's sort.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from typing import Any

from ggtok import Tokenizer, _ggtok
from hypothesis import strategies as st

from . import charsmap, spelling
from .gguf_vocab import TokenType, Vocab

COMMON = ["gpt-2", "llama-bpe", "qwen2", "gpt-4o", "default"]
PRE_TOKENIZERS = [*COMMON * 12, *sorted(_ggtok.pretokenizers().keys() - {"whitespace"})]
"""Half of them common ones, to meet these with many texts."""
Draw = Callable[[st.SearchStrategy[Any]], Any]

LETTERS = ["a", "b", "c", "\u00e9", "\u0301", "\u4e00", "\U0001f600", "1", "'", ".", "?", "<", ">", "x"]
SPACE = "\u2581"
SPACES = str.maketrans({SPACE: " ", "\u0120": " "})
CUT_SHORT = [b"\x80", b"\xc3", b"\xe2\x96", b"\xf0\x9f\x98", b"\xff", b"\xf8"]
BROKEN = [*CUT_SHORT, b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80"]
CHARACTERS = (
    "abcxyzABCLXZ stdmrelv'STREVMLD0123789 \t\r\n.,!?-_<>|[]{}()$+=^~`\"/\\#@:;%&*\x00\x01\x1c\x7f\x85\xa0\xad"
    "\u00aa\u00b2\u00b5\u00df\u00c5\u00e9\u00e0\u00d1\u0130\u0131\u017f\u0301\u030a\u0308\u0345\u0391\u03c9\u0416\u0436"
    "\u05d0\u05b0\u0627\u064b\u0664\u0915\u093f\u0966\u0e01\u0e31\u1100\u1161\uac00\u1e9e\u1ea5\u2000\u2028\u200b\u200d"
    "\u2014\u2019\u2026\u20ac\u2160\u2460\u2581\u2c00\u3000\u3002\u3042\u30ab\u3400\u4e00\u9fa5\uf900\ufb01\ufeff\uff01"
    "\uff21\uff10\ufffd\ufe0f\ue000\U00010400\U0001d400\U0001d7ce\U0001f600\U0001f3fd\U00020000\U0002f800\U000e0001"
)
"""At least one character of each class that a pattern or a normalizer knows."""
SPECIAL_TEXTS = ["<s>", "<a>", "<a><b", "><b>", "[x", "ab<", " <b> ", "<ab<a>ab>", "\u4e00<", "abcabcabc"]
SPECIAL_TYPES = (TokenType.CONTROL, TokenType.USER_DEFINED, TokenType.UNKNOWN)
SCORES = st.one_of(st.sampled_from([0.0, -1.0, -2.0]), st.floats(-20, 5, width=32, allow_nan=False))


@cache
def any_of(*values: Any) -> st.SearchStrategy[Any]:
    return st.sampled_from(values)


@cache
def lists_of(values: tuple[Any, ...], most: int) -> st.SearchStrategy[list[Any]]:
    return st.lists(any_of(*values), max_size=most)


@lru_cache(1024)
def words_of(alphabet: tuple[str, ...], longest: int) -> st.SearchStrategy[str]:
    return st.lists(any_of(*alphabet), min_size=1, max_size=longest).map("".join)


def words(alphabet: Sequence[str], longest: int = 5) -> st.SearchStrategy[str]:
    return words_of(tuple(alphabet), longest)


@cache
def few_letters(*more: str) -> st.SearchStrategy[list[str]]:
    return st.lists(any_of(*LETTERS, *more), min_size=2, max_size=4, unique=True)


def letters(draw: Draw, *more: str) -> list[str]:
    """Few letters, so that tokens, merges and ties collide; sometimes all of them."""
    few: list[str] = draw(few_letters(*more))
    return few if draw(st.integers(0, 2)) else [*LETTERS, *more]


PARTS = (
    words(LETTERS, 3).map(str.encode),
    st.sampled_from([b" ", b"  ", b"\n", b"\t ", b"\r\n", b"\0", SPACE.encode(), "\u3000".encode(), b"   \n  "]),
    st.sampled_from([text.encode() for text in SPECIAL_TEXTS]),
    st.sampled_from(CHARACTERS).map(str.encode),
    st.sampled_from(BROKEN),
    st.integers(2, 20).map(lambda count: b"a" * count),
)
_LATEST: list[tuple[Vocab, st.SearchStrategy[bytes]]] = []
"""The texts of the vocabulary that was asked for last."""


def texts(vocab: Vocab) -> st.SearchStrategy[bytes]:
    """Texts out of the vocabulary's own texts, spaces, special texts, odd characters, and bytes that are not UTF-8."""
    if not _LATEST or _LATEST[0][0] is not vocab:
        own = [text.replace(SPACE.encode(), b" ") for text in vocab.texts if text not in spelling.BYTE_TOKENS]
        pairs = zip(vocab.texts, vocab.types, strict=True)
        long = [text for text, kind in pairs if kind == TokenType.NORMAL and text[1:]]
        used = {letter for text in long if text[:2] != b"\\x" for letter in text.decode().translate(SPACES)}
        letters = st.lists(st.sampled_from(sorted(used or {"a"})), min_size=3, max_size=12)
        encoded = letters.map("".join).map(str.encode)
        part = st.one_of(encoded, encoded, st.sampled_from(own + vocab.texts[:8]), *PARTS)
        _LATEST[:] = [(vocab, st.lists(part, max_size=12).map(b"".join))]
    return _LATEST[0][1]


def token_texts(draw: Draw, alphabet: list[str]) -> list[bytes]:
    """Random words, and some of the special texts."""
    drawn = draw(st.lists(st.one_of(words(alphabet, 2), words(alphabet)), min_size=8, max_size=25))
    return [text.encode() for text in drawn + draw(lists_of((*SPECIAL_TEXTS,), 4))]


Head = list[tuple[bytes, TokenType]]


def typed(draw: Draw, head: Head, drawn: list[bytes], allowed: tuple[TokenType, ...]) -> tuple[list[bytes], list[int]]:
    """Texts and types of `head` and of `drawn`, whose types are random; normal where the length is taken."""
    tokens = dict(head)
    taken = {len(text) for text, type in head if type in SPECIAL_TYPES}
    for text in drawn:
        if text in tokens or not text:
            continue
        type = draw(any_of(*allowed))
        if type in SPECIAL_TYPES:
            type = TokenType.NORMAL if len(text) in taken else type
            taken.add(len(text))
        tokens[text] = type
    return list(tokens), list(map(int, tokens.values()))


MOSTLY_NORMAL = (TokenType.NORMAL,) * 6 + (
    TokenType.USER_DEFINED,
    TokenType.CONTROL,
    TokenType.UNUSED,
    TokenType.UNKNOWN,
    TokenType.UNDEFINED,
)
HEAD: Head = [(b"<unk>", TokenType.UNKNOWN), (b"<s>", TokenType.CONTROL), (b"</s>", TokenType.CONTROL)]
STRIPPING = st.sampled_from(
    [{}, {}, {"name": "Phi-3-mini"}, {"architecture": "jina-bert-v3"}, {"name": "ModernBERT is modern-bert"}]
)
STRIPPED: Head = [
    (b"<|endoftext|>", TokenType.CONTROL),
    (b"<mask>", TokenType.CONTROL),
    (b"[MASK]!", TokenType.CONTROL),
]


def common(draw: Draw) -> dict[str, Any]:
    return {
        "bos": 1,
        "eos": 2,
        "unk": 0,
        "add_bos": draw(st.booleans()),
        "add_eos": draw(st.booleans()),
        "add_space_prefix": draw(st.booleans()),
    }


BYTE_TOKENS_LEFT = st.sampled_from([spelling.BYTE_TOKENS, spelling.BYTE_TOKENS, spelling.BYTE_TOKENS[:128], []])


@st.composite
def spm(draw: Draw) -> Vocab:
    drawn = token_texts(draw, letters(draw, SPACE))
    names = draw(STRIPPING)
    bytes_left = draw(BYTE_TOKENS_LEFT)
    head = [*HEAD, *(STRIPPED if names else []), *((text, TokenType.BYTE) for text in bytes_left)]
    tokens, types = typed(draw, head, drawn, MOSTLY_NORMAL)
    scores = [draw(SCORES) if type != TokenType.BYTE else 0.0 for type in types]
    return Vocab("llama", tokens, types, scores, **common(draw), **names)


@st.composite
def bpe_like(draw: Draw) -> Vocab:
    """Byte-level BPE; `gemma4` and whitespace work on UTF-8 with byte tokens."""
    model = draw(any_of(*["gpt2"] * 6, "gemma4", "whitespace", "hybriddna"))
    # Spaces that reach the merges end llama.cpp, so this pattern needs the model that takes them out first.
    pre = model if model in ("gemma4", "whitespace") else draw(any_of(*PRE_TOKENIZERS))
    settings = _ggtok.pretokenizers()[pre]
    byte_encode = _ggtok.families()[settings["family"]]["byte_encode"]

    def spell(text: str) -> bytes:
        return spelling.byte_encode(text.encode()) if byte_encode else text.replace(" ", SPACE).encode()

    alphabet = letters(draw, " ", "\n")
    parts = draw(st.lists(words(alphabet, 3).map(spell), min_size=2, max_size=12))
    pairs = draw(st.lists(st.tuples(st.sampled_from(parts), st.sampled_from(parts)), max_size=10))
    # Merges of single characters first, so that longer parts can be made; some results are not tokens.
    steps = [
        (text[:cut].encode(), text[cut:].encode()) for text in map(bytes.decode, parts) for cut in range(1, len(text))
    ]
    merges = [b" ".join(pair) for pair in draw(st.permutations(steps + pairs))]
    merges += draw(st.lists(st.sampled_from([b"nospace", b" a", b"a  b", b"a b c", *merges]), max_size=3))
    singles = spelling.BYTES if byte_encode else spelling.BYTE_TOKENS
    base = singles if draw(st.booleans()) else draw(lists_of((*singles,), 80))
    joined = [left + right for left, right in steps + pairs]
    # Some tokens are made by no merge: with `ignore_merges` they are found as whole pieces.
    drawn = [*base, *parts, *draw(st.lists(st.sampled_from(joined or parts), max_size=10))]
    drawn += draw(st.lists(words(alphabet, 4).map(spell), max_size=5))
    drawn += [text.encode() for text in draw(lists_of((*SPECIAL_TEXTS,), 4))]
    head = list(HEAD)
    if model == "hybriddna":
        kmers = [b"AAAAAA", b"ACGTAC", b"TTTAAA"]
        head += [(text, TokenType.NORMAL) for text in (b"<dna>", b"</dna>", b"<oov>")]
        head += [(kmer + spelling.DNA_MARKER, TokenType.NORMAL) for kmer in kmers]
    names = draw(STRIPPING) if model == "gpt2" else {}
    tokens, types = typed(draw, head + (STRIPPED if names else []), drawn, (TokenType.NORMAL,) * 12 + MOSTLY_NORMAL)
    if not byte_encode:
        is_byte = set(spelling.BYTE_TOKENS).__contains__
        types = [int(TokenType.BYTE) if is_byte(text) else type for text, type in zip(tokens, types, strict=True)]
    flags: dict[str, Any] = {flag: settings[flag] for flag in ("clean_spaces", "escape_whitespaces")}
    fields = common(draw) | {"add_space_prefix": False} | names
    fields["add_bos"] |= model == "gemma4"
    return Vocab(model, tokens, types, merges=merges, pre=pre, lowercase=draw(st.booleans()), **fields, **flags)


@st.composite
def wpm(draw: Draw) -> Vocab:
    alphabet = letters(draw, "e", "A", "\u00c9")
    starts = [(SPACE + text).encode() for text in draw(st.lists(words(alphabet, 3), max_size=15))]
    drawn = starts + token_texts(draw, alphabet)
    head = [*HEAD, *(((SPACE.encode(), TokenType.NORMAL),) if draw(st.booleans()) else ())]
    tokens, types = typed(draw, head, drawn, MOSTLY_NORMAL)
    flags = {"lowercase": draw(st.booleans()), "strip_accents": draw(st.booleans()), "clean_spaces": True}
    return Vocab("bert", tokens, types, sep=2, **common(draw), **flags)


@st.composite
def ugm(draw: Draw) -> Vocab:
    drawn = token_texts(draw, letters(draw, SPACE))
    names = draw(STRIPPING)
    tokens, types = typed(draw, [*HEAD, *(STRIPPED if names else [])], drawn, MOSTLY_NORMAL)
    keys = words([*LETTERS, "a", " ", "\u3000", "\ufb01"], 3).map(str.encode)
    values = st.lists(st.sampled_from([*LETTERS, " ", "fi"]), max_size=3).map(lambda parts: "".join(parts).encode())
    replacements = draw(st.one_of(st.just({}), st.dictionaries(keys, values, max_size=8)))
    map = charsmap.build(replacements) if replacements else b""
    scores = [draw(SCORES) for _ in tokens]
    settings = common(draw) | {"remove_extra_whitespaces": draw(st.booleans())} | names
    return Vocab("t5", tokens, types, scores, charsmap=map, **settings)


@st.composite
def rwkv(draw: Draw) -> Vocab:
    drawn = token_texts(draw, letters(draw, " ", "\\n", "\\t", "\\xff", "\\xc3", "\\\\", "\\'"))
    # Without a token for its first byte alone a text can send llama.cpp round in circles.
    firsts = [f"\\x{byte:02x}" for byte in range(256)]
    head = [(b"<s>", TokenType.CONTROL), *((text.encode(), TokenType.NORMAL) for text in firsts)]
    tokens, types = typed(draw, head, drawn, MOSTLY_NORMAL)
    return Vocab("rwkv", tokens, types, bos=0, eos=0)


@st.composite
def plamo2(draw: Draw) -> Vocab:
    drawn = token_texts(draw, letters(draw, " "))
    head = [*HEAD, *((text, TokenType.BYTE) for text in spelling.BYTE_TOKENS)]
    tokens, types = typed(draw, head, drawn, MOSTLY_NORMAL)
    scores = [draw(SCORES) if type != TokenType.BYTE else 0.0 for type in types]
    # llama.cpp has changed its behaviour for BOS and EOS here, so neither is requested.
    return Vocab("plamo2", tokens, types, scores, bos=1, eos=2, unk=0)


KINDS = {"spm": spm(), "bpe": bpe_like(), "wordpiece": wpm(), "unigram": ugm(), "rwkv": rwkv(), "plamo2": plamo2()}


def drawn(kind: str, data: st.DataObject) -> tuple[Vocab, Tokenizer]:
    """A vocabulary of a kind, and its tokenizer."""
    vocab = data.draw(KINDS[kind])
    return vocab, Tokenizer.from_gguf(vocab.gguf())
